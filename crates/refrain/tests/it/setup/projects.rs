//! Whole loops over realistic projects: a crate, a Python package and a Node package, each with its own test runner,
//! two faults and tests for both. The gates are those that `--auto-gates` detects.

use std::fs;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Laid, Project, Run, Sandbox, write};

use crate::{CLAIM, sandbox};

/// All further options that a user may set.
const CARE: &[&str] =
    &["--auto-gates", "--yes", "--git-workflow", "commit", "--clean-checkout", "--stuck-threshold", "2"];

/// `refrain start` of the loop `job`, seeing the tools of the project.
#[track_caller]
fn start(sandbox: &Sandbox, laid: &Laid, agent: &str) -> Run {
    let words = ["start", "--command", agent, "--name", "job", "-p", "Make the tests pass.", "-m", "6"];
    sandbox.command(&[&words[..], CARE].concat()).env("PATH", &laid.usual_path()).run()
}

fn outcomes(status: &Value) -> Vec<Value> {
    let row = |row: &Value| json!([row["n"], row["outcome"]]);
    status["iterations"].as_array().unwrap().iter().map(row).collect()
}

/// The work is verified, committed, reported, and can be checked; nothing else in the repository has changed.
#[track_caller]
fn is_proven(sandbox: &Sandbox, laid: &Laid, id: &str) {
    let status = sandbox.status(id);
    assert_eq!((&status["status"], &status["verified"]), (&json!("completed"), &json!(true)), "{status:#}");
    let gate = &status["gates"][0];
    assert_eq!(
        (&gate["name"], &gate["hard"], &gate["passed"]),
        (&json!(laid.project.gate), &json!(true), &json!(true)),
        "{status:#}"
    );
    assert_eq!(status["commits"].as_array().unwrap().len(), 1, "{status:#}");
    let proven = status["tree"].as_str().unwrap();
    assert_eq!(
        sandbox.git(&["rev-parse", "HEAD^{tree}"]).trim(),
        proven,
        "what is proven is what is committed"
    );
    let mends = laid.project.mends.map(|(path, _)| path);
    let mut changed: Vec<String> =
        sandbox.git(&["diff", "--name-only", "HEAD^", "HEAD"]).lines().map(str::to_owned).collect();
    changed.sort();
    let mut expected = mends.map(str::to_owned);
    expected.sort();
    assert_eq!(changed, expected);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "nothing lies around");
    sandbox.no_process_is_left();

    sandbox.refrain(&["verify", id]).with_code(0);
    let report = sandbox.refrain(&["report", id]).with_code(0).stdout;
    let page = sandbox.refrain(&["report", id, "--html"]).with_code(0).stdout;
    for text in [&report, &page] {
        for part in [proven, laid.project.gate, mends[0], mends[1], "What proved it"] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}

#[rstest]
#[case::rust(Project::RUST)]
#[case::python(Project::PYTHON)]
#[case::node(Project::NODE)]
fn a_project_is_mended_in_steps_and_an_early_claim_is_refused(#[case] project: Project) {
    let sandbox = sandbox();
    let Some(laid) = project.lay(&sandbox) else { return };
    let agent = sandbox.agent(
        "mender",
        &format!(
            "case $REFRAIN_ITERATION in\n1) {}; echo 'One of them passes.' ;;\n2) {CLAIM} ;;\n3) {}; {CLAIM} ;;\nesac",
            laid.mend(0),
            laid.mend(1)
        ),
    );
    let run = start(&sandbox, &laid, &agent).with_code(0);
    for part in ["before the first iteration", "the claim is refused: gate", "commits what its gates pass"] {
        assert!(
            run.stderr.contains(part) || run.stdout.contains(part),
            "{part:?}: {}{}",
            run.stdout,
            run.stderr
        );
    }
    is_proven(&sandbox, &laid, "job");
    assert_eq!(
        outcomes(&sandbox.status("job")),
        [json!([1, "ended"]), json!([2, "claimed"]), json!([3, "claimed"])]
    );

    // Each prompt has the failures at that time, in the words of the test runner, and only those.
    let prompts = ["0001", "0002", "0003"].map(|attempt| sandbox.kept_text("job", attempt, "prompt.md"));
    let [first, second] = laid.project.failures;
    assert!(prompts[0].contains("committed for you after the gates pass."), "{}", prompts[0]);
    for (prompt, place) in prompts.iter().zip(1..) {
        let compared = prompt.lines().find(|line| line.contains("ailing")).unwrap_or_default();
        let rest = prompt.replace(compared, "");
        assert!(rest.contains(second), "{place}: {prompt}");
        assert_eq!(rest.contains(first), place == 1, "{place}: {prompt}");
        assert_eq!(compared.contains("no longer failing: "), place == 2, "{place}: {prompt}");
        assert_eq!(compared.contains("the same"), place == 3, "{place}: {prompt}");
        assert_eq!(prompt.contains("CLAIM REFUSED"), place == 3, "{place}: {prompt}");
        assert!(!prompt.contains("STRATEGY SHIFT:"), "{place}: {prompt}");
        // One of two faults is another failure than both.
        assert_eq!(
            prompt.contains("; it failed before the first run too, but differently"),
            place > 1,
            "{prompt}"
        );
    }
    let baseline = sandbox.kept_text("job", "0000", &format!("gates/{}.log", laid.project.gate));
    assert!(baseline.contains(first) && baseline.contains(second), "{baseline}");
    let context = fs::read_to_string(sandbox.project().join(".refrain/job/context.md")).unwrap();
    assert!(context.contains(second) && context.contains("Last gate failed"), "{context}");
}

#[rstest]
#[case::rust(Project::RUST)]
#[case::python(Project::PYTHON)]
#[case::node(Project::NODE)]
fn weakened_tests_prove_nothing_until_they_are_put_back(#[case] project: Project) {
    let sandbox = sandbox();
    let Some(laid) = project.lay(&sandbox) else { return };
    let agent = sandbox.agent(
        "cheat",
        &format!(
            "case $REFRAIN_ITERATION in\n1) {}; {CLAIM} ;;\n2) git checkout -q .; {}; {}; {CLAIM} ;;\nesac",
            laid.project.cheat,
            laid.mend(0),
            laid.mend(1)
        ),
    );
    start(&sandbox, &laid, &agent).with_code(0);
    is_proven(&sandbox, &laid, "job");
    assert_eq!(outcomes(&sandbox.status("job")), [json!([1, "claimed"]), json!([2, "claimed"])]);
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains(&format!("{} was changed", laid.project.cheated)), "{prompt}");
    // The weakened tests did not report the failure: the claim was refused for another reason.
    let log = sandbox.kept_text("job", "0001", &format!("gates/{}.log", laid.project.gate));
    assert!(!laid.project.failures.iter().any(|failure| log.contains(failure)), "{log}");
}

/// `refrain run` of the task `mend` in the project, with a specification in it.
#[track_caller]
fn run(sandbox: &Sandbox, laid: &Laid, agent: &str, more: &[&str], variables: &[(&str, &str)]) -> Run {
    let reviewer = sandbox.agent("reviewer", "echo SPEC_PASS");
    write(&sandbox.project().join("task.md"), "Make the tests pass.\n");
    let words =
        ["run", "mend", "task.md", "--yes", "--non-interactive", "--command", agent, "--reviewer", &reviewer];
    let command = sandbox.command(&[&words[..], more].concat()).env("PATH", &laid.usual_path());
    variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run()
}

/// The work so far is on one failure branch with its state; the checkout is as the agent left it.
#[track_caller]
fn is_kept(sandbox: &Sandbox, laid: &Laid) {
    let branches = sandbox.git(&["branch", "--list", "--format=%(refname:short)", "wip/*"]);
    assert!(branches.starts_with("wip/ralph-fail-mend-") && branches.lines().count() == 1, "{branches}");
    let branch = branches.trim();
    let mended = laid.project.mends[0].0;
    assert_eq!(sandbox.git(&["show", &format!("{branch}:{mended}")]), laid.project.mends[0].1);
    let kept = sandbox.git(&["ls-tree", "-r", "--name-only", branch]);
    assert!(kept.contains(".refrain-failure/state.json") && !kept.contains("task.md"), "{kept}");
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
    assert_eq!(sandbox.git(&["rev-list", "--count", "HEAD"]), "4\n");
    let text = fs::read_to_string(sandbox.project().join(".ralph_state.json")).unwrap();
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&state["task_id"], &state["last_gate"]), (&json!("mend"), &json!("tests")), "{state:#}");
    let context = fs::read_to_string(sandbox.project().join(".ralph_context.md")).unwrap();
    assert!(context.contains(laid.project.failures[1]), "{context}");
}

#[rstest]
#[case::rust(Project::RUST)]
#[case::python(Project::PYTHON)]
#[case::node(Project::NODE)]
fn a_task_on_one_is_done_or_kept(#[case] project: Project) {
    let sandbox = sandbox();
    let Some(laid) = project.lay(&sandbox) else { return };
    // It mends one fault and then, as long as it is not told of the other, only writes that it tries.
    let half = sandbox
        .agent("half", &format!("{}; echo try $REFRAIN_ITERATION >> tries.txt; echo trying", laid.mend(0)));
    run(&sandbox, &laid, &half, &["-n", "2"], &[]).with_code(10);
    is_kept(&sandbox, &laid);
    forget(&sandbox);
    run(&sandbox, &laid, &half, &["-n", "9"], &[("RALPH_STUCK_THRESHOLD", "2")]).with_code(13);
    is_kept(&sandbox, &laid);
    assert_eq!(sandbox.status("mend")["iteration"], 4, "two more than the shift");
    forget(&sandbox);

    let whole = sandbox.agent("whole", &format!("{}; {}", laid.mend(0), laid.mend(1)));
    run(&sandbox, &laid, &whole, &[], &[]).with_code(0);
    let status = sandbox.status("mend");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(1)), "{status:#}");
    for name in [".ralph_state.json", ".ralph_context.md", ".ralph.lock"] {
        assert!(!sandbox.project().join(name).exists(), "{name} is left");
    }
    sandbox.refrain(&["verify", "mend"]).with_code(0);
}

/// Takes the failure branch and the work back.
fn forget(sandbox: &Sandbox) {
    let branches = sandbox.git(&["branch", "--list", "--format=%(refname:short)", "wip/*"]);
    sandbox.git(&["branch", "-D", branches.trim()]);
    sandbox.git(&["checkout", "--quiet", "."]);
    sandbox.git(&["clean", "--quiet", "--force"]);
}

#[test]
fn a_task_on_one_is_kept_when_its_time_is_up() {
    let sandbox = sandbox();
    let Some(laid) = Project::PYTHON.lay(&sandbox) else { return };
    let slow = sandbox
        .agent("slow", &format!("[ $REFRAIN_ITERATION = 1 ] || exec sleep 60\n{}; echo half", laid.mend(0)));
    run(&sandbox, &laid, &slow, &["-n", "9"], &[("RALPH_TIMEOUT_GLOBAL", "4")]).with_code(12);
    is_kept(&sandbox, &laid);
    sandbox.no_process_is_left();
}
