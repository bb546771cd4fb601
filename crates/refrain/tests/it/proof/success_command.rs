//! `--success-command`: a required gate that completes the loop by itself, without the agent's claim.

use serde_json::{Value, json};
use testkit::{Run, Sandbox, write};

use crate::surfaces::mcp::does;
use crate::{CLAIM, plain_folder, sandbox};

/// Passes once the agent has written three lines.
const THREE: &str = "test $(wc -l < work.txt) -ge 3";

/// Writes a line in each iteration, then does this.
fn worker(sandbox: &Sandbox, then: &str) -> String {
    sandbox.agent("worker", &format!("echo w >> work.txt\n{then}"))
}

fn start(sandbox: &Sandbox, agent: &str, more: &[&str]) -> Run {
    let words = ["start", "--command", agent, "--name", "job", "-p", "Work.", "--max-iterations", "6"];
    sandbox.refrain(&[&words[..], more].concat())
}

fn came_to(sandbox: &Sandbox) -> (Value, Value, Value) {
    let status = sandbox.status("job");
    (status["status"].clone(), status["iteration"].clone(), status["verified"].clone())
}

#[test]
fn the_success_command_completes_the_loop_whatever_the_agent_says() {
    for place in [sandbox, plain_folder] {
        for then in ["true", "exit 7", "echo 'Still at it.'"] {
            let sandbox = place();
            let agent = worker(&sandbox, then);
            let run = start(&sandbox, &agent, &["--success-command", THREE]).with_code(0);
            assert_eq!(came_to(&sandbox), (json!("completed"), json!(3), json!(true)), "{then}");
            let status = sandbox.status("job");
            assert_eq!(status["claim"]["source"], "gates");
            let reason = status["reason"].as_str().unwrap();
            assert!(reason.starts_with("the success command passed"), "{reason}");
            assert!(run.stdout.contains("or its success command passes"), "{}", run.stdout);
            assert!(run.stdout.contains(&format!("success ({THREE}, completes the loop)")), "{}", run.stdout);
        }
    }
}

#[test]
fn a_tool_starts_it_too() {
    for sandbox in [sandbox(), plain_folder()] {
        let agent = worker(&sandbox, "true");
        let asked = json!({
            "goal": "g", "name": "job", "command": agent, "success_command": THREE, "max_iterations": 10
        });
        does(&sandbox, "loop_start", asked);
        let status = sandbox.wait_for_status("job", "completed");
        assert_eq!((&status["iteration"], &status["verified"]), (&json!(3), &json!(true)));
    }
}

#[test]
fn a_claim_that_it_does_not_confirm_is_refused() {
    let sandbox = sandbox();
    let agent = worker(&sandbox, CLAIM);
    let run = start(&sandbox, &agent, &["--success-command", THREE]).with_code(0);
    assert_eq!(came_to(&sandbox), (json!("completed"), json!(3), json!(true)));
    assert_eq!(run.stdout.matches("the claim is refused: gate success failed").count(), 2, "{}", run.stdout);
    assert_eq!(sandbox.status("job")["claim"]["source"], "promise");
}

#[test]
fn all_required_gates_have_to_pass_too() {
    for when in ["iteration", "claim"] {
        let sandbox = sandbox();
        let agent = worker(&sandbox, "true");
        let more = ["--success-command", "true", "--gate", &format!("lines={THREE}"), "--gate-when", when];
        start(&sandbox, &agent, &more).with_code(0);
        assert_eq!(came_to(&sandbox), (json!("completed"), json!(3), json!(true)), "{when}");
    }
    let sandbox = sandbox();
    let agent = worker(&sandbox, "true");
    start(&sandbox, &agent, &["--success-command", "true", "--gate", "no=false", "--stuck-threshold", "9"])
        .with_code(10);
    assert_eq!(came_to(&sandbox).2, json!(false));
}

#[test]
fn a_success_command_that_passes_already_ends_after_the_first_iteration() {
    let sandbox = sandbox();
    let agent = sandbox.agent("idler", "echo ran >> $NOTES/ran");
    let run = start(&sandbox, &agent, &["--success-command", "true"]).with_code(0);
    let warning =
        "warning: the success command passes already: the loop will end after its first iteration\n";
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    assert_eq!(came_to(&sandbox), (json!("completed"), json!(1), json!(true)));
    assert_eq!(sandbox.note("ran"), "ran\n", "it works once");
    sandbox.refrain(&["archive", "job"]).with_code(0);
    let run = start(&sandbox, &agent, &["--success-command", "test -e none", "--stuck-threshold", "9"])
        .with_code(10);
    assert!(!run.stdout.contains("warning"), "{}", run.stdout);
}

#[test]
fn files_that_git_ignores_count_for_the_success_command() {
    let sandbox = sandbox();
    write(&sandbox.project().join(".gitignore"), "out\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Ignore"]);
    let agent = sandbox.agent("builder", "echo x >> out");
    start(&sandbox, &agent, &["--success-command", "test $(wc -l < out) -ge 2"]).with_code(0);
    assert_eq!(came_to(&sandbox), (json!("completed"), json!(2), json!(true)));
}

#[test]
fn work_proven_by_the_success_command_is_committed() {
    let sandbox = sandbox();
    let agent = worker(&sandbox, "true");
    start(&sandbox, &agent, &["--success-command", THREE, "--git-workflow", "commit"]).with_code(0);
    assert_eq!(sandbox.git(&["show", "HEAD:work.txt"]), "w\nw\nw\n");
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(sandbox.status("job")["tree"], tree.trim());
}

#[test]
fn the_success_command_completes_a_session_loop_too() {
    let sandbox = sandbox();
    let begin = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "job"];
    let typed = ["--args", "--success-command \"test -e made.txt\" Make it."];
    sandbox.refrain(&[&begin[..], &typed].concat()).with_code(0);
    // One turn without the file, and one that makes it without a claim.
    for _ in 0..2 {
        sandbox.refrain(&["tick", "advance", "job"]).with_code(0);
    }
    write(&sandbox.project().join("made.txt"), "made");
    sandbox.refrain(&["tick", "advance", "job"]).with_code(3);
    assert_eq!(came_to(&sandbox), (json!("completed"), json!(2), json!(true)));
}
