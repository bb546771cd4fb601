//! Traces of a loop in the repository: which files it changed, and whether the objects in its journal exist. Nothing
//! is written. Replacements by `git replace` are ignored.

use std::collections::{BTreeMap, HashSet};

use refrain_core::git::{Oid, RepoPath};
use refrain_core::view::report::{Change, FileChange};

use crate::candidate::stage::empty_tree;
use crate::error::GitError;
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

const AS_IT_IS: [&str; 2] = ["-c", "core.useReplaceRefs=false"];

/// The tree of a commit, and the loop and the iteration that its trailers name.
const FORMAT: &str = "--format=%T%n%(trailers:key=Refrain-Loop,valueonly,separator=%x2C)%n\
                      %(trailers:key=Refrain-Iteration,valueonly,separator=%x2C)";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTree {
    pub tree: Oid,
    /// The loop in its trailer; empty without one.
    pub of_loop: String,
    /// The iteration in its trailer; empty without one.
    pub of_iteration: String,
}

impl Repository {
    /// The files that differ between two trees, ordered by path; without `from`, all files of `to`.
    pub fn changed_files(&self, from: Option<&Oid>, to: &Oid) -> Result<Vec<FileChange>, GitError> {
        let from = from.map_or_else(|| empty_tree(to), Oid::as_str);
        let how =
            ["diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--raw", "--numstat"];
        let pair = [from, to.as_str()];
        let objects = VerifiedObjects::between(self, self.git(), pair)?;
        let git = objects.apply(self.git()).without_fetching();
        let printed = git.output(how.into_iter().chain(pair), &[])?;
        let strange = || GitError::Answer {
            command: "diff-tree",
            answer: String::from_utf8_lossy(&printed).into_owned(),
        };
        // Every file appears twice: with the kind of change, and with its number of lines.
        let mut changes = BTreeMap::new();
        let mut parts = printed.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        while let Some(part) = parts.next() {
            if part.starts_with(b":") {
                let change = part.last().and_then(|letter| change(*letter)).ok_or_else(strange)?;
                let path = RepoPath::from_bytes(parts.next().ok_or_else(strange)?);
                let file = FileChange { path: path.clone(), change, added: None, removed: None };
                changes.insert(path, file);
            } else {
                let mut fields = part.splitn(3, |byte| *byte == b'\t');
                let (added, removed) = (fields.next().and_then(count), fields.next().and_then(count));
                let path = fields.next().map(RepoPath::from_bytes).ok_or_else(strange)?;
                let file = changes.get_mut(&path).ok_or_else(strange)?;
                (file.added, file.removed) = (added, removed);
            }
        }
        Ok(changes.into_values().collect())
    }

    /// The commit with that name; none if it is not in the repository.
    pub fn recorded(&self, commit: &Oid) -> Result<Option<RecordedTree>, GitError> {
        let show = ["rev-list", "--no-commit-header", "--max-count=1", FORMAT, commit.as_str(), "--"];
        let done = self.git().run(AS_IT_IS.into_iter().chain(show), &[])?;
        if !done.status.success() {
            return Ok(None);
        }
        let answer = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut lines = answer.lines().map(str::to_owned);
        let tree = lines.next().and_then(|tree| tree.parse().ok());
        let Some(tree) = tree else { return Err(GitError::Answer { command: "rev-list", answer }) };
        let mut next = || lines.next().unwrap_or_default();
        Ok(Some(RecordedTree { tree, of_loop: next(), of_iteration: next() }))
    }

    /// Which of these commits no branch, no tag and no head reaches, those included that do not exist.
    pub fn unreachable(&self, commits: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let list = |commits: &mut dyn Iterator<Item = &Oid>| {
            commits.map(|commit| format!("{commit}\n")).collect::<String>()
        };
        let asked = list(&mut commits.iter());
        let check = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
        let printed = self.git().text(AS_IT_IS.into_iter().chain(check), asked.as_bytes())?;
        let there: HashSet<&str> = printed.lines().filter_map(|line| line.strip_suffix(" commit")).collect();
        let asked = list(&mut commits.iter().filter(|commit| there.contains(commit.as_str())));
        // What is read from stdin comes before `--not`.
        let outside =
            ["rev-list", "--ignore-missing", "--stdin", "--not", "--branches", "--remotes", "--tags", "HEAD"];
        let printed = self.git().text(AS_IT_IS.into_iter().chain(outside), asked.as_bytes())?;
        let outside: HashSet<&str> = printed.lines().collect();
        let is_lost = |commit: &&Oid| !there.contains(commit.as_str()) || outside.contains(commit.as_str());
        Ok(commits.iter().filter(is_lost).cloned().collect())
    }

    /// Whether a tree is in the repository, with every file and folder in it.
    pub fn has_whole(&self, tree: &Oid) -> Result<bool, GitError> {
        let list = ["rev-list", "--objects", "--quiet", tree.as_str(), "--"];
        Ok(self.git().run(AS_IT_IS.into_iter().chain(list), &[])?.status.success())
    }
}

/// The meaning of a status letter of git.
fn change(letter: u8) -> Option<Change> {
    match letter {
        b'A' => Some(Change::Added),
        b'M' => Some(Change::Modified),
        b'T' => Some(Change::Retyped),
        b'D' => Some(Change::Deleted),
        _ => None,
    }
}

/// A number of lines; none if git counts none.
fn count(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}
