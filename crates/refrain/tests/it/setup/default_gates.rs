//! The gates that a known agent's loop gets if none is named: those that the project offers, if the user trusts them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::adapters::agents::claude;
use crate::surfaces::mcp::does;
use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, sandbox};

/// A project with a test that fails until the file `done` is there.
fn project() -> Sandbox {
    let sandbox = sandbox();
    with_test(&sandbox, "test -f done && echo '1 passed'");
    sandbox
}

fn with_test(sandbox: &Sandbox, script: &str) {
    write(&sandbox.project().join("test.sh"), format!("#!/bin/sh\n{script}\n"));
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "A test"]);
}

/// An agent that claims too early, and does the work once the claim was refused.
fn agent(sandbox: &Sandbox) -> String {
    let script =
        "test $REFRAIN_ITERATION = 1 && echo x > other || touch done; says '<promise>COMPLETE</promise>'";
    claude(sandbox, script)
}

fn spec(sandbox: &Sandbox, id: &str) -> Value {
    sandbox.journal(id)[0]["event"]["data"]["spec"].clone()
}

fn gates(sandbox: &Sandbox, id: &str) -> Vec<String> {
    let gates = spec(sandbox, id)["gates"].as_array().unwrap().clone();
    gates.iter().map(|gate| gate["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_trusted_test_decides_and_is_protected() {
    let sandbox = project();
    sandbox.trust();
    let run =
        sandbox.refrain(&["start", "--command", &agent(&sandbox), "--name", "job", "Do it."]).with_code(0);
    let header = "\n  proof  test (sh test.sh); found in the project, --no-gates leaves them out\n";
    assert!(run.stdout.contains(header), "{}", run.stdout);
    assert!(run.stdout.contains("the claim is refused: gate test failed"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["charged"]), (&json!(true), &json!(2)));
    let spec = spec(&sandbox, "job");
    assert!(spec["protect"]["frozen"].as_array().unwrap().contains(&json!("/test.sh")), "{spec}");
    assert_eq!((&spec["gates"][0]["by_default"], &spec["gates"][0]["when"]), (&json!(true), &json!("auto")));
}

#[test]
fn without_trust_a_loop_starts_without_offered_gates_and_says_so() {
    let sandbox = project();
    let agent = agent(&sandbox);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Do it."]).with_code(0);
    let says = "the loop starts without gates that the project offers and you do not trust yet (sh test.sh)";
    assert!(run.stderr.contains(says), "{}", run.stderr);
    assert!(run.stdout.contains("unverified; --gate CMD adds one"), "{}", run.stdout);
    let lacks = "lacks  gates of sh test.sh are left out, as you do not trust them: refrain trust";
    assert!(run.stdout.contains(lacks), "{}", run.stdout);
    assert!(
        run.stdout.contains("next: refrain trust, refrain diff job, refrain report job"),
        "{}",
        run.stdout
    );
    assert_eq!((gates(&sandbox, "job"), sandbox.status("job")["verified"].clone()), (vec![], json!(null)));
    // --yes trusts them for one start.
    let run =
        sandbox.refrain(&["start", "--yes", "--command", &agent, "--name", "once", "Do it."]).with_code(0);
    assert!(!run.stderr.contains("starts without gates"), "{}", run.stderr);
    assert_eq!(gates(&sandbox, "once"), ["test"]);
}

/// A configuration that the user does not trust has gates too, and a generic command has no others.
#[test]
fn gates_of_an_untrusted_configuration_are_said_to_be_missing_wherever_the_loop_is_shown() {
    let sandbox = project();
    let gates = "[gates.tests]\ncommand = \"sh test.sh\"\n";
    write(&sandbox.project().join("refrain.toml"), gates);
    let go = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("read -r _ < $GATES/go; {CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--detach", "Do it."]).with_code(0);
    sandbox.wait_for_event("job", "attempt.spawned");
    let listed = || sandbox.refrain(&["list"]).with_code(0).stdout;
    assert!(listed().contains("running; without gates that are not trusted"), "{}", listed());
    let watch = sandbox.spawn(&["watch", "job"]);
    go.let_one_pass();
    let watched = watch.wait().with_code(0).stdout;
    let left = "gates of refrain.toml are left out, as you do not trust them: refrain trust";
    assert!(watched.contains(&format!("lacks  {left}")), "{watched}");
    assert!(watched.contains("next: refrain trust, "), "{watched}");
    let reason = "unverified, as its gates are not trusted and were left out";
    assert!(watched.contains(reason) && listed().contains(reason), "{watched}");
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains(left) && shown.contains(reason), "{shown}");
    assert_eq!(sandbox.status("job")["untrusted"], json!(["refrain.toml"]));

    // A file without gates hides nothing.
    write(&sandbox.project().join("refrain.toml"), "[start]\nmax-iterations = 3\n");
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "other", "Do it."]).with_code(0);
    assert!(!run.stdout.contains("lacks") && run.stdout.contains("as no gate checks it"), "{}", run.stdout);

    // One that is invalid too is said to be that.
    write(&sandbox.project().join("refrain.toml"), "[start]\nmax-iterations = [\n");
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "third", "Do it."]).with_code(0);
    assert!(!run.stdout.contains("lacks"), "{}", run.stdout);
    assert!(run.stderr.contains("the file that is not trusted is invalid too"), "{}", run.stderr);
}

#[rstest]
#[case::named(&["--gate", "mine=true"], &["mine"])]
#[case::advisory(&["--soft-gate", "mine=true"], &["mine"])]
#[case::success(&["--success-command", "true"], &["success"])]
#[case::none(&["--no-gates"], &[])]
#[case::research(&["--mode", "research"], &[])]
#[case::a_command(&["--agent", "generic"], &[])]
#[case::a_moment(&["--gate-when", "claim"], &["test"])]
fn options_about_gates_replace_the_default(#[case] options: &[&str], #[case] expected: &[&str]) {
    let sandbox = project();
    sandbox.trust();
    let agent = claude(&sandbox, "touch done; says '<promise>COMPLETE</promise>'");
    let words = ["start", "--command", &agent, "--name", "job", "-m", "1", "--prompt", "Do it."];
    sandbox.refrain(&[&words[..], options].concat());
    assert_eq!(gates(&sandbox, "job"), expected);
}

#[test]
fn the_configuration_turns_them_off_and_contradictions_are_refused() {
    let sandbox = project();
    sandbox.refrain(&["config", "set", "start.auto-gates", "false"]).with_code(0);
    sandbox.trust();
    let agent = agent(&sandbox);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Do it."]).with_code(0);
    assert_eq!(gates(&sandbox, "job"), [] as [&str; 0]);
    for more in [["--gate", "true"], ["--auto-gates", "--yes"]] {
        let words = ["start", "--command", &agent, "--no-gates", "Do it."];
        let refused = sandbox.refrain(&[&words[..], &more].concat()).with_code(2).stderr;
        assert!(refused.contains("--no-gates"), "{refused}");
    }
}

#[test]
fn a_gate_that_cannot_run_is_dropped() {
    let sandbox = sandbox();
    with_test(&sandbox, "exec no-such-runner");
    sandbox.trust();
    let agent = claude(&sandbox, "says '<promise>COMPLETE</promise>'");
    let run = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Do it."]).with_code(0);
    assert!(run.stdout.contains("gate test cannot run and is dropped: exit code 127: "), "{}", run.stdout);
    assert!(run.stdout.contains("no required gate is left"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["gates"]), (&json!(null), &json!([])));
    sandbox.refrain(&["verify", "job"]).with_code(0);
}

#[test]
fn a_default_gate_without_its_program_is_dropped_before_the_start() {
    let sandbox = sandbox();
    write(&sandbox.project().join("go.mod"), "module x\n\ngo 1.22\n");
    write(&sandbox.project().join("x_test.go"), "package x\n");
    // A PATH with only the programs that run here.
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    for program in ["git", "sh", "cat"] {
        let found = path.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
        symlink(found.unwrap(), bin.join(program)).unwrap();
    }
    let agent = claude(&sandbox, "says '<promise>COMPLETE</promise>'");
    let words = ["start", "--yes", "--command", &agent, "--name", "job", "Do it."];
    let run = sandbox.command(&words).env("PATH", bin.to_str().unwrap()).run().with_code(0);
    assert!(run.stderr.contains("command not found: go; it is dropped"), "{}", run.stderr);
    assert_eq!(gates(&sandbox, "job"), [] as [&str; 0]);
}

#[test]
fn a_tool_takes_them_too() {
    let sandbox = project();
    sandbox.trust();
    let agent = agent(&sandbox);
    let asked = |name: &str, no_gates: bool| json!({"goal": "Do it.", "command": agent, "name": name, "no_gates": no_gates});
    does(&sandbox, "loop_start", asked("job", false));
    assert_eq!(sandbox.wait_for_status("job", "completed")["verified"], true);
    does(&sandbox, "loop_start", asked("other", true));
    sandbox.wait_for_status("other", "completed");
    assert_eq!(gates(&sandbox, "other"), [] as [&str; 0]);
}

#[rstest]
#[case::yes("y\n", &["test"])]
#[case::no("\n", &[])]
#[case::neither("x\ny\n", &["test"])]
fn a_terminal_asks_until_it_is_answered(#[case] keys: &str, #[case] expected: &[&str]) {
    let sandbox = project();
    let agent = claude(&sandbox, "touch done; says '<promise>COMPLETE</promise>'");
    let mut terminal =
        Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "Do it."], &[]);
    terminal.wait_for("Trust these commands and use them as gates? [y/N]");
    assert!(terminal.text().contains("sh test.sh   (required)"), "{}", terminal.text());
    terminal.type_keys(keys);
    assert_eq!(terminal.wait().0, 0);
    assert_eq!(gates(&sandbox, "job"), expected);
    let listed = sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json();
    assert_eq!(listed.as_array().unwrap().len(), expected.len());
}
