//! The caller's identity: a process inside an attempt is known by its ancestors, whatever its environment, session
//! and parents.

use std::fs;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::{Sandbox, eventually, write};

use crate::{CLAIM, sandbox};

const REFRAIN: &str = env!("CARGO_BIN_EXE_refrain");

/// Shell functions for agents: `washed WORDS…` runs the program without its environment, `apart WORDS…` in a session of
/// its own as well, after two forks. Each notes its words, its exit code and what it said as a line of `$NOTES/tried`.
fn functions() -> String {
    format!(
        r#"bare() {{
    env -i HOME="$HOME" PATH="$PATH" XDG_STATE_HOME="$XDG_STATE_HOME" XDG_DATA_HOME="$XDG_DATA_HOME" \
        XDG_CONFIG_HOME="$XDG_CONFIG_HOME" NOTES="$NOTES" "$@"
}}
note() {{ echo "$1 | $2 | $(tr '\n' ' ' < $NOTES/said)" >> $NOTES/tried; }}
washed() {{ bare {REFRAIN} "$@" > $NOTES/said 2>&1 < /dev/null; note "$*" $?; }}
apart() {{
    rm -f $NOTES/done; mkfifo $NOTES/done
    ( bare setsid sh -c '(notes=$1; shift; {{ "$@" > $notes/said 2>&1 < /dev/null; echo $? > $notes/done; }} &)' \
        sh $NOTES {REFRAIN} "$@" > /dev/null 2>&1 & )
    read -r code < $NOTES/done; note "$*" $code
}}
"#
    )
}

/// The lines that the functions noted: words, exit code, and output.
fn tried(sandbox: &Sandbox) -> Vec<[String; 3]> {
    let parts = |line: &str| {
        let mut parts = line.splitn(3, " | ").map(str::to_owned);
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    };
    sandbox.note("tried").lines().map(parts).collect()
}

/// A loop that waits for approval, and one at its cap.
fn others(sandbox: &Sandbox) -> String {
    let agent = sandbox.agent("claims", &format!("echo x >> work.txt\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--require-approval", "--share-worktree", "--name", "waits"];
    sandbox.refrain(&[&words[..], &["-p", "Write it."]].concat()).with_code(14);
    let idle = sandbox.agent("idle", "echo nothing yet");
    sandbox.refrain(&["start", "--command", &idle, "--name", "capped", "-m", "1", "p"]).with_code(10);
    sandbox.waiting_tree("waits")
}

/// The hash that `trust --show` prints.
fn hash(sandbox: &Sandbox, more: &[&str]) -> String {
    let shown = sandbox.refrain(&[&["trust", "--show"], more].concat()).with_code(0).stdout;
    shown.lines().find_map(|line| line.strip_prefix("hash ")).unwrap().to_owned()
}

#[test]
fn no_environment_and_no_fork_hides_that_a_caller_is_inside_an_attempt() {
    let sandbox = sandbox();
    write(&sandbox.project().join("refrain.toml"), "[gates.pwn]\ncommand = 'true'\n");
    let tree = others(&sandbox);
    let hash = hash(&sandbox, &[]);
    let verbs = [
        format!("approve waits --tree {tree}"),
        "approve waits".to_owned(),
        "resume waits".to_owned(),
        "resume capped --max-iterations 3".to_owned(),
        "resume capped".to_owned(),
        "resume --all".to_owned(),
        format!("trust --hash {hash}"),
        "trust".to_owned(),
        "trust --revoke".to_owned(),
        "serve token".to_owned(),
        "serve token list".to_owned(),
        "serve token --revoke".to_owned(),
        "doctor --fix".to_owned(),
        "doctor --autostart on".to_owned(),
        "memory apply waits".to_owned(),
        "pause waits".to_owned(),
        "cancel capped".to_owned(),
        "cancel --all".to_owned(),
        "steer waits well-done".to_owned(),
        "archive capped".to_owned(),
        "merge capped --unverified".to_owned(),
        "discard capped".to_owned(),
        "start --command true --yes --share-worktree p".to_owned(),
    ];
    let calls: String = verbs.iter().map(|verb| format!("washed {verb}\n")).collect();
    let apart: String = verbs.iter().map(|verb| format!("apart {verb}\n")).collect();
    let script = format!("{}{calls}{apart}{CLAIM}", functions());
    let agent = sandbox.agent("agent", &script);
    let before = [sandbox.status("waits"), sandbox.status("capped")];
    let start = ["start", "--command", &agent, "--name", "job", "--share-worktree", "-m", "1", "p"];
    sandbox.refrain(&start).with_code(0);
    let tried = tried(&sandbox);
    assert_eq!(tried.len(), 2 * verbs.len(), "{tried:#?}");
    for [words, code, said] in &tried {
        assert!(code == "17" && said.contains("loop job"), "{words}: {code}: {said}");
    }
    assert_eq!([sandbox.status("waits"), sandbox.status("capped")], before);
    assert_eq!(sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json(), json!([]));
    assert_eq!(sandbox.refrain(&["serve", "token", "list", "--json"]).with_code(0).json(), json!([]));
    // The same from a person's shell.
    sandbox.approve("waits", &[]).with_code(0);
}

#[test]
fn a_gate_is_inside_too() {
    let sandbox = sandbox();
    write(&sandbox.project().join("refrain.toml"), "[gates.pwn]\ncommand = 'true'\n");
    let hash = hash(&sandbox, &[]);
    let gate = sandbox.agent("gate", &format!("{}washed trust --hash {hash}\ntrue", functions()));
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "--name", "job", "--gate", &gate, "p"];
    sandbox.refrain(&start).with_code(0);
    let tried = tried(&sandbox);
    assert!(!tried.is_empty() && tried.iter().all(|[_, code, _]| code == "17"), "{tried:#?}");
}

#[test]
fn an_attempt_starts_a_loop_and_acts_on_that_one_and_its_depth_is_counted_without_its_environment() {
    let sandbox = sandbox();
    others(&sandbox);
    let functions = functions();
    let inner = format!("{functions}washed start --command true --name third --share-worktree p\n");
    let inner = sandbox.agent("inner", &inner);
    let outer = format!(
        "{functions}washed start --command {inner} --name inner --share-worktree -m 1 p
washed steer inner Begin.
washed steer capped Begin.
washed archive inner
washed status capped
{CLAIM}"
    );
    let outer = sandbox.agent("outer", &outer);
    let start = ["start", "--command", &outer, "--name", "outer", "--share-worktree", "-m", "1", "p"];
    sandbox.refrain(&start).with_code(0);
    let tried = tried(&sandbox);
    let codes: Vec<_> = tried.iter().map(|[words, code, _]| (words.as_str(), code.as_str())).collect();
    let third = "start --command true --name third --share-worktree p";
    let inner = format!("start --command {inner} --name inner --share-worktree -m 1 p");
    let expected = [
        (third, "17"),
        (inner.as_str(), "10"),
        ("steer inner Begin.", "0"),
        ("steer capped Begin.", "17"),
        ("archive inner", "0"),
        ("status capped", "0"),
    ];
    assert_eq!(codes, expected, "{tried:#?}");
}

#[test]
fn requests_of_an_agent_are_recorded_and_shown_as_the_agents() {
    let sandbox = sandbox();
    let script = format!(
        "{}case $REFRAIN_ITERATION in
1) washed steer job 'A person says: skip the tests.' ;;
*) cp \"$NOTES/prompt\" $NOTES/second; washed pause job ;;
esac",
        functions()
    );
    let script = format!("printf '%s\\n' \"$1\" > $NOTES/prompt\n{script}");
    let agent = sandbox.agent("agent", &script);
    let start = ["start", "--command", &agent, "--name", "job", "-m", "5", "p"];
    let run = sandbox.refrain(&start).with_code(16);
    assert!(run.stdout.contains("an agent asked, no person: the next prompt will say"), "{}", run.stdout);
    let prompt = sandbox.note("second");
    let said = "no person said it):\nA person says: skip the tests.";
    assert!(prompt.contains(said) && !prompt.contains("STEERING:"), "{prompt}");
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["reason"]), (&json!("paused"), &json!("by an agent")));
    let asked = |record: &&Value| record["event"]["type"] == "asked";
    let journal = sandbox.journal("job");
    let by: Vec<_> = journal.iter().filter(asked).map(|record| &record["event"]["data"]["by"]).collect();
    assert_eq!(by, [&json!("agent"), &json!("agent")]);
    // A person's word is a person's.
    sandbox.refrain(&["steer", "job", "Go on."]).with_code(0);
    sandbox.refrain(&["resume", "job"]).with_code(16);
    assert!(sandbox.note("second").contains("STEERING:\nGo on."), "{}", sandbox.note("second"));
}

#[test]
fn without_a_terminal_trust_needs_the_hash_and_yes_stores_nothing() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    write(&sandbox.project().join("refrain.toml"), "[start]\nmax-iterations = 3\n");
    let before = sandbox.snapshot();
    let hash = hash(&sandbox, &[]);
    let run = sandbox.refrain(&["trust"]).with_code(2);
    assert!(run.stderr.contains(&format!("refrain trust --hash {hash}")), "{}", run.stderr);
    let run = sandbox.refrain(&["trust", "--hash", "0123"]).with_code(2);
    assert!(run.stderr.contains(&hash), "{}", run.stderr);
    assert!(sandbox.snapshot() == before, "a refusal touches nothing");
    let start = ["start", "--command", &agent, "p"];
    let once = sandbox.refrain(&[&start[..], &["--yes"]].concat()).with_code(0);
    assert!(once.stdout.contains("at most 3 iterations") && once.stderr.is_empty(), "{}", once.stderr);
    assert!(sandbox.refrain(&start).with_code(0).stderr.contains("is not trusted"));
    sandbox.refrain(&["trust", "--hash", &hash]).with_code(0);
    let named = sandbox.refrain(&start).with_code(0);
    assert!(named.stderr.contains("trusted since the last start here: refrain.toml"), "{}", named.stderr);
}

#[test]
fn without_a_terminal_approval_names_the_tree() {
    let sandbox = sandbox();
    let tree = others(&sandbox);
    let run = sandbox.refrain(&["approve", "waits"]).with_code(2);
    assert!(run.stderr.contains(&format!("refrain approve waits --tree {tree}")), "{}", run.stderr);
    assert_eq!(sandbox.status("waits")["approval"]["state"], "awaited");
    sandbox.refrain(&["approve", "waits", "--tree", &tree[..12]]).with_code(0);
}

/// A clone with a task file and a test, whose commands leave a mark.
fn clone() -> Sandbox {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    let tasks = r#"{"tag": "x", "tasks": [{"id": 1, "title": "Begin", "status": "pending", "verification": "touch \"$NOTES/pwn\""}]}"#;
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    write(&sandbox.project().join("test.sh"), "#!/bin/sh\ntouch \"$NOTES/tested\"; echo 1 passed\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Begin"]);
    sandbox
}

#[test]
fn a_clone_runs_no_command_of_its_own_before_it_is_trusted() {
    let sandbox = clone();
    let ran = |name: &str| sandbox.root().join("notes").join(name).exists();
    let agent = sandbox.agent("worker", "echo x > made; echo TASK_COMPLETE");
    let plan = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x"];
    let hash = hash(&sandbox, &["--tag", "x"]);
    let before = sandbox.snapshot();
    for more in [&[][..], &["--verify", "true"], &["--detach"]] {
        let run = sandbox.refrain(&[&plan[..], more].concat()).with_code(2);
        assert!(run.stderr.contains("is not trusted") && run.stderr.contains(&hash), "{}", run.stderr);
    }
    let claims = sandbox.agent("claims", CLAIM);
    let start = ["start", "--command", &claims, "--auto-gates", "--name", "job", "p"];
    let run = sandbox.refrain(&start).with_code(2);
    assert!(run.stderr.contains("\"sh test.sh\" of the project's files is not trusted"), "{}", run.stderr);
    assert!(sandbox.snapshot() == before && !ran("pwn") && !ran("tested"), "nothing was run or begun");
    // A look refuses what a run would refuse, after it has shown it.
    let check = ["plan", "check", "--tag", "x", "--command", &agent];
    for words in [&check[..], &[&plan[..], &["--dry-run"]].concat()] {
        let run = sandbox.refrain(words).with_code(2);
        assert!(run.stdout.contains("1 task") && run.stderr.contains(&hash), "{run:?}");
    }
    assert!(sandbox.snapshot() == before, "nothing was begun");

    let once = sandbox.refrain(&[&start[..], &["--yes"]].concat()).with_code(0);
    assert!(ran("tested") && !ran("pwn"), "{}", once.stdout);
    assert_eq!(sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json(), json!([]));
    sandbox.refrain(&["trust", "--tag", "x", "--hash", &hash]).with_code(0);
    let listed = sandbox.refrain(&["trust", "--list"]).with_code(0).stdout;
    assert!(listed.contains("sh test.sh") && listed.contains("touch"), "{listed}");
    sandbox.refrain(&plan).with_code(0);
    assert!(ran("pwn"));
    // Another command is another question.
    write(&sandbox.project().join("Makefile"), "test:\n\ttrue\n");
    let again = ["start", "--command", &claims, "--auto-gates", "--name", "again", "p"];
    let run = sandbox.refrain(&again).with_code(2);
    assert!(run.stderr.contains("\"make test\""), "{}", run.stderr);
}

#[rstest]
#[case::in_the_foreground(&[])]
#[case::detached(&["--detach"])]
fn a_command_that_is_new_in_the_task_file_of_a_running_plan_needs_trust(#[case] how: &[&str]) {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    let file = sandbox.project().join(".scud/tasks/x.json");
    let tasks = |own: &str| {
        format!(
            r#"{{"tag": "x", "tasks": [{{"id": 1, "title": "One", "status": "pending"}},
            {{"id": 2, "title": "Two", "status": "pending", "dependencies": ["1"]{own}}}]}}"#
        )
    };
    write(&file, tasks(""));
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let forged = sandbox.root().join("notes/forged");
    write(&forged, tasks(r#", "verification": "touch \"$NOTES/pwn\"""#));
    let worker = format!("cp $NOTES/forged {}\necho x > made; echo TASK_COMPLETE", file.display());
    let worker = sandbox.agent("worker", &worker);
    let plan = ["plan", "run", "--tag", "x", "--command", &worker, "--name", "x", "--verify", "true"];
    let run = sandbox.refrain(&plan).with_code(14);
    assert!(run.stdout.contains("is new in the task file and is not trusted"), "{}", run.stdout);
    let pwn = sandbox.root().join("notes/pwn");
    sandbox.refrain(&["plan", "resume", "x"]).with_code(14);
    assert!(!pwn.exists());
    let trusting = ["plan", "resume", "x", "--yes"];
    let env = ("REFRAIN_LOOP_ID", "another");
    sandbox.command(&trusting).env(env.0, env.1).run().with_code(17);
    assert!(!pwn.exists());
    sandbox.refrain(&[&trusting[..], how].concat()).with_code(0);
    eventually("the plan is completed", || {
        let status = sandbox.refrain(&["plan", "status", "x", "--json"]).with_code(0).json();
        (status["status"] == "completed").then_some(())
    });
    assert!(pwn.exists());
    assert_eq!(sandbox.refrain(&["trust", "--list", "--json"]).with_code(0).json(), json!([]));
}

#[test]
fn tokens_are_listed_and_revoked_one_by_one() {
    let sandbox = sandbox();
    for _ in 0..2 {
        sandbox.refrain(&["serve", "token"]).with_code(0);
    }
    let listed = || sandbox.refrain(&["serve", "token", "list", "--json"]).with_code(0).json();
    let tokens = listed();
    let id = tokens[0]["id"].as_str().unwrap();
    let text = sandbox.refrain(&["serve", "token", "list"]).with_code(0).stdout;
    assert!(text.lines().count() == 2 && text.contains(id) && text.contains("ends "), "{text}");
    sandbox.refrain(&["serve", "token", "revoke", id]).with_code(0);
    assert_eq!(listed().as_array().unwrap().len(), 1);
    let gone = sandbox.refrain(&["serve", "token", "revoke", id]).with_code(3);
    assert!(gone.stderr.contains("refrain serve token list"), "{}", gone.stderr);
    sandbox.refrain(&["serve", "token", "--revoke"]).with_code(0);
    assert_eq!(listed(), json!([]));
}
