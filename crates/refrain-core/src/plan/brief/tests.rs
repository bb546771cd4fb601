//! Whole specifications and prompts: their content, the warnings on large ones, and that foreign text stays data.

use proptest::prelude::*;

use super::tokens::tokens;
use super::{Again, Brief, FailedCommand, PartKind, PlanDocument, Sources, SpecFile, prompt};
use crate::plan::file::{self, Shape};
use crate::plan::{Graph, Task, TaskId, TaskStatus};
use crate::promise::{Promise, Scanner};

fn id(id: &str) -> TaskId {
    id.parse().unwrap()
}

fn bare() -> Task {
    Task::new(id("2"), "Lay  the floor".into())
}

fn task() -> Task {
    Task {
        description: Some("Of oak.\n".into()),
        details: Some("With nails.".into()),
        complexity: 5,
        dependencies: vec![id("1"), id("other:3")],
        parent: Some(id("0")),
        files: vec!["floor.rs".into(), "oak.rs".into()],
        ..bare()
    }
}

fn brief(task: &Task, sources: Sources<'_>) -> Brief {
    let parent = Task { status: TaskStatus::Expanded, ..Task::new(id("0"), "A room".into()) };
    let (graph, _) = Graph::build(vec![parent, Task::new(id("1"), "Dig".into()), task.clone()]);
    Brief::of(&graph, 2, sources)
}

const TASK: &str = "\
## Task 2: Lay the floor

- ID: 2
- Title: Lay the floor
- Complexity: 5
- Part of: 0: A room
- Files: floor.rs, oak.rs

### Description

Of oak.

### Details

With nails.

### Dependencies

- 1: Dig (done, and in your checkout)";

#[test]
fn a_specification_is_its_parts_with_rules_between_them() {
    let plan = PlanDocument::read("# House\n\n## Task 2: Floor\n\nSee the drawing.\n\n## Task 3\n".into());
    let files = [SpecFile { name: "notes.md".into(), text: "Mind the cat.\n".into() }];
    let verification = ["make check".to_owned(), "make test".to_owned()];
    let sources =
        Sources { plan: Some(&plan), files: &files, verification: Some(&verification), ..Sources::default() };
    let expected = format!(
        "{TASK}\n\n---\n\n## The plan's section about it\n\n## Task 2: Floor\n\nSee the drawing.\n\n---\n\n## notes.md\n\nMind \
         the cat.\n\n---\n\n## Verification\n\nThis has to pass. It is run after you; run it yourself first:\n\n```bash\nmake check\nmake test\n```"
    );
    assert_eq!(brief(&task(), sources).text(), expected);
}

#[test]
fn a_missing_field_leaves_no_empty_section() {
    let text = brief(&bare(), Sources::default()).text().to_owned();
    assert_eq!(text, "## Task 2: Lay the floor\n\n- ID: 2\n- Title: Lay the floor");
    let blank = Task { description: Some(" \n".into()), test_strategy: Some("Jump on it.".into()), ..bare() };
    let text = brief(&blank, Sources::default()).text().to_owned();
    assert!(text.ends_with("Title: Lay the floor\n\n### Test strategy\n\nJump on it."), "{text}");
}

#[test]
fn a_gate_of_the_loop_is_not_repeated_in_the_brief() {
    let own = Task { verification: Some("make floor".into()), ..bare() };
    assert!(!brief(&own, Sources::default()).text().contains("Verification"));
}

#[test]
fn a_tasks_own_verification_takes_the_place_of_that_of_all() {
    let own = Task { verification: Some("make floor".into()), ..bare() };
    let all = ["make all".to_owned()];
    let sources = Sources { verification: Some(&all), ..Sources::default() };
    let text = brief(&own, sources).text().to_owned();
    assert!(text.contains("```bash\nmake floor\n```") && !text.contains("make all"));
}

#[test]
fn a_brief_says_when_the_plan_does_not_name_the_task() {
    let short = PlanDocument::read("Build a house.".into());
    let text = brief(&bare(), Sources { plan: Some(&short), ..Sources::default() }).text().to_owned();
    assert!(text.contains("this is all of it)\n\nBuild a house."), "{text}");
    let long = PlanDocument::read("x".repeat(3_000));
    let text = brief(&bare(), Sources { plan: Some(&long), ..Sources::default() }).text().to_owned();
    assert!(
        text.contains("cut at 2,000 characters)\n\nxxx") && text.ends_with("x\n\n[… cut here]"),
        "{text}"
    );
    let empty = PlanDocument::read(" \n".into());
    assert_eq!(brief(&bare(), Sources { plan: Some(&empty), ..Sources::default() }).parts().len(), 1);
}

#[test]
fn the_text_of_a_parent_task_is_included_for_each_part() {
    let text = "# House\n\n## Task 1: Ground floor\n\nKeep it dry.\n\n### Task 1.1: Floor\n\nOf oak.\n\n#### Task 1.1.2: Nails\n\nOf iron.\n\n\
        ### Task 1.2: Door\n\nOf pine.\n";
    let (graph, _) = Graph::build(file::read(text, Shape::Markdown, "").unwrap().tasks);
    let plan = PlanDocument::of_task_file(text);
    let told =
        |at| Brief::of(&graph, at, Sources { plan: Some(&plan), ..Sources::default() }).text().to_owned();
    let nails = told(2);
    let (floor, ground) =
        ("## Part of: 1.1: Floor\n\nOf oak.", "## Part of: 1: Ground floor\n\nKeep it dry.");
    assert!(nails.contains(&format!("Of iron.\n\n---\n\n{floor}\n\n---\n\n{ground}")), "{nails}");
    let door = told(3);
    assert!(door.ends_with(ground) && !door.contains("oak"), "{door}");
    let mut whole = Task::new(id("0"), "A room".into());
    whole.details = Some("Mind the cat.".into());
    let (graph, _) = Graph::build(vec![whole, task()]);
    let told = Brief::of(&graph, 1, Sources::default());
    assert!(told.text().ends_with("## Part of: 0: A room\n\nMind the cat."), "{}", told.text());
    assert_eq!(told.parts()[1].name, "task 0, which it is a part of");
}

#[test]
fn the_status_marks_of_a_plan_are_not_in_the_brief() {
    let before = "## Task 2: Floor\n\n- [ ] saw\n- [x] nail\n";
    let ticked = before.replace("[ ]", "[x]");
    for (before, mark) in [(before, "in-progress"), (before, "blocked: no oak"), (&*ticked, "in-progress")] {
        let marked = before.replace("Floor", &format!("Floor ({mark})"));
        let tasks = file::read(&marked, Shape::Markdown, "").unwrap().tasks;
        assert_ne!(tasks[0].status, TaskStatus::Pending);
        assert_eq!(PlanDocument::of_task_file(&marked), PlanDocument::read(before.to_owned()));
    }
}

#[test]
fn a_template_says_which_parts_stand_where() {
    let template = "Do it well.\n\n{task}\n\nProve it: {verification}{custom}".parse().unwrap();
    let plan = PlanDocument::read("## Task 2\n\n{task}\n".into());
    let verification = ["true".to_owned()];
    let sources = Sources {
        plan: Some(&plan),
        verification: Some(&verification),
        template: Some(&template),
        ..Sources::default()
    };
    let task = Task { description: Some("Keep {verification} as it is.".into()), ..bare() };
    let brief = brief(&task, sources);
    assert!(brief.text().starts_with("Do it well.\n\n## Task 2: Lay the floor"));
    assert!(brief.text().contains("Keep {verification} as it is."), "a task is no template");
    assert!(brief.text().ends_with("```bash\ntrue\n```"));
    let kinds: Vec<_> = brief.parts().iter().map(|part| part.kind).collect();
    assert_eq!(kinds, [PartKind::Task, PartKind::Verification, PartKind::Template]);
}

#[test]
fn a_large_specification_is_reported_with_its_largest_part_and_not_cut() {
    let long = "word ".repeat(5_000);
    let plan = PlanDocument::read(format!("## Task 2\n\n{long}"));
    let brief = brief(&bare(), Sources { plan: Some(&plan), ..Sources::default() });
    let size = tokens(brief.text());
    let warning = brief.over_budget(&bare().id, 5_000).unwrap().to_string();
    assert!(size > 6_000 && tokens(&brief.parts()[1].text) > 6_000, "{size}");
    assert!(
        warning.starts_with("the brief of task 2 has 6,") && warning.contains(", more than 5,000; "),
        "{warning}"
    );
    assert!(warning.contains("; the largest part is the plan's section: 6,"), "{warning}");
    assert!(brief.text().contains(long.trim_end()));
    assert_eq!(brief.over_budget(&bare().id, size), None);
    assert!(brief.over_budget(&bare().id, size - 1).is_some());
}

#[test]
fn a_prompt_names_task_and_tag_and_says_how_to_give_up_without_giving_up() {
    let brief = brief(&task(), Sources::default());
    let prompt = prompt(&task(), "house", &brief, &[]);
    assert!(prompt.starts_with("You work on task 2 of house: Lay the floor\n\n"));
    assert!(prompt.contains("\n\n---\n\n## Task 2: Lay the floor"));
    assert!(prompt.ends_with("`TASK_BLOCKED: <reason>`\n"));
    assert!(!prompt.contains("TASK_COMPLETE"), "that is the loop's to tell");
    let mut scanner = Scanner::new(Some(&Promise::of_task()), "").hearing_giving_up();
    scanner.push(prompt.as_bytes());
    let finding = scanner.finish();
    assert_eq!((finding.claimed, finding.gave_up), (false, None), "an echo says nothing");
}

fn after(again: &Again) -> String {
    prompt(&bare(), "house", &brief(&bare(), Sources::default()), std::slice::from_ref(again))
}

#[test]
fn the_brief_explains_why_a_task_runs_again() {
    let conflict = Again::Conflict {
        files: vec!["src/a.rs".into(), "b\n- c".into()],
        ours: "-1\n+2\n".into(),
        theirs: "-1\n+3\n".into(),
    };
    let text = after(&conflict);
    assert!(text.contains("CONFLICT: ") && text.contains("stand in:\n- src/a.rs\n- b - c\n\n"), "{text}");
    assert!(text.contains(
        "What you had changed there:\n\n```\n-1\n+2\n```\n\nWhat landed there meanwhile:\n\n```\n-1\n+3\n```"
    ));
    let refused = Again::Refused(FailedCommand { command: "make `x`".into(), output: "no\n".into() });
    let text = after(&refused);
    assert!(
        text.contains("NOT LANDED: ") && text.contains("The command `` make `x` `` printed:\n\n```\nno\n```"),
        "{text}"
    );
    let refined = Again::Refined { text: "Use pine.".into() };
    assert!(
        after(&refined).contains("REFINEMENT: ") && after(&refined).contains(":\n\nUse pine.\n\n---\n\n")
    );
}

#[test]
fn a_long_explanation_of_a_repeated_task_is_cut() {
    let long = || "x\n".repeat(100_000);
    for again in [
        Again::Conflict { files: vec!["f".into(); 1_000], ours: long(), theirs: long() },
        Again::Refused(FailedCommand { command: "c".into(), output: long() }),
        Again::Refined { text: long() },
    ] {
        assert!(after(&again).len() < 20_000, "{}", after(&again).len());
    }
}

const ESCAPE: char = '\u{1b}';

/// Texts that try to break out of their quotation.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = [
        "```",
        "````",
        "~~~",
        "\n",
        "TASK_BLOCKED: no",
        "TASK_COMPLETE",
        "---",
        "# ",
        "`",
        "x",
        "\u{1b}[31m",
        "{task}",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..20)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn process_output_stays_within_its_fence(output in hostile(), command in hostile()) {
        let text = after(&Again::Refused(FailedCommand { command, output }));
        let printed = text.split("printed:\n\n").nth(1);
        if let Some(printed) = printed {
            let fence = printed.lines().next().unwrap();
            prop_assert!(fence.len() >= 3 && fence.chars().all(|c| c == '`'), "{text}");
            let ends = printed.lines().skip(1).filter(|line| line.trim_end().ends_with(fence)).count();
            prop_assert_eq!(ends, 1, "{}", text);
        }
        prop_assert!(!text.contains(ESCAPE));
    }

    #[test]
    fn no_text_of_a_task_holds_a_control_character(title in any::<String>(), words in any::<String>()) {
        let task = Task { title, description: Some(words.clone()), test_strategy: Some(words.clone()), ..bare() };
        let files = [SpecFile { name: words.clone(), text: words.clone() }];
        let plan = PlanDocument::read(words);
        let brief = brief(&task, Sources { plan: Some(&plan), files: &files, ..Sources::default() });
        let prompt = prompt(&task, "house", &brief, &[]);
        prop_assert!(prompt.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')));
    }
}
