//! The end of a plan: what it landed is shown, merged or discarded.

use std::fs;

use testkit::Sandbox;

use super::plan_verbs::{feature, run};

/// The loop of the first round of a task.
fn loop_of(sandbox: &Sandbox, task: &str) -> String {
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    let tasks = view["tasks"].as_array().unwrap();
    tasks.iter().find(|it| it["id"] == task).unwrap()["loop"].as_str().unwrap().to_owned()
}

#[test]
fn a_plan_without_its_runner_is_named_and_the_branch_of_its_task_stays() {
    let (sandbox, _) = feature();
    let agent = sandbox
        .agent("worker", "echo x > $NOTES/begun; read -r _ < $GATES/go; echo x > x.txt; echo TASK_COMPLETE");
    let gate = sandbox.gate("go");
    let usual =
        ["plan", "run", "--tag", "feature-x", "--command", &agent, "--verify", "true", "--name", "fx"];
    let session = sandbox.spawn(&[&usual[..], &["--jobs", "1"]].concat());
    sandbox.wait_for_note("begun");
    session.kill();
    let first = loop_of(&sandbox, "1");
    let said = sandbox.refrain(&["doctor", "--json"]).stdout;
    assert!(said.contains("refrain plan resume fx continues where it was"), "{said}");
    assert!(!said.contains(&format!("refrain resume {first}")), "{said}");

    let resumed = sandbox.spawn(&["resume", &first]);
    gate.let_one_pass();
    resumed.wait().with_code(0);
    let said = sandbox.refrain(&["discard", &first]).with_code(0).stderr;
    assert!(said.contains("its branch refrain/fx/1 stays with plan fx"), "{said}");
    let said = sandbox.refrain(&["plan", "cancel", "fx"]).with_code(0).stdout;
    assert!(said.contains("0 of 5 tasks have landed") && said.contains("refrain/fx/1;"), "{said}");
}

#[test]
fn discarding_a_plan_keeps_landed_and_unfinished_work() {
    let (sandbox, _) = feature();
    let agent = sandbox.agent(
        "worker",
        r#"task=$(git branch --show-current); task=${task##*/}; echo "$task" > "$task.txt"
case $task in 4*) rm README.md;; *) echo TASK_COMPLETE;; esac"#,
    );
    testkit::write(&sandbox.project().join("1.txt"), "Mine.\n");
    run(&sandbox, &agent, &["--quiet", "--max-iterations-per-task", "1", "--jobs", "1"]).with_code(14);
    // What the first round left in the worktree is saved when the second gets it.
    sandbox.refrain(&["plan", "resume", "fx", "--quiet"]).with_code(14);
    sandbox.git(&["rev-parse", "wip/slot-fx-4"]);
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    let left = &view["uncommitted"][0];
    let branch = left["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("refrain/fx/4") && left["files"] == 2, "{view:#}");
    let shown = sandbox.refrain(&["plan", "status", "fx"]).with_code(0).stdout;
    assert!(shown.contains("uncommitted"), "{shown}");

    let said = sandbox.refrain(&["discard", "fx"]).with_code(0).stderr;
    assert!(said.contains(&format!("branch {branch} is removed")), "{said}");
    assert!(said.contains(", with 2 uncommitted files"), "{said}");
    assert!(
        said.contains("branch wip/slot-fx-4 is removed; for 30 days git branch wip/slot-fx-4 "),
        "{said}"
    );
    assert!(said.contains("git branch fx refs/refrain/discarded/fx brings its work back"), "{said}");
    assert_eq!(sandbox.git(&["show", "refs/refrain/discarded/fx:1.txt"]), "1\n");
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/refrain"]);
    let kept: Vec<_> = kept.lines().collect();
    assert!(kept.iter().all(|it| it.starts_with("refs/refrain/discarded/")), "{kept:?}");
    let fourth = kept.iter().find(|it| !it.ends_with("/fx")).unwrap();
    let files = sandbox.git(&["ls-tree", "--name-only", fourth]);
    assert!(files.lines().any(|file| file.starts_with('4')), "{files}");
    assert_eq!(sandbox.git(&["branch", "--list", "refrain/*", "wip/*"]), "");
    assert_eq!(fs::read_to_string(sandbox.project().join("1.txt")).unwrap(), "Mine.\n");
    let status = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    assert_eq!(status["status"], "cancelled");
}
