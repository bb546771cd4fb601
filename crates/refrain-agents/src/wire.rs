//! Lenient parsing of a stream's lines: other lines become notices, and one malformed field does not hide an event.

use refrain_core::agent::AgentEvent;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::summarize;

pub(crate) type EventSink<'a> = &'a mut dyn FnMut(AgentEvent);

/// A field that is none if it is absent, null or of an unexpected type: one malformed field must not hide an event.
pub(crate) fn lax<'de, D: Deserializer<'de>, T: DeserializeOwned>(input: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(input)?;
    Ok(serde_json::from_value(value).ok())
}

/// The event in a line. An empty line is skipped, text that is not JSON becomes a notice, and other JSON an unknown
/// event.
pub(crate) fn event<T: DeserializeOwned>(line: &[u8], say: EventSink<'_>) -> Option<T> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Ok(event) = serde_json::from_slice(line) {
        return Some(event);
    }
    match serde_json::from_slice::<IgnoredAny>(line) {
        Ok(_) => say(AgentEvent::Unknown),
        Err(_) => say(AgentEvent::Notice(summarize::raw(line))),
    }
    None
}
