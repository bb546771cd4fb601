//! Which changes are committed and which are not, in an ordinary repository.

use refrain_core::git::SkipReason;
use rstest::rstest;

use crate::place::{TestRepository, left_out, made, skipped};

#[test]
fn changes_of_the_loop_are_committed_and_those_of_the_person_are_not() {
    let place = TestRepository::new();
    place.write("src/b.rs", "fn b() { /* mine */ }\n");
    place.write("staged.rs", "staged\n");
    place.git(&["add", "staged.rs"]);
    place.write("notes.txt", "mine\n");
    let base = place.survey();
    assert_eq!(base.branch.as_deref(), Some("main"));
    assert_eq!(
        base.dirty.iter().map(|dirty| dirty.path.as_str()).collect::<Vec<_>>(),
        ["src/b.rs", "staged.rs", "notes.txt"]
    );

    place.write("src/a.rs", "fn a() { done() }\n");
    place.write("src/new.rs", "new\n");
    place.git(&["rm", "-q", "README.md"]);
    let before = place.snapshot(&["src/b.rs", "staged.rs", "notes.txt"]);
    let report = place.commit(&base, 1);
    let commit = made(&report);

    assert_eq!(place.snapshot(&["src/b.rs", "staged.rs", "notes.txt"]), before);
    assert_eq!(place.committed("HEAD"), ["D README.md", "M src/a.rs", "A src/new.rs"]);
    assert_eq!(place.status(), [" M src/b.rs", "A  staged.rs", "?? notes.txt"]);
    assert_eq!(place.head(), commit);
    assert_eq!(report.head.as_ref(), Some(&commit));
    assert!(report.left_out.is_empty() && report.by_agent.is_empty() && report.lost.is_none());
    let message = place.git(&["log", "-1", "--format=%an <%ae>%n%B"]);
    let trailers = "Refrain-Loop: the-loop\nRefrain-Iteration: 1";
    assert_eq!(message.trim(), format!("Test <test@localhost>\nloop: iteration 1\n\n{trailers}"));
    assert!(place.git(&["reflog", "-1"]).contains("commit: refrain the-loop, iteration 1"));

    let again = place.commit_since(&base, Some(&commit), 2).unwrap();
    assert_eq!(skipped(&again), SkipReason::Nothing);
}

#[test]
fn changes_of_the_person_that_the_agent_removed_are_reported() {
    let place = TestRepository::new();
    place.write("src/a.rs", "mine\n");
    place.write("notes.txt", "mine\n");
    place.write("kept.txt", "mine\n");
    let base = place.survey();
    place.git(&["checkout", "-q", "src/a.rs"]);
    std::fs::remove_file(place.path("notes.txt")).unwrap();
    let told = "it was changed before the loop began, and by the agent since";
    let report = place.commit(&base, 1);
    assert_eq!(left_out(&report), [format!("notes.txt: {told}"), format!("src/a.rs: {told}")]);
}

#[test]
fn a_file_that_was_dirty_before_is_not_committed() {
    let place = TestRepository::new();
    place.write("src/a.rs", "mine\n");
    let base = place.survey();
    place.write("src/a.rs", "mine and the agent's\n");
    place.write("src/b.rs", "the agent's\n");
    let report = place.commit(&base, 1);
    assert_eq!(place.committed("HEAD"), ["M src/b.rs"]);
    assert_eq!(left_out(&report), ["src/a.rs: it was changed before the loop began, and by the agent since"]);
    assert_eq!(place.status(), [" M src/a.rs"]);
}

#[test]
fn installed_packages_are_committed_only_if_git_tracks_some_of_them() {
    let place = TestRepository::new();
    place.write("action/node_modules/a/index.js", "kept in git\n");
    place.git(&["add", "--all"]);
    place.git(&["commit", "-qm", "Packages that are kept in git"]);
    let base = place.survey();
    for path in ["web/package.json", "web/node_modules/a/index.js", ".venv/pyvenv.cfg", ".venv/bin/python"] {
        place.write(path, "new\n");
    }
    place.write("action/node_modules/b/index.js", "new\n");
    let report = place.commit(&base, 1);
    assert_eq!(place.committed("HEAD"), ["A action/node_modules/b/index.js", "A web/package.json"]);
    assert_eq!(left_out(&report), [""; 0]);
}

#[rstest]
#[case("sha1", 20)]
#[case("sha256", 32)]
fn the_index_has_its_checksum_afterwards(#[case] format: &str, #[case] length: usize) {
    let place = TestRepository::unborn(&["--object-format", format]);
    let base = place.survey();
    let mut last = None;
    for iteration in 1..4 {
        place.write("a.rs", format!("{iteration}\n"));
        last = Some(made(&place.commit_since(&base, last.as_ref(), iteration).unwrap()));
        let index = std::fs::read(place.path(".git/index")).unwrap();
        assert_ne!(index[index.len() - length..], vec![0; length]);
        // It verifies the checksum, which no other command does.
        place.git(&["fsck", "--strict"]);
        assert!(place.status().is_empty());
    }
}

#[test]
fn our_trailers_join_those_of_the_message() {
    let mut place = TestRepository::new();
    let base = place.survey();
    let ours = "Refrain-Loop: the-loop\nRefrain-Iteration: 1";
    for (message, expected) in [
        ("one line", format!("one line\n\n{ours}")),
        ("Signed-off-by: only a subject", format!("Signed-off-by: only a subject\n\n{ours}")),
        (
            "subject\n\nA body: with a colon, and more\nthan that.",
            format!("subject\n\nA body: with a colon, and more\nthan that.\n\n{ours}"),
        ),
        ("subject\n\nSigned-off-by: A <a@b>", format!("subject\n\nSigned-off-by: A <a@b>\n{ours}")),
        (
            "subject\n\n---\nno divider\n\nRef: 1\nRefrain-Loop: other\n",
            format!("subject\n\n---\nno divider\n\nRef: 1\nRefrain-Loop: other\n{ours}"),
        ),
    ] {
        place.message = message;
        place.git(&["reset", "-q", "--hard", base.head.as_ref().unwrap().as_str()]);
        place.write("src/a.rs", message);
        made(&place.commit(&base, 1));
        assert_eq!(place.git(&["log", "-1", "--format=%B"]).trim(), expected);
    }
}
