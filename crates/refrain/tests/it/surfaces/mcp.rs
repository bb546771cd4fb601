//! `refrain mcp`, as agents use it: sessions with the protocol's own client.

mod client;
mod hostile;

use std::fs;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Sandbox, Signal, eventually};

use self::client::{Client, News};
use crate::{CLAIM, sandbox};

/// An agent that works until the test opens the gate `go`, and then claims.
fn waiting(sandbox: &Sandbox) -> String {
    sandbox
        .agent("agent", &format!("echo $REFRAIN_ITERATION >> $NOTES/began\nread -r _ < $GATES/go\n{CLAIM}"))
}

/// The names of all tools, in order.
pub(crate) fn tools_of(sandbox: &Sandbox) -> Vec<String> {
    let client = Client::of(sandbox);
    let tools = client.tools();
    client.leaves().with_code(0);
    names(&tools).into_iter().map(str::to_owned).collect()
}

/// Calls a tool, in a session of its own.
pub(crate) fn does(sandbox: &Sandbox, tool: &'static str, asked: Value) -> Value {
    let client = Client::of(sandbox);
    let told = client.does(tool, asked);
    client.leaves().with_code(0);
    told
}

/// Calls a tool that refuses, in a session of its own, and returns the error.
pub(crate) fn refuses(sandbox: &Sandbox, tool: &'static str, asked: Value) -> String {
    let client = Client::of(sandbox);
    let told = client.refuses(tool, asked);
    client.leaves().with_code(0);
    told
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_mcp_server_describes_its_tools_and_their_limits() {
    let sandbox = sandbox();
    let client = Client::of(&sandbox);
    let server = client.server();
    assert_eq!(server["serverInfo"]["name"], "refrain");
    assert!(server["instructions"].as_str().unwrap().contains("loop_start"), "{server:#}");
    let tools = client.tools();
    assert_eq!(
        names(&tools),
        [
            "loop_answer",
            "loop_diff",
            "loop_discard",
            "loop_list",
            "loop_merge",
            "loop_report",
            "loop_start",
            "loop_status",
            "loop_steer",
            "loop_stop",
            "plan_run"
        ]
    );
    let start = &tools[6]["inputSchema"];
    assert_eq!((&start["required"], &start["additionalProperties"]), (&json!(["goal"]), &json!(false)));
    assert_eq!(start["properties"]["goal"]["maxLength"], 10_000);
    assert_eq!(start["properties"]["max_iterations"]["maximum"], 200);
    assert_eq!(start["properties"]["max_cost_usd"]["maximum"], 50.0);
    assert!(tools.iter().all(|tool| tool["description"].is_string() && tool["outputSchema"].is_object()));
    assert_eq!(client.does("loop_list", json!({})), json!({"count": 0, "loops": []}));
    client.leaves().with_code(0);
    assert!(!sandbox.project().join(".refrain").exists(), "who only looks leaves nothing");
}

#[test]
fn an_unknown_tool_is_answered_with_the_one_to_call() {
    let sandbox = sandbox();
    let client = Client::of(&sandbox);
    let told = client.refuses("phantom_loop", json!({"action": "stop", "loop_id": "x"}));
    assert_eq!(
        told,
        "phantom_loop: each action is a tool of its own, without action; stop: call loop_stop with loop_id"
    );
    let told = client.refuses("phantom_loop", json!({}));
    assert!(["loop_start", "loop_status", "loop_list"].iter().all(|tool| told.contains(tool)), "{told}");
    let told = client.refuses("dance", json!({}));
    assert!(told.starts_with("dance: unknown tool; accepted: loop_answer, "), "{told}");
    client.leaves().with_code(0);
}

#[test]
fn a_loop_is_started_followed_to_its_end_and_reported() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!(
            "printf -- '---\\nloop_id: job\\nstatus: in-progress\\n---\\n# Progress\\n\\nHalf of it.\\n' > $REFRAIN_STATE_FILE\n\
             echo x >> $NOTES/ran\nread -r _ < $GATES/go\ntest $REFRAIN_ITERATION = 2 && {CLAIM}"
        ),
    );
    let go = sandbox.gate("go");
    let mut client = Client::of(&sandbox);
    let asked =
        json!({"goal": "Mend it.", "command": agent, "name": "job", "gates": ["made=test -e README.md"]});
    let started = client.does("loop_start", asked);
    assert_eq!(started["started"], true);
    let notes = started["notes"].as_array().unwrap();
    assert!(
        notes[0].as_str().unwrap().contains("max_cost_usd: generic does not say what it costs"),
        "{notes:?}"
    );
    let view = &started["loop"];
    assert_eq!((&view["id"], &view["goal"]), (&json!("job"), &json!("Mend it.")));
    assert_eq!((&view["max_iterations"], &view["max_tick_duration_minutes"]), (&json!(20), &json!(30.0)));
    let limits = sandbox.status("job")["limits"].clone();
    assert_eq!((&limits["timeout_ms"], &limits["timeout_grace_ms"]), (&json!(1_800_000), &json!(30_000)));

    // A loop like any other: its runner is detached, and every surface sees it.
    sandbox.wait_for_note("ran");
    assert_eq!(sandbox.status("job")["status"], "running");
    let status = client.does("loop_status", json!({"loop_id": "job"}));
    assert_eq!(status["frontmatter"], json!({"loop_id": "job", "status": "in-progress", "iteration": 1}));
    assert!(status["state_excerpt"].as_str().unwrap().contains("Half of it."), "{status:#}");
    assert_eq!(client.does("loop_list", json!({}))["loops"][0]["id"], "job");

    let waits = client.begins("loop_status", json!({"loop_id": "job", "wait_seconds": 60}));
    let News::Progress(first) = client.hears() else { panic!("progress is told") };
    assert_eq!((first.total, first.progress.floor()), (Some(20.0), 0.0));
    go.let_one_pass();
    let status = client.answer(waits);
    assert_eq!(status["loop"]["iteration_count"], 1, "it answers once the loop has got on: {status:#}");
    go.let_one_pass();
    let ended = eventually("the loop ends", || {
        let status = client.does("loop_status", json!({"loop_id": "job", "wait_seconds": 60}));
        (status["loop"]["status"] == "completed").then_some(status)
    });
    assert_eq!((&ended["loop"]["verified"], &ended["loop"]["needs"]), (&json!(true), &Value::Null));
    assert_eq!(ended["frontmatter"]["status"], "done", "one answer to one question");
    assert!(ended["loop"]["last_tick_at"].is_string() && ended["loop"]["finished_at"].is_string());
    let report = client.does("loop_report", json!({"loop_id": "job"}));
    assert_eq!((&report["report"]["id"], &report["report"]["status"]), (&json!("job"), &json!("completed")));

    assert_eq!(client.does("loop_list", json!({}))["count"], 0, "it is over");
    assert_eq!(client.does("loop_list", json!({"include_finished": true}))["count"], 1);
    let uris = client.resources();
    assert!(uris[0].ends_with("/loops/job/state") && uris[1].ends_with("/loops/job/journal"), "{uris:?}");
    assert!(client.reads(&uris[0]).unwrap().contains("Half of it."));
    let journal = client.reads(&uris[1]).unwrap();
    assert_eq!(journal.lines().count(), sandbox.journal("job").len());
    let page = client.reads(&format!("{}?from=2&limit=1", uris[1])).unwrap();
    let page: Value = serde_json::from_str(page.trim()).unwrap();
    assert_eq!(page["seq"], 2, "{page:#}");
    client.leaves().with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_loop_is_steered_and_stopped() {
    let sandbox = sandbox();
    let (agent, go) = (waiting(&sandbox), sandbox.gate("go"));
    let agent = sandbox.agent("again", &format!("{agent} | grep -v promise"));
    let client = Client::of(&sandbox);
    client.does("loop_start", json!({"goal": "Mend it.", "command": agent, "name": "job"}));
    sandbox.wait_for_note("began");
    let steered = client.does("loop_steer", json!({"loop_id": "job", "text": "Leave the parser alone."}));
    assert_eq!(steered, json!({"steered": true, "loop_id": "job"}));
    go.let_one_pass();
    eventually("the second iteration begins", || sandbox.note("began").contains('2').then_some(()));
    assert!(sandbox.kept_text("job", "0002", "prompt.md").contains("Leave the parser alone."));
    let stopped = client.does("loop_stop", json!({"loop_id": "job", "now": true}));
    assert_eq!((&stopped["stop_requested"], &stopped["loop_id"]), (&json!(true), &json!("job")));
    sandbox.wait_for_status("job", "cancelled");
    let again = client.does("loop_stop", json!({"loop_id": "job"}));
    assert_eq!(again, json!({"stop_requested": false, "loop_id": "job", "status": "cancelled"}));
    let late = client.refuses("loop_steer", json!({"loop_id": "job", "text": "Too late."}));
    assert!(late.contains("job cannot be steered"), "{late}");
    client.leaves().with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_stop_does_not_discard_a_loop_that_waits_for_a_person() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo nothing");
    let client = Client::of(&sandbox);
    client.does("loop_start", json!({"goal": "p", "command": agent, "name": "job", "max_iterations": 1}));
    sandbox.wait_for_status("job", "iteration-cap");
    let stopped = client.does("loop_stop", json!({"loop_id": "job"}));
    assert_eq!((&stopped["stop_requested"], &stopped["status"]), (&json!(false), &json!("iteration-cap")));
    sandbox.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(10);
}

#[test]
fn the_end_of_the_server_or_of_a_request_ends_no_loop() {
    let sandbox = sandbox();
    let (agent, go) = (waiting(&sandbox), sandbox.gate("go"));
    let mut client = Client::of(&sandbox);
    client.does("loop_start", json!({"goal": "Mend it.", "command": agent, "name": "job"}));
    sandbox.wait_for_note("began");
    let waits = client.begins("loop_status", json!({"loop_id": "job", "wait_seconds": 600}));
    let News::Progress(_) = client.hears() else { panic!("progress is told") };
    client.cancels(waits);
    assert_eq!(client.does("loop_status", json!({"loop_id": "job"}))["loop"]["status"], "running");
    // As a client that gives its server up: the whole group, with -9.
    client.session.signal_group(Signal::KILL);
    drop(client);
    assert_eq!(sandbox.status("job")["status"], "running");
    let another = Client::of(&sandbox);
    go.let_one_pass();
    let status = another.does("loop_status", json!({"loop_id": "job", "wait_seconds": 60}));
    assert_eq!(status["loop"]["status"], "completed", "{status:#}");
    another.leaves().with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_resource_subscriber_is_notified_of_changes() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo x >> $NOTES/began\nread -r _ < $GATES/go\necho '# More' >> $REFRAIN_STATE_FILE\nread -r _ < $GATES/end\n{CLAIM}"),
    );
    let (go, end) = (sandbox.gate("go"), sandbox.gate("end"));
    let mut client = Client::of(&sandbox);
    client.does("loop_start", json!({"goal": "Mend it.", "command": agent, "name": "job"}));
    sandbox.wait_for_note("began");
    let uris = client.resources();
    for uri in &uris {
        client.subscribes(uri).unwrap();
    }
    go.let_one_pass();
    client.hears_of(&uris[0]);
    eventually("what changed is read", || client.reads(&uris[0]).unwrap().contains("# More").then_some(()));
    end.let_one_pass();
    client.hears_of(&uris[1]);
    let unknown = client.subscribes("refrain://nowhere/loops/job/state").unwrap_err().to_string();
    assert!(unknown.contains("there is no project nowhere here"), "{unknown}");
    sandbox.wait_for_status("job", "completed");
    client.leaves().with_code(0);
}

#[test]
fn a_client_of_the_newest_revision_follows_by_one_request() {
    let sandbox = sandbox();
    let script = format!(
        "echo x >> $NOTES/began\nread -r _ < $GATES/go\necho '# More' >> $REFRAIN_STATE_FILE\nread -r _ < $GATES/end\n{CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    let (go, end) = (sandbox.gate("go"), sandbox.gate("end"));
    let client = Client::newest(&sandbox);
    client.does("loop_start", json!({"goal": "Mend it.", "command": agent, "name": "job"}));
    sandbox.wait_for_note("began");
    let uris = client.resources();
    let mut subscription = client.listens(&uris);
    go.let_one_pass();
    while client.next_of(&mut subscription) != uris[0] || !client.reads(&uris[0]).unwrap().contains("# More")
    {
    }
    end.let_one_pass();
    while client.next_of(&mut subscription) != uris[1]
        || !client.reads(&uris[1]).unwrap().contains("loop.ended")
    {}
    sandbox.wait_for_status("job", "completed");
    drop(subscription);
    client.leaves().with_code(0);
}

#[test]
fn a_plan_is_run() {
    let sandbox = sandbox();
    let long = "All of it is told to each agent. ".repeat(1_000);
    testkit::write(
        &sandbox.project().join("PLAN.md"),
        format!("# Plan\n\n## Task 1: Make a file\n\n{long}\n"),
    );
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "--quiet", "--message", "Plan"]);
    let agent = sandbox.agent("agent", "echo made > made\necho '<promise>TASK_COMPLETE</promise>'");
    let client = Client::of(&sandbox);
    let outside = client.refuses("plan_run", json!({"plan": "/etc/passwd", "command": agent}));
    assert!(outside.contains("plan /etc/passwd: accepted: a file inside"), "{outside}");
    let asked =
        json!({"plan": "PLAN.md", "command": agent, "name": "all", "verify": "test -e made", "jobs": 1});
    let started = client.does("plan_run", asked);
    assert_eq!((&started["loop"]["kind"], &started["loop"]["id"]), (&json!("plan"), &json!("all")));
    assert!(started["notes"].to_string().contains("tokens"), "a long plan is named: {started:#}");
    let ended = eventually("the plan ends", || {
        let status = client.does("loop_status", json!({"loop_id": "all", "wait_seconds": 60}));
        (status["loop"]["status"] == "completed").then_some(status)
    });
    assert_eq!((&ended["tasks"]["total"], &ended["tasks"]["done"]), (&json!(1), &json!(1)), "{ended:#}");
    let report = client.does("loop_report", json!({"loop_id": "all"}));
    assert_eq!(report["report"]["plan"]["status"], "completed");
    assert_eq!(report["report"]["loops"].as_array().unwrap().len(), 1);
    client.leaves().with_code(0);
}

#[test]
fn several_projects_are_served_and_distinguished() {
    let sandbox = sandbox();
    let other = sandbox.project().with_file_name("other");
    fs::create_dir(&other).unwrap();
    let agent = sandbox.agent("agent", CLAIM);
    let (here, there) = (sandbox.project(), other.to_str().unwrap().to_owned());
    let client = Client::at(sandbox.command(&["mcp", "--root", here.to_str().unwrap(), "--root", &there]));
    for workspace in [json!(null), json!(there)] {
        let asked = json!({"goal": "p", "command": agent, "name": "job", "workspace": workspace});
        client.does("loop_start", asked);
    }
    let both = client.refuses("loop_status", json!({"loop_id": "job"}));
    assert!(both.contains(&there) && both.contains("workspace says which"), "{both}");
    let status = client.does("loop_status", json!({"loop_id": "job", "workspace": there}));
    assert_eq!(status["loop"]["workspace_dir"], there);
    let all = eventually("both end", || {
        let all = client.does("loop_list", json!({"include_finished": true}));
        let ended = |one: &Value| one["status"] == "completed";
        all["loops"].as_array().unwrap().iter().all(ended).then_some(all)
    });
    assert_eq!(all["count"], 2);
    let one = client.does("loop_list", json!({"include_finished": true, "workspace": there}));
    assert_eq!(one["count"], 1);
    let uris = client.resources();
    assert_eq!(
        (uris.len(), uris.iter().collect::<std::collections::BTreeSet<_>>().len()),
        (4, 4),
        "{uris:?}"
    );
    client.leaves().with_code(0);
}

#[rstest]
#[case::inside_an_attempt(&[("REFRAIN_DEPTH", "1"), ("REFRAIN_LOOP_ID", "outer")], "loop outer cannot leave a runner in the background")]
#[case::two_deep(&[("REFRAIN_DEPTH", "2")], "inside")]
fn a_loop_inside_a_loop_is_refused(#[case] env: &[(&str, &str)], #[case] says: &str) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let client = Client::at(sandbox.command(&["mcp"]).envs(&env));
    let refused = client.refuses("loop_start", json!({"goal": "p", "command": agent}));
    assert!(refused.contains(says), "{refused}");
    assert_eq!(client.does("loop_list", json!({"include_finished": true}))["count"], 0);
}

#[test]
fn a_configuration_counts_as_for_start() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "true");
    let file = format!("[start]\ncommand = \"{agent}\"\nmax-iterations = 2\ntimeout = \"7m\"\n");
    testkit::write(&sandbox.project().join("refrain.toml"), file);
    let client = Client::of(&sandbox);
    let refused = client.refuses("loop_start", json!({"goal": "p"}));
    assert!(refused.contains("nothing says who works"), "it is not trusted yet: {refused}");
    let started = client.does("loop_start", json!({"goal": "p", "command": agent, "name": "one"}));
    let notes = started["notes"].to_string();
    assert!(notes.contains("refrain.toml is not trusted"), "{notes}");
    sandbox.trust();
    let started = client.does("loop_start", json!({"goal": "p", "name": "two"}));
    let view = &started["loop"];
    assert_eq!((&view["max_iterations"], &view["max_tick_duration_minutes"]), (&json!(2), &json!(7.0)));
    sandbox.wait_for_status("two", "iteration-cap");
}

#[test]
fn of_a_project_that_is_open_in_part_only_that_part_is_seen() {
    let sandbox = sandbox();
    let (sub, agent) = (sandbox.project().join("sub"), sandbox.agent("agent", CLAIM));
    fs::create_dir(&sub).unwrap();
    for (name, folder) in [("above", "."), ("inside", "sub")] {
        let words = ["start", "p", "--command", &agent, "--name", name, "--working-dir", folder];
        sandbox.refrain(&words).with_code(0);
    }
    let client = Client::at(sandbox.command(&["mcp", "--root", sub.to_str().unwrap()]));
    let all = client.does("loop_list", json!({"include_finished": true}));
    assert_eq!((&all["count"], &all["loops"][0]["id"]), (&json!(1), &json!("inside")));
    client.does("loop_report", json!({"loop_id": "inside"}));
    for tool in ["loop_status", "loop_stop", "loop_report"] {
        let refused = client.refuses(tool, json!({"loop_id": "above"}));
        assert!(refused.contains("no loop above"), "{refused}");
    }
    let project = all["loops"][0]["project"].as_str().unwrap();
    client.reads(&format!("refrain://{project}/loops/inside/journal")).unwrap();
    client.reads(&format!("refrain://{project}/loops/above/journal")).unwrap_err();
    client.leaves().with_code(0);
}

#[test]
fn a_refusal_speaks_of_parameters() {
    let sandbox = sandbox();
    let client = Client::of(&sandbox);
    let refused = client.refuses("loop_start", json!({"goal": "p", "command": "true", "name": "Bad Name"}));
    assert!(refused.contains("name") && !refused.contains("--name"), "{refused}");
    client.leaves().with_code(0);
}

#[test]
fn no_configured_critic_is_asked_where_none_is_wanted() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "true");
    let critic = sandbox.agent("critic", "touch \"$NOTES/asked\"");
    testkit::write(
        &sandbox.project().join("refrain.toml"),
        format!("[critique]\nevery = 1\ncritic = \"{critic}\"\n"),
    );
    sandbox.trust();
    let client = Client::of(&sandbox);
    let asked =
        json!({"goal": "p", "command": agent, "name": "job", "max_iterations": 2, "checkpoint_interval": 0});
    client.does("loop_start", asked);
    sandbox.wait_for_status("job", "iteration-cap");
    assert!(!sandbox.root().join("notes/asked").exists());
    client.leaves().with_code(0);
}

#[test]
fn a_folder_that_cannot_be_opened_is_refused_before_anything() {
    let sandbox = sandbox();
    let refused = sandbox.refrain(&["mcp", "--root", "nowhere"]).with_code(2);
    assert!(refused.stderr.contains("--root") && refused.stderr.contains("nowhere"), "{}", refused.stderr);
    let silent = sandbox.command(&["mcp"]).stdin("").run().with_code(0);
    assert_eq!((silent.stdout.as_str(), silent.stderr.as_str()), ("", ""), "a client that never speaks");
}
