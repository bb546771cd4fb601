//! Converts errors of an ACP conversation to our faults: by the error's code, by the codes in its data, by its fixed
//! words.

use refrain_core::agent::{Fault, FaultKind};
use serde_json::Value;

use crate::provider_error::{by_code, by_message, by_status};
use crate::summarize;

/// The fields in which agents pass on the provider's status and codes.
const CODES: [&str; 6] = ["code", "type", "status", "reason", "errorKind", "codexErrorInfo"];
const STATUSES: [&str; 4] = ["status", "statusCode", "httpStatusCode", "code"];
const DEPTH: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There was no session yet, or it could not be set up.
    Setup,
    Prompt,
}

/// The meaning of an error response of the agent.
pub(super) fn of_answer(at: Phase, code: i32, message: &str, data: Option<&Value>) -> Fault {
    let words = data.and_then(words).unwrap_or(message);
    let kind = by_protocol(code)
        .or_else(|| data.and_then(|data| find(data, DEPTH, &by_name)))
        // Before statuses: gemini reports an exhausted quota like too many requests, with 429.
        .or_else(|| by_message(words))
        .or_else(|| by_message(message))
        .or_else(|| u16::try_from(code).ok().and_then(by_status))
        .or_else(|| data.and_then(|data| find(data, DEPTH, &by_number)))
        .or_else(|| by_phrase(words))
        .unwrap_or(match at {
            Phase::Setup => FaultKind::Setup,
            Phase::Prompt => FaultKind::Other,
        });
    let message = match words == message {
        true => summarize::line(message),
        false => summarize::line(&format!("{message}: {words}")),
    };
    Fault { kind, message, until: None }
}

/// A fault of the program, or of its command line.
pub(super) fn of(kind: FaultKind, message: &str) -> Fault {
    Fault { kind, message: summarize::line(message), until: None }
}

/// The codes that the protocol itself defines.
fn by_protocol(code: i32) -> Option<FaultKind> {
    match code {
        -32_000 => Some(FaultKind::Login),
        -32_800 => Some(FaultKind::Aborted),
        _ => None,
    }
}

/// The name of an HTTP status, which OpenCode puts before the provider's answer instead of the status itself.
fn by_phrase(words: &str) -> Option<FaultKind> {
    const PHRASES: [(&str, u16); 7] = [
        ("Unauthorized", 401),
        ("Payment Required", 402),
        ("Forbidden", 403),
        ("Not Found", 404),
        ("Too Many Requests", 429),
        ("Bad Gateway", 502),
        ("Service Unavailable", 503),
    ];
    let words = words.strip_prefix("Internal error: ").unwrap_or(words);
    let begins = |phrase: &str| {
        words.strip_prefix(phrase).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    PHRASES.iter().find(|(phrase, _)| begins(phrase)).and_then(|(_, status)| by_status(*status))
}

/// Searches an error's data, and nested values, with `look`.
fn find(data: &Value, depth: usize, look: &dyn Fn(&Value) -> Option<FaultKind>) -> Option<FaultKind> {
    let within = || match data {
        Value::Object(fields) if depth > 0 => fields.values().find_map(|value| find(value, depth - 1, look)),
        _ => None,
    };
    look(data).or_else(within)
}

fn by_name(data: &Value) -> Option<FaultKind> {
    CODES.iter().find_map(|name| by_code(data.get(name)?.as_str()?))
}

fn by_number(data: &Value) -> Option<FaultKind> {
    STATUSES.iter().find_map(|name| by_status(u16::try_from(data.get(name)?.as_u64()?).ok()?))
}

fn words(data: &Value) -> Option<&str> {
    let names = ["message", "details", "error"];
    let text = data.as_str().or_else(|| names.iter().find_map(|name| data.get(name)?.as_str()));
    text.filter(|text| !text.is_empty())
}
