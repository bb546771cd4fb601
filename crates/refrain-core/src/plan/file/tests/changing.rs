//! Written statuses: read again they are the same, and every other byte is as it was.

use proptest::prelude::*;
use rstest::rstest;

use super::super::*;
use crate::plan::{Note, TaskStatus};

fn change(task: &str, status: TaskStatus, note: Option<(&str, u32)>) -> Change {
    let note = note.map(|(reason, attempts)| Note { reason: reason.to_owned(), attempts });
    Change { task: task.parse().unwrap(), from: TaskStatus::Pending, status, note }
}

fn decided(text: &str, shape: Shape, changes: &[Change]) -> Vec<Change> {
    let tasks = read(text, shape, "auth").unwrap().tasks;
    let stood = |change: &Change| tasks.iter().find(|task| task.id == change.task).map(|task| task.status);
    changes
        .iter()
        .map(|change| Change { from: stood(change).unwrap_or_default(), ..change.clone() })
        .collect()
}

fn changed(text: &str, shape: Shape, changes: &[Change]) -> String {
    let changes = decided(text, shape, changes);
    let EditedTasks { text, missing, left } = set(text, shape, "auth", &changes).unwrap();
    assert_eq!((missing, left), (Vec::new(), Vec::new()));
    text
}

#[test]
fn a_whole_is_done_once_all_its_parts_are() {
    let text = "# P\n\n## Task 1: A\n\nwords\n\n### Task 1.1: B\n\n### Task 1.2: C\n\n#### Task 1.2.1: D\n\n### Task 1.3: E (cancelled)\n";
    let some = changed(text, Shape::Markdown, &[change("1.2.1", TaskStatus::Done, None)]);
    assert_eq!(some, text.replace(": C", ": C (done)").replace(": D", ": D (done)"));
    let all = changed(&some, Shape::Markdown, &[change("1.1", TaskStatus::Done, None)]);
    assert_eq!(all, some.replace(": A", ": A (done)").replace(": B", ": B (done)"));
    let read = read(&all, Shape::Markdown, "").unwrap().tasks;
    assert_eq!(read[0].status, TaskStatus::Expanded, "its parts are still tasks that were done");
    let list = "- [ ] 1. A\n  - [x] 1.1 B\n  - [ ] 1.2 C\n- [ ] 2. D\n  - [x] 2.1 E\n";
    let ticked = changed(list, Shape::Markdown, &[change("1.2", TaskStatus::Done, None)]);
    assert_eq!(ticked, list.replacen("[ ]", "[x]", 2), "what no change is about stays as it was");
    let begun = changed(list, Shape::Markdown, &[change("1.2", TaskStatus::InProgress, None)]);
    assert_eq!(begun, list.replace("1.2 C", "1.2 C (in-progress)"));
}

proptest! {
    #[test]
    fn a_reason_survives_in_the_graph_format(reason in "[@#|\\\\a-z ä-]{1,12}(\n[@#|}a-z ]{0,8}){0,3}", crlf: bool) {
        let text = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | A | P | 0 | M\n\n@edges\n";
        let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let written = changed(&text, Shape::Scg, &[change("1", TaskStatus::Blocked, Some((&reason, 2)))]);
        let note = read(&written, Shape::Scg, "auth").unwrap().tasks[0].note.clone().unwrap();
        let blank = |text: &str| text.lines().all(|line| line.trim().is_empty());
        let lines = |text: &str| text.trim_end().trim_start_matches('\n').to_owned();
        if !blank(&reason) {
            let first = reason.lines().position(|line| !line.trim().is_empty()).unwrap();
            let kept = reason.lines().skip(first).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(lines(&note.reason), lines(&kept));
        }
        prop_assert_eq!(note.attempts, 2);
    }
}

#[test]
fn json_is_changed_where_the_status_stands_and_in_its_manner() {
    let text = "{\"tasks\": [\n    {\n      \"id\": 1,\n      \"status\" : \"pending\",\n      \"x\": [ 1,2 ]\n    },\n    {\"title\":\"b\",\"id\":\"2\"}]}";
    let blocked = changed(
        text,
        Shape::TagJson,
        &[
            change("1", TaskStatus::Blocked, Some(("say \"no\"", 3))),
            change("2", TaskStatus::InProgress, None),
        ],
    );
    assert_eq!(
        blocked,
        "{\"tasks\": [\n    {\n      \"id\": 1,\n      \"status\" : \"blocked\",\n      \"blocked_reason\" : \"say \\\"no\\\"\",\n      \
         \"attempts\" : 3,\n      \"x\": [ 1,2 ]\n    },\n    {\"title\":\"b\",\"id\":\"2\",\"status\":\"in-progress\"}]}"
    );
    let back = changed(&blocked, Shape::TagJson, &[change("1", TaskStatus::Pending, None)]);
    assert_eq!(back, text.replace("\"id\":\"2\"", "\"id\":\"2\",\"status\":\"in-progress\""));
}

#[rstest]
#[case::first(
    r#"{"tasks":[{"blocked_reason":"a","attempts":1,"id":1,"status":"blocked"}]}"#,
    r#"{"tasks":[{"id":1,"status":"done"}]}"#
)]
#[case::apart(
    r#"{"tasks":[{"blocked_reason":"a", "id":1,"attempts": 1 ,"status":"blocked"}]}"#,
    r#"{"tasks":[{"id":1 ,"status":"done"}]}"#
)]
#[case::turned_round(
    r#"{"tasks":[{"id":1,"status":"blocked","attempts":1,"blocked_reason":"a"}]}"#,
    r#"{"tasks":[{"id":1,"status":"done"}]}"#
)]
#[case::attempts_of_others(
    r#"{"tasks":[{"id":1,"status":"blocked","attempts":1}]}"#,
    r#"{"tasks":[{"id":1,"status":"done","attempts":1}]}"#
)]
#[case::null(r#"{"tasks":[{"id":1,"status":null}]}"#, r#"{"tasks":[{"id":1,"status":"done"}]}"#)]
#[case::escaped(
    r#"{"tasks":[{"id":1,"st\u0061tus":"blocked"}]}"#,
    r#"{"tasks":[{"id":1,"st\u0061tus":"done"}]}"#
)]
fn own_keys_are_removed_with_the_status_they_explain(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(changed(text, Shape::TagJson, &[change("1", TaskStatus::Done, None)]), expected);
}

const SCG: &str = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a \\| b | P | 3 | M\n2 | c |I| 3 | M\n\n@edges\n2 -> 1\n\n---\n# Phase: b\n@nodes\n1 | x | P | 0 | M\n";

#[test]
fn a_graph_is_changed_in_its_column_and_in_details_of_our_own() {
    let used_up =
        [change("1", TaskStatus::AwaitingTune, Some(("two\nlines", 3))), change("2", TaskStatus::Done, None)];
    let text = changed(SCG, Shape::Scg, &used_up);
    assert_eq!(
        text,
        "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a \\| b | B | 3 | M\n2 | c |D| 3 | M\n\n@edges\n2 -> 1\n\n@details\n\
         1 | blocked_as |\n  awaiting-tune\n1 | blocked_reason |\n  two\n  lines\n1 | attempts |\n  3\n\n---\n# Phase: b\n@nodes\n1 | x | P | 0 | M\n"
    );
    assert_eq!(changed(&text, Shape::Scg, &used_up), text);
    let later = changed(&text, Shape::Scg, &[change("1", TaskStatus::Failed, Some(("one", 3)))]);
    assert_eq!(later, text.replace("awaiting-tune", "failed").replace("two\n  lines", "one"));
    let done = changed(&later, Shape::Scg, &[change("1", TaskStatus::Done, None)]);
    assert!(done.contains("2 -> 1\n\n@details\n\n---"), "{done}");
    let again = changed(&done, Shape::Scg, &[change("2", TaskStatus::Blocked, Some(("r", 1)))]);
    assert!(again.contains("@details\n2 | blocked_reason |\n  r\n2 | attempts |\n  1\n\n---"), "{again}");
}

#[test]
fn a_plan_is_changed_in_its_boxes_and_at_the_end_of_its_titles() {
    let text = "# P\n\n## Task 1: A ##\n- [ ] one\n- [x] two\n\n## Task 2: B\nwords\n\nTask 3: C  \n---\n";
    let with = |status, note| {
        changed(
            text,
            Shape::Markdown,
            &[change("1", status, note), change("2", status, note), change("3", status, note)],
        )
    };
    assert_eq!(
        with(TaskStatus::Done, None),
        "# P\n\n## Task 1: A ##\n- [x] one\n- [x] two\n\n## Task 2: B (done)\nwords\n\nTask 3: C (done)  \n---\n"
    );
    let blocked = with(TaskStatus::Blocked, Some(("the\nport is\u{1b}[1m taken", 1)));
    let mark = " (blocked after 1 attempt: the port is taken)";
    assert_eq!(
        blocked,
        format!(
            "# P\n\n## Task 1: A{mark} ##\n- [ ] one\n- [x] two\n\n## Task 2: B{mark}\nwords\n\nTask 3: C{mark}  \n---\n"
        )
    );
    let back = [
        change("1", TaskStatus::Pending, None),
        change("2", TaskStatus::Pending, None),
        change("3", TaskStatus::Pending, None),
    ];
    assert_eq!(changed(&blocked, Shape::Markdown, &back), text);
    let pending =
        changed("## Task 1: A\n- [x] one\n", Shape::Markdown, &[change("1", TaskStatus::Pending, None)]);
    assert_eq!(
        pending, "## Task 1: A (pending)\n- [x] one\n",
        "what was ticked was done: it is not taken back"
    );
}

#[test]
fn a_checklist_is_changed_in_its_boxes() {
    let text = "- [ ] 1. A\n  more\n  - [x] 2. B\r\n+ [X] 3. C";
    let changes = [
        change("1", TaskStatus::Done, None),
        change("2", TaskStatus::Failed, Some(("no", 2))),
        change("3", TaskStatus::Pending, None),
    ];
    assert_eq!(
        changed(text, Shape::Markdown, &changes),
        "- [x] 1. A\n  more\n  - [ ] 2. B (failed after 2 attempts: no)\r\n+ [ ] 3. C"
    );
}

#[test]
fn a_missing_task_is_reported_and_the_others_are_changed() {
    for (text, shape) in [
        (r#"{"auth": {"tasks": [{"id": 1}]}}"#, Shape::TagsJson),
        (SCG, Shape::Scg),
        ("- [ ] 1. A\n", Shape::Markdown),
    ] {
        let changes = [change("9", TaskStatus::Done, None), change("1", TaskStatus::Done, None)];
        let EditedTasks { text, missing, .. } = set(text, shape, "auth", &changes).unwrap();
        assert_eq!(missing, ["9".parse().unwrap()]);
        assert_eq!(read(&text, shape, "auth").unwrap().tasks[0].status, TaskStatus::Done, "{text}");
    }
}

#[test]
fn a_status_changed_by_another_writer_is_not_overwritten() {
    for (text, shape) in [
        (r#"{"auth": {"tasks": [{"id": 1, "status": "cancelled"}, {"id": 2}]}}"#, Shape::TagsJson),
        ("# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a | C | 3 | M\n2 | b | P | 3 | M\n", Shape::Scg),
        (
            "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a | B | 3 | M\n2 | b | P | 3 | M\n\n@details\n1 | blocked_as |\n  failed\n",
            Shape::Scg,
        ),
        ("- [ ] 1. A (cancelled)\n- [ ] 2. B\n", Shape::Markdown),
    ] {
        let stood = |text: &str| read(text, shape, "auth").unwrap().tasks[0].status;
        let changes = [change("1", TaskStatus::InProgress, None), change("2", TaskStatus::InProgress, None)];
        let made = set(text, shape, "auth", &changes).unwrap();
        assert_eq!(made.left, ["1".parse().unwrap()], "{text}");
        assert_eq!(stood(&made.text), stood(text));
        assert_eq!(read(&made.text, shape, "auth").unwrap().tasks[1].status, TaskStatus::InProgress);
        let same = [change("1", stood(text), None)];
        assert_eq!(set(text, shape, "auth", &same).unwrap().left, [], "they wrote the same");
    }
}

#[test]
fn a_subtask_is_changed_in_the_object_of_its_parent_and_no_other_tag_is() {
    let text = r#"{"b": {"tasks": [{"id": "5.1"}]}, "auth": {"tasks": [{"id": 5, "subtasks": [{"id": 1, "status": "done"}]}]}}"#;
    let made = changed(
        text,
        Shape::TagsJson,
        &[change("5.1", TaskStatus::Review, None), change("5", TaskStatus::Done, None)],
    );
    assert_eq!(
        made,
        r#"{"b": {"tasks": [{"id": "5.1"}]}, "auth": {"tasks": [{"id": 5,"status": "done", "subtasks": [{"id": 1, "status": "review"}]}]}}"#
    );
}

#[test]
fn of_two_changes_of_a_task_the_last_counts() {
    let changes = [change("1", TaskStatus::Done, None), change("1", TaskStatus::Blocked, None)];
    assert_eq!(changed("- [ ] 1. A\n", Shape::Markdown, &changes), "- [ ] 1. A (blocked)\n");
}

#[derive(Clone, Debug)]
struct Layout {
    mark: bool,
    line_end: &'static str,
    wide: bool,
    ends: bool,
}

prop_compose! {
    fn layouts()(mark in any::<bool>(), crlf in any::<bool>(), wide in any::<bool>(), ends in any::<bool>()) -> Layout {
        Layout { mark, line_end: if crlf { "\r\n" } else { "\n" }, wide, ends }
    }
}

/// The same tasks, numbered from 1, in every shape.
fn written(shape: Shape, layout: &Layout, titles: &[String]) -> String {
    let gap = if layout.wide { "\n      " } else { " " };
    let number = |(at, title): (usize, &String)| (at + 1, title.clone());
    let rows = titles.iter().enumerate().map(number);
    let text = match shape {
        Shape::TagJson | Shape::TagsJson => {
            let row = |(id, title): (usize, String)| {
                let title = serde_json::to_string(&title).unwrap();
                format!(
                    "{{{gap}\"k{id}\": {{\"status\": \"no\"}},{gap}\"id\": {id},{gap}\"status\": \"pending\",{gap}\"title\": {title}}}"
                )
            };
            let list = format!(
                "{{\"tasks\": [{}], \"more\": [1 , 2]}}",
                rows.map(row).collect::<Vec<_>>().join(", ")
            );
            if shape == Shape::TagsJson {
                format!("{{\"b\": {{}},\n\"auth\" : {list}}}\n")
            } else {
                list + "\n"
            }
        }
        Shape::Scg => {
            let row = |(id, title): (usize, String)| {
                format!("{id} | {} | P | 1 | M\n", title.replace('\\', "\\\\").replace('|', "\\|"))
            };
            let details = if layout.wide { "\n@details\n1 | description |\n  a\n\n  b\n" } else { "" };
            format!(
                "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n{}{details}\n---\n# Phase: c\n",
                rows.map(row).collect::<String>()
            )
        }
        Shape::Markdown => {
            let row = |(id, title): (usize, String)| {
                let title = title.replace(['`', '\\', '<', '#', '*', '_', '[', ']', '!', '&'], "");
                if layout.wide {
                    format!("## Task {id}: x{title}\n\n- [ ] a\n- [x] b\n\n")
                } else {
                    format!("- [ ] {id}. x{title}\n")
                }
            };
            format!("# P\n\n{}", rows.map(row).collect::<String>())
        }
    };
    let text = text.replace('\n', layout.line_end);
    let text = if layout.ends { text } else { text.trim_end().to_owned() };
    if layout.mark { format!("\u{feff}{text}") } else { text }
}

proptest! {
    #[test]
    fn a_status_change_that_is_taken_back_leaves_no_trace(
        shape in prop::sample::select(vec![Shape::TagJson, Shape::TagsJson, Shape::Scg, Shape::Markdown]),
        layout in layouts(),
        titles in prop::collection::vec("[ -~é→]{0,12}", 1..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0..10_usize, prop::option::of(("[!-~é]{1,8}( [!-~é]{1,8}){0,2}", 1..9_u32))), 1..6),
    ) {
        let text = written(shape, &layout, &titles);
        let before = read(&text, shape, "auth").unwrap().tasks;
        prop_assert_eq!(before.len(), titles.len(), "{}", text);
        let changes: Vec<_> = picks.iter().map(|(index, status, note)| Change {
            task: before[index.index(before.len())].id.clone(),
            from: before[index.index(before.len())].status,
            status: TaskStatus::ALL[*status],
            note: note.as_ref().map(|(reason, attempts)| Note { reason: reason.clone(), attempts: *attempts }),
        }).collect();
        let made = set(&text, shape, "auth", &changes).unwrap().text;
        let after = read(&made, shape, "auth").unwrap().tasks;
        for (before, after) in before.iter().zip(&after) {
            let mut expected = before.clone();
            if let Some(change) = changes.iter().rev().find(|change| change.task == before.id) {
                (expected.status, expected.note) = (change.status, change.note.clone());
            }
            prop_assert_eq!(after, &expected, "{}", made);
        }
        prop_assert_eq!(&set(&made, shape, "auth", &changes).unwrap().text, &made, "a second time changes nothing");
        // Ticked steps of a heading stay ticked.
        if !(shape == Shape::Markdown && layout.wide && changes.iter().any(|change| change.status == TaskStatus::Done)) {
            let back: Vec<_> = before.iter().zip(&after).map(|(task, after)| Change { task: task.id.clone(), from: after.status, status: task.status, note: None }).collect();
            let back = set(&made, shape, "auth", &back).unwrap().text;
            let end = layout.line_end;
            // The heading of a section that was added stays, which means nothing.
            let back = if shape == Shape::Scg && !layout.wide { back.replace(&format!("{end}{end}@details"), "") } else { back };
            prop_assert_eq!(back, text);
        }
    }

    #[test]
    fn no_text_is_too_wild(text in "(\\PC|[\n\r\t|@#`*\\[\\]{}\":,x -]|- \\[ \\] |## Task 1: |@nodes\n|# Phase: a\n|\"tasks\"|\u{feff}){0,60}") {
        for shape in [Shape::TagJson, Shape::TagsJson, Shape::Scg, Shape::Markdown] {
            for text in [text.clone(), format!("# SCUD Graph v1\n# Phase: a\n{text}"), format!("{{\"tasks\": [{text}]}}")] {
                let Ok(found) = read(&text, shape, "a") else { continue };
                let changes: Vec<_> = found.tasks.iter().map(|task| Change { task: task.id.clone(), from: task.status, status: TaskStatus::Blocked, note: None }).collect();
                let made = set(&text, shape, "a", &changes).unwrap().text;
                prop_assert!(read(&made, shape, "a").is_ok(), "{:?}", made);
            }
        }
    }
}
