//! Work that was given up is on a branch, and everything else is unchanged.

use std::fs;

use serde_json::{Value, json};
use testkit::{Sandbox, write};

use crate::{plain_folder, sandbox};

/// Tries something else each time, without success.
const AGENT: &str =
    "echo \"try $REFRAIN_ITERATION\" > tries.txt\necho still > new.txt\necho '<promise>COMPLETE</promise>'";
const GATE: &str = "tests=echo 'assertion failed: x is 1'; exit 1";

fn stuck(sandbox: &Sandbox, more: &[&str]) -> String {
    let agent = sandbox.agent("agent", AGENT);
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--gate", GATE];
    sandbox.refrain(&[&words[..], more].concat()).with_code(13).stdout
}

/// The data of `work.saved`.
fn saved(sandbox: &Sandbox) -> Value {
    let journal = sandbox.journal("job");
    let events = journal.iter().filter(|record| record["event"]["type"] == "work.saved");
    let all: Vec<_> = events.map(|record| record["event"]["data"].clone()).collect();
    assert_eq!(all.len(), 1, "{journal:#?}");
    all[0].clone()
}

fn branch(sandbox: &Sandbox) -> String {
    saved(sandbox)["branch"].as_str().unwrap().to_owned()
}

#[test]
fn the_failure_branch_is_pushed_and_a_failed_push_is_only_reported() {
    for works in [true, false] {
        let sandbox = sandbox();
        let remote = sandbox.root().join("remote");
        let remote = remote.to_str().unwrap();
        sandbox.git(&["init", "-q", "--bare", remote]);
        sandbox.git(&["remote", "add", "origin", if works { remote } else { "/nowhere/at/all" }]);
        let stdout = stuck(&sandbox, &[]);
        let (branch, pushed) = (branch(&sandbox), saved(&sandbox)["pushed"].clone());
        assert_eq!((&pushed["remote"], pushed["error"].is_null()), (&json!("origin"), works), "{pushed}");
        let there = sandbox.git(&["--git-dir", remote, "for-each-ref", "--format=%(refname:short)"]);
        assert_eq!(there, if works { format!("{branch}\n") } else { String::new() });
        let said = if works { "was pushed to origin" } else { "could not be pushed to origin" };
        assert!(stdout.contains(said), "{stdout}");
    }
}

#[test]
fn a_failure_branch_with_committed_secrets_is_not_pushed() {
    let sandbox = sandbox();
    let remote = sandbox.root().join("remote");
    let remote = remote.to_str().unwrap();
    sandbox.git(&["init", "-q", "--bare", remote]);
    sandbox.git(&["remote", "add", "origin", remote]);
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let agent = format!("echo 'token = \"{token}\"' > login.toml; git add login.toml; git commit -qm Mine");
    let agent = sandbox.agent("agent", &format!("{agent}; {AGENT}"));
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--gate", GATE];
    let stdout = sandbox.refrain(&words).with_code(13).stdout;
    let error = saved(&sandbox)["pushed"]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("login.toml of commit ") && error.contains("git push origin wip/"), "{error}");
    assert!(stdout.contains("could not be pushed to origin, and is here only: login.toml"), "{stdout}");
    assert_eq!(sandbox.git(&["ls-remote", "origin"]), "");
}

#[test]
fn a_detached_and_an_unborn_head_stay_as_they_are() {
    let sandbox = sandbox();
    sandbox.git(&["checkout", "-q", "--detach"]);
    stuck(&sandbox, &[]);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "");
    assert_eq!(
        sandbox.git(&["rev-parse", &format!("{}^", branch(&sandbox))]),
        sandbox.git(&["rev-parse", "main"])
    );

    let sandbox = plain_folder();
    sandbox.git(&["init", "-q"]);
    stuck(&sandbox, &[]);
    assert_eq!(sandbox.git(&["log", "--format=%P", &branch(&sandbox)]), "\n");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main\n");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/main"]), "");
}

#[test]
fn in_the_middle_of_a_rebase_nothing_of_that_is_touched() {
    let sandbox = sandbox();
    for (switch, text) in [(["-c", "other"], "theirs"), (["--no-guess", "main"], "ours")] {
        sandbox.git(&[&["switch", "-q"], &switch[..]].concat());
        write(&sandbox.project().join("README.md"), format!("{text}\n"));
        sandbox.git(&["commit", "-qam", text]);
    }
    let _ = sandbox.tool("git", &["rebase", "-q", "other"]).run();
    let before = sandbox.git(&["status", "--short"]);
    assert_eq!(before, "UU README.md\n");
    stuck(&sandbox, &[]);
    assert_eq!(sandbox.git(&["status", "--short"]), "UU README.md\n?? new.txt\n?? tries.txt\n");
    assert!(sandbox.project().join(".git/rebase-merge").is_dir());
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", &branch(&sandbox)]);
    assert!(files.contains("tries.txt"), "{files}");
}

#[test]
fn no_secret_is_in_the_output_or_the_prompt() {
    let sandbox = sandbox();
    let token = format!("gh{}_{}", "p", "aQ7mZk2Lx9Rt4Vb8Nc1Wp6Ys3Ud5Fg0HjKe2");
    let agent = sandbox.agent("agent", AGENT);
    let gate = format!("tests=echo 'login with {token} refused'; echo \"as hunter22\"; exit 1");
    let words = ["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--env", "SOME=hunter22"];
    sandbox.refrain(&[&words[..], &["--gate", &gate]].concat()).with_code(13);
    let branch = branch(&sandbox);
    for file in ["state.json", "context.md"] {
        let text = sandbox.git(&["show", &format!("{branch}:.refrain-failure/{file}")]);
        assert!(!text.contains(&token) && !text.contains("hunter22"), "{file}: {text}");
    }
    let context = sandbox.git(&["show", &format!("{branch}:.refrain-failure/context.md")]);
    assert!(context.contains("[redacted: a GitHub token]") && context.contains("as [redacted]"), "{context}");
}

#[test]
fn a_runner_that_is_killed_over_it_makes_no_second_one() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("push");
    let remote = sandbox.root().join("remote");
    sandbox.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    sandbox.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    let hook = sandbox.agent("pre-push", "echo x > \"$NOTES/pushing\"; read -r _ < \"$GATES/push\"");
    fs::create_dir_all(sandbox.project().join(".git/hooks")).unwrap();
    let installed = sandbox.project().join(".git/hooks/pre-push");
    fs::copy(hook, &installed).unwrap();
    let agent = sandbox.agent("agent", AGENT);
    let session =
        sandbox.spawn(&["start", "--command", &agent, "--name", "job", "-p", "Mend it.", "--gate", GATE]);
    sandbox.wait_for_note("pushing");
    session.kill();
    fs::remove_file(installed).unwrap();
    sandbox.refrain(&["resume", "job"]).with_code(13);
    let branches = sandbox.git(&["branch", "--list", "wip/*", "--format=%(refname:short)"]);
    assert_eq!(branches, format!("{}\n", branch(&sandbox)));
    assert_eq!(saved(&sandbox)["pushed"], json!({ "remote": "origin" }));
}
