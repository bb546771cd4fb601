//! Symbolic links of a tree to what no checkout of it has, and commits of submodules that it names.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{LocalCommit, OutsideLink, leads_out};

use crate::candidate::SUBMODULE;
use crate::candidate::protect::{Difference, content, diff_trees, differences, empty_tree, really};
use crate::error::GitError;
use crate::plumbing::git::Git;
use crate::repository::{Repository, is_refrains};

/// The mode of an entry that is not there.
const NOTHING: &str = "000000";

/// How many links are checked. A tree with more new ones is refused because of the first of them that points outside.
const MOST: usize = 1000;

/// The entries of a tree that are not in another.
#[derive(Debug)]
pub struct NewEntries {
    pub(crate) tree: Oid,
    /// With those that are no longer there.
    printed: Vec<u8>,
}

impl NewEntries {
    pub(crate) fn all(&self) -> Result<Vec<Difference<'_>>, GitError> {
        let mut all = differences(&self.printed)?;
        all.retain(|difference| difference.now.0 != NOTHING);
        Ok(all)
    }

    /// Whether git converts files in another way than in the other tree, maybe.
    pub(crate) fn has_attributes(&self) -> Result<bool, GitError> {
        let is_attributes = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
        Ok(differences(&self.printed)?.iter().any(|difference| is_attributes(difference.path)))
    }
}

impl Repository {
    /// The entries of `tree` that are new or changed since the commit or tree `base`, or since nothing.
    pub fn new_entries(&self, base: Option<&Oid>, tree: &Oid) -> Result<NewEntries, GitError> {
        let base = base.map_or_else(|| empty_tree(self.git()), |base| Ok(base.to_string()))?;
        let printed = diff_trees(self.git(), (&base, tree.as_str()), &[])?;
        Ok(NewEntries { tree: tree.clone(), printed })
    }

    /// The links among these that point outside the worktree, or to what is neither in the tree nor ignored. Earlier links are
    /// the user's own.
    pub fn outside_links(&self, entries: &NewEntries) -> Result<Vec<OutsideLink>, GitError> {
        let git = self.git();
        let mut links = entries.all()?;
        links.retain(|difference| difference.now.0 == "120000");
        if links.len() > MOST {
            return Err(GitError::TooManyLinks { most: MOST });
        }
        if links.is_empty() {
            return Ok(Vec::new());
        }
        let asked = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", entries.tree.as_str()];
        let listed = git.output(really(&asked), &[])?;
        let top = fs::canonicalize(self.root()).ok();
        let mut outside = Vec::new();
        for Difference { path, now: (_, object), .. } in links {
            let target = content(git, object)?;
            // It may point outside through another link.
            let real = top.as_ref().zip(fs::canonicalize(self.on_disk(path)).ok());
            let inside = real.as_ref().map(|(top, real)| real.strip_prefix(top).ok());
            let (is_outside, inside) = match inside {
                _ if leads_out(path, &target) => (true, false),
                Some(None) => (true, false),
                Some(Some(inside)) => (false, is_in_no_commit(git, &listed, inside)?),
                None => (false, false),
            };
            if is_outside || inside {
                let target = String::from_utf8_lossy(&target).into_owned();
                outside.push(OutsideLink { path: RepoPath::from_bytes(path), target, inside });
            }
        }
        Ok(outside)
    }

    /// The commits of submodules among these that no remote of them has, as far as the submodule here knows: a clone could
    /// not get them. Of a submodule that is not filled here, nothing is known; `with_unknown` says whether it counts.
    pub fn local_commits(
        &self,
        entries: &NewEntries,
        with_unknown: bool,
    ) -> Result<Vec<LocalCommit>, GitError> {
        let mut local = Vec::new();
        for Difference { path, now: (mode, object), .. } in entries.all()? {
            if mode != SUBMODULE {
                continue;
            }
            let answer = || GitError::Answer { command: "diff-tree", answer: object.to_owned() };
            let commit: Oid = object.parse().map_err(|_| answer())?;
            if !self.has_remote_commit(path, &commit)?.unwrap_or(!with_unknown) {
                local.push(LocalCommit { path: RepoPath::from_bytes(path), commit });
            }
        }
        Ok(local)
    }

    /// Whether the submodule at a path got the commit from a remote; none if there is no file of it here.
    fn has_remote_commit(&self, path: &[u8], commit: &Oid) -> Result<Option<bool>, GitError> {
        let Ok(path) = str::from_utf8(path) else { return Ok(Some(false)) };
        let inside = self.root().join(path);
        if inside.join(".git").symlink_metadata().is_err() {
            let has_files = fs::read_dir(&inside).is_ok_and(|mut files| files.next().is_some());
            return Ok(has_files.then_some(false));
        }
        let submodule = match Self::open(&inside, self.env()) {
            Ok(submodule) => submodule.guarded_like(self),
            Err(GitError::Cancelled) => return Err(GitError::Cancelled),
            Err(_) => return Ok(Some(false)),
        };
        let pins = self.pins().cloned().unwrap_or_default();
        let submodule = submodule.with_pins(Some(&pins));
        let asked = [
            "for-each-ref",
            "--count=1",
            "--format=x",
            "--contains",
            commit.as_str(),
            "refs/remotes",
            "refs/tags",
        ];
        let done = submodule.git().run(asked, &[])?;
        Ok(Some(done.status.success() && !done.stdout.is_empty()))
    }
}

/// Whether a path of the worktree is neither in the tree, whose paths are `listed`, nor ignored by a rule of the user or the
/// work: Refrain omits its own folder, and those of installed packages, by their names.
fn is_in_no_commit(git: Git<'_>, listed: &[u8], path: &Path) -> Result<bool, GitError> {
    let path = path.as_os_str().as_bytes();
    let is_below = |path: &[u8], above: &[u8]| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    // In a folder, the folder of a file, or in a submodule.
    let is_it = |name: &[u8]| !name.is_empty() && (is_below(name, path) || is_below(path, name));
    if path.is_empty() || listed.split(|byte| *byte == 0).any(is_it) {
        return Ok(false);
    }
    if is_refrains(path) {
        return Ok(true);
    }
    let ignored = git.run(["check-ignore", "-q", "-z", "--stdin"], &[path, b"\0"].concat())?;
    Ok(!ignored.status.success())
}
