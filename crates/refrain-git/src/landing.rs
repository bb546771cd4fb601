//! How the work of a plan's tasks is combined: each task becomes one commit on a line of the plan's own, and a wave
//! becomes one commit that follows its tasks' commits. No checkout is touched and no branch of the user is moved
//! here.

pub(crate) mod handover;
pub(crate) mod handover_disk;
pub(crate) mod heads;
pub(crate) mod linear_history;
pub(crate) mod merge;

use refrain_core::git::{Conflict, ExposedSecret, Oid};
use refrain_core::glob::PathGlob;

use crate::Cancel;
use crate::candidate::Rules;
use crate::commit::history::screen_commits;
use crate::error::GitError;
use crate::landing::linear_history::{New, since, trailed};
use crate::plumbing::git::Git;
use crate::repository::Repository;

#[derive(Clone, Copy, Debug)]
pub struct LandRequest<'a> {
    pub reference: &'a str,
    pub tip: &'a Oid,
    /// The works, each on top of the one before it.
    pub works: &'a [Work<'a>],
    /// The largest file that is scanned for secrets, in bytes.
    pub largest_file: u64,
    pub allow_secrets: &'a [PathGlob],
    pub cancel: Option<&'a Cancel>,
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
    },
    /// One of them contains a suspected secret and must not land, nor the commits after it.
    Secrets {
        /// The commits of those before it, which are on the line.
        commits: Vec<Oid>,
        exposed: Vec<ExposedSecret>,
    },
    /// Another process moved the line, which was there at that time.
    Moved {
        /// Its position now; none if it is gone.
        at: Option<Oid>,
    },
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
    /// Adds a commit for each work to the line, which moves once. It may be repeated: a commit with these trailers on
    /// the line after the tip is taken as already made. A line with the same content as its tip, but different
    /// commits, is reset to it.
    /// Errors: [`GitError::NoIdentity`] if git does not know who commits; [`GitError`] if git fails, and
    /// [`GitError::Cancelled`].
    pub fn land(&self, request: LandRequest<'_>) -> Result<LandingOutcome, GitError> {
        let LandRequest { reference, works, largest_file, allow_secrets, cancel, .. } = request;
        let git = self.git().until(cancel);
        let mut commits = match self.found(git, request)? {
            Ok(commits) => commits,
            Err(at) => return Ok(LandingOutcome::Moved { at }),
        };
        let (before, from) = (commits.len(), commits.last().unwrap_or(request.tip).clone());
        for Work { tree, message, trailers } in &works[before..] {
            let parents = [commits.last().unwrap_or(&from)];
            let commit = self.make_commit(git, &New { tree, parents: &parents, message, trailers })?;
            commits.push(commit);
        }
        let rules = Rules { largest: largest_file, allow_secrets, base: Some(request.tip) };
        let mut exposed = screen_commits(git, &commits[before..], rules)?;
        exposed.retain(|exposed| !exposed.allowed);
        let is_exposed = |commit: &Oid| exposed.iter().any(|it| it.commit == *commit);
        let clean = commits.iter().position(is_exposed).unwrap_or(commits.len());
        if let Some(commit) = commits.get(clean) {
            exposed.retain(|it| it.commit == *commit);
        }
        commits.truncate(clean);
        if let Some((to, work)) = commits.last().zip(works[..clean].last()).filter(|(to, _)| **to != from)
            && !self.move_reference(reference, Some(&from), to, first_line(work.message))?
        {
            return Ok(LandingOutcome::Moved { at: self.reference(reference)? });
        }
        Ok(if exposed.is_empty() {
            LandingOutcome::Done { commits }
        } else {
            LandingOutcome::Secrets { commits, exposed }
        })
    }

    /// The commits of works that are already on the line; empty if the line is at its tip. `Err` holds the line's
    /// position if another process moved it.
    fn found(
        &self,
        git: Git<'_>,
        request: LandRequest<'_>,
    ) -> Result<Result<Vec<Oid>, Option<Oid>>, GitError> {
        let LandRequest { reference, tip, works, .. } = request;
        let Some(at) = self.reference(reference)? else { return Ok(Err(None)) };
        if at == *tip {
            return Ok(Ok(Vec::new()));
        }
        let mut commits = Vec::new();
        for work in works {
            let Some(commit) = trailed(git, (tip, &at), work.trailers)? else { break };
            commits.push(commit);
        }
        // The runner stopped before it recorded a wave's commit: its content equals the tip, and it is made again.
        if commits.is_empty()
            && self.tree_by(git, &at)? == self.tree_by(git, tip)?
            && self.move_reference(reference, Some(&at), tip, "refrain: take the line back")?
        {
            return Ok(Ok(commits));
        }
        // If every work has a commit, more may follow; if only some have one, the last must be the tip, and the rest
        // continues there.
        let is_ours = commits.len() == works.len() || commits.last() == Some(&at);
        Ok(if is_ours { Ok(commits) } else { Err(Some(at)) })
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
    /// it is, otherwise each of them is picked onto it. It may be repeated: a commit with these trailers and this
    /// first parent that the reference points to is reported as made if it contains this chain, and replaced
    /// otherwise, because it lacks a task that landed since. Without a commit of a task it is empty and has only one
    /// parent.
    pub fn wave_commit(&self, request: WaveRequest<'_>) -> Result<Wave, GitError> {
        let WaveRequest { reference, first_parent, commits, message, trailers, .. } = request;
        let git = self.git().until(request.cancel);
        let at = self.reference(reference)?;
        let (mut chain, heads) = (Vec::with_capacity(commits.len()), self.heads(git, commits)?);
        for commit in commits {
            match self.pick(git, chain.last().unwrap_or(first_parent), (commit, &heads))? {
                Ok(picked) => chain.push(picked),
                Err(conflicts) => return Ok(Wave::Conflict { at: commit.clone(), conflicts }),
            }
        }
        if let Some(at) = &at
            && trailed(git, (first_parent, at), trailers)?.as_ref() == Some(at)
            && self.reference(&format!("{at}^"))?.as_ref() == Some(first_parent)
            && let Some(chain) = self.chain_of(git, (first_parent, at), &chain)?
        {
            return Ok(Wave::Made { commit: at.clone(), chain });
        }
        let end = chain.last().unwrap_or(first_parent);
        let tree = &self.tree_by(git, end)?;
        let parents = [first_parent, end];
        let parents = if end == first_parent { &parents[..1] } else { &parents };
        let commit = self.make_commit(git, &New { tree, parents, message, trailers })?;
        if !self.move_reference(reference, at.as_ref(), &commit, first_line(message))? {
            return Err(GitError::ReferenceMoved(reference.to_owned()));
        }
        Ok(Wave::Made { commit, chain })
    }

    /// The chain that precedes a wave's commit, if it has the content of this one: signing gives the commits new names
    /// each time.
    fn chain_of(
        &self,
        git: Git<'_>,
        (first_parent, wave): (&Oid, &Oid),
        chain: &[Oid],
    ) -> Result<Option<Vec<Oid>>, GitError> {
        let known = match self.reference(&format!("{wave}^2"))? {
            Some(end) => since(git, first_parent, &end)?,
            None => Vec::new(),
        };
        let is_it = known == chain
            || (known.len() == chain.len() && self.trees(git, &known)? == self.trees(git, chain)?);
        Ok(is_it.then_some(known))
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
