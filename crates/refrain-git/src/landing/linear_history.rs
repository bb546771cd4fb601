//! A line of commits on a reference of our own, made of objects alone: adding a commit, picking it onto another, and
//! finding it again by its trailers.

use std::collections::BTreeMap;

use refrain_core::git::{Conflict, Oid};

use crate::Cancel;
use crate::commit::message::{IDENTITY_ERRORS, with_trailers};
use crate::error::GitError;
use crate::landing::heads::Heads;
use crate::landing::merge::MergeResult;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::{Git, oid, said};
use crate::plumbing::object::Object;
use crate::plumbing::parts::Parts;
use crate::repository::Repository;

/// How many references one git call lists: the length of arguments is limited.
const AT_ONCE: usize = 500;
/// Where references of branches begin.
const HEADS: &str = "refs/heads/";

pub(crate) struct New<'a> {
    pub(crate) tree: &'a Oid,
    pub(crate) parents: &'a [&'a Oid],
    /// Without trailers.
    pub(crate) message: &'a str,
    pub(crate) trailers: &'a [(&'a str, &'a str)],
}

#[derive(Clone, Copy, Debug)]
pub struct RemakeRequest<'a> {
    pub reference: &'a str,
    /// The base of the line: its original start, or a new one.
    pub onto: &'a Oid,
    /// The commits of the line, in order. A commit that is not listed is removed.
    pub commits: &'a [Oid],
    pub cancel: Option<&'a Cancel>,
}

/// A line that was made anew, to which the reference points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearBranch {
    pub tip: Oid,
    /// The new commit for each original commit, in order.
    pub picked: Vec<(Oid, Oid)>,
    /// The commits that depend on the removed ones, and so are not in it either.
    pub conflicts: Vec<(Oid, Vec<Conflict>)>,
}

impl Repository {
    /// Recreates a line from some of its commits, or on another commit: with `onto` as the line's start and all
    /// commits except one, that one is removed. Commits that are already in the right place are kept. It may be
    /// repeated: the result is the same each time, unless commits are signed.
    pub fn remake_line(&self, request: RemakeRequest<'_>) -> Result<LinearBranch, GitError> {
        let git = self.git().until(request.cancel);
        let (mut tip, mut picked, mut conflicts) = (request.onto.clone(), Vec::new(), Vec::new());
        let heads = self.heads(git, request.commits)?;
        for commit in request.commits {
            match self.pick(git, &tip, (commit, &heads))? {
                Ok(made) => {
                    picked.push((commit.clone(), made.clone()));
                    tip = made;
                }
                Err(conflict) => conflicts.push((commit.clone(), conflict)),
            }
        }
        self.put_reference(request.reference, &tip, "refrain: make the line anew")?;
        Ok(LinearBranch { tip, picked, conflicts })
    }

    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        self.tree_by(self.git(), commit)
    }

    /// The commit of a reference; none if it does not exist.
    pub fn reference(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let done = self.git().run(["rev-parse", "--verify", "--quiet", "--end-of-options", name], &[])?;
        Ok(String::from_utf8_lossy(&done.stdout).lines().last().and_then(|line| line.parse().ok()))
    }

    /// Moves a reference from its expected position, or creates it; returns whether it is now at its target. It may
    /// be repeated.
    pub fn move_reference(
        &self,
        name: &str,
        from: Option<&Oid>,
        to: &Oid,
        why: &str,
    ) -> Result<bool, GitError> {
        let nothing = "0".repeat(to.as_str().len());
        let from = from.map_or(nothing.as_str(), Oid::as_str);
        let done = self.git().run(["update-ref", "-m", why, name, to.as_str(), from], &[])?;
        if done.status.success() {
            return Ok(true);
        }
        match self.reference(name)? {
            Some(at) if at == *to => Ok(true),
            at if at.as_ref().map_or(nothing.as_str(), Oid::as_str) != from => Ok(false),
            _ => Err(GitError::Failed { command: format!("git update-ref {name}"), said: said(&done) }),
        }
    }

    /// Sets a reference that only the caller may move, wherever it is, or leads.
    pub fn put_reference(&self, name: &str, to: &Oid, why: &str) -> Result<(), GitError> {
        self.git().output(["update-ref", "--no-deref", "-m", why, name, to.as_str()], &[]).map(drop)
    }

    /// Creates a reference that does not exist; returns whether it did so.
    pub(crate) fn make_reference(&self, name: &str, to: &Oid, why: &str) -> Result<bool, GitError> {
        let nothing = "0".repeat(to.as_str().len());
        let done = self.git().run(["update-ref", "-m", why, name, to.as_str(), &nothing], &[])?;
        Ok(done.status.success())
    }

    /// The commits that references point to, and the trees of these; references that do not exist are omitted.
    pub fn references(&self, names: &[String]) -> Result<BTreeMap<String, (Oid, Oid)>, GitError> {
        let mut found = BTreeMap::new();
        for names in names.chunks(AT_ONCE) {
            let words = ["for-each-ref", "--format=%(refname) %(objectname) %(tree)"];
            let printed =
                self.git().text(words.into_iter().chain(names.iter().map(|name| name.as_str())), &[])?;
            found.extend(printed.lines().filter_map(|line| {
                let mut fields = line.split(' ');
                let (name, at, tree) = (fields.next()?, fields.next()?, fields.next()?);
                // Git also lists references below a requested name.
                names.iter().find(|asked| **asked == name)?;
                Some((name.to_owned(), (at.parse().ok()?, tree.parse().ok()?)))
            }));
        }
        Ok(found)
    }

    /// The heads of these branches; branches that do not exist are omitted.
    pub fn branch_heads(
        &self,
        names: impl Iterator<Item = String>,
    ) -> Result<BTreeMap<String, Oid>, GitError> {
        let names: Vec<_> = names.map(|name| format!("{HEADS}{name}")).collect();
        let found = self.references(&names)?.into_iter();
        Ok(found.filter_map(|(name, (at, _))| Some((name.strip_prefix(HEADS)?.to_owned(), at))).collect())
    }

    /// Deletes references that have not moved, all at once; one that has moved stays.
    pub fn drop_references(&self, at: &BTreeMap<String, Oid>) -> Result<(), GitError> {
        // An agent can make a reference lead to a branch of the user.
        let order = |(name, at): (&String, &Oid)| format!("option no-deref\ndelete {name} {at}\n");
        let all: String = at.iter().map(order).collect();
        if all.is_empty() || Git::run(self.git(), ["update-ref", "--stdin"], all.as_bytes())?.status.success()
        {
            return Ok(());
        }
        // A transaction fails as a whole if one reference has moved: delete them one by one.
        at.iter().try_for_each(|(name, at)| self.drop_reference(name, at).map(drop))
    }

    /// Deletes a reference if it has not moved; returns whether it is gone.
    pub fn drop_reference(&self, name: &str, at: &Oid) -> Result<bool, GitError> {
        let done = self.git().run(["update-ref", "--no-deref", "-d", name, at.as_str()], &[])?;
        if done.status.success() {
            return Ok(true);
        }
        match self.reference(name)? {
            None => Ok(true),
            Some(now) if now != *at => Ok(false),
            Some(_) => {
                Err(GitError::Failed { command: format!("git update-ref -d {name}"), said: said(&done) })
            }
        }
    }

    /// Adds a commit object without a reference, with the user's identity, and signed if the user signs every commit.
    pub(crate) fn make_commit(&self, git: Git<'_>, new: &New<'_>) -> Result<Oid, GitError> {
        let message = with_trailers(git, new.message, new.trailers)?;
        let is_signed = self.signs(git)?;
        let object = Object { tree: new.tree, parents: new.parents, message: &message, is_signed };
        self.add_commit(git, object)?.map_err(|said| {
            match IDENTITY_ERRORS.iter().any(|words| said.contains(words)) {
                true => GitError::NoIdentity,
                false => GitError::Failed { command: "git commit-tree".to_owned(), said },
            }
        })
    }

    /// Picks a commit onto another parent: with its own changes, author and message. A commit that already has this
    /// parent is used as it is.
    pub(crate) fn pick(
        &self,
        git: Git<'_>,
        onto: &Oid,
        (commit, heads): (&Oid, &Heads),
    ) -> Result<Result<Oid, Vec<Conflict>>, GitError> {
        if heads.parent(commit) == Some(onto) {
            return Ok(Ok(commit.clone()));
        }
        let parts = Parts::of(git, commit)?;
        let Some(parent) = &parts.parent else {
            return Err(GitError::NoCommit(format!("{commit}^")));
        };
        let tree = match self.merge_trees(git, parent, (onto, commit))? {
            MergeResult::Clean { tree } => tree,
            MergeResult::Conflict { conflicts, .. } => return Ok(Err(conflicts)),
        };
        if self.signs(git)? {
            let encoding = parts.header(b"encoding ").map(String::from_utf8_lossy);
            let encoding = encoding.map(|encoding| format!("i18n.commitEncoding={encoding}"));
            let settings = encoding.iter().flat_map(|encoding| ["-c", encoding]);
            let args = ["commit-tree", tree.as_str(), "-p", onto.as_str(), "-S", "-F", "-"];
            let (author, message) = (parts.author(), parts.message());
            let git = git.by(author.as_ref());
            return oid("commit-tree", &Git::text(git, settings.chain(args), message)?).map(Ok);
        }
        // With the original times: so it is the same object each time.
        let head = format!("tree {tree}\nparent {onto}\n");
        let object = [head.as_bytes(), &parts.rest].concat();
        oid("hash-object", &Git::text(git, ["hash-object", "-t", "commit", "-w", "--stdin"], &object)?)
            .map(Ok)
    }

    pub(crate) fn signs(&self, git: Git<'_>) -> Result<bool, GitError> {
        if configured(self, git, |configured| configured.is_unsigned())? {
            return Ok(false);
        }
        let done = git.run(["config", "--type=bool", "--get", "commit.gpgSign"], &[])?;
        Ok(done.stdout.starts_with(b"true"))
    }
}

/// The commits of a line after `from`, oldest first.
pub(crate) fn since(git: Git<'_>, from: &Oid, to: &Oid) -> Result<Vec<Oid>, GitError> {
    let range = format!("{from}..{to}");
    let printed = git.text(["rev-list", "--first-parent", "--reverse", &range, "--"], &[])?;
    printed.lines().map(|line| oid("rev-list", line)).collect()
}

/// The youngest commit after `from` on this line that has exactly these trailers.
pub(crate) fn trailed(
    git: Git<'_>,
    (from, to): (&Oid, &Oid),
    trailers: &[(&str, &str)],
) -> Result<Option<Oid>, GitError> {
    let value = |(key, _): &(&str, &str)| format!("%n%(trailers:key={key},valueonly,separator=%x2C)");
    let format = format!("--format=%H{}%x00", trailers.iter().map(value).collect::<String>());
    let range = format!("{from}..{to}");
    let printed =
        git.output(["rev-list", "--no-commit-header", "--first-parent", &format, range.as_str(), "--"], &[])?;
    let is_it = |record: &[u8]| {
        let record = String::from_utf8_lossy(record);
        let mut lines = record.trim_start_matches('\n').split('\n');
        let commit: Oid = lines.next()?.parse().ok()?;
        trailers.iter().all(|(_, value)| lines.next() == Some(value)).then_some(commit)
    };
    Ok(printed.split(|byte| *byte == 0).find_map(is_it))
}
