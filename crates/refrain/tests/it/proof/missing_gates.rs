//! Gates that cannot run: a mistyped one refuses the start, one found missing by the baseline blocks the loop, and
//! neither costs anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use testkit::{Run, Sandbox, write};

use crate::surfaces::mcp::{does, refuses};
use crate::{CLAIM, plain_folder, sandbox};

/// `start` of an agent that claims at once.
fn start(sandbox: &Sandbox, more: &[&str]) -> Run {
    let agent = sandbox.agent("agent", &format!("echo ran >> $NOTES/ran\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--max-iterations", "1"];
    sandbox.refrain(&[&words[..], more].concat())
}

/// Refused with code 2 and these words, and there is nothing of it.
fn assert_refused(sandbox: &Sandbox, run: Run, says: &[&str]) {
    assert_refused_with(2, sandbox, run, says);
}

fn assert_refused_with(code: i32, sandbox: &Sandbox, run: Run, says: &[&str]) {
    let refused = run.with_code(code).stderr;
    for words in says {
        assert!(refused.contains(words), "{words:?} is not in {refused}");
    }
    assert!(
        refused.contains("nothing was started") && refused.contains("--allow-missing-gates"),
        "{refused}"
    );
    assert!(!sandbox.loop_dir("job").exists() && !sandbox.project().join(".refrain").exists());
    assert_eq!(sandbox.note("ran"), "", "no agent ran");
}

#[test]
fn a_mistyped_gate_refuses_the_start() {
    let sandbox = sandbox();
    fs::rename(sandbox.agent("test.sh", "exit 0"), sandbox.project().join("test.sh")).unwrap();
    fs::create_dir(sandbox.project().join("folder")).unwrap();
    write(&sandbox.project().join("plain.sh"), "#!/bin/sh\n");
    let wrong: [(&[&str], &[&str]); 12] = [
        (&["--gate", "gerp -q x README.md"], &["gate gerp: command not found: gerp; did you mean grep?"]),
        (&["--soft-gate", "lint=gerp x"], &["gate lint: command not found: gerp"]),
        (&["--success-command", "gerp x"], &["gate success: command not found: gerp"]),
        (&["--gate", "true", "--gate", "A=1 gerp x | cat"], &["gate gerp: command not found: gerp"]),
        (&["--gate", "not=! gerp x"], &["gate not: command not found: gerp"]),
        (&["--gate", "cd folder && gerp x"], &["command not found: gerp"]),
        (&["--gate", "tests=./tset.sh"], &["gate tests: no such file: ./tset.sh; did you mean ./test.sh?"]),
        (&["--gate", "tests=./plain.sh"], &["./plain.sh is not an executable file", "chmod +x ./plain.sh"]),
        (&["--gate", "tests=./folder"], &["./folder is a folder, not a program"]),
        (&["--gate", "tests=/no/such/program"], &["no such file: /no/such/program"]),
        (&["--gate", "tests=./tset.sh", "--worktree"], &["no such file: ./tset.sh"]),
        (
            &["--critique-every", "1", "--critic", "no-such-critic-here"],
            &["the critic: command not found: no-such-critic-here"],
        ),
    ];
    for (more, says) in wrong {
        assert_refused(&sandbox, start(&sandbox, more), says);
    }
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(sandbox.git(&["branch"]).lines().count(), 1);
}

#[test]
fn a_gate_of_the_configuration_is_looked_at_too() {
    let sandbox = sandbox();
    write(&sandbox.project().join("refrain.toml"), "[gates.tests]\ncommand = \"gerp x\"\n");
    sandbox.trust();
    assert_refused(&sandbox, start(&sandbox, &[]), &["gate tests: command not found: gerp"]);
}

#[test]
fn shell_builtins_and_functions_are_never_missing() {
    let sandbox = sandbox();
    fs::rename(sandbox.agent("test.sh", "exit 0"), sandbox.project().join("test.sh")).unwrap();
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Test"]);
    let gates = [
        "a=true",
        "b=test -e README.md",
        "c=[ -e README.md ] && cat README.md",
        "d=if false; then no-such-program; fi",
        "e=check() { cat README.md; }; check",
        "f=PROGRAM=cat; $PROGRAM README.md",
        "g=./test.sh",
        "h='./test.sh'",
        "i=cd . && cat README.md",
    ];
    let gates: Vec<_> = gates.iter().flat_map(|gate| ["--gate", gate]).collect();
    start(&sandbox, &gates).with_code(0);
    // Its own worktree has the files of the commit.
    fs::remove_file(sandbox.project().join("test.sh")).unwrap();
    let agent = sandbox.agent("agent", CLAIM);
    let words = ["start", "--command", &agent, "-p", "x", "--worktree", "--gate", "./test.sh"];
    sandbox.refrain(&words).with_code(0);
}

#[test]
fn a_gate_program_that_the_agent_is_to_create_may_be_missing() {
    let sandbox = sandbox();
    let make = "printf '#!/bin/sh\\nexit 0\\n' > test.sh; chmod +x test.sh";
    let agent = sandbox.agent("agent", &format!("{make}\n{CLAIM}"));
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--gate", "./test.sh"];
    sandbox.refrain(&[&words[..], &["--allow-missing-gates"]].concat()).with_code(0);
    let status = sandbox.status("job");
    assert_eq!((&status["verified"], &status["iteration"]), (&json!(true), &json!(1)));
}

#[test]
fn a_baseline_that_finds_no_program_blocks_the_loop() {
    for sandbox in [sandbox(), plain_folder()] {
        let gate = ["--gate", "tests=cat README.md > out.txt; ./tool"];
        write(&sandbox.project().join("README.md"), "# A project\n");
        let run = start(&sandbox, &gate).with_code(14);
        assert_eq!(sandbox.note("ran"), "", "no agent ran");
        let status = sandbox.status("job");
        let reason = "gate tests cannot run: ./tool was not found (exit code 127)";
        assert_eq!((&status["status"], &status["reason"]), (&json!("blocked"), &json!(reason)));
        assert_eq!((&status["iteration"], &status["iterations"]), (&json!(0), &json!([])));
        let needs = status["needs"].as_str().unwrap();
        assert!(needs.starts_with("make ./tool available to gate tests, then refrain resume job"), "{needs}");
        assert!(run.stdout.contains(reason), "{}", run.stdout);
        // As long as it is missing it is blocked again; once it is there the loop continues.
        sandbox.refrain(&["resume", "job"]).with_code(14);
        let tool = sandbox.agent("tool", "exit 0");
        fs::copy(&tool, sandbox.project().join("tool")).unwrap();
        sandbox.refrain(&["resume", "job"]).with_code(0);
        assert_eq!(
            (sandbox.note("ran").as_str(), &sandbox.status("job")["verified"]),
            ("ran\n", &json!(true))
        );
    }
}

#[test]
fn a_baseline_that_may_not_execute_it_blocks_the_loop_too() {
    let sandbox = sandbox();
    write(&sandbox.project().join("tool"), "#!/bin/sh\n");
    start(&sandbox, &["--soft-gate", "lint=test -e README.md; ./tool"]).with_code(14);
    let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("gate lint cannot run: ./tool may not be executed (exit code 126)"), "{reason}");
    let other = ["--name", "two", "--allow-missing-gates", "--soft-gate", "lint=test -e README.md; ./tool"];
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&[&["start", "--command", &agent, "-p", "x"][..], &other].concat()).with_code(0);
}

#[test]
fn a_plan_is_refused_too() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo ran >> $NOTES/ran\necho TASK_COMPLETE");
    write(&sandbox.project().join("PLAN.md"), "# Plan\n\n## Task 1: Begin\n\nBegin it.\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let words = ["plan", "run", "--plan", "PLAN.md", "--command", &agent, "--name", "job"];
    let run = |more: &[&str]| sandbox.refrain(&[&words[..], more].concat());
    let says = ["gate verify: command not found: gerp; did you mean grep?"];
    assert_refused(&sandbox, run(&["--verify", "gerp x"]), &says);
    assert_refused(&sandbox, run(&["--verify", "gerp x", "--dry-run"]), &says);
    let refused = run(&["--success-command", "true"]).with_code(2).stderr;
    assert!(
        refused.contains("--success-command: not with a plan") && refused.contains("--verify"),
        "{refused}"
    );
    let tasks = r#"{"tag": "x", "tasks": [{"id": 1, "title": "Begin", "status": "pending", "verification": "gerp x"}]}"#;
    fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    let tagged = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "job", "--verify", "true"];
    assert_refused(&sandbox, sandbox.refrain(&tagged), &["task 1: gate gerp: command not found: gerp"]);
}

#[test]
fn a_session_and_a_tool_are_refused_too() {
    let sandbox = sandbox();
    let begin = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--session-id", "s", "--name", "job"];
    let typed = ["--args", "--gate \"gerp x\" Mend it."];
    let run = sandbox.refrain(&[&begin[..], &typed].concat());
    // The codes of `tick` are those of seed 000.
    assert_refused_with(1, &sandbox, run, &["gate gerp: command not found: gerp"]);
    let agent = sandbox.agent("agent", CLAIM);
    let asked = json!({"goal": "Mend it.", "command": agent, "name": "job", "gates": ["gerp x"]});
    let refused = refuses(&sandbox, "loop_start", asked.clone());
    assert!(refused.contains("gate gerp: command not found: gerp"), "{refused}");
    assert!(refused.contains("allow_missing_gates starts anyway") && !refused.contains("--"), "{refused}");
    let mut allowed = asked;
    allowed["allow_missing_gates"] = json!(true);
    allowed["max_iterations"] = json!(1);
    assert_eq!(does(&sandbox, "loop_start", allowed)["started"], true);
    sandbox.wait_for_status("job", "iteration-cap");
}

#[test]
fn a_run_with_a_missing_test_program_is_refused() {
    let sandbox = sandbox();
    write(&sandbox.project().join("go.mod"), "module x\n\ngo 1.22\n");
    write(&sandbox.project().join("x_test.go"), "package x\n");
    write(&sandbox.project().join("task.md"), "Mend it.\n");
    // A PATH with only the programs that run here.
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    for program in ["git", "sh", "cat"] {
        let found = path.split(':').map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
        symlink(found.unwrap(), bin.join(program)).unwrap();
    }
    let agent = sandbox.agent("agent", "exit 0");
    let words = ["run", "job", "task.md", "--yes", "--command", &agent, "--reviewer", &agent];
    let run = sandbox.command(&words).env("PATH", bin.to_str().unwrap()).run();
    assert_refused(&sandbox, run, &[", which the project's files offer: command not found: go"]);
    let anyway = [&words[..], &["-n", "1", "--allow-missing-gates"]].concat();
    sandbox.command(&anyway).env("PATH", bin.to_str().unwrap()).run().with_code(10);
}
