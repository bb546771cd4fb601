//! A commit of what is the loop's own.
//!
//! It is made from a private index, in the person's name, with the person's hooks and signature. Where there are no hooks
//! and no signature, `git commit` would only look at every file once more; then it is made of its parts, and the branch is
//! moved only if it still is where it was seen.

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::{Base, CommitReport, CommitResult, Oid, Operation, Skipped};

use crate::Cancel;
use crate::adopt::{ITERATION, LOOP, Made, Since, Whose, since};
use crate::candidate::{Before, Candidate, choose};
use crate::error::{GitError, OnPath};
use crate::git::{Git, said};
use crate::index::{Index, Locked, Seen, is_summed_by_us, seal};
use crate::plain::is_plain;
use crate::repository::{Repository, has_conflicts};
use crate::stage::{bring_back, stage};
use crate::status::{self, Status};

/// What git says when it does not know in whose name.
pub(crate) const IDENTITY: &[&str] = &[
    "Please tell me who you are",
    "empty ident name",
    "auto-detect email",
    "auto-detect name",
    "no email was given",
    "no name was given",
];

/// What is to be committed, and how.
#[derive(Clone, Copy, Debug)]
pub struct CommitRequest<'a> {
    /// What was there before the loop.
    pub base: &'a Base,
    /// Where the head was at the last look: what the last report said, at first the base's.
    pub last_head: Option<&'a Oid>,
    /// The loop.
    pub id: &'a LoopId,
    /// The iteration.
    pub iteration: u32,
    /// Whether the commit of this iteration may be in the history already, as whoever made it may have died before it was
    /// recorded. Else one that looks like it is the agent's.
    pub may_be_made: bool,
    /// The message, without trailers.
    pub message: &'a str,
    /// A place for a private index, in the loop's own folder; beside it, with `.scratch` at the end, there may be another.
    /// What is there from an earlier commit is of no importance.
    pub index: &'a Utf8Path,
    /// The largest file that is committed, in bytes.
    pub largest_file: u64,
    /// Who may stop it, together with the hook that may be running.
    pub cancel: Option<&'a Cancel>,
}

impl<'a> CommitRequest<'a> {
    fn whose(&self, may_be_made: bool) -> Whose<'a> {
        Whose { id: self.id, iteration: self.iteration, may_be_made }
    }
}

impl Repository {
    /// Commits what is the loop's own. Neither the working tree nor what the person staged is touched, whatever comes of it.
    ///
    /// It may be repeated: a commit of this loop and iteration that is in the history already is reported as made, if the
    /// request says that it may be.
    ///
    /// # Errors
    /// [`GitError`] where git cannot be asked, and [`GitError::Cancelled`]. What merely forbids the commit is
    /// [`CommitResult::Skipped`].
    pub fn commit(&self, request: CommitRequest<'_>) -> Result<CommitReport, GitError> {
        let index = Index::of(self);
        let seen = index.copy_to(request.index)?;
        let git = self.git().until(request.cancel).with_index(request.index);
        let status = status::look(git)?;
        let head = status.head.as_ref();
        let since = since(git, request.last_head, head, request.whose(request.may_be_made))?;
        let job = Job { repository: self, request, git, index: &index, seen, status: &status };
        let (result, candidate) = job.run(&since)?;
        Ok(CommitReport {
            iteration: request.iteration,
            head: match &result {
                CommitResult::Made { commit, .. } if since.ours.is_none() => Some(commit.clone()),
                CommitResult::Made { .. } | CommitResult::Skipped(_) => status.head.clone(),
            },
            result,
            by_agent: since.by_agent,
            rewritten: since.rewritten,
            left_out: Vec::new(),
            left_out_more: 0,
        }
        .leaving_out(candidate.left_out))
    }
}

/// A commit on its way.
struct Job<'a> {
    repository: &'a Repository,
    request: CommitRequest<'a>,
    git: Git<'a>,
    index: &'a Index,
    seen: Seen,
    status: &'a Status,
}

/// Whether a commit was made, by the last of the parts.
type Outcome = Result<Made, Skipped>;

impl Job<'_> {
    fn run(&self, since: &Since) -> Result<(CommitResult, Candidate), GitError> {
        let before = Before::of(self.request.base);
        if let Some(made) = &since.ours {
            self.finish(made, &before)?;
            return Ok((report(made.clone()), Candidate::default()));
        }
        if let Some(skipped) = self.forbidden() {
            return Ok((CommitResult::Skipped(skipped), Candidate::default()));
        }
        let mut candidate =
            choose(self.repository, self.git, self.status, &before, self.request.largest_file)?;
        let result = match self.commit(&mut candidate, &before)? {
            Ok(made) => report(made),
            Err(skipped) => CommitResult::Skipped(skipped),
        };
        Ok((result, candidate))
    }

    /// What forbids a commit whatever is to be committed.
    fn forbidden(&self) -> Option<Skipped> {
        if let Some(operation) = self.repository.operation() {
            return Some(Skipped::InProgress(operation));
        }
        if has_conflicts(self.status) {
            return Some(Skipped::InProgress(Operation::Merge));
        }
        if self.status.branch != self.request.base.branch {
            return Some(Skipped::OtherBranch { now: self.status.branch.clone() });
        }
        self.index.is_locked(self.request.id).then_some(Skipped::IndexLocked)
    }

    fn commit(&self, candidate: &mut Candidate, before: &Before) -> Result<Outcome, GitError> {
        if candidate.gone.is_empty() && candidate.kept.is_empty() {
            return Ok(Err(Skipped::Nothing));
        }
        let Some(lock) = self.index.lock(self.request.id)? else { return Ok(Err(Skipped::IndexLocked)) };
        let head = self.status.head.as_ref();
        if let Err(skipped) = ignore_no(stage(self.repository, self.git, head, candidate))? {
            return Ok(Err(skipped));
        }
        let is_plain = is_plain(self.repository, self.git)?;
        let outcome = if is_plain { self.of_parts()? } else { self.by_git()? };
        if let Ok(made) = &outcome {
            self.bring_back(lock, made, candidate, before)?;
            self.repository.memory().made = Some(made.clone());
        }
        Ok(outcome)
    }

    fn of_parts(&self) -> Result<Outcome, GitError> {
        let head = self.status.head.as_ref();
        // What becomes the person's index is sealed once the commit is made.
        let skip = format!("index.skipHash={}", head.is_some_and(is_summed_by_us));
        let tree = match self.say(&["-c", &skip, "write-tree", "--missing-ok"], &[])? {
            Ok(tree) => tree,
            Err(skipped) => return Ok(Err(skipped)),
        };
        if let Some(head) = head
            && self.tree_of(head)? == tree.as_str()
        {
            return Ok(Err(Skipped::Nothing));
        }
        let message = self.message();
        let mut args = vec!["commit-tree", tree.as_str()];
        if let Some(head) = head {
            args.extend(["-p", head.as_str()]);
        }
        args.extend(["-F", "-"]);
        let commit = match self.say(&args, message.as_bytes())? {
            Ok(commit) => commit,
            Err(skipped) => return Ok(Err(skipped)),
        };
        let done = self.git.run(self.move_branch(&commit), &[])?;
        match done.status.success() {
            true => Ok(Ok(Made { commit, tree })),
            false => Ok(Err(Skipped::Failed { said: said(&done) })),
        }
    }

    fn tree_of(&self, commit: &Oid) -> Result<String, GitError> {
        if let Some(made) = self.repository.memory().made.as_ref().filter(|made| made.commit == *commit) {
            return Ok(made.tree.to_string());
        }
        self.git.text(["rev-parse", "--verify", &format!("{commit}^{{tree}}")], &[])
    }

    /// Moves the branch, or the detached head, if it is where it was seen.
    fn move_branch(&self, commit: &Oid) -> Vec<String> {
        let subject = self.request.message.lines().next().unwrap_or_default();
        let (kind, old) = match &self.status.head {
            Some(head) => ("commit", head.to_string()),
            None => ("commit (initial)", "0".repeat(commit.as_str().len())),
        };
        let mut args = vec!["update-ref".to_owned(), "-m".to_owned(), format!("{kind}: {subject}")];
        match &self.status.branch {
            Some(branch) => args.push(format!("refs/heads/{branch}")),
            None => args.extend(["--no-deref".to_owned(), "HEAD".to_owned()]),
        }
        args.extend([commit.to_string(), old]);
        args
    }

    /// An object's name that git prints, or why there is none.
    fn say(&self, args: &[&str], input: &[u8]) -> Result<Result<Oid, Skipped>, GitError> {
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
        let message = self.message();
        let done =
            Git::run(self.git, ["commit", "--quiet", "--cleanup=whitespace", "-F", "-"], message.as_bytes())?;
        let head = self.git.run(["rev-parse", "--verify", "--quiet", "HEAD"], &[])?;
        let head: Option<Oid> = String::from_utf8_lossy(&head.stdout).trim().parse().ok();
        let Since { ours, .. } =
            since(self.git, self.status.head.as_ref(), head.as_ref(), self.request.whose(true))?;
        // A hook may have rewritten the message; what the head is now was made by this commit all the same.
        let moved = head.filter(|head| Some(head) != self.status.head.as_ref());
        match (ours, moved) {
            (Some(made), _) => Ok(Ok(made)),
            (None, Some(commit)) => {
                let tree = self.say(&["rev-parse", &format!("{commit}^{{tree}}")], &[])?;
                Ok(tree.map(|tree| Made { commit, tree }))
            }
            (None, None) => self.refused(&done).map(Err),
        }
    }

    fn refused(&self, done: &refrain_proc::tool::Done) -> Result<Skipped, GitError> {
        let said = said(done);
        if done.status.code() != Some(1) {
            return Ok(why_not(said));
        }
        // A hook that took back everything leaves nothing to commit.
        let against = match &self.status.head {
            Some(head) => {
                self.git.run(["diff-index", "--cached", "--quiet", head.as_str()], &[])?.status.success()
            }
            None => false,
        };
        Ok(if against { Skipped::Nothing } else { Skipped::Hook { said } })
    }

    fn message(&self) -> String {
        let CommitRequest { message, id, iteration, .. } = self.request;
        format!("{}\n\n{LOOP}: {id}\n{ITERATION}: {iteration}\n", message.trim())
    }

    /// Where nothing was staged but what is committed, the private index is what the person's would be.
    fn bring_back(
        &self,
        lock: Locked<'_>,
        made: &Made,
        candidate: &Candidate,
        before: &Before,
    ) -> Result<(), GitError> {
        if !candidate.has_foreign && lock.seen() == self.seen {
            if is_summed_by_us(&made.tree) {
                seal(self.request.index).on("write", self.request.index)?;
            }
            return lock.replace_with(self.request.index);
        }
        self.bring_back_paths(lock, self.status.head.as_ref(), made, before)
    }

    fn bring_back_paths(
        &self,
        lock: Locked<'_>,
        parent: Option<&Oid>,
        made: &Made,
        before: &Before,
    ) -> Result<(), GitError> {
        let scratch = self.request.index.with_extension("scratch");
        bring_back(self.git, lock, &scratch, (parent, &made.commit), before)
    }

    /// A commit that was made before a crash: the index may not have been brought up to date.
    fn finish(&self, made: &Made, before: &Before) -> Result<(), GitError> {
        if self.status.head.as_ref() != Some(&made.commit) {
            return Ok(());
        }
        let Some(lock) = self.index.lock(self.request.id)? else { return Ok(()) };
        let parent = self.git.run(["rev-parse", "--verify", "--quiet", "HEAD^"], &[])?;
        let parent = String::from_utf8_lossy(&parent.stdout).trim().parse().ok();
        self.bring_back_paths(lock, parent.as_ref(), made, before)
    }
}

fn report(Made { commit, tree }: Made) -> CommitResult {
    CommitResult::Made { commit, tree }
}

/// What git says no to while the candidate is built forbids this commit, no more.
fn ignore_no(staged: Result<(), GitError>) -> Result<Result<(), Skipped>, GitError> {
    match staged {
        Err(GitError::Failed { said, .. }) => Ok(Err(Skipped::Failed { said })),
        Err(other) => Err(other),
        Ok(()) => Ok(Ok(())),
    }
}

fn why_not(said: String) -> Skipped {
    match said {
        said if IDENTITY.iter().any(|words| said.contains(words)) => Skipped::NoIdentity,
        said if said.contains("aborted by hook") => Skipped::Hook { said },
        said => Skipped::Failed { said },
    }
}
