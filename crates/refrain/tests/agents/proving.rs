//! The programs on realistic projects, with the gates that `--auto-gates` detects: a fault is fixed, an early claim is
//! refused with the test runner's output, and the next one is verified. And a whole task with one of them as worker and
//! as reviewer.

use serde_json::json;
use testkit::{Agent, Laid, Project, Turn, write};

use crate::bench::{Bench, CLAIM, attempts, used};

/// The model's turn for a fault: it fixes the file.
fn mend(project: &Project, fault: usize) -> Turn {
    let (path, text) = project.mends[fault];
    Turn::write(path, text)
}

/// A bench with the project and its tools. None if the tools are missing, with a note.
fn bench(agent: Agent, project: Project, script: Vec<Turn>) -> Option<(Bench, Laid)> {
    let mut bench = Bench::new(agent, script);
    let laid = project.lay(&bench.sandbox)?;
    let path = bench.real.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| laid.path(path));
    bench.real = bench.real.with("PATH", &path.expect("every program has a PATH"));
    Some((bench, laid))
}

/// Fails, fails otherwise, is claimed too early and refused, is fixed, is verified.
#[track_caller]
fn proves(agent: Agent, project: Project) {
    let script = vec![
        Turn::bash(format!("cat {} {}", project.mends[0].0, project.mends[1].0)),
        mend(&project, 0),
        Turn::say("One of the tests passes now."),
        Turn::bash("git status --short"),
        Turn::say(CLAIM),
        Turn::bash(format!("cat {}", project.mends[1].0)),
        mend(&project, 1),
        Turn::say(CLAIM),
    ];
    let answers = script.len();
    let Some((bench, laid)) = bench(agent, project, script) else { return };
    let status = bench.completes(&["--auto-gates", "--yes", "--git-workflow", "commit", "--clean-checkout"]);
    assert_eq!(
        attempts(&status),
        [json!([1, 1, true, "ended"]), json!([2, 1, true, "claimed"]), json!([3, 1, true, "claimed"])]
    );
    assert_eq!(status["verified"], true, "{status:#}");
    assert_eq!(
        (&status["gates"][0]["name"], &status["gates"][0]["passed"]),
        (&json!(laid.project.gate), &json!(true)),
        "{status:#}"
    );
    bench.asked_exactly(answers);
    bench.prompts_are_of(&[1, 2, 3]);
    let prompts = bench.model.prompts();
    let [first, second] = laid.project.failures;
    assert!(prompts[0].contains(first) && prompts[0].contains(second), "what failed before: {}", prompts[0]);
    assert!(!prompts[1].contains(first) && prompts[1].contains(second), "what still fails: {}", prompts[1]);
    assert!(prompts[2].contains("CLAIM REFUSED") && prompts[2].contains(second), "{}", prompts[2]);
    used(&status, agent, u32::try_from(answers).expect("there are few"));

    let git = |words: &[&str]| bench.sandbox.git(words);
    assert_eq!(Some(git(&["rev-parse", "HEAD^{tree}"]).trim()), status["tree"].as_str());
    assert_eq!(
        git(&["status", "--porcelain"]),
        "",
        "only the two files were changed, and both are committed"
    );
    assert_eq!(git(&["diff", "--name-only", "HEAD^"]).lines().count(), 2);
    let report = bench.refrain(&["report", "job"]).run().with_code(0).stdout;
    for part in ["What proved it", "Claims that were refused", laid.project.gate] {
        assert!(report.contains(part), "{part:?} is not in {report}");
    }
}

/// `refrain run` with the program as worker and as reviewer: the reviewer finds a gap, the worker fills it, and passes.
#[track_caller]
fn does_a_task(agent: Agent, refuses: Turn, passes: Turn) {
    let project = Project::PYTHON;
    let script = vec![
        Turn::bash("ls"),
        mend(&project, 0).and(mend(&project, 1)),
        Turn::say("The tests pass."),
        refuses,
        Turn::write("CHANGES.md", "Marks are taken off letters.\n"),
        Turn::say("The change is told of."),
        passes,
    ];
    let answers = script.len();
    let Some((bench, _)) = bench(agent, project, script) else { return };
    let task = bench.sandbox.project().join("task.md");
    write(&task, "1. The tests pass.\n2. CHANGES.md tells of it.\n");
    let session = bench
        .refrain(&["run", "job", "task.md", "--agent", agent.name(), "--non-interactive", "--yes"])
        .spawn();
    bench.ended(session, 0);
    let status = bench.status();
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(2)), "{status:#}");
    let gates = status["gates"].as_array().expect("it has gates");
    let names: Vec<_> = gates.iter().map(|gate| (&gate["name"], &gate["passed"])).collect();
    assert_eq!(names, [(&json!("tests"), &json!(true)), (&json!("spec"), &json!(true))], "{status:#}");
    bench.asked_exactly(answers);
    let prompts = bench.model.prompts();
    assert_eq!(prompts.len(), 4, "a worker, a reviewer, and again: {prompts:#?}");
    assert!(prompts[1].contains("2. CHANGES.md tells of it."), "{}", prompts[1]);
    assert!(prompts[2].contains("nothing tells of the change"), "the reviewer is heard: {}", prompts[2]);
    assert!(prompts[3].contains("+Marks are taken off letters."), "{}", prompts[3]);
    used(&status, agent, u32::try_from(answers).expect("there are few"));
}

/// A verdict in the form that Claude Code is asked for.
fn verdict(word: &str, evidence: &str) -> Turn {
    let finding = json!({ "requirement": "CHANGES.md tells of it", "verdict": word, "evidence": evidence });
    Turn::tool("StructuredOutput", json!({ "verdict": word, "findings": [finding] }))
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_proves_a_crate() {
    proves(Agent::Claude, Project::RUST);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_proves_a_crate() {
    proves(Agent::Codex, Project::RUST);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_proves_a_crate() {
    proves(Agent::OpenCode, Project::RUST);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_proves_a_crate() {
    proves(Agent::Gemini, Project::RUST);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_proves_a_python_package() {
    proves(Agent::Claude, Project::PYTHON);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_proves_a_node_package() {
    proves(Agent::Claude, Project::NODE);
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_does_a_task() {
    let gap = "nothing tells of the change";
    does_a_task(Agent::Claude, verdict("fail", gap), verdict("pass", "CHANGES.md:1"));
}
