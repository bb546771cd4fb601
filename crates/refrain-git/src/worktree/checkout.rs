//! Branches: whether a name is free, creating one in place, and resolving a name.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::error::GitError;
use crate::plumbing::git::said;
use crate::repository::Repository;

impl Repository {
    /// Whether a branch of this name can be created.
    pub fn check_branch_free(&self, name: &str) -> Result<(), GitError> {
        self.check_branch_name(name)?;
        if self.branch_head(name)?.is_some() {
            return Err(GitError::BranchTaken(name.to_owned()));
        }
        let above = Utf8Path::new(name).ancestors().skip(1).filter(|above| !above.as_str().is_empty());
        for above in above {
            let name = name.to_owned();
            if self.branch_head(above.as_str())?.is_some() {
                return Err(GitError::BranchInTheWay { name, by: above.to_string() });
            }
            let folders =
                ["refs/heads", "logs/refs/heads"].map(|folder| self.common_dir().join(folder).join(above));
            let is_file = |path: &Utf8PathBuf| path.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
            if let Some(path) = folders.into_iter().find(is_file) {
                return Err(GitError::FileInTheWay { name, path });
            }
        }
        Ok(())
    }

    /// Creates a branch at the head and checks it out: no file changes, staged changes stay staged. If it is already
    /// checked out nothing is done, so it may be repeated.
    /// Errors: As [`Self::check_branch_free`]; [`GitError::Failed`] with git's message, as in the middle of a merge.
    pub fn create_branch(&self, name: &str) -> Result<(), GitError> {
        self.check_branch_name(name)?;
        let current = self.git().run(["symbolic-ref", "--quiet", "HEAD"], &[])?;
        if String::from_utf8_lossy(&current.stdout).trim_end_matches('\n') == format!("refs/heads/{name}") {
            return Ok(());
        }
        self.check_branch_free(name)?;
        self.git().with_hooks().output(["switch", "--quiet", "--no-guess", "--create", name], &[])?;
        Ok(())
    }

    /// The commit with this name: a branch, a tag, a commit, `HEAD`.
    pub fn resolve(&self, from: &str) -> Result<Oid, GitError> {
        let asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{from}^{{commit}}")];
        let done = self.git().run(asked, &[])?;
        // With --end-of-options it also prints the option itself.
        let answer = String::from_utf8_lossy(&done.stdout);
        let found = answer.lines().last().and_then(|line| line.parse().ok());
        found.filter(|_| done.status.success()).ok_or_else(|| match from {
            "HEAD" => GitError::Unborn(self.root().to_owned()),
            _ => GitError::NoCommit(from.to_owned()),
        })
    }

    /// Whether a commit has this folder: an ignored or new folder is missing in a worktree that starts there.
    pub fn check_folder(&self, commit: &str, folder: &Utf8Path) -> Result<(), GitError> {
        let asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}:{folder}")];
        let done = self.git().run(asked, &[])?;
        let tree = String::from_utf8_lossy(&done.stdout).lines().last().unwrap_or_default().to_owned();
        let is_tree = done.status.success()
            && self.git().text(["cat-file", "-t", &tree], &[]).is_ok_and(|kind| kind == "tree");
        match is_tree {
            true => Ok(()),
            false => Err(GitError::NoFolder { folder: folder.to_owned(), commit: commit.to_owned() }),
        }
    }

    /// Whether a commit, or another name of one, has this file.
    pub fn has_file(&self, commit: &str, file: &Utf8Path) -> Result<bool, GitError> {
        let asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}:{file}")];
        Ok(self.git().run(asked, &[])?.status.success())
    }

    /// The head of a branch; none if it does not exist.
    pub fn branch_head(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let done =
            self.git().run(["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")], &[])?;
        Ok(String::from_utf8_lossy(&done.stdout).trim().parse().ok())
    }

    /// The branches that match these patterns of `git for-each-ref`, relative to `refs/heads`, by name: those with
    /// commits that `known` lacks.
    pub fn branches(&self, patterns: &[&str], known: &Oid) -> Result<Vec<String>, GitError> {
        let words = ["for-each-ref", "--format=%(refname:strip=2)", "--no-merged", known.as_str()];
        let patterns = patterns.iter().map(|pattern| format!("refs/heads/{pattern}"));
        let words = words.map(str::to_owned).into_iter().chain(patterns);
        Ok(self.git().text(words, &[])?.lines().map(str::to_owned).collect())
    }

    pub(crate) fn check_branch_name(&self, name: &str) -> Result<(), GitError> {
        if is_plainly_fine(name) {
            return Ok(());
        }
        let done = self.git().run(["check-ref-format", "--branch", name], &[])?;
        let answer = String::from_utf8_lossy(&done.stdout);
        // `@{-1}` refers to another branch.
        match done.status.success() && answer.trim_end_matches('\n') == name && name != "HEAD" {
            true => Ok(()),
            false if said(&done).contains("not a git repository") => {
                Err(GitError::NotARepository(self.root().to_owned()))
            }
            false => Err(GitError::BadBranch(name.to_owned())),
        }
    }
}

/// Whether a name is one that git takes without a doubt (git-check-ref-format(1)): letters, digits and lines, in two
/// parts or more.
fn is_plainly_fine(name: &str) -> bool {
    let is_fine = |part: &str| {
        !part.starts_with('-')
            && !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.contains('/') && !name.starts_with("refs/") && name.split('/').all(is_fine)
}
