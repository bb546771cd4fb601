//! A loop's changes as text for a reviewer: the differences between two trees.

use std::ffi::OsStr;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::review::Changes;
use refrain_core::text::{cut_middle, printable};

use crate::error::GitError;
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::git::Git;
use crate::repository::Repository;

/// How much of the differences is kept, in bytes: more than a reviewer is ever sent.
const LONGEST: usize = 256 << 10;
/// The empty tree, which git knows without storing it.
const NO_FILES: &[u8] = b"";

impl Repository {
    /// The first `most` paths in which two trees differ.
    pub fn differing_paths(&self, from: &Oid, to: &Oid, most: usize) -> Result<Vec<RepoPath>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from.as_str(), to.as_str()];
        let printed = self.git().output(asked, &[])?;
        let paths = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.take(most).map(RepoPath::from_bytes).collect())
    }

    /// The differences of `tree` from the commit `base`, or from nothing. Binary files are only named. The project's
    /// own attributes are ignored: they could hide a file.
    /// Errors: [`GitError`] if git cannot be run, [`GitError::Cancelled`], or if the differences are far too large.
    pub fn changes(&self, base: Option<&Oid>, tree: &Oid) -> Result<Changes, GitError> {
        let git = self.git();
        let nothing = git.text(["hash-object", "-t", "tree", "--stdin"], NO_FILES)?;
        let attributes = AttributesFolder::empty()?;
        let git = attributes.apply(git, self.git_dir());
        let from = base.map_or_else(|| nothing.clone(), ToString::to_string);
        let stat = told(git, &["--stat=120"], [&from, tree.as_str()])?;
        let diff = told(git, &["--patch"], [&from, tree.as_str()])?;
        Ok(Changes { stat, diff, partial: false })
    }
}

impl Repository {
    /// The head at a time, in seconds since the epoch, as far back as its log goes; none on a branch without a
    /// commit.
    pub fn head_at(&self, time: i64) -> Result<Option<Oid>, GitError> {
        let ask = |what: &str| {
            let done = self.git().run(["rev-parse", "--verify", "--quiet", what], &[])?;
            Ok(done
                .status
                .success()
                .then(|| String::from_utf8_lossy(&done.stdout).trim().parse().ok())
                .flatten())
        };
        match ask(&format!("HEAD@{{@{time} +0000}}"))? {
            Some(head) => Ok(Some(head)),
            None => ask("HEAD^{commit}"),
        }
    }
}

/// Git's output for the differences between two trees, without any settings of the user or the project.
fn told(git: Git<'_>, how: &[&str], between: [&str; 2]) -> Result<String, GitError> {
    let fixed = ["diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
    let args = fixed.iter().chain(how).chain(&between).map(OsStr::new);
    let said = git.output(args, &[])?;
    let said = String::from_utf8_lossy(&said);
    Ok(cut_middle(&printable(&said), LONGEST).into_owned())
}
