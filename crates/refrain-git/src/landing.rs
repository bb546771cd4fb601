//! How the work of a plan's tasks comes together: each as one commit on a line of the plan's own, and a wave of them as one
//! commit with the line behind it. No checkout is touched and no branch of a person's is moved here.

use refrain_core::git::{Conflict, Exposed, Oid, PathGlob, RepoPath};

use crate::Cancel;
use crate::candidate::Rules;
use crate::error::GitError;
use crate::git::Git;
use crate::history::screen_commits;
use crate::line::{New, paths_between, trailed, tree_of};
use crate::repository::Repository;

/// What is to land.
#[derive(Clone, Copy, Debug)]
pub struct LandRequest<'a> {
    /// The reference that the line stands on.
    pub reference: &'a str,
    /// Where it is.
    pub tip: &'a Oid,
    /// What the commit holds: the work, merged onto the tip.
    pub tree: &'a Oid,
    /// The message, without trailers.
    pub message: &'a str,
    /// The trailers, which tell this commit from every other of the line.
    pub trailers: &'a [(&'a str, &'a str)],
    /// The largest file that is screened for secrets, in bytes.
    pub largest_file: u64,
    /// Where what looks like a secret may land.
    pub allow_secrets: &'a [PathGlob],
    /// Who may stop it.
    pub cancel: Option<&'a Cancel>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landed {
    /// It is on the line.
    Done {
        /// The commit.
        commit: Oid,
    },
    /// Something in it looks like a secret and may not land; the line is as it was.
    Secrets(Vec<Exposed>),
    /// Somebody moved the line, which is as it was then.
    Moved {
        /// Where it is now; none where it is gone.
        at: Option<Oid>,
    },
}

/// What a wave is to be made of.
#[derive(Clone, Copy, Debug)]
pub struct WaveRequest<'a> {
    /// The reference that keeps the wave's commit until a branch has it.
    pub reference: &'a str,
    /// What the wave is made on: the last one, or the head of the branch.
    pub first_parent: &'a Oid,
    /// Its tasks' commits, in the order in which they landed.
    pub commits: &'a [Oid],
    /// The message, without trailers.
    pub message: &'a str,
    /// The trailers, which tell this wave from every other.
    pub trailers: &'a [(&'a str, &'a str)],
    /// Who may stop it.
    pub cancel: Option<&'a Cancel>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wave {
    /// There it is.
    Made {
        /// The commit: behind its first parent, and with the chain of its tasks' commits as the second.
        commit: Oid,
        /// Its tree.
        tree: Oid,
        /// What it changes against its first parent.
        paths: Vec<RepoPath>,
    },
    /// A task's commit does not go without what is not in this wave; nothing is made.
    Conflict {
        /// The task's commit.
        at: Oid,
        /// What is at odds.
        conflicts: Vec<Conflict>,
    },
}

impl Repository {
    /// Adds one commit to the line. It may be repeated: one with these trailers that stands on the line behind the tip is
    /// reported as made.
    ///
    /// # Errors
    /// [`GitError::NoIdentity`] where git does not know who commits; [`GitError`] where git cannot do it, and
    /// [`GitError::Cancelled`].
    pub fn land(&self, request: LandRequest<'_>) -> Result<Landed, GitError> {
        let LandRequest { reference, tip, tree, message, trailers, .. } = request;
        let git = self.git().until(request.cancel);
        let at = self.reference(reference)?;
        if at.as_ref() != Some(tip) {
            let found = at.as_ref().map(|at| trailed(git, (tip, at), trailers)).transpose()?.flatten();
            return Ok(found.map_or(Landed::Moved { at }, |commit| Landed::Done { commit }));
        }
        let commit = self.make_commit(git, &New { tree, parents: &[tip], message, trailers })?;
        let rules = Rules { largest: request.largest_file, allow_secrets: request.allow_secrets };
        let mut exposed = screen_commits(git, std::slice::from_ref(&commit), rules)?;
        exposed.retain(|exposed| !exposed.allowed);
        if !exposed.is_empty() {
            return Ok(Landed::Secrets(exposed));
        }
        match self.move_reference(reference, Some(tip), &commit, first_line(message))? {
            true => Ok(Landed::Done { commit }),
            false => Ok(Landed::Moved { at: self.reference(reference)? }),
        }
    }

    /// A commit on the tip that holds git's marks of a conflict, for whoever has to decide to begin at. No reference has it
    /// until a branch is made there.
    ///
    /// # Errors
    /// As [`Self::land`].
    pub fn conflict_commit(
        &self,
        tip: &Oid,
        tree: &Oid,
        message: &str,
        trailers: &[(&str, &str)],
        cancel: Option<&Cancel>,
    ) -> Result<Oid, GitError> {
        self.make_commit(self.git().until(cancel), &New { tree, parents: &[tip], message, trailers })
    }

    /// Makes the commit of a wave. Where the chain of its tasks' commits stands on the first parent already it is taken as
    /// it is, else each of them is picked onto it. It may be repeated: one with these trailers on this first parent that the
    /// reference is at is reported as made. Without a commit of a task it holds nothing, and has but one parent.
    ///
    /// # Errors
    /// As [`Self::land`].
    pub fn wave_commit(&self, request: WaveRequest<'_>) -> Result<Wave, GitError> {
        let WaveRequest { reference, first_parent, commits, message, trailers, .. } = request;
        let git = self.git().until(request.cancel);
        let at = self.reference(reference)?;
        if let Some(at) = &at
            && trailed(git, (first_parent, at), trailers)?.as_ref() == Some(at)
            && self.reference(&format!("{at}^"))?.as_ref() == Some(first_parent)
        {
            return told(git, at.clone(), first_parent);
        }
        let mut chain = first_parent.clone();
        for commit in commits {
            match self.pick(git, &chain, commit)? {
                Ok(picked) => chain = picked,
                Err(conflicts) => return Ok(Wave::Conflict { at: commit.clone(), conflicts }),
            }
        }
        let tree = &tree_of(git, &chain)?;
        let parents = [first_parent, &chain];
        let parents = if chain == *first_parent { &parents[..1] } else { &parents };
        let commit = self.make_commit(git, &New { tree, parents, message, trailers })?;
        if !self.move_reference(reference, at.as_ref(), &commit, first_line(message))? {
            return Err(GitError::ReferenceMoved(reference.to_owned()));
        }
        told(git, commit, first_parent)
    }
}

/// The wave of a commit.
fn told(git: Git<'_>, commit: Oid, first_parent: &Oid) -> Result<Wave, GitError> {
    let tree = tree_of(git, &commit)?;
    let paths = paths_between(git, Some(first_parent), &commit)?;
    Ok(Wave::Made { commit, tree, paths })
}

fn first_line(message: &str) -> &str {
    message.trim().lines().next().unwrap_or_default()
}
