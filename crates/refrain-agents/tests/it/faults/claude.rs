//! Claude Code's faults are derived from its codes, its exit and its own words.

use refrain_core::agent::FaultKind::{
    Aborted, Connection, Context, Credit, Forbidden, Limit, Login, Other, Overloaded, RateLimit, Refused,
    Session, Setup,
};
use refrain_core::event::Exit;

use super::{BAD, Case, DONE, check, reset};
use crate::play::{play_with, spec};

const GOOD: &str = r#"{"is_error":false,"subtype":"success","result":"ok","num_turns":1,"type":"result"}"#;
const REJECTED: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795226899,"rateLimitType":"seven_day"}}"#;
const BAD_429: &str = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"You've hit your limit"}"#;

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
        // it calls every refusal a failed authentication, and 403 is more often a proxy's
        (result(r#""api_error_status":401,"error":"authentication_failed""#), BAD, "", Some(Login), None),
        (result(r#""api_error_status":403"#), BAD, "", Some(Forbidden), None),
        (result(r#""api_error_status":403,"error":"authentication_failed""#), BAD, "", Some(Forbidden), None),
        // the form of older plans: the words have the time
        (result(r#""api_error_status":429,"result":"API Error: Request rejected (429) · Claude AI usage limit reached|1795226899""#), BAD, "", Some(Limit), reset()),
        (result(r#""result":"Claude AI usage limit reached|1795226899""#), BAD, "", Some(Limit), reset()),
        (result(r#""api_error_status":429,"result":"Claude AI usage limit reached|soon""#), BAD, "", Some(RateLimit), None),
        (result(r#""api_error_status":413"#), BAD, "", Some(Context), None),
        (result(r#""api_error_status":502"#), BAD, "", Some(Overloaded), None),
        (result(r#""api_error_status":503"#), BAD, "", Some(Overloaded), None),
        (result(r#""api_error":"connection_failed","api_error_status":null"#), BAD, "", Some(Connection), None),
        (result(r#""api_error_status":null,"result":"API Error: x""#), BAD, "", Some(Connection), None),
        // by the code of the message before it, if the status is less specific
        (format!("{}\n{}", message(r#""error":"billing_error""#), result(r#""api_error_status":400"#)), BAD, "", Some(Credit), None),
        (format!("{}\n{}", message(r#""error":"invalid_request""#), result(r#""api_error_status":400"#)), BAD, "", Some(Refused), None),
        // an error of a sub-agent is not the run's
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
        // a limit, but it continued all the same
        (format!("{REJECTED}\n{GOOD}"), DONE, "", None, None),
        // several results: the last counts
        (format!("{BAD_429}\n{GOOD}"), DONE, "", None, None),
        (format!("{GOOD}\n{BAD_429}"), BAD, "", Some(RateLimit), None),
        // no model was asked: the text is a failed command's
        (GOOD.replace("\"num_turns\":1", "\"num_turns\":0"), DONE, "", Some(Other), None),
        // a success with a failing exit; and with a good one
        (GOOD.to_owned(), BAD, "", Some(Other), None),
        (GOOD.to_owned(), Exit::Signal(15), "", None, None),
        (GOOD.to_owned(), Exit::Code(143), "", None, None),
        // odd fields hide no result
        (result(r#""api_error_status":"many","result":7,"usage":[],"total_cost_usd":"free""#), BAD, "", Some(Connection), None),
        // text of the model does not count
        (format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"Invalid API key, You've hit your usage limit, 529"}}]}}}}
{GOOD}"#), DONE, "Invalid API key", None, None),
        // no result
        (String::new(), Exit::Lost, "", None, None),
        (String::new(), Exit::Signal(2), "", Some(Aborted), None),
        (String::new(), DONE, "", Some(Aborted), None),
        (String::new(), BAD, "something new", Some(Other), None),
        (String::new(), Exit::Code(127), "env: 'node': No such file or directory", Some(Setup), None),
        (message(r#""error":"authentication_failed""#), BAD, "", Some(Login), None),
        // as the real program prints it on standard error
        (String::new(), BAD, "error: unknown option '--nope'\n(Did you mean --name?)", Some(Setup), None),
        (String::new(), BAD, "error: option '--permission-mode <mode>' argument 'bogus' is invalid.", Some(Setup), None),
        (String::new(), BAD, "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons", Some(Setup), None),
        (String::new(), BAD, "Error: When using --print, --output-format=stream-json requires --verbose", Some(Setup), None),
        (String::new(), BAD, "Error: Session ID 11111111-2222-4333-8444-555555555555 is already in use.", Some(Session), None),
        (String::new(), BAD, "Error: --resume requires a valid session ID or session title when used with --print.", Some(Session), None),
        (String::new(), BAD, "Invalid API key · Please run /login", Some(Login), None),
    ];
    check("claude", &cases);
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
