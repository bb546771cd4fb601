//! Errors of Codex. It has no codes: the messages on its error channel are matched, from their beginning if that is
//! known.

use refrain_core::agent::{Fault, FaultKind, Until};

use crate::adapter::Clock;
use crate::provider_error::{after, by_status, fault, on_the_clock, refused, span};

/// How the program's own messages begin; first match wins.
const BEGINNINGS: [(&str, FaultKind); 16] = [
    ("You've hit your usage limit", FaultKind::Limit),
    ("Quota exceeded", FaultKind::Credit),
    ("Selected model is at capacity", FaultKind::Overloaded),
    ("We're currently experiencing high demand", FaultKind::Overloaded),
    ("Codex ran out of room in the model's context window", FaultKind::Context),
    ("Incomplete response returned, reason: max_output_tokens", FaultKind::OutputLimit),
    ("Incomplete response returned", FaultKind::Refused),
    ("model: no such model", FaultKind::Model),
    ("Rate limit reached", FaultKind::RateLimit),
    ("stream disconnected before completion: Rate limit reached", FaultKind::RateLimit),
    ("stream disconnected before completion", FaultKind::Connection),
    ("error sending request", FaultKind::Connection),
    ("idle timeout waiting for SSE", FaultKind::Connection),
    ("timeout waiting for", FaultKind::Connection),
    ("Your access token could not be refreshed", FaultKind::Login),
    ("Not logged in", FaultKind::Login),
];

/// A provider's message about an unavailable model, with any status.
const NO_MODEL: [&str; 2] =
    ["does not exist or you do not have access", "model is not supported when using Codex"];

/// Beginnings of the program's messages about its command line on standard error; first match wins.
const REFUSALS: [(&str, FaultKind); 13] = [
    ("Error: thread/resume:", FaultKind::Session),
    ("Error: thread/read:", FaultKind::Session),
    ("Error: thread/fork:", FaultKind::Session),
    ("Error: no rollout found", FaultKind::Session),
    ("Error: No saved session found", FaultKind::Session),
    ("error: ", FaultKind::Setup),
    ("Error loading config", FaultKind::Setup),
    ("Error: Model provider", FaultKind::Setup),
    ("Not inside a trusted directory", FaultKind::Setup),
    ("No prompt provided", FaultKind::Setup),
    ("Missing environment variable", FaultKind::Setup),
    ("Not logged in", FaultKind::Login),
    ("Error: Not logged in", FaultKind::Login),
];

/// An error about its command line on standard error.
pub(super) fn of_stderr(stderr: &str) -> Option<Fault> {
    refused(stderr, &REFUSALS)
}

/// The meaning of a message on the error channel.
pub(super) fn of_message(message: &str, clock: &Clock) -> Fault {
    // The program prints typographic apostrophes.
    let plain = message.replace('\u{2019}', "'");
    let beginning = BEGINNINGS.iter().find(|(start, _)| plain.starts_with(start)).map(|(_, kind)| *kind);
    let kind = NO_MODEL
        .iter()
        .any(|text| plain.contains(text))
        .then_some(FaultKind::Model)
        .or(beginning)
        .or_else(|| status(&plain).and_then(by_status))
        .unwrap_or(FaultKind::Other);
    Fault { until: until(kind, &plain, clock), ..fault(kind, message) }
}

/// The reason for a retry; none if it is no retry.
pub(super) fn of_retry(message: &str, clock: &Clock) -> Option<Fault> {
    let rest = message.strip_prefix("Reconnecting... ")?;
    let reason = rest.split_once(" (").and_then(|(_, reason)| reason.strip_suffix(')'));
    Some(match reason {
        Some(reason) => of_message(reason, clock),
        // Only `n/m`, without a reason: it was the connection.
        None => fault(FaultKind::Connection, message),
    })
}

fn status(message: &str) -> Option<u16> {
    let rest = ["unexpected status ", "exceeded retry limit, last status: "]
        .iter()
        .find_map(|start| message.strip_prefix(start))?;
    rest.get(..3)?.parse().ok()
}

/// When to retry: after a time, or at a wall-clock time of this machine, which the program uses too.
fn until(kind: FaultKind, message: &str, clock: &Clock) -> Option<Until> {
    if !matches!(kind, FaultKind::Limit | FaultKind::RateLimit) {
        return None;
    }
    let lower = message.to_ascii_lowercase();
    if let Some((_, said)) = lower.split_once("try again in ") {
        return span(said).and_then(after);
    }
    let (_, said) = lower.split_once("try again at ")?;
    on_the_clock(said, &clock.shows()).map(Until::At)
}
