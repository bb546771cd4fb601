//! The meaning of OpenCode's errors: by the error's name, the provider's own code in its body, the HTTP status.

use refrain_core::agent::{Fault, FaultKind, Until};
use refrain_core::event::Exit;
use serde_json::Value;

use super::wire::{Failure, FailureData};
use crate::provider_error::{End, by_code, by_message, by_status, fault, resets, retry_after};
use crate::summarize::{has, last_words};

/// The meaning of an `error` event.
pub(super) fn of_error(failure: &Failure) -> Fault {
    let data = &failure.data;
    let body = data.response_body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok());
    let error = body.as_ref().map(|body| body.get("error").unwrap_or(body));
    let kind = by_name(&failure.name)
        .or_else(|| error.and_then(by_body))
        .or_else(|| by_message(&data.message))
        .or_else(|| data.status_code.and_then(by_status))
        .unwrap_or(if data.is_retryable { FaultKind::Connection } else { FaultKind::Other });
    let message = if data.message.is_empty() { &failure.name } else { &data.message };
    let until = match kind {
        FaultKind::Limit | FaultKind::RateLimit | FaultKind::Overloaded => {
            error.and_then(resets).or_else(|| by_headers(data))
        }
        _ => None,
    };
    Fault { until, ..fault(kind, message) }
}

fn by_name(name: &str) -> Option<FaultKind> {
    match name {
        "ContextOverflowError" => Some(FaultKind::Context),
        "ContentFilterError" => Some(FaultKind::Refused),
        "MessageOutputLengthError" => Some(FaultKind::OutputLimit),
        "MessageAbortedError" => Some(FaultKind::Aborted),
        "ProviderAuthError" => Some(FaultKind::Login),
        "ProviderModelNotFoundError" => Some(FaultKind::Model),
        _ => None,
    }
}

fn by_body(error: &Value) -> Option<FaultKind> {
    ["code", "type", "status"]
        .iter()
        .find_map(|name| error.get(name).and_then(Value::as_str).and_then(by_code))
}

fn by_headers(data: &FailureData) -> Option<Until> {
    data.response_headers.get("retry-after").and_then(Value::as_str).and_then(retry_after)
}

/// Messages at its end if several first processes of a home, or of a version, create its database at once. One of
/// them succeeds, and from then on all do.
const BUSY: [&str; 3] = ["database is locked", "create table `", "alter table `"];

/// The meaning of an end without an event about it.
pub(super) fn of_exit(exit: Exit, stderr: &str, has_begun: bool) -> Option<Fault> {
    let code = match End::of(exit) {
        End::Unseen => return None,
        End::Stopped => return Some(fault(FaultKind::Aborted, "opencode ended before its answer did")),
        End::NotRun => "opencode could not be started".to_owned(),
        End::Failed(code) => format!("opencode ended with exit code {code}"),
    };
    if BUSY.iter().any(|words| has(stderr, words)) {
        return Some(fault(FaultKind::Busy, "another run of opencode was just making its database"));
    }
    // An error before its first event concerns the command line or the configuration.
    let otherwise = if has_begun { FaultKind::Other } else { FaultKind::Setup };
    let session = has(stderr, "session not found").then_some(FaultKind::Session);
    let kind = session.or_else(|| by_message(stderr)).unwrap_or(otherwise);
    Some(fault(kind, &last_words(stderr, &code)))
}
