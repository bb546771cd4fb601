//! Codex's faults are derived from its own words and its exit.

use refrain_core::agent::FaultKind::{
    Aborted, Connection, Credit, Forbidden, Limit, Model, Other, Overloaded, RateLimit, Refused, Session,
    Setup,
};
use refrain_core::event::Exit;

use super::{BAD, Case, DONE, after, at, check};

#[test]
fn codex_is_judged_by_its_own_words_and_its_exit() {
    const OPEN: &str = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let failed = |text: &str| format!(r#"{OPEN}{{"type":"turn.failed","error":{{"message":"{text}"}}}}"#);
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        (failed("unexpected status 400 Bad Request: x"), BAD, "", Some(Refused), None),
        (failed("unexpected status 403 Forbidden: x"), BAD, "", Some(Forbidden), None),
        (failed("unexpected status 404 Not Found: x"), BAD, "", Some(Model), None),
        (failed("unexpected status 503 Service Unavailable: x"), BAD, "", Some(Overloaded), None),
        (failed("exceeded retry limit, last status: 500 Internal Server Error"), BAD, "", Some(Overloaded), None),
        (failed("idle timeout waiting for SSE"), BAD, "", Some(Connection), None),
        (failed("Incomplete response returned, reason: content_filter"), BAD, "", Some(Refused), None),
        (failed("unexpected status 400 Bad Request: The 'x' model is not supported when using Codex with a ChatGPT account."), BAD, "", Some(Model), None),
        // with either apostrophe; the next such time of the machine's own clock, or on a date
        (failed("You've hit your usage limit. Try again at 2:08 AM."), BAD, "", Some(Limit), at("2026-11-24T02:09:00+01:00")),
        (failed("You've hit your usage limit. Try again at 11:45 PM."), BAD, "", Some(Limit), at("2026-11-23T23:46:00+01:00")),
        (failed("You\u{2019}ve hit your usage limit. Visit x or try again at Nov 26th, 2026 2:08 AM."), BAD, "", Some(Limit), at("2026-11-26T02:09:00+01:00")),
        (failed("You\u{2019}ve hit your usage limit. Try again at noon."), BAD, "", Some(Limit), None),
        (failed("You\u{2019}ve hit your usage limit. Try again in 1 day 2 hours 5 minutes."), BAD, "", Some(Limit), after(93_900_000)),
        (failed("stream disconnected before completion: Rate limit reached for gpt on tokens per min. Please try again in 1.5s. Visit x"), BAD, "", Some(RateLimit), after(1_500)),
        (failed("Rate limit reached for gpt. Please try again in 28ms."), BAD, "", Some(RateLimit), after(28)),
        // the program's own words, not somewhere inside
        (failed("the user wrote: Quota exceeded, at capacity, 401"), BAD, "", Some(Other), None),
        (failed(""), BAD, "", Some(Other), None),
        // an error that it did not continue from, without the end of the turn; one that it did
        (format!(r#"{OPEN}{{"type":"error","message":"Quota exceeded."}}"#), BAD, "", Some(Credit), None),
        (format!("{OPEN}{{\"type\":\"error\",\"message\":\"Quota exceeded.\"}}\n{done}"), DONE, "", None, None),
        // a warning is no error
        (format!("{OPEN}{{\"type\":\"item.completed\",\"item\":{{\"type\":\"error\",\"message\":\"Quota exceeded.\"}}}}\n{done}"), DONE, "", None, None),
        // two turns: the last counts
        (format!("{}\n{{\"type\":\"turn.started\"}}\n{done}", failed("x")), DONE, "", None, None),
        // text of the model does not count
        (format!("{OPEN}{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"Quota exceeded.\"}}}}\n{done}"), DONE, "", None, None),
        (format!("{OPEN}{done}"), BAD, "", Some(Other), None),
        (format!("{OPEN}{done}"), Exit::Signal(15), "", None, None),
        // no end
        (String::new(), Exit::Lost, "", None, None),
        (OPEN.to_owned(), Exit::Signal(15), "", Some(Aborted), None),
        (OPEN.to_owned(), BAD, "Reading additional input from stdin...", Some(Aborted), None),
        (OPEN.to_owned(), Exit::Code(101), "thread 'main' panicked", Some(Other), None),
        (String::new(), BAD, "something new", Some(Other), None),
        // as the real program prints it on standard error
        (String::new(), Exit::Code(2), "error: unexpected argument '--nope' found\n\n  tip: to pass '--nope' as a value", Some(Setup), None),
        (String::new(), Exit::Code(2), "error: the argument '--json' cannot be used multiple times", Some(Setup), None),
        (String::new(), BAD, "Not inside a trusted directory and --skip-git-repo-check was not specified.", Some(Setup), None),
        (String::new(), BAD, "Error loading config.toml: unknown variant `bogus`", Some(Setup), None),
        (String::new(), BAD, "Error: Model provider `nope` not found\n\nStack backtrace:\n   0: <unknown>", Some(Setup), None),
        (String::new(), BAD, "No prompt provided via stdin.", Some(Setup), None),
        (String::new(), BAD, "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1 (code -32600)", Some(Session), None),
    ];
    check("codex", &cases);
}
