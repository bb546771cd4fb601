//! The reference of a loop that a machine drives under a fence: it is the lease, the fence and the copy in one. Each commit
//! is a child of the last, and says which machine has the loop. It is moved together with the branch, or neither is.

use std::time::Duration;

use refrain_core::git::Oid;

use super::{CLAIM, FENCE, HOLDER, JournalCommit, JournalRef, LOOP, NewJournalCommit, SEQ, Swap};
use crate::commit::message::OWN_IDENTITY;
use crate::error::GitError;
use crate::plumbing::git::{Git, oid};
use crate::publish::random;
use crate::publish::refusal::{PushResult, Refusal, of_push};
use crate::repository::Repository;

/// The head of the loop's branch.
const HEAD: &str = "Refrain-Head";

/// The longest that one look at the remote, or one push, takes: a lease is renewed meanwhile.
const LONGEST: Duration = Duration::from_secs(10);

/// Where the references of a loop are at the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub journal: Option<Oid>,
    pub branch: Option<Oid>,
}

/// How a machine holds a loop.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// Its name.
    pub name: &'a str,
    pub fence: u64,
    /// How many records the journal has.
    pub seq: u64,
    /// The head of the loop's branch, if there is one.
    pub head: Option<&'a Oid>,
}

impl Repository {
    /// The head of the loop's branch; that of this repository while there is no such branch.
    pub fn head_of(&self, branch: &str) -> Result<Oid, GitError> {
        match self.branch_head(branch)? {
            Some(head) => Ok(head),
            None => oid("rev-parse", &self.git().text(["rev-parse", "--verify", "HEAD^{commit}"], &[])?),
        }
    }
}

impl JournalRef<'_> {
    /// Where the journal and the branch are at the remote now. Nothing is fetched.
    pub fn places(&self, branch: &str) -> Result<Result<Places, Refusal>, GitError> {
        let destination = self.destination()?;
        let branch = format!("refs/heads/{branch}");
        let asked = ["ls-remote", "--refs", "--", &destination.name, &self.name, &branch];
        let done = match self.talk(&destination, &asked, LONGEST)? {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(done) => done,
        };
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        let at = |name: &str| {
            let mut lines = printed.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, found)| *found == name).and_then(|(at, _)| at.parse().ok())
        };
        Ok(Ok(Places { journal: at(&self.name), branch: at(&branch) }))
    }

    /// Makes the next commit of a machine that has the loop.
    pub fn replica(&self, new: &NewJournalCommit<'_>, holder: Holder<'_>) -> Result<Oid, GitError> {
        let made = self.commit(new)?;
        let tree = self.repository.tree_of(&made)?;
        let parents: Vec<&Oid> = new.previous.into_iter().chain([new.head]).collect();
        self.hold(&tree, &parents, holder)
    }

    /// Makes the commit with which a machine takes the loop over.
    pub fn take_over(&self, from: &JournalCommit, holder: Holder<'_>) -> Result<Oid, GitError> {
        let tree = self.repository.tree_of(&from.found.commit)?;
        self.hold(&tree, &[&from.found.commit], holder)
    }

    fn hold(&self, tree: &Oid, parents: &[&Oid], holder: Holder<'_>) -> Result<Oid, GitError> {
        let (id, Holder { name, fence, seq, head }) = (self.id, holder);
        let (first, second) = (random(), random());
        let mut message = format!(
            "Journal of loop {id}\n\n{LOOP}: {id}\n{FENCE}: {fence}\n{SEQ}: {seq}\n{HOLDER}: {name}\n{CLAIM}: {first:016x}{second:016x}\n"
        );
        message.extend(head.map(|head| format!("{HEAD}: {head}\n")));
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let words = OWN_IDENTITY.iter().copied().chain(["commit-tree", tree.as_str()]).chain(parents);
        let made = Git::text(self.repository.git(), words.chain(["-F", "-"]), message.as_bytes())?;
        oid("commit-tree", &made)
    }

    /// The head of the loop's branch, as a commit of a machine that had the loop says it.
    pub fn held_head(&self, commit: &Oid) -> Result<Option<Oid>, GitError> {
        let format = format!("--format=%(trailers:key={HEAD},valueonly)");
        let printed =
            self.repository.git().text(["show", "--no-patch", &format, commit.as_str(), "--"], &[])?;
        Ok(printed.trim().parse().ok())
    }

    /// Moves the journal to a commit if it is at `expected`, and with it the branch, from and to these commits. Either
    /// both are moved or none is.
    pub fn swap_with_branch(
        &self,
        commit: &Oid,
        expected: Option<&Oid>,
        branch: Option<(&str, Option<&Oid>, &Oid)>,
    ) -> Result<Swap, GitError> {
        let destination = self.destination()?;
        let moved = [(self.name.clone(), expected, commit)].into_iter();
        let reference = branch.map(|(name, from, to)| (format!("refs/heads/{name}"), from, to));
        let moved: Vec<_> = moved.chain(reference).collect();
        let leases = moved
            .iter()
            .map(|(name, from, _)| format!("--force-with-lease={name}:{}", from.map_or("", Oid::as_str)));
        let (leases, refspecs): (Vec<_>, Vec<_>) =
            (leases.collect(), moved.iter().map(|(name, _, to)| format!("{to}:{name}")).collect());
        let words = ["push", "--porcelain", "--no-progress", "--no-verify", "--no-follow-tags", "--atomic"];
        let words = words.into_iter().chain(leases.iter().map(String::as_str));
        let words = words.chain(["--recurse-submodules=no", "--", &destination.name]);
        let words: Vec<_> = words.chain(refspecs.iter().map(String::as_str)).collect();
        let talked = self.repository.talk((&self.upstream, &destination), &words, LONGEST, None)?;
        Ok(match talked.map(|done| of_push(&done, &self.name)) {
            Ok(PushResult::Pushed) => {
                if let Some((name, _, to)) = branch {
                    self.repository.track(&destination, name, to);
                }
                Swap::Done
            }
            Ok(PushResult::Rejected { .. }) => Swap::Stale,
            Ok(PushResult::Refused(refusal)) | Err(refusal) => Swap::Unknown(refusal),
        })
    }
}
