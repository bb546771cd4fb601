//! A task that is added to each shape of a file.

use rstest::rstest;

use super::super::*;

fn task(text: Option<&str>, dependencies: &[&str]) -> NewTask {
    let dependencies = dependencies.iter().map(|id| id.parse().unwrap()).collect();
    NewTask { title: "Mend | it".to_owned(), text: text.map(str::to_owned), dependencies }
}

#[rstest]
#[case::json(
    Shape::TagJson,
    "{\"tasks\": [\n  {\"id\": 1},\n  {\"id\": 7, \"title\": \"a\"}\n], \"x\": 1}\n",
    "{\"tasks\": [\n  {\"id\": 1},\n  {\"id\": 7, \"title\": \"a\"},\n  {\"id\": 8, \"title\": \"Mend | it\", \
     \"description\": \"One.\\nTwo.\", \"status\": \"pending\", \"depends_on\": [1]}\n], \"x\": 1}\n"
)]
#[case::json_of_all_tags(
    Shape::TagsJson,
    r#"{"b": {"tasks": []}, "auth": {"tasks": [{"id": "1"}]}}"#,
    r#"{"b": {"tasks": []}, "auth": {"tasks": [{"id": "1"}, {"id": "2", "title": "Mend | it", "description": "One.\nTwo.", "status": "pending", "dependencies": ["1"]}]}}"#
)]
#[case::graph(
    Shape::Scg,
    "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a | P | 3 | M\n\n---\n# Phase: b\n@nodes\n1 | x | P | 0 | M\n",
    "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n1 | a | P | 3 | M\n2 | Mend \\| it | P | 0 | M\n\n@edges\n2 -> 1\n\n\
     @details\n2 | description |\n  One.\n  Two.\n\n---\n# Phase: b\n@nodes\n1 | x | P | 0 | M\n"
)]
#[case::graph_with_edges(
    Shape::Scg,
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | P | 3 | M\n2 | b | P | 3 | M\n@edges\n2 -> 1\n@details\n1 | details |\n  x\n",
    "# SCUD Graph v1\n# Phase: auth\n@nodes\n1 | a | P | 3 | M\n2 | b | P | 3 | M\n3 | Mend \\| it | P | 0 | M\n\
     @edges\n3 -> 1\n2 -> 1\n@details\n1 | details |\n  x\n3 | description |\n  One.\n  Two.\n"
)]
#[case::headings(
    Shape::Markdown,
    "# P\n\n### Task 1: A\n\n#### Task 1.1: B\n\n## Notes\n\nx\n",
    "# P\n\n### Task 1: A\n\n#### Task 1.1: B\n\n## Notes\n\nx\n\n### Task 2: Mend | it\n\nOne.\nTwo.\n\nDepends on: 1\n"
)]
#[case::list(
    Shape::Markdown,
    "- [ ] 1. A\n  - [x] 1.1 B\n",
    "- [ ] 1. A\n  - [x] 1.1 B\n- [ ] 2. Mend | it\n  One.\n  Two.\n  Depends on: 1\n"
)]
fn a_task_is_added_at_the_end(#[case] shape: Shape, #[case] text: &str, #[case] expected: &str) {
    let (new, id) = add(text, shape, "auth", &task(Some("One.\nTwo."), &["1"])).unwrap();
    assert_eq!(new, expected);
    let tasks = read(&new, shape, "auth").unwrap().tasks;
    let added = tasks.iter().find(|task| task.id == id).unwrap();
    assert_eq!(added.title, "Mend | it");
    let without = add(text, shape, "auth", &task(None, &[])).unwrap().0;
    assert_eq!(read(&without, shape, "auth").unwrap().tasks.len(), tasks.len());
}

#[test]
fn an_item_without_a_number_is_named_by_its_words() {
    let (text, id) = add("- [ ] Build\n\nThe end.", Shape::Markdown, "", &task(None, &["build"])).unwrap();
    assert_eq!(
        (text.as_str(), id.as_str()),
        ("- [ ] Build\n\nThe end.\n\n- [ ] Mend | it\n  Depends on: build\n", "mend-it")
    );
}

#[rstest]
#[case::an_unknown_task("## Task 1: A\n", task(None, &["4"]), "there is no task 4")]
#[case::another_task_in_its_text("## Task 1: A\n", task(Some("## Task 9: B"), &[]), "marks of the format")]
#[case::open_code("## Task 1: A\n```\nx\n", task(None, &[]), "marks of the format")]
fn an_addition_that_would_change_other_tasks_is_refused(
    #[case] text: &str,
    #[case] task: NewTask,
    #[case] says: &str,
) {
    let error = add(text, Shape::Markdown, "", &task).unwrap_err().to_string();
    assert!(error.contains(says) && error.contains("edit the file instead"), "{error}");
}
