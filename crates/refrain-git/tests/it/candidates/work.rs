//! What counts as work: the content of the worktree, by its digest.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use refrain_core::work::WorkDigest;
use refrain_git::{Cancel, GitError, WorkSnapshot};
use rustix::fs::{Timespec, Timestamps};

use crate::place::TestRepository;

/// A time limit that no test reaches.
fn late() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

fn look(snapshot: &mut WorkSnapshot, place: &TestRepository) -> WorkDigest {
    snapshot.look(Some(&place.repository()), place.root(), (late(), None)).unwrap()
}

/// A repository with every special kind of file, older than the clock tick.
fn place() -> TestRepository {
    let place = TestRepository::new();
    place.write(".gitignore", "*.log\nbuild/\n");
    place.write("mine.txt", "dirty from the start\n");
    place.write("noise.log", "1\n");
    place.write("build/out/a.o", "object\n");
    place.write("logs/today.log", "ignored, and nothing else in its folder\n");
    place.write("src/a.rs", "fn a() { /* mine */ }\n");
    place.write("nested/one.txt", "1\n");
    place.git(&["init", "-q", "nested"]);
    place.write(".refrain/a/state.md", "notes\n");
    place
}

/// A change of the worktree, and whether it counts as work.
type Case = (&'static str, bool, fn(&TestRepository));

fn touch(place: &TestRepository, path: &str) {
    let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, place.path(path), &times, rustix::fs::AtFlags::empty()).unwrap();
}

const CASES: &[Case] = &[
    ("nothing", false, |_| ()),
    ("an empty commit", false, |place| drop(place.git(&["commit", "-q", "--allow-empty", "-m", "x"]))),
    ("a commit of what was there", false, |place| drop(place.git(&["commit", "-qam", "x"]))),
    ("something staged", false, |place| drop(place.git(&["add", "mine.txt"]))),
    ("a touch of a clean file", false, |place| touch(place, "README.md")),
    ("a touch of a dirty file", false, |place| touch(place, "src/a.rs")),
    ("a touch of a new file", false, |place| touch(place, "mine.txt")),
    ("the same content again", false, |place| place.write("mine.txt", "dirty from the start\n")),
    ("an ignored file", false, |place| place.write("noise.log", "2\n")),
    ("a new ignored file", false, |place| place.write("more.log", "2\n")),
    ("a new ignored file in a folder", false, |place| place.write("src/more.log", "2\n")),
    ("what is built", false, |place| place.write("build/out/b.o", "2\n")),
    ("a new empty folder", false, |place| fs::create_dir(place.path("empty")).unwrap()),
    ("Refrain's own notes", false, |place| place.write(".refrain/a/state.md", "more notes\n")),
    ("a mirror of the loop", false, |place| place.write(".ralph_state.json", "{}\n")),
    ("git's own files", false, |place| place.write(".git/description", "x\n")),
    ("git's own files of a nested one", false, |place| place.write("nested/.git/description", "x\n")),
    ("a clean file", true, |place| place.write("src/b.rs", "fn b() { done() }\n")),
    ("a file that was dirty before", true, |place| place.write("src/a.rs", "fn a() { done() }\n")),
    ("a file that was new before", true, |place| place.write("mine.txt", "more\n")),
    ("the same size", true, |place| place.write("mine.txt", "DIRTY from the start\n")),
    ("a file that is gone", true, |place| fs::remove_file(place.path("README.md")).unwrap()),
    ("a new file that is gone", true, |place| fs::remove_file(place.path("mine.txt")).unwrap()),
    ("a folder that is gone", true, |place| fs::remove_dir_all(place.path("src")).unwrap()),
    ("a new file", true, |place| place.write("new.rs", "new\n")),
    ("a new file in a new folder", true, |place| place.write("a/b/c.rs", "new\n")),
    ("a new file where all was ignored", true, |place| place.write("logs/notes.md", "new\n")),
    ("a commit of a new file", true, |place| {
        place.write("new.rs", "new\n");
        place.git(&["add", "new.rs"]);
        place.git(&["commit", "-qm", "x"]);
    }),
    ("a file in a nested repository", true, |place| place.write("nested/one.txt", "2\n")),
    ("a new file in a nested repository", true, |place| place.write("nested/a/two.log", "2\n")),
    ("a file that is a program now", true, |place| {
        fs::set_permissions(place.path("README.md"), fs::Permissions::from_mode(0o755)).unwrap();
    }),
    ("a link where a file was", true, |place| {
        fs::remove_file(place.path("README.md")).unwrap();
        symlink("src/a.rs", place.path("README.md")).unwrap();
    }),
    ("a folder where a file was", true, |place| {
        fs::remove_file(place.path("README.md")).unwrap();
        place.write("README.md/inside", "x\n");
    }),
    ("another rule of what is ignored", true, |place| place.write(".gitignore", "build/\n")),
];

#[test]
fn work_is_the_content_of_the_worktree_and_nothing_else() {
    for (what, is_work, happens) in CASES {
        let place = place();
        let mut known = WorkSnapshot::default();
        let before = look(&mut known, &place);
        assert_eq!(look(&mut known, &place), before, "{what}: twice the same");
        happens(&place);
        let after = look(&mut known, &place);
        assert_eq!(after != before, *is_work, "{what}");
        assert_eq!(after, look(&mut WorkSnapshot::default(), &place), "{what}: seen for the first time");
    }
}

#[test]
fn committing_does_not_change_the_work_snapshot() {
    let place = TestRepository::new();
    place.write("new.rs", "new\n");
    place.write("src/a.rs", "fn a() { done() }\n");
    let before = look(&mut WorkSnapshot::default(), &place);
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "x"]);
    assert_eq!(look(&mut WorkSnapshot::default(), &place), before);
}

#[test]
fn work_that_is_taken_back_is_the_work_before() {
    let place = place();
    let mut known = WorkSnapshot::default();
    let before = look(&mut known, &place);
    place.write("src/b.rs", "fn b() { done() }\n");
    assert_ne!(look(&mut known, &place), before);
    place.git(&["checkout", "-q", "src/b.rs"]);
    assert_eq!(look(&mut known, &place), before);
}

#[test]
fn a_large_file_is_read_only_when_it_looks_different() {
    let place = TestRepository::new();
    let large = vec![b'x'; 9 << 20];
    place.write("large.bin", &large);
    let mut known = WorkSnapshot::default();
    let before = look(&mut known, &place);
    assert_eq!(look(&mut known, &place), before);
    place.write("large.bin", [&large[1..], b"y"].concat());
    let after = look(&mut known, &place);
    assert_ne!(after, before);
    touch(&place, "large.bin");
    assert_eq!(look(&mut known, &place), after, "it was read, and is the same");
}

#[test]
fn a_file_that_takes_too_long_to_read_ends_the_look() {
    let place = TestRepository::new();
    place.write("large.bin", "x");
    let mut known = WorkSnapshot::default();
    look(&mut known, &place);
    // It takes no room on disk.
    fs::File::create(place.path("large.bin")).unwrap().set_len(1 << 42).unwrap();
    let until = Instant::now() + Duration::from_millis(200);
    let seen = known.look(Some(&place.repository()), place.root(), (until, None));
    assert!(matches!(seen, Err(GitError::Cancelled)), "{seen:?}");
}

#[test]
fn the_first_touch_of_a_large_file_is_work_and_the_next_is_not() {
    let place = TestRepository::new();
    place.write("large.bin", vec![b'x'; 9 << 20]);
    let mut known = WorkSnapshot::default();
    let before = look(&mut known, &place);
    touch(&place, "large.bin");
    let touched = look(&mut known, &place);
    assert_ne!(touched, before, "it was not read before");
    place.write("large.bin", vec![b'x'; 9 << 20]);
    assert_eq!(look(&mut known, &place), touched, "it was read, and is the same");
}

#[test]
fn without_a_repository_every_file_counts() {
    let place = place();
    fs::remove_dir_all(place.path(".git")).unwrap();
    fs::remove_dir_all(place.path("nested/.git")).unwrap();
    let mut known = WorkSnapshot::default();
    let mut look = || known.look(None, place.root(), (late(), None)).unwrap();
    let mut before = look();
    let happens: &[(&str, bool, &dyn Fn())] = &[
        ("nothing", false, &|| ()),
        ("a touch", false, &|| touch(&place, "mine.txt")),
        ("Refrain's own notes", false, &|| place.write(".refrain/a/state.md", "more\n")),
        ("a file", true, &|| place.write("mine.txt", "more\n")),
        ("a new file", true, &|| place.write("x/y/z", "more\n")),
        ("what a rule would ignore", true, &|| place.write("noise.log", "2\n")),
        ("one that is gone", true, &|| fs::remove_file(place.path("mine.txt")).unwrap()),
    ];
    for (what, is_work, happens) in happens {
        happens();
        let after = look();
        assert_eq!(after != before, *is_work, "{what}");
        before = after;
    }
}

#[test]
fn a_look_that_takes_too_long_is_given_up_with_and_without_git() {
    let place = place();
    for repository in [Some(place.repository()), None] {
        let seen = WorkSnapshot::default().look(repository.as_ref(), place.root(), (Instant::now(), None));
        assert!(matches!(seen, Err(GitError::Cancelled)), "{seen:?}");
    }
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    let seen = WorkSnapshot::default().look(None, place.root(), (late(), Some(&cancel)));
    assert!(matches!(seen, Err(GitError::Cancelled)), "{seen:?}");
}
