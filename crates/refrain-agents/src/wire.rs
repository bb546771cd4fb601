//! The lines of a stream, read leniently: what is no event is said as it should be, and one odd field hides none.

use refrain_core::agent::AgentEvent;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::brief;

/// Receives the events of a stream.
pub(crate) type Say<'a> = &'a mut dyn FnMut(AgentEvent);

/// A field that is none where it is absent, null or not what was expected: one odd field must not hide an event.
pub(crate) fn lax<'de, D: Deserializer<'de>, T: DeserializeOwned>(input: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(input)?;
    Ok(serde_json::from_value(value).ok())
}

/// The event in a line. What is no event is said as it should be: nothing for an empty line, a notice for what is not
/// JSON, else that it is unknown.
pub(crate) fn event<T: DeserializeOwned>(line: &[u8], say: Say<'_>) -> Option<T> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Ok(event) = serde_json::from_slice(line) {
        return Some(event);
    }
    match serde_json::from_slice::<IgnoredAny>(line) {
        Ok(_) => say(AgentEvent::Unknown),
        Err(_) => say(AgentEvent::Notice(brief::raw(line))),
    }
    None
}
