//! Tests of the model without agents: each protocol as its programs speak it, the faults, and the stored requests.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::request::{ConnectionEnd, TakenTurn};
use super::{Model, Script, Turn, Usage};

/// An answer: its status, and its body with the marks of chunks taken out.
struct ModelResponse {
    status: u16,
    headers: String,
    body: String,
}

fn ask(model: &Model, path: &str, body: &Value) -> std::io::Result<ModelResponse> {
    let mut stream = send(model, path, body);
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, rest) = text.split_once("\r\n\r\n").expect("a head ends");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if head.contains("chunked") {
        let mut parts = rest.split("\r\n");
        std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).map(|(_, part)| part).collect()
    } else {
        rest.to_owned()
    };
    Ok(ModelResponse { status, headers: head.to_owned(), body })
}

fn send(model: &Model, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(model.address()).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: scripted\r\nx-api-key: dummy\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// The JSON of each `data:` line.
fn events(heard: &ModelResponse) -> Vec<Value> {
    let lines = heard.body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

const LONG: &str = "A text that is long enough to come in more than one piece, with ünïcödé in it.";

/// A question in each protocol: path and body.
fn questions(text: &str) -> [(&'static str, Value); 4] {
    let shell = json!({ "type": "object", "properties": { "command": {}, "description": {} } });
    [
        (
            "/v1/messages?beta=true",
            json!({ "model": "m", "stream": true, "system": [{ "type": "text", "text": "Working directory: /w\n" }],
                "messages": [{ "role": "user", "content": [
                    { "type": "text", "text": "<system-reminder>Be kind.</system-reminder>" },
                    { "type": "text", "text": text }] }],
                "tools": [{ "name": "Bash", "input_schema": shell }, { "name": "Write", "input_schema": {} }] }),
        ),
        (
            "/v1/responses",
            json!({ "model": "m", "stream": true, "instructions": "Work.", "input": [
                    { "type": "message", "role": "user", "content": [
                        { "type": "input_text", "text": "<environment_context><cwd>/w</cwd>" }] },
                    { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }],
                "tools": [{ "type": "function", "name": "exec_command", "parameters": {} },
                    { "type": "custom", "name": "apply_patch" }] }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "m", "stream": true, "messages": [
                    { "role": "system", "content": "Working directory: /w\n" }, { "role": "user", "content": text }],
                "tools": [{ "type": "function", "function": { "name": "bash", "parameters": shell } },
                    { "type": "function", "function": { "name": "write",
                        "parameters": { "properties": { "filePath": {}, "content": {} } } } }] }),
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({ "systemInstruction": { "parts": [{ "text": "Work." }] },
                "contents": [{ "role": "user", "parts": [
                    { "text": "<session_context>\n- **Workspace Directories:**\n  - /w\n</session_context>" }] },
                    { "role": "user", "parts": [{ "text": text }] }],
                "tools": [{ "functionDeclarations": [
                    { "name": "run_shell_command", "parametersJsonSchema": shell },
                    { "name": "write_file", "parametersJsonSchema": { "properties": { "file_path": {} } } }] }] }),
        ),
    ]
}

#[test]
fn text_comes_in_pieces_in_every_protocol() {
    let pointers =
        ["/delta/text", "/delta", "/choices/0/delta/content", "/candidates/0/content/parts/0/text"];
    let ends = [r#""stop_reason":"end_turn""#, "response.completed", "[DONE]", r#""finishReason":"STOP""#];
    let model = Model::start(Script::new([Turn::say(LONG).times(4)]));
    for (((path, body), pointer), end) in questions("Say it.").iter().zip(pointers).zip(ends) {
        let heard = ask(&model, path, body).unwrap();
        assert_eq!(heard.status, 200, "{path}");
        assert_eq!(joined(&events(&heard), pointer), LONG, "{path}");
        assert!(heard.body.contains(end), "{path}: {}", heard.body);
        assert!(events(&heard).len() >= 2, "{path}: {}", heard.body);
    }
    for request in model.requests() {
        assert_eq!(request.prompts, ["Say it."], "{:?}", request.protocol);
        assert_eq!(request.model, "m");
        assert_eq!((request.took, request.ending), (TakenTurn::Turn(0), ConnectionEnd::Answered));
        assert!(request.has_key && request.is_first());
    }
}

#[test]
fn a_turn_finds_the_tools_that_a_request_offers() {
    let calls =
        [r#""name":"Bash""#, r#""name":"exec_command""#, r#""name":"bash""#, r#""name":"run_shell_command""#];
    let files = [
        r#"\"file_path\":\"/w/a.txt\""#,
        "*** Add File: /w/a.txt",
        r#"\"filePath\":\"/w/a.txt\""#,
        r#""file_path":"/w/a.txt""#,
    ];
    let model = Model::start(Script::new([Turn::bash("true")
        .and(Turn::write("a.txt", "one\n"))
        .and_say("So:")
        .times(4)]));
    for (((path, mut body), call), file) in questions("Do it.").into_iter().zip(calls).zip(files) {
        body["stream"] = false.into();
        let whole = ask(&model, &path.replace("streamG", "g").replace("?alt=sse", ""), &body).unwrap();
        assert!(whole.body.contains(call), "{path}: {}", whole.body);
        assert!(whole.body.contains("So:"), "{path}: {}", whole.body);
        let is_inline = path.contains("messages");
        let file = if is_inline { file.replace('\\', "") } else { file.to_owned() };
        assert!(whole.body.contains(&file), "{path}: {}", whole.body);
    }
}

#[test]
fn side_requests_take_no_turn() {
    let model = Model::start(Script::new([Turn::say("main")]));
    let schema = json!({ "type": "object", "properties": { "choice": { "type": "string", "enum": ["flash", "pro"] } } });
    let title =
        json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "A title?" }] });
    let router = json!({ "contents": [], "generationConfig": { "responseJsonSchema": schema } });
    let title = ask(&model, "/v1/chat/completions", &title).unwrap();
    assert_eq!(joined(&events(&title), "/choices/0/delta/content"), "A scripted title");
    assert!(
        ask(&model, "/v1beta/models/m:generateContent", &router)
            .unwrap()
            .body
            .contains(r#"{\"choice\":\"flash\"}"#)
    );
    assert!(
        ask(&model, "/v1/messages/count_tokens", &questions("x")[0].1).unwrap().body.contains("input_tokens")
    );
    assert_eq!(ask(&model, "/npm/some-package", &json!({})).unwrap().status, 404);
    assert!(model.turns().is_empty());
    let (path, body) = &questions("Now.")[2];
    assert!(ask(&model, path, body).unwrap().body.contains("main"));
    assert!(ask(&model, path, body).unwrap().body.contains("ended"));
    let took: Vec<TakenTurn> = model.requests().iter().map(|request| request.took).collect();
    assert_eq!(
        took,
        [
            TakenTurn::Side,
            TakenTurn::Side,
            TakenTurn::Nothing,
            TakenTurn::Nothing,
            TakenTurn::Turn(0),
            TakenTurn::Past
        ]
    );
    assert_eq!(model.prompts(), ["Now.", "Now."]);
}

#[test]
fn every_refusal_is_put_in_the_words_of_its_protocol() {
    let cases = [
        (
            Turn::rate_limit(7),
            [429, 429, 429, 429],
            ["rate_limit_error", "rate_limit_exceeded", "rate_limit_exceeded", "RetryInfo"],
        ),
        (
            Turn::usage_limit(3600),
            [429, 429, 429, 429],
            ["usage limit", "resets_in_seconds", "resets_at", "PerDay"],
        ),
        (
            Turn::overloaded(),
            [529, 503, 503, 503],
            ["overloaded_error", "overloaded", "overloaded", "UNAVAILABLE"],
        ),
        (
            Turn::server_error(),
            [500, 500, 500, 500],
            ["api_error", "server_error", "server_error", "INTERNAL"],
        ),
        (
            Turn::auth(),
            [401, 401, 401, 400],
            ["authentication_error", "invalid_api_key", "invalid_api_key", "API_KEY_INVALID"],
        ),
        (
            Turn::forbidden(),
            [403, 403, 403, 403],
            ["permission_error", "permission_denied", "permission_denied", "PERMISSION_DENIED"],
        ),
        (
            Turn::no_such_model(),
            [404, 404, 404, 404],
            ["not_found_error", "model_not_found", "model_not_found", "NOT_FOUND"],
        ),
        (
            Turn::context_overflow(),
            [400, 400, 400, 400],
            ["too long", "context_length_exceeded", "context_length", "exceeds"],
        ),
        (
            Turn::no_credit(),
            [400, 429, 429, 429],
            ["credit", "insufficient_quota", "insufficient_quota", "quota"],
        ),
    ];
    for (turn, statuses, words) in cases {
        let model = Model::start(Script::new([turn.times(usize::MAX)]));
        for (((path, body), status), word) in questions("Go.").iter().zip(statuses).zip(words) {
            let heard = ask(&model, path, body).unwrap();
            assert_eq!(heard.status, status, "{path}: {}", heard.body);
            assert!(heard.body.contains(word), "{path}: {word} in {}", heard.body);
            assert_eq!(
                heard.headers.contains("retry-after: 7"),
                word.starts_with("rate") || word == "RetryInfo"
            );
        }
    }
}

#[test]
fn a_held_turn_waits_for_the_test() {
    let model = Model::start(Script::new([Turn::say("first").held(), Turn::say("second").held()]));
    let (path, body) = &questions("Go.")[2];
    let mut first = send(&model, path, body);
    assert_eq!(model.wait_for(1)[0].ending, ConnectionEnd::Open);
    model.let_one_pass();
    let mut text = String::new();
    first.read_to_string(&mut text).unwrap();
    assert!(text.contains("first"));
    drop(send(&model, path, body));
    model.wait_until("the second to be left", |all| {
        all.get(1).is_some_and(|request| request.ending == ConnectionEnd::Left)
    });
}

#[test]
fn network_faults_of_the_model_server_are_as_scripted() {
    let script = [
        Turn::reset(),
        Turn::say(LONG).then_reset(),
        Turn::say(LONG).then_end(),
        Turn::say(LONG).then_hang(),
        Turn::hang(),
    ];
    let model = Model::start(Script::new(script));
    let (path, body) = &questions("Go.")[1];
    assert!(ask(&model, path, body).is_err());
    assert!(ask(&model, path, body).is_err());
    assert!(!ask(&model, path, body).unwrap().body.contains("response.completed"));
    let mut half = send(&model, path, body);
    let mut begun = [0; 20];
    half.read_exact(&mut begun).unwrap();
    let _silent = send(&model, path, body);
    model.wait_for(5);
    drop(half);
    model.wait_until("the half to be left", |all| all[3].ending == ConnectionEnd::Left);
    let endings: Vec<ConnectionEnd> = model.turns().iter().map(|request| request.ending).collect();
    assert_eq!(
        endings,
        [
            ConnectionEnd::Broken,
            ConnectionEnd::Broken,
            ConnectionEnd::Broken,
            ConnectionEnd::Left,
            ConnectionEnd::Open
        ]
    );
    // Dropped with a hanging request: its thread ends too, or this test would never end.
    drop(model);
}

#[test]
fn lanes_have_scripts_of_their_own() {
    let model = Model::start(Script::new([Turn::say("mine")]));
    let url =
        model.lane("b", Script::new([Turn::say("of b").usage(Usage { input: 7, output: 3, cached: 2 })]));
    assert_eq!(url, format!("{}/lane/b", model.url()));
    let (path, body) = &questions("Go.")[2];
    let other = ask(&model, &format!("/lane/b{path}"), body).unwrap();
    assert!(other.body.contains("of b") && other.body.contains(r#""prompt_tokens":9"#), "{}", other.body);
    assert!(ask(&model, path, body).unwrap().body.contains("mine"));
    assert_eq!(ask(&model, &format!("/lane/c{path}"), body).unwrap().status, 404);
    let lanes: Vec<String> = model.turns().into_iter().map(|request| request.lane).collect();
    assert_eq!(lanes, ["b", ""]);
}

#[test]
fn a_connection_is_used_again_and_bodies_may_come_in_chunks() {
    let model = Model::start(Script::new([Turn::say("one"), Turn::say("two")]));
    let (path, body) = &questions("Go.")[0];
    let mut body = body.clone();
    body["stream"] = false.into();
    let body = body.to_string();
    let (a, b) = body.split_at(30);
    let request = format!(
        "POST {path} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    let mut stream = TcpStream::connect(model.address()).unwrap();
    write!(stream, "{request}{request}HEAD / HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 3, "{text}");
    assert!(text.contains("one") && text.contains("two"), "{text}");
}
