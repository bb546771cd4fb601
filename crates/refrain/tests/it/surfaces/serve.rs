//! `refrain serve`, as programs and browsers use it: over a socket, byte for byte.

mod client;
mod door;
mod pages;
mod parity;
mod tls;

use std::fs;
use std::io::Write;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, Signal, eventually};

use self::client::TestServer;
use crate::{CLAIM, sandbox};

/// An agent that says a line, and works until the test opens the gate `go`; then it claims.
fn waiting(sandbox: &Sandbox) -> String {
    let _ = sandbox.gate("go");
    sandbox.agent(
        "agent",
        &format!("echo \"at work, iteration $REFRAIN_ITERATION\"\necho x >> $NOTES/ran\nread -r _ < $GATES/go\n{CLAIM}"),
    )
}

/// A loop that was started over HTTP, in the sandbox's project: its path in the API.
fn started(sandbox: &Sandbox, served: &TestServer) -> String {
    let agent = waiting(sandbox);
    let asked = json!({"goal": "Mend it.", "command": agent, "name": "job"});
    let started = served.posts("/api/v1/loops", asked).with_status(200).json();
    assert_eq!(started["loop"]["id"], "job");
    let project = started["loop"]["project"].as_str().unwrap();
    sandbox.wait_for_note("ran");
    format!("/api/v1/projects/{project}/loops/job")
}

#[cfg(target_os = "linux")]
#[test]
fn a_runner_that_has_ended_leaves_no_dead_process_with_the_server() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let agent = sandbox.agent("agent", CLAIM);
    let asked = json!({"goal": "Mend it.", "command": agent, "name": "job"});
    served.posts("/api/v1/loops", asked).with_status(200);
    sandbox.wait_for_status("job", "completed");
    let parent = format!("PPid:\t{}\n", served.pid());
    eventually("the server has no child", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let statuses = processes.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
        (!statuses.into_iter().any(|status| status.contains(&parent))).then_some(())
    });
    served.ends();
}

#[test]
fn a_loop_is_started_seen_steered_and_stopped_and_outlives_the_server() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let job = started(&sandbox, &served);
    let status = eventually("it is what the command line prints", || {
        let status = served.gets(&job).with_status(200).json();
        (status == sandbox.status("job")).then_some(status)
    });
    assert_eq!((&status["id"], &status["status"]), (&json!("job"), &json!("running")));
    let listed = served.gets("/api/v1/loops?status=running,waiting&text=JOB").with_status(200).json();
    assert_eq!(listed["loops"][0]["loop"]["id"], "job");
    assert_eq!(served.gets("/api/v1/loops?status=completed").json()["loops"], json!([]));
    served.gets("/api/v1/loops?status=bogus").with_status(400).says("accepted: running, waiting");

    let activity = served.gets(&format!("{job}/attempts/1/activity")).with_status(200).json();
    assert!(activity["lines"][0]["text"].as_str().unwrap().contains("at work, iteration 1"), "{activity:#}");
    let log = served.gets(&format!("{job}/attempts/1/logs/output?from=3&limit=4")).with_status(200).json();
    assert_eq!((&log["text"], &log["from"], &log["next"]), (&json!("work"), &json!(3), &json!(7)));
    assert!(served.gets(&format!("{job}/attempts/1/prompt")).with_status(200).body.starts_with("Mend it."));
    let journal = served.gets(&format!("{job}/journal?from=1&limit=1")).with_status(200).body;
    assert!(journal.contains("loop.started") && journal.lines().count() == 1, "{journal}");

    served.posts(&format!("{job}/steer"), json!({"text": "Mind the dates."})).with_status(200);
    assert!(sandbox.event_names("job").contains(&"asked".to_owned()));
    served.posts(&format!("{job}/pause"), json!({"now": true})).with_status(200);
    sandbox.wait_for_status("job", "paused");
    served.posts(&format!("{job}/resume"), json!({"max_iterations": 30})).with_status(200);
    let resumed = sandbox.wait_for_status("job", "running");
    assert_eq!(resumed["max_iterations"], 30);

    served.gets("/api/v1/metrics").with_status(200).says("refrain_loops{status=\"running\"} 1");

    served.ends();
    assert_eq!(sandbox.status("job")["status"], "running", "it continues without the server");
    let served = TestServer::begin(&sandbox, &[]);
    served.posts(&format!("{job}/cancel"), json!({"now": true})).with_status(200);
    sandbox.wait_for_status("job", "cancelled");
    served.posts(&format!("{job}/archive"), json!({})).with_status(200);
    served.posts(&format!("{job}/resume"), json!({})).with_status(409).says("cancelled");
    served.ends();
    sandbox.no_process_is_left();
}

#[test]
fn events_are_streamed_and_none_is_missed_after_a_reconnect() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let mut stream = served.listens(None);
    assert_eq!(stream.next().event, "hello");
    let job = started(&sandbox, &served);
    let begun = stream.until("recorded", |data| data["name"] == "loop.started");
    assert_eq!(begun.data["loop"], "job");
    let left_off = stream.until("recorded", |data| data["name"] == "attempt.spawned");
    stream.until("printed", |data| data["attempt"] == "1");
    drop(stream);
    served.posts(&format!("{job}/steer"), json!({"text": "Mind the dates."})).with_status(200);

    let long = served.posts(&format!("{job}/steer"), json!({"text": "x".repeat(8_193)}));
    long.with_status(400).says("8193 bytes of steering are too many; accepted: 1 to 8192");

    let mut stream = served.listens(Some(&left_off.id));
    let next = stream.until("recorded", |_| true);
    assert_eq!(
        (&next.data["name"], &next.data["seq"]),
        (&json!("asked"), &json!(left_off.data["seq"].as_u64().unwrap() + 1))
    );
    drop(stream);

    // Another server knows nothing of the numbers of the first, but of the journals.
    served.ends();
    let served = TestServer::begin(&sandbox, &[]);
    let mut stream = served.listens(Some(&left_off.id));
    stream.until("recorded", |data| data["name"] == "asked");
    assert_eq!(served.gets("/api/v1/projects").with_status(200).json().as_array().unwrap().len(), 1);
    served.ends();
}

#[test]
fn a_stream_that_breaks_while_it_catches_up_loses_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let names = sandbox.event_names("job");
    let served = TestServer::begin(&sandbox, &[]);
    // Another subscriber keeps the watch running.
    let mut other = served.listens(None);
    assert_eq!(other.next().event, "hello");
    let begun: jiff::Timestamp = sandbox.journal("job")[0]["at"].as_str().unwrap().parse().unwrap();
    let before = begun.as_millisecond() - 60_000;
    let after = |id: &str| {
        let mut stream = served.listens(Some(id));
        let hello = stream.next();
        assert_eq!(hello.event, "hello");
        (stream, hello)
    };
    let all = |id: &str| -> Vec<String> {
        let (mut stream, _) = after(id);
        let mut found = Vec::new();
        while found.last() != names.last() {
            found.push(stream.next().data["name"].as_str().unwrap().to_owned());
        }
        found
    };
    // An id of another server, as before a restart; then the id of the first event; then one from the middle.
    let old = format!("deadbeef-5-{before}");
    assert_eq!(all(&old), names);
    let (_, hello) = after(&old);
    assert_eq!(all(&hello.id), names);
    let (mut stream, _) = after(&old);
    let third = (0..3).map(|_| stream.next()).last().unwrap();
    drop(stream);
    let rest = all(&third.id);
    assert!(rest.ends_with(&names[3..]), "{rest:?}");
    // After the last of them, only new events come.
    let (mut stream, _) = after(&old);
    let last = (0..names.len()).map(|_| stream.next()).last().unwrap();
    drop(stream);
    let (mut stream, hello) = after(&last.id);
    assert!(!hello.id.starts_with("none"), "{}", hello.id);
    sandbox.refrain(&["start", "--command", &agent, "--name", "next", "p"]).with_code(0);
    assert_eq!(stream.until("recorded", |_| true).data["loop"], "next");
    drop((stream, other));
    served.ends();
}

#[rstest]
#[case("/api/v1/projects/nothing/loops/job", 404)]
#[case("/api/v1/projects/PROJECT/loops/nothing", 404)]
#[case("/api/v1/projects/PROJECT/loops/..", 400)]
#[case("/api/v1/projects/PROJECT/loops/%2e%2e%2f%2e%2e", 400)]
#[case("/api/v1/projects/..%2f..%2fetc/loops/job", 404)]
#[case("/api/v1/projects/PROJECT/loops/job%00", 400)]
#[case("/api/v1/projects/PROJECT/loops/%ff", 400)]
#[case("/api/v1/projects/PROJECT/loops/JOB", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/..%2f..%2fjournal.jsonl/prompt", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/0/prompt", 404)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/4294967296/prompt", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1.0/prompt", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1/logs/..%2f..%2fprompt.md", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1/logs/gate:..%2f..%2fprompt", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1/logs/output?from=-1", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1/logs/output?limit=1048577", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/attempts/1/logs/output?path=/etc/passwd", 400)]
#[case("/api/v1/projects/PROJECT/loops/job/journal?limit=0", 400)]
#[case("/api/v1/loops?limit=100000", 400)]
#[case("/api/v1/loops?colour=red", 400)]
#[case("/../../etc/passwd", 404)]
#[case("/api/v1/../../etc/passwd", 404)]
fn a_trick_in_a_parameter_gets_a_clear_answer(#[case] path: &str, #[case] status: u16) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "Mend it.", "--command", &agent, "--name", "job", "--quiet"]).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let projects = served.gets("/api/v1/projects").json();
    let path = path.replace("PROJECT", projects[0]["name"].as_str().unwrap());
    let reply = served.gets(&path).with_status(status);
    let said = reply.json();
    let line = said["error"].as_str().unwrap();
    assert!(!line.is_empty() && !line.contains('\n') && said["code"].is_string(), "{line:?}");
    served.ends();
}

#[rstest]
#[case(r#"{"goal": ""}"#, "goal")]
#[case(r#"{"goal": "x", "max_iterations": 0}"#, "max_iterations 0")]
#[case(r#"{"goal": "x", "workspace": "/etc"}"#, "workspace /etc")]
#[case(r#"{"goal": "x", "budget": 1}"#, "budget: there is no such parameter; accepted: agent, ")]
#[case(r#"{"goal": 7}"#, "goal 7: accepted: texts")]
#[case("{}", "goal is missing")]
#[case(r#"{"goal": "x""#, "the body ends in the middle")]
#[case("[]", "the body is no object")]
#[case("\u{1b}[2J", "the body is no JSON from line 1, column 1 on")]
fn a_start_that_cannot_be_is_refused_by_name_and_leaves_nothing(#[case] body: &str, #[case] says: &str) {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    served.sends("/api/v1/loops", body).with_status(400).says(says);
    assert_eq!(served.gets("/api/v1/loops").json()["loops"], json!([]));
    served.ends();
}

#[test]
fn oversized_and_endless_requests_do_not_delay_other_clients() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let token = served.token();
    let head = |more: &str| {
        format!(
            "POST /api/v1/loops HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{more}\r\n",
            served.host()
        )
    };
    served.says(&head("Content-Length: 99999999\r\n")).with_status(413).says("too large");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    let endless = head("Transfer-Encoding: chunked\r\n") + &chunk.repeat(16) + "1\r\nx\r\n";
    served.says(&endless).with_status(413);
    let long = format!("GET /{} HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(1 << 17), served.host());
    assert!(matches!(served.says(&long).status, 414 | 431), "a head that is too large");

    // Some begin and never end, some say nothing, some go away in the middle.
    let mut held: Vec<_> = (0..40).map(|_| served.connects()).collect();
    for (n, stream) in held.iter_mut().enumerate() {
        match n % 3 {
            0 => stream.write_all(head("Content-Length: 10\r\n").as_bytes()).unwrap(),
            1 => stream.write_all(b"GET /api").unwrap(),
            _ => {}
        }
    }
    held.truncate(30);
    served.gets("/api/v1/loops").with_status(200);
    served.ends();
}

#[test]
fn a_damaged_loop_is_named_and_the_others_are_shown() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    for name in ["good", "bad"] {
        sandbox.refrain(&["start", "Mend it.", "--command", &agent, "--name", name, "--quiet"]).with_code(0);
    }
    let journal = sandbox.loop_dir("bad").join("journal.jsonl");
    let bytes = fs::read(&journal).unwrap();
    testkit::write(&journal, [b"garbage\n", &bytes[..]].concat());
    let served = TestServer::begin(&sandbox, &[]);
    let listed = served.gets("/api/v1/loops").with_status(200).json();
    let ids: Vec<_> =
        listed["loops"].as_array().unwrap().iter().map(|row| row["loop"]["id"].clone()).collect();
    assert_eq!(ids, [json!("good")]);
    assert!(listed["unread"][0].as_str().unwrap().contains("bad"), "{listed:#}");
    let project = listed["loops"][0]["project"].as_str().unwrap();
    served.gets(&format!("/api/v1/projects/{project}/loops/bad")).with_status(500).says("journal.jsonl");
    served.gets(&format!("/api/v1/projects/{project}/loops/good")).with_status(200);
    served.ends();
}

#[rstest]
#[case(&["--host", "0.0.0.0"], "--behind-proxy")]
#[case(&["--host", "0.0.0.0"], "--tls-cert FILE with --tls-key FILE")]
#[case(&["--host", "nowhere"], "nowhere")]
#[case(&["--port", "65536"], "65536")]
#[case(&["--behind-proxy", "loops.example.org"], "https://loops.example.org")]
#[case(&["--host", "0.0.0.0", "--behind-proxy", "http://loops.example.org"], "https://loops.example.org")]
#[case(&["--root", "nowhere"], "accepted: a folder that is there")]
fn invalid_serve_options_are_refused_and_nothing_changes(#[case] more: &[&str], #[case] says: &str) {
    let sandbox = sandbox();
    let before = sandbox.snapshot();
    let run = sandbox.refrain(&[&["serve"], more].concat()).with_code(2);
    assert!(run.stderr.contains(says), "{}", run.stderr);
    assert_eq!(sandbox.snapshot(), before);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let port = served.port().to_string();
    let run = sandbox.refrain(&["serve", "--port", &port]).with_code(1);
    assert!(run.stderr.contains(&port) && run.stderr.contains("--port 0"), "{}", run.stderr);
    served.ends();
}

#[test]
fn a_program_inside_an_attempt_gets_no_token() {
    let sandbox = sandbox();
    let refrain = env!("CARGO_BIN_EXE_refrain");
    let script = format!(
        "{refrain} serve token > $NOTES/token 2>&1\n{refrain} serve --port 0 >> $NOTES/token 2>&1\n{CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    sandbox.refrain(&["start", "Mend it.", "--command", &agent, "--name", "job", "--quiet"]).with_code(0);
    let said = sandbox.note("token");
    let refused = "refrain: loop job cannot open a server from inside an attempt";
    assert_eq!(said.matches(refused).count(), 2, "{said}");
    assert!(!sandbox.root().join("home/state/refrain/serve").exists(), "no token was made: {said}");
}

#[test]
fn tools_are_called_over_http_as_over_pipes() {
    let sandbox = sandbox();
    let served = TestServer::begin(&sandbox, &[]);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}});
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let begun = served.tells("/mcp", accept, &hello).with_status(200);
    let session = begun.header("mcp-session-id").expect("a session").to_owned();
    let answer = begun.sse_json();
    assert_eq!(answer["result"]["serverInfo"]["name"], "refrain", "{answer:#}");
    let more = format!("{accept}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    served.tells("/mcp", &more, &ready).with_status(202);
    let agent = waiting(&sandbox);
    let asked =
        json!({"name": "loop_start", "arguments": {"goal": "Mend it.", "command": agent, "name": "job"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked});
    let started = served.tells("/mcp", &more, &call).with_status(200).sse_json();
    assert_eq!(started["result"]["structuredContent"]["loop"]["id"], "job", "{started:#}");
    sandbox.wait_for_note("ran");
    let foreign = format!("{more}Origin: http://evil.example\r\n");
    served.tells("/mcp", &foreign, &call).with_status(403);
    served.ends();
    assert_eq!(sandbox.status("job")["status"], "running");
}

#[test]
fn the_server_ends_on_a_signal_despite_open_streams() {
    let sandbox = sandbox();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let served = TestServer::begin(&sandbox, &[]);
        let mut stream = served.listens(None);
        stream.next();
        served.ends_by(signal);
    }
}

/// Parts of a log are read one by one; a secret across the edge of two is in neither.
#[test]
fn a_secret_is_hidden_wherever_a_log_is_cut() {
    let sandbox = sandbox();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let line = "MIIEowIBAAKCAQEAx7Jm0dQ2b8Zt1kq9uE4Wv5rY3nH6pL0sX2cV8bN4mK7jF1gD\n";
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n", line.repeat(20));
    // The key lies across the first edge, the token across the second, in a line without an end.
    let fill = "all is well here\n".repeat(65_536 / 17 - 40);
    let text = format!("{fill}{key}and on\n");
    let long = "x".repeat(2 * 65_536 - text.len() - 20);
    let text = format!("{text}{long} {token} {long}\nthe end\n");
    let file = sandbox.root().join("log");
    testkit::write(&file, &text);
    let agent = sandbox.agent("agent", &format!("cat {}\n{CLAIM}", file.display()));
    sandbox.refrain(&["start", "Mend it.", "--command", &agent, "--name", "job", "--quiet"]).with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let project = served.gets("/api/v1/projects").json()[0]["name"].as_str().unwrap().to_owned();
    let attempt = format!("/api/v1/projects/{project}/loops/job/attempts/1");
    let at = text.find(&token).unwrap();
    let ends = |part: &serde_json::Value| part["next"].as_u64() >= part["total"].as_u64();
    for (what, step) in [("logs/output", 65_536), ("activity", 65_536), ("logs/output", 1_048_576)] {
        let (mut from, mut all) = (0, String::new());
        loop {
            let part =
                served.gets(&format!("{attempt}/{what}?from={from}&limit={step}")).with_status(200).json();
            all.push_str(&part.to_string());
            from = part["next"].as_u64().unwrap();
            if ends(&part) {
                break;
            }
        }
        assert!(
            all.contains("all is well here") && all.contains("and on") && all.contains("the end"),
            "{what}"
        );
        assert!(
            !all.contains("MIIEow") && !all.contains("ghp_") && !all.contains("P6q7R8"),
            "{what} by {step}"
        );
    }
    // Nor is a piece of it shown to a client that reads from the middle of it.
    for from in [at - 5, at + 2, at + 20, at + 38] {
        let part = served.gets(&format!("{attempt}/logs/output?from={from}&limit=30")).with_status(200);
        assert!(!part.body.contains("P6q7R8") && !part.body.contains("g7H8"), "{from}: {}", part.body);
    }
    served.ends();
}

#[test]
fn work_that_waits_for_a_person_is_approved_from_its_page_and_over_http() {
    let sandbox = sandbox();
    let agent =
        sandbox.agent("agent", &format!("printf '%s' \"$1\" > $NOTES/told\necho done > work.txt\n{CLAIM}"));
    let served = TestServer::begin(&sandbox, &[]);
    let asked =
        |name: &str| json!({"goal": "Mend it.", "command": agent, "name": name, "require_approval": true});
    let started = served.posts("/api/v1/loops", asked("job")).with_status(200).json();
    let project = started["loop"]["project"].as_str().unwrap().to_owned();
    let status = sandbox.wait_for_status("job", "blocked");
    let tree = status["approval"]["tree"].as_str().unwrap();
    let page = served.gets(&format!("/p/{project}/job")).with_status(200);
    page.says("<button class=\"main\">Approve</button>");
    page.says(&format!("name=\"tree\" value=\"{tree}\""));
    let asks = served.gets(&format!("/p/{project}/job/resume")).with_status(200);
    asks.says("Send back job?");
    asks.says("Its work is not approved");
    asks.says("What should it change?");
    let job = format!("/api/v1/projects/{project}/loops/job/approve");
    served.posts(&job, json!({"tree": "0000"})).with_status(409).says("waits for approval, not tree");
    served.posts(&job, json!({"tree": "; rm"})).with_status(400).says("hexadecimal");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    served.posts_with(&format!("/p/{project}/job/resume"), form, "text=Use+green.").with_status(303);
    let tree = testkit::eventually("the agent gets the text, and its work waits again", || {
        let status = sandbox.status("job");
        let tree = status["approval"]["tree"].as_str().filter(|_| status["status"] == "blocked");
        tree.filter(|_| sandbox.note("told").contains("Use green.")).map(str::to_owned)
    });
    // The page of the loop says why nothing was approved.
    let refused = served.posts_with(&format!("/p/{project}/job/approve"), form, "tree=0000").with_status(409);
    refused.says("id=\"refused\"");
    refused.says("waits for approval, not tree");
    refused.says("id=\"headbar\"");
    served.posts_with(&format!("/p/{project}/job/approve"), form, &format!("tree={tree}")).with_status(303);
    sandbox.wait_for_status("job", "completed");
    let page = served.gets(&format!("/p/{project}/job")).body;
    assert!(!page.contains("Approve") && page.contains("a person approved it"), "{page}");
    served.posts(&job, json!({})).with_status(409).says("completed");
    served.posts("/api/v1/loops", asked("two")).with_status(200);
    sandbox.wait_for_status("two", "blocked");
    served.posts(&format!("/api/v1/projects/{project}/loops/two/approve"), json!({})).with_status(200);
    sandbox.wait_for_status("two", "completed");
    served.ends();
}

#[test]
fn a_page_shows_a_loop_as_it_is_with_all_that_its_agent_printed_as_text() {
    let sandbox = sandbox();
    let agent = sandbox
        .agent("agent", &format!("printf '<script>alert(1)</script> \\033[31mred\\033[0m\\n'\n{CLAIM}"));
    sandbox
        .refrain(&["start", "Mend <b>it</b>.", "--command", &agent, "--name", "job", "--quiet"])
        .with_code(0);
    let served = TestServer::begin(&sandbox, &[]);
    let list = served.gets("/").with_status(200).body;
    assert!(list.contains("job") && list.contains("unverified") && !list.contains("<b>it"), "{list}");
    let project = served.gets("/api/v1/projects").json()[0]["name"].as_str().unwrap().to_owned();
    for path in [
        "",
        "/diff",
        "/gates",
        "/prompt",
        "/report",
        "/cancel",
        "/attempts/1/prompt",
        "/attempts/1/logs/output",
    ] {
        let page = served.gets(&format!("/p/{project}/job{path}")).with_status(200).body;
        assert!(
            !page.contains("<script>alert") && !page.contains('\u{1b}') && !page.contains("<b>it"),
            "{page}"
        );
        assert!(!page.contains(" style=") && !page.contains("onclick"), "{page}");
    }
    let page = served.gets(&format!("/p/{project}/job/attempts/1/logs/output")).body;
    assert!(page.contains("&lt;script&gt;") || page.contains("&#60;script&#62;"), "{page}");
    served.gets(&format!("/p/{project}/nothing")).with_status(404).says("nothing");
    served.gets("/style.css").with_status(200);
    served.gets("/?colour=red&limit=x").with_status(200);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let preview = served.posts_with("/start", form, "goal=Mend+it.&command=true&do=preview").with_status(200);
    preview.says("--command=true");
    assert_eq!(
        served.gets("/api/v1/loops").json()["loops"].as_array().unwrap().len(),
        1,
        "nothing was started"
    );
    served.posts_with(&format!("/p/{project}/job/cancel"), form, "now=true").with_status(409);
    served.posts_with(&format!("/p/{project}/job/explode"), form, "").with_status(400).says("explode");
    let started =
        served.posts_with("/start", form, &format!("goal=Mend+it.&command={agent}&name=two&do=start"));
    assert_eq!(started.header("location"), Some(format!("/p/{project}/two").as_str()), "{started:#?}");
    served.ends();
}
