//! A loop's changes as text for a reviewer: the differences between two trees.

use refrain_core::git::{Oid, RepoPath};
use refrain_core::review::Changes;
use refrain_core::text::{cut_middle, printable};

use crate::candidate::stage::empty_tree;
use crate::error::GitError;
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

/// How much of the differences is kept, in bytes: more than a reviewer is ever sent.
const LONGEST: usize = 256 << 10;

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
        let [stat, diff] = self.compared(base, tree, [&["--stat=120"], &["--patch"]])?;
        let text = |said: &[u8]| cut_middle(&printable(&String::from_utf8_lossy(said)), LONGEST).into_owned();
        Ok(Changes { stat: text(&stat), diff: text(&diff), partial: false })
    }

    /// The same as a patch for `git apply`: whole, byte for byte, with binary files.
    /// Errors: as [`Self::changes`].
    pub fn patch(&self, base: Option<&Oid>, tree: &Oid) -> Result<Vec<u8>, GitError> {
        let [patch] = self.compared(base, tree, [&["--patch", "--binary", "--full-index"]])?;
        Ok(patch)
    }

    /// Git's outputs for the differences between two trees, without any settings of the user or the project.
    fn compared<const N: usize>(
        &self,
        base: Option<&Oid>,
        tree: &Oid,
        hows: [&[&str]; N],
    ) -> Result<[Vec<u8>; N], GitError> {
        const FIXED: [&str; 6] =
            ["diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
        let between = [base.map_or(empty_tree(tree), Oid::as_str), tree.as_str()];
        let objects = VerifiedObjects::between(self, self.git(), between)?;
        let attributes = AttributesFolder::empty()?;
        let git = attributes.apply(objects.apply(self.git()).without_fetching(), self.git_dir());
        let mut outputs = [const { Vec::new() }; N];
        for (output, how) in outputs.iter_mut().zip(hows) {
            *output = git.output(FIXED.iter().chain(how).chain(&between), &[])?;
        }
        Ok(outputs)
    }

    /// The content of a file that git has, by its name.
    pub fn content(&self, blob: &Oid) -> Result<Vec<u8>, GitError> {
        self.git().output(["cat-file", "blob", blob.as_str()], &[])
    }

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
