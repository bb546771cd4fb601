//! Gates that cannot run: a mistyped one refuses the start, one found missing by the baseline blocks the loop, and
//! neither costs anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use testkit::{Run, Sandbox, write};

use crate::surfaces::mcp::{does, refuses};
use crate::{CLAIM, sandbox};

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
