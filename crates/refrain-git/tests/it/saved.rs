//! Work that was given up is saved on a branch of its own, in every state of a repository, and nothing else changes.

use refrain_core::event::PushReport;
use refrain_core::git::{Base, Oid};
use refrain_git::{Bounds, GitError, PushRequest, SaveRequest, Saved};
use rstest::rstest;

use crate::place::{TestRepository, id};

const BRANCH: &str = "wip/ralph-fail-the-loop-20261121-120000";
const TOLD: &[(&str, &[u8])] =
    &[(".refrain-failure/state.json", b"{}\n"), (".refrain-failure/context.md", b"failed\n")];

fn try_save(place: &TestRepository, base: &Base) -> Result<Option<Saved>, GitError> {
    save_with(place, base, "wip: the-loop is stuck\n\nThe same failure three times.", TOLD)
}

fn save_with(
    place: &TestRepository,
    base: &Base,
    message: &str,
    files: &[(&str, &[u8])],
) -> Result<Option<Saved>, GitError> {
    let repository = place.repository();
    repository.save_work(SaveRequest {
        base,
        mixed: &repository.mixed(base),
        id: &id(),
        iteration: 3,
        branch: BRANCH,
        message,
        files,
        index: &place.top().join("loop/index"),
        bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
    })
}

#[track_caller]
fn save(place: &TestRepository, base: &Base) -> Saved {
    let saved = try_save(place, base).unwrap_or_else(|error| panic!("{error}"));
    saved.expect("something changed")
}

/// The user's view of the repository: all except the new branch.
fn everything(place: &TestRepository) -> impl PartialEq + std::fmt::Debug {
    let refs = place.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let refs: Vec<_> = refs.lines().filter(|line| !line.contains("/wip/")).map(str::to_owned).collect();
    let head = std::fs::read_to_string(place.git_path("HEAD")).unwrap();
    (place.snapshot(&["README.md", "staged.rs"]), place.status(), refs, head)
}

/// The user's dirty, staged and new files, and then the loop's.
fn work(place: &TestRepository) -> Base {
    place.write("README.md", "# Mine\n");
    place.write("staged.rs", "staged\n");
    place.git(&["add", "staged.rs"]);
    let base = place.survey();
    place.write("src/a.rs", "the loop's\n");
    place.write("src/new.rs", "new\n");
    place.write("key.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----\n");
    base
}

fn paths(place: &TestRepository, saved: &Saved) -> Vec<String> {
    place.committed(saved.commit.as_str())
}

const MADE: [&str; 4] =
    ["A .refrain-failure/context.md", "A .refrain-failure/state.json", "M src/a.rs", "A src/new.rs"];

#[test]
fn the_failure_branch_holds_the_own_work_of_the_loop_and_its_reason() {
    let place = TestRepository::new();
    let base = work(&place);
    let before = everything(&place);
    let saved = save(&place, &base);
    assert_eq!(saved.branch, BRANCH);
    assert_eq!(everything(&place), before);
    assert_eq!(paths(&place, &saved), MADE, "neither the person's changes nor a key");
    assert_eq!(place.git(&["rev-parse", &format!("{BRANCH}^")]), place.head().as_str());
    let message = place.git(&["log", "-1", "--format=%B", BRANCH]);
    let tree = message.rsplit(' ').next().unwrap();
    let without = place.git(&["ls-tree", "--name-only", tree.trim()]);
    assert_eq!(without, "README.md\nsrc");
    assert_eq!(
        message.replace(tree.trim(), "[tree]"),
        "wip: the-loop is stuck\n\nThe same failure three times.\n\nRefrain-Loop: the-loop\nRefrain-Iteration: 3\nRefrain-Tree: [tree]"
    );
}

#[test]
fn the_failure_branch_is_reused_after_a_crash_and_new_for_other_work() {
    let place = TestRepository::new();
    let base = work(&place);
    let first = save(&place, &base);
    assert_eq!(save(&place, &base), first, "once is enough");
    place.write("src/new.rs", "more\n");
    let second = save(&place, &base);
    assert_eq!(second.branch, format!("{BRANCH}-2"));
    assert_eq!(save(&place, &base), second);
}

#[test]
fn a_taken_branch_name_gets_a_number_and_the_old_branch_stays() {
    let place = TestRepository::new();
    let base = work(&place);
    place.git(&["branch", BRANCH]);
    let saved = save(&place, &base);
    assert_eq!(saved.branch, format!("{BRANCH}-2"));
    assert_eq!(place.git(&["rev-parse", BRANCH]), place.head().as_str());
    // What names the wanted branch names the one that it got.
    place.git(&["branch", "-D", &saved.branch]);
    let (message, told) = (format!("wip: kept on {BRANCH}"), format!("{{\"branch\": \"{BRANCH}\"}}"));
    let files: &[(&str, &[u8])] = &[("state.json", told.as_bytes())];
    let saved = save_with(&place, &base, &message, files).unwrap().unwrap();
    assert_eq!(place.git(&["log", "-1", "--format=%s", &saved.branch]), format!("wip: kept on {BRANCH}-2"));
    let state = place.git(&["show", &format!("{}:state.json", saved.branch)]);
    assert_eq!(state, format!("{{\"branch\": \"{BRANCH}-2\"}}"));
    // A branch named like the folder.
    let place = TestRepository::new();
    place.git(&["branch", "wip"]);
    let base = work(&place);
    assert!(matches!(try_save(&place, &base), Err(GitError::Failed { .. })));
}

#[test]
fn a_detached_head_stays_detached() {
    let place = TestRepository::new();
    place.git(&["checkout", "-q", "--detach"]);
    let base = work(&place);
    let before = everything(&place);
    let saved = save(&place, &base);
    assert_eq!((everything(&place), paths(&place, &saved)), (before, MADE.map(str::to_owned).into()));
}

#[rstest]
#[case::sha1(&[])]
#[case::sha256(&["--object-format=sha256"])]
fn of_a_branch_without_a_commit_it_is_the_first_commit(#[case] init: &[&str]) {
    let place = TestRepository::unborn(init);
    let base = place.survey();
    place.write("a.rs", "the loop's\n");
    let saved = save(&place, &base);
    assert_eq!(place.git(&["log", "--format=%P", BRANCH]), "");
    assert_eq!(place.status(), ["?? a.rs"]);
    assert_eq!(
        place.git(&["ls-tree", "-r", "--name-only", saved.commit.as_str()]),
        ".refrain-failure/context.md\n.refrain-failure/state.json\na.rs"
    );
    place.git(&["symbolic-ref", "HEAD"]);
    assert!(place.survey().head.is_none(), "the branch still has no commit");
}

#[rstest]
#[case::merge(&["merge", "-q", "other"])]
#[case::rebase(&["rebase", "-q", "other"])]
#[case::cherry_pick(&["cherry-pick", "other"])]
fn in_the_middle_of_something_that_is_left_as_it_is(#[case] args: &[&str]) {
    let place = TestRepository::new();
    place.git(&["switch", "-qc", "other"]);
    place.write("src/a.rs", "theirs\n");
    place.git(&["commit", "-qam", "Theirs"]);
    place.git(&["switch", "-q", "main"]);
    place.write("src/a.rs", "ours\n");
    place.git(&["commit", "-qam", "Ours"]);
    let base = place.survey();
    place.try_git(args);
    place.write("src/b.rs", "changed\n");
    let before = (everything(&place), place.git(&["ls-files", "--stage"]));
    let saved = save(&place, &base);
    assert_eq!((everything(&place), place.git(&["ls-files", "--stage"])), before);
    assert!(place.git(&["show", &format!("{}:src/b.rs", saved.branch)]).contains("changed"));
    assert!(
        place.git(&["show", &format!("{}:src/a.rs", saved.branch)]).contains("<<<<<<<"),
        "as it was left"
    );
}

#[test]
fn the_failure_branch_needs_no_identity_lock_or_hook() {
    let place = TestRepository::new();
    let base = work(&place);
    place.hook("pre-commit", "exit 1");
    place.hook("commit-msg", "exit 1");
    place.write(".git/index.lock", "");
    place.git(&["config", "commit.gpgSign", "true"]);
    place.git(&["config", "user.useConfigOnly", "true"]);
    place.write_at(place.top().join("home/.gitconfig"), "");
    let saved = save(&place, &base);
    assert_eq!(paths(&place, &saved), MADE);
    assert_eq!(place.git(&["log", "-1", "--format=%an <%ae>", BRANCH]), "Refrain <refrain@localhost>");
}

#[test]
fn a_file_of_the_agent_at_the_path_of_the_reason_is_replaced() {
    let place = TestRepository::new();
    let base = place.survey();
    place.write(".refrain-failure", "mine\n");
    let saved = save(&place, &base);
    assert_eq!(paths(&place, &saved), MADE[..2]);
    assert_eq!(place.read(".refrain-failure"), "mine\n");
}

fn remote(place: &TestRepository, name: &str) {
    let path = place.top().join(name);
    place.git(&["init", "-q", "--bare", path.as_str()]);
    place.git(&["remote", "add", name, path.as_str()]);
}

fn pushed(place: &TestRepository) -> Option<PushReport> {
    pushed_since(place, Some(&place.head()))
}

fn pushed_since(place: &TestRepository, since: Option<&Oid>) -> Option<PushReport> {
    let request = PushRequest {
        branch: BRANCH,
        since,
        bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
    };
    place.repository().push_branch(request).unwrap()
}

fn to(remote: &str) -> Option<PushReport> {
    Some(PushReport { remote: remote.to_owned(), error: None })
}

#[test]
fn the_failure_branch_goes_to_the_branch_remote_origin_or_the_only_one() {
    let place = TestRepository::new();
    let saved = save(&place, &work(&place));
    assert_eq!(pushed(&place), None, "there is none");
    remote(&place, "only");
    assert_eq!(pushed(&place), to("only"));
    assert_eq!(place.git(&["ls-remote", "only"]), format!("{}\trefs/heads/{BRANCH}", saved.commit));
    remote(&place, "second");
    assert_eq!(pushed(&place), None, "it is not configured which");
    remote(&place, "origin");
    assert_eq!(pushed(&place), to("origin"));
    place.git(&["config", "branch.main.remote", "second"]);
    assert_eq!(pushed(&place), to("second"));
    assert_eq!(place.git(&["config", "--get-regexp", "^branch"]), "branch.main.remote second");
    // A user who fetches from one remote and pushes to another, as with a fork, publishes nothing to the first.
    place.git(&["config", "remote.pushDefault", "only"]);
    assert_eq!(pushed(&place), to("only"));
    place.git(&["config", "branch.main.pushRemote", "origin"]);
    assert_eq!(pushed(&place), to("origin"));
    place.git(&["config", "branch.main.pushRemote", "no_push"]);
    assert_eq!(pushed(&place), None, "pushing is switched off");
}

#[test]
fn a_secret_that_the_agent_committed_by_itself_does_not_leave() {
    let place = TestRepository::new();
    remote(&place, "origin");
    let base = place.survey();
    place.write("key.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END OPENSSH PRIVATE KEY-----\n");
    place.git(&["add", "key.pem"]);
    place.git(&["commit", "-qm", "Mine"]);
    let by_agent = place.head();
    // Removed again, it stays in the history.
    place.git(&["rm", "-q", "key.pem"]);
    place.git(&["commit", "-qm", "Not mine"]);
    place.write("src/new.rs", "new\n");
    let _ = save(&place, &base);
    let Some(PushReport { error: Some(said), .. }) = pushed_since(&place, base.head.as_ref()) else {
        panic!("it was pushed")
    };
    assert!(said.contains("key.pem") && said.contains(by_agent.short()), "{said}");
    assert_eq!(place.git(&["ls-remote", "origin"]), "");
    // Commits that are already at the remote were published by others.
    place.git(&["push", "-q", "origin", "HEAD:refs/heads/other"]);
    assert_eq!(pushed_since(&place, base.head.as_ref()), to("origin"));
}

#[test]
fn a_remote_that_says_no_harms_nothing_and_is_never_forced() {
    let place = TestRepository::new();
    let saved = save(&place, &work(&place));
    remote(&place, "origin");
    let other = place.git(&["commit-tree", "-m", "Other", "HEAD^{tree}"]);
    place.git(&["push", "-q", "origin", &format!("{other}:refs/heads/{BRANCH}")]);
    let before = everything(&place);
    let Some(PushReport { remote, error: Some(said) }) = pushed(&place) else {
        panic!("it was pushed over another")
    };
    assert!(remote == "origin" && said.contains("rejected"), "{said}");
    assert_eq!(place.git(&["ls-remote", "origin"]), format!("{other}\trefs/heads/{BRANCH}"));
    place.git(&["remote", "set-url", "origin", "/nowhere/at/all"]);
    assert!(matches!(pushed(&place), Some(PushReport { error: Some(_), .. })));
    assert_eq!((place.git(&["rev-parse", BRANCH]), everything(&place)), (saved.commit.to_string(), before));
}

#[test]
fn pushing_the_failure_branch_asks_no_question() {
    let mut place = TestRepository::new();
    let _ = save(&place, &work(&place));
    let ssh = place.path("../ssh");
    place.write_at(&ssh, "#!/bin/sh\necho \"$@\" \"${SSH_ASKPASS-none}\" >&2\nexit 255\n");
    place.make_executable("../ssh");
    place.git(&["remote", "add", "origin", "git@example.org:x/y"]);
    place.git(&["config", "core.sshCommand", ssh.to_str().unwrap()]);
    place.env.push(("SSH_ASKPASS".into(), "/bin/true".into()));
    let Some(PushReport { error: Some(said), .. }) = pushed(&place) else { panic!("it was pushed") };
    assert!(said.contains("BatchMode=yes") && said.contains(" none"), "{said}");
    // The user's own ssh options come first, and then ours; another program does not accept them.
    place.git(&["config", "core.sshCommand", "false"]);
    let words = |more: &str| format!("{} {more}", ssh.to_str().unwrap());
    for (command, is_told) in [(words("-i key"), true), (format!("exec {}", words("-i key")), false)] {
        place.env.retain(|(name, _)| name != "GIT_SSH_COMMAND");
        place.env.push(("GIT_SSH_COMMAND".into(), command.into()));
        let Some(PushReport { error: Some(said), .. }) = pushed(&place) else { panic!("it was pushed") };
        assert!(said.contains("-i key") && said.contains("BatchMode=yes") == is_told, "{said}");
    }
}

#[test]
fn a_loop_that_changed_nothing_leaves_no_branch() {
    let place = TestRepository::new();
    place.write("README.md", "# Mine\n");
    let base = place.survey();
    assert_eq!(try_save(&place, &base).unwrap(), None);
    assert_eq!(place.git(&["branch", "--list", "wip/*"]), "");
}
