//! Claims and their proof: gates that Refrain runs itself, and the weight of an agent's claim against them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Sandbox, Session};

use crate::{CLAIM, sandbox};

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["start", "--command", agent, "--name", "job", "-p", "Mend the work."];
    words.extend(more);
    words
}

/// How often each gate was started, baseline and all.
fn runs(sandbox: &Sandbox, name: &str) -> usize {
    let is_start = |record: &&Value| {
        record["event"]["type"] == "gate.started" && record["event"]["data"]["gate"] == name
    };
    sandbox.journal("job").iter().filter(is_start).count()
}

/// A loop in a gate of its first iteration, which waits for its FIFO. Before the first iteration it ends at once.
fn in_a_gate(sandbox: &Sandbox) -> Session {
    let agent = sandbox.agent("agent", &format!("echo good > work.txt\n{CLAIM}"));
    let held = r#"held=[ "$REFRAIN_ITERATION" = 0 ] && exit 1; [ -e "$NOTES/seen" ] || { echo seen > "$NOTES/seen"; read -r _ < "$GATES/held"; }"#;
    let gates = ["--gate", "first=grep -qs good work.txt", "--gate", held, "--gate-env", "REFRAIN_ITERATION"];
    let session = sandbox.spawn(&start(&agent, &gates));
    sandbox.wait_for_note("seen");
    session
}

#[test]
fn a_runner_that_is_killed_in_a_gate_loses_only_that_run_of_it() {
    let sandbox = sandbox();
    let _held = sandbox.gate("held");
    in_a_gate(&sandbox).kill();
    sandbox.no_process_is_left();
    assert_eq!(sandbox.status("job")["status"], "crashed");
    let run = sandbox.refrain(&["resume", "job"]).with_code(0);
    assert!(!run.stdout.contains("[loop job iteration"), "the agent is not asked again: {}", run.stdout);
    assert_eq!((runs(&sandbox, "first"), runs(&sandbox, "held")), (2, 3));
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], status.get("tree_is_partial")), (&json!(true), None));
}

#[test]
fn gates_see_no_variable_of_refrain_and_nothing_to_read() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("env > $NOTES/agent\n{CLAIM}"));
    let sees = r#"sees=cat > "$NOTES/stdin"; env > "$NOTES/gate"; pwd > "$NOTES/folder""#;
    let flags = ["--gate", sees, "--env", "MINE=yes"];
    let names = |note: &str| -> BTreeSet<String> {
        let note = sandbox.note(note);
        note.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect()
    };
    let mut marks = BTreeSet::new();
    for id in ["one", "two"] {
        let words = ["start", "--command", &agent, "--name", id, "-p", "Work.", "-m", "1"];
        sandbox.refrain(&[&words[..], &flags].concat()).with_code(0);
        let (gate, agent) = (names("gate"), names("agent"));
        assert!(gate.contains("MINE") && agent.contains("REFRAIN_LOOP_ID"), "{gate:?} {agent:?}");
        assert!(!gate.iter().any(|name| name.starts_with("REFRAIN_")), "{gate:?}");
        // A variable that a shell sets for itself is no mark.
        let own: Vec<_> = gate.difference(&agent).filter(|name| name.len() >= 8).cloned().collect();
        assert_eq!(own.len(), 1, "one mark: {own:?}");
        assert!(!sandbox.note("gate").contains(&format!("={id}\n")), "nothing names the loop");
        marks.extend(own);
    }
    assert_eq!(marks.len(), 2, "each loop has another one: {marks:?}");
    assert_eq!(sandbox.note("folder").trim(), sandbox.project().to_str().unwrap());
    assert_eq!(sandbox.note("stdin"), "");
    let shown =
        sandbox.refrain(&["show", "one", "--json"]).stdout + &sandbox.refrain(&["show", "one"]).stdout;
    assert!(!shown.contains("\"mark\""), "{shown}");
}

#[test]
fn gate_output_is_shown_while_the_gate_runs() {
    let sandbox = sandbox();
    let held = sandbox.gate("held");
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    let slow =
        r#"slow=[ "$REFRAIN_ITERATION" = 0 ] || { printf 'half %s\n' way >&2; read -r _ < "$GATES/held"; }"#;
    let session = sandbox.spawn(&start(&agent, &["--gate", slow, "--gate-env", "REFRAIN_ITERATION"]));
    session.wait_for_output("half way");
    let watcher = sandbox.spawn(&["watch", "job"]);
    watcher.wait_for_output("half way");
    assert!(
        sandbox.status("job")["reason"].as_str().unwrap().contains("gate slow is running after attempt 1")
    );
    held.let_one_pass();
    session.wait().with_code(0);
    watcher.wait().with_code(0);
}
