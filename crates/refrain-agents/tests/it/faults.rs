//! Faults of recorded streams, and of variants of them, in one table per agent: lines, an exit, standard error.

mod claude;
mod codex;
mod gemini;
mod opencode;

use jiff::Timestamp;
use refrain_core::agent::{AgentEvent, FaultKind, Until};
use refrain_core::event::Exit;
use refrain_core::spec::Millis;

use crate::play::{AGENTS, play, recording};

use FaultKind::{
    Aborted, Budget, Connection, Context, Credit, Limit, Login, Model, Other, OutputLimit, Overloaded,
    RateLimit, Refused, Session, Turns,
};

const RESET: i64 = 1_795_226_899;

#[test]
fn recorded_faults_have_a_kind_and_words() {
    // If a case says nothing about the text, the provider chose it.
    #[rustfmt::skip]
    let cases = [
        ("claude", "auth", 1, Login, ""),
        ("claude", "login-missing", 1, Login, ""),
        ("claude", "billing", 1, Credit, ""),
        ("claude", "budget", 1, Budget, ""),
        ("claude", "context-overflow", 1, Context, ""),
        ("claude", "max-turns", 1, Turns, ""),
        ("claude", "no-such-model", 1, Model, ""),
        ("claude", "no-route", 1, Connection, ""),
        ("claude", "output-limit", 1, OutputLimit, ""),
        ("claude", "overloaded", 1, Overloaded, ""),
        ("claude", "rate-limit", 1, RateLimit, ""),
        ("claude", "server-error", 1, Overloaded, ""),
        ("claude", "usage-limit-subscription", 1, Limit, ""),
        ("claude", "resume-missing", 1, Session, ""),
        ("claude", "sigint-hung", 0, Aborted, ""),
        ("claude", "sigterm-hung", 143, Aborted, ""),
        ("codex", "auth", 1, Login, ""),
        ("codex", "billing", 1, Credit, ""),
        ("codex", "context-overflow", 1, Context, ""),
        ("codex", "network", 1, Connection, ""),
        ("codex", "no-such-model", 1, Model, ""),
        ("codex", "output-limit", 1, OutputLimit, ""),
        ("codex", "overloaded", 1, Overloaded, ""),
        ("codex", "rate-limit", 1, RateLimit, ""),
        ("codex", "server-error", 1, Overloaded, ""),
        ("codex", "usage-limit", 1, Limit, ""),
        ("codex", "sigint-hung", 1, Aborted, ""),
        ("opencode", "auth", 1, Login, ""),
        ("opencode", "no-such-model", 1, Model, ""),
        ("opencode", "rate-limit", 1, RateLimit, ""),
        ("opencode", "content-filter", 1, Refused, ""),
        ("gemini", "auth", 144, Login, "API key not valid. Please pass a valid API key."),
        ("gemini", "context-overflow", 144, Context, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        ("gemini", "usage-limit", 173, Limit, "[API Error: You have exhausted your daily quota"),
        ("gemini", "no-such-model", 1, Model, "[API Error: model: no such model]"),
        ("gemini", "reset-mid-stream-fatal", 1, Connection, "[API Error: terminated]"),
        ("gemini", "max-turns", 53, Turns, "Reached max session turns"),
        ("gemini", "empty-answer", 0, Other, "The model returned an empty response"),
        ("gemini", "loop-detected", 0, Other, "gemini took itself to be in a loop"),
        ("gemini", "sigint-hung", 0, Aborted, "gemini ended without a result"),
        ("gemini", "sigterm-hung", 0, Aborted, "gemini ended without a result"),
    ];
    for (agent, name, code, kind, words) in cases {
        let fault = play(agent, &recording(agent, name), Exit::Code(code), "").report.fault;
        let fault = fault.unwrap_or_else(|| panic!("{agent} {name}: no fault"));
        assert_eq!(fault.kind, kind, "{agent} {name}: {fault:?}");
        assert!(!fault.message.is_empty() && fault.message.starts_with(words), "{agent} {name}: {fault:?}");
        let until = match (agent, name) {
            ("claude", "usage-limit-subscription") => reset(),
            ("opencode", "rate-limit") => after(1_000),
            ("codex", "usage-limit") => at("2026-11-24T02:09:00+01:00"),
            (_, _) => None,
        };
        assert_eq!(fault.until, until, "{agent} {name}");
    }
}

const DONE: Exit = Exit::Code(0);
const BAD: Exit = Exit::Code(1);
/// A stream, an exit and standard error: the expected kind of fault, if any, and the time to retry.
type Case = (String, Exit, &'static str, Option<FaultKind>, Option<Until>);
/// A recording, and the reasons of its retries.
type Tries<'a> = (&'a str, &'a str, &'a [(FaultKind, Option<Until>)]);

fn reset() -> Option<Until> {
    Timestamp::from_second(RESET).ok().map(Until::At)
}

fn at(time: &str) -> Option<Until> {
    time.parse().ok().map(Until::At)
}

fn after(ms: u64) -> Option<Until> {
    Some(Until::After(Millis(ms)))
}

fn check(agent: &str, cases: &[Case]) {
    for (stream, exit, stderr, kind, until) in cases {
        let played = play(agent, stream.as_bytes(), *exit, stderr);
        let fault = played.report.fault.as_ref();
        let which = format!("{agent}: {stream} {exit:?} {stderr}: {fault:?}");
        assert_eq!(fault.map(|fault| fault.kind), *kind, "{which}");
        assert_eq!(fault.and_then(|fault| fault.until), *until, "{which}");
        if let Some((ok, message)) = played.last_word().filter(|_| fault.is_some()) {
            // Only an exit can turn a good final message into a failure.
            assert!(!ok || *exit == BAD, "{which}");
            assert!(ok || message.is_none(), "{which}");
        }
    }
}

#[test]
fn tries_of_its_own_are_no_faults() {
    #[rustfmt::skip]
    let cases: [Tries<'_>; 8] = [
        ("claude", "rate-limit-once", &[(RateLimit, after(1039))]),
        ("claude", "reset-mid-stream", &[(Connection, after(554))]),
        ("claude", "network-retry", &[(Connection, after(529))]),
        ("claude", "model-fallback", &[(Overloaded, after(555)), (Overloaded, after(1189)), (Overloaded, after(618))]),
        ("claude", "auth", &[(Login, after(596))]),
        ("codex", "rate-limit-once", &[(RateLimit, None)]),
        ("codex", "cut-stream", &[(Connection, None)]),
        ("codex", "server-error", &[(Overloaded, None), (Overloaded, None)]),
    ];
    for (agent, name, expected) in cases {
        let events = play(agent, &recording(agent, name), DONE, "").events;
        let retries = events.iter().filter_map(|event| match event {
            AgentEvent::Retry(fault) => Some((fault.kind, fault.until)),
            _ => None,
        });
        assert_eq!(retries.collect::<Vec<_>>(), expected, "{agent} {name}");
    }
}

#[test]
fn a_lost_run_says_nothing_more() {
    for agent in AGENTS {
        let name = if matches!(agent, "claude" | "codex") { "sigint-hung" } else { "tools-cut-at-line" };
        let played = play(agent, &recording(agent, name), Exit::Lost, "Error: no key");
        assert_eq!((played.report.fault.clone(), played.last_word()), (None, None), "{agent}");
    }
}
