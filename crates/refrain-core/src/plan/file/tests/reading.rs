use rstest::rstest;

use super::super::*;
use crate::plan::{Note, Priority, Task, TaskId, TaskStatus};

/// A task in a line: id, parent, status, dependencies.
fn told(text: &str, shape: Shape, tag: &str) -> Vec<String> {
    let line = |task: &Task| {
        let parent = task.parent.as_ref().map(|parent| format!(" in {parent}")).unwrap_or_default();
        let on: Vec<_> = task.dependencies.iter().map(TaskId::as_str).collect();
        let on = if on.is_empty() { String::new() } else { format!(" after {}", on.join(" ")) };
        format!("{} {:?}{parent} {}{on}", task.id, task.title, task.status)
    };
    read(text, shape, tag).unwrap().tasks.iter().map(line).collect()
}

fn refused(text: &str, shape: Shape) -> String {
    read(text, shape, "auth").unwrap_err().to_string()
}

const PER_TAG: &str = r#"{
  "tag": "auth", "created_at": "2026-01-01T00:00:00Z",
  "tasks": [
    {"id": 1, "title": "Schema", "status": "done", "complexity": 3, "priority": "high", "depends_on": [], "phase": "a"},
    {"id": 2, "title": "Hash", "description": "d", "status": "in-progress", "complexity": 5, "depends_on": [1, "1"],
     "test_strategy": "t", "verification": "make check"},
    {"id": 3, "title": "Log in", "depends_on": [2], "dependencies": ["1"], "files": ["a.rs"]}
  ],
  "waves": [{"number": 1, "name": "w", "task_ids": [1]}, {"number": 2, "name": "w", "task_ids": [2, 3]}],
  "summary": {"total_tasks": 3}
}"#;

#[test]
fn a_file_per_tag_with_numbers_as_ids() {
    assert_eq!(
        told(PER_TAG, Shape::TagJson, "auth"),
        [r#"1 "Schema" done"#, r#"2 "Hash" in-progress after 1"#, r#"3 "Log in" pending after 2 1"#]
    );
    let read = read(PER_TAG, Shape::TagJson, "auth").unwrap();
    assert_eq!(read.name.as_deref(), Some("auth"));
    let [first, second, third] = &read.tasks[..] else { panic!("three tasks") };
    assert_eq!((first.priority, first.complexity), (Priority::High, 3));
    assert_eq!((second.description.as_deref(), second.test_strategy.as_deref()), (Some("d"), Some("t")));
    assert_eq!(
        (second.verification.as_deref(), &third.files[..]),
        (Some("make check"), &["a.rs".to_owned()][..])
    );
    let odd: Vec<_> = read.odd.iter().map(ToString::to_string).collect();
    assert_eq!(
        odd,
        [
            "the file puts task 3 in wave 2, but it depends on task 2 of wave 2; the waves are made from the dependencies instead"
        ]
    );
}

#[test]
fn all_tags_in_one_file_with_subtasks_by_name_and_as_objects() {
    let text = r#"{"version": 2, "other": {"tasks": 7}, "auth": {"name": "Auth", "tasks": [
        {"id": "1", "title": "A", "status": "expanded", "subtasks": ["1.1"], "dependencies": []},
        {"id": "1.1", "title": "B", "status": "pending", "dependencies": null, "parent_id": null},
        {"id": "2", "title": "C", "parent_id": "1", "status": "review"},
        {"id": 5, "title": "D", "subtasks": [
            {"id": 1, "title": "E", "status": "done"},
            {"id": 2, "title": "F", "dependencies": [1, "2", "5.1"], "subtasks": [{"id": "5.2.1", "title": "G"}]}]}]}}"#;
    assert_eq!(
        told(text, Shape::TagsJson, "auth"),
        [
            r#"1 "A" expanded"#,
            r#"1.1 "B" in 1 pending"#,
            r#"2 "C" in 1 review"#,
            r#"5 "D" pending"#,
            r#"5.1 "E" in 5 done"#,
            r#"5.2 "F" in 5 pending after 5.1 5.2"#,
            r#"5.2.1 "G" in 5.2 pending"#,
        ]
    );
    assert_eq!(tags(text, Shape::TagsJson).unwrap(), ["other", "auth"]);
}

#[test]
fn a_text_with_a_byte_order_mark_is_read() {
    assert_eq!(told(&format!("\u{feff}{PER_TAG}"), Shape::TagJson, "auth").len(), 3);
    assert_eq!(
        told(
            "\u{feff}# SCUD Graph v1\r\n# Epic: auth\r\n@nodes\r\n1 | T | P | 1 | M\r\n",
            Shape::Scg,
            "auth"
        )
        .len(),
        1
    );
    assert_eq!(told("\u{feff}## Task 1: T\r\n", Shape::Markdown, "auth"), [r#"1 "T" pending"#]);
}

#[test]
fn a_shape_is_known_by_its_name_and_text() {
    let of = |name, text| Shape::of(name, text).unwrap();
    assert_eq!(of("a.json", PER_TAG), Some(Shape::TagJson));
    assert_eq!(of("a.json", r#"{"auth": {"tasks": []}}"#), Some(Shape::TagsJson));
    assert_eq!(of("a/tasks.scg", ""), Some(Shape::Scg));
    assert_eq!(of("PLAN.md", ""), Some(Shape::Markdown));
    assert_eq!(of("a.md/plan", ""), None);
}

#[rstest]
#[case::cut_off("{\"tasks\": [\n  {\"id\": 1", "line 2, column 10: EOF while parsing an object")]
#[case::no_list(r#"{"tasks": {"a": 1}}"#, "line 1, column 11: invalid type: map, expected a sequence")]
#[case::none(r#"{"waves": []}"#, "line 1, column 13: missing field `tasks`")]
#[case::not_json("tasks", "line 1, column 2: expected ident")]
#[case::twice(
    r#"{"tasks": [{"id": 1, "status": "done", "status": "done"}]}"#,
    "line 1, column 47: duplicate field `status`"
)]
#[case::no_id(r#"{"tasks": [{"title": "a"}]}"#, "line 1, column 12: a task has no `id`")]
#[case::bad_id(
    r#"{"tasks": [{"id": "a b"}]}"#,
    "line 1, column 19: task ?: `id` is \"a b\"; accepted: 1 to 100 letters"
)]
#[case::negative(r#"{"tasks": [{"id": -1}]}"#, "`id` is -1")]
#[case::status(
    "{\"tasks\": [\n {\"id\": 1, \"status\": \"wip\"}]}",
    "line 2, column 22: task 1: `status` is \"wip\"; accepted: pending, in-progress"
)]
#[case::status_kind(r#"{"tasks": [{"id": 1, "status": 3}]}"#, "task 1: `status` is 3")]
#[case::title(r#"{"tasks": [{"id": 1, "title": []}]}"#, "task 1: `title` is []; accepted: a text")]
#[case::complexity(
    r#"{"tasks": [{"id": 1, "complexity": -2}]}"#,
    "task 1: `complexity` is -2; accepted: a whole number"
)]
#[case::priority(
    r#"{"tasks": [{"id": 1, "priority": "urgent"}]}"#,
    "`priority` is \"urgent\"; accepted: critical, high"
)]
#[case::depends(
    r#"{"tasks": [{"id": 1, "depends_on": "2"}]}"#,
    "task 1: `depends_on` is \"2\"; accepted: a list"
)]
#[case::depends_on_what(r#"{"tasks": [{"id": 1, "dependencies": [[2]]}]}"#, "task 1: `dependencies` is [2]")]
fn json_that_is_none_names_the_place(#[case] text: &str, #[case] says: &str) {
    let said = refused(text, Shape::TagJson);
    assert!(said.contains(says), "{said}");
    assert!(
        set(text, Shape::TagJson, "auth", &[]).is_err() || said.contains("task 1"),
        "nothing is made of it"
    );
}

#[test]
fn a_tag_that_is_not_there_is_answered_with_those_that_are() {
    let text = r#"{"auth": {"tasks": []}, "billing": {"tasks": []}}"#;
    let said = read(text, Shape::TagsJson, "auht").unwrap_err().to_string();
    assert_eq!(said, r#"there is no tag "auht"; there are: auth, billing; did you mean auth?"#);
    assert!(read(r#"{"a": 1, "a": 2}"#, Shape::TagsJson, "a").unwrap_err().to_string().contains("twice"));
}

#[test]
fn stored_waves_that_are_none_say_nothing() {
    let text = r#"{"tasks": [{"id": 1}], "waves": [[1], {"number": "x"}]}"#;
    assert_eq!(read(text, Shape::TagJson, "a").unwrap().odd, []);
}

#[test]
fn objects_in_objects_end_where_ids_do() {
    let deep =
        (0..60).fold(r#"{"id": 1}"#.to_owned(), |inner, _| format!(r#"{{"id": 1, "subtasks": [{inner}]}}"#));
    let said = refused(&format!(r#"{{"tasks": [{deep}]}}"#), Shape::TagJson);
    assert!(said.contains("accepted: a shorter one"), "{said}");
}

const SCG: &str = r"# SCUD Graph v1
# Phase: auth

@meta {
  name auth
  id_format sequential
  updated 2026-01-01T00:00:00Z
}

@nodes
# id | title | status | complexity | priority
1 | Pipes \| and \\ and\nlines | X | 13 | H
1.1 | Tokens | D | 5 | C
1.2 | Ünïcode → | B | 8 | L
auth:2.1 | After | P |  |

@edges
# dependent -> dependency
1.2 -> 1.1
auth:2.1 -> 1
auth:2.1 -> 1.2

@parents
1: 1.1, 1.2

@assignments
1.1 | alice | |

@later
whatever this is

@details
1.1 | description |
  One line.

    indented, after a blank one
# a comment
  @nodes is no section here,
  and the last.

1.1 | test_strategy |
  Run it.
1.2 | blocked_as |
  awaiting-tune
1.2 | blocked_reason |
  the port is taken
1.2 | attempts |
  3
1.2 | own_field |
  kept
---

# SCUD Graph v1
# Phase: billing

@nodes
1 | Bill | R | 0 | M
";

#[test]
fn scuds_graph_format_with_all_its_sections() {
    assert_eq!(
        told(SCG, Shape::Scg, "auth"),
        [
            r#"1 "Pipes | and \\ and\nlines" expanded"#,
            r#"1.1 "Tokens" in 1 done"#,
            r#"1.2 "Ünïcode →" in 1 awaiting-tune after 1.1"#,
            r#"auth:2.1 "After" pending after 1 1.2"#,
        ]
    );
    let tasks = read(SCG, Shape::Scg, "auth").unwrap().tasks;
    assert_eq!(
        tasks[1].description.as_deref(),
        Some("One line.\n\n  indented, after a blank one\n@nodes is no section here,\nand the last.")
    );
    assert_eq!(tasks[1].test_strategy.as_deref(), Some("Run it."));
    assert_eq!(tasks[2].note, Some(Note { reason: "the port is taken".to_owned(), attempts: 3 }));
    assert_eq!(
        (tasks[0].priority, tasks[1].priority, tasks[2].priority),
        (Priority::High, Priority::Critical, Priority::Low)
    );
    assert_eq!(tags(SCG, Shape::Scg).unwrap(), ["auth", "billing"]);
    assert_eq!(told(SCG, Shape::Scg, "billing"), [r#"1 "Bill" review"#]);
    assert_eq!(told("# SCUD Graph v1\n# Phase: empty\n", Shape::Scg, "empty"), [""; 0]);
}

#[rstest]
#[case::empty("", "line 1, column 1: the first line has to begin with `# SCUD Graph`")]
#[case::no_header("# Phase: auth\n@nodes\n", "line 1, column 1: the first line")]
#[case::no_phase("# SCUD Graph v1\n\n@nodes\n", "line 1, column 1: a phase has to begin with `# Phase: TAG`")]
#[case::columns(
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | P\n",
    "line 4, column 1: a task is `id | title"
)]
#[case::letter(
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | W | 1 | M\n",
    "line 4, column 9: task 1: `status` is \"W\"; accepted: P (pending)"
)]
#[case::complexity(
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | P | x | M\n",
    "task 1: `complexity` is \"x\""
)]
#[case::priority(
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | P | 1 | U\n",
    "task 1: `priority` is \"U\""
)]
#[case::id(
    "# SCUD Graph v1\n# Phase: auth\n@nodes\na/b | a | P | 1 | M\n",
    "line 4, column 1: \"a/b\" is no task id"
)]
#[case::edge("# SCUD Graph v1\n# Phase: auth\n@edges\n1 2\n", "line 4, column 1: an edge is")]
#[case::edge_of_an_unknown_task(
    "# SCUD Graph v1\n# Phase: auth\n@edges\n1 -> 2\n",
    "line 4, column 1: there is no task 1"
)]
#[case::detail("# SCUD Graph v1\n# Phase: auth\n@details\nwords\n", "line 4, column 1: a detail begins with")]
fn a_graph_that_is_none_names_the_place(#[case] text: &str, #[case] says: &str) {
    let said = refused(text, Shape::Scg);
    assert!(said.contains(says), "{said}");
}

const PLAN: &str = "# Log in\n\nVerification: `cargo test` passes\n\n## Task 1: Schema ##\n\n**Files:**\n- Create: `src/schema.rs`\n- Test: `tests/a.rs`, `tests/b.rs`\n\n\
- [x] **Step 1: write the test**\n- [x] Step 2\n\n```markdown\n## Task 9: in a fence\n- [ ] no box\nDepends on: 7\n```\n\n\
### Task 2 - Hash (blocked after 3 attempts: it (still) fails)\n\n**Depends on:** Task 1, #3 and `4` (later)\n\n- [x] one\n- [ ] two\n\n\
### Notes\n\n- [ ] of task 1\n\n## Task 3\nDependencies: none\nVerify:\n\n```sh\nmake check\nmake lint\n```\n\n\
Task A: no heading\n=================\n\nDepends on:\n- Task 1\n- Task 3.\n\nVerification: The page loads\n\n## Task list\n\n- [ ] left alone\n";

#[test]
fn a_plan_with_headings() {
    assert_eq!(
        told(PLAN, Shape::Markdown, ""),
        [
            r#"1 "Schema" pending"#,
            r#"2 "Hash" blocked after 1 3 4"#,
            r#"3 "Task 3" pending"#,
            r#"A "no heading" pending after 1 3"#,
        ]
    );
    let read = read(PLAN, Shape::Markdown, "").unwrap();
    assert_eq!((read.name.as_deref(), read.verification.as_deref()), (Some("Log in"), Some("cargo test")));
    let [first, second, third, last] = &read.tasks[..] else { panic!("four tasks") };
    assert_eq!(first.files, ["src/schema.rs", "tests/a.rs", "tests/b.rs"]);
    assert_eq!(second.note, Some(Note { reason: "it (still) fails".to_owned(), attempts: 3 }));
    assert_eq!(third.verification.as_deref(), Some("make check\nmake lint"));
    assert_eq!((last.verification.as_deref(), last.test_strategy.as_deref()), (None, Some("The page loads")));
    assert!(has_task_headings(PLAN) && !has_task_headings("- [ ] a\n"));
}

#[rstest]
#[case("## Task 1: T\n- [x] a\n- [X] b\n", TaskStatus::Done)]
#[case("## Task 1: T\n- [x] a\n- [ ] b\n", TaskStatus::Pending)]
#[case("## Task 1: T\n", TaskStatus::Pending)]
#[case("## Task 1: T\n### Task 1.1: U\n", TaskStatus::Expanded)]
#[case("## Task 1: T\n- [ ] a\n### Task 1.1: U\n", TaskStatus::Pending)]
#[case("## Task 1: T (done)\n", TaskStatus::Done)]
#[case("## Task 1: T (pending)\n- [x] a\n", TaskStatus::Pending)]
#[case("## Task 1: T (in progress)\n", TaskStatus::Pending)]
#[case("- [ ] T\n", TaskStatus::Pending)]
#[case("- [x] T\n", TaskStatus::Done)]
#[case("- [ ] T\n  - [x] a\n", TaskStatus::Expanded)]
#[case("- [ ] T (review)\n", TaskStatus::Review)]
fn boxes_and_marks_say_where_a_task_stands(#[case] text: &str, #[case] status: TaskStatus) {
    assert_eq!(read(text, Shape::Markdown, "").unwrap().tasks[0].status, status);
}

#[test]
fn a_checklist() {
    let text = "# To do\n\n1. [ ] Mend the *port*\n\n   It is taken.\n\n   ```\n   - [ ] code\n   ```\n\n   - [ ] 2. Look\n   - plain\n     * [x] T001 [P] Ask\n\
- [ ] Mend the *port*\n      Depends on: T001, Mend the port\n      Verify: make port\n* [ ] 3 tries\n- [ ] 3.1 Late\n- [ ] 日本\n- no box\n";
    assert_eq!(
        told(text, Shape::Markdown, ""),
        [
            r#"mend-the-port "Mend the *port*" expanded"#,
            r#"2 "Look" in mend-the-port pending"#,
            r#"T001 "T001 [P] Ask" in mend-the-port done"#,
            r#"mend-the-port-2 "Mend the *port*" pending after T001 mend-the-port"#,
            r#"3-tries "3 tries" pending"#,
            r#"3.1 "3.1 Late" pending"#,
            r#"task-8b7f1d29 "日本" pending"#,
        ]
        .map(|line| line.replace("task-8b7f1d29", TaskId::from_words("日本").as_str()))
    );
    let tasks = read(text, Shape::Markdown, "").unwrap().tasks;
    assert_eq!(tasks[0].details.as_deref(), Some("It is taken.\n\n```\n- [ ] code\n```\n\n- plain"));
    assert_eq!(tasks[3].verification.as_deref(), Some("make port"));
}

#[rstest]
#[case("# A plan\n\nProse.\n")]
#[case("```\n- [ ] a\n## Task 1: b\n```\n")]
#[case("<!--\n## Task 1: b\n-->\n")]
#[case("")]
fn markdown_without_tasks_is_refused_with_the_accepted_form(#[case] text: &str) {
    assert!(refused(text, Shape::Markdown).contains("`## Task 1: …`"));
}
