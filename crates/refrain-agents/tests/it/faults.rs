//! What went wrong, by recorded streams and by variants of them: lines, an exit, what stood on standard error.

use jiff::Timestamp;
use refrain_core::agent::{AgentEvent, FaultKind, Until};
use refrain_core::event::Exit;
use refrain_core::spec::Millis;

use crate::play::{play, play_with, recording, spec};

use FaultKind::{
    Aborted, Budget, Connection, Context, Credit, Limit, Login, Model, Other, OutputLimit, Overloaded,
    RateLimit, Refused, Session, Setup, Turns,
};

const RESET: i64 = 1_795_226_899;

#[test]
fn recorded_faults_have_a_kind() {
    #[rustfmt::skip]
    let cases = [
        ("claude", "auth", 1, Login),
        ("claude", "login-missing", 1, Login),
        ("claude", "billing", 1, Credit),
        ("claude", "budget", 1, Budget),
        ("claude", "context-overflow", 1, Context),
        ("claude", "max-turns", 1, Turns),
        ("claude", "no-such-model", 1, Model),
        ("claude", "no-route", 1, Connection),
        ("claude", "output-limit", 1, OutputLimit),
        ("claude", "overloaded", 1, Overloaded),
        ("claude", "rate-limit", 1, RateLimit),
        ("claude", "server-error", 1, Overloaded),
        ("claude", "usage-limit-subscription", 1, Limit),
        ("claude", "resume-missing", 1, Session),
        ("claude", "sigint-hung", 0, Aborted),
        ("claude", "sigterm-hung", 143, Aborted),
        ("codex", "auth", 1, Login),
        ("codex", "billing", 1, Credit),
        ("codex", "context-overflow", 1, Context),
        ("codex", "network", 1, Connection),
        ("codex", "no-such-model", 1, Model),
        ("codex", "output-limit", 1, OutputLimit),
        ("codex", "overloaded", 1, Overloaded),
        ("codex", "rate-limit", 1, RateLimit),
        ("codex", "server-error", 1, Overloaded),
        ("codex", "usage-limit", 1, Limit),
        ("codex", "sigint-hung", 1, Aborted),
    ];
    for (agent, name, code, kind) in cases {
        let fault = play(agent, &recording(agent, name), Exit::Code(code), "").report.fault;
        let fault = fault.unwrap_or_else(|| panic!("{agent} {name}: no fault"));
        assert_eq!(fault.kind, kind, "{agent} {name}: {fault:?}");
        let until =
            (name == "usage-limit-subscription").then(|| Until::At(Timestamp::from_second(RESET).unwrap()));
        assert_eq!(fault.until, until, "{agent} {name}");
    }
}

const DONE: Exit = Exit::Code(0);
const BAD: Exit = Exit::Code(1);
const GOOD: &str = r#"{"is_error":false,"subtype":"success","result":"ok","num_turns":1,"type":"result"}"#;
const REJECTED: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795226899,"rateLimitType":"seven_day"}}"#;
const BAD_429: &str = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"You've hit your limit"}"#;

/// A stream, an exit and standard error: what kind of fault it is, if any, and when to try again.
type Case = (String, Exit, &'static str, Option<FaultKind>, Option<Until>);
/// A recording, and what it tries again for.
type Tries<'a> = (&'a str, &'a str, &'a [(FaultKind, Option<Until>)]);

fn reset() -> Option<Until> {
    Timestamp::from_second(RESET).ok().map(Until::At)
}

fn after(ms: u64) -> Option<Until> {
    Some(Until::After(Millis(ms)))
}

#[test]
fn claude_is_judged_by_its_codes_its_exit_and_its_own_words() {
    let result = |fields: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error",{fields}}}"#
        )
    };
    let message = |fields: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"model":"<synthetic>","content":[]}},"is_api_error_message":true,{fields}}}"#
        )
    };
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        // by the status of the result
        (result(r#""api_error_status":400"#), BAD, "", Some(Refused), None),
        (result(r#""api_error_status":403"#), BAD, "", Some(Login), None),
        (result(r#""api_error_status":413"#), BAD, "", Some(Context), None),
        (result(r#""api_error_status":502"#), BAD, "", Some(Overloaded), None),
        (result(r#""api_error_status":503"#), BAD, "", Some(Overloaded), None),
        (result(r#""api_error":"connection_failed","api_error_status":null"#), BAD, "", Some(Connection), None),
        (result(r#""api_error_status":null,"result":"API Error: x""#), BAD, "", Some(Connection), None),
        // by the code of the message before it, where the status says less
        (format!("{}\n{}", message(r#""error":"billing_error""#), result(r#""api_error_status":400"#)), BAD, "", Some(Credit), None),
        (format!("{}\n{}", message(r#""error":"invalid_request""#), result(r#""api_error_status":400"#)), BAD, "", Some(Refused), None),
        // the error of a sub-agent is not the run's
        (format!("{}\n{}", message(r#""error":"billing_error","parent_tool_use_id":"t""#), result(r#""api_error_status":529"#)), BAD, "", Some(Overloaded), None),
        // how it ended
        (result("\"x\":0").replace("api_error\"", "aborted_streaming\"").replace("\"success\"", "\"error_during_execution\""), DONE, "", Some(Aborted), None),
        (result("\"x\":0").replace("api_error\"", "aborted_tools\"").replace("\"success\"", "\"error_during_execution\""), DONE, "", Some(Aborted), None),
        (result("\"x\":0").replace("api_error\"", "completed\"").replace("\"success\"", "\"error_max_structured_output_retries\""), BAD, "", Some(Other), None),
        // the plan's limit, and a burst of requests
        (format!("{REJECTED}\n{BAD_429}"), BAD, "", Some(Limit), reset()),
        (BAD_429.to_owned(), BAD, "", Some(RateLimit), None),
        (format!("{}\n{BAD_429}", REJECTED.replace("rejected", "allowed")), BAD, "", Some(RateLimit), None),
        (format!("{REJECTED}\n{}\n{BAD_429}", REJECTED.replace("rejected", "allowed")), BAD, "", Some(RateLimit), None),
        (format!("{REJECTED}\n{}", BAD_429.replace("429", "500")), BAD, "", Some(Overloaded), None),
        (format!("{}\n{BAD_429}", REJECTED.replace("1795226899", "\"soon\"")), BAD, "", Some(Limit), None),
        (format!("{}\n{BAD_429}", REJECTED.replace("1795226899", "99999999999999999")), BAD, "", Some(Limit), None),
        // a limit, and no result: it was that
        (REJECTED.to_owned(), Exit::Signal(9), "", Some(Limit), reset()),
        // a limit, and it went on all the same
        (format!("{REJECTED}\n{GOOD}"), DONE, "", None, None),
        // several results: the last counts
        (format!("{BAD_429}\n{GOOD}"), DONE, "", None, None),
        (format!("{GOOD}\n{BAD_429}"), BAD, "", Some(RateLimit), None),
        // no model was asked: the words are a failed command's
        (GOOD.replace("\"num_turns\":1", "\"num_turns\":0"), DONE, "", Some(Other), None),
        // a success that the exit denies; one that it does not
        (GOOD.to_owned(), BAD, "", Some(Other), None),
        (GOOD.to_owned(), Exit::Signal(15), "", None, None),
        (GOOD.to_owned(), Exit::Code(143), "", None, None),
        // odd fields hide no result
        (result(r#""api_error_status":"many","result":7,"usage":[],"total_cost_usd":"free""#), BAD, "", Some(Connection), None),
        // what the model writes is nothing
        (format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"Invalid API key, You've hit your usage limit, 529"}}]}}}}
{GOOD}"#), DONE, "Invalid API key", None, None),
        // no result
        (String::new(), Exit::Lost, "", None, None),
        (String::new(), Exit::Signal(2), "", Some(Aborted), None),
        (String::new(), DONE, "", Some(Aborted), None),
        (String::new(), BAD, "something new", Some(Other), None),
        (String::new(), Exit::Code(127), "env: 'node': No such file or directory", Some(Setup), None),
        (message(r#""error":"authentication_failed""#), BAD, "", Some(Login), None),
        // as the real program says it on standard error
        (String::new(), BAD, "error: unknown option '--nope'\n(Did you mean --name?)", Some(Setup), None),
        (String::new(), BAD, "error: option '--permission-mode <mode>' argument 'bogus' is invalid.", Some(Setup), None),
        (String::new(), BAD, "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons", Some(Setup), None),
        (String::new(), BAD, "Error: When using --print, --output-format=stream-json requires --verbose", Some(Setup), None),
        (String::new(), BAD, "Error: Session ID 11111111-2222-4333-8444-555555555555 is already in use.", Some(Session), None),
        (String::new(), BAD, "Error: --resume requires a valid session ID or session title when used with --print.", Some(Session), None),
        (String::new(), BAD, "Invalid API key · Please run /login", Some(Login), None),
    ];
    cases.iter().for_each(|case| check("claude", case));
}

#[test]
fn codex_is_judged_by_its_own_words_and_its_exit() {
    const OPEN: &str = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let failed = |text: &str| format!(r#"{OPEN}{{"type":"turn.failed","error":{{"message":"{text}"}}}}"#);
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        (failed("unexpected status 400 Bad Request: x"), BAD, "", Some(Refused), None),
        (failed("unexpected status 403 Forbidden: x"), BAD, "", Some(Login), None),
        (failed("unexpected status 404 Not Found: x"), BAD, "", Some(Model), None),
        (failed("unexpected status 503 Service Unavailable: x"), BAD, "", Some(Overloaded), None),
        (failed("exceeded retry limit, last status: 500 Internal Server Error"), BAD, "", Some(Overloaded), None),
        (failed("idle timeout waiting for SSE"), BAD, "", Some(Connection), None),
        (failed("Incomplete response returned, reason: content_filter"), BAD, "", Some(Refused), None),
        (failed("unexpected status 400 Bad Request: The 'x' model is not supported when using Codex with a ChatGPT account."), BAD, "", Some(Model), None),
        // with either apostrophe; a clock without a date and a zone is no time
        (failed("You've hit your usage limit. Try again at 2:08 AM."), BAD, "", Some(Limit), None),
        (failed("You\u{2019}ve hit your usage limit. Try again at Nov 24th, 2026 2:08 AM."), BAD, "", Some(Limit), None),
        (failed("You\u{2019}ve hit your usage limit. Try again in 1 day 2 hours 5 minutes."), BAD, "", Some(Limit), after(93_900_000)),
        (failed("stream disconnected before completion: Rate limit reached for gpt on tokens per min. Please try again in 1.5s. Visit x"), BAD, "", Some(RateLimit), after(1_500)),
        (failed("Rate limit reached for gpt. Please try again in 28ms."), BAD, "", Some(RateLimit), after(28)),
        // the program's own words, not somewhere inside
        (failed("the user wrote: Quota exceeded, at capacity, 401"), BAD, "", Some(Other), None),
        (failed(""), BAD, "", Some(Other), None),
        // an error that it did not go on from, without the end of the turn; one that it did
        (format!(r#"{OPEN}{{"type":"error","message":"Quota exceeded."}}"#), BAD, "", Some(Credit), None),
        (format!("{OPEN}{{\"type\":\"error\",\"message\":\"Quota exceeded.\"}}\n{done}"), DONE, "", None, None),
        // a warning is no error
        (format!("{OPEN}{{\"type\":\"item.completed\",\"item\":{{\"type\":\"error\",\"message\":\"Quota exceeded.\"}}}}\n{done}"), DONE, "", None, None),
        // two turns: the last counts
        (format!("{}\n{{\"type\":\"turn.started\"}}\n{done}", failed("x")), DONE, "", None, None),
        // what the model writes is nothing
        (format!("{OPEN}{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"Quota exceeded.\"}}}}\n{done}"), DONE, "", None, None),
        (format!("{OPEN}{done}"), BAD, "", Some(Other), None),
        (format!("{OPEN}{done}"), Exit::Signal(15), "", None, None),
        // no end
        (String::new(), Exit::Lost, "", None, None),
        (OPEN.to_owned(), Exit::Signal(15), "", Some(Aborted), None),
        (OPEN.to_owned(), BAD, "Reading additional input from stdin...", Some(Aborted), None),
        (OPEN.to_owned(), Exit::Code(101), "thread 'main' panicked", Some(Other), None),
        (String::new(), BAD, "something new", Some(Other), None),
        // as the real program says it on standard error
        (String::new(), Exit::Code(2), "error: unexpected argument '--nope' found\n\n  tip: to pass '--nope' as a value", Some(Setup), None),
        (String::new(), Exit::Code(2), "error: the argument '--json' cannot be used multiple times", Some(Setup), None),
        (String::new(), BAD, "Not inside a trusted directory and --skip-git-repo-check was not specified.", Some(Setup), None),
        (String::new(), BAD, "Error loading config.toml: unknown variant `bogus`", Some(Setup), None),
        (String::new(), BAD, "Error: Model provider `nope` not found\n\nStack backtrace:\n   0: <unknown>", Some(Setup), None),
        (String::new(), BAD, "No prompt provided via stdin.", Some(Setup), None),
        (String::new(), BAD, "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1 (code -32600)", Some(Session), None),
    ];
    cases.iter().for_each(|case| check("codex", case));
}

fn check(agent: &str, (stream, exit, stderr, kind, until): &Case) {
    let fault = play(agent, stream.as_bytes(), *exit, stderr).report.fault;
    let which = format!("{agent}: {stream} {exit:?} {stderr}: {fault:?}");
    assert_eq!(fault.as_ref().map(|fault| fault.kind), *kind, "{which}");
    assert_eq!(fault.and_then(|fault| fault.until), *until, "{which}");
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
fn text_that_the_person_asked_for_is_the_message() {
    let spec = spec("claude", &["--output-format", "text"]);
    let good = play_with("claude", &spec, b"{\"type\":\"result\"}\nDone.\n", DONE, "");
    assert_eq!(good.last_word(), Some((true, Some("{\"type\":\"result\"}\nDone.\n"))));
    assert_eq!(good.report.fault, None);
    let bad = play_with("claude", &spec, b"API Error: 529\n", BAD, "");
    assert_eq!(bad.last_word(), None);
    assert_eq!(bad.report.fault.map(|fault| fault.kind), Some(Other));
}
