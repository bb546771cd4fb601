//! Claims and their proof: gates that Refrain runs itself, and the weight of an agent's claim against them.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, Session, write};

use crate::{CLAIM, plain_folder, sandbox};

/// Claims in every iteration; the claim is true from the third on.
fn liar(sandbox: &Sandbox) -> String {
    let script = format!(
        "echo \"try $REFRAIN_ITERATION\" > tries.txt\n[ $REFRAIN_ITERATION -lt 3 ] || echo good > work.txt\n{CLAIM}"
    );
    sandbox.agent("liar", &script)
}

/// Fails until the work is good.
const TESTS: &str =
    "tests=grep -qs good work.txt && echo 1 passed || { echo 'work is bad' >&2; echo 1 failed; exit 1; }";

fn start<'a>(agent: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["start", "--command", agent, "--name", "job", "-p", "Mend the work."];
    words.extend(more);
    words
}

fn gate<'a>(status: &'a Value, name: &str) -> &'a Value {
    let found = status["gates"].as_array().unwrap().iter().find(|gate| gate["name"] == name);
    found.unwrap_or_else(|| panic!("no gate {name} in {}", status["gates"]))
}

/// How often each gate was started, baseline and all.
fn runs(sandbox: &Sandbox, name: &str) -> usize {
    let is_start = |record: &&Value| {
        record["event"]["type"] == "gate.started" && record["event"]["data"]["gate"] == name
    };
    sandbox.journal("job").iter().filter(is_start).count()
}

#[test]
fn a_lying_agent_is_refused_until_the_gate_passes() {
    let sandbox = sandbox();
    let agent = liar(&sandbox);
    let script = TESTS.trim_start_matches("tests=");
    fs::rename(sandbox.agent("test.sh", script), sandbox.project().join("test.sh")).unwrap();
    sandbox.git(&["add", "test.sh"]);
    sandbox.git(&["commit", "-qm", "Test"]);
    let run = sandbox.refrain(&start(&agent, &["--gate", "tests=./test.sh"])).with_code(0);
    let tree = sandbox.status("job")["tree"].as_str().unwrap().to_owned();
    let shown =
        sandbox.redact(&run.stdout).replace(sandbox.git(&["rev-parse", "HEAD"])[..10].trim(), "[head]");
    insta::assert_snapshot!(shown.replace(&tree[..10], "[tree]"), @r#"
    loop job
      runs   [root]/agents/liar (generic)
      in     [root]/project
      until  it says <promise>COMPLETE</promise>, at most 20 iterations
      proof  tests (./test.sh)
    · on branch main at [head]
    · gate tests, before the first iteration: ./test.sh
    work is bad
    1 failed
    FAIL  tests  [took]: exit code 1
    [loop job iteration 1/20]
    <promise>COMPLETE</promise>
    · iteration 1 took [took]: it claims to be done
    · gate tests: ./test.sh
    work is bad
    1 failed
    FAIL  tests  [took]: exit code 1; it failed before the first iteration too
    ! the claim is refused: gate tests failed
    [loop job iteration 2/20]
    <promise>COMPLETE</promise>
    · iteration 2 took [took]: it claims to be done
    · gate tests: ./test.sh
    work is bad
    1 failed
    FAIL  tests  [took]: exit code 1; it failed before the first iteration too
    ! the claim is refused: gate tests failed
    [loop job iteration 3/20]
    <promise>COMPLETE</promise>
    · iteration 3 took [took]: it claims to be done
    · gate tests: ./test.sh
    1 passed
    PASS  tests  [took]
    ✔ verified: tree [tree]
    ✔ verified after 3 iterations in [took]: the agent made its promise, and every required gate passed on tree [tree]
      2 files, +2 -0
      next: refrain diff job, refrain report job, refrain logs job
    "#);

    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(3)));
    let tree = status["tree"].as_str().unwrap();
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", tree]), "README.md\ntest.sh\ntries.txt\nwork.txt\n");
    let claims: Vec<_> = (0..3).map(|n| status["iterations"][n]["gates"][0]["passed"].clone()).collect();
    assert_eq!(claims, [json!(false), json!(false), json!(true)]);
    assert_eq!(gate(&status, "tests")["exit_code"], 0);

    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("CLAIM REFUSED: gate tests failed (`./test.sh`): exit code 1"), "{prompt}");
    assert!(prompt.contains("it failed before the first run too"), "{prompt}");
    assert!(prompt.contains("```\nwork is bad\n1 failed\n```"), "both streams, in order: {prompt}");
    let first = sandbox.kept_text("job", "0001", "prompt.md");
    assert!(first.contains("FAILED BEFORE YOU BEGAN: gate tests"), "{first}");
    assert!(first.contains("  - tests: `./test.sh`"), "{first}");
    assert_eq!(sandbox.kept_text("job", "0003", "gates/tests.log"), "1 passed\n");
    let logs = sandbox.refrain(&["logs", "job"]).with_code(0).stdout;
    assert!(
        logs.starts_with("== before the first iteration\n-- gate tests\nwork is bad\n1 failed\n"),
        "{logs}"
    );
    let third = sandbox.refrain(&["logs", "job", "--iteration", "3"]).with_code(0).stdout;
    assert_eq!(third, "== iteration 3\n<promise>COMPLETE</promise>\n-- gate tests\n1 passed\n");
    let followed = sandbox.refrain(&["logs", "job", "-f"]).with_code(0).stdout;
    assert!(followed.ends_with(&third), "{followed}");
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("tests passed") && shown.contains(tree), "{shown}");
}

#[test]
fn failures_from_before_the_loop_are_distinguished_from_new_ones() {
    let sandbox = sandbox();
    write(&sandbox.project().join("old.txt"), "fine\n");
    let agent = sandbox.agent("breaker", "rm -f old.txt; echo x > new.txt");
    let old = "old=test -e old.txt";
    let run = sandbox.refrain(&start(&agent, &["-m", "1", "--gate", old, "--gate", TESTS])).with_code(10);
    assert!(run.stdout.contains("FAIL  old  "), "{}", run.stdout);
    assert!(run.stdout.contains("it passed before the first iteration"), "{}", run.stdout);
    assert!(run.stdout.contains("it failed before the first iteration too"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!(gate(&status, "old")["failed_before"], false);
    assert_eq!(gate(&status, "tests")["failed_before"], true);
    assert_eq!((&status["verified"], &status["tree"]), (&json!(false), &json!(null)));
    assert_eq!(status["last_failure"]["gate"], "old");
    assert!(status["reason"].as_str().unwrap().contains("gates old, tests fail"), "{}", status["reason"]);
}

#[test]
fn a_gate_that_passes_when_it_is_tried_again_is_flaky() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    let flaky = r#"flaky=echo x >> "$NOTES/runs"; [ $(($(wc -l < "$NOTES/runs") % 2)) = 0 ]"#;
    let run = sandbox.refrain(&start(&agent, &["--gate", flaky, "--gate-retries", "1"])).with_code(0);
    assert!(run.stdout.contains("gate flaky failed; it is tried again"), "{}", run.stdout);
    assert!(run.stdout.contains("flaky: it had failed on the same files"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!((&gate(&status, "flaky")["flaky"], &status["verified"]), (&json!(true), &json!(true)));
}

#[test]
fn a_soft_gate_informs_and_decides_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let run = sandbox.refrain(&start(&agent, &["--soft-gate", "lint=echo ugly; exit 3"])).with_code(0);
    assert!(
        run.stdout.contains("no required gate: a claim completes the loop, unverified; advisory: "),
        "{}",
        run.stdout
    );
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &gate(&status, "lint")["hard"]), (&json!(null), &json!(false)));
    assert!(status["reason"].as_str().unwrap().contains("unverified"));
}

#[test]
fn a_gate_over_its_time_limit_fails_and_leaves_no_process() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let slow = "slow=echo before; setsid sleep 1000 & sleep 1000";
    sandbox.refrain(&start(&agent, &["-m", "1", "--gate", slow, "--gate-timeout", "300ms"])).with_code(10);
    let status = sandbox.status("job");
    assert!(gate(&status, "slow")["why"].as_str().unwrap().contains("longer than it may"));
    assert_eq!(sandbox.kept_text("job", "0001", "gates/slow.log"), "before\n");
    sandbox.no_process_is_left();
}

#[test]
fn processes_that_a_gate_left_are_ended_before_the_next_step() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    let forks = "forks=( setsid sleep 1000 > /dev/null 2>&1 & ) ; echo done";
    let run = sandbox.refrain(&start(&agent, &["--gate", forks, "--gate", "last=true"])).with_code(0);
    assert!(run.stdout.contains("left behind"), "{}", run.stdout);
    let names = sandbox.event_names("job");
    let swept = names.iter().filter(|name| *name == "attempt.swept").count();
    assert_eq!(swept, 2, "before the first iteration and after it: {names:?}");
    sandbox.no_process_is_left();
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
fn a_pause_in_a_gate_ends_it_and_resume_runs_it_again() {
    let sandbox = sandbox();
    let _held = sandbox.gate("held");
    let session = in_a_gate(&sandbox);
    sandbox.refrain(&["pause", "job", "--now"]).with_code(0);
    session.wait().with_code(16);
    sandbox.no_process_is_left();
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("paused"), &json!(1)));

    let run = sandbox.refrain(&["resume", "job"]).with_code(0);
    assert!(!run.stdout.contains("[loop job iteration 2"), "the agent is not asked again: {}", run.stdout);
    assert_eq!(
        (runs(&sandbox, "first"), runs(&sandbox, "held")),
        (2, 3),
        "what had finished is not run again"
    );
    assert_eq!(sandbox.status("job")["verified"], true);
}

#[test]
fn a_cancel_in_a_gate_ends_it_and_the_loop() {
    let sandbox = sandbox();
    let _held = sandbox.gate("held");
    let session = in_a_gate(&sandbox);
    sandbox.refrain(&["cancel", "job", "--now"]).with_code(0);
    session.wait().with_code(15);
    sandbox.no_process_is_left();
    assert_eq!(sandbox.status("job")["verified"], false);
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
fn an_unchanged_candidate_is_not_gated_again() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "idler",
        &format!(
            "case $REFRAIN_ITERATION in 1) echo good > work.txt ;; 2) echo thinking ;; *) {CLAIM} ;; esac"
        ),
    );
    let run = sandbox.refrain(&start(&agent, &["--gate", TESTS])).with_code(0);
    assert!(run.stdout.contains("its results are reused"), "{}", run.stdout);
    assert_eq!(runs(&sandbox, "tests"), 2, "before the first iteration and after it");
    assert_eq!(sandbox.status("job")["verified"], true);
}

#[test]
fn changes_of_the_user_before_the_loop_are_gated_each_time() {
    let sandbox = sandbox();
    write(&sandbox.project().join("work.txt"), "good\n");
    let agent = sandbox.agent("breaker", &format!("echo bad > work.txt\n{CLAIM}"));
    sandbox.refrain(&start(&agent, &["-m", "2", "--gate", TESTS])).with_code(10);
    assert_eq!(sandbox.status("job")["verified"], false, "its tree is what it was, and it is broken");
}

#[test]
fn a_gate_that_cannot_run_is_a_failure_and_named() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    let gate_words = ["-m", "1", "--allow-missing-gates", "--gate", "no-such-program --all"];
    let run = sandbox.refrain(&start(&agent, &gate_words)).with_code(10);
    assert!(run.stdout.contains("no-such-program --all"), "{}", run.stdout);
    let status = sandbox.status("job");
    assert_eq!(gate(&status, "no-such-program")["exit_code"], 127);
    let shown = sandbox.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(shown.contains("no-such-program --all"), "{shown}");
}

#[test]
fn without_a_promise_the_gates_alone_complete() {
    let sandbox = sandbox();
    let agent = sandbox.agent("quiet", "[ $REFRAIN_ITERATION = 1 ] || echo good > work.txt");
    sandbox
        .refrain(&start(&agent, &["--no-promise", "--success-command", "grep -qs good work.txt"]))
        .with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["iteration"], &status["verified"]), (&json!(2), &json!(true)));
    assert_eq!(
        (&status["claim"]["source"], &status["gates"][0]["name"]),
        (&json!("gates"), &json!("success"))
    );
}

#[test]
fn gates_can_be_saved_for_claims() {
    let sandbox = sandbox();
    let agent = sandbox.agent(
        "agent",
        &format!("echo $REFRAIN_ITERATION > n.txt; [ $REFRAIN_ITERATION -lt 3 ] || {{ echo good > work.txt; {CLAIM}; }}"),
    );
    sandbox.refrain(&start(&agent, &["--gate", TESTS, "--gate-when", "claim"])).with_code(0);
    assert_eq!(runs(&sandbox, "tests"), 2);
}

#[test]
fn only_a_candidate_whose_gates_passed_is_committed() {
    let sandbox = sandbox();
    let agent = liar(&sandbox);
    sandbox.refrain(&start(&agent, &["--gate", TESTS, "--git-workflow", "commit"])).with_code(0);
    assert_eq!(sandbox.git(&["log", "--format=%s"]), "Mend the work.\nBegin\n");
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(sandbox.status("job")["tree"], tree.trim());
}

#[test]
fn a_hook_that_changes_the_commit_sends_it_back_to_the_gates() {
    let sandbox = sandbox();
    let hook = sandbox.agent("a-hook", "echo formatted > style.txt; git add style.txt");
    fs::rename(hook, sandbox.project().join(".git/hooks/pre-commit")).unwrap();
    let agent = sandbox.agent("agent", &format!("echo good > work.txt\n{CLAIM}"));
    sandbox.refrain(&start(&agent, &["--gate", TESTS, "--git-workflow", "commit"])).with_code(0);
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(sandbox.status("job")["tree"], tree.trim(), "what is proven is what is committed");
    assert_eq!(runs(&sandbox, "tests"), 3);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_gate_that_changes_files_each_time_proves_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo good > work.txt\n{CLAIM}"));
    let run =
        sandbox.refrain(&start(&agent, &["-m", "1", "--gate", "stamps=date +%N >> stamp.txt"])).with_code(10);
    assert!(run.stdout.contains("change each time"), "{}", run.stdout);
    assert_eq!(sandbox.status("job")["verified"], false);
}

#[test]
fn a_plain_folder_can_be_proven_too() {
    let plain = plain_folder();
    let agent = liar(&plain);
    plain.refrain(&start(&agent, &["--gate", TESTS])).with_code(0);
    let status = plain.status("job");
    assert_eq!((&status["verified"], &status["tree"]), (&json!(true), &json!(null)));
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
fn variables_that_gates_are_to_have_are_given_or_passed_on() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    let value = ["hush", "hush"].join("-");
    let config = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&config).unwrap();
    write(&config.join("config.toml"), format!("[gates]\nenv = [\"CONFIGURED={value}\", \"GIVEN=no\"]\n"));
    let sees = r#"sees=echo "$REFRAIN_LOOP_ID.$REFRAIN_ITERATION.$CONFIGURED.$GIVEN.$PASSED.$ABSENT" > "$NOTES/seen""#;
    let given = ["REFRAIN_LOOP_ID", "REFRAIN_ITERATION", "GIVEN=a=b", "PASSED", "ABSENT"];
    let given = given.iter().flat_map(|name| ["--gate-env", name]);
    let words: Vec<_> = start(&agent, &["--gate", sees, "--clean-env"]).into_iter().chain(given).collect();
    let notes = format!("NOTES={}", sandbox.root().join("notes").display());
    let words = [&words[..], &["--env", &notes]].concat();
    sandbox.command(&words).env("PASSED", "on").run().with_code(0);
    assert_eq!(sandbox.note("seen"), format!("job.1.{value}.a=b.on.\n"));
    let shown = sandbox.refrain(&["show", "job", "--json"]).stdout;
    assert!(shown.contains("\"CONFIGURED\": \"[redacted]\"") && !shown.contains(&value), "{shown}");
    let shown = sandbox.refrain(&["config", "show"]).stdout;
    assert!(shown.contains("CONFIGURED=[redacted]") && !shown.contains(&value), "{shown}");
    write(&config.join("config.toml"), format!("[gates]\nenv = \"ONE={value}\"\n"));
    let shown = sandbox.refrain(&["config", "show"]).stdout;
    assert!(shown.contains("ONE=[redacted]") && !shown.contains(&value), "{shown}");

    let before = sandbox.snapshot();
    for (bad, says) in [("=x", "accepted: NAME or NAME=VALUE"), ("A B=x", "accepted: NAME or NAME=VALUE")] {
        let run = sandbox.refrain(&start(&agent, &["--gate", "true", "--gate-env", bad])).with_code(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    assert_eq!(sandbox.snapshot(), before);
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

#[test]
fn a_loop_with_gates_has_its_worktree_for_itself() {
    let sandbox = sandbox();
    let _held = sandbox.gate("held");
    let session = in_a_gate(&sandbox);
    let agent = sandbox.agent("second", CLAIM);
    let refused = sandbox.refrain(&["start", "--command", &agent, "-p", "x"]).with_code(17);
    assert!(refused.stderr.contains("loop job works in"), "{}", refused.stderr);
    drop(session);
}

#[test]
fn gates_of_the_configuration_are_run_and_options_come_before_them() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo x > x.txt\n{CLAIM}"));
    write(
        &sandbox.project().join("refrain.toml"),
        "[gates.tests]\ncommand = \"false\"\n[gates.lint]\ncommand = \"false\"\nhard = false\n",
    );
    sandbox.trust();
    sandbox.refrain(&start(&agent, &["--gate", "tests=true"])).with_code(0);
    let status = sandbox.status("job");
    assert_eq!(
        (&gate(&status, "lint")["passed"], &gate(&status, "tests")["passed"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn invalid_gate_options_are_refused_before_a_loop_begins() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    for (more, named) in [
        (&["--gate", " "][..], &["--gate", "shell command"][..]),
        (&["--gate", "a=true", "--soft-gate", "a=false"], &["a:", "two gates"]),
        (&["--gate-timeout", "5s"], &["--gate-timeout", "--gate"]),
        (&["--gate", "true", "--gate-timeout", "soon"], &["soon"]),
        (&["--gate", "true", "--gate-retries", "101"], &["101"]),
        (&["--gate", "true", "--gate-when", "never"], &["never", "claim"]),
        (&["--success-command", "true", "--gate", "success=true"], &["success", "two gates"]),
    ] {
        let run = sandbox.refrain(&start(&agent, more)).with_code(2);
        for name in named {
            assert!(run.stderr.contains(name), "{more:?}: {}", run.stderr);
        }
    }
    assert!(!sandbox.loop_dir("job").join("journal.jsonl").exists());
}

#[test]
fn a_gate_that_tests_nothing_has_not_passed() {
    for (nothing, said) in [
        ("tests=echo 'collected 0 items'; echo 'no tests ran in 0.01s'; exit 5", "no tests ran"),
        (
            "tests=echo 'running 0 tests'; echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured'",
            "running 0 tests",
        ),
        ("tests=no-such-program-here", "not found"),
    ] {
        let sandbox = sandbox();
        let agent = sandbox.agent("liar", CLAIM);
        let words = ["--gate", nothing, "-m", "1", "--allow-missing-gates"];
        let run = sandbox.refrain(&start(&agent, &words)).with_code(10);
        assert!(run.stdout.contains("the claim is refused: gate tests failed"), "{}", run.stdout);
        let status = sandbox.status("job");
        assert_eq!((&gate(&status, "tests")["passed"], &status["verified"]), (&json!(false), &json!(false)));
        let prompt_next = sandbox.refrain(&["resume", "job", "-m", "2"]).with_code(10).stdout;
        assert!(prompt_next.contains(said), "{prompt_next}");
    }
}

/// Earlier uncommitted changes are no part of the candidate's tree; a worktree's gates see them all the same.
#[test]
fn a_proof_with_changes_outside_its_tree_says_so() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo good > work.txt\n{CLAIM}"));
    write(&sandbox.project().join("work.txt"), "bad, and not committed\n");
    let run = sandbox.refrain(&start(&agent, &["--gate", TESTS])).with_code(0);
    assert!(run.stdout.contains(", and changes that it does not show\n"), "{}", run.stdout);
    let status = sandbox.status("job");
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.ends_with(" and changes that it does not show"), "{reason}");
    assert_eq!((&status["verified"], &status["tree_is_partial"]), (&json!(true), &json!(true)));
    let listed = sandbox.refrain(&["list", "--json"]).with_code(0).stdout;
    assert!(listed.contains("\"tree_is_partial\":"), "{listed}");

    // A checkout elsewhere has none of it: the loop is refused before it begins.
    sandbox.refrain(&["archive", "job"]).with_code(0);
    let clean = start(&agent, &["--gate", TESTS, "--clean-checkout", "-m", "1"]);
    let run = sandbox.refrain(&clean).with_code(10);
    let told = "1 file was changed before the loop: it stays yours, and is not seen by the gates";
    assert!(run.stdout.contains(told), "{}", run.stdout);
}
