//! What Gemini CLI's errors mean: by the error's type, the provider's own answer that is quoted in its message, its fixed
//! words, the exit code.

use refrain_core::agent::{Fault, FaultKind, Until};
use refrain_core::event::Exit;
use serde_json::Value;

use super::wire::Failure;
use crate::brief::{has, last_words};
use crate::faults::{End, after, by_code, by_message, by_status, fault, span};

/// Below this a used-up quota is a matter of too many requests at once.
const SHORT_WAIT: f64 = 300.0;

/// What an error result means, with the exit code that follows it.
pub(super) fn of_failure(failure: &Failure, exit: Exit) -> Fault {
    let message = &failure.message;
    let answer = quoted(message);
    let wait = reset(message).or_else(|| answer.as_ref().and_then(retry_delay));
    let kind = by_type(&failure.kind)
        .or_else(|| of_quota(message, answer.as_ref(), wait))
        .or_else(|| answer.as_ref().and_then(by_details))
        .or_else(|| by_message(message))
        .or_else(|| answer.as_ref().and_then(by_answer))
        .or_else(|| of_code(exit))
        .unwrap_or(FaultKind::Other);
    let message = answer.as_ref().and_then(|answer| answer.get("message")?.as_str()).unwrap_or(message);
    Fault { until: until(kind, wait), ..fault(kind, message) }
}

/// What an end without a result means.
pub(super) fn of_exit(exit: Exit, stderr: &str, has_begun: bool) -> Option<Fault> {
    let wait = reset(stderr);
    let kind = match End::of(exit) {
        End::Unseen => return None,
        End::Stopped => return Some(fault(FaultKind::Aborted, "gemini ended without a result")),
        End::Failed(42) if has(stderr, "session") => FaultKind::Session,
        End::NotRun | End::Failed(_) => {
            // Before its first event it was the command line or the configuration that it did not like.
            let otherwise = if has_begun { FaultKind::Other } else { FaultKind::Setup };
            let known = of_quota(stderr, None, wait).or_else(|| of_code(exit)).or_else(|| by_message(stderr));
            known.unwrap_or(otherwise)
        }
    };
    let message = last_words(stderr, "gemini ended without a result");
    Some(Fault { until: until(kind, wait), ..fault(kind, &message) })
}

/// What it was retrying when it was ended: `Attempt 3 failed with status 429`. Of that only standard error tells.
pub(super) fn of_retries(stderr: &str) -> Option<Fault> {
    let status = |line: &str| {
        let (attempt, rest) = line.strip_prefix("Attempt ")?.split_once(" failed with status ")?;
        attempt.parse::<u32>().ok()?;
        by_status(rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?)
    };
    let (kind, words) = stderr.lines().rev().find_map(|line| Some((status(line)?, line)))?;
    let wait = reset(stderr);
    Some(Fault { until: until(kind, wait), ..fault(kind, words) })
}

/// The types that end a run before or beside the provider.
fn by_type(kind: &str) -> Option<FaultKind> {
    match kind {
        "FatalTurnLimitedError" => Some(FaultKind::Turns),
        "FatalAuthenticationError" => Some(FaultKind::Login),
        "FatalInputError" | "FatalSandboxError" | "FatalConfigError" | "FatalUntrustedWorkspaceError" => {
            Some(FaultKind::Setup)
        }
        "FatalCancellationError" => Some(FaultKind::Aborted),
        _ => None,
    }
}

/// A quota that is used up, not merely asked too much of at once.
fn of_quota(message: &str, answer: Option<&Value>, wait: Option<f64>) -> Option<FaultKind> {
    let is_daily = answer.is_some_and(|answer| {
        details(answer)
            .flat_map(|detail| detail.get("violations").and_then(Value::as_array).into_iter().flatten())
            .filter_map(|violation| violation.get("quotaId")?.as_str())
            .any(|id| id.contains("PerDay"))
    });
    let is_spent = is_daily || has(message, "exhausted your") || has(message, "terminalquotaerror");
    is_spent.then_some(match wait {
        Some(seconds) if seconds < SHORT_WAIT => FaultKind::RateLimit,
        _ => FaultKind::Limit,
    })
}

/// The most exact that an answer has.
fn by_details(answer: &Value) -> Option<FaultKind> {
    details(answer).find_map(|detail| by_code(detail.get("reason")?.as_str()?))
}

fn by_answer(answer: &Value) -> Option<FaultKind> {
    let by_name = answer.get("status").and_then(Value::as_str).and_then(by_code);
    let status = answer.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    by_name.or_else(|| status.and_then(by_status))
}

fn details(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.get("details").and_then(Value::as_array).into_iter().flatten()
}

fn retry_delay(answer: &Value) -> Option<f64> {
    details(answer).find_map(|detail| span(detail.get("retryDelay")?.as_str()?))
}

/// The provider's answer, where the message quotes it: `[API Error: {"error":{...}}]`, more of the message may follow.
fn quoted(message: &str) -> Option<Value> {
    let json = message.strip_prefix("[API Error: ")?;
    let mut answer = serde_json::Deserializer::from_str(json).into_iter::<Value>().next()?.ok()?;
    answer.get_mut("error").map(Value::take)
}

/// When the quota is reset, in seconds: the last that was said.
fn reset(text: &str) -> Option<f64> {
    text.rsplit_once("reset after ").and_then(|(_, rest)| span(rest))
}

/// Documented exit codes, and the HTTP status behind the others (429 -> 173, 403 -> 147, 400 -> 144).
fn of_code(exit: Exit) -> Option<FaultKind> {
    let Exit::Code(code) = exit else { return None };
    match code {
        41 => Some(FaultKind::Login),
        42 | 44 | 52 | 55 => Some(FaultKind::Setup),
        53 => Some(FaultKind::Turns),
        130 => Some(FaultKind::Aborted),
        _ => [400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 504, 529]
            .into_iter()
            .find(|status| i32::from(status % 256) == code)
            .and_then(by_status),
    }
}

fn until(kind: FaultKind, wait: Option<f64>) -> Option<Until> {
    match kind {
        FaultKind::Limit | FaultKind::RateLimit | FaultKind::Overloaded => wait.and_then(after),
        _ => None,
    }
}
