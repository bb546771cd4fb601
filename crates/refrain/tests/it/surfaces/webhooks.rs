//! Webhooks: they receive a loop's notifications, signed and at least once; one that is down, slow or hostile cannot
//! affect the loop.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;

use rstest::rstest;
use serde_json::json;
use testkit::{CannedResponse, ReceivedRequest, Receiver, Run, Sandbox};

use crate::{CLAIM, sandbox};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A sandbox whose loops notify this URL, with the secret configured.
fn telling(url: &str, more: &str) -> Sandbox {
    let sandbox = sandbox();
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    testkit::write(&config.join("config.toml"), format!("[notify]\nwebhook = \"{url}\"\n{more}"));
    put_secret(&sandbox, SECRET, 0o600);
    sandbox
}

fn put_secret(sandbox: &Sandbox, secret: &str, mode: u32) {
    let path = sandbox.root().join("home/config/refrain/webhook-secret");
    testkit::write(&path, format!("{secret}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a loop of one iteration to its end.
fn run(sandbox: &Sandbox, name: &str, script: &str) -> Run {
    let agent = sandbox.agent(name, script);
    sandbox.refrain(&["start", "--command", &agent, "--name", name, "--quiet", "-m", "1", "p"])
}

/// The loop and its status, of each that came.
fn told(received: &[ReceivedRequest]) -> Vec<(String, String)> {
    let word = |it: &ReceivedRequest, key: &str| it.json[key].as_str().unwrap_or_default().to_owned();
    received.iter().map(|it| (word(it, "id"), word(it, "status"))).collect()
}

fn pair(id: &str, status: &str) -> (String, String) {
    (id.to_owned(), status.to_owned())
}

/// A URL without a listener, and its address.
fn nowhere() -> (String, std::net::SocketAddr) {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    (format!("http://{address}/loops"), address)
}

#[test]
fn an_ntfy_topic_gets_needs_and_ends_as_messages() {
    let receiver = Receiver::start([CannedResponse::Status(503)]);
    let sandbox = sandbox();
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    testkit::write(&config.join("config.toml"), format!("[notify]\nntfy = \"{}\"\n", receiver.url()));
    run(&sandbox, "done", CLAIM).with_code(0);
    let received = receiver.wait_for(2);
    assert_eq!(received[1].title, "done unverified (project)", "the first was not taken");
    assert!(received[1].body.starts_with("the agent made its promise; unverified"), "{received:#?}");
    let fails = sandbox.agent("fails", "exit 1");
    sandbox.refrain(&["start", "--command", &fails, "--name", "weak", "-q", "p"]).with_code(14);
    let received = receiver.wait_for(3);
    let last = &received[2];
    assert_eq!((last.title.as_str(), last.priority.as_str()), ("weak needs you (project)", "high"));
    assert!(last.body.contains("refrain"), "what to type next: {last:#?}");
}

#[rstest]
#[case::watched(&["--worktree"])]
#[case::detached(&["--worktree", "--detach"])]
fn a_loop_in_a_worktree_of_its_own_notifies_and_is_exported(#[case] place: &[&str]) {
    let (webhook, collector) = (Receiver::start([]), Receiver::start([]));
    let sandbox = telling(&webhook.url(), &format!("[telemetry]\nendpoint = \"{}\"\n", collector.base()));
    let agent = sandbox.agent("agent", CLAIM);
    let words = ["start", "--command", &agent, "--name", "job", "-q", "-m", "1"];
    sandbox.refrain(&[&words[..], place, &["p"]].concat()).with_code(0);
    assert_eq!(told(&webhook.wait_for(1)), [pair("job", "completed")]);
    collector.wait_for(1);
}

#[test]
fn every_end_is_sent_once_and_signed() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "");
    let says = "echo '<iteration-summary>did it</iteration-summary>'";
    let start = run(&sandbox, "done", &format!("{says}\n{CLAIM}")).with_code(0);
    assert_eq!(start.stderr, "");
    run(&sandbox, "capped", "true").with_code(10);
    let blocked = sandbox.agent("fails", "exit 1");
    sandbox.refrain(&["start", "--command", &blocked, "--name", "weak", "-q", "p"]).with_code(14);
    let sleeps = sandbox.agent("sleeps", "echo x > $NOTES/up; exec sleep 1000");
    sandbox.refrain(&["start", "--command", &sleeps, "--name", "gone", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up");
    sandbox.refrain(&["cancel", "gone", "--now"]).with_code(0);
    let received = receiver.wait_for(4);
    let expected = [pair("done", "completed"), pair("capped", "iteration-cap"), pair("weak", "blocked")];
    assert_eq!(told(&received), [&expected[..], &[pair("gone", "cancelled")]].concat());
    for it in &received {
        assert!(it.is_signed_with(SECRET) && !it.is_signed_with("fedcba9876543210"), "{it:#?}");
        assert_eq!((&it.json["type"], &it.json["key"]), (&json!("loop.ended"), &json!(it.id)));
    }
    let first = &received[0].json;
    assert_eq!((&first["schema"], &first["project"]), (&json!(1), &json!("project")));
    assert_eq!((&first["verified"], &first["summary"]), (&json!(null), &json!("did it")));
    assert_eq!(first["reason"], "the agent made its promise; unverified, as no gate checks it");
    let ended = sandbox.journal("done").into_iter().find(|it| it["event"]["type"] == "loop.ended").unwrap();
    assert_eq!((&first["seq"], &first["at"]), (&ended["seq"], &ended["at"]));
    assert!(received[2].json["needs"].as_str().unwrap().contains("refrain resume weak"));
    sandbox.no_process_is_left();
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    assert_eq!(receiver.received().len(), 4, "nothing is owed");
}

#[test]
fn a_refused_webhook_is_sent_again_under_the_same_key() {
    let receiver = Receiver::start([CannedResponse::Status(500), CannedResponse::HangUp]);
    let sandbox = telling(&receiver.url(), "");
    run(&sandbox, "job", CLAIM).with_code(0);
    // On a machine that is busy the last try may be left for later.
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    let received = receiver.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|it| it.id == received[0].id && it.is_signed_with(SECRET)), "{received:#?}");
}

#[test]
fn an_unreachable_webhook_harms_nothing_and_is_sent_later() {
    let (url, address) = nowhere();
    let sandbox = telling(&url, "");
    let start = run(&sandbox, "job", CLAIM).with_code(0);
    assert_eq!(start.stderr.lines().count(), 1, "{}", start.stderr);
    assert!(start.stderr.contains("the webhook was not told") && start.stderr.contains("resume --all"));
    assert_eq!(sandbox.status("job")["status"], "completed");
    sandbox.refrain(&["verify", "job"]).with_code(0);
    // Events from before the webhook was configured are not sent.
    let all = || sandbox.refrain(&["resume", "--all"]).with_code(0);
    assert!(all().stderr.contains("the webhook was not told"));
    let receiver = Receiver::start_at(address, []);
    assert_eq!(all().stderr, "");
    assert_eq!(told(&receiver.received()), [pair("job", "completed")]);
    assert_eq!(all().stderr, "");
    assert_eq!(receiver.received().len(), 1, "it was told");
}

#[test]
fn the_end_of_a_plan_is_sent_and_those_of_its_tasks_are_not() {
    let (url, address) = nowhere();
    let sandbox = telling(&url, "");
    let tasks =
        r#"{"tag": "x", "tasks": [{"id": 1, "title": "One", "status": "pending", "depends_on": []}]}"#;
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    testkit::write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent = sandbox.agent("worker", "echo x > made; echo TASK_COMPLETE");
    let plan = [
        "plan",
        "run",
        "--tag",
        "x",
        "--command",
        &agent,
        "--name",
        "x",
        "--verify",
        "test -e README.md",
        "-q",
    ];
    let run = sandbox.refrain(&plan).with_code(0);
    assert!(run.stderr.contains("the webhook was not told"), "{}", run.stderr);
    let receiver = Receiver::start_at(address, []);
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    let received = receiver.received();
    assert_eq!(told(&received), [pair("x", "completed")]);
    assert_eq!(
        (&received[0].json["type"], &received[0].json["iteration"]),
        (&json!("plan.ended"), &json!(null))
    );
    assert!(received[0].is_signed_with(SECRET));
}

#[test]
fn a_notification_interrupted_by_a_kill_is_sent_again() {
    let receiver = Receiver::start([CannedResponse::Hang]);
    let sandbox = telling(&receiver.url(), "");
    let agent = sandbox.agent("agent", CLAIM);
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "--quiet", "p"]);
    receiver.wait_for(1);
    session.kill();
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    let received = receiver.received();
    assert_eq!((received.len(), &received[0].id), (2, &received[1].id));
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn the_next_runner_sends_owed_notifications_in_order() {
    let (url, address) = nowhere();
    let sandbox = telling(&url, "");
    run(&sandbox, "job", "true").with_code(10);
    let receiver = Receiver::start_at(address, []);
    sandbox.refrain(&["resume", "job", "-m", "2", "--quiet"]).with_code(10);
    let received = receiver.received();
    assert_eq!(told(&received), [pair("job", "iteration-cap"), pair("job", "iteration-cap")]);
    assert!(received[0].json["seq"].as_u64() < received[1].json["seq"].as_u64(), "{received:#?}");
}

#[test]
fn loops_from_before_the_webhook_are_not_reported() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "");
    let config = sandbox.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::remove_file(&config).unwrap();
    run(&sandbox, "old", "true").with_code(10);
    testkit::write(&config, text);
    sandbox.refrain(&["resume", "--all"]).with_code(0);
    sandbox.refrain(&["resume", "old", "-m", "2", "--quiet"]).with_code(10);
    let seqs: Vec<_> = receiver.received().iter().map(|it| it.json["seq"].as_u64().unwrap()).collect();
    let last =
        sandbox.journal("old").iter().rev().find(|it| it["event"]["type"] == "loop.ended").unwrap()["seq"]
            .clone();
    assert_eq!(seqs, [last.as_u64().unwrap()]);
}

#[rstest]
#[case::hangs(CannedResponse::Hang, "timed out")]
#[case::refuses(CannedResponse::Status(401), "it answered 401")]
#[case::is_elsewhere(CannedResponse::Redirect("http://127.0.0.1:1/theirs".to_owned()), "it answered 307")]
fn a_refusing_receiver_is_mentioned_once(#[case] answer: CannedResponse, #[case] says: &str) {
    let is_final = !matches!(answer, CannedResponse::Hang);
    let receiver = Receiver::start(vec![answer; 9]);
    let sandbox = telling(&receiver.url(), "");
    let start = run(&sandbox, "job", CLAIM).with_code(0);
    assert_eq!(start.stderr.lines().count(), 1, "{}", start.stderr);
    assert!(
        start.stderr.contains("the webhook was not told") && start.stderr.contains(says),
        "{}",
        start.stderr
    );
    assert!(!is_final || receiver.received().len() == 1, "no is no");
    assert!(!start.stderr.contains(&receiver.url()), "a URL may be private");
}

#[test]
fn without_a_secret_that_is_its_owners_alone_nothing_is_sent() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "");
    let agent = sandbox.agent("agent", "env > $NOTES/env; echo '<promise>COMPLETE</promise>'");
    let start = ["start", "--command", &agent, "--quiet", "p"];
    for (secret, mode, says) in [
        (SECRET, 0o644, "can be read by others"),
        ("short", 0o600, "the secret is no 16 bytes long"),
        ("", 0o600, "the secret is no 16 bytes long"),
    ] {
        put_secret(&sandbox, secret, mode);
        let run = sandbox.refrain(&start).with_code(0);
        assert!(
            run.stderr.contains("note: the webhook gets nothing") && run.stderr.contains(says),
            "{}",
            run.stderr
        );
    }
    fs::remove_file(sandbox.root().join("home/config/refrain/webhook-secret")).unwrap();
    let run = sandbox.refrain(&start).with_code(0);
    assert!(run.stderr.contains("there is no secret to sign with; REFRAIN_WEBHOOK_SECRET"), "{}", run.stderr);
    assert_eq!(receiver.received().len(), 0);

    let other = "another secret of some length";
    sandbox.command(&start).env("REFRAIN_WEBHOOK_SECRET", other).run().with_code(0);
    assert!(receiver.received()[0].is_signed_with(other));
    assert!(!sandbox.note("env").contains(other), "no agent gets it");
}

#[test]
fn a_projects_file_counts_once_it_is_trusted_and_a_secret_is_no_key_of_it() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "");
    let own = sandbox.root().join("home/config/refrain/config.toml");
    fs::remove_file(own).unwrap();
    let file = sandbox.project().join("refrain.toml");
    testkit::write(&file, format!("[notify]\nwebhook = \"{}\"\n", receiver.url()));
    run(&sandbox, "one", CLAIM).with_code(0);
    assert_eq!(receiver.received().len(), 0);
    sandbox.trust();
    run(&sandbox, "two", CLAIM).with_code(0);
    assert_eq!(told(&receiver.received()), [pair("two", "completed")]);
    testkit::write(&file, "[notify]\nwebhook-secret = \"x\"\n");
    sandbox.refrain(&["trust", "--show"]);
    let shown = sandbox.refrain(&["config", "show"]);
    assert!(shown.code != 0 || shown.stdout.contains("not trusted"), "{shown:?}");
}

#[test]
fn a_long_wait_is_sent_while_it_lasts() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "wait-longer-than = \"30m\"\n");
    let tell =
        sandbox.agent("tell", "{ echo \"$REFRAIN_NOTIFY_ID $REFRAIN_NOTIFY_STATUS\"; cat; } >> $NOTES/told");
    let limit = r#"cat > /dev/null
printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' $(( $(date +%s) + 7200 ))
printf '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"s","result":"limit","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},"terminal_reason":"api_error","api_error_status":429}\n'
exit 1"#;
    let agent = sandbox.agent("claude", limit);
    let start = ["start", "--command", &agent, "--name", "job", "--detach", "--notify-command", &tell, "p"];
    sandbox.refrain(&start).with_code(0);
    let received = receiver.wait_for(1);
    assert_eq!(
        (&received[0].json["type"], &received[0].json["status"]),
        (&json!("loop.waits"), &json!("waiting"))
    );
    assert_eq!(received[0].json["wait_until"], sandbox.status("job")["wait"]["until"]);
    assert!(sandbox.wait_for_note("told").starts_with("job waiting\nRefrain loop job: waiting\n"));
    sandbox.refrain(&["cancel", "job"]).with_code(0);
    let received = receiver.wait_for(2);
    assert_eq!(received[1].json["status"], "cancelled");
    sandbox.no_process_is_left();
    assert_eq!(
        sandbox.note("told").lines().count(),
        3,
        "who stops a loop is not told so: {}",
        sandbox.note("told")
    );
}

#[test]
fn webhook_payloads_contain_no_secret_of_the_agents() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url(), "");
    let agent =
        sandbox.agent("agent", "echo \"<iteration-summary>logged in with $PASSWORD</iteration-summary>\"");
    let secret = "PASSWORD=hunter22hunter22";
    sandbox.refrain(&["start", "--command", &agent, "--env", secret, "-q", "-m", "1", "p"]).with_code(10);
    let summary = receiver.received()[0].json["summary"].as_str().unwrap().to_owned();
    assert!(summary.starts_with("logged in with ") && !summary.contains("hunter22"), "{summary}");
}

#[test]
fn a_receiver_without_tls_gets_nothing() {
    let receiver = Receiver::start([]);
    let sandbox = telling(&receiver.url().replace("http:", "https:"), "");
    let start = run(&sandbox, "job", CLAIM).with_code(0);
    assert!(start.stderr.contains("the webhook was not told"), "{}", start.stderr);
    assert_eq!(receiver.received().len(), 0);
}
