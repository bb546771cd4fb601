//! OpenCode: recorded streams with what they come to, errors with what they mean, and command lines.

use proptest::prelude::*;
use refrain_core::agent::{AgentEvent, Fault, FaultKind, Scope, Speaker, Tokens, Until, Usd};
use refrain_core::event::Exit;
use refrain_core::spec::{Millis, Permissions, PromptMode, Secret};
use refrain_proc::StopLadder;
use rstest::rstest;

use super::OpenCode;
use crate::adapter::Adapter;
use crate::testing::{self, Heard, recording, spec};

const OK: Exit = Exit::Code(0);

fn hear(stdout: &[u8], exit: Exit, stderr: &str) -> Heard {
    testing::hear(&OpenCode, &spec("opencode", &[]), stdout, exit, stderr)
}

/// What a stream comes to, read off the recording by a person: session, (input, cached, output), billionths of a dollar,
/// whether it ended as it should and with which message.
#[rstest]
#[case::fresh(recording!("opencode/rate-limit-once"), OK, "ses_e0491a485ffeLWdGtF1iONFfUA",
    Some((1_000, 0, 50)), Some(3_750_000), Some(Some("recovered")))]
#[case::cached(recording!("opencode/hello"), OK, "ses_e0492209affeiLXaxQQ8tAswXG",
    Some((1_500, 300, 12)), Some(3_870_000), Some(Some("Hello from the fake model.")))]
#[case::three_steps(recording!("opencode/tools"), OK, "ses_e0491f24affeUCqLvSG59qzIsz",
    Some((3_600, 200, 77)), Some(11_415_000), Some(Some("All done.")))]
#[case::cut_at_a_line(recording!("opencode/tools-cut-at-line"), Exit::Signal(9), "ses_e0491f24affeUCqLvSG59qzIsz",
    Some((1_000, 0, 40)), Some(3_600_000), None)]
#[case::cut_in_a_line(recording!("opencode/tools-cut-in-line"), Exit::Signal(9), "ses_e0491f24affeUCqLvSG59qzIsz",
    Some((2_100, 0, 70)), Some(7_350_000), None)]
#[case::cut_at_once(recording!("opencode/hello-cut"), Exit::Signal(2), "ses_e0492209affeiLXaxQQ8tAswXG",
    None, None, None)]
#[case::a_step_without_an_answer(recording!("opencode/cut-stream"), OK, "ses_e0490a137ffeeYEPgwYhyLurkQ",
    Some((1_000, 0, 50)), Some(3_750_000), Some(Some("recovered")))]
#[case::reset(recording!("opencode/reset-mid-stream"), OK, "ses_e0490c9c0ffeR2jJ4i2AREnAm7",
    Some((1_000, 0, 50)), Some(3_750_000), Some(Some("recovered")))]
#[case::reasoning(recording!("opencode/reasoning-and-invalid-tool"), OK, "ses_e04be023dffe8URGmxjsf5AISN",
    Some((2_600, 100, 109)), Some(9_165_000), Some(Some("end")))]
#[case::mcp(recording!("opencode/mcp"), OK, "ses_e04b37249ffeb80670QzKlSazG",
    Some((3_000, 0, 150)), Some(11_250_000), Some(Some("end")))]
#[case::rejected(recording!("opencode/permission-rejected"), OK, "ses_e04b33bd4ffeoeOkw1WK714ikR",
    Some((1_000, 0, 50)), Some(3_750_000), Some(None))]
#[case::filtered(recording!("opencode/content-filter"), Exit::Code(1), "ses_e04b7bfbaffeSkqPvX31u5ZrTj",
    Some((1_000, 0, 50)), Some(3_750_000), Some(None))]
#[case::refused_at_once(recording!("opencode/rate-limit"), Exit::Code(1), "ses_e04916a18ffeJrrjgu8amdDwcS",
    None, None, Some(None))]
fn a_recorded_stream_comes_to(
    #[case] stdout: &[u8],
    #[case] exit: Exit,
    #[case] session: &str,
    #[case] used: Option<(u64, u64, u64)>,
    #[case] cost: Option<u64>,
    #[case] last_word: Option<Option<&str>>,
) {
    let heard = hear(stdout, exit, "");
    let report = &heard.report;
    assert_eq!(report.session.id.as_deref(), Some(session));
    assert_eq!(report.session.model, None, "it never says");
    let tokens = |(input, cached, output)| Tokens {
        input: Some(input),
        cached_input: Some(cached),
        output: Some(output),
    };
    assert_eq!(report.tokens, used.map(|used| (Scope::Attempt, tokens(used))));
    assert_eq!(report.cost, cost.map(|cost| (Scope::Attempt, Usd(cost))));
    assert_eq!(report.is_final, last_word.is_some());
    let said = last_word.map(|message| (message.is_some(), message.map(str::to_owned)));
    assert_eq!(heard.last_word, said);
    assert_eq!(report.fault.is_none(), last_word.is_some_and(|message| message.is_some()));
    assert_eq!(report.unknown, 0);
}

#[rstest]
#[case::by_sigint(recording!("opencode/sigint-hung"), Exit::Signal(2))]
#[case::by_sigterm(recording!("opencode/sigterm-hung"), Exit::Signal(15))]
fn an_interrupted_run_says_nothing(#[case] stdout: &[u8], #[case] exit: Exit) {
    let heard = hear(stdout, exit, "");
    assert_eq!(heard.report.fault.map(|fault| fault.kind), Some(FaultKind::Aborted));
    assert!(heard.report.session.id.is_none() && !heard.report.is_final && heard.report.tokens.is_none());
}

#[test]
fn tools_and_thoughts_are_told() {
    let heard = hear(recording!("opencode/reasoning-and-invalid-tool"), OK, "");
    let call = |name: &str, about: &str| AgentEvent::ToolCall {
        name: name.to_owned(),
        about: about.to_owned(),
        by: Speaker::Agent,
    };
    assert!(heard.events.contains(&AgentEvent::Thought("thinking text".to_owned())));
    assert!(heard.events.contains(&call("read", "README.md")));
    assert!(heard.events.contains(&call("bash", "echo 1; exit 4")));
    let failed = AgentEvent::ToolResult { ok: Some(false), output: "1\n".to_owned() };
    assert!(heard.events.contains(&failed), "a command that ended with 4");
}

/// An `error` line as OpenCode writes it.
fn error(name: &str, data: &str) -> String {
    format!(r#"{{"type":"error","sessionID":"s","error":{{"name":"{name}","data":{{{data}}}}}}}"#)
}

/// The same, of a provider that answered so.
fn api_error(status: u16, body: &str, headers: &str) -> String {
    let body = serde_json::to_string(body).unwrap();
    let rest = format!(r#""responseHeaders":{{{headers}}},"responseBody":{body}"#);
    error("APIError", &format!(r#""message":"it failed","statusCode":{status},"isRetryable":true,{rest}"#))
}

/// One model call that ended so.
fn step(reason: &str) -> String {
    format!(
        "{}\n{}\n",
        r#"{"type":"step_start","sessionID":"s","part":{}}"#,
        r#"{"type":"step_finish","sessionID":"s","part":{"reason":"REASON"}}"#.replace("REASON", reason)
    )
}

const ONE: Exit = Exit::Code(1);

#[rstest]
#[case::login(recording!("opencode/auth"), FaultKind::Login, None)]
#[case::model(recording!("opencode/no-such-model"), FaultKind::Model, None)]
#[case::rate_limit(recording!("opencode/rate-limit"), FaultKind::RateLimit, Some(Until::After(Millis(1_000))))]
#[case::filter(recording!("opencode/content-filter"), FaultKind::Refused, None)]
fn a_recorded_error_means(#[case] stdout: &[u8], #[case] kind: FaultKind, #[case] until: Option<Until>) {
    let fault = hear(stdout, ONE, "").report.fault.unwrap();
    assert_eq!((fault.kind, fault.until), (kind, until));
    assert!(!fault.message.is_empty());
}

#[rstest]
#[case::context(error("ContextOverflowError", r#""message":"too long""#), FaultKind::Context)]
#[case::login(error("ProviderAuthError", r#""message":"no key""#), FaultKind::Login)]
#[case::model(error("ProviderModelNotFoundError", ""), FaultKind::Model)]
#[case::output(error("MessageOutputLengthError", ""), FaultKind::OutputLimit)]
#[case::aborted(error("MessageAbortedError", r#""message":"stop""#), FaultKind::Aborted)]
#[case::refused_connection(
    error("UnknownError", r#""message":"Error: connect ECONNREFUSED 127.0.0.1:1""#),
    FaultKind::Connection
)]
#[case::no_connection(
    error("APIError", r#""message":"Unable to connect. Is the computer online?","isRetryable":true"#),
    FaultKind::Connection
)]
#[case::retryable_without_a_status(
    error("APIError", r#""message":"hm","isRetryable":true"#),
    FaultKind::Connection
)]
#[case::unknown(error("UnknownError", r#""message":"TypeError: x is undefined""#), FaultKind::Other)]
#[case::of_the_future(error("QuantumError", ""), FaultKind::Other)]
#[case::s400(api_error(400, "", ""), FaultKind::Refused)]
#[case::s402(api_error(402, "", ""), FaultKind::Credit)]
#[case::s403(api_error(403, "not json", ""), FaultKind::Login)]
#[case::s413(api_error(413, "", ""), FaultKind::Context)]
#[case::s500(api_error(500, "", ""), FaultKind::Overloaded)]
#[case::s503(api_error(503, "", ""), FaultKind::Overloaded)]
#[case::s529(api_error(529, "", ""), FaultKind::Overloaded)]
#[case::quota(api_error(429, r#"{"error":{"code":"insufficient_quota"}}"#, ""), FaultKind::Credit)]
#[case::billing(
    api_error(400, r#"{"type":"error","error":{"type":"billing_error"}}"#, ""),
    FaultKind::Credit
)]
#[case::overflow_by_code(
    api_error(400, r#"{"error":{"code":"context_length_exceeded"}}"#, ""),
    FaultKind::Context
)]
#[case::low_balance(
    error("APIError", r#""message":"Your credit balance is too low","statusCode":400"#),
    FaultKind::Credit
)]
fn an_error_means(#[case] line: String, #[case] kind: FaultKind) {
    let heard = hear(line.as_bytes(), ONE, "");
    assert_eq!(heard.report.fault.map(|fault| fault.kind), Some(kind));
    assert_eq!(heard.last_word, Some((false, None)));
}

#[rstest]
#[case::a_plan_in_so_long(
    r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}"#,
    "",
    FaultKind::Limit,
    Some(Until::After(Millis(7_200_000)))
)]
#[case::a_plan_at(
    r#"{"error":{"type":"usage_limit_reached","resets_at":1795219713}}"#,
    "",
    FaultKind::Limit,
    Some(Until::At(jiff::Timestamp::constant(1_795_219_713, 0)))
)]
#[case::a_plan_unsaid(r#"{"error":{"type":"usage_limit_reached"}}"#, "", FaultKind::Limit, None)]
#[case::a_header("", r#""retry-after":"90""#, FaultKind::RateLimit, Some(Until::After(Millis(90_000))))]
#[case::a_broken_header("", r#""retry-after":"soon""#, FaultKind::RateLimit, None)]
fn a_limit_says_when(
    #[case] body: &str,
    #[case] headers: &str,
    #[case] kind: FaultKind,
    #[case] until: Option<Until>,
) {
    let fault = hear(api_error(429, body, headers).as_bytes(), ONE, "").report.fault.unwrap();
    assert_eq!((fault.kind, fault.until), (kind, until));
}

#[rstest]
#[case::rejected(recording!("opencode/permission-rejected").to_vec(), OK, "", FaultKind::Setup)]
#[case::in_the_middle_of_its_tools(step("tool-calls").into_bytes(), OK, "", FaultKind::Other)]
#[case::too_long(step("length").into_bytes(), OK, "", FaultKind::OutputLimit)]
#[case::filtered(step("content-filter").into_bytes(), OK, "", FaultKind::Refused)]
#[case::broken_off(step("unknown").into_bytes(), OK, "", FaultKind::Connection)]
#[case::some_other_reason(step("weather").into_bytes(), OK, "", FaultKind::Other)]
#[case::nothing_at_all(vec![], OK, "", FaultKind::Aborted)]
#[case::terminated_by_a_shell_code(step("tool-calls").into_bytes(), Exit::Code(143), "", FaultKind::Aborted)]
#[case::killed_after_its_answer(recording!("opencode/hello").to_vec(), Exit::Signal(9), "", FaultKind::Aborted)]
#[case::no_such_session(vec![], ONE, "\u{1b}[91mError: \u{1b}[0mSession not found\n", FaultKind::Session)]
#[case::no_such_flag(vec![], ONE, "Unknown argument: nosuch\n", FaultKind::Setup)]
#[case::no_such_model(vec![], ONE, "ProviderModelNotFoundError: Model not found: a/b\n", FaultKind::Model)]
#[case::a_crash_on_the_way(step("tool-calls").into_bytes(), Exit::Code(7), "panic\n", FaultKind::Other)]
fn an_end_without_an_error_means(
    #[case] stdout: Vec<u8>,
    #[case] exit: Exit,
    #[case] stderr: &str,
    #[case] kind: FaultKind,
) {
    let heard = hear(&stdout, exit, stderr);
    assert_eq!(heard.report.fault.map(|fault| fault.kind), Some(kind));
    assert!(heard.last_word.is_none_or(|(ok, message)| !ok && message.is_none()));
}

#[test]
fn what_it_gets_over_is_a_retry() {
    let overflow = error("ContextOverflowError", r#""message":"too long""#);
    let stdout = format!("{overflow}\n{}", step("stop"));
    let heard = hear(stdout.as_bytes(), OK, "");
    let fault = Fault { kind: FaultKind::Context, message: "too long".to_owned(), until: None };
    assert!(heard.events.contains(&AgentEvent::Retry(fault.clone())));
    assert_eq!((heard.report.fault, heard.last_word), (None, Some((true, None))));

    let killed = hear(overflow.as_bytes(), Exit::Signal(9), "");
    assert_eq!((killed.report.fault, killed.last_word), (Some(fault), None), "it tried without end");
}

#[test]
fn a_lost_run_says_nothing_more() {
    let heard = hear(recording!("opencode/tools-cut-at-line"), Exit::Lost, "");
    assert_eq!((heard.report.fault, heard.last_word), (None, None));
}

#[test]
fn a_sub_agent_is_not_the_agent() {
    let theirs = r#"{"type":"text","sessionID":"child","part":{"text":"<promise>DONE</promise>"}}"#;
    let spent = r#"{"type":"step_finish","sessionID":"child","part":{"reason":"length","tokens":{"input":7},"cost":0.5}}"#;
    let failed = error("APIError", r#""message":"no""#).replace("\"s\"", "\"child\"");
    let stdout = format!("{}{theirs}\n{spent}\n{failed}\n", step("stop"));
    let heard = hear(stdout.as_bytes(), OK, "");
    assert_eq!(heard.last_word, Some((true, None)));
    assert_eq!(heard.report.session.id.as_deref(), Some("s"));
    assert_eq!(
        heard.report.cost,
        Some((Scope::Attempt, Usd(500_000_000))),
        "the money is spent all the same"
    );
    assert!(heard.events.iter().any(|event| matches!(event, AgentEvent::Text { by: Speaker::SubAgent, .. })));
}

#[test]
fn a_model_without_a_price_is_not_free() {
    let line = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":7,"output":1},"cost":0}}"#;
    let report = hear(line.as_bytes(), OK, "").report;
    let tokens = Tokens { input: Some(7), cached_input: None, output: Some(1) };
    assert_eq!((report.tokens, report.cost), (Some((Scope::Attempt, tokens)), None));
}

#[rstest]
#[case::as_it_is(Permissions::Auto, None, &[], &["run", "--format", "json"])]
#[case::with_a_model(Permissions::Auto, Some("a/b"), &[], &["run", "--format", "json", "--model", "a/b"])]
#[case::all_allowed(Permissions::Full, None, &[], &["run", "--format", "json", "--auto"])]
#[case::as_configured(Permissions::Agent, None, &[], &["run", "--format", "json"])]
#[case::auto_given(Permissions::Full, None, &["--auto"], &["run", "--format", "json", "--auto"])]
#[case::auto_given_in_auto(Permissions::Auto, None, &["--auto"], &["run", "--format", "json", "--auto"])]
#[case::old_name(Permissions::Full, None, &["--dangerously-skip-permissions"],
    &["run", "--format", "json", "--dangerously-skip-permissions"])]
#[case::model_given(Permissions::Auto, Some("a/b"), &["--model=c/d"], &["run", "--format", "json", "--model=c/d"])]
#[case::model_given_short(Permissions::Agent, Some("a/b"), &["-m", "c/d"], &["run", "--format", "json", "-m", "c/d"])]
#[case::format_given(Permissions::Full, None, &["--format", "json"], &["run", "--auto", "--format", "json"])]
#[case::subcommand_given(Permissions::Full, None, &["run", "--agent", "build"],
    &["run", "--format", "json", "--auto", "--agent", "build"])]
#[case::options_before_the_subcommand(Permissions::Auto, None, &["--print-logs", "run", "--title=x"],
    &["--print-logs", "run", "--format", "json", "--title=x"])]
fn the_command_line_is(
    #[case] permissions: Permissions,
    #[case] model: Option<&str>,
    #[case] args: &[&str],
    #[case] argv: &[&str],
) {
    let mut spec = spec("opencode", args);
    spec.agent.permissions = permissions;
    spec.agent.model = model.map(str::to_owned);
    let launch = testing::launch(&OpenCode, &spec);
    assert_eq!(launch.argv[0], "opencode");
    assert_eq!(launch.argv[1..], *argv);
    assert_eq!(launch.stdin.as_deref(), Some("/data/prompt.md".into()));
    assert_eq!(launch.env, [("OPENCODE_DISABLE_AUTOUPDATE".to_owned(), "1".to_owned())]);
}

#[rstest]
#[case::stdin(PromptMode::Stdin, &[], &["run", "--format", "json"], true)]
#[case::argument(PromptMode::Arg, &[], &["run", "--format", "json", "--", "Mend it."], false)]
#[case::argument_after_words(PromptMode::Arg, &["--", "First:"], &["run", "--format", "json", "--", "First:", "Mend it."], false)]
#[case::file(PromptMode::File, &["-f"], &["run", "--format", "json", "-f", "/data/prompt.md"], false)]
#[case::variable(PromptMode::Env, &[], &["run", "--format", "json"], false)]
fn the_prompt_travels(
    #[case] mode: PromptMode,
    #[case] args: &[&str],
    #[case] argv: &[&str],
    #[case] is_stdin: bool,
) {
    let mut spec = spec("bin/opencode", args);
    spec.agent.prompt_mode = mode;
    spec.agent.env.insert("OPENCODE_DISABLE_AUTOUPDATE".to_owned(), Secret::new("0".to_owned()));
    let launch = testing::launch(&OpenCode, &spec);
    assert_eq!(launch.argv[0], "/repo/sub/bin/opencode");
    assert_eq!(launch.argv[1..], *argv);
    assert_eq!(launch.stdin.is_some(), is_stdin);
    let is_variable = mode == PromptMode::Env;
    assert_eq!(launch.env, Vec::from_iter(is_variable.then(|| ("PROMPT".to_owned(), "Mend it.".to_owned()))));
}

#[test]
fn any_signal_ends_it_so_the_default_ladder_does() {
    assert_eq!(OpenCode.ladder(), StopLadder::default());
}

proptest! {
    #[test]
    fn no_bytes_are_an_error(stdout: Vec<u8>, code: i32, stderr: String) {
        hear(&stdout, Exit::Code(code), &stderr);
    }

    #[test]
    fn no_damage_to_a_recording_is_an_error(at in 0usize..5_000, byte: u8) {
        let mut stdout = recording!("opencode/reasoning-and-invalid-tool").to_vec();
        let at = at % stdout.len();
        stdout[at] = byte;
        hear(&stdout, OK, "");
        hear(&stdout[..at], Exit::Signal(9), "");
    }

    #[test]
    fn what_is_unknown_changes_nothing(places in prop::collection::vec((0usize..9, "[a-z]{1,9}\\.[a-z]{1,9}", any::<bool>()), 0..9)) {
        let known = recording!("opencode/tools");
        let mut lines: Vec<Vec<u8>> = known.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for (at, kind, is_odd) in &places {
            let more = if *is_odd { r#""part":{"text":5,"cost":"x"},"error":1"# } else { r#""part":{"text":"x"}"# };
            lines.insert(*at, format!(r#"{{"type":"{kind}","sessionID":"other",{more}}}"#).into_bytes());
        }
        let mut heard = hear(&lines.join(&b'\n'), OK, "");
        prop_assert_eq!(heard.report.unknown, places.len() as u64);
        heard.report.unknown = 0;
        heard.events.retain(|event| *event != AgentEvent::Unknown);
        prop_assert_eq!(heard, hear(known, OK, ""));
    }
}
