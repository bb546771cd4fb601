//! Content that would be lost if another task took a worktree of the pool, and saving it on a branch of its own.

use refrain_core::git::{Base, Oid, OmittedPath, Operation};

use crate::Cancel;
use crate::candidate::status::{HIDDEN, Status, has_conflicts, hidden};
use crate::candidate::submodules::look;
use crate::candidate::tree::TreeRequest;
use crate::commit::choice::is_work;
use crate::commit::save::{Job, Saved, TREE};
use crate::error::GitError;
use crate::plumbing::disk::{remove, text};
use crate::plumbing::git::Git;
use crate::repository::{Repository, is_refrains};
use crate::worktree::pool::{ReadyRequest, SETTLED};

/// The trailer with the place of saved work.
const SLOT: &str = "Refrain-Slot";

/// References that protect a commit from garbage collection.
const KEEPING: [&str; 4] = ["refs/heads", "refs/tags", "refs/remotes", "refs/refrain"];

fn is_contained(git: Git<'_>, commit: &Oid) -> Result<bool, GitError> {
    let words = ["for-each-ref", "--count=1", "--contains", commit.as_str()];
    Ok(!git.output(words.into_iter().chain(KEEPING), &[])?.is_empty())
}

impl Repository {
    /// Removes all flags that hide changes from git, in a worktree that no process uses.
    pub(crate) fn wake_slot(&self, cancel: Option<&Cancel>) -> Result<(), GitError> {
        let git = self.git().until(cancel);
        // The processes that held them are dead: no other process uses the worktree.
        for lock in ["index.lock", "HEAD.lock"] {
            remove(&self.git_dir().join(lock))?;
        }
        if let Err(GitError::Failed { .. }) = self.unhide(git) {
            // The index cannot be read: the files count.
            remove(&self.git_dir().join("index"))?;
            git.run(["read-tree", "HEAD"], &[])?;
        }
        if self.reference("HEAD")?.is_none()
            && let Some(last) = self.last_head()
            && self.recorded(&last)?.is_some()
        {
            // Its branch was deleted: git would take every file for a new one.
            git.output(["update-ref", "--no-deref", "HEAD", last.as_str()], &[])?;
        }
        Ok(())
    }

    fn look_in_slot(&self, cancel: Option<&Cancel>) -> Result<Look, GitError> {
        let git = self.git().until(cancel);
        let mut status = look(self, git)?;
        status.entries.retain(|entry| !is_refrains(&entry.path));
        let operation = self.operation().or_else(|| has_conflicts(&status).then_some(Operation::Merge));
        let is_kept = match &status.head {
            Some(head) if status.branch.is_none() => self.is_kept(git, head)?,
            _ => true,
        };
        Ok(Look { status, operation, is_kept })
    }

    /// The same; or why git cannot say what is in it.
    pub(crate) fn try_to_look_in_slot(
        &self,
        cancel: Option<&Cancel>,
    ) -> Result<Result<Look, String>, GitError> {
        match self.look_in_slot(cancel) {
            Err(error) if error.is_of_objects() => Ok(Err(error.to_string())),
            look => look.map(Ok),
        }
    }

    /// Removes the index flags that hide changes of files from git.
    fn unhide(&self, git: Git<'_>) -> Result<(), GitError> {
        let printed = git.output(HIDDEN, &[])?;
        let (mut skipped, mut assumed) = (Vec::new(), Vec::new());
        for (mark, path) in hidden(&printed) {
            let path = [path, b"\0"].concat();
            if mark.eq_ignore_ascii_case(&b's') {
                skipped.extend_from_slice(&path);
            }
            if mark.is_ascii_lowercase() {
                assumed.extend_from_slice(&path);
            }
        }
        for (how, paths) in [("--no-skip-worktree", skipped), ("--no-assume-unchanged", assumed)] {
            if !paths.is_empty() {
                Git::output(git, ["update-index", how, "-z", "--stdin"], &paths)?;
            }
        }
        Ok(())
    }

    /// The head at the last look, from its reflog.
    fn last_head(&self) -> Option<Oid> {
        let log = text(&self.git_dir().join("logs/HEAD")).ok()?;
        log.lines().last()?.split(' ').nth(1)?.parse().ok()
    }

    /// Whether a commit is on a branch, or no longer needed.
    fn is_kept(&self, git: Git<'_>, head: &Oid) -> Result<bool, GitError> {
        if self.reference(SETTLED)?.as_ref() == Some(head) {
            return Ok(true);
        }
        is_contained(git, head)
    }

    /// Whether a branch, a tag or another reference of this repository has the commit.
    pub fn keeps(&self, commit: &Oid) -> Result<bool, GitError> {
        Ok(self.has(commit)? && is_contained(self.git(), commit)?)
    }

    /// Saves the content on a branch; or returns why that fails.
    pub(crate) fn save_slot(
        &self,
        look: &Look,
        request: ReadyRequest<'_>,
    ) -> Result<Result<Option<Saved>, Vec<String>>, GitError> {
        if look.is_clean() {
            return Ok(Ok(None));
        }
        let (base, index) = (Base::default(), request.beside.join("index"));
        let tree = TreeRequest { base: &base, index: &index, bounds: request.bounds };
        let (tree, left_out) = self.tree_and_rest(tree)?;
        if !left_out.is_empty() {
            return Ok(Err(left_out
                .iter()
                .map(|OmittedPath { path, why }| format!("{path}: {why}"))
                .collect()));
        }
        let (branch, of) = look.names();
        let job = Job {
            repository: self,
            branch: &branch,
            message: &format!("wip: what was left in {of}\n\n{}", look.reasons().join("\n")),
            trailers: &[(SLOT, &of), (TREE, tree.as_str())],
            files: &[],
            git: self.git().until(request.bounds.cancel).with_index(&index),
        };
        let saved = job.run()?;
        if let Some(operation) = look.operation {
            self.quit(operation)?;
        }
        Ok(Ok(Some(saved)))
    }

    /// Ends git's operation in progress; its autostash becomes a stash.
    fn quit(&self, operation: Operation) -> Result<(), GitError> {
        let words: &[&str] = match operation {
            Operation::Merge => &["merge", "--quit"],
            Operation::Rebase if self.git_dir().join("rebase-apply/applying").exists() => &["am", "--quit"],
            Operation::Rebase => &["rebase", "--quit"],
            Operation::CherryPick => &["cherry-pick", "--quit"],
            Operation::Revert => &["revert", "--quit"],
            Operation::Bisect => &["bisect", "reset", "HEAD"],
        };
        self.git().output(words, &[]).map(drop)
    }

    /// Why initialized submodules prevent moving to another commit: their content does not follow, and it may exist
    /// nowhere else.
    pub(crate) fn moving_repositories(&self, look: &Look, at: &Oid) -> Result<Vec<String>, GitError> {
        let Some(head) = look.status.head.as_ref().filter(|head| *head != at) else { return Ok(Vec::new()) };
        if !self.git_dir().join("modules").exists() || !self.holds_repositories()? {
            return Ok(Vec::new());
        }
        let words = ["diff-tree", "-r", "--raw", "-z", "--no-renames", head.as_str(), at.as_str()];
        let printed = self.git().output(words, &[])?;
        let mut fields = printed.split(|byte| *byte == 0);
        let mut reasons = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            if head.windows(7).any(|mode| mode == b"160000 ") {
                reasons
                    .push(format!("{}: a submodule that would have to move", String::from_utf8_lossy(path)));
            }
        }
        Ok(reasons)
    }
}

pub(crate) struct Look {
    pub(crate) status: Status,
    operation: Option<Operation>,
    /// Whether the head is on a branch, or no longer needed.
    is_kept: bool,
}

impl Look {
    fn is_clean(&self) -> bool {
        !self.status.entries.iter().any(is_work) && self.operation.is_none() && self.is_kept
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let changed = self.status.entries.iter().filter(|entry| is_work(entry)).count();
        let files = match changed {
            0 => None,
            1 => Some("1 file is not committed".to_owned()),
            many => Some(format!("{many} files are not committed")),
        };
        let operation = self.operation.map(|operation| format!("a {operation} was in progress"));
        let head = self.status.head.as_ref().filter(|_| !self.is_kept);
        let head = head.map(|head| format!("its head {} was on no branch", head.short()));
        files.into_iter().chain(operation).chain(head).collect()
    }

    /// A branch for it, and a description of its origin.
    fn names(&self) -> (String, String) {
        match (&self.status.branch, &self.status.head) {
            (Some(branch), _) => {
                let own = branch.strip_prefix("refrain/").unwrap_or(branch);
                (format!("wip/slot-{}", own.replace('/', "-")), branch.clone())
            }
            (None, Some(head)) => (format!("wip/slot-{}", head.short()), head.to_string()),
            (None, None) => ("wip/slot".to_owned(), "an unborn branch".to_owned()),
        }
    }
}
