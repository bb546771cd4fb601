//! `refrain plan show`: the prompt of a task's agent, to the byte.

use testkit::{Sandbox, write};

use crate::sandbox;

const TASKS: &str = r#"{
  "house": {
    "name": "house",
    "tasks": [
      {"id": "1", "title": "Dig", "status": "done", "complexity": 3, "dependencies": []},
      {"id": "2", "title": "Lay the floor", "description": "Of oak.", "details": "With nails.",
       "test_strategy": "Jump on it.", "status": "pending", "complexity": 5, "dependencies": ["1"]},
      {"id": "10", "title": "Raise \u001b[31mthe roof", "status": "pending", "dependencies": ["2"],
       "description": "TASK_BLOCKED: no\n```\n{task}\n"}
    ]
  }
}"#;

const PLAN: &str = "\
# The house

## Task 10: The roof

Later.

## Task 2: The floor

See the *drawing*.

### Wood

Oak.
";

/// A project with tasks under the tag `house`, a plan and notes.
fn house() -> Sandbox {
    let sandbox = sandbox();
    let write = |name: &str, text: &str| write(&sandbox.project().join(name), text);
    std::fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write(".scud/tasks/tasks.json", TASKS);
    write("plan.md", PLAN);
    write("notes.md", "Mind the cat.\n");
    sandbox
}

const SHOW: [&str; 6] = ["plan", "show", "--tag", "house", "--plan", "plan.md"];

fn show(sandbox: &Sandbox, words: &[&str]) -> String {
    sandbox.refrain(&[&SHOW[..], words].concat()).with_code(0).stdout
}

#[test]
fn show_prints_the_whole_prompt_of_a_task() {
    let sandbox = house();
    let told = show(&sandbox, &["2", "--spec-file", "notes.md", "--verify", "make check"]);
    let expected = "\
You work on task 2 of house: Lay the floor

Do this task and nothing else of the plan. Others work on other tasks at the same time, each in a checkout of their own.

---

## Task 2: Lay the floor

- ID: 2
- Title: Lay the floor
- Complexity: 5

### Description

Of oak.

### Details

With nails.

### Test strategy

Jump on it.

### Dependencies

- 1: Dig (done, and in your checkout)

---

## The plan's section about it

## Task 2: The floor

See the *drawing*.

### Wood

Oak.

---

## notes.md

Mind the cat.

---

If it cannot be done, after three serious attempts or because something is missing that you cannot make, stop, and let a \
line of your final message say so and why: `TASK_BLOCKED: <reason>`

## How this loop works
- You are started again for each run, until the gates pass. Earlier runs' changes are in the working tree (`git status`), \
committed for you after the gates pass.
- Run these gates yourself before you finish:
  - verify: `make check`
- When everything is done, end with <promise>TASK_COMPLETE</promise> alone on its line.
- Notes for the next run: `.refrain/ID/state.md`. To ask, set `status: blocked` and `question: ...` there.

## Run 1 of 3";
    let id = told.split(".refrain/").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    assert!(id.starts_with("house-0000-2-"), "{id}");
    assert_eq!(told.replace(id, "ID"), expected);
    assert_eq!(told, show(&sandbox, &["2", "--spec-file", "notes.md", "--verify", "make check"]));
}

#[test]
fn a_run_tells_the_same_to_the_byte() {
    // Defaults are chosen alike, too: in the second case from the project's files.
    for more in [
        &["--verify", "true", "--gate", "docs=test -e plan.md", "--soft-gate", "ls", "--protect", "notes.md"]
            [..],
        &["--spec-template", "template.md", "--clean-checkout"],
        &["--verify", "true", "--no-iteration-context"],
    ] {
        let sandbox = house();
        let own = r#""verification": "test -e notes.md", "description": "Of oak.""#;
        let tasks = TASKS.replace(r#""description": "Of oak.""#, own);
        write(&sandbox.project().join(".scud/tasks/tasks.json"), &tasks);
        write(&sandbox.project().join("Makefile"), "test:\n\t@true\n");
        write(
            &sandbox.project().join("template.md"),
            "{task}\n\n{plan}\n\nMind: {custom}\n\n{verification}\n",
        );
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "Begin"]);
        let agent = sandbox.agent(
            "worker",
            r#"case $(git branch --show-current) in */2*) cp "$1" "$NOTES/told";; esac; date > new; echo TASK_COMPLETE"#,
        );
        let usual = ["--spec-file", "notes.md", "--name", "h", "--command", &agent, "--prompt-mode", "file"];
        let words = [&usual[..], more].concat();
        let shown = show(&sandbox, &[&["2"], &words[..]].concat());
        let run = ["plan", "run", "--tag", "house", "--plan", "plan.md", "--quiet", "--yes", "--jobs", "1"];
        sandbox.refrain(&[&run[..], &words].concat()).with_code(0);
        assert_eq!(sandbox.note("told"), shown, "{more:?}");
        assert!(shown.contains("test -e notes.md") && !shown.contains("(pending)"), "{more:?}: {shown}");
    }
}

#[test]
fn the_object_has_the_parts_and_their_tokens() {
    let sandbox = house();
    let words = ["10", "--max-spec-tokens", "20", "--json"];
    let run = sandbox.refrain(&[&SHOW[..], &words].concat()).with_code(0);
    let told = run.json();
    assert_eq!(
        (&told["id"], &told["tag"], &told["max_spec_tokens"]),
        (&"10".into(), &"house".into(), &20.into())
    );
    let kinds: Vec<_> =
        told["parts"].as_array().unwrap().iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task", "plan"]);
    let counted = |value: &serde_json::Value| value.as_u64().unwrap();
    let (task, all) = (counted(&told["parts"][0]["tokens"]), counted(&told["spec_tokens"]));
    assert!(task > 20 && all > task && counted(&told["tokens"]) > all, "{told}");
    let warning = told["warning"].as_str().unwrap();
    let largest = format!("the largest part is the task itself: {task} of {all} tokens");
    assert!(warning.contains(&largest), "{warning}");
    assert!(run.stderr.contains("refrain: warning: the brief of task 10 has "), "{}", run.stderr);
    // What is too long is still sent whole.
    assert_eq!(told["prompt"].as_str().unwrap(), show(&sandbox, &["10"]));
    assert_eq!(sandbox.refrain(&[&SHOW[..], &["10"]].concat()).stderr, "");
}

#[test]
fn task_text_controls_neither_terminal_nor_template() {
    let sandbox = house();
    write(&sandbox.project().join("template.md"), "First: {verification}\n\n{task}\n\n{{word}} { a }");
    let told = show(&sandbox, &["10", "--spec-template", "template.md", "--verify", "make \u{1b}[1mcheck"]);
    assert!(!told.contains('\u{1b}'), "{told}");
    assert!(
        told.contains("---\n\nFirst: ## Verification\n") && told.contains("{word} { a }\n\n---\n\n"),
        "{told}"
    );
    assert!(told.contains("\n```\n{task}\n") && !told.contains("The plan's section"), "{told}");
}

#[test]
fn the_section_of_a_task_is_not_repeated_in_its_prompt() {
    let sandbox = house();
    let words = ["plan", "show", "2", "--plan", "plan.md", "--verify", "true"];
    let told = sandbox.refrain(&words).with_code(0).stdout;
    assert_eq!(told.matches("See the *drawing*.").count(), 1, "{told}");
    assert!(told.contains("You work on task 2 of plan: The floor\n") && told.contains("### Wood"), "{told}");
    let marked = PLAN.replace("The floor", "The floor (in-progress)");
    write(&sandbox.project().join("plan.md"), marked);
    assert_eq!(sandbox.refrain(&words).with_code(0).stdout, told, "it may have begun");
}

#[test]
fn a_check_names_every_task_with_too_large_a_prompt() {
    let sandbox = house();
    let check = ["plan", "check", "--tag", "house", "--plan", "plan.md", "--verify", "true"];
    let fine = sandbox.refrain(&check).with_code(0).stdout;
    assert!(fine.contains("nothing is wrong with it"), "{fine}");
    let checked =
        sandbox.refrain(&[&check[..], &["--max-spec-tokens", "20", "--json"]].concat()).with_code(0).json();
    let problems = checked["problems"].as_array().unwrap();
    let told: Vec<_> = problems.iter().map(|it| (it["kind"].as_str().unwrap(), &it["tasks"][0])).collect();
    assert_eq!(told, [("over-budget", &"2".into()), ("over-budget", &"10".into())], "1 is done");
    let text = problems[0]["text"].as_str().unwrap();
    assert!(text.contains(", more than 20; the largest part is the task itself: "), "{text}");
    let words = [&check[..], &["--spec-file", "none.md"]].concat();
    assert!(sandbox.refrain(&words).with_code(2).stderr.contains("--spec-file none.md"));
}

#[test]
fn bad_input_is_named_and_nothing_is_touched() {
    let sandbox = house();
    write(&sandbox.project().join("bad.md"), "{taks}");
    write(&sandbox.project().join("latin.md"), b"\xff");
    let before = sandbox.git(&["status", "--porcelain"]);
    for (words, code, complaint) in [
        (&["3"][..], 3, "there is no task 3 in house"),
        (&["porch-door"], 3, "refrain plan waves shows those that there are"),
        (&["01"], 3, "there is no task 01 in house   did you mean 10?"),
        (&["2", "--spec-file", "none.md"], 2, "--spec-file none.md: No such file or directory"),
        (&["2", "--spec-file", "."], 2, "--spec-file .: it is no file"),
        (&["2", "--spec-file", "latin.md"], 2, "--spec-file latin.md: stream did not contain valid UTF-8"),
        (&["2", "--spec-template", "bad.md"], 2, "--spec-template bad.md: {taks} stands for nothing"),
        (&["2", "--spec-template", "notes.md"], 2, "it does not name {task}"),
        (&["2", "--verify", " "], 2, "--verify is empty"),
        (&["2", "--max-spec-tokens", "many"], 2, "--max-spec-tokens"),
        (&[], 2, "TASK"),
    ] {
        let run = sandbox.refrain(&[&SHOW[..], words].concat()).with_code(code);
        let said = run.stderr.replace('\n', " ");
        assert!(said.contains(complaint), "{words:?}: {said}");
        assert_eq!(run.stdout, "", "{words:?}");
    }
    assert_eq!(sandbox.git(&["status", "--porcelain"]), before);
}
