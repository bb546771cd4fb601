//! Errors of Claude Code, by their codes. Only errors on standard error, and for a missing session, have no code:
//! there the program's messages are matched, from their beginning.

use jiff::Timestamp;
use refrain_core::agent::{Fault, FaultKind, Until};

use super::wire::{ApiError, Outcome, RateLimit};
use crate::provider_error::{by_status, fault, refused};

/// Beginnings of the program's messages about its command line, and their meaning; first match wins.
const REFUSALS: [(&str, FaultKind); 15] = [
    ("No conversation found", FaultKind::Session),
    ("Error: No conversation found", FaultKind::Session),
    ("Error: Session ID", FaultKind::Session),
    ("Error: --resume requires a valid session", FaultKind::Session),
    ("Invalid API key", FaultKind::Login),
    ("Not logged in", FaultKind::Login),
    ("Please run /login", FaultKind::Login),
    ("OAuth token has expired", FaultKind::Login),
    ("error: ", FaultKind::Setup),
    ("Error: --", FaultKind::Setup),
    ("Error: When using --print", FaultKind::Setup),
    ("Error: Invalid ", FaultKind::Setup),
    ("Error: Settings file", FaultKind::Setup),
    ("--dangerously-skip-permissions", FaultKind::Setup),
    ("Error: Input must be provided", FaultKind::Setup),
];

/// An error about its command line on standard error.
pub(super) fn of_stderr(stderr: &str) -> Option<Fault> {
    refused(stderr, &REFUSALS)
}

/// The reason for a retry. A retry without a status had no response at all.
pub(super) fn of_retry(status: Option<u16>, error: Option<&str>, delay: Option<u64>) -> Fault {
    let kind = status.and_then(by_status).or(error.and_then(of_code)).unwrap_or(FaultKind::Connection);
    let message = match (status, error) {
        (Some(status), Some(error)) => format!("{status} {error}"),
        (Some(status), None) => status.to_string(),
        (None, Some("unknown") | None) => "no answer".to_owned(),
        (None, Some(error)) => error.to_owned(),
    };
    Fault { until: delay.map(|ms| Until::After(refrain_core::spec::Millis(ms))), ..fault(kind, &message) }
}

/// The cause of a run whose result is an error. `last` is the error that came before it, `limit` the last reported
/// limit of the plan.
pub(super) fn of_result(outcome: &Outcome, last: Option<&ApiError>, limit: Option<&RateLimit>) -> Fault {
    let none = ApiError::default();
    let last = last.unwrap_or(&none);
    let said = &outcome.error;
    let errors = outcome.errors.clone().unwrap_or_default().join("; ");
    let message = outcome.result.as_deref().filter(|text| !text.is_empty()).unwrap_or(&errors);
    let code = said.api_error.as_deref().or(last.api_error.as_deref());
    let error = said.error.as_deref().or(last.error.as_deref());
    let status = said.api_error_status.or(last.api_error_status);

    // An exhausted limit is no burst of requests, though it has the same status.
    let is_limit = code == Some("usage_limit_reached")
        || limit.is_some()
            && matches!(status, None | Some(429))
            && outcome.terminal_reason.as_deref() == Some("api_error");
    if is_limit {
        let params = last.api_error_params.as_ref().or(said.api_error_params.as_ref());
        let info = limit.or(params.and_then(|params| params.rate_limit_info.as_ref()));
        return Fault { until: info.and_then(until), ..fault(FaultKind::Limit, message) };
    }
    if let Some(reset) = matches!(status, None | Some(429)).then(|| epoch(message)).flatten() {
        return Fault { until: Some(Until::At(reset)), ..fault(FaultKind::Limit, message) };
    }
    let kind = of_end(outcome)
        .or(code.and_then(of_code))
        // It reports every refusal as a failed authentication, even a proxy's.
        .or((status == Some(403)).then_some(FaultKind::Forbidden))
        .or(error.and_then(of_exact_code))
        .or(status.and_then(by_status))
        .or(error.and_then(of_code))
        .or(errors.starts_with("No conversation found").then_some(FaultKind::Session))
        // A request to the API without a status: it did not answer.
        .or((outcome.terminal_reason.as_deref() == Some("api_error")).then_some(FaultKind::Connection))
        .unwrap_or(FaultKind::Other);
    fault(kind, message)
}

/// When a plan's limit is reset, in the form of older plans: `Claude AI usage limit reached|1900000000`.
fn epoch(message: &str) -> Option<Timestamp> {
    let (_, seconds) = message.split_once("usage limit reached|")?;
    let end = seconds.find(|c: char| !c.is_ascii_digit()).unwrap_or(seconds.len());
    Timestamp::from_second(seconds[..end].parse().ok()?).ok()
}

/// The error in a synthetic message, if no result follows it.
pub(super) fn of_message(error: &ApiError) -> Fault {
    let code = error.api_error.as_deref().or(error.error.as_deref());
    let forbidden = (error.api_error_status == Some(403)).then_some(FaultKind::Forbidden);
    let kind = forbidden
        .or(code.and_then(of_exact_code))
        .or(error.api_error_status.and_then(by_status))
        .or(code.and_then(of_code))
        .unwrap_or(FaultKind::Other);
    fault(kind, code.unwrap_or("the API failed"))
}

/// The plan's limit is used up.
pub(super) fn of_limit(limit: &RateLimit) -> Fault {
    let which = limit.kind.as_deref().unwrap_or("plan");
    Fault { until: until(limit), ..fault(FaultKind::Limit, &format!("the {which} limit is used up")) }
}

fn until(limit: &RateLimit) -> Option<Until> {
    Timestamp::from_second(limit.resets_at?).ok().map(Until::At)
}

/// The fault that the kind of end itself shows.
fn of_end(outcome: &Outcome) -> Option<FaultKind> {
    match outcome.subtype.as_deref() {
        Some("error_max_turns") => return Some(FaultKind::Turns),
        Some("error_max_budget_usd") => return Some(FaultKind::Budget),
        Some(_) | None => {}
    }
    match outcome.terminal_reason.as_deref()? {
        "prompt_too_long" => Some(FaultKind::Context),
        "max_turns" => Some(FaultKind::Turns),
        "budget_exhausted" => Some(FaultKind::Budget),
        reason if reason.starts_with("aborted") => Some(FaultKind::Aborted),
        _ => None,
    }
}

/// Codes that are more specific than the status: missing credit has status 400.
fn of_exact_code(code: &str) -> Option<FaultKind> {
    Some(match code {
        "billing_error" => FaultKind::Credit,
        "authentication_failed" => FaultKind::Login,
        "model_not_found" => FaultKind::Model,
        "max_output_tokens" => FaultKind::OutputLimit,
        "usage_limit_reached" => FaultKind::Limit,
        "connection_failed" => FaultKind::Connection,
        _ => return None,
    })
}

/// The meaning of a code without a status. `unknown` has none, and neither does `server_error`, which also appears if
/// no server was reached.
fn of_code(code: &str) -> Option<FaultKind> {
    of_exact_code(code).or(match code {
        "rate_limit" => Some(FaultKind::RateLimit),
        "overloaded" => Some(FaultKind::Overloaded),
        "invalid_request" => Some(FaultKind::Refused),
        _ => None,
    })
}
