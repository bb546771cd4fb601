//! The end of a plan: what it landed is shown, merged or discarded.

use std::fs;

use super::plan_verbs::{feature, run};

#[test]
fn a_plan_that_handed_over_its_work_has_nothing_to_merge() {
    let (sandbox, agent) = feature();
    run(&sandbox, &format!("{agent} pine"), &["--quiet"]).with_code(0);
    let diff = sandbox.refrain(&["diff", "fx"]).with_code(0);
    assert!(diff.stdout.contains("+++ b/1.txt") && diff.stdout.contains("+++ b/5.txt"), "{}", diff.stdout);
    assert!(diff.stderr.contains("What the plan has landed, "), "{}", diff.stderr);
    sandbox.refrain(&["diff", "fx", "--iteration", "1"]).with_code(2);
    let merged = sandbox.refrain(&["merge", "fx"]).with_code(0).stdout;
    assert_eq!(merged, "main has all of plan fx already\n");
    // It is not what a bare merge means.
    sandbox.refrain(&["merge"]).with_code(2);

    let before = sandbox.git(&["rev-parse", "main"]);
    let discarded = sandbox.refrain(&["discard", "fx"]).with_code(0);
    assert_eq!(discarded.stderr, "note: fx is archived; it left no branch to remove\n");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/refrain", "refs/heads/refrain"]), "");
    assert_eq!(sandbox.refrain(&["list", "--json"]).json().as_array().unwrap().len(), 0);
    let status = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    assert_eq!(status["status"], "completed");
    let again = sandbox.refrain(&["discard", "fx"]).with_code(0);
    assert_eq!(again.stderr, "note: fx is archived already, and nothing was changed\n");
    // Its name is free again.
    run(&sandbox, &format!("{agent} pine"), &["--quiet"]).with_code(0);
}

#[test]
fn landed_work_of_a_cancelled_plan_is_merged_on_request() {
    let (sandbox, agent) = feature();
    // A file of a person that the first wave would overwrite.
    testkit::write(&sandbox.project().join("1.txt"), "Mine.\n");
    run(&sandbox, &agent, &["--quiet", "--tune"]).with_code(14);
    let refused = sandbox.refrain(&["merge", "fx"]).with_code(17).stderr;
    assert!(refused.contains("refrain plan cancel fx, then refrain merge fx"), "{refused}");
    sandbox.refrain(&["plan", "cancel", "fx"]).with_code(0);
    let refused = sandbox.refrain(&["merge", "fx"]).with_code(17).stderr;
    assert!(refused.contains("your own changes are in the way in 1.txt"), "{refused}");
    fs::remove_file(sandbox.project().join("1.txt")).unwrap();
    let merged = sandbox.refrain(&["merge", "fx"]).with_code(0).stdout;
    assert!(merged.starts_with("merged plan fx into main: fast-forward to "), "{merged}");
    assert_eq!(fs::read_to_string(sandbox.project().join("1.txt")).unwrap(), "1\n");
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
    run(&sandbox, &agent, &["--quiet", "--max-iterations-per-task", "1"]).with_code(14);
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    let left = &view["uncommitted"][0];
    let branch = left["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("refrain/fx/4") && left["files"] == 2, "{view:#}");
    let shown = sandbox.refrain(&["plan", "status", "fx"]).with_code(0).stdout;
    assert!(shown.contains("uncommitted"), "{shown}");

    let said = sandbox.refrain(&["discard", "fx"]).with_code(0).stderr;
    assert!(said.contains(&format!("branch {branch} is removed")), "{said}");
    assert!(said.contains(", with 2 uncommitted files"), "{said}");
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

#[test]
fn the_name_of_a_stopped_plan_is_freed_as_the_refusals_say() {
    let (sandbox, agent) = feature();
    run(&sandbox, &format!("{agent} pine"), &["--quiet"]).with_code(0);
    let again = ["plan", "run", "--tag", "feature-x", "--command", &agent, "--name", "fx", "--json"];
    for words in [&again[..], &["plan", "add", "Paint it", "--name", "fx"]] {
        let said = sandbox.refrain(words).with_code(17).stderr;
        assert!(said.contains("refrain discard fx frees ") && !said.contains("archive fx"), "{said}");
        assert!(!said.contains("resumed"), "{said}");
    }
    let tasks = sandbox.refrain(&["list", "--plan", "fx", "--json"]).with_code(0).json();
    let first = tasks[0]["id"].as_str().unwrap();
    sandbox.refrain(&["archive", first]).with_code(0);
    sandbox.refrain(&["discard", "fx"]).with_code(0);
    sandbox.refrain(&again).with_code(0);
}
