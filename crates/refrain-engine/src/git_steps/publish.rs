//! What a loop does outside: its steps that talk to a remote or a forge, each with its result. Each looks first whether
//! it is done already, so that a repeated step does it once. What comes next, and what is waited for, is decided in
//! `refrain-core`; how git and the forges are asked is in `refrain-git`; what must be there before a loop begins, in
//! `start`.

mod start;
mod token;

use std::ffi::OsString;
use std::fmt::Write;

use jiff::Timestamp;
use refrain_core::LoopState;
use refrain_core::git::{
    Checkout, Checks, ChecksVerdict, Effect, FailedCheck, Oid, PublishResult, PullRequest, Refusal,
};
use refrain_core::prompt::pull_request;
use refrain_core::text::{printable, squeeze};
use refrain_forge::{
    Forge, MergeBlocker, MergeOutcome, PullRequestContent, RetryTime, State, Trouble, Verdict,
};
use refrain_git::{
    BaseReturn, Bounds, Cancel, GitError, HandedOver, PublishRequest, Push, RebaseOutcome, RebaseRequest,
    Repository, Upstream,
};
use refrain_store::LoopDir;

use crate::service::redact::Redactor;
use crate::{chain, now};

pub(crate) use start::settle;

/// How many checks that failed are quoted, and how much of each, in bytes.
const MOST_CHECKS: usize = 5;
const MOST_OF_A_LOG: usize = 4 << 10;

/// A loop's connection to its remote and forge.
pub(crate) struct Publisher<'a> {
    pub(crate) state: &'a LoopState,
    pub(crate) dir: &'a LoopDir,
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) cancel: &'a Cancel,
    pub(crate) repository: &'a Repository,
}

/// Why a publishing step was not done, as the loop records it.
enum Halt {
    Result(PublishResult),
    Git(GitError),
}

impl From<GitError> for Halt {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Self {
        let said = squeeze(&printable(&chain(&trouble)));
        Self::Result(match trouble {
            Trouble::NoProgram { .. } | Trouble::NotLoggedIn { .. } | Trouble::BadToken { .. } => {
                refused(Refusal::Login, said)
            }
            Trouble::NoPermission { .. } => refused(Refusal::Permission, said),
            Trouble::NotFound { .. } => refused(Refusal::Gone, said),
            Trouble::RateLimited { until, .. } => PublishResult::Later { said, until: instant(until, now()) },
            Trouble::Unreachable { .. } | Trouble::Cancelled | Trouble::Tool(_) => {
                PublishResult::Later { said, until: None }
            }
            Trouble::Refused { .. } | Trouble::Answer { .. } => refused(Refusal::Other, said),
        })
    }
}

fn refused(why: Refusal, said: impl Into<String>) -> PublishResult {
    PublishResult::Refused { why, said: said.into() }
}

fn halt<T>(why: Refusal, said: impl Into<String>) -> Result<T, Halt> {
    Err(Halt::Result(refused(why, said)))
}

fn instant(until: RetryTime, now: Timestamp) -> Option<Timestamp> {
    match until {
        RetryTime::At(seconds) => Timestamp::from_second(i64::try_from(seconds).ok()?).ok(),
        RetryTime::After(after) => now.checked_add(after).ok(),
    }
}

impl Publisher<'_> {
    /// Does it, unless it is done; what git says if it fails is the error.
    pub(crate) fn publish(&self, effect: Effect) -> Result<PublishResult, GitError> {
        let done = match effect {
            Effect::Push => self.push(),
            Effect::Open => self.open(),
            Effect::Ready => self.ready(),
            Effect::Look => self.look(),
            Effect::Merge => self.merge(),
            Effect::Return => self.back(),
        };
        match done {
            Ok(result) | Err(Halt::Result(result)) => Ok(result),
            Err(Halt::Git(error)) => Err(error),
        }
    }

    fn branch(&self) -> Result<&str, Halt> {
        let git = &self.state.git;
        let own = self.state.spec.git.new_branch();
        match own.or_else(|| git.base.as_ref()?.branch.as_deref()) {
            Some(branch) => Ok(branch),
            None => halt(Refusal::Other, "the head is detached: there is no branch to push"),
        }
    }

    /// The remote and its branch that a branch is pushed to.
    fn upstream(&self, branch: &str) -> Result<Upstream, Halt> {
        match self.repository.upstream(branch)? {
            Some(upstream) => Ok(upstream),
            None => halt(
                Refusal::NoRemote,
                "there is no remote to push to, or git cannot tell which: git config remote.pushDefault NAME says it",
            ),
        }
    }

    fn head(&self) -> Result<&Oid, Halt> {
        match &self.state.git.head {
            Some(head) => Ok(head),
            None => halt(Refusal::Other, "there is no commit to publish"),
        }
    }

    fn push(&self) -> Result<PublishResult, Halt> {
        let (branch, head) = (self.branch()?, self.head()?);
        let upstream = self.upstream(branch)?;
        let (spec, git) = (&self.state.spec, &self.state.git);
        let request = PublishRequest {
            upstream: &upstream,
            head,
            was_there: git.published.pushed.is_some(),
            base: git.began.as_ref(),
            bounds: Bounds::of(&spec.git, Some(self.cancel)),
        };
        match self.repository.publish(request)? {
            Push::Pushed { .. } | Push::UpToDate { .. } => {
                Ok(PublishResult::Pushed { remote: upstream.remote, branch: upstream.branch })
            }
            // Only this loop pushes a branch that it made itself, unless another has that name.
            Push::Behind { theirs } if spec.git.new_branch().is_some() && git.published.pushed.is_none() => {
                halt(
                    Refusal::Conflict,
                    format!(
                        "{} has a branch {} already, with commits that are not this loop's ({}): take it away there if it is not \
                     needed, or start the loop with another --branch-template",
                        upstream.remote,
                        upstream.branch,
                        theirs.short()
                    ),
                )
            }
            Push::Behind { theirs } => self.rebase(branch, head, &theirs),
            Push::Refused(refusal) => Ok(of_refusal(&refusal)),
        }
    }

    fn rebase(&self, branch: &str, head: &Oid, theirs: &Oid) -> Result<PublishResult, Halt> {
        let request = RebaseRequest {
            id: &self.state.spec.id,
            branch: Some(branch),
            head,
            theirs,
            index: &self.dir.index(),
            cancel: Some(self.cancel),
        };
        Ok(match self.repository.rebase_onto(request)? {
            RebaseOutcome::Done { head } => {
                let (tree, commits) = self.repository.standing_on(theirs, &head)?;
                PublishResult::Rebased { head, tree, commits }
            }
            RebaseOutcome::Conflict { conflicts, ours, theirs: other, .. } => {
                self.note(&format!("What this loop did:\n{ours}\n\nWhat others did:\n{other}\n"));
                PublishResult::Conflict { theirs: theirs.clone(), paths: conflicts }
            }
            RebaseOutcome::Unrelated => {
                refused(Refusal::Conflict, "the remote's branch has no commit in common with this one")
            }
            RebaseOutcome::Hindered(hindered) => of_hindrance(&hindered),
        })
    }

    /// Keeps what the next prompt quotes. Where it cannot be kept, the prompt is the shorter.
    fn note(&self, text: &str) {
        if let Some(last) = self.state.last_charged() {
            let _ = refrain_store::write_nofollow(&self.dir.attempt(last.id).outside(), text.as_bytes());
        }
    }

    fn forge(&self, upstream: &Upstream) -> Result<Forge, Halt> {
        let found = Forge::of(&upstream.url, self.repository.root(), self.env, Some(self.cancel))?;
        match found {
            Some(forge) => Ok(forge),
            None => halt(Refusal::Login, unknown_forge(upstream)),
        }
    }

    /// The branch that the pull request is for.
    fn base(&self, forge: &Forge) -> Result<String, Halt> {
        match &self.state.spec.git.onto {
            Some(onto) => Ok(onto.clone()),
            None => Ok(forge.project()?.default_branch),
        }
    }

    /// The title and the body of the pull request.
    fn said(&self) -> (String, String) {
        let redactor = Redactor::new(&self.state.spec, None);
        let body = pull_request::body(self.state, |text| redactor.clean(text));
        (redactor.clean(&pull_request::title(self.state)), body)
    }

    fn open(&self) -> Result<PublishResult, Halt> {
        let upstream = self.upstream(self.branch()?)?;
        let forge = self.forge(&upstream)?;
        let base = self.base(&forge)?;
        let (title, body) = self.said();
        let opening = PullRequestContent {
            branch: &upstream.branch,
            base: &base,
            title: &title,
            body: &body,
            draft: true,
        };
        let made = forge.open(opening)?;
        Ok(PublishResult::Requested(PullRequest { number: made.number, url: made.url }))
    }

    /// The pull request, as the loop knows it.
    fn request(&self) -> Result<&PullRequest, Halt> {
        match &self.state.git.published.request {
            Some(request) => Ok(request),
            None => halt(Refusal::Gone, "there is no pull request"),
        }
    }

    /// The pull request as it is at the forge; a closed one needs a person.
    fn at_forge(&self, forge: &Forge) -> Result<refrain_forge::PullRequest, Halt> {
        let known = self.request()?;
        let found = forge.get(known.number)?;
        match found.state {
            State::Open | State::Merged => Ok(found),
            State::Closed => halt(Refusal::Gone, format!("{} was closed", known.url)),
        }
    }

    fn ready(&self) -> Result<PublishResult, Halt> {
        let upstream = self.upstream(self.branch()?)?;
        let (forge, request) = (self.forge(&upstream)?, self.request()?);
        let found = self.at_forge(&forge)?;
        // If the request was closed or merged in between, there is nothing left to say.
        if found.state == State::Open {
            let body = pull_request::retold(&found.body, &self.said().1, &self.state.spec.id);
            forge.describe(request.number, None, &body)?;
            forge.ready(request.number)?;
        }
        Ok(PublishResult::Requested(request.clone()))
    }

    fn look(&self) -> Result<PublishResult, Halt> {
        let upstream = self.upstream(self.branch()?)?;
        let (forge, head) = (self.forge(&upstream)?, self.head()?);
        let found = self.at_forge(&forge)?;
        if found.state == State::Merged {
            return Ok(PublishResult::Merged { commit: found.merged_as });
        }
        let checks = forge.checks(head, &self.base(&forge)?)?;
        let total = count(checks.list.len());
        let of = |verdict, over, failed| {
            PublishResult::Checked(Checks { head: head.clone(), verdict, total, over, failed })
        };
        Ok(match checks.verdict() {
            Verdict::Green => of(ChecksVerdict::Green, total, Vec::new()),
            Verdict::NoneConfigured => of(ChecksVerdict::None, 0, Vec::new()),
            Verdict::NotStarted { .. } => of(ChecksVerdict::NotStarted, 0, Vec::new()),
            Verdict::Pending { done, .. } => of(ChecksVerdict::Pending, count(done), Vec::new()),
            Verdict::Waiting { on } => {
                let names: Vec<_> = on.iter().map(|check| squeeze(&printable(&check.name))).collect();
                refused(Refusal::Review, format!("a person has to let them begin: {}", names.join(", ")))
            }
            Verdict::Red { failed, pending } => {
                let mut logs = String::new();
                for check in failed.iter().take(MOST_CHECKS) {
                    let said = forge.failing_log(check, MOST_OF_A_LOG)?;
                    let _ = writeln!(logs, "{}:\n{}\n", printable(&check.name), printable(&said));
                }
                self.note(&logs);
                // A draft until it is proven, as it was; if that cannot be had, what the checks say is there all the
                // same.
                if found.state == State::Open && pull_request::is_own(&found.body, &self.state.spec.id) {
                    let _ = forge.draft(&found);
                }
                let named = failed.iter().map(|check| FailedCheck {
                    name: squeeze(&printable(&check.name)),
                    url: check.url.as_deref().map(|url| squeeze(&printable(url))),
                });
                of(ChecksVerdict::Red, total.saturating_sub(count(pending)), named.collect())
            }
        })
    }

    fn merge(&self) -> Result<PublishResult, Halt> {
        let upstream = self.upstream(self.branch()?)?;
        let (forge, request, head) = (self.forge(&upstream)?, self.request()?, self.head()?);
        match forge.merge(request.number, head, true, true)? {
            MergeOutcome::Done { commit, .. } => Ok(PublishResult::Merged { commit }),
            MergeOutcome::HeadMoved { head } => halt(
                Refusal::Conflict,
                format!("{} was pushed to the branch, and no gate has checked it", head.short()),
            ),
            MergeOutcome::NotYet { said, .. } => {
                Ok(PublishResult::Later { said: squeeze(&printable(&said)), until: None })
            }
            MergeOutcome::NotMergeable { why, said } => self.unmergeable(&forge, &why, said),
        }
    }

    /// The refusal to merge it, with the reasons.
    fn unmergeable(&self, forge: &Forge, why: &[MergeBlocker], said: String) -> Result<PublishResult, Halt> {
        let is = |wanted: &[MergeBlocker]| why.iter().any(|it| wanted.contains(it));
        let named: Vec<_> = why.iter().map(|it| squeeze(&printable(&it.to_string()))).collect();
        let told = if named.is_empty() { squeeze(&printable(&said)) } else { named.join("; ") };
        if is(&[MergeBlocker::Closed]) {
            return halt(Refusal::Gone, told);
        }
        if is(&[MergeBlocker::Conflicts, MergeBlocker::Behind]) {
            // The agent merges what the base has: nothing that is pushed is ever made anew.
            let base = self.upstream(&self.base(forge)?)?;
            return match self.repository.fetch(&base, Some(self.cancel))? {
                Ok(Some(theirs)) => Ok(PublishResult::Conflict { theirs, paths: Vec::new() }),
                Ok(None) => halt(Refusal::Gone, format!("{} is not at the remote any more", base.branch)),
                Err(refusal) => Ok(of_refusal(&refusal)),
            };
        }
        if is(&[MergeBlocker::ReviewMissing, MergeBlocker::ChangesRequested]) {
            return halt(Refusal::Review, told);
        }
        if is(&[MergeBlocker::ChecksMissing]) {
            return Ok(PublishResult::Later { said: told, until: None });
        }
        halt(Refusal::Unmergeable, told)
    }

    fn back(&self) -> Result<PublishResult, Halt> {
        let (branch, head) = (self.branch()?, self.head()?);
        let spec = &self.state.spec.git;
        let upstream = self.upstream(branch)?;
        let forge = self.forge(&upstream)?;
        let base = self.base(&forge)?;
        let there = Upstream { branch: base.clone(), ..upstream };
        let kept = match (&spec.checkout, &spec.onto) {
            (Checkout::AsIs, _) => Some("it was there before the loop was".to_owned()),
            (Checkout::Branch(_), None) => {
                Some("the branch that it began at is not at the remote".to_owned())
            }
            (Checkout::Branch(_), Some(onto)) => {
                self.repository.back_from((branch, head), BaseReturn::To(onto), &there)?
            }
            (Checkout::Worktree { .. }, _) => {
                self.repository.back_from((branch, head), BaseReturn::Detached, &there)?
            }
        };
        Ok(PublishResult::Returned { kept: kept.map(|kept| squeeze(&printable(&kept))) })
    }
}

fn unknown_forge(upstream: &Upstream) -> String {
    format!(
        "pull requests are opened at GitHub with gh or a token and at GitLab with glab, and none of them is for {}",
        squeeze(&printable(&upstream.url))
    )
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}

fn of_refusal(refusal: &refrain_git::Refusal) -> PublishResult {
    use refrain_git::Refusal as Said;
    let said = squeeze(&printable(&refusal.to_string()));
    let why = match refusal {
        Said::NoRemote { .. } => Refusal::NoRemote,
        Said::NoPermission { .. } => Refusal::Permission,
        Said::ProtectedBranch { .. } => Refusal::Protected,
        Said::HookDeclined { .. } => Refusal::Hook,
        Said::BranchDeleted => Refusal::Gone,
        Said::Unreachable { .. } => return PublishResult::Later { said, until: None },
        Said::Secret(_) => Refusal::Secret,
        Said::Other { .. } => Refusal::Other,
    };
    refused(why, said)
}

fn of_hindrance(hindered: &HandedOver) -> PublishResult {
    match hindered {
        HandedOver::InTheWay { paths } => {
            let named: Vec<_> = paths.iter().map(ToString::to_string).collect();
            let said =
                format!("the remote's commits change files that you have changed: {}", named.join(", "));
            refused(Refusal::Conflict, said)
        }
        HandedOver::OtherBranch { now } => {
            let now = now.as_deref().unwrap_or("no branch");
            refused(Refusal::Other, format!("{now} is checked out, not the branch of the loop"))
        }
        HandedOver::CheckedOut { by } => {
            refused(Refusal::Other, format!("the branch is checked out in {by} too"))
        }
        HandedOver::InProgress(operation) => refused(Refusal::Other, format!("a {operation} is in progress")),
        HandedOver::Diverged { .. } => refused(Refusal::Other, "the branch has new commits meanwhile"),
        HandedOver::BranchHeld { said } => {
            PublishResult::Later { said: format!("git did not move the branch: {said}"), until: None }
        }
        HandedOver::IndexLocked => {
            PublishResult::Later { said: "git's index is locked".to_owned(), until: None }
        }
        HandedOver::Done => PublishResult::Later { said: "the branch has moved".to_owned(), until: None },
    }
}
