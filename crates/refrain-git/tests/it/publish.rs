//! Publishing to a remote that is a real bare repository, and rebasing onto it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::Utf8PathBuf;
use refrain_core::git::Oid;
use refrain_git::{
    BaseReturn, Bounds, Cancel, GitError, HandedOver, PublishRequest, Push, RebaseOutcome, RebaseRequest,
    Refusal, Upstream,
};
use rstest::rstest;

use crate::place::{TestRepository, id};

/// A repository whose `main` equals its remote's, and the commit where the loop began.
struct Published {
    place: TestRepository,
    begin: Oid,
}

impl Published {
    fn new() -> Self {
        let place = TestRepository::new();
        place.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        place.git(&["remote", "add", "origin", "../remote.git"]);
        place.git(&["push", "-q", "origin", "main"]);
        let begin = place.head();
        Self { place, begin }
    }

    fn remote(&self) -> Utf8PathBuf {
        self.place.top().join("remote.git")
    }

    /// The commit of a branch at the remote.
    fn there(&self, branch: &str) -> Option<Oid> {
        let line = self.place.git(&["ls-remote", "--refs", "origin", &format!("refs/heads/{branch}")]);
        line.split_whitespace().next().map(|at| at.parse().unwrap())
    }

    /// Installs a hook at the remote: a shell script.
    fn hook(&self, name: &str, script: &str) {
        let path = self.remote().join("hooks").join(name);
        self.place.write_at(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn commit(&self, path: &str, text: &str) -> Oid {
        self.place.write(path, text);
        self.place.git(&["add", "--", path]);
        self.place.git(&["commit", "-qm", &format!("Change {path}")]);
        self.place.head()
    }

    /// A commit by another user at the remote.
    fn commit_there(&self, path: &str, text: &str) -> Oid {
        let other = self.place.top().join("other");
        if !other.exists() {
            self.place.git(&["clone", "-q", self.remote().as_str(), other.as_str()]);
        }
        let there = TestRepository::new_at(&self.place, other);
        there.git(&["fetch", "-q"]);
        there.git(&["reset", "-q", "--hard", "origin/main"]);
        there.write(path, text);
        there.git(&["add", "--", path]);
        there.git(&["commit", "-qm", &format!("Change {path} there")]);
        there.git(&["push", "-q", "origin", "HEAD:main"]);
        there.head()
    }

    fn upstream(&self) -> Upstream {
        self.place.repository().upstream("main").unwrap().unwrap()
    }

    fn try_publish(&self, branch: &str, was_there: bool) -> Result<Push, GitError> {
        self.place.repository().publish(PublishRequest {
            upstream: &Upstream { branch: branch.to_owned(), ..self.upstream() },
            head: &self.place.head(),
            was_there,
            base: Some(&self.begin),
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: self.place.cancel.as_ref() },
        })
    }

    #[track_caller]
    fn publish(&self) -> Push {
        self.try_publish("main", true).unwrap()
    }

    #[track_caller]
    fn refused(&self) -> Refusal {
        match self.publish() {
            Push::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn rebase(&self, head: &Oid, theirs: &Oid) -> RebaseOutcome {
        self.rebase_branch("main", head, theirs)
    }

    #[track_caller]
    fn rebase_branch(&self, branch: &str, head: &Oid, theirs: &Oid) -> RebaseOutcome {
        let rebased = self.place.repository().rebase_onto(RebaseRequest {
            id: &id(),
            branch: Some(branch),
            head,
            theirs,
            index: &self.place.top().join("loop/index"),
            cancel: None,
        });
        rebased.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The user's state, as seen from outside.
    fn everything(&self) -> (Vec<String>, String, Oid, String) {
        let place = &self.place;
        (place.status(), place.git(&["diff"]), place.head(), place.git(&["diff", "--cached"]))
    }
}

#[test]
fn a_branch_goes_where_git_would_push_it() {
    let it = Published::new();
    let repository = it.place.repository();
    let upstream = |branch: &str| repository.upstream(branch).unwrap().map(|it| (it.remote, it.branch));
    let to = |remote: &str, branch: &str| Some((remote.to_owned(), branch.to_owned()));
    assert_eq!(upstream("main"), to("origin", "main"));
    it.place.git(&["remote", "add", "fork", "https://me:secret@localhost/fork.git"]);
    it.place.git(&["config", "branch.main.remote", "fork"]);
    it.place.git(&["config", "branch.main.merge", "refs/heads/trunk"]);
    assert_eq!(upstream("main"), to("fork", "main"), "another name only where the person wants that");
    it.place.git(&["config", "push.default", "upstream"]);
    assert_eq!(upstream("main"), to("fork", "trunk"));
    assert_eq!(repository.upstream("main").unwrap().unwrap().url, "https://localhost/fork.git");
    assert_eq!(upstream("other"), to("origin", "other"));
    it.place.git(&["remote", "remove", "origin"]);
    assert_eq!(upstream("other"), to("fork", "other"), "the only one");
    it.place.git(&["remote", "remove", "fork"]);
    assert_eq!(upstream("main"), None);
}

#[test]
fn a_commit_is_pushed_once_and_a_new_branch_is_made() {
    let it = Published::new();
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    assert_eq!(it.publish(), Push::Pushed { head: head.clone() });
    assert_eq!(it.publish(), Push::UpToDate { head: head.clone() });
    assert_eq!(it.try_publish("refrain/new", false).unwrap(), Push::Pushed { head: head.clone() });
    assert_eq!((it.there("main"), it.there("refrain/new")), (Some(head.clone()), Some(head)));
}

#[test]
fn references_follow_the_remote_and_not_through_links_of_an_agent() {
    let it = Published::new();
    it.place.git(&["fetch", "-q"]);
    let followed = |branch: &str| {
        it.place.git(&["for-each-ref", "--format=%(objectname)", &format!("refs/remotes/origin/{branch}")])
    };
    let pushed = it.commit("src/a.rs", "fn a() { 1 }\n");
    it.publish();
    assert_eq!(followed("main"), pushed.as_str(), "of what was pushed");
    let theirs = it.commit_there("src/b.rs", "fn b() { 1 }\n");
    it.publish();
    assert_eq!(followed("main"), theirs.as_str(), "of what was fetched");

    let outside = it.place.top().join("outside");
    fs::create_dir(&outside).unwrap();
    it.place.write_at(outside.join("log"), "mine\n");
    let git = it.place.root().join(".git");
    let log = git.join("logs/refs/remotes/origin/main");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(outside.join("log"), &log).unwrap();
    std::os::unix::fs::symlink(&outside, git.join("refs/remotes/origin/topics")).unwrap();
    it.place.git(&["reset", "-q", "--hard", theirs.as_str()]);
    it.commit("src/a.rs", "fn a() { 2 }\n");
    assert!(matches!(it.publish(), Push::Pushed { .. }));
    assert!(matches!(it.try_publish("topics/one", false).unwrap(), Push::Pushed { .. }));
    assert_eq!(fs::read_to_string(outside.join("log")).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_remote_branch_that_contains_the_commit_is_up_to_date() {
    let it = Published::new();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    it.publish();
    let theirs = it.commit_there("src/b.rs", "fn b() { 1 }\n");
    assert_eq!(it.publish(), Push::UpToDate { head: theirs });
}

#[test]
fn a_branch_that_was_deleted_is_not_made_again() {
    let it = Published::new();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    assert!(matches!(it.try_publish("topic", false).unwrap(), Push::Pushed { .. }));
    it.place.git(&["push", "-q", "origin", "--delete", "topic"]);
    assert_eq!(it.try_publish("topic", true).unwrap(), Push::Refused(Refusal::BranchDeleted));
    assert_eq!(it.there("topic"), None);
}

#[rstest]
#[case::protected("pre-receive", "echo 'error: GH006: Protected branch update failed' >&2; exit 1", |it: &Refusal| matches!(it, Refusal::ProtectedBranch { said } if said.contains("GH006")))]
#[case::permission("pre-receive", "echo 'GitLab: You are not allowed to push code to this project.'; exit 1", |it: &Refusal| matches!(it, Refusal::NoPermission { .. }))]
#[case::hook("update", "echo 'no ticket in the message'; exit 1", |it: &Refusal| matches!(it, Refusal::HookDeclined { said } if said.contains("no ticket")))]
#[case::cut_off_before("pre-receive", "kill -9 $PPID", |it: &Refusal| matches!(it, Refusal::Unreachable { .. }))]
fn a_remote_that_says_no_is_understood(
    #[case] hook: &str,
    #[case] script: &str,
    #[case] is_it: fn(&Refusal) -> bool,
) {
    let it = Published::new();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    it.hook(hook, script);
    let refusal = it.refused();
    assert!(is_it(&refusal), "{refusal:?}");
    assert_eq!(it.there("main"), Some(it.begin.clone()));
}

#[test]
fn a_push_that_arrived_and_was_cut_off_then_is_found_out() {
    let it = Published::new();
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    // The references have moved by then, but the client receives no report.
    it.hook("post-receive", "kill -9 $PPID");
    assert_eq!(it.publish(), Push::Pushed { head: head.clone() });
    assert_eq!(it.publish(), Push::UpToDate { head });
}

#[test]
fn a_hook_of_the_persons_may_refuse_a_push() {
    let it = Published::new();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    it.place.hook("pre-push", "echo 'the tests fail'; exit 1");
    assert!(matches!(it.refused(), Refusal::HookDeclined { said } if said.contains("the tests fail")));
}

#[test]
fn a_push_that_lost_a_race_is_detected_afterwards() {
    let it = Published::new();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    let theirs = it.commit_there("src/b.rs", "fn b() { 1 }\n");
    it.place.git(&["--git-dir", it.remote().as_str(), "update-ref", "refs/heads/main", it.begin.as_str()]);
    // Between the check and the push.
    it.place.hook("pre-push", &format!("git --git-dir {} update-ref refs/heads/main {theirs}", it.remote()));
    assert_eq!(it.publish(), Push::Behind { theirs: theirs.clone() });
    assert_eq!(it.there("main"), Some(theirs));
}

#[test]
fn a_missing_remote_is_distinguished_from_an_unreachable_one() {
    let it = Published::new();
    it.place.git(&["remote", "set-url", "origin", "../nowhere.git"]);
    assert!(matches!(it.refused(), Refusal::NoRemote { .. }));
    // A reserved port, on which no server listens.
    it.place.git(&["remote", "set-url", "origin", "http://127.0.0.1:1/x.git"]);
    assert!(matches!(it.refused(), Refusal::Unreachable { .. }));
}

#[test]
fn a_secret_that_the_agent_committed_is_not_pushed() {
    let it = Published::new();
    it.commit("keys.txt", &format!("token = \"ghp_{}\"\n", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"));
    assert!(matches!(it.refused(), Refusal::Secret(_)));
    assert_eq!(it.there("main"), Some(it.begin.clone()));
}

/// A token, joined from pieces: no text of this repository looks like one.
fn token() -> String {
    format!("ghp_{}", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx")
}

/// Every commit of it has the file, and nothing comes before them.
#[test]
fn a_secret_of_a_history_without_a_beginning_is_not_pushed() {
    let it = Published::new();
    it.place.git(&["checkout", "-q", "--orphan", "fresh"]);
    it.commit("keys.txt", &format!("{}\n", token()));
    it.commit("src/a.rs", "fn a() { 1 }\n");
    let push = it.try_publish("fresh", false).unwrap();
    assert!(matches!(&push, Push::Refused(Refusal::Secret(_))), "{push:?}");
}

/// Another agent shows the scan another content of a file.
#[test]
fn what_is_not_what_its_name_says_is_not_pushed() {
    let it = Published::new();
    it.commit("keys.txt", &format!("{}\n", token()));
    let (file, real) = it.place.forge("HEAD:keys.txt", "HEAD:README.md");
    let refused = it.try_publish("main", true);
    assert!(matches!(&refused, Err(GitError::ForgedObject(path)) if path == "keys.txt"), "{refused:?}");
    it.place.write_at(file, real);
    assert!(matches!(it.refused(), Refusal::Secret(_)));
}

#[test]
fn a_secret_in_a_path_a_message_or_the_name_of_the_branch_is_not_pushed() {
    let it = Published::new();
    let undo = || it.place.git(&["reset", "-q", "--hard", it.begin.as_str()]);
    for path in [format!("{}.txt", token()), format!("src/{}/a.txt", token())] {
        it.commit(&path, "nothing\n");
        assert!(matches!(it.refused(), Refusal::Secret(_)));
        undo();
    }
    it.commit("src/a.rs", "fn a() { 1 }\n");
    it.place.git(&["commit", "-q", "--allow-empty", "-m", "Use it\n\nwith", "-m", &token()]);
    it.commit("src/b.rs", "fn b() { 1 }\n");
    let refused = it.refused();
    let said = refused.to_string();
    assert!(matches!(refused, Refusal::Secret(_)) && said.starts_with("the message of commit "), "{said}");
    assert!(!said.contains(&token()), "{said}");
    undo();
    it.commit("src/a.rs", "fn a() { 1 }\n");
    let push = it.try_publish(&format!("fix-{}", token()), false).unwrap();
    assert!(matches!(&push, Push::Refused(Refusal::Secret(what)) if what.contains("branch")), "{push:?}");
    assert!(matches!(it.publish(), Push::Pushed { .. }), "nothing of it is left");
}

#[test]
fn a_secret_in_the_header_of_a_commit_is_not_pushed() {
    let it = Published::new();
    let refused = || {
        let said = it.refused().to_string();
        assert!(said.starts_with("the header of commit ") && !said.contains(&token()), "{said}");
        it.place.git(&["reset", "-q", "--hard", it.begin.as_str()]);
    };
    let author = format!("{} <a@localhost>", token());
    it.place.git(&["commit", "-q", "--allow-empty", "--author", &author, "-m", "By a token"]);
    refused();
    let tree = it.place.git(&["rev-parse", "HEAD^{tree}"]);
    for field in ["x-note", "tree", "gpgsig"] {
        let who = "A <a@localhost> 1 +0000";
        let text = format!(
            "tree {tree}\nparent {}\nauthor {who}\ncommitter {who}\n{field} {}\n\nMessage\n",
            it.begin,
            token()
        );
        it.place.write_at(it.place.top().join("commit"), text);
        let words = ["hash-object", "-t", "commit", "-w", "--literally", "../commit"];
        let commit = it.place.git(&words);
        it.place.git(&["reset", "-q", "--hard", &commit]);
        refused();
    }
    assert!(matches!(it.publish(), Push::UpToDate { .. }), "nothing of it is left");
}

#[test]
fn a_file_that_is_too_large_to_be_screened_is_not_pushed() {
    let it = Published::new();
    it.commit("big.txt", &"x".repeat((1 << 20) + 1));
    it.place.git(&["rm", "-q", "big.txt"]);
    it.place.git(&["commit", "-qm", "Second thoughts"]);
    let said = it.refused().to_string();
    assert!(
        said.starts_with("big.txt of commit ")
            && said.contains("more than 1048576 bytes, so it was not screened"),
        "{said}"
    );
    assert_eq!(it.there("main"), Some(it.begin.clone()));
}

#[test]
fn a_secret_behind_a_thousand_commits_is_not_pushed() {
    let it = Published::new();
    it.commit("keys.txt", &format!("{}\n", token()));
    it.place.git(&["rm", "-q", "keys.txt"]);
    it.place.git(&["commit", "-qm", "Second thoughts"]);
    let commit = "commit refs/heads/long\ncommitter T <t@localhost> 1 +0000\ndata 1\nx\n";
    let history = format!("{commit}from {}\n\n{}", it.place.head(), commit.repeat(1001));
    it.place.write_at(it.place.top().join("history"), history);
    it.place.git(&["-c", "alias.import=!git fast-import --quiet < ../history", "import"]);
    it.place.git(&["reset", "-q", "--hard", "long"]);
    assert!(matches!(it.refused(), Refusal::Secret(_)));
}

#[test]
fn commits_of_the_remote_are_asked_from_the_remote_itself() {
    let it = Published::new();
    let bad = it.commit("keys.txt", &format!("{}\n", token()));
    // The tracking reference claims that the remote has it already.
    it.place.git(&["update-ref", "refs/remotes/origin/other", bad.as_str()]);
    assert!(matches!(it.refused(), Refusal::Secret(_)));
    // A branch of the remote that contains it makes a difference: it is known there.
    it.place.git(&["push", "-q", "origin", "HEAD:refs/heads/other"]);
    assert!(matches!(it.publish(), Push::Pushed { .. }));
}

#[test]
fn a_mark_that_a_person_made_before_the_loop_lets_their_line_be_pushed() {
    let mut it = Published::new();
    let marked = format!("token = \"{}\" # refrain:allow-secret\n", token());
    it.begin = it.commit("fake.toml", &marked);
    it.commit("src/a.rs", "fn a() { 1 }\n");
    assert!(matches!(it.publish(), Push::Pushed { .. }));
    it.commit("other.toml", &marked);
    let said = it.refused().to_string();
    assert!(said.contains("its allow mark is newer than the loop"), "{said}");
}

#[test]
fn a_push_can_be_stopped() {
    let mut it = Published::new();
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    it.place.cancel = Some(cancel);
    assert!(matches!(it.try_publish("main", true), Err(GitError::Cancelled)));
}

#[test]
fn a_branch_that_is_behind_is_rebased_and_pushed_and_nothing_of_the_persons_is_touched() {
    let it = Published::new();
    let theirs = it.commit_there("src/b.rs", "fn b() { theirs() }\n");
    it.commit("src/a.rs", "fn a() { 1 }\n");
    let head = it.commit("src/new.rs", "fn new() {}\n");
    // Changed, staged, and new.
    it.place.write("README.md", "# The person's\n");
    it.place.write("staged.txt", "staged\n");
    it.place.git(&["add", "staged.txt"]);
    it.place.write("notes.txt", "mine\n");
    let (before, author) = (it.everything(), it.place.git(&["log", "-1", "--format=%an %ad %cd"]));
    assert_eq!(it.publish(), Push::Behind { theirs: theirs.clone() });
    let RebaseOutcome::Done { head: now } = it.rebase(&head, &theirs) else { panic!("it goes") };
    assert_eq!(
        it.place.git(&["log", "--format=%s", "-4"]),
        "Change src/new.rs\nChange src/a.rs\nChange src/b.rs there\nBegin"
    );
    assert_eq!(it.place.git(&["log", "-1", "--format=%an %ad %cd"]), author);
    let after = it.everything();
    assert_eq!((&after.0, &after.1, &after.3), (&before.0, &before.1, &before.3));
    assert_eq!(it.place.read("src/b.rs"), "fn b() { theirs() }\n");
    assert_eq!(it.rebase(&head, &theirs), RebaseOutcome::Done { head: now.clone() }, "it may be repeated");
    let later = it.commit_there("src/b.rs", "fn b() { later() }\n");
    assert_eq!(it.publish(), Push::Behind { theirs: later.clone() });
    let RebaseOutcome::Done { head: now } = it.rebase(&head, &later) else {
        panic!("known again, though theirs went on")
    };
    assert_eq!(
        it.place.git(&["log", "--format=%s", "-3"]),
        "Change src/new.rs\nChange src/a.rs\nChange src/b.rs there"
    );
    assert_eq!(it.publish(), Push::Pushed { head: now });
}

#[test]
fn a_conflict_leaves_everything_and_tells_both_sides() {
    let it = Published::new();
    let theirs = it.commit_there("src/a.rs", "fn a() { theirs() }\n");
    let head = it.commit("src/a.rs", "fn a() { ours() }\n");
    assert_eq!(it.publish(), Push::Behind { theirs: theirs.clone() });
    let before = it.everything();
    let RebaseOutcome::Conflict { at, conflicts, ours, theirs } = it.rebase(&head, &theirs) else {
        panic!("none")
    };
    assert_eq!((at, conflicts[0].path.as_str()), (head, "src/a.rs"));
    assert!(ours.contains("+fn a() { ours() }") && theirs.contains("+fn a() { theirs() }"), "{ours}{theirs}");
    assert_eq!(it.everything(), before);
}

#[test]
fn a_file_of_the_persons_in_the_way_stays() {
    let it = Published::new();
    let theirs = it.commit_there("src/b.rs", "fn b() { theirs() }\n");
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    it.place.write("src/b.rs", "fn b() { mine() }\n");
    it.publish();
    let before = it.everything();
    let RebaseOutcome::Hindered(HandedOver::InTheWay { paths }) = it.rebase(&head, &theirs) else {
        panic!("none")
    };
    assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), ["src/b.rs"]);
    assert_eq!(it.everything(), before);
}

#[test]
fn changes_that_the_remote_has_are_not_committed_again() {
    let it = Published::new();
    let head = it.commit("src/a.rs", "fn a() { same() }\n");
    let theirs = it.commit_there("src/a.rs", "fn a() { same() }\n");
    it.publish();
    let done = RebaseOutcome::Done { head: theirs.clone() };
    assert_eq!(it.rebase(&head, &theirs), done);
    assert_eq!(it.rebase(&head, &theirs), done);
    assert_eq!((it.place.head(), it.place.status()), (theirs, Vec::<String>::new()));
}

#[test]
fn a_rebase_that_was_cut_off_is_finished_though_the_remote_went_on() {
    let it = Published::new();
    it.place.has_git_die();
    it.place.write(".gitattributes", "zz.txt filter=die\n");
    it.place.git(&["add", ".gitattributes"]);
    it.place.git(&["commit", "-qm", "Attributes"]);
    it.publish();
    let theirs = it.commit_there("zz.txt", "theirs\n");
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    it.publish();
    let died = it.place.repository().rebase_onto(RebaseRequest {
        id: &id(),
        branch: Some("main"),
        head: &head,
        theirs: &theirs,
        index: &it.place.top().join("loop/index"),
        cancel: None,
    });
    assert!(died.is_err(), "{died:?}");
    assert_eq!(it.place.head(), head);
    it.place.lets_git_live();
    let theirs = it.commit_there("src/b.rs", "fn b() { later() }\n");
    it.publish();
    assert!(matches!(it.rebase(&head, &theirs), RebaseOutcome::Done { .. }));
    assert_eq!(it.place.status(), Vec::<String>::new());
    assert_eq!(it.place.read("src/b.rs") + &it.place.read("zz.txt"), "fn b() { later() }\ntheirs\n");
    assert!(matches!(it.publish(), Push::Pushed { .. }));
}

#[test]
fn a_merge_of_ours_is_kept_by_merging_theirs() {
    let it = Published::new();
    it.place.git(&["checkout", "-q", "-b", "topic"]);
    it.commit("src/a.rs", "fn a() { 1 }\n");
    it.place.git(&["push", "-q", "origin", "topic"]);
    let main = it.commit_there("src/b.rs", "fn b() { main() }\n");
    it.place.git(&["fetch", "-q"]);
    it.place.git(&["merge", "-q", "--no-edit", "origin/main"]);
    let head = it.place.head();
    // Another user's work on the same branch.
    it.place.git(&["checkout", "-q", "--detach", "origin/topic"]);
    let theirs = it.commit("src/c.rs", "fn c() {}\n");
    it.place.git(&["push", "-q", "origin", "HEAD:topic"]);
    it.place.git(&["checkout", "-q", "topic"]);
    assert_eq!(it.try_publish("topic", true).unwrap(), Push::Behind { theirs: theirs.clone() });
    let RebaseOutcome::Done { head: now } = it.rebase_branch("topic", &head, &theirs) else {
        panic!("it goes")
    };
    assert_eq!(it.place.git(&["log", "-1", "--format=%P"]), format!("{head} {theirs}"));
    it.place.git(&["merge-base", "--is-ancestor", main.as_str(), now.as_str()]);
    assert_eq!(it.rebase_branch("topic", &head, &theirs), RebaseOutcome::Done { head: now.clone() });
    assert_eq!((it.place.status(), it.place.read("src/c.rs").as_str()), (Vec::new(), "fn c() {}\n"));
    assert_eq!(it.try_publish("topic", true).unwrap(), Push::Pushed { head: now });
}

#[test]
fn commits_that_came_meanwhile_are_not_moved() {
    let it = Published::new();
    let theirs = it.commit_there("src/b.rs", "fn b() { theirs() }\n");
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    it.publish();
    let now = it.commit("mine.txt", "mine\n");
    assert_eq!(
        it.rebase(&head, &theirs),
        RebaseOutcome::Hindered(HandedOver::Diverged { head: now.clone() })
    );
    assert_eq!(it.place.head(), now);
}

#[test]
fn signed_commits_keep_their_author_and_words() {
    let it = Published::new();
    let signer = it.place.top().join("signer");
    let signature = "-----BEGIN PGP SIGNATURE-----\\n\\nof nobody\\n-----END PGP SIGNATURE-----\\n";
    let script =
        format!("#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\nprintf -- '{signature}'\n");
    it.place.write_at(&signer, script);
    fs::set_permissions(&signer, fs::Permissions::from_mode(0o755)).unwrap();
    it.place.git(&["config", "gpg.program", signer.as_str()]);
    it.place.git(&["config", "commit.gpgSign", "true"]);
    it.place.write("src/a.rs", "fn a() { 1 }\n");
    let author = ["--author", "Ada <ada@example.org>", "--date", "1700000000 +0530"];
    let latin = it.place.top().join("latin");
    it.place.write_at(&latin, b"Gr\xfc\xdfe\n");
    let commit = ["-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-qaF", latin.as_str()];
    it.place.git(&[&commit[..], &author].concat());
    let head = it.place.head();
    let theirs = it.commit_there("src/b.rs", "fn b() { theirs() }\n");
    it.publish();
    let RebaseOutcome::Done { head: now } = it.rebase(&head, &theirs) else { panic!("it goes") };
    let says = it.place.git(&["log", "-1", "--format=%an <%ae> %ad %e %B", "--date=raw", now.as_str()]);
    assert_eq!(says.trim(), "Ada <ada@example.org> 1700000000 +0530 ISO-8859-1 Grüße");
    assert!(it.place.git(&["cat-file", "commit", now.as_str()]).contains("gpgsig "));
}

#[rstest]
#[case::in_the_base(&["add", "-f", ".env"])]
#[case::in_what_the_remote_has(&["rm", "-q", "--cached", "--ignore-unmatch", ".env"])]
fn a_file_that_git_ignores_stays_on_the_way_back(#[case] at_the_base: &[&str]) {
    let it = Published::new();
    it.place.write(".env", "theirs\n");
    it.place.git(at_the_base);
    it.place.git(&["commit", "-qm", "Base", "--allow-empty"]);
    it.place.git(&["push", "-q", "origin", "main"]);
    it.commit_there(".env", "theirs too\n");
    it.place.git(&["switch", "-q", "-c", "topic", it.begin.as_str()]);
    it.place.write(".git/info/exclude", ".env\n");
    it.place.write(".env", "mine\n");
    let head = it.commit("src/a.rs", "fn a() { 1 }\n");
    for back in [BaseReturn::To("main"), BaseReturn::Detached] {
        let kept = it.place.repository().back_from(("topic", &head), back, &it.upstream()).unwrap();
        assert!(kept.is_some_and(|kept| kept.contains(".env")));
        assert_eq!(it.place.read(".env"), "mine\n");
        it.place.git(&["switch", "-q", "topic"]);
    }
}
