//! A loop's changes as text for a reviewer: the differences between two trees.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::review::Changes;
use refrain_core::text::{cut_middle, printable};

use crate::candidate::next_object;
use crate::candidate::stage::empty_tree;
use crate::error::GitError;
use crate::plumbing::attributes::AttributesFolder;
use crate::plumbing::git::Git;
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::repository::Repository;

/// How much of the differences is kept, in bytes: more than a reviewer is ever sent.
const LONGEST: usize = 256 << 10;

/// How many binary files are looked into, and the longest, in bytes.
const MOST_BINARY: usize = 100;
const LONGEST_TEXT: u64 = 256 << 10;

impl Repository {
    /// The first `most` paths in which two trees differ.
    pub fn differing_paths(&self, from: &Oid, to: &Oid, most: usize) -> Result<Vec<RepoPath>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from.as_str(), to.as_str()];
        let printed = self.git().output(asked, &[])?;
        let paths = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.take(most).map(RepoPath::from_bytes).collect())
    }

    /// The differences of `tree` from the commit `base`, or from nothing. Binary files are only named, but for texts with NUL
    /// bytes, which shells run as any other. The project's own attributes are ignored: they could hide a file.
    /// Errors: [`GitError`] if git cannot be run, [`GitError::Cancelled`], or if the differences are far too large.
    pub fn changes(&self, base: Option<&Oid>, tree: &Oid) -> Result<Changes, GitError> {
        let compared = TreeComparison::of(self, base, tree)?;
        let (stat, mut diff) = (compared.ask(&["--stat=120"], &[])?, compared.ask(&["--patch"], &[])?);
        let hidden = compared.hidden_text()?;
        if !hidden.is_empty() {
            diff.extend(compared.ask(&["--patch", "--text", "--no-renames"], &hidden)?);
        }
        let text = |said: &[u8]| cut_middle(&printable(&String::from_utf8_lossy(said)), LONGEST).into_owned();
        Ok(Changes { stat: text(&stat), diff: text(&diff), partial: false })
    }

    /// The same as a patch for `git apply`: whole, byte for byte, with binary files.
    /// Errors: as [`Self::changes`].
    pub fn patch(&self, base: Option<&Oid>, tree: &Oid) -> Result<Vec<u8>, GitError> {
        TreeComparison::of(self, base, tree)?.ask(&["--patch", "--binary", "--full-index"], &[])
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

/// Two trees that are compared without any settings of the user or the project.
struct TreeComparison<'a> {
    repository: &'a Repository,
    between: [&'a str; 2],
    objects: VerifiedObjects,
    attributes: AttributesFolder,
}

impl<'a> TreeComparison<'a> {
    fn of(repository: &'a Repository, base: Option<&'a Oid>, tree: &'a Oid) -> Result<Self, GitError> {
        let between = [base.map_or(empty_tree(tree), Oid::as_str), tree.as_str()];
        let objects = VerifiedObjects::between(repository, repository.git(), between)?;
        Ok(Self { repository, between, objects, attributes: AttributesFolder::empty()? })
    }

    fn git(&self) -> Git<'_> {
        let git = self.objects.apply(self.repository.git()).without_fetching();
        self.attributes.apply(git, self.repository.git_dir())
    }

    /// Git's output for the differences of these paths, or of all.
    fn ask(&self, how: &[&str], paths: &[OsString]) -> Result<Vec<u8>, GitError> {
        const FIXED: [&str; 5] = ["-r", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
        let words = ["--literal-pathspecs", "diff-tree"].iter().chain(&FIXED).chain(how);
        let words = words.chain(&self.between).chain(&["--"]).map(OsStr::new);
        self.git().output(words.chain(paths.iter().map(OsString::as_os_str)), &[])
    }

    /// The paths of new and changed files that git takes for binary, of at most 256 KiB, that were text before, begin as a
    /// script does, or have at most one odd character in three: shells run them, and a reviewer is to see them.
    fn hidden_text(&self) -> Result<Vec<OsString>, GitError> {
        let counts = self.ask(&["--numstat", "-z", "--no-renames", "--diff-filter=d"], &[])?;
        let binary = counts.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"-\t-\t"));
        let [before, now] = self.between.map(str::as_bytes);
        let mut hidden = Vec::new();
        for path in binary.take(MOST_BINARY) {
            let asked: Vec<u8> =
                [now, before].iter().flat_map(|tree| [*tree, b":", path, b"\0"].concat()).collect();
            let sizes = self.git().text(["cat-file", "--batch-check=%(objectsize)", "-z"], &asked)?;
            let is_small = |line: &str| !line.parse().is_ok_and(|size: u64| size > LONGEST_TEXT);
            if !sizes.lines().all(is_small) {
                continue;
            }
            let contents = self.git().output(["cat-file", "--batch", "-z"], &asked)?;
            let mut rest = contents.as_slice();
            let Some(content) = next_object(&mut rest) else { continue };
            let was_text = next_object(&mut rest).is_some_and(|old| !old.contains(&0));
            if was_text || content.starts_with(b"#!") || is_nearly_text(content) {
                hidden.push(OsStr::from_bytes(path).to_owned());
            }
        }
        Ok(hidden)
    }
}

fn is_nearly_text(content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let is_odd = |it: char| it == char::REPLACEMENT_CHARACTER || it.is_control() && !it.is_ascii_whitespace();
    text.chars().filter(|it| is_odd(*it)).count() * 3 <= text.chars().count()
}
