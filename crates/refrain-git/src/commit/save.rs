//! Work that was given up, saved on a branch of its own: a commit beside the working tree, the index and every other
//! branch, none of which is touched.

use std::borrow::Cow;

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::git::{Base, Dirty, Oid, RepoPath};

use crate::candidate::Bounds;
use crate::candidate::stage;
use crate::candidate::tree::TreeRequest;
use crate::commit::message::{IDENTITY_ERRORS, OWN_IDENTITY};
use crate::commit::reconcile_history::{ITERATION, LOOP};
use crate::error::GitError;
use crate::plumbing::git::{Git, said};
use crate::repository::Repository;

/// The trailer with the tree of the work, without the added files.
pub(crate) const TREE: &str = "Refrain-Tree";

const NAMES: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub struct SaveRequest<'a> {
    /// The state before the loop.
    pub base: &'a Base,
    /// Changed files of the base that are saved all the same: [`Repository::mixed`].
    pub mixed: &'a [RepoPath],
    pub id: &'a LoopId,
    pub iteration: u32,
    /// The branch; if it exists, `-2` is added, and so on.
    pub branch: &'a str,
    /// The message, without trailers.
    pub message: &'a str,
    /// Files added to the work: paths and contents, which are safe to publish.
    pub files: &'a [(&'a str, &'a [u8])],
    /// The path of a private index; that of a commit will do.
    pub index: &'a Utf8Path,
    pub bounds: Bounds<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    pub commit: Oid,
}

impl Repository {
    /// The files that were changed or new before the loop, and are different now: the user's part of them cannot be
    /// separated from the loop's.
    pub fn mixed(&self, base: &Base) -> Vec<RepoPath> {
        let is_changed = |dirty: &&Dirty| self.stamp(&dirty.path.to_bytes()) != dirty.stamp;
        base.dirty.iter().filter(is_changed).map(|dirty| dirty.path.clone()).collect()
    }

    /// Saves the content that a commit would have now, and `files`, on a new branch that starts at the head; none if the loop
    /// changed nothing.
    ///
    /// It may be repeated: a branch that was made for this loop, this iteration and the same files is reused.
    pub fn save_work(&self, request: SaveRequest<'_>) -> Result<Option<Saved>, GitError> {
        self.check_branch_name(request.branch)?;
        let SaveRequest { base, mixed, index, bounds, .. } = request;
        let mut base = base.clone();
        base.dirty.retain(|dirty| !mixed.contains(&dirty.path));
        let (tree, _) = self.tree(TreeRequest { base: &base, index, bounds })?;
        if mixed.is_empty()
            && let Some(head) = self.reference("HEAD")?.filter(|head| base.head.as_ref() == Some(head))
            && self.tree_of(&head)? == tree
        {
            return Ok(None);
        }
        let iteration = request.iteration.to_string();
        let job = Job {
            repository: self,
            branch: request.branch,
            message: request.message,
            trailers: &[(LOOP, request.id.as_str()), (ITERATION, &iteration), (TREE, tree.as_str())],
            files: request.files,
            git: self.git().until(bounds.cancel).with_index(index),
        };
        job.run().map(Some)
    }
}

/// Work being saved; the private index has its tree.
pub(crate) struct Job<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) branch: &'a str,
    pub(crate) message: &'a str,
    pub(crate) trailers: &'a [(&'a str, &'a str)],
    pub(crate) files: &'a [(&'a str, &'a [u8])],
    pub(crate) git: Git<'a>,
}

impl Job<'_> {
    /// Saves it on a new branch, or finds the branch on which it was saved.
    pub(crate) fn run(&self) -> Result<Saved, GitError> {
        let names = (1..=NAMES).map(|number| match number {
            1 => self.branch.to_owned(),
            again => format!("{}-{again}", self.branch),
        });
        for branch in names {
            if let Some(saved) = self.save_as(branch)? {
                return Ok(saved);
            }
        }
        Err(GitError::BranchTaken(self.branch.to_owned()))
    }

    /// Saves it on exactly this branch; none if the branch belongs to another save.
    fn save_as(&self, branch: String) -> Result<Option<Saved>, GitError> {
        if let Some(commit) = self.repository.branch_head(&branch)? {
            return Ok(self.is_made(&commit)?.then_some(Saved { branch, commit }));
        }
        let commit = self.commit(&branch)?;
        let refname = format!("refs/heads/{branch}");
        let nothing = "0".repeat(commit.as_str().len());
        // No words of an agent: the log could be another file by now.
        let args = ["update-ref", "-m", "refrain: save work", &refname, commit.as_str(), &nothing];
        let done = self.git.run(args, &[])?;
        match done.status.success() {
            true => Ok(Some(Saved { branch, commit })),
            // Another process created it first.
            false if self.repository.branch_head(&branch)?.is_some() => Ok(None),
            false => {
                Err(GitError::Failed { command: format!("git update-ref {refname}"), said: said(&done) })
            }
        }
    }

    /// A commit for this branch, which its message and files name instead of the wanted one.
    fn commit(&self, branch: &str) -> Result<Oid, GitError> {
        let git = self.git;
        let mut lines = Vec::new();
        for (path, content) in self.files {
            let content = named(content, self.branch, branch);
            let object = oid(git.text(["hash-object", "-w", "--stdin", "--no-filters"], &content)?)?;
            lines.extend(stage::info("100644", &object, path.as_bytes()));
        }
        stage::put(git, &lines)?;
        let tree = oid(git.text(["write-tree"], &[])?)?;
        let head = git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], &[])?;
        let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
        let mut args = vec!["commit-tree", tree.as_str()];
        if !head.is_empty() {
            args.extend(["-p", &head]);
        }
        args.extend(["-F", "-"]);
        let message = self.message(branch);
        let done = Git::run(git, &args, message.as_bytes())?;
        if done.status.success() {
            return oid(String::from_utf8_lossy(&done.stdout).trim().to_owned());
        }
        let said = said(&done);
        if IDENTITY_ERRORS.iter().any(|words| said.contains(words)) {
            return oid(Git::text(git, OWN_IDENTITY.iter().chain(&args), message.as_bytes())?);
        }
        Err(GitError::Failed { command: "git commit-tree".to_owned(), said })
    }

    fn message(&self, branch: &str) -> String {
        let trailers = self.trailers.iter().map(|(key, value)| format!("{key}: {value}\n"));
        let message = self.message.trim().replace(self.branch, branch);
        format!("{message}\n\n{}", trailers.collect::<String>())
    }

    /// Whether a commit was made for this very work, by a runner that died before it recorded so.
    fn is_made(&self, commit: &Oid) -> Result<bool, GitError> {
        let value = |(key, _): &(&str, &str)| format!("%(trailers:key={key},valueonly,separator=%x2C)");
        let format: Vec<String> = self.trailers.iter().map(value).collect();
        let format = format!("--format={}", format.join("%n"));
        let printed = self.git.text(["show", "--no-patch", &format, commit.as_str(), "--"], &[])?;
        let values: Vec<&str> = self.trailers.iter().map(|(_, value)| *value).collect();
        Ok(printed.trim() == values.join("\n"))
    }
}

/// A file's content with the branch's name in place of the wanted one. One that is no text stays.
fn named<'a>(content: &'a [u8], wanted: &str, branch: &str) -> Cow<'a, [u8]> {
    match str::from_utf8(content) {
        Ok(text) if wanted != branch => text.replace(wanted, branch).into_bytes().into(),
        Ok(_) | Err(_) => content.into(),
    }
}

fn oid(answer: String) -> Result<Oid, GitError> {
    answer.parse().map_err(|_| GitError::Answer { command: "commit-tree", answer })
}
