use serde_json::json;

use super::*;
use crate::plan::scripted_plan::{ScriptedPlan, oid};

fn said(story: &ScriptedPlan, width: Option<usize>) -> String {
    let mut telling = PlanNarrator::default();
    let text: String = story.records.iter().map(|record| telling.lines(record, width)).collect();
    anstream::adapter::strip_str(&text).to_string()
}

/// The messages from the `first`-th event on.
fn since(story: &ScriptedPlan, first: usize) -> String {
    let mut telling = PlanNarrator::default();
    let lines = story.records.iter().map(|record| telling.lines(record, None));
    let text: String = lines.skip(first).collect();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn a_plan_from_its_begin_to_its_end() {
    let story = ScriptedPlan::feature()
        .proves("4")
        .then("batch.merged", json!({"merged": [], "refused": [{"task": "4", "paths": ["src/a.rs"]}]}))
        .starts("4", 2)
        .then("asked", json!({"ask": {"pause": "after-iteration"}}))
        .then("task.ended", json!({"task": "4", "end": "rests", "iterations": 0}))
        .then("plan.ended", json!("paused"));
    insta::assert_snapshot!(said(&story, None), @r"
    plan feature-x
      tasks  /home/you/project/.scud/tasks/feature-x.json
      runs   claude (claude)
      in     /home/you/project
      jobs   up to 2 tasks at a time, wave after wave
      until  every task is done, at most 3 iterations each and 100 in all
      proof  verify (cargo check && cargo test)
    · 7 tasks in 4 waves
    · begins at 1111111111 on branch main
    [plan feature-x wave 1 task 1] Describe the schema (complexity 2, loop feature-x-1)
    · task 1 is verified after 1 iteration, $0.25
    · task 1 landed as 5555555555: Describe the schema
    [plan feature-x wave 1 task 2] Set up the router (complexity 1, loop feature-x-2)
    · task 2 is verified after 1 iteration, $0.25
    · task 2 landed as 5555555555: Set up the router
    [plan feature-x wave 1 of 4 complete] 2 tasks, feat(feature-x): complete wave 1 (aaaaaaaaaa)
    · main is at aaaaaaaaaa now
    [plan feature-x wave 2 task 3] Setup database (complexity 3, loop feature-x-3)
    · task 3 is blocked after 3 iterations, $0.50: not proven in 3 iterations; 2 tasks wait on what is blocked
    [plan feature-x wave 2 task 4] Implement auth middleware (complexity 5, loop feature-x-4)
    · task 4 is verified after 1 iteration, $0.25
    · task 4 conflicts with what landed, in src/a.rs: it goes back to its agent (1 of 2)
    [plan feature-x wave 2 task 4 round 2] Implement auth middleware (complexity 5, loop feature-x-4-r2; it conflicted with what landed)
    · pausing after these iterations; Ctrl-C again ends the agents now and refunds their attempts
    · task 4 rests, and continues where it is with the plan's next runner
    paused after 6 iterations in 3m 30s, $1.25: by a signal to its runner (Ctrl-C, SIGTERM or a closed terminal), with 2 of 7 tasks landed
      next: refrain plan resume feature-x
    ");
}

#[test]
fn a_culprit_is_found_and_named() {
    let tasks: [(&str, &str, u32, &[&str]); 3] =
        [("1", "One", 1, &[]), ("2", "Two", 1, &[]), ("3", "Three", 1, &[])];
    let story = ScriptedPlan::of(&tasks);
    let first = story.records.len();
    let merged: Vec<_> = ["1", "2", "3"].iter().map(|task| json!({"task": task, "tree": oid(7)})).collect();
    let failed = json!({"gate": "verify", "log": "verify.log"});
    let story = ["1", "2", "3"].iter().fold(story, |story, task| story.starts(task, 1).proves(task));
    let story = story
        .then("batch.merged", json!({"merged": merged, "refused": []}))
        .then("batch.verified", json!({"upto": 3, "failed": failed}))
        .then("batch.verified", json!({"upto": 1, "failed": null}))
        .then("batch.verified", json!({"upto": 2, "failed": failed}))
        .then("batch.landed", json!({"commits": [oid(5)], "tip": oid(5)}));
    insta::assert_snapshot!(since(&story, first + 6), @r"
    · 3 tasks are merged, to land together
    · tasks 1, 2, 3 on what landed: verify fails
    · task 1 on what landed: verified
    · tasks 1, 2 on what landed: verify fails
    · task 1 landed as 5555555555: One
    · task 2 is what makes verify fail with what landed: it goes back to its agent (1 of 2)
    ");
}

#[test]
fn lines_fit_a_narrow_terminal_and_no_title_moves_it() {
    let text = said(&ScriptedPlan::feature(), Some(40));
    assert!(!text.contains('\u{1b}'));
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        assert!(textwrap::core::display_width(line) <= 40, "{line}\n{text}");
    }
}
