//! The user's hooks run and can reject.

use camino::Utf8Path;
use std::time::{Duration, Instant};

use refrain_core::git::SkipReason;
use refrain_git::{Cancel, GitError};
use rstest::rstest;

use crate::place::{TestRepository, made, skipped};

#[rstest]
#[case("pre-commit")]
#[case("commit-msg")]
#[case("prepare-commit-msg")]
fn a_hook_that_says_no_is_quoted(#[case] name: &str) {
    let place = TestRepository::new();
    place.hook(name, "echo first; printf 'no \\033[31mway\\033[0m\\n' >&2; exit 1");
    place.write("notes.txt", "mine\n");
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let before = (place.snapshot(&["notes.txt"]), place.status());
    let SkipReason::Hook { said } = skipped(&place.commit(&base, 1)) else { panic!("another reason") };
    assert!(said.contains("no way") && !said.contains('\u{1b}'), "{said:?}");
    assert_eq!((place.snapshot(&["notes.txt"]), place.status()), before);
    assert!(!place.git_path("index.lock").exists());
}

#[test]
fn the_end_of_long_hook_output_is_kept() {
    let place = TestRepository::new();
    place.hook("pre-commit", "yes no | head -c 100000 >&2; echo end >&2; exit 1");
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let SkipReason::Hook { said } = skipped(&place.commit(&base, 1)) else { panic!("another reason") };
    assert!(said.ends_with("end") && said.len() <= 2048, "{}", said.len());
}

#[test]
fn changes_of_a_hook_to_the_index_are_committed() {
    let place = TestRepository::new();
    place.hook("pre-commit", "echo formatted >> src/a.rs; git add src/a.rs");
    place.hook("commit-msg", "echo 'Reviewed-by: nobody' >> \"$1\"");
    place.write("staged.rs", "mine\n");
    place.git(&["add", "staged.rs"]);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let before = place.snapshot(&["staged.rs"]);
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(place.git(&["show", "HEAD:src/a.rs"]), "changed\nformatted");
    assert_eq!(place.status(), ["A  staged.rs"]);
    assert_eq!(place.read("staged.rs"), "mine\n");
    assert_ne!(place.snapshot(&["staged.rs"]), before, "the hook wrote src/a.rs");
    let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
    assert!(
        matches!(report.result, refrain_core::git::CommitResult::Made { tree: ref told, .. } if told.as_str() == tree)
    );
    assert!(place.git(&["log", "-1", "--format=%B"]).contains("Reviewed-by: nobody"));
}

#[test]
fn a_hook_that_takes_everything_back_leaves_nothing_to_commit() {
    let place = TestRepository::new();
    let base = place.survey();
    place.hook("pre-commit", "git read-tree HEAD; exit 1");
    place.write("src/a.rs", "changed\n");
    assert_eq!(skipped(&place.commit(&base, 1)), SkipReason::Nothing);
}

#[test]
fn hooks_of_another_folder_run_too_as_soon_as_they_are_set_up() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write("src/a.rs", "one\n");
    let repository = place.repository();
    let first = place.commit_with(&repository, &base, base.head.as_ref(), 1).unwrap();
    place.write("hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    place.make_executable("hooks/pre-commit");
    place.git(&["config", "core.hooksPath", "hooks"]);
    let second = place.commit_with(&repository, &base, first.head.as_ref(), 2).unwrap();
    assert!(matches!(skipped(&second), SkipReason::Hook { .. }));
}

/// Commits a change, and cancels as soon as the hook has reported that it runs.
fn cancel_commit(place: &mut TestRepository, told: &Utf8Path) {
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    let cancel = Cancel::new().unwrap();
    place.cancel = Some(cancel.clone());
    std::thread::scope(|scope| {
        let place = &*place;
        let commit = scope.spawn(|| place.try_commit(&base, 1));
        while !told.exists() {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert!(matches!(commit.join().unwrap(), Err(GitError::Cancelled)));
    });
}

#[test]
fn a_hanging_hook_is_ended_with_its_group_on_cancel() {
    let mut place = TestRepository::new();
    place.git(&["config", "alias.nothing", "version"]);
    let told = place.top().join("told");
    place.hook(
        "pre-commit",
        &format!("echo $$ > {told}.part; mv {told}.part {told}; cat /dev/zero > /dev/null"),
    );
    cancel_commit(&mut place, &told);
    let pid = std::fs::read_to_string(&told).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // It is killed, but not waited for: on a busy machine that takes a moment.
    let until = Instant::now() + Duration::from_secs(30);
    while !(stat().is_empty() || stat().contains(") Z")) {
        assert!(Instant::now() < until, "{}", stat());
        std::thread::yield_now();
    }
    assert!(!place.git_path("index.lock").exists());
    assert_eq!(place.status(), [" M src/a.rs"]);
}

#[test]
fn a_git_that_was_ended_leaves_no_lock_of_a_branch() {
    let mut place = TestRepository::new();
    let told = place.top().join("told");
    place.hook(
        "reference-transaction",
        &format!(
            "test $1 = prepared || exit 0; echo $$ > {told}.part; mv {told}.part {told}; exec sleep 1000"
        ),
    );
    cancel_commit(&mut place, &told);
    let left: Vec<_> = ["HEAD.lock", "refs/heads/main.lock"]
        .into_iter()
        .filter(|lock| place.git_path(lock).exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn processes_that_a_hook_left_do_not_block_the_commit() {
    let place = TestRepository::new();
    place.hook("post-commit", "cat /dev/zero > /dev/null & echo left");
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    made(&place.commit(&base, 1));
    assert!(place.status().is_empty());
}

#[test]
fn a_signature_that_cannot_be_made_forbids_the_commit() {
    let place = TestRepository::new();
    place.git(&["config", "commit.gpgSign", "true"]);
    place.git(&["config", "gpg.program", "false"]);
    let base = place.survey();
    place.write("src/a.rs", "changed\n");
    assert!(matches!(skipped(&place.commit(&base, 1)), SkipReason::Failed { .. }));
    place.git(&["config", "commit.gpgSign", "false"]);
    made(&place.commit(&base, 1));
}

/// A place with many changed, staged and new files of the user, and a suspected secret of the agent.
fn busy() -> TestRepository {
    let place = TestRepository::new();
    place.write("src/b.rs", "mine\n");
    place.write("README.md", "staged\n");
    place.git(&["add", "README.md"]);
    place.write("README.md", "staged, and mine\n");
    place.write("notes.txt", "mine\n");
    place
}

const PERSONS: &[&str] = &["src/b.rs", "README.md", "notes.txt"];

#[rstest]
#[case("pre-commit", "git add -u", &["README.md", "src/b.rs"])]
#[case("pre-commit", "git add -A", &["README.md", "large.bin", "notes.txt", "src/b.rs"])]
#[case("pre-commit", "git commit-tree HEAD^{tree} -m x >/dev/null; git add -u; echo formatted >> src/a.rs; git add src/a.rs", &["README.md", "src/b.rs"])]
fn a_commit_with_a_persons_changes_added_by_a_hook_is_undone(
    #[case] name: &str,
    #[case] script: &str,
    #[case] expected: &[&str],
) {
    let place = busy();
    let base = place.survey();
    place.hook(name, script);
    place.write("src/a.rs", "changed\n");
    place.write("large.bin", vec![0; 2 << 20]);
    let before = (place.snapshot(PERSONS), place.status(), place.head());
    let report = place.commit(&base, 1);
    let SkipReason::HookTook { paths } = skipped(&report) else { panic!("{report:?}") };
    assert_eq!(paths.iter().map(|path| path.as_str()).collect::<Vec<_>>(), expected);
    assert_eq!(report.head.as_ref(), Some(&before.2));
    if !script.contains("formatted") {
        assert_eq!((place.snapshot(PERSONS), place.status(), place.head()), before);
    }
    assert_eq!(place.head(), before.2);
    assert!(!place.git_path("index.lock").exists());

    // Once the hook is fixed, the held back changes are committed.
    place.hook(name, "true");
    made(&place.commit(&base, 2));
    assert_eq!(place.committed("HEAD"), ["M src/a.rs"]);
}

#[test]
fn the_first_commit_of_a_branch_is_undone_too() {
    let place = TestRepository::unborn(&[]);
    place.write("mine.txt", "mine\n");
    let base = place.survey();
    place.hook("pre-commit", "git add -A");
    place.write("a.rs", "the loop's\n");
    assert!(matches!(skipped(&place.commit(&base, 1)), SkipReason::HookTook { .. }));
    assert_eq!(place.status(), ["?? a.rs", "?? mine.txt"]);
    assert_eq!(place.git(&["for-each-ref"]), "");
}

#[test]
fn a_commit_that_cannot_be_undone_is_reported() {
    let place = busy();
    let base = place.survey();
    place.hook("pre-commit", "git add -u");
    // A hook builds on it at once.
    place.hook(
        "post-commit",
        "rm .git/hooks/post-commit .git/hooks/pre-commit; git commit -q --allow-empty -m more",
    );
    place.write("src/a.rs", "changed\n");
    let before = place.snapshot(PERSONS);
    let report = place.commit(&base, 1);
    made(&report);
    assert_eq!(report.taken.iter().map(|path| path.as_str()).collect::<Vec<_>>(), ["README.md", "src/b.rs"]);
    assert_eq!(place.git(&["log", "--format=%s"]), "more\nloop: iteration 1\nBegin");
    assert_eq!(place.read("README.md"), "staged, and mine\n");
    drop(before);
}

#[test]
fn files_that_a_hook_adds_are_no_conflict() {
    let place = busy();
    let base = place.survey();
    place.hook("pre-commit", "echo 2 > VERSION; git add VERSION");
    place.write("src/a.rs", "changed\n");
    made(&place.commit(&base, 1));
    assert_eq!(place.committed("HEAD"), ["A VERSION", "M src/a.rs"]);
}

#[test]
fn a_commit_that_a_crash_left_unlooked_at_is_undone_as_well() {
    let place = busy();
    let base = place.survey();
    place.hook("pre-commit", "git add -u");
    place.write("src/a.rs", "changed\n");
    let before = (place.snapshot(PERSONS), place.status(), place.head());
    assert!(matches!(skipped(&place.commit(&base, 1)), SkipReason::HookTook { .. }));
    // As if it had been killed before the undo.
    let undone = place.git(&["rev-parse", "main@{1}"]);
    place.git(&["update-ref", "refs/heads/main", &undone]);
    let report = place.commit(&base, 1);
    assert!(matches!(skipped(&report), SkipReason::HookTook { .. }));
    assert_eq!((place.snapshot(PERSONS), place.status(), place.head()), before);
    assert_eq!(report.head, Some(before.2));
}
