//! Gemini CLI: recorded streams with what they come to, errors with what they mean, and command lines.

use proptest::prelude::*;
use refrain_core::agent::{AgentEvent, FaultKind, Scope, Speaker, Tokens, Until};
use refrain_core::event::Exit;
use refrain_core::spec::{Millis, Permissions, PromptMode, Secret};
use refrain_proc::StopLadder;
use rstest::rstest;

use super::{Gemini, lock};
use crate::adapter::Adapter;
use crate::testing::{self, Heard, recording, spec};

const OK: Exit = Exit::Code(0);

fn hear(stdout: &[u8], exit: Exit, stderr: &str) -> Heard {
    testing::hear(&Gemini, &spec("gemini", &[]), stdout, exit, stderr)
}

/// What a stream comes to, read off the recording by a person: session, (input, cached, output), whether it ended as it
/// should and with which message.
#[rstest]
#[case::cached(recording!("gemini/hello"), OK, "b68b850f-fbc2-47ba-a9ed-2b2dc5dab1cc",
    Some((1_500, 300, 12)), Some(Some("Hello from the fake model.")))]
#[case::three_steps(recording!("gemini/tools"), OK, "353f6a66-a729-4028-add3-96092d4f9ee6",
    Some((3_600, 200, 77)), Some(Some("All done.")))]
#[case::cut_at_a_line(recording!("gemini/tools-cut-at-line"), OK, "353f6a66-a729-4028-add3-96092d4f9ee6", None, None)]
#[case::cut_in_its_result(recording!("gemini/tools-cut-in-line"), OK, "353f6a66-a729-4028-add3-96092d4f9ee6", None, None)]
#[case::reasoning_and_unknown_tool(recording!("gemini/tools-and-unknown-tool"), OK,
    "297318ce-e6df-4192-9549-728a6cdbbecb", Some((3_600, 100, 162)), Some(Some("end")))]
#[case::mcp(recording!("gemini/mcp"), OK, "7f232f6d-2c66-466c-909a-99a25efeb33e",
    Some((3_000, 0, 150)), Some(Some("end")))]
#[case::sent_on_by_a_hook(recording!("gemini/stop-hook"), OK, "7ebe534e-f587-4b51-9b09-93bcaa9296e3",
    Some((3_000, 0, 150)), Some(Some("third stop")))]
#[case::sent_on_after_a_tool(recording!("gemini/after-agent-hook"), OK, "bc2ad19b-c878-4a3b-aaef-3837d04cf023",
    Some((4_000, 0, 200)), Some(Some("third stop")))]
#[case::retried(recording!("gemini/rate-limit-once"), OK, "b25c17ff-ff20-459a-85b9-f0d9345ae311",
    Some((1_000, 0, 50)), Some(Some("recovered")))]
#[case::begun_again(recording!("gemini/cut-stream"), OK, "ceed40ca-cf9c-49e3-9ede-86f7b0991a57",
    Some((1_000, 0, 50)), Some(Some("This answer is cut off before its end, arecovered")))]
#[case::empty_answer(recording!("gemini/empty-answer"), OK, "828aab74-cb60-4481-8b53-5f384b3e1c94",
    Some((4_000, 0, 200)), Some(None))]
#[case::turns(recording!("gemini/max-turns"), Exit::Code(53), "75c46173-7cab-4ff3-b726-261d10841e4b",
    Some((2_000, 0, 100)), Some(None))]
#[case::looping(recording!("gemini/loop-detected"), OK, "337f2795-d153-4c0a-8752-4bdf55fbb2f1", None, Some(None))]
#[case::reset(recording!("gemini/reset-mid-stream-fatal"), Exit::Code(1), "86b8e555-e25c-45e0-a71a-47e72079efad",
    None, Some(None))]
#[case::interrupted(recording!("gemini/sigint-hung"), OK, "c014e0fb-9e3c-4692-80ab-60ff45e22b2c", None, None)]
#[case::terminated(recording!("gemini/sigterm-hung"), OK, "0842b42a-0f10-450d-baa0-c4df6e73fbd7", None, None)]
#[case::killed(recording!("gemini/rate-limit-retrying"), Exit::Signal(9), "8c0c87ed-8897-4752-9e5f-f997af8b798f",
    None, None)]
fn a_recorded_stream_comes_to(
    #[case] stdout: &[u8],
    #[case] exit: Exit,
    #[case] session: &str,
    #[case] used: Option<(u64, u64, u64)>,
    #[case] last_word: Option<Option<&str>>,
) {
    let heard = hear(stdout, exit, "");
    let report = &heard.report;
    assert_eq!(report.session.id.as_deref(), Some(session));
    assert_eq!(report.session.model.as_deref(), Some("gemini-2.5-pro"));
    let tokens = |(input, cached, output)| Tokens {
        input: Some(input),
        cached_input: Some(cached),
        output: Some(output),
    };
    assert_eq!(report.tokens, used.map(|used| (Scope::Attempt, tokens(used))));
    assert_eq!(report.cost, None, "it never says");
    assert_eq!(report.is_final, last_word.is_some());
    let said = last_word.map(|message| (message.is_some(), message.map(str::to_owned)));
    assert_eq!(heard.last_word, said);
    assert_eq!(report.fault.is_none(), last_word.is_some_and(|message| message.is_some()));
    assert_eq!(report.unknown, 0);
}

#[test]
fn what_is_said_is_told_and_the_prompt_is_not() {
    let heard = hear(recording!("gemini/tools-and-unknown-tool"), OK, "");
    let texts = heard.events.iter().filter_map(|event| match event {
        AgentEvent::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["pre", "end"]);
    let call = AgentEvent::ToolCall {
        name: "run_shell_command".to_owned(),
        about: "echo 1; exit 4".to_owned(),
        by: Speaker::Agent,
    };
    assert!(heard.events.contains(&call));
    let results = heard.events.iter().filter_map(|event| match event {
        AgentEvent::ToolResult { ok, .. } => *ok,
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn parts_continue_what_was_begun() {
    let heard = hear(recording!("gemini/cut-stream"), OK, "");
    let parts = heard.events.iter().filter_map(|event| match event {
        AgentEvent::Text { part, .. } => Some(*part),
        _ => None,
    });
    assert_eq!(parts.collect::<Vec<_>>(), [false, true]);
}

/// An error result as Gemini writes it.
fn failed(kind: &str, message: &str) -> Vec<u8> {
    let message = serde_json::to_string(message).unwrap();
    format!(r#"{{"type":"result","status":"error","error":{{"type":"{kind}","message":{message}}}}}"#)
        .into_bytes()
}

/// One with an answer of the provider in it.
fn answered(code: u16, status: &str, details: &str) -> Vec<u8> {
    let answer =
        format!(r#"{{"error":{{"code":{code},"message":"no","status":"{status}","details":[{details}]}}}}"#);
    failed("unknown", &format!("[API Error: {answer}]\nPlease wait and try again later."))
}

const ONE: Exit = Exit::Code(1);

#[rstest]
#[case::login(recording!("gemini/auth"), 144, FaultKind::Login, "API key not valid. Please pass a valid API key.")]
#[case::context(recording!("gemini/context-overflow"), 144, FaultKind::Context,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")]
#[case::plan(recording!("gemini/usage-limit"), 173, FaultKind::Limit, "[API Error: You have exhausted your daily quota")]
#[case::model(recording!("gemini/no-such-model"), 1, FaultKind::Model, "[API Error: model: no such model]")]
#[case::reset(recording!("gemini/reset-mid-stream-fatal"), 1, FaultKind::Connection, "[API Error: terminated]")]
#[case::turns(recording!("gemini/max-turns"), 53, FaultKind::Turns, "Reached max session turns")]
#[case::empty(recording!("gemini/empty-answer"), 0, FaultKind::Other, "The model returned an empty response")]
#[case::looping(recording!("gemini/loop-detected"), 0, FaultKind::Other, "gemini took itself to be in a loop")]
#[case::interrupted(recording!("gemini/sigint-hung"), 0, FaultKind::Aborted, "gemini ended without a result")]
#[case::terminated(recording!("gemini/sigterm-hung"), 0, FaultKind::Aborted, "gemini ended without a result")]
fn a_recorded_error_means(
    #[case] stdout: &[u8],
    #[case] code: i32,
    #[case] kind: FaultKind,
    #[case] message: &str,
) {
    let fault = hear(stdout, Exit::Code(code), "").report.fault.unwrap();
    assert_eq!(fault.kind, kind);
    assert!(fault.message.starts_with(message), "{}", fault.message);
}

/// What Google adds to say when to try again, and which quota is used up.
const RETRY: &str = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}"#;
const DAILY: &str = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}"#;
const MINUTE: &str = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinute"}]}"#;
const NO_KEY: &str = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#;

#[rstest]
#[case::too_many(answered(429, "RESOURCE_EXHAUSTED", RETRY), 173, FaultKind::RateLimit, Some(34_500))]
#[case::too_many_a_minute(answered(429, "RESOURCE_EXHAUSTED", MINUTE), 173, FaultKind::RateLimit, None)]
#[case::too_many_a_day(answered(429, "RESOURCE_EXHAUSTED", DAILY), 173, FaultKind::Limit, None)]
#[case::overloaded(answered(503, "UNAVAILABLE", ""), 247, FaultKind::Overloaded, None)]
#[case::broken(answered(500, "INTERNAL", ""), 244, FaultKind::Overloaded, None)]
#[case::forbidden(answered(403, "PERMISSION_DENIED", ""), 147, FaultKind::Login, None)]
#[case::wrong_key(answered(400, "INVALID_ARGUMENT", NO_KEY), 144, FaultKind::Login, None)]
#[case::bad_request(answered(400, "INVALID_ARGUMENT", ""), 144, FaultKind::Refused, None)]
#[case::not_found(answered(404, "NOT_FOUND", ""), 148, FaultKind::Model, None)]
#[case::plan(
    failed(
        "unknown",
        "[API Error: You have exhausted your capacity on this model. Your quota will reset after 18h31m10s.]"
    ),
    173,
    FaultKind::Limit,
    Some(66_670_000)
)]
#[case::burst(
    failed(
        "unknown",
        "[API Error: You have exhausted your capacity on this model. Your quota will reset after 2s.]"
    ),
    173,
    FaultKind::RateLimit,
    Some(2_000)
)]
#[case::no_connection(
    failed("unknown", "[API Error: exception TypeError: fetch failed sending request]"),
    1,
    FaultKind::Connection,
    None
)]
#[case::status_in_the_exit_alone(failed("unknown", "it failed"), 173, FaultKind::RateLimit, None)]
#[case::forbidden_by_the_exit(failed("unknown", "it failed"), 147, FaultKind::Login, None)]
#[case::overloaded_by_the_exit(failed("unknown", "it failed"), 17, FaultKind::Overloaded, None)]
#[case::login_by_type(failed("FatalAuthenticationError", "no"), 41, FaultKind::Login, None)]
#[case::input_by_type(failed("FatalInputError", "no"), 42, FaultKind::Setup, None)]
#[case::cancelled(failed("FatalCancellationError", "Operation cancelled."), 130, FaultKind::Aborted, None)]
#[case::something(failed("FatalToolExecutionError", "a tool"), 54, FaultKind::Other, None)]
#[case::nothing_said(br#"{"type":"result","status":"error"}"#.to_vec(), 1, FaultKind::Other, None)]
#[case::a_status_of_the_future(br#"{"type":"result","status":"melted"}"#.to_vec(), 0, FaultKind::Other, None)]
#[case::a_broken_answer(failed("unknown", "[API Error: {\"error\":"), 144, FaultKind::Refused, None)]
fn a_failed_result_means(
    #[case] stdout: Vec<u8>,
    #[case] code: i32,
    #[case] kind: FaultKind,
    #[case] until: Option<u64>,
) {
    let heard = hear(&stdout, Exit::Code(code), "");
    let fault = heard.report.fault.unwrap();
    assert_eq!((fault.kind, fault.until), (kind, until.map(|ms| Until::After(Millis(ms)))));
    assert_eq!(heard.last_word, Some((false, None)));
}

const RETRYING: &str =
    "YOLO mode is enabled.\nAttempt 3 failed with status 429. Retrying with backoff... ApiError: no\n";

#[rstest]
#[case::no_key(b"", Exit::Code(41), "Please set an Auth method\n", FaultKind::Login)]
#[case::no_such_session(
    b"",
    Exit::Code(42),
    "Error resuming session: No previous sessions found\n",
    FaultKind::Session
)]
#[case::no_input(b"", Exit::Code(42), "No input provided via stdin.\n", FaultKind::Setup)]
#[case::untrusted(
    b"",
    Exit::Code(55),
    "Gemini CLI is not running in a trusted directory.\n",
    FaultKind::Setup
)]
#[case::no_such_flag(b"", ONE, "Unknown arguments: nosuch\n", FaultKind::Setup)]
#[case::turns(b"", Exit::Code(53), "", FaultKind::Turns)]
#[case::no_connection(b"", ONE, "TypeError: fetch failed\n", FaultKind::Connection)]
#[case::quota(
    b"",
    ONE,
    "TerminalQuotaError: You have exhausted your capacity on this model.\n",
    FaultKind::Limit
)]
#[case::status_alone(b"", Exit::Code(173), "", FaultKind::RateLimit)]
#[case::a_crash_on_the_way(recording!("gemini/tools-cut-at-line"), Exit::Code(7), "boom\n", FaultKind::Other)]
#[case::cut_output(recording!("gemini/tools-cut-in-line"), OK, "", FaultKind::Aborted)]
#[case::killed(recording!("gemini/tools-cut-in-line"), Exit::Signal(9), "", FaultKind::Aborted)]
#[case::killed_while_it_was_refused(recording!("gemini/rate-limit-retrying"), Exit::Signal(9), RETRYING, FaultKind::RateLimit)]
#[case::stopped_while_it_was_refused(recording!("gemini/rate-limit-retrying"), OK, RETRYING, FaultKind::RateLimit)]
#[case::killed_some_time_after_it_was_refused(recording!("gemini/tools-cut-in-line"), OK, RETRYING, FaultKind::Aborted)]
fn an_end_without_a_result_means(
    #[case] stdout: &[u8],
    #[case] exit: Exit,
    #[case] stderr: &str,
    #[case] kind: FaultKind,
) {
    let heard = hear(stdout, exit, stderr);
    assert_eq!(heard.report.fault.map(|fault| fault.kind), Some(kind));
    assert_eq!(heard.last_word, None);
}

#[test]
fn a_prompt_that_cuts_its_output_is_named() {
    let mut spec = spec("gemini", &[]);
    spec.prompt = "x".repeat(190_001);
    let cut = testing::hear(&Gemini, &spec, recording!("gemini/tools-cut-in-line"), OK, "");
    assert_eq!(cut.report.fault.map(|fault| fault.kind), Some(FaultKind::Setup));
    let whole = testing::hear(&Gemini, &spec, recording!("gemini/hello"), OK, "");
    assert_eq!(whole.report.fault, None, "it went well all the same");
}

#[test]
fn what_the_model_writes_is_no_error() {
    let lines = br#"{"type":"message","role":"assistant","content":"Loop detected. [API Error: You have exhausted your daily quota]","delta":true}
{"type":"result","status":"success"}"#;
    let heard = hear(lines, OK, "");
    assert_eq!(heard.report.fault, None);
    assert_eq!(heard.last_word.map(|(ok, _)| ok), Some(true));
}

#[test]
fn a_lost_run_says_nothing_more() {
    let heard = hear(recording!("gemini/tools-cut-at-line"), Exit::Lost, "");
    assert_eq!((heard.report.fault, heard.last_word), (None, None));
}

#[rstest]
#[case::as_it_is(Permissions::Auto, None, &[], &["--output-format", "stream-json", "--yolo"])]
#[case::all_allowed(Permissions::Full, None, &[], &["--output-format", "stream-json", "--yolo"])]
#[case::as_configured(Permissions::Agent, None, &[], &["--output-format", "stream-json"])]
#[case::with_a_model(Permissions::Agent, Some("flash"), &[], &["--output-format", "stream-json", "--model", "flash"])]
#[case::model_given(Permissions::Agent, Some("flash"), &["-m", "pro"], &["--output-format", "stream-json", "-m", "pro"])]
#[case::model_given_long(Permissions::Auto, Some("flash"), &["--model=pro"],
    &["--output-format", "stream-json", "--yolo", "--model=pro"])]
#[case::yolo_given(Permissions::Full, None, &["-y"], &["--output-format", "stream-json", "-y"])]
#[case::yolo_given_long(Permissions::Auto, None, &["--yolo"], &["--output-format", "stream-json", "--yolo"])]
#[case::mode_given(Permissions::Full, None, &["--approval-mode=plan"],
    &["--output-format", "stream-json", "--approval-mode=plan"])]
#[case::tools_given(Permissions::Auto, None, &["--allowed-tools", "run_shell_command(cargo)"],
    &["--output-format", "stream-json", "--allowed-tools", "run_shell_command(cargo)"])]
#[case::format_given(Permissions::Auto, None, &["-o", "stream-json"], &["--yolo", "-o", "stream-json"])]
#[case::confined(Permissions::Auto, None, &["--sandbox"], &["--output-format", "stream-json", "--yolo", "--sandbox"])]
fn the_command_line_is(
    #[case] permissions: Permissions,
    #[case] model: Option<&str>,
    #[case] args: &[&str],
    #[case] argv: &[&str],
) {
    let mut spec = spec("gemini", args);
    spec.agent.permissions = permissions;
    spec.agent.model = model.map(str::to_owned);
    let launch = testing::launch(&Gemini, &spec);
    assert_eq!(launch.argv[0], "gemini");
    assert_eq!(launch.argv[1..], *argv);
    assert_eq!(launch.stdin.as_deref(), Some("/data/prompt.md".into()));
    let names: Vec<_> = launch.env.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["GEMINI_CLI_NO_RELAUNCH", "GEMINI_CLI_TRUST_WORKSPACE"];
    assert_eq!(names, expected[..if permissions == Permissions::Agent { 1 } else { 2 }]);
}

#[rstest]
#[case::stdin(PromptMode::Stdin, None, true)]
#[case::argument(PromptMode::Arg, Some("--prompt=Mend it."), false)]
#[case::file(PromptMode::File, Some("/data/prompt.md"), false)]
#[case::variable(PromptMode::Env, None, false)]
fn the_prompt_travels(#[case] mode: PromptMode, #[case] argument: Option<&str>, #[case] is_stdin: bool) {
    let mut spec = spec("./gemini", &["--debug"]);
    spec.agent.prompt_mode = mode;
    spec.agent.env.insert("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), Secret::new("false".to_owned()));
    let launch = testing::launch(&Gemini, &spec);
    assert_eq!(launch.argv[0], "/repo/sub/./gemini");
    let ours = ["--output-format", "stream-json", "--yolo", "--debug"];
    assert_eq!(launch.argv[1..], Vec::from_iter(ours.into_iter().chain(argument)));
    assert_eq!(launch.stdin.is_some(), is_stdin);
    assert!(
        launch.env.iter().all(|(name, _)| name != "GEMINI_CLI_TRUST_WORKSPACE"),
        "the person's own stays"
    );
    assert_eq!(launch.env.iter().any(|(name, _)| name == "PROMPT"), mode == PromptMode::Env);
}

#[rstest]
#[case::of_the_home(&[("HOME", "/home/a")], Some("/home/a/.gemini/projects.json.lock"))]
#[case::of_the_last_home(&[("HOME", "/home/a"), ("HOME", "/b")], Some("/b/.gemini/projects.json.lock"))]
#[case::of_its_own_home(&[("GEMINI_CLI_HOME", "/g"), ("HOME", "/home/a")], Some("/g/.gemini/projects.json.lock"))]
#[case::of_an_empty_home(&[("GEMINI_CLI_HOME", ""), ("HOME", "/home/a")], Some("/home/a/.gemini/projects.json.lock"))]
#[case::of_nobody(&[("PATH", "/bin")], None)]
fn the_lock_is(#[case] env: &[(&str, &str)], #[case] path: Option<&str>) {
    let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    assert_eq!(lock(&env).as_deref(), path.map(std::path::Path::new));
}

#[test]
fn a_signal_to_its_group_ends_it_so_the_default_ladder_does() {
    assert_eq!(Gemini.ladder(), StopLadder::default());
}

proptest! {
    #[test]
    fn no_bytes_are_an_error(stdout: Vec<u8>, code: i32, stderr: String) {
        hear(&stdout, Exit::Code(code), &stderr);
    }

    #[test]
    fn no_damage_to_a_recording_is_an_error(at in 0usize..5_000, byte: u8) {
        let mut stdout = recording!("gemini/tools-and-unknown-tool").to_vec();
        let at = at % stdout.len();
        stdout[at] = byte;
        hear(&stdout, OK, "");
        hear(&stdout[..at], Exit::Signal(9), "");
    }

    #[test]
    fn no_error_message_is_an_error(message: String, code: i32) {
        hear(&failed("unknown", &format!("[API Error: {message}")), Exit::Code(code), &message);
        hear(&failed("unknown", &message), Exit::Code(code), &message);
    }

    #[test]
    fn what_is_unknown_changes_nothing(places in prop::collection::vec((0usize..9, "[a-z]{1,9}\\.[a-z]{1,9}", any::<bool>()), 0..9)) {
        let known = recording!("gemini/tools");
        let mut lines: Vec<Vec<u8>> = known.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for (at, kind, is_odd) in &places {
            let more = if *is_odd { r#""role":5,"error":1,"delta":[]"# } else { r#""session_id":"other","content":"x""# };
            lines.insert(*at, format!(r#"{{"type":"{kind}",{more}}}"#).into_bytes());
        }
        let mut heard = hear(&lines.join(&b'\n'), OK, "");
        prop_assert_eq!(heard.report.unknown, places.len() as u64);
        heard.report.unknown = 0;
        heard.events.retain(|event| *event != AgentEvent::Unknown);
        prop_assert_eq!(heard, hear(known, OK, ""));
    }
}
