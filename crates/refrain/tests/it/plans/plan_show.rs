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
