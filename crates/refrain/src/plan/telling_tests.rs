//! What is said of each thing that can happen to a plan.

use serde_json::json;

use super::*;
use crate::plan::story::{Story, oid};

fn said(story: &Story, width: Option<usize>) -> String {
    let mut telling = Telling::default();
    let text: String = story.records.iter().map(|record| telling.lines(record, width)).collect();
    anstream::adapter::strip_str(&text).to_string()
}

/// What is said from the `first`-th event on.
fn since(story: &Story, first: usize) -> String {
    let mut telling = Telling::default();
    let lines = story.records.iter().map(|record| telling.lines(record, None));
    let text: String = lines.skip(first).collect();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn a_plan_from_its_begin_to_its_end() {
    let story = Story::feature()
        .proves("4")
        .then("batch.merged", json!({"merged": [], "refused": [{"task": "4", "paths": ["src/a.rs"]}]}))
        .starts("4", 2)
        .then("asked", json!({"ask": {"pause": "after-iteration"}}))
        .then("task.ended", json!({"task": "4", "end": "rests", "iterations": 0}))
        .then("plan.ended", json!("paused"));
    insta::assert_snapshot!(said(&story, None));
}

#[test]
fn a_culprit_is_found_and_named() {
    let tasks: [(&str, &str, u32, &[&str]); 3] =
        [("1", "One", 1, &[]), ("2", "Two", 1, &[]), ("3", "Three", 1, &[])];
    let story = Story::of(&tasks);
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
    insta::assert_snapshot!(since(&story, first + 6));
}

#[test]
fn lines_fit_a_narrow_terminal_and_no_title_moves_it() {
    let text = said(&Story::feature(), Some(40));
    assert!(!text.contains('\u{1b}'));
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        assert!(textwrap::core::display_width(line) <= 40, "{line}\n{text}");
    }
}
