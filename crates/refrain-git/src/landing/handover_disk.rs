//! The state of the paths that a hand-over changes: on disk, by their content, and in the user's index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use refrain_core::git::Oid;

use crate::candidate::stage::{self, Change, File};
use crate::candidate::{SUBMODULE, integrity};
use crate::error::GitError;
use crate::landing::handover::{HandOverRequest, Job};
use crate::plumbing::disk::remove;
use crate::plumbing::git::{Git, oid};
use crate::plumbing::index::unlock_private;

pub(crate) struct Step {
    pub(crate) path: Vec<u8>,
    pub(crate) from: File,
    pub(crate) to: File,
}

impl Step {
    pub(crate) fn is_submodule(&self) -> bool {
        [&self.from, &self.to].into_iter().flatten().any(|(mode, _)| mode == SUBMODULE)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) ahead: BTreeSet<Vec<u8>>,
    /// Files left by a runner that was killed while writing them.
    pub(crate) cut_off: Vec<PathBuf>,
    /// Neither version, so it is the user's.
    pub(crate) in_the_way: BTreeSet<Vec<u8>>,
}

impl Job<'_> {
    pub(crate) fn steps(&self) -> Result<Vec<Step>, GitError> {
        let HandOverRequest { expected, to, .. } = self.request;
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", expected.as_str(), to.as_str()];
        let printed = self.git.output(words, &[])?;
        let mut fields = printed.split(|byte| *byte == 0);
        let mut steps = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head);
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            let side = |mode: usize, object: usize| -> Result<Option<(String, Oid)>, GitError> {
                let (mode, object) = (words.get(mode), words.get(object));
                let mode = mode.filter(|mode| **mode != "000000");
                mode.zip(object)
                    .map(|(mode, object)| Ok(((*mode).to_owned(), oid("diff-tree", object)?)))
                    .transpose()
            };
            steps.push(Step { path: path.to_vec(), from: side(0, 2)?, to: side(1, 3)? });
        }
        Ok(steps)
    }

    /// Reads the state of the paths to change, on disk and in the index. Their content counts, not the cached file
    /// attributes in the index.
    pub(crate) fn look(&self, steps: &[Step], staged: &BTreeMap<Vec<u8>, File>) -> Result<Disk, GitError> {
        let as_new = self.differing(".new", steps.iter().map(|step| (&step.path, &step.to)))?;
        let as_old = self.differing(".old", steps.iter().map(|step| (&step.path, &step.from)))?;
        let sparse = self.sparse()?;
        let gone: BTreeSet<&[u8]> =
            steps.iter().filter(|step| step.to.is_none()).map(|step| step.path.as_slice()).collect();
        let mut disk = Disk::default();
        for step in steps {
            let path = &step.path;
            let staged = staged.get(path);
            // The index entry equals that of the last commit, or of the next.
            let fits = staged.is_none_or(|staged| *staged == step.to);
            if step.is_submodule() || sparse.contains(path) {
                if !fits {
                    disk.in_the_way.insert(path.clone());
                }
                continue;
            }
            let there = fs::symlink_metadata(self.repository.on_disk(path)).ok();
            let is = |side: &Option<_>, differing: &BTreeSet<Vec<u8>>| match side {
                Some(_) => !differing.contains(path),
                None => there.is_none(),
            };
            let is_new = is(&step.to, &as_new);
            let is_old = is(&step.from, &as_old) && staged.is_none();
            if is_new && fits {
                disk.ahead.insert(path.clone());
            } else if fits && !is_old && self.is_cut_off(step, there.as_ref())? {
                disk.cut_off.push(self.repository.on_disk(path));
            } else if step.from.is_none() {
                disk.in_the_way.extend(self.in_the_place_of(path, &gone));
            } else if !is_old {
                disk.in_the_way.insert(path.clone());
            }
        }
        Ok(disk)
    }

    /// The paths among these that differ on disk from the given versions.
    fn differing<'p>(
        &self,
        name: &str,
        files: impl Iterator<Item = (&'p Vec<u8>, &'p File)>,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let is_there = |path: &[u8]| self.repository.on_disk(path).symlink_metadata().is_ok();
        let (there, missing): (Vec<_>, Vec<_>) =
            files.filter(|(_, file)| file.is_some()).partition(|(path, _)| is_there(path));
        let mut differing: BTreeSet<_> = missing.into_iter().map(|(path, _)| path.clone()).collect();
        if there.is_empty() {
            return Ok(differing);
        }
        let index = Utf8PathBuf::from(format!("{}{name}", self.request.index));
        unlock_private(&index)?;
        remove(&index)?;
        let lines = there.into_iter().filter_map(|(path, file)| {
            let (mode, object) = file.as_ref()?;
            Some(stage::info(mode, object, path))
        });
        differing.extend(integrity::differing(self.git, &index, &lines.flatten().collect::<Vec<_>>())?);
        remove(&index)?;
        Ok(differing)
    }

    /// Puts files into an index; files without a mode are removed.
    pub(crate) fn put<'p>(
        &self,
        git: Git<'_>,
        files: impl Iterator<Item = (&'p Vec<u8>, &'p File)>,
    ) -> Result<(), GitError> {
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for (path, file) in files {
            match file {
                Some((mode, object)) => there.extend(stage::info(mode, object, path)),
                None => gone.extend(stage::info("0", self.request.to, path)),
            }
        }
        // Deleted files first: a file may have become a folder.
        gone.extend(there);
        if gone.is_empty() { Ok(()) } else { stage::put(git, &gone) }
    }

    /// The user's staged changes: paths whose index entry differs from the last commit, and the entry. None during an
    /// unresolved conflict.
    pub(crate) fn staged(&self) -> Result<Option<BTreeMap<Vec<u8>, File>>, GitError> {
        let words = ["diff-index", "--cached", "-z", "--raw", "--no-renames", self.request.expected.as_str()];
        let printed = self.git.output(words, &[])?;
        let mut records = printed.split(|byte| *byte == 0).step_by(2);
        if records.any(|record| record.ends_with(b" U")) {
            return Ok(None);
        }
        let changes = Change::all(&printed).into_iter();
        Ok(Some(changes.map(|change| (change.path.to_vec(), change.file())).collect()))
    }

    /// The paths that the user's sparse checkout omits.
    pub(crate) fn sparse(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        if !self.repository.git_dir().join("info/sparse-checkout").exists() {
            return Ok(BTreeSet::new());
        }
        let printed = self.git.output(["ls-files", "-t", "-z"], &[])?;
        let records = printed.split(|byte| *byte == 0);
        Ok(records.filter_map(|record| record.strip_prefix(b"S ")).map(<[u8]>::to_vec).collect())
    }

    /// Files of the user in the place of a new path: a file, those in a folder of that name, or a file in place of a
    /// folder above it. Files removed by the same step do not count.
    fn in_the_place_of(&self, path: &[u8], gone: &BTreeSet<&[u8]>) -> Vec<Vec<u8>> {
        let root = self.repository.root().as_std_path();
        let relative = |path: &Path| {
            path.strip_prefix(root).map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default()
        };
        let own = self.repository.on_disk(path);
        let above = own.ancestors().skip(1).take_while(|above| *above != root);
        let is_file = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir());
        let blocking = above.filter(is_file).map(relative).find(|path| !gone.contains(path.as_slice()));
        let mut found: Vec<Vec<u8>> = blocking.into_iter().collect();
        files_below(&own, &mut |file| {
            let path = relative(file);
            if !gone.contains(path.as_slice()) {
                found.push(path);
            }
        });
        found
    }

    /// Whether this is left from this very hand-over after a kill: the file is gone, or it is a truncated prefix of
    /// the new one.
    fn is_cut_off(&self, step: &Step, there: Option<&Metadata>) -> Result<bool, GitError> {
        if !self.note.is_there() {
            return Ok(false);
        }
        let Some(there) = there else { return Ok(step.from.is_some()) };
        let Some((_, object)) = step.to.as_ref().filter(|_| there.is_file()) else { return Ok(false) };
        let whole = self.git.output(["cat-file", "blob", object.as_str()], &[])?;
        Ok(fs::read(self.repository.on_disk(&step.path)).is_ok_and(|begin| whole.starts_with(&begin)))
    }
}

/// Visits every file at or below a path, links too.
fn files_below(path: &Path, name: &mut impl FnMut(&Path)) {
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(_) => name(&path),
            Err(_) => {}
        }
    }
}
