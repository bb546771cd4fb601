//! Hostile requests: refused by name, or neutralised; and the server keeps running.

use std::fs;
use std::os::unix::fs::symlink;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::write;

use super::client::{Client, Raw};
use crate::{CLAIM, sandbox};

#[rstest]
#[case::a_goal_that_is_too_long(json!({"goal": "x".repeat(10_001)}), "goal of 10001 characters")]
#[case::no_goal(json!({}), "loop_start: goal is missing; accepted: texts")]
#[case::an_empty_goal(json!({"goal": " "}), "goal")]
#[case::too_many_iterations(json!({"goal": "p", "max_iterations": 201}), "max_iterations 201: accepted:")]
#[case::none(json!({"goal": "p", "max_iterations": 0}), "max_iterations 0")]
#[case::less_than_none(json!({"goal": "p", "max_iterations": -1}), "loop_start: max_iterations -1: accepted: whole numbers from 1 to 200")]
#[case::a_word_for_a_number(json!({"goal": "p", "max_iterations": "many"}), "loop_start: max_iterations many: accepted: whole numbers from 1 to 200")]
#[case::too_much_money(json!({"goal": "p", "max_cost_usd": 51}), "max_cost_usd 51: accepted:")]
#[case::no_money(json!({"goal": "p", "max_cost_usd": 0}), "max_cost_usd 0")]
#[case::money_that_cannot_be_counted(json!({"goal": "p", "max_cost_usd": 3}), "max_cost_usd 3: generic does not say")]
#[case::too_long_a_tick(json!({"goal": "p", "max_tick_duration_minutes": 61}), "max_tick_duration_minutes 61")]
#[case::too_rare_a_critic(json!({"goal": "p", "checkpoint_interval": 201}), "checkpoint_interval 201")]
#[case::an_unknown_word(json!({"goal": "p", "budget": 1}), "loop_start: budget: there is no such parameter; accepted: agent, ")]
#[case::an_option_for_a_name(json!({"goal": "p", "name": "--share-worktree"}), "--share-worktree")]
#[case::a_path_for_a_name(json!({"goal": "p", "name": "../other"}), "../other")]
#[case::an_agent_that_is_none(json!({"goal": "p", "agent": "nobody", "command": null}), "nobody")]
#[case::an_agent_with_an_option_in_its_name(json!({"goal": "p", "agent": "my--name", "command": null}), "no agent \"my--name\"")]
#[case::a_command_that_is_not_there(json!({"goal": "p", "command": "/no/such/agent"}), "/no/such/agent")]
#[case::a_command_that_cannot_be_read(json!({"goal": "p", "command": "'half"}), "command")]
#[case::a_name_with_a_nul(json!({"goal": "p", "name": "a\u{0}b"}), "name")]
#[case::a_word_for_a_list(json!({"goal": "p", "gates": "true"}), "loop_start: gates true: accepted: lists of texts")]
#[case::a_gate_without_a_command(json!({"goal": "p", "gates": [" "]}), "gates")]
fn an_argument_out_of_bounds_is_refused_by_name(#[case] mut asked: Value, #[case] says: &str) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    if asked.get("command").is_none() {
        asked["command"] = json!(agent);
    }
    let client = Client::of(&sandbox);
    let refused = client.refuses("loop_start", asked);
    assert!(refused.contains(says), "{refused}");
    assert_eq!(client.does("loop_list", json!({"include_finished": true}))["count"], 0);
    assert!(!sandbox.project().join(".refrain").exists(), "nothing was begun");
}

#[test]
fn a_workspace_lies_inside_with_links_followed() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let outside = sandbox.project().with_file_name("outside");
    let inside = sandbox.project().join("inside");
    for folder in [&outside, &inside] {
        fs::create_dir(folder).unwrap();
    }
    symlink(&outside, inside.join("out")).unwrap();
    symlink(&inside, sandbox.project().join("in")).unwrap();
    write(&inside.join("file"), "");
    // A folder with a `.git` file that points to a project elsewhere.
    let foreign = inside.join("foreign");
    fs::create_dir_all(outside.join("git")).unwrap();
    fs::create_dir(&foreign).unwrap();
    write(&foreign.join(".git"), format!("gitdir: {}\n", outside.join("git").display()));
    let client = Client::of(&sandbox);
    let absolute = outside.to_str().unwrap();
    for workspace in [
        "..",
        "inside/../..",
        "/",
        absolute,
        "inside/out",
        "in/out",
        "inside/file",
        "nowhere",
        "",
        "inside/foreign",
    ] {
        let asked = json!({"goal": "p", "command": agent, "workspace": workspace});
        let refused = client.refuses("loop_start", asked);
        assert!(refused.starts_with("workspace "), "{workspace}: {refused}");
        if !workspace.is_empty() {
            assert!(refused.contains("accepted: a folder inside"), "{workspace}: {refused}");
        }
    }
    assert!(fs::read_dir(&outside).unwrap().count() == 1, "nothing was begun there");
    for (name, workspace) in [("one", "in"), ("two", "inside/../inside"), ("three", inside.to_str().unwrap())]
    {
        let asked = json!({"goal": "p", "command": agent, "workspace": workspace, "name": name});
        client.does("loop_start", asked);
        sandbox.wait_for_status(name, "completed");
    }
}

#[rstest]
#[case::an_unknown_loop("loop_status", json!({"loop_id": "nobody"}), "no loop nobody")]
#[case::an_id_that_is_none("loop_status", json!({"loop_id": "../../etc"}), "loop ../../etc")]
#[case::no_id("loop_stop", json!({}), "loop_id")]
#[case::too_long_a_wait("loop_status", json!({"loop_id": "job", "wait_seconds": 601}), "wait_seconds 601")]
#[case::nothing_to_say("loop_steer", json!({"loop_id": "job", "text": ""}), "text")]
#[case::too_much_to_say("loop_steer", json!({"loop_id": "job", "text": "ä".repeat(4_097)}), "8194 bytes")]
#[case::an_unknown_report("loop_report", json!({"loop_id": "nobody"}), "no loop nobody")]
#[case::an_unknown_tool("loop_forget", json!({}), "tool")]
#[case::elsewhere("loop_list", json!({"workspace": "/etc"}), "workspace /etc")]
#[case::no_tasks("plan_run", json!({}), "no tasks")]
#[case::too_many_jobs("plan_run", json!({"jobs": 65}), "jobs 65")]
fn a_request_for_an_unknown_item_is_refused_with_the_reason(
    #[case] tool: &'static str,
    #[case] asked: Value,
    #[case] says: &str,
) {
    let sandbox = sandbox();
    let client = Client::of(&sandbox);
    let refused = client.refuses(tool, asked);
    assert!(refused.contains(says), "{refused}");
    for uri in ["refrain://p/loops/nobody/state", "file:///etc/passwd", "refrain://p/loops/../state"] {
        assert!(client.reads(uri).is_err(), "{uri}");
    }
    client.leaves().with_code(0);
}

#[test]
fn a_client_that_sends_garbage_harms_nothing() {
    let sandbox = sandbox();
    let mut raw = Raw::of(&sandbox);
    let garbage: [&[u8]; 8] = [
        b"garbage\n",
        b"\n\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
        b"{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":7}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n",
        b"null\n",
    ];
    garbage.iter().for_each(|bytes| raw.says(bytes));
    raw.begins();
    garbage.iter().for_each(|bytes| raw.says(bytes));
    assert_eq!(raw.asks(2, "no/such/method", json!({}))["error"]["code"], -32601);
    assert_eq!(raw.asks(3, "tools/call", json!({"name": 7}))["error"]["code"], -32602);
    assert!(raw.asks(4, "tools/call", json!({"name": "loop_list", "arguments": [1]}))["error"].is_object());
    // Parameters that no method has: each is answered by its id.
    assert_eq!(raw.asks(6, "tools/call", json!([1]))["error"]["code"], -32602);
    assert!(raw.asks(7, "tools/list", json!("x"))["result"].is_object(), "it needs none");
    assert_eq!(raw.asks(8, "no/such/method", json!([]))["error"]["code"], -32601);
    // A line of 100 MB, which is never held as a whole.
    let part = vec![b'x'; 1 << 20];
    (0..100).for_each(|_| raw.says(&part));
    raw.says(b"\n");
    let listed = raw.asks(5, "tools/call", json!({"name": "loop_list", "arguments": {}}));
    assert_eq!(listed["result"]["structuredContent"]["count"], 0, "{listed:#}");
    assert_eq!(raw.session.stderr(), "");
    let resident = fs::read_to_string(format!("/proc/{}/status", raw.session.pid())).unwrap();
    let peak = resident.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100_000, "{peak} kB");
}

#[test]
fn agent_text_is_shown_without_secrets_links_and_control_characters() {
    let sandbox = sandbox();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    write(&sandbox.root().join("secret.md"), "---\nstatus: done\n---\nnobody's business\n");
    let agent = sandbox.agent(
        "agent",
        &format!(
            "printf '\\033[2J%s\\nkey %s\\n' 'wide open' {token} >> $REFRAIN_STATE_FILE\n\
             [ $REFRAIN_ITERATION = 1 ] && echo the key is {token} || {CLAIM}"
        ),
    );
    let link =
        sandbox.agent("link", &format!("ln -sf {}/secret.md $REFRAIN_STATE_FILE", sandbox.root().display()));
    let client = Client::of(&sandbox);
    client.does("loop_start", json!({"goal": "p", "command": agent, "name": "job"}));
    client.does("loop_start", json!({"goal": "p", "command": link, "name": "link", "max_iterations": 1}));
    sandbox.wait_for_status("job", "completed");
    let status = client.does("loop_status", json!({"loop_id": "job"})).to_string();
    assert!(status.contains("wide open") && status.contains("[redacted"), "{status}");
    assert!(!status.contains(&token) && !status.contains("\\u001b"), "{status}");
    let ended = client.does("loop_status", json!({"loop_id": "link", "wait_seconds": 60}));
    assert!(!ended.to_string().contains("business"), "{ended:#}");
    for uri in client.resources() {
        let text = client.reads(&uri).unwrap_or_default();
        assert!(!text.contains(&token) && !text.contains("business"), "{uri}: {text}");
    }
    client.leaves().with_code(0);
}
