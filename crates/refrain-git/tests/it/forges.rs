//! GitHub and GitLab as the fake forge provides them: each action happens once, and each refusal has a name.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use refrain_core::git::Oid;
use refrain_forge::{
    CheckState, ChecksSetup, Forge, MergeBlocker, MergeOutcome, Mergeable, PullRequest, PullRequestContent,
    RetryTime, State, Trouble, Verdict,
};
use refrain_git::{Bounds, Cancel, PublishRequest, Push, Refusal};
use rstest::rstest;
use testkit::{Fault, Limit};

use crate::place::TestRepository;

/// The branch of these tests, with characters that must be encoded in a URL.
const BRANCH: &str = "refrain/a+b";

/// A repository with a branch that is one commit ahead, at a forge.
struct AtForge {
    place: TestRepository,
    there: testkit::Forge,
    head: Oid,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    GitHub,
    GitLab,
    /// GitHub without a login of `gh`, but with a token.
    Token,
}

/// The token with which the forge of [`Kind::Token`] knows the user.
const TOKEN: &str = "ghp_0123456789abcdef";

impl AtForge {
    fn new(kind: Kind) -> Self {
        let mut place = TestRepository::new();
        let there = match kind {
            Kind::GitHub | Kind::Token => testkit::Forge::github(place.top().as_std_path()),
            Kind::GitLab => testkit::Forge::gitlab(place.top().as_std_path()),
        };
        let env = there.env().into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        place.env.retain(|(name, _)| name != "PATH");
        place.env.extend(env);
        if matches!(kind, Kind::Token) {
            there.rule("logged-out", Some(""));
            there.change(|world| world.token = Some(TOKEN.to_owned()));
            let said = [("GH_TOKEN", TOKEN.to_owned()), ("GITHUB_API_URL", there.api_url())];
            place.env.extend(said.map(|(name, value)| (name.into(), value.into())));
        }
        place.git(&["remote", "add", "origin", &there.url()]);
        place.git(&["push", "-q", "origin", "main"]);
        place.git(&["checkout", "-q", "-b", BRANCH]);
        place.write("src/new.rs", "fn new() {}\n");
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", "The loop's work"]);
        let head = place.head();
        Self { place, there, head }
    }

    /// The same, pushed, with a pull request.
    fn opened(kind: Kind) -> Self {
        let it = Self::new(kind);
        it.place.git(&["push", "-q", "origin", BRANCH]);
        it.open().unwrap();
        it
    }

    fn forge(&self) -> Forge {
        let url = self.place.repository().upstream("main").unwrap().unwrap().url;
        Forge::of(&url, self.place.root(), &self.place.env, self.place.cancel.as_ref()).unwrap().unwrap()
    }

    fn open(&self) -> Result<PullRequest, Trouble> {
        let (title, body) = ("Do it", "What was claimed, \"quoted\"\nand proved ✓");
        self.forge().open(PullRequestContent { branch: BRANCH, base: "main", title, body, draft: true })
    }

    fn merge(&self) -> Result<MergeOutcome, Trouble> {
        self.forge().merge(1, &self.head, true, true)
    }

    fn verdict(&self) -> Verdict {
        self.forge().checks(&self.head, "main").unwrap().verdict()
    }

    fn publish(&self) -> Push {
        let repository = self.place.repository();
        let pushed = repository.publish(PublishRequest {
            upstream: &repository.upstream(BRANCH).unwrap().unwrap(),
            head: &self.head,
            was_there: false,
            base: None,
            bounds: Bounds { largest_file: 1 << 20, allow_secrets: &[], cancel: None },
        });
        pushed.unwrap_or_else(|error| panic!("{error}"))
    }
}

#[rstest]
fn a_pull_request_goes_its_whole_way(#[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind) {
    let it = AtForge::new(kind);
    let forge = it.forge();
    assert_eq!(forge.project().unwrap().default_branch, "main");
    assert_eq!(forge.project().unwrap().may_push, Some(true));
    assert_eq!(it.publish(), Push::Pushed { head: it.head.clone() });
    assert_eq!(forge.find(BRANCH).unwrap(), None);
    let opened = it.open().unwrap();
    assert_eq!((opened.number, opened.state, opened.draft, &opened.head), (1, State::Open, true, &it.head));
    assert_eq!((opened.branch.as_str(), opened.base.as_str(), opened.merged_as), (BRANCH, "main", None));
    assert_eq!(it.open().unwrap().number, 1);
    assert_eq!(it.there.done("open"), 1, "it is there already");
    assert_eq!(it.there.said(1).1, "What was claimed, \"quoted\"\nand proved ✓");
    forge.describe(1, Some("Do it well"), "All of it").unwrap();
    assert!(forge.get(1).unwrap().draft, "another title takes nothing of the draft away");
    assert_eq!(forge.mergeable(1).unwrap(), Mergeable::No(vec![MergeBlocker::Draft]));
    forge.ready(1).unwrap();
    forge.ready(1).unwrap();
    forge.draft(&forge.get(1).unwrap()).unwrap();
    assert!(forge.get(1).unwrap().draft, "and a draft again");
    forge.ready(1).unwrap();
    assert_eq!(it.there.said(1), ("Do it well".to_owned(), "All of it".to_owned()));
    assert_eq!(forge.mergeable(1).unwrap(), Mergeable::Yes);
    let MergeOutcome::Done { commit, branch_deleted } = it.merge().unwrap() else { panic!("it goes") };
    assert_eq!((commit.map(|commit| commit.to_string()), branch_deleted), (it.there.head("main"), true));
    assert_eq!(it.there.head(BRANCH), None);
    let again = it.merge().unwrap();
    assert!(matches!(again, MergeOutcome::Done { commit: Some(_), branch_deleted: true }), "{again:?}");
    assert_eq!((it.there.done("merge"), it.there.done("delete-branch")), (1, 1));
    assert_eq!(forge.find(BRANCH).unwrap().unwrap().state, State::Merged);
}

#[rstest]
fn an_action_interrupted_by_a_server_failure_is_done_once(
    #[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind,
    #[values(Fault::Before, Fault::During, Fault::After)] fault: Fault,
) {
    let it = AtForge::new(kind);
    it.publish();
    it.there.dies("open", fault);
    let first = it.open();
    match fault {
        // Nothing was done, and the caller cannot know that.
        Fault::Before => assert!(matches!(first.unwrap_err(), Trouble::Unreachable { .. })),
        Fault::During | Fault::After => assert_eq!(first.unwrap().number, 1, "it was looked up"),
    }
    assert_eq!((it.open().unwrap().number, it.there.done("open")), (1, 1));
    it.forge().ready(1).unwrap();
    it.there.dies("merge", fault);
    let first = it.merge();
    match fault {
        Fault::Before => assert!(matches!(first.unwrap_err(), Trouble::Unreachable { .. })),
        Fault::During | Fault::After => {
            assert!(matches!(first.unwrap(), MergeOutcome::Done { .. }), "it was looked up")
        }
    }
    assert!(matches!(it.merge().unwrap(), MergeOutcome::Done { branch_deleted: true, .. }));
    assert_eq!(it.there.done("merge"), 1);
}

#[rstest]
fn only_the_exact_head_is_merged(#[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind) {
    let it = AtForge::opened(kind);
    it.forge().ready(1).unwrap();
    // Between the check and the merge.
    it.there.at_question("merge", 1, |world| drop(world.commit(BRANCH, "theirs", "theirs\n")));
    let merged = it.merge().unwrap();
    let head = it.there.head(BRANCH).unwrap().parse().unwrap();
    assert_eq!(merged, MergeOutcome::HeadMoved { head });
    assert_eq!((it.there.done("merge"), it.merge().unwrap()), (0, merged));
}

#[rstest]
fn obstacles_to_a_merge_are_named(#[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind) {
    let it = AtForge::opened(kind);
    let why = || match it.merge().unwrap() {
        MergeOutcome::NotMergeable { why, said } => {
            assert!(!said.is_empty());
            why
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(why(), [MergeBlocker::Draft]);
    it.forge().ready(1).unwrap();
    it.there.change(|world| world.review = Some("REVIEW_REQUIRED"));
    assert_eq!(why(), [MergeBlocker::ReviewMissing]);
    it.there.change(|world| {
        world.review = None;
        world.must_be_up_to_date = true;
        world.commit("main", "theirs", "theirs\n");
    });
    assert_eq!(why(), [MergeBlocker::Behind]);
    it.there.change(|world| drop(world.commit("main", "src/new.rs", "fn other() {}\n")));
    assert_eq!(why(), [MergeBlocker::Conflicts]);
    it.there.change(|world| world.delete(BRANCH));
    assert_eq!((why(), it.there.done("merge")), (vec![MergeBlocker::Closed], 0));
}

#[rstest]
fn a_refusal_without_a_reason_may_pass(#[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind) {
    let it = AtForge::opened(kind);
    it.forge().ready(1).unwrap();
    let moved = "Base branch was modified. Review and try the merge again.";
    it.there.change(|world| world.refuses_merge = Some(moved));
    assert_eq!(it.merge().unwrap(), MergeOutcome::NotYet { said: moved.to_owned() });
    let squash = "Squash merges are not allowed on this repository.";
    it.there.change(|world| world.refuses_merge = Some(squash));
    let why = vec![MergeBlocker::Rule(squash.to_owned())];
    assert_eq!(it.merge().unwrap(), MergeOutcome::NotMergeable { why, said: squash.to_owned() });
    assert!(matches!(it.merge().unwrap(), MergeOutcome::Done { .. }));
}

#[test]
fn a_project_without_drafts_gets_none() {
    let it = AtForge::new(Kind::GitHub);
    it.there.change(|world| world.has_drafts = false);
    it.publish();
    assert!(!it.open().unwrap().draft);
}

#[rstest]
fn checks_are_followed_from_none_to_green_and_red(
    #[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind,
) {
    let it = AtForge::opened(kind);
    it.there.change(|world| {
        world.add_checks(&[
            &[("build", "queued"), ("lint", "queued")],
            &[("build", "in_progress"), ("lint", "success"), ("status/docs", "in_progress")],
            &[("build", "success"), ("lint", "success"), ("status/docs", "success")],
        ]);
        world.add_checks(&[&[("build", "failure"), ("lint", "in_progress")]]);
        world.log =
            "2026-01-02T03:04:05.1234567Z test fails\n2026-01-02T03:04:05.1234567Z ##[error]code 101\n"
                .to_owned();
    });
    assert_eq!(it.verdict(), Verdict::Pending { done: 0, of: 2 });
    assert_eq!(it.verdict(), Verdict::Pending { done: 1, of: 3 });
    assert_eq!(it.verdict(), Verdict::Green);
    assert_eq!(it.verdict(), Verdict::Green);
    let other = it.there.head("main").unwrap().parse().unwrap();
    let checks = it.forge().checks(&other, "main").unwrap();
    let Verdict::Red { failed, pending: 1 } = checks.verdict() else { panic!("{checks:?}") };
    assert_eq!((failed.len(), failed[0].name.as_str(), failed[0].state), (1, "build", CheckState::Failed));
    assert_eq!(it.forge().failing_log(&failed[0], 1 << 10).unwrap(), "test fails\n##[error]code 101");
}

#[rstest]
fn checks_that_have_not_started_are_distinguished_from_no_checks(
    #[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind,
) {
    let it = AtForge::opened(kind);
    assert_eq!(it.verdict(), Verdict::NoneConfigured);
    it.there.change(|world| {
        world.workflows.push("CI".to_owned());
        world.commit(BRANCH, ".gitlab-ci.yml", "build:\n");
    });
    let head = it.there.head(BRANCH).unwrap().parse().unwrap();
    let checks = it.forge().checks(&head, "main").unwrap();
    assert!(matches!(&checks.configured, ChecksSetup::Yes(_)), "{checks:?}");
    assert!(matches!(checks.verdict(), Verdict::NotStarted { certain: true, .. }));
}

#[test]
fn a_required_check_that_never_starts_is_missed() {
    let it = AtForge::opened(Kind::GitHub);
    it.there.change(|world| world.required.push("deploy".to_owned()));
    assert_eq!(it.verdict(), Verdict::NotStarted { why: "required: deploy".to_owned(), certain: true });
    it.there.change(|world| world.add_checks(&[&[("build", "success")]]));
    assert_eq!(it.verdict(), Verdict::Pending { done: 1, of: 2 });
    let list = it.forge().checks(&it.head, "main").unwrap().list;
    assert_eq!(list[0].required, Some(false));
}

#[rstest]
fn all_pages_of_a_list_are_read(#[values(Kind::GitHub, Kind::GitLab, Kind::Token)] kind: Kind) {
    let it = AtForge::opened(kind);
    let mut look: Vec<(String, &str)> = (0..230).map(|n| (format!("job {n}"), "success")).collect();
    look.push(("last".to_owned(), "failure"));
    it.there.change(|world| world.checks.push(vec![look]));
    let checks = it.forge().checks(&it.head, "main").unwrap();
    assert_eq!(checks.list.len(), 231);
    assert!(matches!(checks.verdict(), Verdict::Red { failed, pending: 0 } if failed[0].name == "last"));
}

#[rstest]
#[case(Kind::GitHub, Limit::Primary(1_900_000_000), RetryTime::At(1_900_000_000))]
#[case(Kind::GitHub, Limit::Secondary(7), RetryTime::After(Duration::from_secs(7)))]
#[case(Kind::GitLab, Limit::Primary(1_900_000_000), RetryTime::At(1_900_000_000))]
#[case(Kind::GitLab, Limit::Secondary(7), RetryTime::After(Duration::from_secs(7)))]
#[case(Kind::Token, Limit::Primary(1_900_000_000), RetryTime::At(1_900_000_000))]
#[case(Kind::Token, Limit::Secondary(7), RetryTime::After(Duration::from_secs(7)))]
fn a_limit_says_until_when(#[case] kind: Kind, #[case] limit: Limit, #[case] expected: RetryTime) {
    let it = AtForge::opened(kind);
    it.there.limits(&[limit]);
    match it.forge().find(BRANCH) {
        Err(Trouble::RateLimited { until, .. }) => assert_eq!(until, expected),
        other => panic!("{other:?}"),
    }
    assert!(it.forge().find(BRANCH).unwrap().is_some());
}

#[rstest]
fn missing_permission_login_and_connection_are_reported(#[values(Kind::GitHub, Kind::GitLab)] kind: Kind) {
    let it = AtForge::new(kind);
    it.publish();
    it.there.change(|world| world.may_only_look = true);
    assert_eq!(it.forge().project().unwrap().may_push, Some(false));
    assert!(matches!(it.open(), Err(Trouble::NoPermission { .. })));
    assert!(matches!(it.forge().mergeable(77), Err(Trouble::NotFound { .. })));
    it.there.rule("logged-out", Some(""));
    assert!(matches!(it.open(), Err(Trouble::NotLoggedIn { .. })));
    it.there.rule("logged-out", None);
    it.there.change(|world| world.is_offline = true);
    assert!(matches!(it.open(), Err(Trouble::Unreachable { .. })));
}

#[test]
fn an_invalid_token_is_reported_by_its_source_and_never_shown() {
    let mut it = AtForge::new(Kind::Token);
    it.publish();
    it.there.change(|world| world.may_only_look = true);
    assert!(matches!(it.open(), Err(Trouble::NoPermission { .. })));
    it.there.change(|world| world.is_offline = true);
    let unreachable = it.open().unwrap_err();
    assert!(matches!(unreachable, Trouble::Unreachable { .. }), "{unreachable}");
    it.there.change(|world| (world.is_offline, world.token) = (false, Some("another".to_owned())));
    let trouble = it.open().unwrap_err();
    assert!(matches!(trouble, Trouble::BadToken { from: "GH_TOKEN", .. }), "{trouble}");
    let shown = format!("{trouble} {trouble:?} {:?} {unreachable}", it.forge());
    assert!(!shown.contains(TOKEN), "{shown}");
    let cancel = Cancel::new().unwrap();
    it.place.cancel = Some(cancel.clone());
    let forge = it.forge();
    cancel.cancel();
    assert!(matches!(forge.find(BRANCH), Err(Trouble::Cancelled)));
    assert_eq!(it.there.done("open"), 0);
}

#[test]
fn the_login_of_the_program_is_used_before_any_token() {
    let it = AtForge::new(Kind::Token);
    it.there.rule("logged-out", None);
    // The forge does not know the program's token.
    assert!(matches!(it.forge().project(), Err(Trouble::NotLoggedIn { .. })));
    it.there.change(|world| world.token = None);
    assert_eq!(it.forge().project().unwrap().default_branch, "main");
}

#[test]
fn git_pushes_over_http_by_the_token_and_keeps_it_nowhere() {
    let mut it = AtForge::new(Kind::Token);
    it.place.git(&["remote", "set-url", "origin", &it.there.http_url()]);
    // A helper of the user's, which knows no password and would store every one.
    let kept = it.place.top().join("kept");
    it.place.git(&["config", "credential.helper", &format!("!cat >> {kept}; :")]);
    let stranger = it.publish();
    assert!(matches!(stranger, Push::Refused(Refusal::NoPermission { .. })), "{stranger:?}");
    let own = [("GH_ENTERPRISE_TOKEN", TOKEN), ("GH_HOST", "127.0.0.1")];
    it.place.env.extend(own.map(|(name, value)| (name.into(), value.into())));
    assert_eq!(it.publish(), Push::Pushed { head: it.head.clone() });
    assert_eq!(it.there.head(BRANCH), Some(it.head.to_string()));
    assert!(!fs::read_to_string(kept).unwrap().contains(TOKEN));
    it.place.env.push(("GH_ENTERPRISE_TOKEN".into(), "another".into()));
    it.place.git(&["commit", "-q", "--allow-empty", "-m", "More"]);
    it.head = it.place.head();
    match it.publish() {
        Push::Refused(Refusal::NoPermission { said }) => assert!(!said.contains("another"), "{said}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_the_forge_program_the_error_names_what_to_install() {
    let mut it = AtForge::new(Kind::GitHub);
    it.place.env.retain(|(name, _)| name != "PATH");
    it.place.env.push(("PATH".into(), "/nonexistent".into()));
    let env = &it.place.env;
    let forge = Forge::of(&it.there.url(), it.place.root(), env, None).unwrap().unwrap();
    assert!(!format!("{forge:?}").contains("PATH"), "an environment is not printed, as it has tokens in it");
    let trouble = forge.project().unwrap_err();
    assert!(matches!(trouble, Trouble::NoProgram { program: "gh", .. }), "{trouble}");
    assert!(Forge::of("https://git.example.org/o/r.git", it.place.root(), env, None).unwrap().is_none());
    assert!(Forge::of("../remote.git", it.place.root(), env, None).unwrap().is_none());
}

#[test]
fn a_host_of_its_own_is_known_by_the_login_and_is_shown_no_token_of_another() {
    let mut it = AtForge::new(Kind::GitHub);
    let forge = |it: &AtForge| {
        Forge::of("https://git.example.org/owner/project.git", it.place.root(), &it.place.env, None).unwrap()
    };
    assert!(forge(&it).is_none(), "there is no login there");
    it.place.env.push(("FORGE_HOST".into(), "git.example.org".into()));
    assert_eq!(forge(&it).unwrap().project().unwrap().default_branch, "main");
    // A program that records what it sees.
    let (bin, seen) = (it.place.top().join("bin"), it.place.top().join("seen"));
    for name in ["gh", "glab"] {
        it.place.write_at(bin.join(name), format!("#!/bin/sh\necho \"$GITLAB_TOKEN\" >> {seen}\nexit 1\n"));
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = it.place.env.iter().rev().find(|(name, _)| name == "PATH").unwrap().1.clone();
    let path = [bin.as_str(), ":", path.to_str().unwrap()].concat();
    it.place.env.extend(
        [("PATH", path.as_str()), ("GITLAB_TOKEN", "glpat-x")]
            .map(|(name, value)| (name.into(), value.into())),
    );
    assert!(forge(&it).is_none());
    assert_eq!(fs::read_to_string(&seen).unwrap(), "\n\n");
    it.place.env.push(("GITLAB_HOST".into(), "https://git.example.org".into()));
    assert!(forge(&it).is_none());
    assert_eq!(fs::read_to_string(&seen).unwrap(), "\n\nglpat-x\nglpat-x\n", "where the person says so");
}

#[test]
fn a_question_can_be_stopped() {
    let mut it = AtForge::opened(Kind::GitHub);
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    it.place.cancel = Some(cancel);
    assert!(matches!(it.forge().find(BRANCH), Err(Trouble::Cancelled)));
}

#[rstest]
#[case::permission("read-only", |it: &Refusal| matches!(it, Refusal::NoPermission { .. }))]
#[case::hook("declines", |it: &Refusal| matches!(it, Refusal::HookDeclined { .. }))]
#[case::key("unknown-key", |it: &Refusal| matches!(it, Refusal::NoPermission { .. }))]
#[case::offline("offline", |it: &Refusal| matches!(it, Refusal::Unreachable { .. }))]
#[case::cut_off("cut-off-before", |it: &Refusal| matches!(it, Refusal::Unreachable { .. }))]
fn a_push_to_a_forge_is_refused_by_name(#[case] rule: &str, #[case] is_it: fn(&Refusal) -> bool) {
    let it = AtForge::new(Kind::GitHub);
    it.there.rule(rule, Some(""));
    match it.publish() {
        Push::Refused(refusal) => assert!(is_it(&refusal), "{refusal:?}"),
        other => panic!("{other:?}"),
    }
    it.there.rule(rule, None);
    assert!(matches!(it.publish(), Push::Pushed { .. }));
    assert_eq!(it.there.pushes().len(), 2, "main, and this");
}

#[test]
fn a_protected_branch_is_known_by_its_rule_and_a_cut_off_push_is_found() {
    let it = AtForge::new(Kind::GitHub);
    it.there.protect(BRANCH);
    assert!(matches!(it.publish(), Push::Refused(Refusal::ProtectedBranch { .. })));
    it.there.protect("main");
    it.there.rule("cut-off-after", Some(""));
    assert_eq!(it.publish(), Push::Pushed { head: it.head.clone() });
    assert_eq!(it.there.pushes().len(), 2, "main, and this once");
}
