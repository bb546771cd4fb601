//! Spans in the JSON of OTLP, as a collector takes them at `/v1/traces`.

use jiff::Timestamp;
use serde_json::json;

use super::{Span, Value};
use crate::text::{clip, printable};

/// The longest text of an attribute, in bytes.
const LONGEST: usize = 1000;

/// One request with all of them.
#[must_use]
pub fn otlp(spans: &[Span], version: &str) -> String {
    let resource = [("service.name", "refrain"), ("service.version", version)];
    let resource: Vec<_> =
        resource.iter().map(|(key, text)| json!({"key": key, "value": {"stringValue": text}})).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": "refrain", "version": version},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
    .to_string()
}

fn span(span: &Span) -> serde_json::Value {
    let attributes: Vec<_> =
        span.attributes.iter().map(|(key, it)| json!({"key": key, "value": value(it)})).collect();
    // 1 is internal, 3 a client's; 1 is well, 2 an error.
    let status = match &span.error {
        Some(error) => json!({"code": 2, "message": clip(&printable(error), LONGEST)}),
        None => json!({"code": 1}),
    };
    let mut made = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": if span.is_client { 3 } else { 1 },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": attributes,
        "status": status,
    });
    if let (Some(parent), Some(fields)) = (span.parent, made.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), json!(parent.to_string()));
    }
    made
}

/// Numbers of 64 bits are texts there.
fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

fn value(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!({"stringValue": clip(&printable(text), LONGEST)}),
        Value::Count(count) => json!({"intValue": count.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::Flag(flag) => json!({"boolValue": flag}),
    }
}
