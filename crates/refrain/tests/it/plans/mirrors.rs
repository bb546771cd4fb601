//! Loops in the files of other systems: mirrored there, exported, and continued here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Run, Sandbox, write};

use crate::{CLAIM, sandbox};

const SYNTHEX: &str = ".synthex/loops/mend.json";
const DESCARTES: &str = ".descartes/loop-state.json";
const RANDROID: &str = "loop.local.md";
const THEIRS: &str = ".synthex/loops/release-1.json";
const RALPH_LOOP: &str = ".claude/ralph-loop.local.md";

fn read(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.project().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json_of(sandbox: &Sandbox, name: &str) -> Value {
    serde_json::from_str(&read(sandbox, name)).unwrap()
}

fn put(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.project().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(&path, text);
}

/// An agent that claims in this iteration, and names the iteration.
fn done_in(sandbox: &Sandbox, iteration: u32) -> String {
    sandbox.agent(
        "agent",
        &format!("echo $REFRAIN_ITERATION >> work.txt\ntest $REFRAIN_ITERATION -lt {iteration} || {CLAIM}"),
    )
}

/// A loop of Synthex's, as it left it, with these values.
fn synthex(changes: &Value) -> String {
    let mut state = json!({
        "schema_version": 1, "loop_id": "release-1", "session_id": "s", "command": "/synthex:loop",
        "args": "--prompt 'Mend the tests.' --max-iterations 8", "prompt_file": null, "completion_promise": "COMPLETE",
        "max_iterations": 8, "iteration": 3, "isolation": "shared-context", "status": "running",
        "started_at": "2026-05-27T10:00:00Z", "last_updated": "2026-05-27T11:00:00Z", "exited_at": null, "exit_reason": null
    });
    state.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    state.to_string()
}

fn descartes() -> String {
    json!({
        "version": "1.0", "iteration": 3,
        "config": { "command": "sh", "args": ["-c", "touch owned"], "prompt": "Mend it.", "completion_promise": "COMPLETE",
            "max_iterations": 6, "include_iteration_context": true },
        "started_at": "2025-01-15T10:30:00Z", "completed": false, "exit_reason": { "type": "running" },
        "iteration_summaries": []
    })
    .to_string()
}

fn resume(sandbox: &Sandbox, file: &str, more: &[&str]) -> Run {
    sandbox.refrain(&[&["resume", "--from", file], more].concat())
}

#[test]
fn a_loop_is_shown_where_other_systems_look_and_never_committed() {
    let sandbox = sandbox();
    let seen = "cp .synthex/loops/mend.json $NOTES/synthex; cp .descartes/loop-state.json $NOTES/descartes; cp loop.local.md $NOTES/randroid";
    let agent = sandbox
        .agent("agent", &format!("echo x >> work.txt; {seen}; test $REFRAIN_ITERATION = 1 || {CLAIM}"));
    let mirrors = ["--mirror", "synthex", "--mirror", "descartes", "--mirror=randroid"];
    let words = ["start", "--command", &agent, "--name", "mend", "--git-workflow", "commit", "Mend it."];
    sandbox.refrain(&[&words[..], &mirrors].concat()).with_code(0);

    let during: Value = serde_json::from_str(&sandbox.note("synthex")).unwrap();
    assert_eq!((&during["status"], &during["iteration"]), (&json!("running"), &json!(2)), "before the work");
    let during: Value = serde_json::from_str(&sandbox.note("descartes")).unwrap();
    assert_eq!(
        (&during["exit_reason"]["type"], &during["iteration"]),
        (&json!("running"), &json!(1)),
        "that are over"
    );
    assert!(sandbox.note("randroid").contains("\niteration: 2\n"));

    let state = json_of(&sandbox, SYNTHEX);
    assert_eq!(
        (&state["status"], &state["exit_reason"]),
        (&json!("completed"), &json!("completion-promise-emitted"))
    );
    assert_eq!((&state["session_id"], &state["prompt_file"]), (&json!(null), &json!(null)));
    let state = json_of(&sandbox, DESCARTES);
    assert_eq!(state["exit_reason"], json!({ "type": "completion_promise_detected" }));
    assert_eq!(state["iteration_summaries"].as_array().unwrap().len(), 2);
    assert!(!sandbox.project().join(RANDROID).exists(), "it has no word for an end");
    let committed = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(committed, "README.md\nwork.txt\n");
}

#[test]
fn a_session_loop_is_shown_by_configuration() {
    let sandbox = sandbox();
    put(&sandbox, "refrain.toml", "[start]\nmirrors = ['synthex', 'randroid']\n");
    sandbox.trust();
    let words =
        ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "mend"];
    sandbox.refrain(&[&words[..], &["--args", "Mend it. --max 3", "--loop-isolated"]].concat()).with_code(0);
    assert_eq!(json_of(&sandbox, SYNTHEX)["iteration"], 0, "it is there");
    sandbox.refrain(&["tick", "advance", "mend"]).with_code(0);
    let state = json_of(&sandbox, SYNTHEX);
    assert_eq!((&state["command"], &state["args"]), (&json!("/refrain:loop"), &json!("Mend it. --max 3")));
    assert_eq!((&state["session_id"], &state["isolation"]), (&json!("s"), &json!("subagent")));
    assert_eq!((&state["status"], &state["iteration"]), (&json!("running"), &json!(1)));
    assert!(read(&sandbox, RANDROID).ends_with("---\n\nMend it.\n"));
    sandbox.refrain(&["tick", "finish", "mend", "crashed"]).with_code(0);
    let state = json_of(&sandbox, SYNTHEX);
    assert_eq!((&state["status"], &state["exit_reason"]), (&json!("crashed"), &json!("Marked crashed")));
    sandbox.refrain(&["cancel", "mend"]).with_code(0);
    assert_eq!(json_of(&sandbox, SYNTHEX)["status"], "cancelled");
    assert!(!sandbox.project().join(RANDROID).exists());

    sandbox.refrain(&["archive", "mend"]).with_code(0);
    sandbox.refrain(&[&words[..], &["--args", "Mend it."]].concat()).with_code(0);
    sandbox.refrain(&["tick", "advance", "mend"]).with_code(0);
    let input = json!({ "session_id": "s", "cwd": sandbox.project(), "hook_event_name": "Stop",
        "last_assistant_message": "<promise>COMPLETE</promise>" });
    sandbox.command(&["hook", "stop", "--agent", "claude"]).stdin(input.to_string()).run().with_code(0);
    assert_eq!(json_of(&sandbox, SYNTHEX)["status"], "completed", "its hook says so");
}

#[test]
fn foreign_files_and_links_are_not_overwritten_by_mirrors() {
    let sandbox = sandbox();
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, sandbox.project().join(".synthex")).unwrap();
    put(&sandbox, DESCARTES, &descartes());
    put(&sandbox, RANDROID, "my own notes\n");
    let agent = done_in(&sandbox, 2);
    let mirrors = ["--mirror", "synthex", "--mirror", "descartes", "--mirror", "randroid"];
    let run =
        sandbox.refrain(&[&["start", "--command", &agent, "--name", "mend", "p"], &mirrors[..]].concat());
    let run = run.with_code(0);
    for name in [SYNTHEX, DESCARTES, RANDROID] {
        let told = run.stderr.lines().filter(|line| line.contains(name)).count();
        assert_eq!(told, 1, "{name}: {}", run.stderr);
    }
    assert_eq!(read(&sandbox, DESCARTES), descartes());
    assert_eq!(read(&sandbox, RANDROID), "my own notes\n");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0, "a link leads anywhere");
}

#[test]
fn a_mirror_that_there_is_none_of_is_refused() {
    let sandbox = sandbox();
    for (words, says) in [
        (["start", "--mirror", "smoke", "p"].as_slice(), "accepted: ralph, synthex, descartes, randroid"),
        (&["start", "--scud-tag", "t", "--mirror", "synthex"], "accepted for a plan is scud"),
    ] {
        let refused = sandbox.refrain(words).with_code(2);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}

#[test]
fn a_lock_of_a_living_process_is_kept() {
    let sandbox = sandbox();
    let lock = format!("{}\n", std::process::id());
    put(&sandbox, ".ralph.lock", &lock);
    let agent = done_in(&sandbox, 1);
    sandbox.refrain(&["start", "--command", &agent, "--name", "mend", "--mirror", "ralph", "p"]).with_code(0);
    assert_eq!(read(&sandbox, ".ralph.lock"), lock);
}

#[test]
fn a_file_that_there_is_once_is_the_last_ones() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo still at it");
    let start = |id| {
        let words = [
            "start",
            "--command",
            &agent,
            "--name",
            id,
            "-m",
            "1",
            "--mirror",
            "descartes",
            "--mirror",
            "synthex",
            "p",
        ];
        sandbox.refrain(&words).with_code(10);
    };
    start("first");
    start("second");
    sandbox.refrain(&["resume", "first", "-m", "3"]).with_code(10);
    assert_eq!(json_of(&sandbox, DESCARTES)["refrain_loop"], "second", "it began last");
    assert_eq!(json_of(&sandbox, ".synthex/loops/first.json")["iteration"], 3);
    assert_eq!(json_of(&sandbox, ".synthex/loops/second.json")["iteration"], 1);
}

#[test]
fn a_loop_of_another_system_continues_where_it_stopped() {
    let sandbox = sandbox();
    put(&sandbox, THEIRS, &synthex(&json!({})));
    put(&sandbox, "refrain.toml", "[start]\nmirrors = ['synthex', 'descartes']\n");
    sandbox.trust();
    let agent = sandbox.agent(
        "agent",
        &format!(
            "printf '%s' \"$1\" > $NOTES/prompt.$REFRAIN_ITERATION\ntest $REFRAIN_ITERATION -lt 5 || {CLAIM}"
        ),
    );
    let run = resume(&sandbox, THEIRS, &["--command", &agent]).with_code(0);
    assert!(
        run.has_line("[loop release-1 iteration 4/8]") && run.has_line("[loop release-1 iteration 5/8]"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("after iteration 3 of .synthex/loops/release-1.json"), "{}", run.stderr);
    let prompt = sandbox.note("prompt.4");
    assert!(prompt.starts_with("Mend the tests.\n") && prompt.ends_with("\n\n## Run 4 of 8"), "{prompt}");
    let status = sandbox.status("release-1");
    assert_eq!(
        (&status["iteration"], &status["charged"], &status["started"]),
        (&json!(5), &json!(5), &json!(2))
    );
    assert_eq!(status["max_iterations"], 8);
    let started = &sandbox.journal("release-1")[0]["event"]["data"]["spec"]["carried"];
    assert_eq!(started["iteration"], 3, "{started}");
    sandbox.refrain(&["verify", "release-1"]).with_code(0);
    assert_eq!(read(&sandbox, THEIRS), synthex(&json!({})), "it is only read");
    assert!(run.stderr.contains("release-1.json is not Refrain's and stays as it is"), "{}", run.stderr);
    assert_eq!(json_of(&sandbox, DESCARTES)["iteration"], 5);

    let again = resume(&sandbox, THEIRS, &["--command", &agent]).with_code(17);
    assert!(again.stderr.contains("refrain resume release-1"), "{}", again.stderr);
}

#[test]
fn a_name_that_another_loop_has_is_left_to_it() {
    let sandbox = sandbox();
    let agent = done_in(&sandbox, 1);
    sandbox.refrain(&["start", "--command", &agent, "--name", "release-1", "p"]).with_code(0);
    put(&sandbox, "theirs.json", &synthex(&json!({})));
    let run = resume(&sandbox, "theirs.json", &["--command", &agent]).with_code(0);
    assert!(run.stderr.contains("release-1 is another loop"), "{}", run.stderr);
    assert!(run.stdout.contains("[loop agent-"), "{}", run.stdout);
}

#[test]
fn no_state_file_chooses_the_command_that_is_run() {
    let sandbox = sandbox();
    put(&sandbox, DESCARTES, &descartes());
    put(&sandbox, "hostile.json", &descartes().replace("touch owned", "touch\\u001b[2J owned"));
    let before = sandbox.snapshot();
    let refused = resume(&sandbox, "hostile.json", &[]).with_code(2);
    assert!(
        refused.stderr.contains("there it was: sh -c") && !refused.stderr.contains('\u{1b}'),
        "{}",
        refused.stderr
    );
    let refused = resume(&sandbox, DESCARTES, &[]).with_code(2);
    assert!(
        refused.stderr.contains("--command") && refused.stderr.contains("sh -c 'touch owned'"),
        "{}",
        refused.stderr
    );
    assert!(sandbox.snapshot() == before, "nothing was run, and nothing begun");
    let agent = done_in(&sandbox, 5);
    let run = resume(&sandbox, DESCARTES, &["--command", &agent]).with_code(0);
    assert!(run.stdout.contains("iteration 4/6]") && run.stdout.contains("iteration 5/6]"), "{}", run.stdout);
    assert!(!sandbox.project().join("owned").exists());
}

#[rstest]
#[case::completed(json!({ "status": "completed", "exited_at": "2026-05-27T10:00:00Z", "exit_reason": "x" }), "it is completed there")]
#[case::cancelled(json!({ "status": "cancelled", "exited_at": "2026-05-27T10:00:00Z", "exit_reason": "x" }), "it is cancelled there")]
#[case::used_up(json!({ "iteration": 8 }), "--max-iterations 9 to 208")]
#[case::version(json!({ "schema_version": 2 }), "schema_version")]
#[case::long(json!({ "status": "x".repeat(1 << 20) }), "xxxx")]
#[case::status(json!({ "status": "paused" }), "paused")]
#[case::name(json!({ "loop_id": "../../up" }), "../../up")]
#[case::path(json!({ "prompt_file": "../../../../etc/passwd" }), "accepted: a file of this project")]
#[case::absolute(json!({ "prompt_file": "/etc/passwd" }), "accepted: a file of this project")]
#[case::control(json!({ "args": "--prompt 'a\u{1b}[2Jb'" }), "control characters")]
#[case::option(json!({ "args": "--prompt '--settings {}'" }), "begin with a word")]
#[case::option_in_a_file(json!({ "prompt_file": "option.md" }), "begin with a word")]
#[case::nothing(json!({ "args": "--max-iterations 8" }), "--prompt-file")]
#[case::promise(json!({ "completion_promise": "</promise>" }), "completion_promise")]
fn a_foreign_state_that_cannot_be_resumed_is_refused_and_nothing_begins(
    #[case] changes: Value,
    #[case] says: &str,
) {
    let sandbox = sandbox();
    put(&sandbox, "theirs.json", &synthex(&changes));
    put(&sandbox, "option.md", "--dangerously-skip-permissions\n");
    let agent = done_in(&sandbox, 1);
    let before = sandbox.snapshot();
    let refused = resume(&sandbox, "theirs.json", &["--command", &agent]).with_code(2);
    assert!(refused.stderr.contains(says) && refused.stdout.is_empty(), "{}", refused.stderr);
    assert!(!refused.stderr.contains('\u{1b}') && refused.stderr.len() < 2000, "{}", refused.stderr);
    assert!(sandbox.snapshot() == before, "a refusal touches nothing");
}

#[test]
fn a_file_that_is_no_loop_state_is_refused() {
    let sandbox = sandbox();
    let agent = done_in(&sandbox, 1);
    put(&sandbox, "cut.json", &synthex(&json!({}))[..60]);
    put(&sandbox, "prose.md", "# Notes\n");
    write(&sandbox.project().join("latin1.json"), b"\xe4");
    fs::create_dir(sandbox.project().join("folder")).unwrap();
    let large = fs::File::create(sandbox.project().join("large.json")).unwrap();
    large.set_len(1 << 30).unwrap();
    let pipe = sandbox.project().join("pipe");
    assert!(sandbox.tool("mkfifo", &[pipe.to_str().unwrap()]).run().stderr.is_empty());
    for name in
        ["cut.json", "prose.md", "latin1.json", "folder", "large.json", "pipe", "missing.json", "/dev/zero"]
    {
        let refused = resume(&sandbox, name, &["--command", &agent]).with_code(2);
        assert!(
            refused.stderr.contains(name) && refused.stderr.contains("accepted"),
            "{name}: {}",
            refused.stderr
        );
    }
    put(
        &sandbox,
        "scud.json",
        &json!({ "config": { "tag": "t", "plan_path": "p q.md" }, "current_wave": 1 }).to_string(),
    );
    let plan = resume(&sandbox, "scud.json", &["--command", &agent]).with_code(2);
    assert!(
        plan.stderr.contains("refrain plan run '--tag=t' '--plan=p q.md'")
            || plan.stderr.contains("refrain plan run --tag=t '--plan=p q.md'"),
        "{}",
        plan.stderr
    );
}

#[test]
fn a_foreign_loop_at_its_cap_continues_with_a_larger_one() {
    let sandbox = sandbox();
    let over = json!({ "status": "max-iterations-reached", "iteration": 8, "exited_at": "2026-05-27T10:00:00Z",
        "exit_reason": "Reached max_iterations=8 without completion promise" });
    put(&sandbox, "theirs.json", &synthex(&over));
    let agent = done_in(&sandbox, 9);
    resume(&sandbox, "theirs.json", &["--command", &agent]).with_code(2);
    let run = resume(&sandbox, "theirs.json", &["--command", &agent, "-m", "50"]).with_code(0);
    assert!(run.has_line("[loop release-1 iteration 9/50]"), "{}", run.stdout);
}

#[rstest]
#[case("synthex")]
#[case("descartes")]
#[case("randroid")]
fn an_exported_loop_continues_elsewhere(#[case] format: &str) {
    let here = sandbox();
    let agent = done_in(&here, 4);
    here.refrain(&["start", "--command", &agent, "--name", "mend", "-m", "2", "It's \"this\"\nand that."])
        .with_code(10);
    let file = here.root().join("exported");
    let path = file.to_str().unwrap();
    here.refrain(&["export", "mend", "--as", format, "--output", path]).with_code(0);
    assert_eq!(
        here.refrain(&["export", "mend", "--as", format]).with_code(0).stdout,
        fs::read_to_string(&file).unwrap()
    );

    let there = sandbox();
    let agent = done_in(&there, 4);
    let refused = resume(&there, path, &["--command", &agent]).with_code(2);
    assert!(refused.stderr.contains("used up: 2 of 2"), "{}", refused.stderr);
    let run = resume(&there, path, &["--command", &agent, "-m", "9"]).with_code(0);
    assert!(
        run.has_line("[loop mend iteration 3/9]") && run.has_line("[loop mend iteration 4/9]"),
        "{}",
        run.stdout
    );
    let prompt = there.kept_text("mend", "0003", "prompt.md");
    assert!(prompt.starts_with("It's \"this\"\nand that.\n"), "{prompt}");

    // At its origin it is the loop itself.
    let refused = resume(&here, path, &["--command", &agent, "-m", "9"]).with_code(17);
    assert!(refused.stderr.contains("refrain resume mend"), "{}", refused.stderr);
    there.refrain(&["export", "mend", "--as", format, "--output", path]).with_code(0);
    let over = resume(&here, path, &["--command", &agent, "-m", "9"]).with_code(2);
    assert!(over.stderr.contains("completed"), "{}", over.stderr);
}

#[test]
fn an_export_overwrites_no_foreign_file_and_contains_no_secret() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo \"$TOKEN\"; {CLAIM}"));
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let prompt = format!("Use this:\n{token}\nand mend it.");
    let words = [
        "start",
        "--command",
        &agent,
        "--name",
        "mend",
        "--env",
        "TOKEN=hunter2hunter2",
        "--prompt",
        &prompt,
    ];
    sandbox.refrain(&words).with_code(0);
    for format in ["synthex", "descartes", "ralph", "randroid", "json"] {
        let text = sandbox.refrain(&["export", "mend", "--as", format]).with_code(0).stdout;
        assert!(!text.contains(&token) && !text.contains("hunter2"), "{format}: {text}");
        put(&sandbox, "mine.json", "{}");
        let refused = sandbox.refrain(&["export", "mend", "--as", format, "-o", "mine.json"]).with_code(17);
        assert!(refused.stderr.contains("mine.json"), "{}", refused.stderr);
        assert_eq!(read(&sandbox, "mine.json"), "{}");
        for _ in 0..2 {
            sandbox.refrain(&["export", "mend", "--as", format, "-o", "own.json"]).with_code(0);
        }
        assert!(!read(&sandbox, "own.json").is_empty());
    }
    let unknown = sandbox.refrain(&["export", "mend", "--as", "smoke"]).with_code(2);
    assert!(unknown.stderr.contains("synthex, descartes, ralph, randroid, scud, json"), "{}", unknown.stderr);
    sandbox.refrain(&["export", "nobody", "--as", "json"]).with_code(3);
    sandbox.refrain(&["archive", "mend"]).with_code(0);
    let archived = sandbox.refrain(&["export", "mend", "--as", "synthex"]).with_code(0).stdout;
    assert!(archived.contains("\"completed\""), "{archived}");
}

#[test]
fn a_loop_beside_a_ralph_plugin_loop_notes_it_and_keeps_its_file() {
    let sandbox = sandbox();
    let text = "---\nactive: true\niteration: 2\nsession_id: s\nmax_iterations: 0\ncompletion_promise: \"DONE\"\nstarted_at: \"x\"\n---\n\nMend it.\n";
    put(&sandbox, RALPH_LOOP, text);
    let stamp = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let path = sandbox.project().join(RALPH_LOOP);
    let before = stamp(&path);
    let begin = |id: &str| {
        let words = [
            "tick",
            "begin",
            "/refrain:loop",
            "--agent",
            "claude",
            "--session-id",
            "s",
            "--name",
            id,
            "--args",
            "Mend it.",
        ];
        sandbox.refrain(&words).with_code(0)
    };
    let begun = begin("one");
    assert_eq!(
        begun.stderr.lines().filter(|line| line.starts_with("Note: --loop overrides Ralph Loop.")).count(),
        1
    );
    assert_eq!(begun.stdout, "one\nCOMPLETE\n", "it comes first all the same");
    let agent = done_in(&sandbox, 3);
    let run = resume(&sandbox, RALPH_LOOP, &["--command", &agent, "-m", "5"]);
    assert!(run.stdout.contains("iteration 3/5]"), "{} {}", run.stdout, run.stderr);
    assert_eq!((read(&sandbox, RALPH_LOOP), stamp(&path)), (text.to_owned(), before), "never touched");
    put(&sandbox, RALPH_LOOP, &text.replace("active: true", "active: false"));
    assert_eq!(begin("two").stderr, "");
}
