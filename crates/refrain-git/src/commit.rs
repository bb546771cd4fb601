//! A commit of the loop's own changes.
//!
//! It is made from a private index, with the user's identity, hooks and signature. Without hooks and signature, `git
//! commit` would only read every file once more; then the commit is made directly, and the branch is moved only if it
//! has not moved since it was read.

pub(crate) mod changes;
pub(crate) mod choice;
pub(crate) mod evidence;
pub(crate) mod history;
pub(crate) mod hook_guard;
pub(crate) mod intent;
pub(crate) mod message;
pub(crate) mod reconcile_history;
pub(crate) mod save;
pub(crate) mod staging_cache;

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::{
    Base, CommitReport, CommitResult, ExposedSecret, Oid, Operation, RepoPath, SkipReason,
};

use crate::candidate::initial_changes::Before;
use crate::candidate::memory::StagedWork;
use crate::candidate::stage::{bring_back, stage};
use crate::candidate::status::{Status, has_conflicts};
use crate::candidate::submodules::look;
use crate::candidate::{Bounds, Candidate, Rules, what};
use crate::commit::choice::choose;
use crate::commit::history::screen_commits;
use crate::commit::message::{IDENTITY_ERRORS, with_trailers};
use crate::commit::reconcile_history::{CommitAndTree, CommitOwner, ITERATION, Intent, LOOP, Since, since};
use crate::error::GitError;
use crate::plumbing::commit_config::is_plain;
use crate::plumbing::disk::FileStamp;
use crate::plumbing::git::{Git, said};
use crate::plumbing::index::{Index, IndexLock};
use crate::plumbing::object::Object;
use crate::repository::Repository;

#[derive(Clone, Copy, Debug)]
pub struct CommitRequest<'a> {
    /// The state before the loop.
    pub base: &'a Base,
    /// The head at the last look: that of the last report, at first the base's.
    pub last_head: Option<&'a Oid>,
    pub id: &'a LoopId,
    pub iteration: u32,
    /// The message, without trailers.
    pub message: &'a str,
    /// The path of a private index, in the loop's own folder; beside it there may be another with the suffix
    /// `.scratch`, and a file `.intended` with the intended parent. Leftovers from an earlier commit do not matter.
    pub index: &'a Utf8Path,
    pub bounds: Bounds<'a>,
}

impl<'a> CommitRequest<'a> {
    fn whose(&self, intended: Option<&'a Intent>) -> CommitOwner<'a> {
        CommitOwner { id: self.id, iteration: self.iteration, intended }
    }

    fn rules(&self) -> Rules<'a> {
        self.bounds.rules(self.base.head.as_ref())
    }
}

impl Repository {
    /// Commits the loop's own changes. Neither the working tree nor the user's staged changes are touched, even
    /// if it fails.
    ///
    /// It may be repeated: a commit of this loop and iteration that is already in the history is reported as made.
    /// Other new commits in the history, by the agent or another process, are scanned for secrets and reported.
    /// Errors: [`GitError`] if git cannot be run, and [`GitError::Cancelled`]. Conditions that merely prevent the
    /// commit are reported as [`CommitResult::Skipped`].
    pub fn commit(&self, request: CommitRequest<'_>) -> Result<CommitReport, GitError> {
        let index = Index::of(self);
        let git = self.git().until(request.bounds.cancel);
        let (is_still, _) = self.last_look();
        let known = match is_still && request.base.dirty.is_empty() {
            true => StagedWork::take(self, request.index, request.bounds.largest_file)?,
            false => None,
        };
        let git = git.with_index(request.index);
        let (seen, status, staged) = match known {
            Some(StagedWork { person, status, candidate, tree, .. }) => {
                (person, status, Some((candidate, tree)))
            }
            None => (
                index.entries_to(self.git().until(request.bounds.cancel), request.index)?,
                look(self, git)?,
                None,
            ),
        };
        let head = status.head.as_ref();
        let intended = request.intended();
        let since = since(git, request.last_head, head, request.whose(intended.as_ref()))?;
        let mut exposed = screen_commits(git, &since.by_agent, request.rules())?;
        let job = Job { repository: self, request, git, index: &index, seen, status: &status };
        let settled = job.run(&since, intended, staged)?;
        if let CommitResult::Made { commit, .. } = &settled.result {
            let allowed = settled.candidate.allowed.iter();
            exposed.extend(allowed.map(|(path, found)| ExposedSecret {
                commit: commit.clone(),
                path: RepoPath::from_bytes(path),
                what: what(*found),
                line: found.line,
                allowed: true,
            }));
        }
        Ok(CommitReport {
            iteration: request.iteration,
            head: settled.head,
            result: settled.result,
            by_agent: since.by_agent,
            lost: since.lost,
            exposed: Vec::new(),
            taken: settled.taken,
            left_out: Vec::new(),
            left_out_more: 0,
        }
        .exposing(exposed)
        .leaving_out(settled.candidate.left_out))
    }
}

pub(crate) struct Job<'a> {
    repository: &'a Repository,
    request: CommitRequest<'a>,
    pub(crate) git: Git<'a>,
    index: &'a Index,
    seen: FileStamp,
    status: &'a Status,
}

struct CommitOutcome {
    result: CommitResult,
    head: Option<Oid>,
    candidate: Candidate,
    /// Paths that a hook added and that could not be removed again.
    taken: Vec<RepoPath>,
}

/// Whether a commit was made, by the last of the parts.
pub(crate) type Outcome = Result<CommitAndTree, SkipReason>;

impl Job<'_> {
    fn run(
        &self,
        since: &Since,
        intended: Option<Intent>,
        staged: Option<(Candidate, Oid)>,
    ) -> Result<CommitOutcome, GitError> {
        let before = Before::of(self.request.base);
        if let Some(made) = &since.ours {
            let parent = intended.and_then(|intended| intended.parent);
            return self.adopt(made, parent.as_ref(), &before);
        }
        if let Some(skipped) = self.forbidden() {
            return Ok(self.settled(Err(skipped), Candidate::default(), Vec::new()));
        }
        let (mut candidate, tree) = match staged {
            Some((candidate, tree)) => (candidate, Some(tree)),
            None => (choose(self.repository, self.git, self.status, &before, self.request.rules())?, None),
        };
        let (outcome, taken) = self.commit(&mut candidate, &before, tree)?;
        Ok(self.settled(outcome, candidate, taken))
    }

    fn settled(&self, outcome: Outcome, candidate: Candidate, taken: Vec<RepoPath>) -> CommitOutcome {
        let (result, head) = match outcome {
            Ok(made) => (report(made.clone()), Some(made.commit)),
            Err(skipped) => (CommitResult::Skipped(skipped), self.status.head.clone()),
        };
        CommitOutcome { result, head, candidate, taken }
    }

    /// A commit that was made before a crash: it may not have been looked at, and the index not been brought up to
    /// date.
    fn adopt(
        &self,
        made: &CommitAndTree,
        parent: Option<&Oid>,
        before: &Before,
    ) -> Result<CommitOutcome, GitError> {
        let candidate = Candidate::default();
        if self.status.head.as_ref() != Some(&made.commit) {
            let settled = self.settled(Ok(made.clone()), candidate, Vec::new());
            return Ok(CommitOutcome { head: self.status.head.clone(), ..settled });
        }
        let Some(lock) = self.index.lock(self.request.id)? else {
            return Ok(self.settled(Ok(made.clone()), candidate, Vec::new()));
        };
        let (outcome, taken) = self.without_taken(made.clone(), parent, before, &[])?;
        match &outcome {
            Ok(made) => self.bring_back_paths(lock, parent, made, before)?,
            Err(_) => {
                let settled = self.settled(outcome, candidate, taken);
                return Ok(CommitOutcome { head: parent.cloned(), ..settled });
            }
        }
        Ok(self.settled(outcome, candidate, taken))
    }

    /// Conditions that prevent a commit of any content.
    fn forbidden(&self) -> Option<SkipReason> {
        if let Some(operation) = self.repository.operation() {
            return Some(SkipReason::InProgress(operation));
        }
        if has_conflicts(self.status) {
            return Some(SkipReason::InProgress(Operation::Merge));
        }
        if self.status.branch != self.request.base.branch {
            return Some(SkipReason::OtherBranch { now: self.status.branch.clone() });
        }
        self.index.is_locked(self.request.id).then_some(SkipReason::IndexLocked)
    }

    fn commit(
        &self,
        candidate: &mut Candidate,
        before: &Before,
        tree: Option<Oid>,
    ) -> Result<(Outcome, Vec<RepoPath>), GitError> {
        let none = |skipped| Ok((Err(skipped), Vec::new()));
        if candidate.gone.is_empty() && candidate.kept.is_empty() {
            return none(SkipReason::Nothing);
        }
        let Some(lock) = self.index.lock(self.request.id)? else { return none(SkipReason::IndexLocked) };
        let head = self.status.head.as_ref();
        if tree.is_none() {
            let staged = stage(self.repository, self.git, head, candidate, self.request.rules());
            if let Err(skipped) = ignore_no(staged)? {
                return none(skipped);
            }
        }
        self.request.intend(head)?;
        let is_plain = is_plain(self.repository, self.git)?;
        let outcome = if is_plain { self.of_parts(tree)? } else { self.by_git()? };
        let (outcome, taken) = match outcome {
            Ok(made) if !is_plain => self.without_taken(made, head, before, &candidate.left_out)?,
            other => (other, Vec::new()),
        };
        if let Ok(made) = &outcome {
            // A hook may have added the user's changes: if they were staged, they stay staged.
            match taken.is_empty() {
                true => self.bring_back(lock, made, candidate, before)?,
                false => self.bring_back_paths(lock, head, made, before)?,
            }
        }
        Ok((outcome, taken))
    }

    /// The reference that `git update-ref` moves: the checked-out branch, or the detached head.
    pub(crate) fn place(&self) -> Vec<String> {
        match &self.status.branch {
            Some(branch) => vec![format!("refs/heads/{branch}")],
            None => vec!["--no-deref".to_owned(), "HEAD".to_owned()],
        }
    }

    fn of_parts(&self, staged: Option<Oid>) -> Result<Outcome, GitError> {
        let head = self.status.head.as_ref();
        let tree = match staged {
            Some(tree) => tree,
            None => match self.say(&["write-tree", "--missing-ok"], &[])? {
                Ok(tree) => tree,
                Err(skipped) => return Ok(Err(skipped)),
            },
        };
        if let Some(head) = head
            && self.repository.tree_by(self.git, head)? == tree
        {
            return Ok(Err(SkipReason::Nothing));
        }
        let message = self.message()?;
        let parents: Vec<&Oid> = head.into_iter().collect();
        let object = Object { tree: &tree, parents: &parents, message: &message, is_signed: false };
        let commit = match self.repository.add_commit(self.git, object)? {
            Ok(commit) => commit,
            Err(said) => return Ok(Err(why_not(said))),
        };
        let done = Git::run(self.git, self.moving(), &self.moved_to(&commit))?;
        match done.status.success() {
            true => Ok(Ok(CommitAndTree { commit, tree })),
            false => Ok(Err(SkipReason::Failed { said: said(&done) })),
        }
    }

    /// Arguments for `git update-ref` that move the branch or the detached head; the target follows on standard
    /// input.
    fn moving(&self) -> [String; 5] {
        let CommitRequest { id, iteration, .. } = self.request;
        let kind = if self.status.head.is_some() { "commit" } else { "commit (initial)" };
        // No words of an agent: the log could be another file by now.
        let why = format!("{kind}: refrain {id}, iteration {iteration}");
        ["update-ref".into(), "-m".into(), why, "--stdin".into(), "-z".into()]
    }

    /// To this commit, if it has not moved since it was read.
    fn moved_to(&self, commit: &Oid) -> Vec<u8> {
        let old = self.status.head.as_ref().map_or_else(|| "0".repeat(commit.as_str().len()), Oid::to_string);
        let order = match &self.status.branch {
            Some(branch) => format!("update refs/heads/{branch}\0{commit}\0{old}\0"),
            None => format!("option no-deref\0update HEAD\0{commit}\0{old}\0"),
        };
        order.into_bytes()
    }

    /// The object name that git prints, or the reason why there is none.
    fn say(&self, args: &[&str], input: &[u8]) -> Result<Result<Oid, SkipReason>, GitError> {
        let done = Git::run(self.git, args, input)?;
        if !done.status.success() {
            return Ok(Err(why_not(said(&done))));
        }
        let answer = String::from_utf8_lossy(&done.stdout);
        answer
            .trim()
            .parse()
            .map(Ok)
            .map_err(|_| GitError::Answer { command: "commit", answer: answer.chars().take(200).collect() })
    }

    fn by_git(&self) -> Result<Outcome, GitError> {
        let message = self.message()?;
        let done = self
            .git
            .with_hooks()
            .run(["commit", "--quiet", "--cleanup=whitespace", "-F", "-"], message.as_bytes())?;
        let head = self.git.run(["rev-parse", "--verify", "--quiet", "HEAD"], &[])?;
        let head: Option<Oid> = String::from_utf8_lossy(&head.stdout).trim().parse().ok();
        let before = self.status.head.as_ref();
        let intent = Intent { parent: before.cloned() };
        let Since { ours, .. } = since(self.git, before, head.as_ref(), self.request.whose(Some(&intent)))?;
        // A hook may have rewritten the message; the new head was still made by this commit.
        let moved = head.filter(|head| Some(head) != self.status.head.as_ref());
        match (ours, moved) {
            (Some(made), _) => Ok(Ok(made)),
            (None, Some(commit)) => {
                let tree = self.say(&["rev-parse", &format!("{commit}^{{tree}}")], &[])?;
                Ok(tree.map(|tree| CommitAndTree { commit, tree }))
            }
            (None, None) => self.refused(&done).map(Err),
        }
    }

    fn refused(&self, done: &refrain_proc::tool::ToolOutput) -> Result<SkipReason, GitError> {
        let said = said(done);
        if done.status.code() != Some(1) {
            return Ok(why_not(said));
        }
        // A hook that reverted everything leaves nothing to commit.
        let against = match &self.status.head {
            Some(head) => {
                self.git.run(["diff-index", "--cached", "--quiet", head.as_str()], &[])?.status.success()
            }
            None => false,
        };
        Ok(if against { SkipReason::Nothing } else { SkipReason::Hook { said } })
    }

    fn message(&self) -> Result<String, GitError> {
        let CommitRequest { message, id, iteration, .. } = self.request;
        with_trailers(self.git, message, &[(LOOP, id.as_str()), (ITERATION, &iteration.to_string())])
    }

    /// If nothing was staged except the committed changes, the private index replaces the user's.
    fn bring_back(
        &self,
        lock: IndexLock<'_>,
        made: &CommitAndTree,
        candidate: &Candidate,
        before: &Before,
    ) -> Result<(), GitError> {
        if !candidate.has_foreign && lock.seen() == self.seen {
            return lock.replace_with(self.request.index);
        }
        self.bring_back_paths(lock, self.status.head.as_ref(), made, before)
    }

    fn bring_back_paths(
        &self,
        lock: IndexLock<'_>,
        parent: Option<&Oid>,
        made: &CommitAndTree,
        before: &Before,
    ) -> Result<(), GitError> {
        let scratch = self.request.index.with_extension("scratch");
        bring_back(self.git, lock, &scratch, (parent, &made.commit), before)
    }
}

fn report(CommitAndTree { commit, tree }: CommitAndTree) -> CommitResult {
    CommitResult::Made { commit, tree }
}

/// An error of git while the candidate is built prevents only this commit.
fn ignore_no(staged: Result<(), GitError>) -> Result<Result<(), SkipReason>, GitError> {
    match staged {
        Err(GitError::Failed { said, .. }) => Ok(Err(SkipReason::Failed { said })),
        Err(other) => Err(other),
        Ok(()) => Ok(Ok(())),
    }
}

fn why_not(said: String) -> SkipReason {
    match said {
        said if IDENTITY_ERRORS.iter().any(|words| said.contains(words)) => SkipReason::NoIdentity,
        said if said.contains("aborted by hook") => SkipReason::Hook { said },
        said => SkipReason::Failed { said },
    }
}
