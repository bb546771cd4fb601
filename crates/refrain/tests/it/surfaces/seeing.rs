//! The reading verbs: status, list, show, logs, watch; for people and, field by field as in the contract, for scripts.

use serde_json::{Value, json};
use testkit::{Sandbox, eventually};

use crate::{CLAIM, sandbox};

const FIELDS: [&str; 38] = [
    "schema",
    "id",
    "kind",
    "status",
    "verified",
    "signed",
    "iteration",
    "attempt",
    "started",
    "charged",
    "max_iterations",
    "agent",
    "model",
    "project",
    "worktree",
    "working_dir",
    "branch",
    "tree",
    "started_at",
    "updated_at",
    "ended_at",
    "active_ms",
    "reason",
    "needs",
    "waits_for",
    "question",
    "wait",
    "completion_promise",
    "claim",
    "usage",
    "limits",
    "gates",
    "last_failure",
    "saved",
    "commits",
    "iterations",
    "runner",
    "command",
];

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z'))
}

/// Every field of the contract, with its type. `command` and `active_ms` are ours.
fn check_status(status: &Value, listed: bool) {
    let keys: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    for field in FIELDS.iter().filter(|field| !(listed && **field == "iterations")) {
        assert!(keys.contains(field), "{field} is missing: {keys:?}");
    }
    for key in &keys {
        assert!(FIELDS.contains(key) && !(listed && *key == "iterations"), "{key} is not in the contract");
    }
    assert_eq!(status["schema"], 1);
    assert_eq!(status["kind"], "process");
    for number in ["iteration", "attempt", "started", "charged"] {
        assert!(status[number].is_u64(), "{number}: {}", status[number]);
    }
    for text in ["id", "status", "agent", "project", "worktree", "working_dir", "reason"] {
        assert!(
            status[text].as_str().is_some_and(|text| !text.is_empty() && !text.contains('\n')),
            "{text}: {}",
            status[text]
        );
    }
    for array in ["gates", "commits", "command"] {
        assert!(status[array].is_array(), "{array}");
    }
    assert!(is_time(&status["started_at"]) && is_time(&status["updated_at"]));
    assert_eq!(
        status["usage"],
        json!({"input_tokens": null, "cached_input_tokens": null, "output_tokens": null, "cost_usd": null}),
        "unknown is null"
    );
    assert_eq!(
        (&status["verified"], &status["model"], &status["tree"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}

fn two_iterations(sandbox: &Sandbox) {
    let agent = sandbox.agent("agent", &format!("echo out $REFRAIN_ITERATION; echo err $REFRAIN_ITERATION >&2\ntest $REFRAIN_ITERATION = 1 && exit 4\n{CLAIM}"));
    let secret = ["--env", "TOKEN=hunter2"];
    let run = sandbox.refrain(
        &[
            &["start", "--command", &agent, "--name", "job", "-m", "7", "--timeout", "90", "p"],
            secret.as_slice(),
        ]
        .concat(),
    );
    assert!(!run.with_code(0).stdout.contains("hunter2"));
}

#[test]
fn status_json_is_the_contracts_object() {
    let sandbox = sandbox();
    two_iterations(&sandbox);
    let status = sandbox.status("job");
    check_status(&status, false);
    assert_eq!(status["status"], "completed");
    assert_eq!(status["agent"], "generic");
    assert_eq!(status["max_iterations"], 7);
    assert_eq!(status["completion_promise"], "COMPLETE");
    assert_eq!(status["claim"]["source"], "promise");
    assert!(is_time(&status["claim"]["at"]) && is_time(&status["ended_at"]));
    assert_eq!(
        (&status["needs"], &status["wait"], &status["last_failure"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(status["runner"]["pid"].is_u64() && status["runner"]["host"].is_string());
    assert_eq!(status["runner"]["alive"], false);
    assert!(status["limits"].is_object());
    let rows = status["iterations"].as_array().unwrap();
    let fields = [
        "n",
        "attempt",
        "charged",
        "started_at",
        "ended_at",
        "exit_code",
        "signal",
        "outcome",
        "claim",
        "usage",
        "gates",
        "preview",
        "summary",
    ];
    for row in rows {
        let keys: Vec<_> = row.as_object().unwrap().keys().collect();
        assert!(
            fields.iter().all(|field| row.get(field).is_some()) && keys.len() == fields.len(),
            "{keys:?}"
        );
        assert!(is_time(&row["started_at"]) && is_time(&row["ended_at"]));
    }
    assert_eq!(
        (&rows[0]["exit_code"], &rows[0]["outcome"], &rows[0]["preview"]),
        (&json!(4), &json!("failed"), &json!("out 1"))
    );
    assert_eq!(
        (&rows[1]["n"], &rows[1]["exit_code"], &rows[1]["claim"]),
        (&json!(2), &json!(0), &json!("promise"))
    );
    assert_eq!(status["branch"], Value::Null, "it commits to none");
}

#[test]
fn list_json_is_an_array_of_the_same_objects_without_iterations() {
    let sandbox = sandbox();
    two_iterations(&sandbox);
    let list = sandbox.refrain(&["list", "--json"]).with_code(0).json();
    check_status(&list[0], true);
    let line = sandbox.refrain(&["list"]).with_code(0).stdout;
    assert_eq!(line.lines().count(), 1, "for scripts there is no header: {line}");
    assert!(line.ends_with("as no gate checks it\n"), "and nothing is cut off: {line}");
    assert!(line.starts_with("job ") && line.contains("completed") && line.contains("2/7"), "{line}");
    let elsewhere = sandbox
        .command(&["list", "--all-projects", "--json"])
        .dir(&sandbox.root().join("notes"))
        .run()
        .with_code(0)
        .json();
    assert_eq!(elsewhere[0]["id"], "job");
}

#[test]
fn start_json_prints_only_the_final_status_and_progress_goes_to_stderr() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo at work\n{CLAIM}"));
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--json", "p"]).with_code(0);
    let status = run.json();
    check_status(&status, false);
    assert_eq!(status, sandbox.status("job"), "what start prints is what status prints");
    assert!(
        run.stderr.lines().any(|line| line == "[loop job iteration 1/20]") && run.stderr.contains("at work"),
        "{}",
        run.stderr
    );
    let agent = sandbox.agent("never", "true");
    let run = sandbox
        .refrain(&["start", "--command", &agent, "--name", "cap", "-m", "1", "--json", "--quiet", "p"])
        .with_code(10);
    assert_eq!((&run.json()["status"], run.stderr.as_str()), (&json!("iteration-cap"), ""));
    let run = sandbox.refrain(&["resume", "cap", "-m", "2", "--json", "-q"]).with_code(10);
    check_status(&run.json(), false);
}

#[test]
fn events_are_the_journals_one_json_object_a_line() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo at work\n{CLAIM}"));
    let run = sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--events", "--env", "TOKEN=hunter2", "p"])
        .with_code(0);
    let events = run.json_lines();
    let strip = |record: &Value| json!([record["seq"], record["at"], record["event"]["type"]]);
    let journal = sandbox.journal("job");
    assert_eq!(events.iter().map(strip).collect::<Vec<_>>(), journal.iter().map(strip).collect::<Vec<_>>());
    assert!(!run.stdout.contains("hunter2"), "secrets are redacted at every exit");
    assert!(
        run.stderr.contains("[loop job iteration 1/20]") && run.stderr.contains("at work"),
        "{}",
        run.stderr
    );
    let seqs: Vec<_> = events.iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    let watched = sandbox.refrain(&["watch", "job", "--json"]).with_code(0).json_lines();
    assert_eq!(watched, events, "watching from the start shows the same");
}

#[test]
fn events_and_json_together_end_with_the_status() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "--events", "--json", "--quiet", "p"])
        .with_code(0);
    let names = sandbox.event_names("job");
    let lines = run.json_lines();
    assert_eq!(lines.len(), names.len() + 1, "one object a line: {}", run.stdout);
    assert_eq!(lines[names.len()]["status"], "completed");
}

#[test]
fn show_prints_the_journal_without_secrets() {
    let sandbox = sandbox();
    two_iterations(&sandbox);
    let shown = sandbox.refrain(&["show", "job"]).with_code(0);
    let names = sandbox.event_names("job");
    assert_eq!(shown.stdout.lines().count(), names.len());
    for (line, name) in shown.stdout.lines().zip(&names) {
        assert!(line.contains(name.as_str()), "{name}: {line}");
    }
    let array = sandbox.refrain(&["show", "job", "--json"]).with_code(0);
    assert_eq!(array.json().as_array().unwrap().len(), names.len());
    assert!(!shown.stdout.contains("hunter2") && !array.stdout.contains("hunter2"));
}

#[test]
fn logs_show_every_attempt_or_one_iteration() {
    let sandbox = sandbox();
    two_iterations(&sandbox);
    let all = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    for part in ["out 1", "err 1", "out 2", "err 2", "<promise>COMPLETE</promise>"] {
        assert!(all.lines().any(|line| line == part), "{part}: {all}");
    }
    assert!(all.find("out 1") < all.find("out 2"), "{all}");
    let one = sandbox.refrain(&["logs", "job", "--iteration", "2"]).with_code(0).stdout;
    assert!(one.contains("out 2") && !one.contains("out 1"), "{one}");
    let none = sandbox.refrain(&["logs", "job", "--iteration", "3"]).with_code(2);
    assert!(none.stderr.contains('3') && none.stderr.contains('2'), "{}", none.stderr);
}

#[test]
fn logs_show_both_ends_of_capped_output_after_a_kill() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo begin..\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    // Before the parts were merged: the beginning, and the two files of the end, named after their offsets.
    let attempt = sandbox.loop_dir("job").join("iterations/0001");
    testkit::write(&attempt.join("output.log"), "begin..\n");
    std::fs::create_dir(attempt.join("output.log.tail")).unwrap();
    testkit::write(&attempt.join("output.log.tail/24"), "new\n");
    testkit::write(&attempt.join("output.log.tail/20"), "old\n");
    let before = sandbox.snapshot();
    let logs = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    assert_eq!(logs, "== iteration 1\nbegin..\n\n[... 12 bytes left out by refrain ...]\nold\nnew\n");
    assert!(sandbox.snapshot() == before, "looking touches nothing");
}

#[test]
fn logs_and_watch_follow_a_loop_to_its_end() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "agent",
        &format!("echo early $REFRAIN_ITERATION; echo x > $NOTES/up.$REFRAIN_ITERATION; read -r _ < $GATES/go; echo late $REFRAIN_ITERATION\ntest $REFRAIN_ITERATION = 1 || {CLAIM}"),
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up.1");
    let logs = sandbox.spawn(&["logs", "-f", "job"]);
    let watch = sandbox.spawn(&["watch"]);
    let events = sandbox.spawn(&["watch", "job", "--json"]);
    logs.wait_for_output("early 1");
    watch.wait_for_output("[loop job iteration 1/20]");
    gate.let_one_pass();
    logs.wait_for_output("early 2");
    gate.let_one_pass();
    let logs = logs.wait().with_code(0).stdout;
    assert_eq!(
        ["early 1", "late 1", "early 2", "late 2"].map(|part| logs.matches(part).count()),
        [1; 4],
        "{logs}"
    );
    let watch = watch.wait().with_code(0).stdout;
    for part in ["[loop job iteration 2/20]", "late 1", "late 2", "unverified after 2 iterations"] {
        assert!(watch.contains(part), "{part}: {watch}");
    }
    assert_eq!(events.wait().with_code(0).json_lines().len(), sandbox.journal("job").len());
}

#[test]
fn a_new_watcher_sees_the_current_state_and_no_old_notices() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "agent",
        &format!("echo early $REFRAIN_ITERATION; echo x > $NOTES/up.$REFRAIN_ITERATION; read -r _ < $GATES/go\ntest $REFRAIN_ITERATION = 2 && {CLAIM}"),
    );
    let start = ["start", "--command", &agent, "--name", "job", "--pause", "100ms", "--detach", "p"];
    sandbox.refrain(&start).with_code(0);
    sandbox.wait_for_note("up.1");
    sandbox.refrain(&["steer", "job", "left, not right"]).with_code(0);
    gate.let_one_pass();
    sandbox.wait_for_note("up.2");
    let watch = sandbox.spawn(&["watch"]);
    watch.wait_for_output("[loop job iteration 2/20]");
    sandbox.refrain(&["pause", "job"]).with_code(0);
    watch.wait_for_output("asked to pause after this iteration");
    let again = sandbox.spawn(&["watch", "job"]);
    again.wait_for_output("asked to pause after this iteration");
    gate.let_one_pass();
    for text in [watch.wait(), again.wait()].map(|run| run.with_code(0).stdout) {
        let lines: Vec<_> = text.lines().collect();
        assert!(text.contains("what was printed so far: refrain logs job"), "{text}");
        assert!(text.contains("· iteration 1 took"), "how it went: {text}");
        assert!(lines.contains(&"early 2") && text.contains("unverified after 2"), "what continues: {text}");
        for old in ["[loop job iteration 1/20]", "the next prompt will say", "rests until", "early 1"] {
            assert!(!text.contains(old), "{old}: {text}");
        }
    }
    let after = sandbox.refrain(&["watch", "job"]).with_code(0).stdout;
    assert!(after.contains("· iteration 2 took") && after.contains("unverified after 2"), "{after}");
}

#[test]
fn a_watcher_of_a_crashed_loop_sees_the_next_command() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; exec sleep 1000");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    let watch = sandbox.spawn(&["watch"]);
    watch.wait_for_output("[loop job iteration 1/20]");
    session.kill();
    for run in [watch.wait(), sandbox.refrain(&["watch", "job"])] {
        let shown = run.with_code(0).stdout;
        assert!(shown.contains("crashed: its runner is gone"), "{shown}");
        assert!(shown.ends_with("\n  next: refrain resume job\n"), "{shown}");
    }
}

#[test]
fn logs_show_characters_and_escapes_whole_that_came_in_parts() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "agent",
        &format!("printf 'begun Gr\\303'; echo x > $NOTES/up; read -r _ < $GATES/go; printf '\\274\\303\\237e \\033['; echo x > $NOTES/on; read -r _ < $GATES/go; echo 31mred\n{CLAIM}"),
    );
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up");
    let [logs, watch] =
        [["logs", "-f", "job"].as_slice(), &["watch", "job"]].map(|words| sandbox.spawn(words));
    logs.wait_for_output("== iteration 1");
    watch.wait_for_output("[loop job iteration 1/20]");
    gate.let_one_pass();
    sandbox.wait_for_note("on");
    gate.let_one_pass();
    for run in [logs.wait(), watch.wait(), sandbox.refrain(&["logs", "job"])] {
        assert!(run.has_line("begun Grüße red"), "{run:?}");
    }
    let wide = sandbox.agent("wide", &format!("head -c 300000 /dev/zero | sed 's/\\x00/ü/g'; echo\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &wide, "--name", "wide", "--quiet", "p"]).with_code(0);
    let line = "ü".repeat(300_000);
    assert!(
        sandbox.refrain(&["logs", "wide"]).has_line(&line)
            && sandbox.refrain(&["logs", "-f", "wide"]).has_line(&line)
    );
}

#[test]
fn a_watcher_that_is_interrupted_leaves_the_loop_alone() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("echo x > $NOTES/up; read -r _ < $GATES/go\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "p"]).with_code(0);
    sandbox.wait_for_note("up");
    let watch = sandbox.spawn(&["watch", "job"]);
    watch.wait_for_output("job");
    watch.signal_group(testkit::Signal::INT);
    watch.wait();
    assert_eq!(sandbox.status("job")["status"], "running");
    gate.let_one_pass();
    sandbox.wait_for_status("job", "completed");
}

#[test]
fn a_reader_that_goes_away_harms_no_loop() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("seq 1 20000\ntest $REFRAIN_ITERATION = 1 || {CLAIM}"));
    let line = "\"$0\" start --command \"$1\" --name job p | head -n 1; \"$0\" show job | head -n 1; \"$0\" logs job | head -n 1";
    let run = sandbox.tool("sh", &["-c", line, env!("CARGO_BIN_EXE_refrain"), &agent]).run().with_code(0);
    assert_eq!(run.stderr, "");
    eventually("the loop ends", || (sandbox.status("job")["status"] == "completed").then_some(()));
}

#[test]
fn a_damaged_loop_is_named_and_the_others_are_listed() {
    let sandbox = sandbox();
    two_iterations(&sandbox);
    let broken = sandbox.loop_dir("broken");
    std::fs::create_dir_all(&broken).unwrap();
    testkit::write(&broken.join("journal.jsonl"), "no journal\n");
    let list = sandbox.refrain(&["list", "--json"]).with_code(0);
    assert_eq!(list.json()[0]["id"], "job");
    assert!(list.stderr.contains("broken") && list.stderr.contains("journal.jsonl"), "{}", list.stderr);
    let status = sandbox.refrain(&["status", "broken"]).with_code(1);
    assert!(
        status.stderr.contains("journal.jsonl") && status.stderr.contains('1'),
        "file and line: {}",
        status.stderr
    );
}

/// A terminal shows only a part of an agent's output; the log has it all.
#[test]
fn long_agent_output_is_shown_up_to_a_bound_and_logged_in_full() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("yes 0123456789 | head -n 300000\n{CLAIM}"));
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    assert!(run.stdout.contains("◐ unverified after"), "the loop's own words are shown");
    assert!((1_000_000..1_600_000).contains(&run.stdout.len()), "{}", run.stdout.len());
    let log = sandbox.loop_dir("job").join("iterations/0001/output.log");
    let said = format!("what is printed from here on is omitted here; all of it: {}", log.display());
    assert!(run.stdout.contains(&said));
    assert!(sandbox.kept("job", "0001", "output.log").len() > 3_300_000);
    let all = sandbox.refrain(&["logs", "job"]).with_code(0);
    assert!(all.stdout.len() > 3_300_000, "{}", all.stdout.len());
}
