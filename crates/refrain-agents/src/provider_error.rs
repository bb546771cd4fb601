//! Errors that are the same for every program: providers' own codes (HTTP status, error codes in bodies, retry times)
//! and kinds of exit. Only text from an error channel is examined here; a model's prose is not.

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp, Zoned};
use refrain_core::agent::{Fault, FaultKind, Until};
use refrain_core::event::Exit;
use serde_json::Value;

use crate::summarize::{has, last_words, line};

/// A fault without a known end.
pub(crate) fn fault(kind: FaultKind, message: &str) -> Fault {
    Fault { kind, message: line(message), until: None }
}

/// The meaning of an exit, if the stream has no end of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end was not observed.
    Unseen,
    /// By a signal, or by the exit code that a program uses when it handles one: it was stopped. So does an end with
    /// 0, which claims a success that the stream does not show.
    Stopped,
    /// The program could not be run.
    NotRun,
    Failed(i32),
}

impl End {
    pub(crate) fn of(exit: Exit) -> Self {
        match exit {
            Exit::Lost | Exit::Unseen => Self::Unseen,
            Exit::Signal(_) | Exit::Code(0 | 129 | 130 | 137 | 143) => Self::Stopped,
            Exit::Code(126 | 127) => Self::NotRun,
            Exit::Code(code) => Self::Failed(code),
        }
    }

    /// The fault of a program that ended so without a result, if nothing better is known.
    pub(crate) fn without_result(self, stderr: &str) -> Fault {
        let nothing = "it ended without a result";
        match self {
            Self::Stopped | Self::Unseen => fault(FaultKind::Aborted, nothing),
            Self::NotRun => fault(FaultKind::Setup, &last_words(stderr, "it could not be started")),
            Self::Failed(_) => fault(FaultKind::Other, &last_words(stderr, nothing)),
        }
    }
}

/// An error about the command line on standard error, by how the program's messages begin; the first match wins.
pub(crate) fn refused(stderr: &str, beginnings: &[(&str, FaultKind)]) -> Option<Fault> {
    stderr.lines().find_map(|line| {
        let (_, kind) = beginnings.iter().find(|(start, _)| line.trim_start().starts_with(start))?;
        Some(fault(*kind, line))
    })
}

/// The fault of a reported success with a failing exit. A signal does not count: the final message came before it.
pub(crate) fn of_denial(exit: Exit) -> Option<Fault> {
    let Exit::Code(code @ (1..=128 | 144..)) = exit else { return None };
    Some(fault(FaultKind::Other, &format!("it exited with {code} after a success")))
}

/// The meaning of an HTTP status, if no better information exists.
pub(crate) fn by_status(status: u16) -> Option<FaultKind> {
    match status {
        401 | 407 => Some(FaultKind::Login),
        403 => Some(FaultKind::Forbidden),
        402 => Some(FaultKind::Credit),
        404 => Some(FaultKind::Model),
        408 => Some(FaultKind::Connection),
        413 => Some(FaultKind::Context),
        429 => Some(FaultKind::RateLimit),
        400..500 => Some(FaultKind::Refused),
        500..600 => Some(FaultKind::Overloaded),
        _ => None,
    }
}

/// The meaning of a code in an error's body: `error.type`, `error.code`, `error.status`, `reason`.
pub(crate) fn by_code(code: &str) -> Option<FaultKind> {
    match code {
        "usage_limit_reached" | "usage_limit_exceeded" => Some(FaultKind::Limit),
        "insufficient_quota" | "billing_error" | "insufficient_credits" => Some(FaultKind::Credit),
        "context_length_exceeded" | "request_too_large" => Some(FaultKind::Context),
        "invalid_api_key" | "authentication_error" => Some(FaultKind::Login),
        "API_KEY_INVALID" | "UNAUTHENTICATED" => Some(FaultKind::Login),
        "permission_error" | "permission_denied" | "PERMISSION_DENIED" => Some(FaultKind::Forbidden),
        "model_not_found" => Some(FaultKind::Model),
        "rate_limit_exceeded" | "rate_limit_error" | "RATE_LIMIT_EXCEEDED" => Some(FaultKind::RateLimit),
        "overloaded_error" | "server_is_overloaded" | "server_error" => Some(FaultKind::Overloaded),
        "UNAVAILABLE" | "INTERNAL" => Some(FaultKind::Overloaded),
        "content_filter" => Some(FaultKind::Refused),
        _ => None,
    }
}

/// The meaning of an error's one-sentence message. Several providers report these without a code of their own, so
/// their fixed words have to do.
pub(crate) fn by_message(message: &str) -> Option<FaultKind> {
    let rules = [
        (FaultKind::Credit, &["credit balance is too low", "insufficient credits"][..]),
        (FaultKind::Limit, &["daily quota", "usage limit"]),
        (FaultKind::Login, &["api key not valid", "incorrect api key", "invalid api key"]),
        (
            FaultKind::Context,
            &["exceeds the maximum number of tokens", "context window", "prompt is too long"],
        ),
        (FaultKind::Connection, &CONNECTION),
        (
            FaultKind::Model,
            &["no such model", "model not found", "modelnotfounderror", "is not found for api"],
        ),
    ];
    rules.iter().find(|(_, words)| words.iter().any(|words| has(message, words))).map(|(kind, _)| *kind)
}

/// Node's and Bun's names for connections that failed or broke.
const CONNECTION: [&str; 12] = [
    "econnreset",
    "econnrefused",
    "enotfound",
    "etimedout",
    "eai_again",
    "epipe",
    "fetch failed",
    "socket hang up",
    "socket connection was closed",
    "unable to connect",
    "cannot connect to api",
    "api error: terminated",
];

/// The time in a `Retry-After` header: seconds, or a date.
pub(crate) fn retry_after(header: &str) -> Option<Until> {
    match header.trim().parse::<f64>() {
        Ok(seconds) => after(seconds),
        Err(_) => rfc2822::parse(header.trim()).ok().map(|when: jiff::Zoned| Until::At(when.timestamp())),
    }
}

/// A time this many seconds from now; none if it is no valid duration.
pub(crate) fn after(seconds: f64) -> Option<Until> {
    Duration::try_from_secs_f64(seconds).ok().map(|duration| Until::After(duration.into()))
}

/// When the limit in an error's body is reset.
pub(crate) fn resets(error: &Value) -> Option<Until> {
    let at = error.get("resets_at").and_then(Value::as_i64).and_then(|at| Timestamp::from_second(at).ok());
    at.map(Until::At).or_else(|| error.get("resets_in_seconds").and_then(Value::as_f64).and_then(after))
}

/// A duration in the providers' notation, in seconds: `18h31m10s`, `34.07s`, `500ms`, `1 day 2 hours 5 minutes`.
pub(crate) fn span(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { return total };
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let Some(unit) = seconds(&rest[..letters]) else { return total };
        total = Some(total.unwrap_or_default() + number * unit);
        rest = &rest[letters..];
    }
}

/// How far in the past a time without a date may be before it means the next day.
const JUST_NOW: SignedDuration = SignedDuration::from_mins(10);

/// A local wall-clock time in lower case: `3:12 am`, meaning the next such time, or `nov 24th, 2026 2:08 am`.
/// Programs cut it to the minute, so the actual time may be as late as that minute's end.
pub(crate) fn on_the_clock(text: &str, now: &Zoned) -> Option<Timestamp> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let (day, time) = match first.contains(':') {
        true => (None, first),
        false => {
            let day = words.next()?.trim_end_matches(|c: char| !c.is_ascii_digit());
            let date = format!("{first} {day} {}", words.next()?);
            (Some(Date::strptime("%b %d %Y", date).ok()?), words.next()?)
        }
    };
    let half = words.next()?.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let time = Time::strptime("%I:%M %p", format!("{time} {half}")).ok()?;
    let on = |date: Date| {
        let end = date.to_datetime(time).checked_add(SignedDuration::from_mins(1)).ok()?;
        Some(end.to_zoned(now.time_zone().clone()).ok()?.timestamp())
    };
    if let Some(day) = day {
        return on(day);
    }
    let today = on(now.date())?;
    let is_over = now.timestamp().duration_since(today) > JUST_NOW;
    if is_over { on(now.date().tomorrow().ok()?) } else { Some(today) }
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "milliseconds" => 0.001,
        "s" | "second" | "seconds" => 1.0,
        "m" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use refrain_core::spec::Millis;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("39s", Some(39.0))]
    #[case("10m15s", Some(615.0))]
    #[case("18h31m10s.]", Some(66_670.0))]
    #[case("1.5s", Some(1.5))]
    #[case("500ms", Some(0.5))]
    #[case("1d", Some(86_400.0))]
    #[case("1 day 2 hours 5 minutes.", Some(93_900.0))]
    #[case("28ms. Visit", Some(0.028))]
    #[case("soon", None)]
    #[case("", None)]
    #[case("5", None)]
    #[case("5 stones", None)]
    #[case("1.2.3s", None)]
    fn durations_are_read(#[case] text: &str, #[case] seconds: Option<f64>) {
        assert_eq!(span(text), seconds);
    }

    #[rstest]
    #[case::later_today("3:12 pm.", "2026-11-23T15:13:00+01:00")]
    #[case::tomorrow("3:12 am.", "2026-11-24T03:13:00+01:00")]
    #[case::midnight("12:00 am", "2026-11-24T00:01:00+01:00")]
    #[case::noon("12:05 pm", "2026-11-23T12:06:00+01:00")]
    #[case::this_minute("10:30 am", "2026-11-23T10:31:00+01:00")]
    #[case::just_now("10:22 am", "2026-11-23T10:23:00+01:00")]
    #[case::before_that("10:15 am", "2026-11-24T10:16:00+01:00")]
    #[case::on_a_day("nov 24th, 2026 2:08 am.", "2026-11-24T02:09:00+01:00")]
    #[case::on_a_day_long_past("nov 1st, 2026 11:59 pm", "2026-11-02T00:00:00+01:00")]
    #[case::in_summer("jul 3rd, 2027 2:08 am", "2027-07-03T02:09:00+02:00")]
    fn a_clock_on_the_wall_is_read_in_the_zone_of_the_machine(#[case] text: &str, #[case] at: Timestamp) {
        let now: Zoned = "2026-11-23T10:30:40+01:00[Europe/Paris]".parse().unwrap();
        assert_eq!(on_the_clock(text, &now), Some(at));
    }

    #[rstest]
    #[case("soon")]
    #[case("")]
    #[case("25:00 am")]
    #[case("3:12")]
    #[case("nov 42nd, 2026 2:08 am")]
    #[case("nov 24th, 2026")]
    fn a_text_that_is_no_time_gives_none(#[case] text: &str) {
        let now: Zoned = "2026-11-23T10:30:40+01:00[Europe/Paris]".parse().unwrap();
        assert_eq!(on_the_clock(text, &now), None);
    }

    #[rstest]
    #[case("7", Some(Until::After(Millis(7_000))))]
    #[case("0.5", Some(Until::After(Millis(500))))]
    #[case("-1", None)]
    #[case("NaN", None)]
    #[case("Sat, 21 Nov 2026 00:08:33 GMT", Some(Until::At(Timestamp::constant(1_795_219_713, 0))))]
    #[case("tomorrow", None)]
    fn retry_after_is_seconds_or_a_date(#[case] header: &str, #[case] until: Option<Until>) {
        assert_eq!(retry_after(header), until);
    }
}
