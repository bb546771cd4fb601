//! Task files: small real projects in all shapes, the problems found before anything is spent, and their waves.

use serde_json::{Value, json};
use testkit::Sandbox;

use crate::{plain_folder, sandbox};

/// SCUD's file of one tag.
const AUTH: &str = r#"{
  "tag": "auth",
  "tasks": [
    {"id": 1, "title": "Schema", "status": "done", "complexity": 3, "priority": "high", "depends_on": []},
    {"id": 2, "title": "Hash passwords", "status": "in-progress", "complexity": 5, "depends_on": [1]},
    {"id": 3, "title": "Log in", "status": "pending", "complexity": 8, "depends_on": [2]},
    {"id": 4, "title": "Log out", "status": "pending", "complexity": 2, "depends_on": [1]},
    {"id": 5, "title": "Tokens", "status": "pending", "complexity": 5, "depends_on": [1]},
    {"id": 6, "title": "Guide\u001b[2J", "status": "pending", "complexity": 1, "depends_on": [3, 4, 5]}
  ],
  "waves": [{"number": 1, "name": "all", "task_ids": [1, 2, 3, 4, 5, 6]}]
}
"#;

/// The same plan in SCUD's two files of all tags, and in Markdown.
const ALL_TAGS: &str = r#"{"web": {"tasks": []}, "auth": {"name": "auth", "tasks": [
  {"id": "1", "title": "Schema", "status": "done", "complexity": 3, "dependencies": []},
  {"id": "2", "title": "Hash passwords", "status": "in-progress", "complexity": 5, "dependencies": ["1"]},
  {"id": "3", "title": "Log in", "status": "pending", "complexity": 8, "dependencies": ["2"]},
  {"id": "4", "title": "Log out", "status": "pending", "complexity": 2, "dependencies": ["1"]},
  {"id": "5", "title": "Tokens", "status": "pending", "complexity": 5, "dependencies": ["1"]},
  {"id": "6", "title": "Guide", "status": "pending", "complexity": 1, "dependencies": ["3", "4", "5"]}]}}
"#;
const GRAPH: &str = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n# id | title | status | complexity | priority\n1 | Schema | D | 3 | H\n\
    2 | Hash passwords | I | 5 | M\n3 | Log in | P | 8 | M\n4 | Log out | P | 2 | M\n5 | Tokens | P | 5 | M\n6 | Guide | P | 1 | L\n\n\
    @edges\n2 -> 1\n3 -> 2\n4 -> 1\n5 -> 1\n6 -> 3\n6 -> 4\n6 -> 5\n";
const PLAN: &str = "# Auth\n\nVerify: `true`\n\n## Task 1: Schema (done)\n\n## Task 2: Hash passwords (in-progress)\nDepends on: Task 1\n\n\
    ## Task 3: Log in\nDependencies: 2\n\n## Task 4: Log out\n- Depends on: 1\n- [ ] write it\n\n```\n## Task 9: no task\n```\n\n\
    ## Task 5: Tokens\n**Depends on:** Task 1\n\n### Task 6: Guide\nDependencies: Task 3, Task 4, 5\n";

/// Writes a file of the project.
fn lay(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    testkit::write(&path, text);
}

fn with(name: &str, text: &str) -> Sandbox {
    let sandbox = sandbox();
    lay(&sandbox, name, text);
    sandbox
}

/// The waves as lists of ids.
fn waves(run: &Value) -> Value {
    let ids =
        |wave: &Value| wave["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    run["waves"].as_array().unwrap().iter().map(ids).collect::<Vec<Value>>().into()
}

#[test]
fn every_shape_of_a_plan_has_the_same_waves() {
    let cases: [(&str, &str, &[&str]); 6] = [
        (".scud/tasks/auth.json", AUTH, &[]),
        (".scud/tasks/tasks.json", ALL_TAGS, &["--tag", "auth"]),
        (".scud/tasks/tasks.scg", GRAPH, &["--tag", "auth"]),
        (".scud/tasks/auth.scg", GRAPH, &[]),
        ("plans/auth.md", &PLAN.replace("### ", "## "), &["--plan", "plans/auth.md"]),
        ("elsewhere.json", ALL_TAGS, &["--plan", "elsewhere.json", "--tag", "auth"]),
    ];
    for (name, text, words) in cases {
        let sandbox = with(name, text);
        let before = sandbox.snapshot();
        let run =
            sandbox.refrain(&[&["plan", "waves", "--json", "--jobs", "2"], words].concat()).with_code(0);
        let shown = run.json();
        assert_eq!(waves(&shown), json!([["2", "4", "5"], ["3"], ["6"]]), "{name}");
        assert_eq!(
            (&shown["tasks"], &shown["rounds"], &shown["speed_up"]),
            (&json!(5), &json!(4), &json!(1.3))
        );
        assert_eq!(shown["waves"][2]["tasks"][0]["depends_on"], json!(["3", "4", "5"]));
        assert_eq!(sandbox.snapshot(), before, "{name}: it only looks");
    }
}

#[test]
fn waves_are_shown_with_the_dependencies_of_each_task() {
    let sandbox = with(".scud/tasks/auth.json", AUTH);
    let run = sandbox.refrain(&["plan", "waves"]).with_code(0);
    let lines: String = run.stdout.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(
        lines,
        "Wave 1: 3 tasks\n  ID  COMPLEXITY  TITLE           AFTER\n  2            5  Hash passwords\n  4            2  Log out\n  \
         5            5  Tokens\nWave 2: 1 task\n  ID  COMPLEXITY  TITLE   AFTER\n  3            8  Log in  2\nWave 3: 1 task\n  \
         ID  COMPLEXITY  TITLE  AFTER\n  6            1  Guide  3, 4, 5\n\
         5 tasks in 3 steps, each wave at once: 1.7 times as fast as one after another\n"
    );
    lay(&sandbox, ".scud/tasks/auth.json", r#"{"tasks": [{"id": 1, "status": "done"}]}"#);
    let done = sandbox.refrain(&["plan", "waves"]).with_code(0);
    assert_eq!(done.stdout, "auth: nothing is to do\n");
}

#[test]
fn a_valid_plan_passes_the_check() {
    let sandbox = with("plan.md", PLAN);
    let run = sandbox.refrain(&["plan", "check", "--plan", "plan.md", "--yes"]).with_code(0);
    assert_eq!(run.stdout, "plan: 6 tasks, 5 of them to do, in 3 waves\n  nothing is wrong with it\n");
    let odd = with(".scud/tasks/auth.json", AUTH);
    let run = odd.refrain(&["plan", "check", "--json"]).with_code(0).json();
    assert_eq!((&run["ok"], &run["to_do"], &run["tag"]), (&json!(true), &json!(5), &json!("auth")));
    let kinds: Vec<_> = run["problems"].as_array().unwrap().iter().map(|problem| &problem["kind"]).collect();
    let stored = json!("stored-waves");
    assert_eq!(kinds, [&stored, &stored, &stored, &stored, &stored, &json!("no-verification")]);
    testkit::write(&odd.project().join("Cargo.toml"), "[package]\nname = \"x\"\n");
    let chosen = odd.refrain(&["plan", "check", "--json", "--yes"]).with_code(0);
    assert_eq!(chosen.json()["problems"].as_array().unwrap().len(), 5, "as a run would choose it");
    assert!(chosen.stderr.contains("the gate is cargo check && cargo test"), "{}", chosen.stderr);
    let proven = odd.refrain(&["plan", "check", "--verify", "sh check.sh", "--json"]).with_code(0).json();
    assert_eq!(proven["problems"].as_array().unwrap().len(), 5);
}

#[test]
fn a_verification_whose_program_is_missing_does_not_pass_the_check() {
    let sandbox = with(".scud/tasks/auth.json", AUTH);
    let words = ["plan", "check", "--command", "true", "--verify", "nonesuch --all"];
    let refused = sandbox.refrain(&words).with_code(2);
    let why = "gate verify: command not found: nonesuch";
    assert!(refused.stderr.contains(why), "{refused:?}");
    assert!(refused.stdout.contains(&format!("error: it cannot begin here: {why}")), "{refused:?}");
    assert!(!refused.stdout.contains("nothing is wrong with it"), "{refused:?}");
    let object = sandbox.refrain(&[&words[..], &["--json"]].concat()).with_code(2).json();
    assert_eq!((&object["ok"], &object["problems"][0]["kind"]), (&json!(false), &json!("cannot-begin")));
}

#[test]
fn every_error_of_a_plan_is_reported_at_once_with_exit_code_1() {
    let text = "# P\n\nVerify: `true`\n\n- [ ] 1. A\n  Depends on: 3\n- [ ] 2. B\n  Depends on: 1\n- [ ] 3. C\n  Depends on: 2\n\
        - [ ] 4. D\n  Depends on: login-pge, 4\n- [ ] 4. E\n- [x] login-page: F\n- [ ] login-page\n";
    let sandbox = with("todo.md", text);
    let run = sandbox.refrain(&["plan", "check", "--plan", "todo.md"]).with_code(1);
    let expected = [
        "  error: more than one task is called 4",
        "  error: task 4 depends on login-pge, which is not there; did you mean login-page?",
        "  error: task 4 depends on itself",
        "  error: tasks wait for each other in a cycle: 1 -> 3 -> 2 -> 1",
    ];
    assert_eq!(run.stdout.lines().skip(1).collect::<Vec<_>>(), expected);
    let object = sandbox.refrain(&["plan", "check", "--plan", "todo.md", "--json"]).with_code(1).json();
    assert_eq!(object["ok"], false);
    assert_eq!(object["problems"][3]["tasks"], json!(["1", "3", "2"]));
    let waves = sandbox.refrain(&["plan", "waves", "--plan", "todo.md"]).with_code(1);
    assert!(
        waves.stderr.contains("todo.md has no waves: more than one task is called 4, and 3 more"),
        "{}",
        waves.stderr
    );
    assert!(waves.stderr.contains("refrain plan check"), "{}", waves.stderr);
}

#[test]
fn a_task_that_waits_on_a_cancelled_task_is_reported_and_shown() {
    let text = r#"{"tasks": [{"id": 1, "title": "Gone", "status": "cancelled"}, {"id": 2, "title": "Late", "depends_on": [1]},
        {"id": 3, "title": "Later", "depends_on": [2], "status": "pending", "verification": "make"}]}"#;
    let sandbox = with(".scud/tasks/a.json", text);
    let run = sandbox.refrain(&["plan", "check", "--yes"]).with_code(0);
    assert!(
        run.stdout.contains("warning: task 2 waits on task 1, which is cancelled: it cannot begin"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("warning: nothing would prove task 2 done: give --verify CMD"),
        "{}",
        run.stdout
    );
    let waves = sandbox.refrain(&["plan", "waves"]).with_code(0);
    assert!(waves.stdout.contains("Later  2 (waits on 1)"), "{}", waves.stdout);
}

#[test]
fn an_unusable_plan_file_is_refused_with_the_accepted_form() {
    let sandbox = with(".scud/tasks/auth.json", AUTH);
    lay(&sandbox, ".scud/tasks/billing.json", "{\"tasks\": [{\"id\": 1,\n \"status\": \"wip\"}]}");
    lay(&sandbox, ".scud/tasks/broken.json", "{\"tasks\": [");
    lay(&sandbox, ".scud/tasks/empty.json", "{\"tasks\": []}");
    lay(&sandbox, "prose.md", "# Only words\n");
    lay(&sandbox, "plan.txt", "## Task 1: a\n");
    let before = sandbox.snapshot();
    let cases: [(&[&str], i32, &[&str]); 17] = [
        (&["plan"], 2, &["a verb is missing", "refrain plan --help"]),
        (&["plan", "dance"], 2, &["dance"]),
        (&["plan", "check"], 2, &["auth, billing, broken, empty", "--tag"]),
        (&["plan", "check", "--tag", "auht"], 3, &["auht", "did you mean auth?", "billing"]),
        (&["plan", "waves", "--tag", "../auth"], 3, &["../auth"]),
        (
            &["plan", "waves", "--tag", "billing"],
            2,
            &["billing.json", "line 2, column 12", "task 1", "\"wip\"", "pending"],
        ),
        (&["plan", "check", "--tag", "broken"], 2, &["broken.json", "line 1", "nothing was changed"]),
        (&["plan", "check", "--plan", "missing.md"], 2, &["--plan", "missing.md"]),
        (&["plan", "check", "--plan", "./pros.md"], 2, &["--plan ./pros.md", "did you mean ./prose.md?"]),
        (&["plan", "check", "--tag", "empty"], 3, &["there are no tasks of empty in", "empty.json"]),
        (&["plan", "waves", "--tag", "empty"], 3, &["there are no tasks of empty in"]),
        (&["plan", "run", "--tag", "empty", "--command", "true"], 3, &["there are no tasks of empty in"]),
        (&["plan", "check", "--plan", "."], 2, &["regular file"]),
        (&["plan", "check", "--plan", "plan.txt"], 2, &["plan.txt", "Markdown"]),
        (&["plan", "check", "--tag", "auth", "--verify", " "], 2, &["--verify", "accepted"]),
        (&["plan", "waves", "--tag", "auth", "--jobs", "0"], 2, &["'0'", "--jobs"]),
        (&["plan", "waves", "--tag", "auth", "--jobs", "many"], 2, &["'many'", "--jobs"]),
    ];
    for (words, code, names) in cases {
        let run = sandbox.refrain(words).with_code(code);
        assert_eq!(run.stdout, "", "{words:?}");
        names.iter().for_each(|name| assert!(run.stderr.contains(name), "{words:?}: {name}: {}", run.stderr));
    }
    assert_eq!(sandbox.snapshot(), before);
    let bare = plain_folder();
    testkit::write(&bare.project().join("prose.md"), "# Only words\n");
    let run = bare.refrain(&["plan", "check"]).with_code(3);
    assert!(
        run.stderr.contains("there are no tasks in") && run.stderr.contains("--plan FILE"),
        "{}",
        run.stderr
    );
    let run = bare.refrain(&["plan", "check", "--plan", "prose.md"]).with_code(2);
    assert!(run.stderr.contains("## Task 1"), "{}", run.stderr);
}

#[test]
fn an_obstacle_is_reported_before_a_plan_or_loop_begins() {
    let unborn = plain_folder();
    unborn.git(&["init", "-q"]);
    testkit::write(&unborn.project().join("plan.md"), PLAN);
    for words in [&["plan", "check"][..], &["plan", "run", "--command", "true", "--dry-run"]] {
        let said = unborn.refrain(&[words, &["--plan", "plan.md"]].concat()).with_code(17).stderr;
        assert!(said.contains("no commit"), "{said}");
    }
    let words = ["start", "--command", "true", "--worktree", "--git-workflow", "commit", "p"];
    let said = unborn.refrain(&words).with_code(17).stderr;
    assert!(said.contains("has no commit yet") && said.contains("git add . && git commit -m"), "{said}");
    let sandbox = with("plan.md", PLAN);
    let run = ["plan", "run", "--plan", "plan.md", "--dry-run", "--command"];
    let said = sandbox.refrain(&[&run[..], &["no-such-agent"]].concat()).with_code(1).stderr;
    assert!(said.contains("no-such-agent"), "a run would be refused as well: {said}");
}

#[test]
fn the_tasks_of_the_checkout_that_one_is_in_count() {
    let sandbox = with(".scud/tasks/auth.json", AUTH);
    sandbox.git(&["worktree", "add", "--quiet", "../tmp/other"]);
    let there = sandbox.root().join("tmp/other");
    let run = sandbox.command(&["plan", "waves", "--json"]).dir(&there).run().with_code(0).json();
    assert_eq!(run["tasks"], 5, "it has none of its own");
    std::fs::create_dir_all(there.join(".scud/tasks")).unwrap();
    testkit::write(&there.join(".scud/tasks/own.json"), r#"{"tasks": [{"id": 1}]}"#);
    let run = sandbox.command(&["plan", "waves", "--json"]).dir(&there).run().with_code(0).json();
    assert_eq!((&run["tasks"], &run["tag"]), (&json!(1), &json!("own")));
}
