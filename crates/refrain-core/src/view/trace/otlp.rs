//! Spans in the JSON of OTLP, as a collector takes them at `/v1/traces`, and what metrics share with them.

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::{Attribute, Kind, Span, Value};
use crate::text::{clip, printable};

/// The longest text of an attribute, in bytes.
const LONGEST: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub version: String,
    /// What else is known of it, and what a person configured: of a duplicate name the last one counts.
    pub attributes: Vec<(String, String)>,
}

impl Resource {
    pub(super) fn encoded(&self) -> Json {
        let own = [("service.name", "refrain"), ("service.version", self.version.as_str())];
        let said = self.attributes.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let mut all: Vec<(&str, &str)> = Vec::new();
        for (name, text) in own.into_iter().chain(said) {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = text,
                None => all.push((name, text)),
            }
        }
        let text = |text: &str| value(&Value::Text(text.to_owned()));
        let all: Vec<Json> = all.iter().map(|(key, it)| json!({"key": key, "value": text(it)})).collect();
        json!({"attributes": all})
    }

    pub(super) fn scope(&self) -> Json {
        json!({"name": "refrain", "version": self.version})
    }
}

pub fn otlp(spans: &[Span], resource: &Resource) -> String {
    json!({"resourceSpans": [{
        "resource": resource.encoded(),
        "scopeSpans": [{"scope": resource.scope(), "spans": spans.iter().map(span).collect::<Vec<_>>()}],
    }]})
    .to_string()
}

fn span(span: &Span) -> Json {
    // 1 is well, 2 an error.
    let status = match &span.error {
        Some(error) => json!({"code": 2, "message": clip(&printable(error), LONGEST)}),
        None => json!({"code": 1}),
    };
    // 1 is internal, 3 a client's.
    let kind = match span.kind {
        Kind::Agent => 3,
        Kind::Plan | Kind::Task | Kind::Loop | Kind::Iteration | Kind::Gate => 1,
    };
    let mut made = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": clip(&printable(&span.name), LONGEST),
        "kind": kind,
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": encoded(&span.attributes),
        "status": status,
    });
    if let (Some(parent), Some(fields)) = (span.parent, made.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), json!(parent.to_string()));
    }
    made
}

pub(super) fn encoded(attributes: &[Attribute]) -> Vec<Json> {
    attributes.iter().map(|(key, it)| json!({"key": key, "value": value(it)})).collect()
}

/// Numbers of 64 bits are texts there.
pub(super) fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"stringValue": clip(&printable(text), LONGEST)}),
        Value::Count(count) => json!({"intValue": count.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::Flag(flag) => json!({"boolValue": flag}),
    }
}
