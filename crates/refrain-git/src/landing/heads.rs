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
        let mut lines = content.split(|byte| *byte == b'\n').map(|line| str::from_utf8(line).ok());
        let tree = lines.next()??.strip_prefix("tree ")?.parse().ok()?;
        // Git takes no other line for a parent.
        let parents = lines.map_while(|line| line?.strip_prefix("parent ")?.parse().ok());
        Some(Self { tree, parents: parents.collect() })
    }
}

#[derive(Debug)]
pub(crate) struct Heads(HashMap<Oid, Head>);

impl Heads {
    pub(crate) fn parent(&self, commit: &Oid) -> Option<&Oid> {
        self.0.get(commit)?.parents.first()
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

    pub(crate) fn head(&self, git: Git<'_>, commit: &Oid) -> Result<Head, GitError> {
        let head = self.heads(git, std::slice::from_ref(commit))?.0.remove(commit);
        head.ok_or_else(|| GitError::NoCommit(commit.to_string()))
    }

    /// The first parent of a commit; none of the first commit of a history.
    pub fn parent_of(&self, commit: &Oid) -> Result<Option<Oid>, GitError> {
        Ok(self.head(self.git(), commit)?.parents.into_iter().next())
    }

    /// The tree of a commit, read with this git.
    pub(crate) fn tree_by(&self, git: Git<'_>, commit: &Oid) -> Result<Oid, GitError> {
        Ok(self.head(git, commit)?.tree)
    }

    /// The trees of commits, in their order.
    pub(crate) fn trees(&self, git: Git<'_>, commits: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let heads = self.heads(git, commits)?;
        Ok(commits.iter().filter_map(|commit| heads.tree(commit).cloned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plumbing::object::name_of;

    #[test]
    fn a_commit_has_the_parents_that_git_sees_in_a_content_of_its_name() {
        let [tree, one, two] = ["1", "2", "3"].map(|digit| digit.repeat(40));
        let content =
            format!("tree {tree}\nparent {one}\nauthor A <a@b> 1 +0000\nparent {two}\n\nparent {two}\n");
        let name = name_of(&[format!("commit {}\0", content.len()).as_bytes(), content.as_bytes()]).unwrap();
        let head = Head { tree: tree.parse().unwrap(), parents: vec![one.parse().unwrap()] };
        assert_eq!(Head::of(&name, content.as_bytes()), Some(head));
        assert_eq!(Head::of(&name, content.replace(&one, &two).as_bytes()), None);
    }
}
