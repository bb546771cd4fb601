//! Suspected secrets that are in the history all the same: in the agent's own commits, and where the user allows
//! them.

use refrain_core::git::{CommitResult, ExposedSecret};

use crate::place::{TestRepository, left_out, made};

/// A token, joined from pieces: no text of this repository looks like one.
fn token(last: char) -> String {
    format!("token = \"ghp_{}{last}\"\n", "4fJ9sKq2LmZx8WbTn5RvYc1HdGp7Ue3Aio0")
}

fn told(exposed: &[ExposedSecret]) -> Vec<String> {
    let say =
        |it: &ExposedSecret| format!("{} {:?} {}", it.path, it.line, if it.allowed { "allowed" } else { "" });
    exposed.iter().map(|it| say(it).trim_end().to_owned()).collect()
}

#[test]
fn commits_of_the_agent_are_screened_one_by_one() {
    let place = TestRepository::new();
    place.write("old.toml", token('A'));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Before the loop"]);
    let base = place.survey();
    place.write("old.toml", format!("{}more = 1\n", token('A')));
    place.write("a b.toml", format!("x = 1\n{}", token('B')));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "The agent's"]);
    let guilty = place.head();
    // It is in the history, though no file contains it any more.
    place.git(&["rm", "-q", "a b.toml"]);
    place.git(&["commit", "-qm", "The agent's second thoughts"]);
    place.write("src/a.rs", "changed\n");
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(told(&report.exposed), ["a b.toml Some(2)"]);
    assert_eq!(report.exposed[0].commit, guilty);
    assert_eq!(report.exposed[0].what, "a GitHub token");
    assert_eq!(report.by_agent.len(), 2);

    let again = place.commit_since(&base, report.head.as_ref(), 2).unwrap();
    assert!(again.exposed.is_empty(), "it is told once");
}

#[test]
fn a_merge_and_its_merged_commits_are_screened() {
    let place = TestRepository::new();
    let base = place.survey();
    place.git(&["switch", "-qc", "side"]);
    place.write("side.toml", token('A'));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "side"]);
    place.git(&["switch", "-q", "main"]);
    place.write("src/a.rs", "main\n");
    place.git(&["commit", "-qam", "main"]);
    place.git(&["merge", "-q", "--no-commit", "side"]);
    place.write("merge.toml", token('B'));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "merged"]);
    let report = place.commit(&base, 1);
    let mut told = told(&report.exposed);
    told.sort();
    assert_eq!(told, ["merge.toml Some(1)", "side.toml Some(1)"]);
    assert!(!matches!(report.result, CommitResult::Made { .. }));
}

#[test]
fn an_allowed_file_is_committed_and_reported_and_a_new_mark_allows_nothing() {
    let mut place = TestRepository::new();
    place.allow_secrets = ["fixtures/", "*.pem"].map(|glob| glob.parse().unwrap()).to_vec();
    let base = place.survey();
    place.write("tests/fixtures/a.toml", token('A'));
    place.write("marked.toml", token('B').replace('\n', " # refrain:allow-secret\n"));
    place.write("half.toml", format!("{}# refrain:allow-secret\n", token('C')));
    place.write(".env", token('D').replace('\n', " # refrain:allow-secret\n"));
    let report = place.commit(&base, 1);
    let commit = made(&report);
    assert_eq!(place.committed("HEAD"), ["A tests/fixtures/a.toml"]);
    assert_eq!(told(&report.exposed), ["tests/fixtures/a.toml Some(1) allowed"]);
    assert!(report.exposed.iter().all(|it| it.commit == commit));
    assert_eq!(
        left_out(&report),
        [
            ".env: it looks like a file of secrets for an environment",
            "half.toml: line 1 looks like a GitHub token",
            "marked.toml: line 1 looks like a GitHub token; its allow mark is newer than the loop, so it does not count",
        ]
    );
    assert_eq!(
        report.exposed[0].to_string(),
        format!("tests/fixtures/a.toml of commit {}: line 1 looks like a GitHub token", commit.short())
    );

    // The same rules apply to the agent's own commits.
    place.write("tests/fixtures/b.toml", token('E'));
    place.git(&["add", "tests"]);
    place.git(&["commit", "-qm", "The agent's"]);
    let report = place.commit_since(&base, report.head.as_ref(), 2).unwrap();
    assert_eq!(told(&report.exposed), ["tests/fixtures/b.toml Some(1) allowed"]);
}

#[test]
fn a_mark_counts_where_the_base_has_its_line() {
    let place = TestRepository::new();
    let marked = |last| token(last).replace('\n', " # refrain:allow-secret\n");
    place.write("old.toml", marked('A'));
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Before the loop"]);
    let base = place.survey();
    // The agent removes the line and adds it again: the user allowed this one, but no other, nor the same one
    // elsewhere.
    place.git(&["rm", "-q", "old.toml"]);
    place.git(&["commit", "-qm", "The agent's"]);
    place.write("old.toml", marked('A'));
    place.write("copy.toml", marked('A'));
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(place.committed("HEAD"), ["A old.toml"]);
    assert!(left_out(&report)[0].starts_with("copy.toml: line 1 looks like a GitHub token; its allow mark"));
    place.write("old.toml", format!("{}{}", marked('A'), marked('B')));
    let report = place.commit_since(&base, report.head.as_ref(), 2).unwrap();
    assert!(left_out(&report).iter().any(|it| it.starts_with("old.toml: line 2 looks like a GitHub token;")));
}

#[test]
fn a_path_that_is_a_secret_is_omitted_and_reported() {
    let place = TestRepository::new();
    let base = place.survey();
    let name = token('A').trim_end().replace("token = ", "").replace('"', "");
    place.write(format!("{name}.txt"), "nothing\n");
    place.write(format!("{name}/a.txt"), "nothing\n");
    place.write(format!("{name}.large"), "x".repeat(2 << 20));
    place.write("fine.txt", "nothing\n");
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(place.committed("HEAD"), ["A fine.txt"]);
    let names = [format!("{name}.large"), format!("{name}.txt"), format!("{name}/a.txt")];
    assert_eq!(left_out(&report), names.map(|name| format!("{name}: it looks like a GitHub token")));
    // A repository with that name, which the agent commits itself.
    let sub = format!("{name}-sub");
    place.git(&["init", "-q", &sub]);
    place.git(&["-C", &sub, "commit", "-q", "--allow-empty", "-m", "inside"]);
    place.git(&["add", &sub]);
    place.git(&["commit", "-qm", "The agent's"]);
    let report = place.commit_since(&base, report.head.as_ref(), 2).unwrap();
    assert_eq!(told(&report.exposed), [format!("{sub} None")]);
}
