//! The meaning of Gemini CLI's errors: by the error's type, the provider's answer quoted in its message, its fixed
//! words, the exit code.

use refrain_core::agent::{Fault, FaultKind, Until};
use refrain_core::event::Exit;
use serde_json::Value;

use super::wire::Failure;
use crate::provider_error::{End, after, by_code, by_message, by_status, fault, span};
use crate::summarize::{has, last_words};

/// Below this number of seconds, an exhausted quota only means too many requests at once.
const SHORT_WAIT: f64 = 300.0;
/// How long a notice may be, in bytes.
const LONGEST_NOTICE: usize = 4 << 10;

/// The meaning of an error result, with the exit code that follows it.
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

/// The meaning of an end without a result.
pub(super) fn of_exit(exit: Exit, stderr: &str, has_begun: bool) -> Option<Fault> {
    let wait = reset(stderr);
    let kind = match End::of(exit) {
        End::Unseen => return None,
        End::Stopped => return Some(fault(FaultKind::Aborted, "gemini ended without a result")),
        End::Failed(42) if has(stderr, "session") => FaultKind::Session,
        End::NotRun | End::Failed(_) => {
            // An error before its first event concerns the command line or the configuration.
            let otherwise = if has_begun { FaultKind::Other } else { FaultKind::Setup };
            let known = of_quota(stderr, None, wait).or_else(|| of_code(exit)).or_else(|| by_message(stderr));
            known.unwrap_or(otherwise)
        }
    };
    let message = last_words(stderr, "gemini ended without a result");
    Some(Fault { until: until(kind, wait), ..fault(kind, &message) })
}

/// Notices that it tries again, which only standard error has: `Attempt 1 failed: WORDS. Retrying after 290000ms...`,
/// with words that may be several lines, or `Attempt 3 failed with status 429. Retrying with backoff...`.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    begun: String,
}

impl Notices {
    /// The reason for a retry, once the notice is complete.
    pub(crate) fn line(&mut self, line: &str) -> Option<Fault> {
        if line.starts_with("Attempt ") {
            self.begun.clear();
        } else if self.begun.is_empty() || self.begun.len() > LONGEST_NOTICE {
            self.begun.clear();
            return None;
        }
        self.begun.push_str(line);
        self.begun.push('\n');
        let (said, how) = self.begun.rsplit_once("Retrying ")?;
        let fault = of_retry(said, how);
        self.begun.clear();
        fault
    }
}

fn of_retry(said: &str, how: &str) -> Option<Fault> {
    let (attempt, words) = said.strip_prefix("Attempt ")?.split_once(" failed")?;
    attempt.parse::<u32>().ok()?;
    // `290000ms...`: the trailing dots are no part of the number.
    let wait = how.strip_prefix("after ").and_then(|delay| span(delay.split('.').next()?));
    let status = words.strip_prefix(" with status ").and_then(|rest| rest.get(..3)?.parse().ok());
    let kind = match words {
        " with 429 error (no Retry-After header). " => Some(FaultKind::RateLimit),
        " with 5xx error. " => Some(FaultKind::Overloaded),
        words if words.starts_with(": ") => of_quota(words, None, wait).or(Some(FaultKind::RateLimit)),
        words if status.is_none() => by_message(words).or(Some(FaultKind::Connection)),
        _ => status.and_then(by_status),
    }?;
    Some(Fault { until: until(kind, wait), ..fault(kind, &format!("{said}Retrying {how}")) })
}

/// The reason for the last retry before it was ended.
pub(super) fn of_retries(stderr: &str) -> Option<Fault> {
    let mut notices = Notices::default();
    stderr.lines().filter_map(|line| notices.line(line)).last()
}

/// Error types that end a run independently of the provider.
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

/// A quota that is used up, not only a short-term limit.
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

/// The most specific kind in an answer's details.
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

/// The provider's answer, if the message quotes it: `[API Error: {"error":{...}}]`, more of the message may follow.
fn quoted(message: &str) -> Option<Value> {
    let json = message.strip_prefix("[API Error: ")?;
    let mut answer = serde_json::Deserializer::from_str(json).into_iter::<Value>().next()?.ok()?;
    answer.get_mut("error").map(Value::take)
}

/// When the quota is reset, in seconds: the last value in the text.
fn reset(text: &str) -> Option<f64> {
    text.rsplit_once("reset after ").and_then(|(_, rest)| span(rest))
}

/// Documented exit codes, and the HTTP status for the others (429 -> 173, 403 -> 147, 400 -> 144).
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
