//! Plans from the command line: run, shown, stopped, tuned and resumed, and refusals.

use std::fs;

use testkit::Sandbox;

use crate::sandbox;

/// Five tasks in three waves: 3 follows 1, 4 follows 2, 5 follows both.
const TASKS: &str = r#"{
  "tag": "feature-x",
  "tasks": [
    {"id": 1, "title": "Describe the schema", "status": "pending", "complexity": 2, "depends_on": []},
    {"id": 2, "title": "Set up the router", "status": "pending", "complexity": 1, "depends_on": []},
    {"id": 3, "title": "Setup database", "status": "pending", "complexity": 3, "depends_on": [1]},
    {"id": 4, "title": "Implement auth middleware", "status": "pending", "complexity": 5, "depends_on": [2]},
    {"id": 5, "title": "Store sessions", "status": "pending", "complexity": 3, "depends_on": [3, 4]}
  ]
}
"#;

/// A project with those tasks, committed, and an agent that writes a file for each; task 3 only if its prompt says
/// pine.
pub(crate) fn feature() -> (Sandbox, String) {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    testkit::write(&sandbox.project().join(".scud/tasks/feature-x.json"), TASKS);
    testkit::write(&sandbox.project().join("README.md"), "A project.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    let agent = sandbox.agent(
        "worker",
        r#"task=$(git branch --show-current); task=${task##*/}
case $task in 3*) case $* in *pine*) ;; *) echo "I do not know which wood."; exit 0;; esac;; esac
echo "$task" > "$task.txt"
echo TASK_COMPLETE"#,
    );
    (sandbox, agent)
}

const VERIFY: &str = "test -e README.md";

pub(crate) fn run(sandbox: &Sandbox, agent: &str, words: &[&str]) -> testkit::Run {
    let usual = ["plan", "run", "--tag", "feature-x", "--command", agent, "--verify", VERIFY, "--name", "fx"];
    sandbox.refrain(&[&usual[..], words].concat())
}

fn status_of(sandbox: &Sandbox, task: &str) -> String {
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    let tasks = view["tasks"].as_array().unwrap();
    tasks.iter().find(|it| it["id"] == task).unwrap()["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_plan_is_run_tuned_and_resumed_to_its_end() {
    let (sandbox, agent) = feature();
    let first = run(&sandbox, &agent, &[]).with_code(14);
    for part in [
        "[plan fx wave 1 of 3 complete] 2 tasks, feat(feature-x): complete wave 1",
        "task 3 is blocked after 3 iterations",
    ] {
        assert!(first.stdout.contains(part), "{part}: {}", first.stdout);
    }
    let view = sandbox.refrain(&["status", "fx", "--json"]).with_code(0).json();
    assert_eq!((view["kind"].as_str(), view["status"].as_str()), (Some("plan"), Some("blocked")));
    assert_eq!((view["tasks_done"].as_u64(), view["tasks_total"].as_u64()), (Some(3), Some(5)));
    assert_eq!(view["blocked"][0]["attempts"], 3);
    assert_eq!(view["wave_commits"][0]["tasks_completed"], serde_json::json!(["1", "2"]));
    assert_eq!(status_of(&sandbox, "5"), "waiting-on-blocked");
    let shown = sandbox.refrain(&["status"]).with_code(0).stdout;
    assert!(shown.contains("Blocked Tasks: 1") && shown.contains("Waiting on Blocked: 5"), "{shown}");
    // Its tasks' loops are its own affair.
    let list = sandbox.refrain(&["list", "--json"]).with_code(0).json();
    assert_eq!((list.as_array().unwrap().len(), list[0]["kind"].as_str()), (1, Some("plan")));
    let tasks = sandbox.refrain(&["list", "--plan", "fx", "--json"]).with_code(0).json();
    assert_eq!(tasks.as_array().unwrap().len(), 4);
    assert!(tasks[0]["task"]["plan"] == "fx" && tasks[0]["kind"] == "task", "{tasks}");

    let tuned = sandbox.refrain(&["plan", "tune", "--words", "Use pine.", "--resume"]).with_code(0);
    assert!(tuned.stdout.contains("I do not know which wood."), "what came out is shown: {}", tuned.stdout);
    let view = sandbox.refrain(&["plan", "status", "--json"]).with_code(0).json();
    assert_eq!((view["status"].as_str(), view["verified"].as_bool()), (Some("completed"), Some(true)));
    for task in ["1", "2", "3", "4", "5"] {
        assert_eq!(status_of(&sandbox, task), "done");
        assert!(
            sandbox.project().join(format!("{task}.txt")).exists() || task == "3",
            "{task} is handed over"
        );
    }
    let file = fs::read_to_string(sandbox.project().join(".scud/tasks/feature-x.json")).unwrap();
    assert_eq!(file.matches(r#""status": "done""#).count(), 5, "{file}");
    let again = sandbox.refrain(&["plan", "resume", "fx"]).with_code(17).stderr;
    assert!(again.contains("it is completed"), "{again}");
}

#[test]
fn seed_001s_start_is_the_same() {
    let (sandbox, agent) = feature();
    let agent = format!("sh -c 'exec {agent} pine' worker");
    let words =
        ["loop", "start", "--scud-tag", "feature-x", "--spec-file", "README.md", "--max-spec-tokens", "5000"];
    let more = ["--verify", VERIFY, "--command", &agent, "--jobs", "1", "--json"];
    let done = sandbox.refrain(&[&words[..], &more].concat()).with_code(0);
    let view = done.json();
    assert_eq!((view["status"].as_str(), view["jobs"].as_u64()), (Some("completed"), Some(1)));
    assert!(done.stderr.contains("complete wave 3"), "{}", done.stderr);
}

#[test]
fn a_rehearsal_shows_all_and_changes_nothing() {
    let (sandbox, agent) = feature();
    let before = sandbox.snapshot();
    let shown = run(&sandbox, &agent, &["--dry-run"]).with_code(0);
    for part in ["Wave 3: 1 task", "Specifications have", "proof  verify (test -e README.md)"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let json = run(&sandbox, &agent, &["--dry-run", "--json"]).with_code(0).json();
    assert_eq!(json["told"].as_array().unwrap().len(), 5);
    assert_eq!(sandbox.snapshot(), before);
    let said = sandbox.refrain(&["plan", "status"]).with_code(2).stderr;
    assert!(said.contains("this project has no plan") && said.contains("refrain plan run"), "{said}");
}

#[test]
fn the_gate_of_a_plan_is_offered_from_its_files() {
    let (sandbox, agent) = feature();
    let words = ["plan", "run", "--tag", "feature-x", "--command", &agent, "--dry-run"];
    let shown = sandbox.refrain(&words).with_code(0);
    assert!(shown.stderr.contains("unverified (--verify CMD)"), "{}", shown.stderr);
    testkit::write(&sandbox.project().join("Cargo.toml"), "[package]\nname = \"x\"\n");
    let shown = sandbox.refrain(&[&words[..], &["--yes"]].concat()).with_code(0);
    assert!(
        shown.stderr.contains("as there is a Cargo.toml, the gate is cargo check && cargo test"),
        "{}",
        shown.stderr
    );
}

#[test]
fn loop_options_that_a_plan_sets_itself_are_refused_with_the_reason() {
    let (sandbox, agent) = feature();
    let before = sandbox.snapshot();
    for (words, why) in [
        (&["--worktree"][..], "--worktree: not with a plan: each task has its own worktree"),
        (&["--share-worktree"], "--share-worktree: not with a plan"),
        (&["--create-branch"], "--create-branch: not with a plan"),
        (&["--git-workflow", "commit"], "--git-workflow: not with a plan"),
        (&["--prompt", "Fix it."], "--prompt: not with a plan: the tasks are its prompts"),
        (
            &["--completion-promise", "DONE"],
            "--completion-promise: not with a plan: the agents of its tasks claim with",
        ),
        (&["--jobs", "0"], "--jobs"),
        (&["--max-iterations-per-task", "0"], "--max-iterations-per-task"),
        (&["--spec-file", "gone.md"], "--spec-file gone.md"),
        (&["--plan", "gone.md"], "--plan gone.md"),
        (&["--verify", " "], "--verify"),
    ] {
        for begin in [&["plan", "run", "--tag", "feature-x"][..], &["start", "--scud-tag", "feature-x"]] {
            let said = sandbox.refrain(&[begin, &["--command", &agent], words].concat()).with_code(2).stderr;
            assert!(said.contains(why), "{words:?}: {said}");
        }
    }
    let said =
        sandbox.refrain(&["start", "--command", &agent, "--verify", "true", "Fix it."]).with_code(2).stderr;
    assert!(said.contains("--scud-tag"), "{said}");
    let said =
        sandbox.refrain(&["plan", "run", "--tag", "feature-y", "--command", &agent]).with_code(3).stderr;
    assert!(said.contains("did you mean feature-x?"), "{said}");
    let cycle = TASKS.replacen("\"depends_on\": []", "\"depends_on\": [5]", 1);
    testkit::write(&sandbox.project().join(".scud/tasks/feature-x.json"), &cycle);
    let said = run(&sandbox, &agent, &[]).with_code(2).stderr;
    assert!(said.contains("refrain plan check") && said.contains('5'), "{said}");
    testkit::write(&sandbox.project().join(".scud/tasks/feature-x.json"), TASKS);
    assert_eq!(sandbox.snapshot(), before, "nothing was begun");
}

#[test]
fn verbs_of_loops_mean_a_plan_too() {
    let (sandbox, _) = feature();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "slow",
        r#"task=$(git branch --show-current); task=${task##*/}
echo begun > "$NOTES/$task"; read -r _ < $GATES/go
echo "$task" > "$task.txt"; echo TASK_COMPLETE"#,
    );
    let started = run(&sandbox, &agent, &["--jobs", "1", "--detach"]).with_code(0);
    assert_eq!(started.stdout, "fx\n");
    sandbox.wait_for_note("1");
    let view = sandbox.refrain(&["status", "--json"]).with_code(0).json();
    assert_eq!((view["status"].as_str(), view["current"][0]["task"].as_str()), (Some("running"), Some("1")));
    let shown = sandbox.refrain(&["status"]).with_code(0).stdout;
    assert!(shown.contains("Current Tasks: 1") && shown.contains("Complexity: 2, iteration 1/3"), "{shown}");
    let said = sandbox.refrain(&["steer", "fx", "Mind the cat."]).with_code(0).stdout;
    assert!(said.starts_with("fx-1-") && said.ends_with("later tasks are not\n"), "{said}");
    let said = run(&sandbox, &agent, &[]).with_code(17).stderr;
    assert!(said.contains("plan fx works on the tasks of feature-x; it runs: "), "{said}");
    for verb in ["watch", "pause", "cancel"] {
        assert!(said.contains(&format!("`refrain plan {verb} fx`")), "{said}");
    }
    let said = sandbox.refrain(&["pause", "--now"]).with_code(0).stdout;
    assert!(said.contains("fx"), "{said}");
    testkit::eventually("the plan pauses", || {
        (sandbox.refrain(&["status", "fx", "--json"]).json()["status"] == "paused").then_some(())
    });
    drop(gate);
    let said = sandbox.refrain(&["cancel"]).with_code(0).stdout;
    assert!(said.contains("fx is cancelled; 0 of 5 tasks have landed"), "{said}");
    let said = sandbox.refrain(&["cancel", "fx"]).with_code(0).stdout;
    assert!(said.contains("already cancelled"), "{said}");
    sandbox.no_process_is_left();
}

#[test]
fn verbs_for_loops_refuse_a_plan_and_no_loop_takes_a_plans_name() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &[]).with_code(14);
    for verb in [&["archive", "fx"][..], &["approve", "fx", "--tree", "none"]] {
        let said = sandbox.refrain(verb).with_code(2).stderr;
        assert!(said.contains("fx is a plan; accepted: loops") && said.contains("list --plan fx"), "{said}");
    }
    let start = ["start", "Mend it.", "--command", &agent, "--name", "fx"];
    let said = sandbox.refrain(&start).with_code(17).stderr;
    assert!(said.contains("fx exists already"), "{said}");
    let said = sandbox.refrain(&["list", "--plan", "ghost"]).with_code(3).stderr;
    assert!(said.contains("no plan ghost in ") && said.contains("refrain list shows"), "{said}");
}

#[test]
fn a_git_that_is_too_old_is_named_before_anything_is_spent() {
    let (sandbox, agent) = feature();
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let script = format!(
        "for word; do [ \"$word\" = --version ] && {{ echo git version 2.37.9; exit; }}; done\nPATH={usual} exec git \"$@\""
    );
    let git = sandbox.agent("git", &script);
    let path = format!("{}:{usual}", std::path::Path::new(&git).parent().unwrap().display());
    for words in [
        ["plan", "check", "--tag", "feature-x"].as_slice(),
        &["plan", "run", "--tag", "feature-x"],
        &["plan", "run", "--tag", "feature-x", "--dry-run"],
        &["start", "Mend it.", "--git-workflow", "commit"],
        &["start", "Mend it.", "--gate", "true"],
    ] {
        let words = [words, &["--command", &agent]].concat();
        let run = sandbox.command(&words).env("PATH", &path).run().with_code(1);
        assert!(run.stderr.contains("git 2.37.9 is older than 2.38, which Refrain needs"), "{}", run.stderr);
    }
    assert_eq!(sandbox.refrain(&["list", "--json"]).json(), serde_json::json!([]), "nothing was begun");
}

#[test]
fn a_blocked_task_says_which_gate_failed_and_with_what() {
    let (sandbox, agent) = feature();
    let begin = ["plan", "run", "--tag", "feature-x", "--command", &agent, "--name", "fx", "--quiet"];
    let verify = ["--verify", "echo FAIL test_db; exit 1", "--max-iterations-per-task", "1"];
    sandbox.refrain(&[&begin[..], &verify].concat()).with_code(14);
    let status = sandbox.refrain(&["plan", "status", "--json"]).with_code(0).json();
    let reason = status["blocked"][0]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "not proven in 1 iteration; gate verify failed: FAIL test_db");
    // Named as with plan resume.
    let [task, other] = [0, 1].map(|at| status["blocked"][at]["task"].as_str().unwrap().to_owned());
    for words in [["fx", &task].as_slice(), &[&other, "--name", "fx"]] {
        sandbox.refrain(&[&["plan", "tune"], words, &["--words", "Use pine."]].concat()).with_code(0);
    }
    let said = sandbox.refrain(&["plan", "tune", "fx", "nothing", "--words", "x"]).with_code(3).stderr;
    assert!(said.contains("there is no task nothing in fx"), "{said}");
    let said = sandbox.refrain(&["plan", "tune", "ghost", &task, "--words", "x"]).with_code(3).stderr;
    assert!(said.contains("no plan ghost"), "{said}");
}

#[test]
fn the_configuration_has_defaults_for_plans() {
    let (sandbox, agent) = feature();
    let file = sandbox.project().join("refrain.toml");
    let table = "[plan]\njobs = 3\nmax-iterations-per-task = 2\nmax-total-iterations = 7\npipeline = true\nverify = 'true'\n";
    testkit::write(&file, table);
    sandbox.trust();
    let words = ["plan", "run", "--tag", "feature-x", "--command", &agent, "--dry-run", "--json"];
    let shown = sandbox.refrain(&words).with_code(0).json();
    assert_eq!(shown["waves"]["jobs"], 3, "{shown:#}");
    assert_eq!(shown["gates"], serde_json::json!(["true"]), "{shown:#}");
    let given = sandbox.refrain(&[&words[..], &["--jobs", "1"]].concat()).with_code(0).json();
    assert_eq!(given["waves"]["jobs"], 1);
    testkit::write(&file, "[plan]\njobs = 65\n");
    let said = sandbox.refrain(&["trust", "--show"]).with_code(2).stderr;
    assert!(said.contains("plan.jobs") && said.contains("1 to 64"), "{said}");
}

#[test]
fn a_plan_is_exported_as_its_seed_has_it() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &["--quiet", "--max-iterations-per-task", "1"]).with_code(14);
    let words = ["export", "fx", "--as", "scud", "--output", "theirs.json"];
    sandbox.refrain(&words).with_code(0);
    sandbox.refrain(&words).with_code(0);
    let text = std::fs::read_to_string(sandbox.project().join("theirs.json")).unwrap();
    let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&theirs["version"], &theirs["config"]["tag"]), (&"1.0".into(), &"feature-x".into()));
    assert_eq!((&theirs["completed"], &theirs["blocked_tasks"][0]["attempts"]), (&false.into(), &1.into()));
    assert!(theirs["wave_commits"][0]["commit_hash"].is_string(), "{theirs:#}");
    let told = sandbox.refrain(&["resume", "--from", "theirs.json"]).with_code(2).stderr;
    assert!(told.contains("refrain plan run '--tag=feature-x'"), "{told}");
    let refused = sandbox.refrain(&["export", "fx", "--as", "descartes"]).with_code(2).stderr;
    assert!(refused.contains("--as descartes: fx is a plan; accepted: scud and json"), "{refused}");
}

#[test]
fn a_plan_in_markdown_needs_no_tag() {
    let (sandbox, agent) = feature();
    fs::remove_dir_all(sandbox.project().join(".scud")).unwrap();
    testkit::write(
        &sandbox.project().join("PLAN.md"),
        "# Plan\n\n- [ ] Paint the door\n- [ ] Oil the hinge\n",
    );
    let words = ["start", "--plan", "PLAN.md", "--command", &agent, "--verify", "true", "--dry-run"];
    let shown = sandbox.refrain(&words).with_code(0).stdout;
    assert!(shown.contains("Paint the door"), "{shown}");
    let refused =
        sandbox.refrain(&["start", "--plan", "PLAN.md", "--command", &agent, "Mend it."]).with_code(2);
    assert!(refused.stderr.contains("not with a plan: the tasks are its prompts"), "{}", refused.stderr);
}

#[test]
fn a_verb_that_changes_something_asks_which_plan_is_meant() {
    let (sandbox, _) = feature();
    let other = TASKS.replace("feature-x", "other");
    testkit::write(&sandbox.project().join(".scud/tasks/other.json"), &other);
    let idle = sandbox.agent("idle", "echo Nothing to do.");
    for tag in ["feature-x", "other"] {
        let name =
            ["--tag", tag, "--name", tag, "--command", &idle, "--max-iterations-per-task", "1", "--quiet"];
        sandbox.refrain(&[&["plan", "run"][..], &name].concat()).with_code(14);
    }
    for (words, line) in [
        (&["plan", "cancel"][..], "refrain plan cancel feature-x"),
        (&["plan", "resume"], "refrain plan resume other   blocked of other, 0 of 5 tasks landed"),
        (&["plan", "tune", "1", "--words", "x"], "refrain plan tune other"),
    ] {
        let said = sandbox.refrain(words).with_code(2).stderr;
        assert!(said.contains("needs an ID: 2 plans match") && said.contains(line), "{words:?}: {said}");
    }
    let view = sandbox.refrain(&["plan", "status", "--json"]).with_code(0).json();
    assert_eq!(view["id"], "other", "who only looks sees the one that was touched last");
    let view = sandbox.refrain(&["plan", "status", "--tag", "feature-x", "--json"]).with_code(0).json();
    assert_eq!((view["id"].as_str(), view["status"].as_str()), (Some("feature-x"), Some("blocked")));
    let said = sandbox.refrain(&["plan", "pause"]).with_code(2).stderr;
    assert!(said.contains("refrain plan pause without an ID: no plan here is running"), "{said}");
    sandbox.refrain(&["plan", "cancel", "--tag", "feature-x"]).with_code(0);
    let said = sandbox.refrain(&["plan", "cancel"]).with_code(0).stdout;
    assert!(said.contains("other is cancelled"), "only one was left: {said}");
    let said = sandbox.refrain(&["plan", "cancel", "--tag", "mine"]).with_code(3).stderr;
    assert!(said.contains("there are plans of: feature-x, other"), "{said}");
    let said = sandbox.refrain(&["plan", "cancel", "--tag", "othr"]).with_code(3).stderr;
    assert!(said.contains("did you mean other?"), "{said}");
    let said = sandbox.refrain(&["status", "othr"]).with_code(3).stderr;
    assert!(said.contains("did you mean other?"), "{said}");
}

#[test]
fn a_plan_can_be_inspected_like_a_loop() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &["--quiet", "--max-iterations-per-task", "1"]).with_code(14);
    let loops: Vec<_> =
        sandbox.refrain(&["list", "--plan", "fx", "--json"]).json().as_array().unwrap().clone();
    let shown = sandbox.refrain(&["show", "fx"]).with_code(0).stdout;
    assert!(shown.contains("  plan.started ") && shown.contains("  wave.completed "), "{shown}");
    let events = sandbox.refrain(&["show", "--json"]).with_code(0).json();
    assert_eq!(events[0]["event"]["type"], "plan.started", "it is the only one that there is");
    let logs = sandbox.refrain(&["logs", "fx"]).with_code(0).stdout;
    let third = loops.iter().find(|it| it["task"]["id"] == "3").unwrap()["id"].as_str().unwrap();
    let heading = format!("=== task 3, round 1 ({third})\n");
    let of_third = logs.split(&heading).nth(1).unwrap_or_default();
    assert!(of_third.contains("== iteration 1\nI do not know which wood."), "{logs}");
    let said = sandbox.refrain(&["logs", "fx", "--follow"]).with_code(2).stderr;
    assert!(said.contains("refrain watch fx"), "{said}");

    let report = sandbox.refrain(&["report", "fx"]).with_code(0).stdout;
    for part in ["Report on plan fx: blocked, not verified", "verify on tree", "nothing", third] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(!report.contains("nothing but the claim"), "its agent claimed nothing: {report}");
    let object = sandbox.refrain(&["report", "fx", "--json"]).with_code(0).json();
    assert_eq!((object["plan"]["id"].as_str(), object["loops"].as_array().unwrap().len()), (Some("fx"), 4));
    let page = sandbox.refrain(&["report", "fx", "--html"]).with_code(0).stdout;
    assert!(page.contains("Report on plan fx") && page.contains("Times are those of UTC"), "{page}");

    let verified = sandbox.refrain(&["verify", "fx"]).with_code(0).stdout;
    assert_eq!(verified.matches("every byte as it was written").count(), 5, "{verified}");
    let kept = sandbox.project().join(".git/refrain/loops").join(third).join("iterations/0001/output.log");
    testkit::write(&kept, "I knew.\n");
    let verified = sandbox.refrain(&["verify", "fx"]).with_code(1).stdout;
    assert!(verified.contains("DIFFERS"), "{verified}");
    for (words, code, part) in [
        (&["steer", "fx", "Hello."][..], 17, "no task of fx is at work"),
        (&["archive", "fx"], 2, "refrain list --plan fx"),
    ] {
        let said = sandbox.refrain(words).with_code(code).stderr;
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn landed_work_that_the_branch_lacks_is_named() {
    let (sandbox, agent) = feature();
    // A file of a person that the first wave would overwrite.
    let agent = agent + " x";
    testkit::write(&sandbox.project().join("1.txt"), "Mine.\n");
    let first = run(&sandbox, &agent, &["--quiet", "--tune"]).with_code(14);
    assert_eq!(first.stdout, "");
    let view = sandbox.refrain(&["plan", "status", "--json"]).with_code(0).json();
    assert!(
        view["reason"].as_str().unwrap().starts_with("task 3: "),
        "it is blocked for another reason: {view}"
    );
    assert_eq!(view["behind"]["tasks"], serde_json::json!(["1", "2", "4"]), "{view}");
    let reference = view["behind"]["reference"].as_str().unwrap().to_owned();
    let shown = sandbox.refrain(&["plan", "status"]).with_code(0).stdout;
    let lacks = "main lacks what landed of tasks 1, 2, 4: ";
    assert!(shown.contains(lacks) && shown.contains("1.txt"), "{shown}");
    let said = sandbox.refrain(&["plan", "cancel"]).with_code(0).stdout;
    assert!(said.contains(&format!("git merge {reference} takes it")), "{said}");
    fs::remove_file(sandbox.project().join("1.txt")).unwrap();
    sandbox.git(&["merge", "--quiet", &reference]);
    assert_eq!(fs::read_to_string(sandbox.project().join("1.txt")).unwrap(), "1\n");
}

#[test]
fn a_secret_that_did_not_land_is_reported() {
    let (sandbox, _) = feature();
    let agent = sandbox.agent(
        "careless",
        r#"task=$(git branch --show-current); echo "${task##*/}" > "${task##*/}.txt"
case $task in */1) printf 'token = "ghp_%s"\n' 4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0Q > token.toml;; esac; echo TASK_COMPLETE"#,
    );
    run(&sandbox, &agent, &["--quiet"]).with_code(0);
    let shown = sandbox.refrain(&["plan", "status"]).with_code(0).stdout;
    assert!(shown.contains("token.toml of task 1: "), "{shown}");
    let view = sandbox.refrain(&["plan", "status", "--json"]).with_code(0).json();
    assert_eq!(view["tasks"][0]["left_out"][0]["path"], "token.toml", "{view}");
    assert!(!sandbox.project().join("token.toml").exists());
}

#[test]
fn tune_asks_another_agent_for_a_different_approach() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &["--tune", "--quiet"]).with_code(14);
    assert_eq!(status_of(&sandbox, "3"), "awaiting-tune");
    let reviewer = sandbox.agent(
        "reviewer",
        r#"printf '%s' "$*" > "$NOTES/asked"; printf 'It did not know.\n\nREFINEMENT:\nUse pine.\n'"#,
    );
    let tune = ["plan", "tune", "3", "--reviewer", &reviewer];
    let shown = sandbox.refrain(&tune).with_code(0);
    assert!(
        shown.stderr.contains("  Use pine.") && shown.stdout.contains("nothing was recorded"),
        "{shown:?}"
    );
    let asked = sandbox.note("asked");
    assert!(
        asked.contains("not proven in 3 iterations") && asked.contains("I do not know which wood."),
        "{asked}"
    );
    let taken = sandbox.refrain(&[&tune[..], &["--accept", "--json"]].concat()).with_code(0).json();
    assert_eq!(taken["words"], "Use pine.");
    assert_eq!(status_of(&sandbox, "3"), "pending");
    sandbox.refrain(&["plan", "resume", "--quiet"]).with_code(0);
    assert_eq!(status_of(&sandbox, "5"), "done");
    for (words, code, part) in
        [(&["9", "--words", "x"][..], 3, "there is no task 9"), (&["1", "--words", "x"], 17, "did not stop")]
    {
        let said =
            sandbox.refrain(&[&["plan", "tune", "--name", "fx"][..], words].concat()).with_code(code).stderr;
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_status_edited_without_a_runner_survives_the_cancel_of_the_plan() {
    let (sandbox, agent) = feature();
    run(&sandbox, &agent, &[]).with_code(14);
    let path = sandbox.project().join(".scud/tasks/feature-x.json");
    let five = r#""title": "Store sessions", "status": "#;
    let edited =
        fs::read_to_string(&path).unwrap().replace(&format!("{five}\"pending\""), &format!("{five}\"done\""));
    testkit::write(&path, &edited);
    sandbox.refrain(&["plan", "cancel", "fx"]).with_code(0);
    let file = fs::read_to_string(&path).unwrap();
    assert!(file.contains(&format!("{five}\"done\"")), "{file}");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/refrain"]), "", "all was handed over");
}

#[test]
fn a_task_file_that_is_broken_or_gone_keeps_no_plan_from_being_resumed_or_cancelled() {
    for broken in [Some("{"), None] {
        let (sandbox, agent) = feature();
        run(&sandbox, &agent, &["--max-total-iterations", "1"]).with_code(10);
        let path = sandbox.project().join(".scud/tasks/feature-x.json");
        match broken {
            Some(text) => testkit::write(&path, text),
            None => fs::remove_file(&path).unwrap(),
        }
        let said = sandbox.refrain(&["plan", "resume", "fx", "--max-total-iterations", "9"]).with_code(14);
        assert!(said.stdout.contains("feature-x.json"), "it is named: {}", said.stdout);
        sandbox.refrain(&["plan", "cancel", "fx"]).with_code(0);
        let said = sandbox.refrain(&["plan", "cancel", "fx"]).with_code(0).stdout;
        assert!(said.contains("already cancelled"), "{said}");
        let inbox = sandbox.project().join(".git/refrain/plans/fx/inbox");
        assert_eq!(fs::read_dir(inbox).map_or(0, Iterator::count), 0, "nothing waits any more");
    }
}

#[test]
fn of_two_plans_for_the_same_tasks_that_start_at_once_one_is_refused() {
    let (sandbox, _) = feature();
    let idle = sandbox.agent("idle", "echo at >> $NOTES/at; read -r _ < $GATES/go");
    let _gate = sandbox.gate("go");
    let data = sandbox.project().join(".git/refrain");
    fs::create_dir_all(&data).unwrap();
    let lock = fs::File::create(data.join("plans.lock")).unwrap();
    lock.lock().unwrap();
    let words = ["plan", "run", "--tag", "feature-x", "--command", &idle, "--verify", VERIFY, "--detach"];
    let both: Vec<_> =
        ["one", "two"].map(|name| sandbox.spawn(&[&words[..], &["--name", name]].concat())).into();
    drop(lock);
    let mut codes: Vec<_> = both.into_iter().map(|session| session.wait().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 17]);
    sandbox.refrain(&["plan", "cancel", "--now"]).with_code(0);
    sandbox.no_process_is_left();
}

#[test]
fn a_file_system_error_blocks_the_plan_and_is_named() {
    let (sandbox, agent) = feature();
    let worktrees = sandbox.root().join("home/state/refrain/worktrees");
    fs::create_dir_all(worktrees.parent().unwrap()).unwrap();
    testkit::write(&worktrees, "in the way of every worktree\n");
    let said = run(&sandbox, &agent, &[]).with_code(14).stdout;
    assert!(
        said.contains("the plan cannot go on by itself: create ") && said.contains("worktrees"),
        "{said}"
    );
    fs::remove_file(&worktrees).unwrap();
    let said = sandbox.refrain(&["plan", "resume", "fx"]).with_code(14).stdout;
    assert!(said.contains("complete wave 1"), "{said}");
}

/// A plan whose two first tasks are at work, and wait at a gate.
fn waiting() -> (Sandbox, testkit::Gate, testkit::Session) {
    let (sandbox, _) = feature();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "waiter",
        "task=$(git branch --show-current); task=${task##*/}\necho x > \"$NOTES/${task%%-*}\"
trap '' INT TERM\nread -r _ < $GATES/go\necho done > $task.txt\necho TASK_COMPLETE",
    );
    let words =
        ["plan", "run", "--tag", "feature-x", "--command", &agent, "--verify", VERIFY, "--name", "fx"];
    let session = sandbox.spawn(&[&words[..], &["--jobs", "2"]].concat());
    sandbox.wait_for_note("1");
    sandbox.wait_for_note("2");
    (sandbox, gate, session)
}

/// The names of the events of the plan's journal.
fn events_of_plan(sandbox: &Sandbox) -> Vec<String> {
    let journal = fs::read_to_string(sandbox.project().join(".git/refrain/plans/fx/journal.jsonl")).unwrap();
    let events = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    events.map(|record| record["event"]["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_request_survives_a_deleted_inbox() {
    let (sandbox, gate, session) = waiting();
    session.signal(testkit::Signal::STOP);
    let asker = sandbox.spawn(&["plan", "pause", "fx"]);
    let cure = format!("kill -CONT {}", session.pid());
    testkit::eventually("it says what continues the runner", || asker.stderr().contains(&cure).then_some(()));
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    assert_eq!((&view["runner"]["stopped"], view["needs"].as_str()), (&true.into(), Some(cure.as_str())));
    fs::remove_dir_all(sandbox.project().join(".git/refrain/plans/fx/inbox")).unwrap();
    session.signal(testkit::Signal::CONT);
    asker.wait().with_code(0);
    (0..2).for_each(|_| gate.let_one_pass());
    session.wait().with_code(16);
}

#[test]
fn a_signal_that_is_repeated_is_recorded_once_and_ends_the_agents_at_once() {
    let (sandbox, _gate, session) = waiting();
    session.signal(testkit::Signal::TERM);
    let view = sandbox.refrain(&["plan", "status", "fx", "--json"]).with_code(0).json();
    for task in view["current"].as_array().unwrap() {
        sandbox.wait_for_event(task["loop"].as_str().unwrap(), "attempt.stop-requested");
    }
    session.signal(testkit::Signal::TERM);
    session.wait().with_code(16);
    let asked = events_of_plan(&sandbox).into_iter().filter(|name| name == "asked").count();
    assert_eq!(asked, 1);
    let first = view["current"][0]["loop"].as_str().unwrap();
    assert_eq!(sandbox.status(first)["iterations"][0]["signal"], 9, "without its stop sequence");
    sandbox.no_process_is_left();
}

/// For how long the threads of a process sleep in the call that waits for everything; none if it is not known, or they do not.
fn sleeps_for_ms(pid: i32) -> Option<i64> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let words: Vec<_> = call.split_whitespace().collect();
    // epoll_wait and epoll_pwait: on x86-64, and on all others.
    let is_epoll = matches!(words.first().copied(), Some("232" | "281" | "22"));
    let timeout = words.get(4).filter(|_| is_epoll)?.trim_start_matches("0x");
    let timeout = u64::from_str_radix(timeout, 16).ok()?;
    Some(match i32::try_from(timeout) {
        Ok(ms) => ms.into(),
        // Below zero: for ever.
        Err(_) => i64::MAX,
    })
}

#[test]
fn a_plan_that_waits_has_no_wake_ups_and_sees_that_its_file_changes() {
    let (sandbox, gate, session) = waiting();
    let taken =
        |sandbox: &Sandbox| events_of_plan(sandbox).iter().filter(|name| *name == "tasks.taken").count();
    let before = taken(&sandbox);
    testkit::eventually("it waits for nothing but news", || {
        sleeps_for_ms(session.pid()).filter(|ms| *ms > 10_000)
    });
    let path = sandbox.project().join(".scud/tasks/feature-x.json");
    let text = fs::read_to_string(&path).unwrap();
    let moved = path.with_extension("new");
    testkit::write(&moved, text.replace("Store sessions", "Keep sessions"));
    fs::rename(&moved, &path).unwrap();
    testkit::eventually("the file is read again", || (taken(&sandbox) > before).then_some(()));
    (0..5).for_each(|_| gate.let_one_pass());
    session.wait().with_code(0);
}
