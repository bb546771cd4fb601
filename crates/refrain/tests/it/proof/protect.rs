//! Protected paths, from a person's side: how they are set, shown and refused, and which changes are not the agent's
//! fault.

use std::fs;

use rstest::rstest;
use serde_json::json;
use testkit::{Sandbox, write};

use crate::{CLAIM, plain_folder, sandbox};

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["start", "--command", agent, "--name", "job", "-p", "Work."], more].concat()
}

/// A project with a test, committed, that a gate may run.
fn project() -> Sandbox {
    let sandbox = sandbox();
    fs::create_dir(sandbox.project().join("tests")).unwrap();
    write(&sandbox.project().join("tests/a.sh"), "true\n");
    write(&sandbox.project().join("test.sh"), "#!/bin/sh\nsh tests/a.sh && echo '1 passed'\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Tests"]);
    sandbox
}

fn base(sandbox: &Sandbox) -> serde_json::Value {
    let journal = sandbox.journal("job");
    journal.iter().rev().find(|record| record["event"]["type"] == "base.taken").unwrap()["event"]["data"]
        .clone()
}

#[test]
fn the_header_names_three_protected_paths_and_the_page_about_them() {
    let sandbox = project();
    let agent = sandbox.agent("agent", CLAIM);
    let protect = ["--protect", "/a", "--protect", "/b", "--protect", "/c", "--protect", "/d"];
    let run = sandbox.refrain(&start(&agent, &[&protect[..], &["--gate", "true"]].concat())).with_code(0);
    let row = "\n  keeps  /a, /b, /c and 1 more; see refrain docs protection\n";
    assert!(run.stdout.contains(row), "{}", run.stdout);
}

#[test]
fn offered_protection_is_shown_pinned_and_in_the_prompt() {
    let sandbox = project();
    let agent = sandbox.agent("agent", &format!("echo x > x\n{CLAIM}"));
    let run = sandbox.refrain(&start(&agent, &["--auto-gates", "--yes"])).with_code(0);
    assert!(run.stdout.contains("\n  proof  test (sh test.sh)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\n  keeps  "), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["verified"], true);
    let spec = &sandbox.journal("job")[0]["event"]["data"]["spec"];
    let frozen = spec["protect"]["frozen"].as_array().unwrap();
    assert!(frozen.contains(&json!("/test.sh")), "{frozen:?}");
    assert!(spec["protect"]["existing"].as_array().unwrap().contains(&json!("**/tests/**")));
    let base = base(&sandbox);
    let tree = base["protected"].as_str().unwrap();
    let kept = sandbox.git(&["ls-tree", "-r", "--name-only", tree]);
    assert!(
        kept.contains("test.sh\n") && kept.contains("tests/a.sh\n") && !kept.contains("README"),
        "{kept}"
    );
    assert_eq!(base["programs"][0]["name"], "sh");
    let prompt = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(
        prompt.contains("\n- Claims fail with changes or new files in ")
            && prompt.contains("; changes to existing "),
        "{prompt}"
    );
}

#[test]
fn a_gate_by_hand_comes_first_and_takes_the_place_of_an_offered_one() {
    let sandbox = project();
    let agent = sandbox.agent("agent", CLAIM);
    let flags = ["--auto-gates", "--yes", "--gate", "first=true", "--gate", "test=echo mine"];
    let run = sandbox.refrain(&start(&agent, &flags)).with_code(0);
    assert!(run.stdout.contains("\n  proof  first (true), test (echo mine)\n"), "{}", run.stdout);
}

#[test]
fn offered_gates_run_at_the_top_wherever_the_agent_works() {
    let sandbox = project();
    let agent = sandbox.agent("agent", CLAIM);
    let inside = sandbox.project().join("tests");
    let run = sandbox.command(&start(&agent, &["--auto-gates", "--yes"])).dir(&inside).run().with_code(0);
    assert!(run.stdout.contains("test (cd .. && sh test.sh)"), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["verified"], true);
}

#[test]
fn a_protection_that_covers_no_file_is_named() {
    let sandbox = project();
    write(&sandbox.project().join(".gitignore"), "/local\n");
    write(&sandbox.project().join("local"), "x\n");
    let agent = sandbox.agent("agent", CLAIM);
    let absolute = sandbox.project().join("test.sh").to_str().unwrap().to_owned();
    let covering = [
        "--protect",
        "test.sh",
        "--protect",
        "local",
        "--protect",
        &absolute,
        "--protect-existing",
        "tests/*.sh",
    ];
    let wrong = ["--protect", "test/**", "--protect-existing", "spec/"];
    let run = sandbox.refrain(&start(&agent, &[&covering[..], &wrong].concat())).with_code(0);
    let note = "note: no file matches what is to be protected: test/**, spec/\n";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    // An absolute path is protected as what it is in the worktree.
    let spec = &sandbox.journal("job")[0]["event"]["data"]["spec"]["protect"];
    assert_eq!(spec["frozen"][2], "/test.sh");
}

#[test]
fn the_configuration_says_it_too() {
    let sandbox = project();
    write(
        &sandbox.project().join("refrain.toml"),
        "[start]\nauto-gates = true\n[protect]\nfrozen = ['ci']\nexisting = ['docs/']\n",
    );
    sandbox.trust();
    let agent = sandbox.agent("agent", &format!("mkdir ci; echo x > ci/run\n{CLAIM}"));
    let run = sandbox.refrain(&start(&agent, &["-m", "1", "--protect", "lint.sh"])).with_code(10);
    assert!(
        run.stdout.contains("the claim is refused: ci/run is new, but --protect ci keeps"),
        "{}",
        run.stdout
    );
    let spec = &sandbox.journal("job")[0]["event"]["data"]["spec"]["protect"];
    assert_eq!(
        (&spec["frozen"][0], &spec["frozen"][1], &spec["existing"][0]),
        (&json!("ci"), &json!("lint.sh"), &json!("docs/"))
    );
}

#[test]
fn a_plain_folder_has_gates_to_offer_but_nothing_that_tells_a_touch() {
    let sandbox = plain_folder();
    write(&sandbox.project().join("test.sh"), "echo '1 passed'\n");
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&start(&agent, &["--auto-gates", "--yes"])).with_code(0);
    assert!(run.stderr.contains("note: nothing is protected"), "{}", run.stderr);
    assert!(run.stdout.contains("test (sh test.sh)") && !run.stdout.contains("keeps"), "{}", run.stdout);
}

#[rstest]
#[case(&["--protect", ""], "a glob cannot be empty")]
#[case(&["--protect", "../x"], "lies outside the worktree")]
#[case(&["--protect-existing", "[a"], "is no glob")]
#[case(&["--auto-gates", "--yes"], "--auto-gates: no test was found that could be a gate")]
fn protection_options_that_protect_nothing_are_refused(#[case] flags: &[&str], #[case] says: &str) {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&start(&agent, flags)).with_code(2);
    assert!(run.stderr.contains(says), "{}", run.stderr);
    assert!(!sandbox.loop_dir("job").exists());
}

#[test]
fn a_protection_without_a_repository_is_refused() {
    let sandbox = plain_folder();
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&start(&agent, &["--protect", "tests"])).with_code(2);
    assert!(run.stderr.contains("in a git repository") && run.stderr.contains("git init"), "{}", run.stderr);
}

#[test]
fn without_gates_a_touched_path_refuses_the_claim_too() {
    let sandbox = project();
    let agent = sandbox.agent(
        "agent",
        &format!("case $REFRAIN_ITERATION in 1) rm tests/a.sh ;; *) git checkout -q tests ;; esac\n{CLAIM}"),
    );
    let run = sandbox.refrain(&start(&agent, &["--protect-existing", "tests"])).with_code(0);
    assert!(run.stdout.contains("the claim is refused: tests/a.sh was deleted"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(null), &json!(2)));
}

#[test]
fn protected_files_that_the_user_changed_before_are_the_baseline() {
    let sandbox = project();
    write(&sandbox.project().join("tests/a.sh"), "true # mine\n");
    write(&sandbox.project().join("tests/b.sh"), "true # mine, new\n");
    let agent = sandbox.agent(
        "agent",
        &format!("case $REFRAIN_ITERATION in 1) git checkout -q tests; rm tests/b.sh ;; *)
            tree=$(git show-ref -q HEAD; sed -n 's/.*git show \\([0-9a-f]*\\):PATH.*/\\1/p' \"$REFRAIN_CONTEXT_FILE\")
            for file in a b; do git show $tree:tests/$file.sh > tests/$file.sh; done ;; esac\n{CLAIM}"),
    );
    let run = sandbox.refrain(&start(&agent, &["--protect", "tests"])).with_code(0);
    assert!(run.stdout.contains("tests/a.sh was changed"), "{}", run.stdout);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("-true # mine\n+true\n") && prompt.contains("-true # mine, new"), "{prompt}");
    let text = fs::read_to_string(sandbox.project().join("tests/b.sh")).unwrap();
    assert_eq!(text, "true # mine, new\n", "put back from what the prompt names");
}

#[rstest]
#[case::nothing_was_touched("true", 0)]
#[case::the_agent_had_touched_it("echo 'true # weak' > tests/a.sh", 10)]
fn protected_files_that_a_person_changes_during_a_pause_are_theirs(#[case] first: &str, #[case] code: i32) {
    let sandbox = project();
    let agent = sandbox
        .agent("agent", &format!("case $REFRAIN_ITERATION in 1) {first}; echo x > x ;; *) {CLAIM} ;; esac"));
    sandbox.refrain(&start(&agent, &["-m", "1", "--gate", "sh test.sh", "--protect", "tests"])).with_code(10);
    write(&sandbox.project().join("tests/a.sh"), "true # the person's\n");
    let run = sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(code);
    assert_eq!(
        run.stdout.contains("the claim is refused: tests/a.sh was changed"),
        code == 10,
        "{}",
        run.stdout
    );
}
