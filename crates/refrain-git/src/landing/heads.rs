//! Trees and parents of commits, out of contents that have the names of the commits: an agent can give a name to another.

use std::collections::HashMap;

use refrain_core::git::Oid;

use crate::candidate::next_object;
use crate::error::GitError;
use crate::plumbing::git::Git;
use crate::plumbing::object::is_named;
use crate::repository::Repository;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
}

impl Head {
    /// Reads the content of a commit; none if that has another name.
    fn of(commit: &Oid, content: &[u8]) -> Option<Self> {
        if !is_named(commit, &[format!("commit {}\0", content.len()).as_bytes(), content]) {
            return None;
        }
        let lines = content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        let lines: Vec<&str> = lines.filter_map(|line| str::from_utf8(line).ok()).collect();
        let named = |field| lines.iter().filter_map(move |line| line.strip_prefix(field)?.parse().ok());
        Some(Self { tree: named("tree ").next()?, parents: named("parent ").collect() })
    }
}

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

impl Repository {
    /// Loads commits; git is asked once for all.
    /// Errors: [`GitError::ForgedObject`] if one is not what its name says; [`GitError::NoCommit`] if one is missing.
    pub(crate) fn heads(&self, git: Git<'_>, commits: &[Oid]) -> Result<Heads, GitError> {
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let contents = git.output(["cat-file", "--buffer", "--batch"], asked.as_bytes())?;
        let (mut rest, mut heads) = (contents.as_slice(), HashMap::new());
        for commit in commits {
            let Some(content) = next_object(&mut rest) else {
                return Err(GitError::NoCommit(commit.to_string()));
            };
            let head = Head::of(commit, content);
            heads.insert(commit.clone(), head.ok_or_else(|| GitError::ForgedObject(commit.to_string()))?);
        }
        Ok(Heads(heads))
    }

    /// The first parent of a commit; none of the first commit of a history.
    pub fn parent_of(&self, commit: &Oid) -> Result<Option<Oid>, GitError> {
        Ok(self.heads(self.git(), std::slice::from_ref(commit))?.parent(commit).cloned())
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
