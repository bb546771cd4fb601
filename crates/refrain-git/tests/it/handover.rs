//! Handing a wave over to the user: their branch and their files follow, and their own changes stay byte for byte.

use std::fs;
use std::os::unix::fs::symlink;

use refrain_core::git::{Oid, Operation};
use refrain_git::{Cancel, GitError, HandOverRequest, HandedOver};
use rstest::rstest;

use crate::place::{TestRepository, id};

/// A repository, and a wave to hand over.
struct Waiting {
    place: TestRepository,
    begin: Oid,
    wave: Oid,
    is_from_sandbox: bool,
}

impl Waiting {
    /// The wave changes `src/a.rs`, adds `new/file.rs`, deletes `src/b.rs`, and makes `tool` executable.
    fn new() -> Self {
        Self::of(|place| {
            place.write("src/a.rs", "fn a() { wave() }\n");
            place.write("new/file.rs", "new\n".repeat(100));
            place.make_executable("tool");
            fs::remove_file(place.path("src/b.rs")).unwrap();
        })
    }

    fn of(wave: impl FnOnce(&TestRepository)) -> Self {
        let place = TestRepository::new();
        place.write("tool", "#!/bin/sh\n");
        place.write("other", "other\n");
        place.write(".gitignore", "*.log\n");
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", "More"]);
        let begin = place.head();
        place.git(&["checkout", "-q", "--detach"]);
        wave(&place);
        place.git(&["add", "-A", "-f"]);
        place.git(&["commit", "-qm", "Wave"]);
        let wave = place.head();
        place.git(&["checkout", "-q", "main"]);
        Self { place, begin, wave, is_from_sandbox: false }
    }

    fn try_hand_over(&self, branch: Option<&str>) -> Result<HandedOver, GitError> {
        self.place.repository().hand_over(HandOverRequest {
            id: &id(),
            branch,
            expected: &self.begin,
            to: &self.wave,
            why: "refrain: wave 1",
            is_from_sandbox: self.is_from_sandbox,
            index: &self.place.top().join("loop/index"),
            cancel: self.place.cancel.as_ref(),
        })
    }

    #[track_caller]
    fn hand_over(&self) -> HandedOver {
        self.try_hand_over(Some("main")).unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    fn in_the_way(&self) -> Vec<String> {
        let before = self.everything();
        let paths = match self.hand_over() {
            HandedOver::InTheWay { paths } => paths.iter().map(ToString::to_string).collect(),
            other => panic!("{other:?}"),
        };
        assert_eq!(self.everything(), before, "nothing was touched");
        assert!(!self.lock().exists());
        paths
    }

    fn lock(&self) -> camino::Utf8PathBuf {
        self.place.git_path("index.lock")
    }

    fn note(&self) -> camino::Utf8PathBuf {
        self.place.top().join("loop/index.handover")
    }

    fn everything(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        (self.place.snapshot(&[""]), self.place.status(), self.place.head())
    }

    /// The state for a user without changes of their own.
    #[track_caller]
    fn is_done(&self) {
        assert_eq!(self.place.status(), [""; 0], "all as the branch has it");
        assert_eq!(self.place.head(), self.wave);
        assert!(!self.lock().exists() && !self.note().exists());
    }
}

#[test]
fn the_branch_and_the_files_follow() {
    let it = Waiting::new();
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert_eq!(it.place.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(it.place.git(&["log", "-g", "-1", "--format=%gs", "main"]), "refrain: wave 1");
    assert_eq!(it.hand_over(), HandedOver::Done, "it may be repeated");
    it.place.write("more", "more\n");
    it.place.git(&["add", "."]);
    it.place.git(&["commit", "-qm", "Mine, on top"]);
    assert_eq!(it.hand_over(), HandedOver::Done, "the person's commit has it");
}

#[test]
fn own_changes_of_the_person_stay_byte_for_byte() {
    let it = Waiting::new();
    let place = &it.place;
    place.write("README.md", "# Mine\n");
    place.write("other", "staged\n");
    place.git(&["add", "other"]);
    place.write("other", "staged, and more\n");
    place.write("src/mine.rs", "mine\n");
    place.write("new/mine.rs", "mine too\n");
    place.write("build.log", "ignored\n");
    place.write("staged.rs", "staged\n");
    place.git(&["add", "staged.rs"]);
    let status = place.status();
    let staged = |place: &TestRepository| place.git(&["diff", "--cached"]);
    let before = staged(place);
    assert_eq!(it.hand_over(), HandedOver::Done);
    assert_eq!((place.status(), staged(place)), (status, before));
    let kept = [
        ("README.md", "# Mine\n"),
        ("other", "staged, and more\n"),
        ("new/mine.rs", "mine too\n"),
        ("build.log", "ignored\n"),
    ];
    for (path, text) in kept {
        assert_eq!(place.read(path), text);
    }
    assert_eq!(place.read("src/a.rs"), "fn a() { wave() }\n");
}

#[rstest]
#[case::changed("src/a.rs", "mine\n", false, "src/a.rs")]
#[case::staged("src/a.rs", "mine\n", true, "src/a.rs")]
#[case::to_go("src/b.rs", "mine\n", false, "src/b.rs")]
#[case::new("new/file.rs", "mine\n", false, "new/file.rs")]
#[case::new_and_staged("new/file.rs", "mine\n", true, "new/file.rs")]
#[case::above("new", "a file\n", false, "new")]
fn files_that_would_be_overwritten_are_named(
    #[case] path: &str,
    #[case] text: &str,
    #[case] staged: bool,
    #[case] named: &str,
) {
    let it = Waiting::new();
    it.place.write(path, text);
    if staged {
        it.place.git(&["add", path]);
    }
    assert_eq!(it.in_the_way(), [named]);
    // The user moves the file away, and the hand-over continues.
    fs::remove_file(it.place.path(path)).unwrap();
    it.place.git(&["reset", "-q", "--hard"]);
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
}

#[test]
fn every_file_in_the_way_is_named_at_once() {
    let it = Waiting::new();
    it.place.write("src/a.rs", "mine\n");
    it.place.write("new/file.rs/deep/x.log", "mine, and ignored\n");
    it.place.write("new/file.rs/y", "mine\n");
    fs::remove_file(it.place.path("tool")).unwrap();
    assert_eq!(it.in_the_way(), ["new/file.rs/deep/x.log", "new/file.rs/y", "src/a.rs", "tool"]);
}

#[test]
fn a_file_staged_and_restored_in_the_worktree_is_in_the_way_too() {
    let it = Waiting::new();
    it.place.write("src/a.rs", "staged\n");
    it.place.git(&["add", "src/a.rs"]);
    it.place.write("src/a.rs", "fn a() {}\n");
    assert_eq!(it.in_the_way(), ["src/a.rs"]);
}

#[test]
fn an_ignored_file_is_the_persons_as_well() {
    let it = Waiting::of(|place| place.write("run.log", "the wave's\n"));
    it.place.write("run.log", "mine\n");
    assert_eq!(it.in_the_way(), ["run.log"]);
}

#[test]
fn a_file_that_already_has_the_new_content_is_not_in_the_way() {
    let it = Waiting::new();
    it.place.write("src/a.rs", "fn a() { wave() }\n");
    it.place.git(&["add", "src/a.rs"]);
    it.place.write("new/file.rs", "new\n".repeat(100));
    fs::remove_file(it.place.path("src/b.rs")).unwrap();
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
}

/// The index of a hand-over that was killed and finished later knows no time of the files that were there already.
#[test]
fn a_file_with_only_another_time_is_not_in_the_way() {
    let it = Waiting::new();
    let file = fs::File::options().append(true).open(it.place.path("src/a.rs")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
}

#[test]
fn a_folder_becomes_a_file_and_a_file_a_folder() {
    let it = Waiting::of(|place| {
        fs::remove_dir_all(place.path("src")).unwrap();
        place.write("src", "a file now\n");
        fs::remove_file(place.path("tool")).unwrap();
        place.write("tool/inside", "a folder now\n");
        fs::remove_file(place.path("other")).unwrap();
        symlink("README.md", place.path("other")).unwrap();
    });
    it.place.write("src/mine", "mine\n");
    assert_eq!(it.in_the_way(), ["src/mine"]);
    fs::remove_file(it.place.path("src/mine")).unwrap();
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
}

#[test]
fn a_handover_to_a_moved_branch_is_refused_and_reported() {
    let it = Waiting::new();
    let place = &it.place;
    place.write("mine", "mine\n");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "Mine"]);
    let head = place.head();
    assert_eq!(it.hand_over(), HandedOver::Diverged { head: head.clone() });
    place.git(&["switch", "-qc", "topic"]);
    assert_eq!(it.hand_over(), HandedOver::OtherBranch { now: Some("topic".to_owned()) });
    place.git(&["checkout", "-q", "--detach"]);
    assert_eq!(it.hand_over(), HandedOver::OtherBranch { now: None });
    assert_eq!(place.head(), head);
}

#[test]
fn a_detached_head_moves_and_no_branch_does() {
    let it = Waiting::new();
    it.place.git(&["checkout", "-q", "--detach"]);
    assert_eq!(it.try_hand_over(None).unwrap(), HandedOver::Done);
    assert_eq!(it.place.git(&["rev-parse", "main"]), it.begin.as_str());
    it.is_done();
}

#[test]
fn a_branch_that_another_worktree_has_is_left() {
    let it = Waiting::new();
    let other = it.place.top().join("other");
    it.place.git(&["worktree", "add", "-q", "--force", other.as_str(), "main"]);
    assert_eq!(it.hand_over(), HandedOver::CheckedOut { by: other });
}

#[test]
fn nothing_is_done_in_the_middle_of_something() {
    let it = Waiting::new();
    it.place.write_at(it.lock(), "somebody's");
    assert_eq!(it.hand_over(), HandedOver::IndexLocked);
    assert!(it.lock().exists());
    fs::remove_file(it.lock()).unwrap();
    it.place.write_at(it.place.git_path("MERGE_HEAD"), format!("{}\n", it.wave));
    assert_eq!(it.hand_over(), HandedOver::InProgress(Operation::Merge));
    fs::remove_file(it.place.git_path("MERGE_HEAD")).unwrap();
    // Conflicts left by a stash.
    it.place.write("other", "mine\n");
    it.place.git(&["stash", "-q"]);
    it.place.write("other", "another\n");
    it.place.git(&["commit", "-qam", "Another"]);
    it.place.try_git(&["stash", "pop", "-q"]);
    it.place.git(&["update-ref", "refs/heads/main", it.begin.as_str()]);
    assert_eq!(it.hand_over(), HandedOver::InProgress(Operation::Merge));
}

#[test]
fn a_repository_without_a_commit_is_refused_and_a_bare_one_too() {
    let place = TestRepository::unborn(&[]);
    let error = place.repository().begin_of_plan().unwrap_err();
    assert!(matches!(error, GitError::Unborn(_)) && error.to_string().contains("no commit yet"), "{error}");
    let it = Waiting::new();
    assert_eq!(it.place.repository().begin_of_plan().unwrap(), (it.begin.clone(), Some("main".to_owned())));
}

/// The progress of a hand-over that was killed: files already written, files cut off, and whether the branch moved.
#[rstest]
#[case::before_the_first_file(&[], &[], false)]
#[case::in_the_middle(&["src/a.rs", "src/b.rs"], &["new/file.rs"], false)]
#[case::behind_the_last_file(&["src/a.rs", "src/b.rs", "new/file.rs", "tool"], &[], false)]
#[case::behind_the_branch(&["src/a.rs", "src/b.rs", "new/file.rs", "tool"], &[], true)]
fn a_handover_that_was_killed_is_finished_by_the_next(
    #[case] whole: &[&str],
    #[case] cut: &[&str],
    #[case] moved: bool,
) {
    let it = Waiting::new();
    let place = &it.place;
    place.write("README.md", "# Mine\n");
    place.write_at(it.lock(), "refrain loop the-loop\n");
    place.write_at(it.note(), format!("{} {}\n", it.begin, it.wave));
    let show = |path: &str| place.git(&["show", &format!("{}:{path}", it.wave)]) + "\n";
    for path in whole {
        match *path {
            "src/b.rs" => fs::remove_file(place.path(path)).unwrap(),
            "tool" => place.make_executable(path),
            path => place.write(path, show(path)),
        }
    }
    for path in cut {
        place.write(path, &show(path).as_bytes()[..50]);
    }
    if moved {
        place.git(&["update-ref", "refs/heads/main", it.wave.as_str()]);
    }
    assert_eq!(it.hand_over(), HandedOver::Done);
    assert_eq!(place.status(), [" M README.md"]);
    assert_eq!(place.read("new/file.rs"), show("new/file.rs"));
    assert_eq!(place.head(), it.wave);
    assert!(!it.lock().exists() && !it.note().exists());
}

#[test]
fn a_git_that_is_killed_in_the_middle_of_the_files_is_followed_by_one_that_finishes() {
    let it = Waiting::of(|place| {
        place.write("src/a.rs", "fn a() { wave() }\n");
        place.write(".gitattributes", "zz.txt filter=die\n");
        place.write("zz.txt", "the last\n");
    });
    it.place.write("README.md", "# Mine\n");
    it.place.has_git_die();
    assert!(matches!(it.try_hand_over(Some("main")), Err(GitError::Failed { .. })));
    assert_eq!((it.place.head(), it.lock().exists(), it.note().exists()), (it.begin.clone(), false, true));
    it.place.lets_git_live();
    assert_eq!(it.hand_over(), HandedOver::Done);
    assert_eq!((it.place.status(), it.place.head()), (vec![" M README.md".to_owned()], it.wave.clone()));
    assert_eq!(it.place.read("zz.txt"), "the last\n");
}

#[test]
fn a_branch_that_git_does_not_move_has_the_files_put_back() {
    let it = Waiting::new();
    let place = &it.place;
    place.write("src/mine.rs", "mine\n");
    place.hook(
        "reference-transaction",
        "test \"$1\" = prepared && { echo 'not at night' >&2; exit 1; }; exit 0",
    );
    let before = it.everything();
    let said = it.hand_over();
    assert!(matches!(&said, HandedOver::BranchHeld { said } if said.contains("not at night")), "{said:?}");
    assert_eq!(it.everything(), before);
    place.hook("reference-transaction", "exit 0");
    let lock = place.path(".git/refs/heads/main.lock");
    place.write_at(lock.clone(), "");
    let said = it.hand_over();
    assert!(matches!(&said, HandedOver::BranchHeld { said } if said.contains("main.lock")), "{said:?}");
    fs::remove_file(lock).unwrap();
    assert_eq!(it.everything(), before);
    assert!(!place.path("new").exists() && !it.lock().exists() && !it.note().exists());
}

#[test]
fn files_that_a_filter_makes_are_compared_as_git_has_them() {
    let it = Waiting::of(|place| {
        place.write(".gitattributes", "*.txt eol=crlf\n");
        place.write("note.txt", "one\ntwo\n");
    });
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert_eq!(it.place.read("note.txt"), "one\r\ntwo\r\n");
}

#[test]
fn files_outside_a_sparse_checkout_stay_out() {
    let it = Waiting::new();
    it.place.git(&["sparse-checkout", "set", "new"]);
    assert!(!it.place.path("src").exists());
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert!(!it.place.path("src").exists() && it.place.path("new/file.rs").exists());
}

#[test]
fn a_cancelled_handover_stops_before_the_first_file() {
    let mut it = Waiting::new();
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    it.place.cancel = Some(cancel);
    assert!(matches!(it.try_hand_over(Some("main")), Err(GitError::Cancelled)));
    it.place.cancel = None;
    assert!(!it.lock().exists() && it.place.head() == it.begin);
    assert_eq!(it.hand_over(), HandedOver::Done);
}

/// An agent may write the git folder, and a note there would have a change of the user taken for a file that was cut off.
#[test]
fn no_file_in_the_git_folder_is_taken_for_a_handover_that_was_killed() {
    let it = Waiting::new();
    let place = &it.place;
    let (begin, wave) = (&it.begin, &it.wave);
    place.write("README.md", "");
    place.write_at(place.git_path("refrain-handover"), format!("{wave} {begin}\n"));
    assert_eq!(it.hand_over(), HandedOver::Done);
    assert_eq!((place.status(), place.read("README.md")), (vec![" M README.md".to_owned()], String::new()));
}

/// A wave that makes files by a filter which it sets up itself, out of a sandbox.
fn filtered(smudge: &str) -> Waiting {
    let mut it = Waiting::of(|place| {
        place.write(".gitattributes", "*.up filter=up\n");
        place.write("new/zz.up", "the last\n");
        place.make_executable("new/zz.up");
        place.write("src/a.rs", "fn a() { wave() }\n");
        place.write("other", "touch ran; cat\n");
    });
    it.is_from_sandbox = true;
    it.place.git(&["config", "filter.up.smudge", smudge]);
    it.place.git(&["config", "filter.up.clean", "sed 's/!$//'"]);
    it
}

#[test]
fn filters_of_the_user_make_the_files_of_a_sandbox_apart() {
    let it = filtered("sed 's/$/!/'");
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert_eq!(it.place.read("new/zz.up"), "the last!\n");
    assert_eq!(it.place.read("src/a.rs"), "fn a() { wave() }\n");
}

#[test]
fn a_filter_makes_no_file_outside_a_sparse_checkout() {
    let it = filtered("sed 's/$/!/'");
    it.place.git(&["sparse-checkout", "set", "src"]);
    it.place.write("new", "mine\n");
    assert_eq!(it.in_the_way(), ["new"]);
    fs::remove_file(it.place.path("new")).unwrap();
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert!(!it.place.path("new").exists());
}

#[rstest]
#[case::of_the_folder("sh ./other")]
#[case::of_the_top("\"$(git rev-parse --show-toplevel)\"/other")]
#[case::of_the_path("PATH=.:$PATH other")]
#[case::of_an_interpreter("X=1 sh other")]
fn no_script_of_the_work_is_a_filter_of_it(#[case] smudge: &str) {
    let it = filtered(smudge);
    let before = it.everything();
    let error = it.try_hand_over(Some("main")).unwrap_err();
    assert!(matches!(&error, GitError::Filter(said) if said.contains("new/zz.up")), "{error}");
    assert_eq!(it.everything(), before);
    assert!(!it.place.path("ran").exists() && !it.lock().exists());
}

#[test]
fn what_a_filter_made_is_put_back_too() {
    let it = filtered("sed 's/$/!/'");
    let place = &it.place;
    place.git(&["checkout", "-q", "--detach", it.wave.as_str()]);
    place.write("new/zz.up", "the newest!\n");
    place.git(&["commit", "-qam", "Wave 2"]);
    let second = place.head();
    place.git(&["checkout", "-q", "main"]);
    assert_eq!(it.hand_over(), HandedOver::Done);
    let it = Waiting { begin: it.wave.clone(), wave: second, ..it };
    it.place.hook("reference-transaction", "test \"$1\" = prepared && exit 1; exit 0");
    let handed = it.hand_over();
    assert!(matches!(handed, HandedOver::BranchHeld { .. }), "{handed:?}");
    assert_eq!(it.place.read("new/zz.up"), "the last!\n");
    it.place.hook("reference-transaction", "exit 0");
    assert_eq!(it.hand_over(), HandedOver::Done);
    it.is_done();
    assert_eq!(it.place.read("new/zz.up"), "the newest!\n");
}

#[test]
fn no_script_of_the_work_runs_as_files_are_put_back() {
    let it = filtered("cat");
    let place = &it.place;
    assert_eq!(it.hand_over(), HandedOver::Done);
    place.git(&["checkout", "-q", "--detach"]);
    place.write("new/zz.up", "the newest\n");
    place.write("other", "touch ran; cat\n");
    fs::remove_file(place.path("src/a.rs")).unwrap();
    place.git(&["commit", "-qam", "Wave 2"]);
    let second = place.head();
    place.git(&["checkout", "-q", "main"]);
    place.write("other", "cat\n");
    place.git(&["commit", "-qam", "The script of the user"]);
    place.git(&["checkout", "-q", "--detach"]);
    place.git(&["merge", "-q", "-X", "theirs", "-m", "Wave 2", second.as_str()]);
    let second = place.head();
    place.git(&["checkout", "-q", "main"]);
    let script = place.path("other");
    place.git(&["config", "filter.up.smudge", &format!("sh {}", script.display())]);
    let it = Waiting { begin: place.head(), wave: second, ..it };
    let before = it.everything();
    it.place.hook("reference-transaction", "test \"$1\" = prepared && exit 1; exit 0");
    let handed = it.hand_over();
    assert!(matches!(handed, HandedOver::BranchHeld { .. }), "{handed:?}");
    assert!(!it.place.path("ran").exists());
    assert_eq!(it.everything(), before);
}

/// The agent of another loop may put a link there at any time, also when this loop has no sandbox.
#[test]
fn git_writes_no_log_where_a_link_leads() {
    let it = Waiting::new();
    let victim = it.place.top().join("victim");
    it.place.write_at(victim.clone(), "mine\n");
    let log = it.place.git_path("logs/refs/heads/main");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&victim, &log).unwrap();
    let error = it.try_hand_over(Some("main")).unwrap_err();
    assert!(matches!(&error, GitError::Link(path) if *path == log), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n");
}

/// Two packs have other content under the same name. Git takes that of the pack which it read last: here the one with the
/// folder that the wave removes, which only the hand-over reads.
#[test]
fn no_content_is_handed_over_that_is_not_what_its_name_says() {
    let it = Waiting::of(|place| {
        place.write("new/file.rs", "new\n".repeat(100));
        fs::remove_dir_all(place.path("src")).unwrap();
    });
    let place = &it.place;
    let (wave, begin) = (it.wave.as_str(), it.begin.as_str());
    let script = format!(
        r#"!set -e
        file=$(git rev-parse {wave}:new/file.rs) src=$(git rev-parse {begin}:src)
        evil=$(echo evil | git hash-object -w --stdin | sed 's,..,&/,')
        cd .git/objects
        loose=$(echo $file | sed 's,..,&/,')
        mv $loose ../good && cp $evil $loose
        forged=$(printf '%s\n' $file $src | git pack-objects -q ../forged)
        mv -f ../good $loose
        honest=$(git rev-list --objects --all --reflog | cut -d' ' -f1 | grep -v $src | git pack-objects -q ../honest)
        for kind in pack idx; do
            touch -d '1 hour ago' ../forged-$forged.$kind
            mv ../forged-$forged.$kind pack/pack-$forged.$kind
            mv ../honest-$honest.$kind pack/pack-$honest.$kind
        done
        rm -f $loose $(echo $src | sed 's,..,&/,')"#
    );
    let run = format!("alias.forge={script}");
    place.git(&["-c", &run, "forge"]);
    let good = "new\n".repeat(100);
    match it.try_hand_over(Some("main")) {
        Ok(done) => assert_eq!((done, place.read("new/file.rs")), (HandedOver::Done, good)),
        Err(error) => {
            assert!(matches!(error, GitError::ForgedObject(_)), "{error}");
            assert!(!place.path("new/file.rs").exists());
        }
    }
}
