//! How the work of a plan's tasks is combined: each task becomes one commit on a line of the plan's own, and a wave
//! becomes one commit that follows its tasks' commits. No checkout is touched and no branch of the user is moved
//! here.

pub(crate) mod filtered_files;
pub(crate) mod handover;
pub(crate) mod handover_disk;
pub(crate) mod heads;
pub(crate) mod linear_history;
pub(crate) mod merge;
pub(crate) mod replaced_files;

use refrain_core::git::{Conflict, ExposedSecret, Oid};

use crate::Cancel;
use crate::candidate::Bounds;
use crate::commit::history::screen_commits;
use crate::commit::message::with_trailers;
use crate::error::GitError;
use crate::landing::heads::Head;
use crate::landing::linear_history::{New, since, trailed};
use crate::plumbing::git::Git;
use crate::plumbing::parts::Parts;
use crate::repository::Repository;

#[derive(Clone, Copy, Debug)]
pub struct LandRequest<'a> {
    pub reference: &'a str,
    pub tip: &'a Oid,
    /// The works, each on top of the one before it.
    pub works: &'a [Work<'a>],
    pub bounds: Bounds<'a>,
}

#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The content of the commit: the work, merged onto the one before it.
    pub tree: &'a Oid,
    /// The message, without trailers.
    pub message: &'a str,
    /// The trailers, which identify this commit on the line.
    pub trailers: &'a [(&'a str, &'a str)],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandingOutcome {
    Done {
        /// A commit for each, in their order.
        commits: Vec<Oid>,
        /// Where the line was, if that was neither its tip nor what a runner put there before it was killed.
        was: Option<Oid>,
    },
    /// One of them contains a suspected secret and must not land, nor the commits after it.
    Secrets {
        /// The commits of those before it, which are on the line.
        commits: Vec<Oid>,
        exposed: Vec<ExposedSecret>,
    },
}

/// Where a line was found.
struct FoundLine {
    at: Option<Oid>,
    /// The commits of works that are already on it.
    commits: Vec<Oid>,
    /// Nothing that Refrain does puts it there.
    is_moved: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct WaveRequest<'a> {
    /// The reference that protects the wave's commit until a branch points to it.
    pub reference: &'a str,
    /// The base of the wave: the last one, or the head of the branch.
    pub first_parent: &'a Oid,
    /// Its tasks' commits, in the order in which they landed.
    pub commits: &'a [Oid],
    /// The message, without trailers.
    pub message: &'a str,
    pub trailers: &'a [(&'a str, &'a str)],
    pub cancel: Option<&'a Cancel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wave {
    Made {
        /// The commit: its first parent is the base, its second the chain of its tasks' commits.
        commit: Oid,
        /// The chain: a commit for each that was given, in their order.
        chain: Vec<Oid>,
    },
    /// A task's commit depends on changes that are not in this wave; nothing is made.
    Conflict { at: Oid, conflicts: Vec<Conflict> },
}

impl Repository {
    /// Adds a commit for each work to the line, which moves once. It may be repeated: the same commit on the line after the
    /// tip is taken as already made. An agent can move the line, so it counts only where the caller has its tip: from
    /// anywhere else it is taken back.
    /// Errors: [`GitError::NoIdentity`] if git does not know who commits; [`GitError`] if git fails, and
    /// [`GitError::Cancelled`].
    pub fn land(&self, request: LandRequest<'_>) -> Result<LandingOutcome, GitError> {
        let LandRequest { reference, works, bounds, .. } = request;
        let git = self.git().until(bounds.cancel);
        let FoundLine { at, mut commits, is_moved } = self.found(git, request)?;
        let (before, from) = (commits.len(), commits.last().unwrap_or(request.tip).clone());
        for Work { tree, message, trailers } in &works[before..] {
            let parents = [commits.last().unwrap_or(&from)];
            let commit = self.make_commit(git, &New { tree, parents: &parents, message, trailers })?;
            commits.push(commit);
        }
        let rules = bounds.rules(Some(request.tip));
        let mut exposed = screen_commits(git, &commits[before..], rules)?;
        exposed.retain(|exposed| !exposed.allowed);
        let is_exposed = |commit: &Oid| exposed.iter().any(|it| it.commit == *commit);
        let clean = commits.iter().position(is_exposed).unwrap_or(commits.len());
        if let Some(commit) = commits.get(clean) {
            exposed.retain(|it| it.commit == *commit);
        }
        commits.truncate(clean);
        let to = commits.last().unwrap_or(request.tip);
        if at.as_ref() != Some(to) {
            let why =
                works[..clean].last().map_or("refrain: take the line back", |it| first_line(it.message));
            self.put_reference(reference, to, why)?;
        }
        Ok(if exposed.is_empty() {
            LandingOutcome::Done { commits, was: at.filter(|_| is_moved) }
        } else {
            LandingOutcome::Secrets { commits, exposed }
        })
    }

    /// Looks for the commits of works on the line.
    fn found(&self, git: Git<'_>, request: LandRequest<'_>) -> Result<FoundLine, GitError> {
        let LandRequest { reference, tip, works, .. } = request;
        let mut commits = Vec::new();
        let at = match self.reference(reference)? {
            Some(at) if at != *tip => at,
            at => return Ok(FoundLine { at, commits, is_moved: false }),
        };
        for Work { tree, message, trailers } in works {
            let Some(commit) = trailed(git, (tip, &at), trailers)? else { break };
            let parents = &[commits.last().unwrap_or(tip)];
            if !self.is_like(git, &commit, &New { tree, parents, message, trailers })? {
                break;
            }
            commits.push(commit);
        }
        if commits.last() == Some(&at) {
            // Anyone could have signed them: they are made again, but nothing else is on the line.
            if self.signs(git)? {
                commits.clear();
            }
            return Ok(FoundLine { at: Some(at), commits, is_moved: false });
        }
        // The runner stopped before it recorded a wave's commit: its content equals the tip, and it is made again.
        let is_wave = self.tree_by(git, &at).ok() == Some(self.tree_by(git, tip)?);
        Ok(FoundLine { at: Some(at), commits: Vec::new(), is_moved: !is_wave })
    }

    /// Whether a commit is what [`Self::make_commit`] makes, but for its signature: an agent can make one that looks like it.
    fn is_like(&self, git: Git<'_>, commit: &Oid, new: &New<'_>) -> Result<bool, GitError> {
        let parents = new.parents.iter().copied().cloned().collect();
        if self.head(git, commit)? != (Head { tree: new.tree.clone(), parents }) {
            return Ok(false);
        }
        let message = with_trailers(git, new.message, new.trailers)?;
        Ok(Parts::of(git, commit)?.message() == message.as_bytes())
    }

    /// A commit on the tip that contains git's conflict markers, as a starting point for resolving the conflict. No
    /// reference points to it until a branch is created there.
    pub fn conflict_commit(
        &self,
        tip: &Oid,
        tree: &Oid,
        message: &str,
        trailers: &[(&str, &str)],
        cancel: Option<&Cancel>,
    ) -> Result<Oid, GitError> {
        self.commit_of(&[tip], tree, message, trailers, cancel)
    }

    /// A commit of a tree. No reference has it until a branch is moved there.
    pub fn commit_of(
        &self,
        parents: &[&Oid],
        tree: &Oid,
        message: &str,
        trailers: &[(&str, &str)],
        cancel: Option<&Cancel>,
    ) -> Result<Oid, GitError> {
        self.make_commit(self.git().until(cancel), &New { tree, parents, message, trailers })
    }

    /// Makes the commit of a wave. If the chain of its tasks' commits already follows the first parent it is used as
    /// it is, otherwise each of them is picked onto it. It may be repeated: the same commit is reported as made if the
    /// reference points to it; another one is replaced, because it lacks a task that landed since, or is an agent's.
    /// Without a commit of a task it is empty and has only one parent.
    pub fn wave_commit(&self, request: WaveRequest<'_>) -> Result<Wave, GitError> {
        let WaveRequest { reference, first_parent, commits, message, trailers, .. } = request;
        let git = self.git().until(request.cancel);
        let (mut chain, heads) = (Vec::with_capacity(commits.len()), self.heads(git, commits)?);
        for commit in commits {
            match self.pick(git, chain.last().unwrap_or(first_parent), (commit, &heads))? {
                Ok(picked) => chain.push(picked),
                Err(conflicts) => return Ok(Wave::Conflict { at: commit.clone(), conflicts }),
            }
        }
        let tree = &self.tree_by(git, chain.last().unwrap_or(first_parent))?;
        // Without a commit of a task it has one parent.
        let end = chain.last().filter(|end| *end != first_parent);
        let parents: Vec<_> = std::iter::once(first_parent).chain(end).collect();
        let new = New { tree, parents: &parents, message, trailers };
        if let Some(at) = self.reference(reference)?
            && self.is_like(git, &at, &new)?
            // A signature is made anew.
            && !self.signs(git)?
        {
            return Ok(Wave::Made { commit: at, chain });
        }
        let commit = self.make_commit(git, &new)?;
        self.put_reference(reference, &commit, first_line(message))?;
        Ok(Wave::Made { commit, chain })
    }

    /// A wave on the first-parent line after `from`, by its trailers: its commit, and the chain of its tasks' commits.
    pub fn wave_on(
        &self,
        (from, to): (&Oid, &Oid),
        trailers: &[(&str, &str)],
    ) -> Result<Option<(Oid, Vec<Oid>)>, GitError> {
        let git = self.git();
        let Some(commit) = trailed(git, (from, to), trailers)? else { return Ok(None) };
        let parents = (self.reference(&format!("{commit}^1"))?, self.reference(&format!("{commit}^2"))?);
        let chain = match parents {
            (Some(first), Some(end)) => since(git, &first, &end)?,
            (Some(_) | None, _) => Vec::new(),
        };
        Ok(Some((commit, chain)))
    }
}

fn first_line(message: &str) -> &str {
    message.trim().lines().next().unwrap_or_default()
}
