//! An agent that tries to publish a secret: by a mark of its own, by names, and by messages. The remote is a bare
//! repository.

use std::fs;

use testkit::{Run, Sandbox, write};

use crate::{CLAIM, sandbox};

/// A shell word that makes a token: no text in this repository may look like one.
const TOKEN: &str = r#""ghp_$(echo 4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0Q)""#;

/// The same without its head.
const BODY: &str = "4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0Q";

/// A project whose `origin` has its first commit.
fn published() -> Sandbox {
    let sandbox = sandbox();
    sandbox.git(&["init", "--quiet", "--bare", "-b", "main", "../remote.git"]);
    sandbox.git(&["remote", "add", "origin", "../remote.git"]);
    sandbox.git(&["push", "--quiet", "origin", "main"]);
    sandbox
}

/// A loop of an agent that does this in its first iteration and claims in its second.
fn start(sandbox: &Sandbox, script: &str) -> Run {
    let script = format!("[ \"$REFRAIN_ITERATION\" = 1 ] || {{ {CLAIM}; exit; }}\n{script}");
    let agent = sandbox.agent("thief", &script);
    let words = ["start", "--command", &agent, "--name", "job", "--prompt", "Do it.", "-m", "2"];
    let more = ["--gate", "true", "--git-workflow", "push"];
    sandbox.refrain(&[words.as_slice(), &more].concat())
}

/// Everything on the remote: references, paths, messages and contents.
fn remote(sandbox: &Sandbox) -> String {
    let git = |args: &[&str]| sandbox.git(&[&["--git-dir", "../remote.git"], args].concat());
    git(&["for-each-ref"]) + &git(&["log", "--all", "-p", "--format=%B"])
}

#[test]
fn a_mark_that_the_agent_makes_publishes_nothing_and_is_not_taught_to_it() {
    let sandbox = published();
    let run = start(
        &sandbox,
        &format!(r#"printf 'k = "%s" # refrain:allow-secret\n' {TOKEN} > marked.toml; echo x > work.txt"#),
    );
    assert!(sandbox.refrain(&["status"]).with_code(0).stdout.contains("left out"), "{run:?}");
    let left = "left out of the commit: marked.toml: line 1 looks like a GitHub token; its allow mark is newer than the loop";
    assert!(run.stdout.contains(left), "{}", run.stdout);
    let remote = remote(&sandbox);
    assert!(remote.contains("work.txt") && !remote.contains(BODY), "{remote}");
    let prompt = sandbox.kept_text("job", "0002", "prompt.md");
    assert!(prompt.contains("Remove the secret from the file:\n- marked.toml: line 1"), "{prompt}");
    assert!(!prompt.contains("allow-secret"), "{prompt}");
    assert!(run.stdout.contains("commit the line yourself"), "the person is told: {}", run.stdout);
}

#[test]
fn a_marked_line_that_the_agent_commits_itself_is_not_pushed() {
    let sandbox = published();
    let before = remote(&sandbox);
    let run = start(
        &sandbox,
        &format!(
            r#"printf 'k = "%s" # refrain:allow-secret\n' {TOKEN} > marked.toml; git add .; git commit -qm mine"#
        ),
    );
    assert!(run.stdout.contains("its allow mark is newer than the loop, so it does not count"), "{run:?}");
    assert_eq!(remote(&sandbox), before);
    let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("marked.toml of commit"), "{reason}");
}

#[test]
fn a_line_that_a_person_marked_before_the_loop_is_pushed() {
    let sandbox = published();
    write(&sandbox.project().join("fake.toml"), format!("k = \"ghp_{BODY}\" # refrain:allow-secret\n"));
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A key for tests"]);
    start(&sandbox, "echo x > work.txt; echo y >> fake.toml").with_code(0);
    let remote = remote(&sandbox);
    assert!(remote.contains(BODY) && remote.contains("work.txt"), "{remote}");
}

#[test]
fn a_file_or_folder_that_is_named_like_a_secret_stays_here() {
    let sandbox = published();
    let run = start(
        &sandbox,
        &format!(r#"echo x > {TOKEN}.txt; mkdir {TOKEN}; echo x > {TOKEN}/a.txt; echo x > work.txt"#),
    );
    assert_eq!(run.stdout.matches(": it looks like a GitHub token").count(), 2, "{}", run.stdout);
    let remote = remote(&sandbox);
    assert!(remote.contains("work.txt") && !remote.contains(BODY), "{remote}");
}

#[test]
fn a_secret_in_a_path_or_message_of_a_commit_of_the_agents_is_not_pushed() {
    for script in [
        format!("mkdir {TOKEN}; echo x > {TOKEN}/a.txt; git add .; git commit -qm mine"),
        format!("git commit -q --allow-empty -m 'Use it' -m {TOKEN}; echo x > work.txt"),
        format!("git commit -q --allow-empty -m {TOKEN}; git commit -q --allow-empty -m mine"),
        // A reset commit stays here; a tagged one, too.
        format!("git tag {TOKEN}; git tag -a -m {TOKEN} v1; git commit -q --allow-empty -m {TOKEN}"),
    ] {
        let sandbox = published();
        let before = remote(&sandbox);
        let run = start(&sandbox, &script);
        assert_eq!(remote(&sandbox), before, "{script}: {run:?}");
        let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("it looks like a GitHub token"), "{script}: {reason}");
    }
}

#[test]
fn tags_are_never_pushed_and_a_branch_that_is_named_like_a_secret_is_not() {
    let sandbox = published();
    start(&sandbox, &format!("git tag {TOKEN}; git tag -a -m {TOKEN} v1; echo x > work.txt")).with_code(0);
    let there = remote(&sandbox);
    assert!(there.contains("work.txt") && !there.contains(BODY) && !there.contains("refs/tags"), "{there}");

    let sandbox = published();
    sandbox.git(&["switch", "--quiet", "-c", &format!("fix-ghp_{BODY}")]);
    let before = remote(&sandbox);
    start(&sandbox, "echo x > work.txt");
    assert_eq!(remote(&sandbox), before);
    let reason = sandbox.status("job")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("the name of the branch: it looks like a GitHub token"), "{reason}");
}

#[test]
fn a_file_that_the_configuration_names_is_pushed() {
    let sandbox = published();
    let config = sandbox.root().join("home/config/refrain/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    write(&config, "[git]\nallow-secrets = [\"/fake.toml\"]\n");
    start(&sandbox, &format!(r#"printf 'k = "%s"\n' {TOKEN} > fake.toml"#)).with_code(0);
    assert!(remote(&sandbox).contains(BODY));
}
