//! What spans add up to, as metrics of OpenTelemetry. Each batch covers only what ended in it (delta temporality): the
//! sender lives as long as one loop, and has no total to continue.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::otlp::{Resource, encoded, nanos};
use super::{Attribute, Kind, Span, Value};

/// The bounds of the buckets of a count of tokens, from the GenAI conventions.
const TOKENS: [f64; 14] = powers(1.0, 4.0);
/// Those of a duration, in seconds, from the conventions; and further, as agents take longer than models.
const SECONDS: [f64; 20] = powers(0.01, 2.0);

const fn powers<const N: usize>(first: f64, factor: f64) -> [f64; N] {
    let (mut bounds, mut n) = ([first; N], 1);
    while n < N {
        bounds[n] = bounds[n - 1] * factor;
        n += 1;
    }
    bounds
}

/// What a span adds to a metric, and the attribute of its series, beside the span's own attributes.
type MetricPart = (f64, Option<Attribute>);

struct Metric {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    shape: Shape,
    of: fn(&Span) -> Vec<MetricPart>,
    /// The attributes of spans that distinguish its series.
    labels: &'static [&'static str],
}

enum Shape {
    Count,
    Sum,
    Histogram(&'static [f64]),
}

const AGENT: [&str; 6] = [
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.agent.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "refrain.pool",
];
const AGENT_ENDED: [&str; 6] = [
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.agent.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "error.type",
];

const METRICS: [Metric; 6] = [
    Metric {
        name: "gen_ai.client.token.usage",
        unit: "{token}",
        about: "Tokens that an agent used.",
        shape: Shape::Histogram(&TOKENS),
        of: tokens,
        labels: &AGENT,
    },
    Metric {
        name: "gen_ai.client.operation.duration",
        unit: "s",
        about: "How long an agent was at work.",
        shape: Shape::Histogram(&SECONDS),
        of: |span| if span.kind == Kind::Agent { took(span) } else { Vec::new() },
        labels: &AGENT_ENDED,
    },
    Metric {
        name: "refrain.cost",
        unit: "USD",
        about: "What agents cost, as far as they said.",
        shape: Shape::Sum,
        of: cost,
        labels: &AGENT,
    },
    Metric {
        name: "refrain.iterations",
        unit: "{iteration}",
        about: "Iterations that are over.",
        shape: Shape::Count,
        of: |span| once(span, Kind::Iteration),
        labels: &["refrain.iteration.charged"],
    },
    Metric {
        name: "refrain.loops",
        unit: "{loop}",
        about: "Loops that stopped, by how.",
        shape: Shape::Count,
        of: |span| once(span, Kind::Loop),
        labels: &["refrain.loop.status", "refrain.loop.verified"],
    },
    Metric {
        name: "refrain.gate.duration",
        unit: "s",
        about: "How long a gate took.",
        shape: Shape::Histogram(&SECONDS),
        of: |span| if span.kind == Kind::Gate { took(span) } else { Vec::new() },
        labels: &["refrain.gate.name", "refrain.gate.passed"],
    },
];

fn once(span: &Span, kind: Kind) -> Vec<MetricPart> {
    if span.kind == kind { vec![(1.0, None)] } else { Vec::new() }
}

fn took(span: &Span) -> Vec<MetricPart> {
    vec![(span.end.duration_since(span.start).as_secs_f64().max(0.0), None)]
}

fn cost(span: &Span) -> Vec<MetricPart> {
    match span.attribute("refrain.cost_usd") {
        Some(Value::Number(cost)) if span.kind == Kind::Agent => vec![(*cost, None)],
        Some(_) | None => Vec::new(),
    }
}

fn tokens(span: &Span) -> Vec<MetricPart> {
    let used = |(name, kind): (&str, &str)| match span.attribute(name) {
        #[expect(clippy::cast_precision_loss, reason = "no usage is so large")]
        Some(Value::Count(count)) => {
            Some((*count as f64, Some(("gen_ai.token.type", Value::Text(kind.to_owned())))))
        }
        Some(_) | None => None,
    };
    let names = [("gen_ai.usage.input_tokens", "input"), ("gen_ai.usage.output_tokens", "output")];
    names.into_iter().filter_map(used).collect()
}

/// One series of a metric: its attributes, and what was added to it.
type Series = (Vec<Attribute>, Vec<f64>);

/// One request with the sums of these spans, which ended after `since`; none if there is nothing.
pub fn otlp_metrics(spans: &[Span], since: Timestamp, resource: &Resource) -> Option<String> {
    let until = spans.iter().map(|span| span.end).max()?;
    let metrics: Vec<Json> =
        METRICS.iter().filter_map(|metric| encode(metric, spans, (since.min(until), until))).collect();
    if metrics.is_empty() {
        return None;
    }
    let request = json!({"resourceMetrics": [{
        "resource": resource.encoded(),
        "scopeMetrics": [{"scope": resource.scope(), "metrics": metrics}],
    }]});
    Some(request.to_string())
}

fn encode(metric: &Metric, spans: &[Span], (since, until): (Timestamp, Timestamp)) -> Option<Json> {
    let mut all: Vec<Series> = Vec::new();
    for span in spans {
        for (added, own) in (metric.of)(span) {
            let label = |name: &&'static str| Some((*name, span.attribute(name)?.clone()));
            let labels: Vec<Attribute> = metric.labels.iter().filter_map(label).chain(own).collect();
            match all.iter_mut().find(|(known, _)| *known == labels) {
                Some((_, values)) => values.push(added),
                None => all.push((labels, vec![added])),
            }
        }
    }
    let point = |(labels, values): &Series| {
        let sum: f64 = values.iter().sum();
        let said = match metric.shape {
            // Numbers of 64 bits are texts there.
            Shape::Count => json!({"asInt": values.len().to_string()}),
            Shape::Sum => json!({"asDouble": sum}),
            Shape::Histogram(bounds) => json!({
                "count": values.len().to_string(),
                "sum": sum,
                "min": values.iter().copied().fold(f64::INFINITY, f64::min),
                "max": values.iter().copied().fold(0.0, f64::max),
                "explicitBounds": bounds,
                "bucketCounts": buckets(values, bounds),
            }),
        };
        let mut point = json!({
            "attributes": encoded(labels),
            "startTimeUnixNano": nanos(since),
            "timeUnixNano": nanos(until),
        });
        if let (Json::Object(point), Json::Object(said)) = (&mut point, said) {
            point.extend(said);
        }
        point
    };
    let points: Vec<Json> = all.iter().map(point).collect();
    // 1 is delta.
    let (shape, mut data) = match metric.shape {
        Shape::Count | Shape::Sum => ("sum", json!({"aggregationTemporality": 1, "isMonotonic": true})),
        Shape::Histogram(_) => ("histogram", json!({"aggregationTemporality": 1})),
    };
    data["dataPoints"] = Json::Array(points);
    let mut made = json!({"name": metric.name, "unit": metric.unit, "description": metric.about});
    made[shape] = data;
    (!all.is_empty()).then_some(made)
}

/// How many are in each bucket: up to its bound, which belongs to it, and in the last those beyond all.
fn buckets(values: &[f64], bounds: &[f64]) -> Vec<String> {
    let mut counts = vec![0_u64; bounds.len() + 1];
    for value in values {
        counts[bounds.partition_point(|bound| bound < value)] += 1;
    }
    counts.iter().map(u64::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_upper_bound() {
        assert_eq!(buckets(&[0.0, 1.0, 1.5, 2.0, 9.0], &[1.0, 2.0]), ["2", "2", "1"]);
    }

    #[test]
    fn bounds_go_up() {
        assert!(TOKENS.is_sorted() && SECONDS.is_sorted());
        assert_eq!((TOKENS[13], SECONDS[6], SECONDS[19]), (67_108_864.0, 0.64, 5242.88));
    }
}
