//! Gemini CLI's faults are derived from its result with the exit that follows it; without one, from its exit and its
//! own words.

use proptest::prelude::*;
use refrain_agents::output_parser::OutputParser;
use refrain_core::agent::FaultKind::{
    Aborted, Connection, Forbidden, Limit, Login, Model, Other, Overloaded, RateLimit, Refused, Session,
    Setup, Turns,
};
use refrain_core::event::Exit;
use refrain_core::spec::AgentKind;

use super::{BAD, Case, DONE, after, check};
use crate::play::{call, play, play_with, recording, spec};

fn failed(kind: &str, message: &str) -> String {
    let message = serde_json::to_string(message).expect("text");
    format!(r#"{{"type":"result","status":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
}

/// One with an answer of the provider in it.
fn answered(code: u16, status: &str, details: &str) -> String {
    let answer =
        format!(r#"{{"error":{{"code":{code},"message":"no","status":"{status}","details":[{details}]}}}}"#);
    failed("unknown", &format!("[API Error: {answer}]\nPlease wait and try again later."))
}

/// Details that Google adds: when to retry, and which quota is used up.
const RETRY: &str = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}"#;
const DAILY: &str = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}"#;
const MINUTE: &str = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinute"}]}"#;
const NO_KEY: &str = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#;
const RETRYING: &str =
    "YOLO mode is enabled.\nAttempt 3 failed with status 429. Retrying with backoff... ApiError: no\n";

/// Its output if the provider names a delay.
const DELAYED: &str = "YOLO mode is enabled.\nAttempt 1 failed: Resource has been exhausted (e.g. check quota).\n\
    Suggested retry after 290s.. Retrying after 299189ms...\n";
const SPENT: &str = "Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 18h31m10s.. \
    Retrying after 69015309ms...\n";

#[test]
fn gemini_says_only_on_standard_error_that_it_tries_again_and_is_heard_there() {
    let mut spec = spec("gemini", &[]);
    spec.agent.kind = AgentKind::Gemini;
    let plain =
        |how: &str| format!("Attempt 2 failed{how} Retrying with backoff... ApiError: no\n    at x\n");
    for (stderr, kind, until) in [
        (DELAYED.to_owned(), RateLimit, after(299_189)),
        (SPENT.to_owned(), Limit, after(69_015_309)),
        (plain(" with status 503."), Overloaded, None),
        (plain(" with 429 error (no Retry-After header)."), RateLimit, None),
        (plain(" with 5xx error."), Overloaded, None),
        (plain("."), Connection, None),
    ] {
        for size in [1, 7, 4_096] {
            let mut ear = OutputParser::new(&call(&spec));
            ear.hear(&recording("gemini", "rate-limit-retrying"));
            stderr.as_bytes().chunks(size).for_each(|chunk| ear.hear_stderr(chunk));
            let (count, fault) =
                ear.retrying().unwrap_or_else(|| panic!("{stderr} says that it tries again"));
            assert_eq!((count, fault.kind, fault.until), (1, kind, until), "{stderr}");
            // Ended while it waits, it only reports that it was interrupted.
            let report = ear.conclude(DONE, "").report.expect("a stream reports");
            assert_eq!(report.fault.map(|fault| (fault.kind, fault.until)), Some((kind, until)), "{stderr}");
        }
        // Later output shows that the retry worked.
        let mut ear = OutputParser::new(&call(&spec));
        ear.hear_stderr(stderr.as_bytes());
        ear.hear(&recording("gemini", "hello"));
        assert!(ear.retrying().is_none(), "{stderr}");
    }
    let mut ear = OutputParser::new(&call(&spec));
    ear.hear_stderr(
        b"Attempt one failed. Retrying after 1ms...\nRetrying after 9ms...\nAttempt 1 failed: x\n",
    );
    ear.hear_stderr(&b"and on and on\n".repeat(10_000));
    assert!(ear.retrying().is_none());
}

#[test]
fn gemini_is_judged_by_its_result_and_its_exit() {
    let capacity = |rest: &str| {
        let words = "You have exhausted your capacity on this model. Your quota will reset after";
        failed("unknown", &format!("[API Error: {words} {rest}.]"))
    };
    let none = || failed("unknown", "it failed");
    let exit = Exit::Code;
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        // by the quoted answer
        (answered(429, "RESOURCE_EXHAUSTED", RETRY), exit(173), "", Some(RateLimit), after(34_500)),
        (answered(429, "RESOURCE_EXHAUSTED", MINUTE), exit(173), "", Some(RateLimit), None),
        (answered(429, "RESOURCE_EXHAUSTED", DAILY), exit(173), "", Some(Limit), None),
        (answered(503, "UNAVAILABLE", ""), exit(247), "", Some(Overloaded), None),
        (answered(500, "INTERNAL", ""), exit(244), "", Some(Overloaded), None),
        (answered(403, "PERMISSION_DENIED", ""), exit(147), "", Some(Forbidden), None),
        (answered(400, "INVALID_ARGUMENT", NO_KEY), exit(144), "", Some(Login), None),
        (answered(400, "INVALID_ARGUMENT", ""), exit(144), "", Some(Refused), None),
        (answered(404, "NOT_FOUND", ""), exit(148), "", Some(Model), None),
        // by its words: a plan, a burst
        (capacity("18h31m10s"), exit(173), "", Some(Limit), after(66_670_000)),
        (capacity("2s"), exit(173), "", Some(RateLimit), after(2_000)),
        (failed("unknown", "[API Error: exception TypeError: fetch failed sending request]"), BAD, "", Some(Connection), None),
        // by the exit alone
        (none(), exit(173), "", Some(RateLimit), None),
        (none(), exit(147), "", Some(Forbidden), None),
        (none(), exit(17), "", Some(Overloaded), None),
        (failed("unknown", "[API Error: {\"error\":"), exit(144), "", Some(Refused), None),
        // by its type
        (failed("FatalAuthenticationError", "no"), exit(41), "", Some(Login), None),
        (failed("FatalInputError", "no"), exit(42), "", Some(Setup), None),
        (failed("FatalCancellationError", "Operation cancelled."), exit(130), "", Some(Aborted), None),
        (failed("FatalToolExecutionError", "a tool"), exit(54), "", Some(Other), None),
        // no details; a status of the future
        (r#"{"type":"result","status":"error"}"#.to_owned(), BAD, "", Some(Other), None),
        (r#"{"type":"result","status":"melted"}"#.to_owned(), DONE, "", Some(Other), None),
        // odd fields hide no result
        (r#"{"type":"result","status":"success","stats":"free","error":7}"#.to_owned(), DONE, "", None, None),
        // text of the model does not count
        (format!("{}\n{}", r#"{"type":"message","role":"assistant","content":"Loop detected. [API Error: You have exhausted your daily quota]","delta":true}"#, r#"{"type":"result","status":"success"}"#), DONE, "", None, None),
    ];
    check("gemini", &cases);
    for (stream, exit, _, kind, _) in &cases {
        let last_word = play("gemini", stream.as_bytes(), *exit, "").last_word().map(|(ok, _)| ok);
        assert_eq!(last_word, Some(kind.is_none()), "{stream}");
    }
}

#[test]
fn gemini_without_a_result_is_judged_by_its_exit_and_its_own_words() {
    let whole = |name: &str| String::from_utf8(recording("gemini", name)).expect("text");
    let none = String::new;
    let exit = Exit::Code;
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        (none(), exit(41), "Please set an Auth method\n", Some(Login), None),
        (none(), exit(42), "Error resuming session: No previous sessions found\n", Some(Session), None),
        (none(), exit(42), "No input provided via stdin.\n", Some(Setup), None),
        (none(), exit(55), "Gemini CLI is not running in a trusted directory.\n", Some(Setup), None),
        (none(), BAD, "Unknown arguments: nosuch\n", Some(Setup), None),
        (none(), exit(53), "", Some(Turns), None),
        (none(), BAD, "TypeError: fetch failed\n", Some(Connection), None),
        (none(), BAD, "TerminalQuotaError: You have exhausted your capacity on this model.\n", Some(Limit), None),
        (none(), exit(173), "", Some(RateLimit), None),
        (none(), exit(127), "env: 'node': No such file or directory", Some(Setup), None),
        (whole("tools-cut-at-line"), exit(7), "boom\n", Some(Other), None),
        // its output was cut; it was ended
        (whole("tools-cut-in-line"), DONE, "", Some(Aborted), None),
        (whole("tools-cut-in-line"), Exit::Signal(9), "", Some(Aborted), None),
        // during a refusal; some time after it
        (whole("rate-limit-retrying"), Exit::Signal(9), RETRYING, Some(RateLimit), None),
        (whole("rate-limit-retrying"), DONE, RETRYING, Some(RateLimit), None),
        (whole("tools-cut-in-line"), DONE, RETRYING, Some(Aborted), None),
        (whole("rate-limit-retrying"), DONE, DELAYED, Some(RateLimit), after(299_189)),
        (whole("rate-limit-retrying"), DONE, SPENT, Some(Limit), after(69_015_309)),
    ];
    check("gemini", &cases);
    for (stream, exit, stderr, _, _) in &cases {
        assert_eq!(play("gemini", stream.as_bytes(), *exit, stderr).last_word(), None, "{stderr}");
    }
}

#[test]
fn a_prompt_that_cuts_its_output_is_named() {
    let mut spec = spec("gemini", &[]);
    spec.prompt = "x".repeat(190_001);
    let cut = play_with("gemini", &spec, &recording("gemini", "tools-cut-in-line"), DONE, "");
    assert_eq!(cut.report.fault.map(|fault| fault.kind), Some(Setup));
    let whole = play_with("gemini", &spec, &recording("gemini", "hello"), DONE, "");
    assert_eq!(whole.report.fault, None, "it went well all the same");
}

proptest! {
    #[test]
    fn no_error_message_is_a_panic(message: String, code: i32) {
        for said in [format!("[API Error: {message}"), message.clone()] {
            play("gemini", failed("unknown", &said).as_bytes(), Exit::Code(code), &message);
        }
    }
}
