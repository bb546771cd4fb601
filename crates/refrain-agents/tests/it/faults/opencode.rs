//! OpenCode's faults are derived from its error, from how its last model call ended, and from its exit.

use jiff::Timestamp;
use refrain_core::agent::FaultKind::{
    Aborted, Busy, Connection, Context, Credit, Forbidden, Limit, Login, Model, Other, OutputLimit,
    Overloaded, RateLimit, Refused, Session, Setup,
};
use refrain_core::agent::{AgentEvent, Fault, Until};
use refrain_core::event::Exit;

use super::{BAD, Case, DONE, after, check};
use crate::play::{play, recording};

/// The error output if another process has just created the database, cut in the middle.
const CREATES: &str = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mUnexpected error\n\nFailed query: \n        CREATE TABLE `workspace` \
                       (\n          `id` text PRIMARY KEY\n        );\n      \nparams: \n";

/// An `error` line as OpenCode writes it.
fn error(name: &str, data: &str) -> String {
    format!(r#"{{"type":"error","sessionID":"s","error":{{"name":"{name}","data":{{{data}}}}}}}"#)
}

/// The same, with this answer of the provider.
fn answered(status: u16, body: &str, headers: &str) -> String {
    let body = serde_json::to_string(body).expect("text");
    let rest = format!(r#""responseHeaders":{{{headers}}},"responseBody":{body}"#);
    error("APIError", &format!(r#""message":"it failed","statusCode":{status},"isRetryable":true,{rest}"#))
}

/// One model call that ended for this reason.
fn step(reason: &str) -> String {
    format!(
        "{}\n{}\n",
        r#"{"type":"step_start","sessionID":"s","part":{}}"#,
        r#"{"type":"step_finish","sessionID":"s","part":{"reason":"REASON"}}"#.replace("REASON", reason)
    )
}

#[test]
fn opencode_is_judged_by_its_error_its_last_step_and_its_exit() {
    let whole = |name: &str| String::from_utf8(recording("opencode", name)).expect("text");
    let at = Some(Until::At(Timestamp::from_second(1_795_219_713).expect("a time")));
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        // by the error's name
        (error("ContextOverflowError", r#""message":"too long""#), BAD, "", Some(Context), None),
        (error("ProviderAuthError", r#""message":"no key""#), BAD, "", Some(Login), None),
        (error("ProviderModelNotFoundError", ""), BAD, "", Some(Model), None),
        (error("MessageOutputLengthError", ""), BAD, "", Some(OutputLimit), None),
        (error("MessageAbortedError", r#""message":"stop""#), BAD, "", Some(Aborted), None),
        (error("UnknownError", r#""message":"TypeError: x is undefined""#), BAD, "", Some(Other), None),
        (error("QuantumError", ""), BAD, "", Some(Other), None),
        // by its words
        (error("UnknownError", r#""message":"Error: connect ECONNREFUSED 127.0.0.1:1""#), BAD, "", Some(Connection), None),
        (error("APIError", r#""message":"Unable to connect. Is the computer online?","isRetryable":true"#), BAD, "", Some(Connection), None),
        (error("APIError", r#""message":"hm","isRetryable":true"#), BAD, "", Some(Connection), None),
        (error("APIError", r#""message":"Your credit balance is too low","statusCode":400"#), BAD, "", Some(Credit), None),
        // by the provider's status
        (answered(400, "", ""), BAD, "", Some(Refused), None),
        (answered(402, "", ""), BAD, "", Some(Credit), None),
        (answered(403, "not json", ""), BAD, "", Some(Forbidden), None),
        (answered(413, "", ""), BAD, "", Some(Context), None),
        (answered(500, "", ""), BAD, "", Some(Overloaded), None),
        (answered(503, "", ""), BAD, "", Some(Overloaded), None),
        (answered(529, "", ""), BAD, "", Some(Overloaded), None),
        // by the provider's code, if the status is less specific
        (answered(429, r#"{"error":{"code":"insufficient_quota"}}"#, ""), BAD, "", Some(Credit), None),
        (answered(400, r#"{"type":"error","error":{"type":"billing_error"}}"#, ""), BAD, "", Some(Credit), None),
        (answered(400, r#"{"error":{"code":"context_length_exceeded"}}"#, ""), BAD, "", Some(Context), None),
        // a limit with its time
        (answered(429, r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}"#, ""), BAD, "", Some(Limit), after(7_200_000)),
        (answered(429, r#"{"error":{"type":"usage_limit_reached","resets_at":1795219713}}"#, ""), BAD, "", Some(Limit), at),
        (answered(429, r#"{"error":{"type":"usage_limit_reached"}}"#, ""), BAD, "", Some(Limit), None),
        (answered(429, "", r#""retry-after":"90""#), BAD, "", Some(RateLimit), after(90_000)),
        (answered(429, "", r#""retry-after":"soon""#), BAD, "", Some(RateLimit), None),
        // odd fields hide no error
        (error("APIError", r#""message":"no","statusCode":"many","responseBody":7"#), BAD, "", Some(Other), None),
        // no error: how its last model call ended
        (whole("permission-rejected"), DONE, "", Some(Setup), None),
        (step("tool-calls"), DONE, "", Some(Other), None),
        (step("length"), DONE, "", Some(OutputLimit), None),
        (step("content-filter"), DONE, "", Some(Refused), None),
        (step("unknown"), DONE, "", Some(Connection), None),
        (step("weather"), DONE, "", Some(Other), None),
        // no end
        (String::new(), DONE, "", Some(Aborted), None),
        (whole("sigint-hung"), Exit::Signal(2), "", Some(Aborted), None),
        (whole("sigterm-hung"), Exit::Signal(15), "", Some(Aborted), None),
        (step("tool-calls"), Exit::Code(143), "", Some(Aborted), None),
        (whole("hello"), Exit::Signal(9), "", Some(Aborted), None),
        (step("tool-calls"), Exit::Code(7), "panic\n", Some(Other), None),
        // as the real program prints it on standard error
        (String::new(), BAD, "\u{1b}[91mError: \u{1b}[0mSession not found\n", Some(Session), None),
        (String::new(), BAD, "Unknown argument: nosuch\n", Some(Setup), None),
        (String::new(), BAD, "ProviderModelNotFoundError: Model not found: a/b\n", Some(Model), None),
        (String::new(), BAD, "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mUnexpected error\n\ndatabase is locked\n", Some(Busy), None),
        (String::new(), BAD, CREATES, Some(Busy), None),
        (String::new(), Exit::Code(127), "env: 'node': No such file or directory", Some(Setup), None),
    ];
    check("opencode", &cases);
    for (stream, exit, stderr, _, _) in &cases {
        let played = play("opencode", stream.as_bytes(), *exit, stderr);
        let is_error = stream.starts_with(r#"{"type":"error""#);
        // After an error it exits by itself; without one it has a final message only if a model call ended so.
        assert!(!is_error || played.last_word() == Some((false, None)), "{stream}");
        assert!(!stream.is_empty() || played.last_word().is_none(), "{stderr}");
    }
}

#[test]
fn an_error_that_opencode_recovers_from_is_a_retry() {
    let overflow = error("ContextOverflowError", r#""message":"too long""#);
    let stream = format!("{overflow}\n{}", step("stop"));
    let played = play("opencode", stream.as_bytes(), DONE, "");
    let fault = Fault { kind: Context, message: "too long".to_owned(), until: None };
    assert!(played.events.contains(&AgentEvent::Retry(fault.clone())));
    assert_eq!((played.report.fault.clone(), played.last_word()), (None, Some((true, None))));

    let killed = play("opencode", overflow.as_bytes(), Exit::Signal(9), "");
    assert_eq!(
        (killed.report.fault.clone(), killed.last_word()),
        (Some(fault), None),
        "it tried without end"
    );
}
