//! Trees and parents of commits, from the cache or else from git.

use std::collections::{HashMap, HashSet};

use refrain_core::git::Oid;

use crate::candidate::next_object;
use crate::error::GitError;
use crate::plumbing::git::Git;
use crate::plumbing::object::{is_sha1, name_of};
use crate::plumbing::object_cache::Head;
use crate::repository::Repository;

#[derive(Debug)]
pub(crate) struct Heads(HashMap<Oid, Head>);

impl Heads {
    pub(crate) fn parent(&self, commit: &Oid) -> Option<&Oid> {
        self.0.get(commit)?.parents.first()
    }

    pub(crate) fn get(&self, commit: &Oid) -> Option<&Head> {
        self.0.get(commit)
    }

    pub(crate) fn tree(&self, commit: &Oid) -> Option<&Oid> {
        self.0.get(commit).map(|head| &head.tree)
    }
}

/// Checks that the content of a commit has its name, if that is SHA-1, and this tree.
fn verify(commit: &Oid, tree: &Oid, content: &[u8]) -> Result<(), GitError> {
    let name = || name_of(&[format!("commit {}\0", content.len()).as_bytes(), content]);
    let is_named = !is_sha1(commit) || name().as_ref() == Some(commit);
    match is_named && content.starts_with(format!("tree {tree}\n").as_bytes()) {
        true => Ok(()),
        false => Err(GitError::ForgedObject(commit.to_string())),
    }
}

impl Repository {
    /// Loads commits; git is asked once for all that are not cached.
    /// Errors: [`GitError::ForgedObject`] if one is not what its name says.
    pub(crate) fn heads(&self, git: Git<'_>, commits: &[Oid]) -> Result<Heads, GitError> {
        let (mut heads, mut unknown) = (HashMap::new(), HashSet::new());
        for commit in commits {
            match self.known().get(commit) {
                Some(head) => drop(heads.insert(commit.clone(), head)),
                None => drop(unknown.insert(commit)),
            }
        }
        if unknown.is_empty() {
            return Ok(Heads(heads));
        }
        let unknown: String = unknown.iter().map(|commit| format!("{commit}\n")).collect();
        let words = ["rev-list", "--no-walk=unsorted", "--no-commit-header", "--format=%H %T %P", "--stdin"];
        let printed = git.text(words, unknown.as_bytes())?;
        // The commit itself: an agent can give its name to another, with another tree.
        let contents = git.output(["cat-file", "--buffer", "--batch"], unknown.as_bytes())?;
        let mut rest = contents.as_slice();
        for line in printed.lines() {
            let mut names = line.split_whitespace().map(str::parse);
            let (Some(Ok(commit)), Some(Ok(tree))) = (names.next(), names.next()) else { continue };
            verify(&commit, &tree, next_object(&mut rest).unwrap_or_default())?;
            let head = Head { tree, parents: names.filter_map(Result::ok).collect() };
            self.known().learn(&commit, head.clone());
            heads.insert(commit, head);
        }
        Ok(Heads(heads))
    }

    /// The tree of a commit, read with this git.
    pub(crate) fn tree_by(&self, git: Git<'_>, commit: &Oid) -> Result<Oid, GitError> {
        let heads = self.heads(git, std::slice::from_ref(commit))?;
        heads.tree(commit).cloned().ok_or_else(|| GitError::NoCommit(commit.to_string()))
    }

    /// The trees of commits, in their order.
    pub(crate) fn trees(&self, git: Git<'_>, commits: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let heads = self.heads(git, commits)?;
        let tree = |commit: &Oid| heads.tree(commit).cloned();
        let all: Option<Vec<Oid>> = commits.iter().map(tree).collect();
        all.ok_or_else(|| GitError::NoCommit(commits.first().map(Oid::to_string).unwrap_or_default()))
    }
}
