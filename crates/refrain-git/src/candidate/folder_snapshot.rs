//! A snapshot of a clean checkout, for removing everything that was written or changed since.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use camino::Utf8Path;

use crate::error::{GitError, OnPath};

/// The maximum number of files and folders of a checkout whose caches are kept.
const MOST: usize = 2_000_000;

/// The length of a mark, in bytes.
const LENGTH: usize = 16;

/// A hash of a path and its file attributes. They include the change time of the inode, which only the system sets:
/// no file that was written since has the same hash.
type Mark = [u8; LENGTH];

/// The files and folders of a checkout at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderSnapshot(HashSet<Mark>);

impl FolderSnapshot {
    /// All that is in `folder` now, except git's own folder.
    pub fn list(folder: &Utf8Path) -> Result<Self, GitError> {
        let mut marks = HashSet::new();
        walk(folder, |entry| {
            marks.insert(entry.mark);
        })?;
        Ok(Self(marks))
    }

    /// Removes everything in `folder` that is not in the list or has changed.
    pub fn remove_others(&self, folder: &Utf8Path) -> Result<(), GitError> {
        let mut folders = Vec::new();
        let mut files = Vec::new();
        walk(folder, |entry| {
            if !self.0.contains(&entry.mark) {
                if entry.is_folder { folders.push(entry.path) } else { files.push(entry.path) }
            }
        })?;
        for file in files {
            fs::remove_file(&file).on("remove", folder)?;
        }
        // Folders inside others come after them. One that is not empty stays.
        for other in folders.into_iter().rev() {
            let _ = fs::remove_dir(other);
        }
        Ok(())
    }

    /// Whether the file at `path` is in the list and unchanged. `top` is the folder that was listed.
    pub(crate) fn has(&self, top: &Utf8Path, path: &Path) -> bool {
        let inside = path.strip_prefix(top.as_std_path()).unwrap_or(path);
        fs::symlink_metadata(path).is_ok_and(|meta| self.0.contains(&mark(inside, &meta)))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flatten().copied().collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.chunks_exact(LENGTH).filter_map(|mark| mark.try_into().ok()).collect())
    }
}

struct Entry {
    path: PathBuf,
    is_folder: bool,
    mark: Mark,
}

/// Visits everything in a folder, each folder before its content. No link is followed.
fn walk(folder: &Utf8Path, mut show: impl FnMut(Entry)) -> Result<(), GitError> {
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    let top = folder.as_std_path();
    let (mut folders, mut seen) = (vec![top.to_owned()], 0);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).on("read", folder)? {
            let path = entry.on("read", folder)?.path();
            if path.parent() == Some(top) && path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            seen += 1;
            if seen > MOST {
                return Err(GitError::TooLarge { most: MOST });
            }
            let meta = fs::symlink_metadata(&path).on("look at", folder)?;
            let mark = mark(path.strip_prefix(top).unwrap_or(&path), &meta);
            let is_folder = meta.is_dir();
            if is_folder {
                folders.push(path.clone());
            }
            show(Entry { path, is_folder, mark });
        }
    }
    Ok(())
}

fn mark(path: &Path, meta: &fs::Metadata) -> Mark {
    let mut hash = blake3::Hasher::new();
    hash.update(path.as_os_str().as_bytes()).update(&[0, u8::from(meta.is_dir())]);
    if !meta.is_dir() {
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        for part in
            [meta.ino(), meta.len(), u64::from(meta.mode())].into_iter().chain(times.map(i64::cast_unsigned))
        {
            hash.update(&part.to_le_bytes());
        }
    }
    let mut mark = [0; LENGTH];
    mark.copy_from_slice(&hash.finalize().as_bytes()[..LENGTH]);
    mark
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_unchanged_files_of_a_snapshot_stay() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let (top, other) = (dir.join("top"), dir.join("other"));
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        write("other/file", "kept");
        for name in ["top/target/a", "top/target/b", "top/c", "top/.git/HEAD"] {
            write(name, "one");
        }
        let kept = FolderSnapshot::list(&top).unwrap();
        let kept = FolderSnapshot::from_bytes(&kept.to_bytes());
        kept.remove_others(&top).unwrap();
        assert_eq!(FolderSnapshot::list(&top).unwrap(), kept, "nothing changed");

        let before = fs::metadata(top.join("target/b")).unwrap();
        write("top/target/b", "two");
        let file = File::options().write(true).open(top.join("target/b")).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(before.modified().unwrap())).unwrap();
        write("top/target/sub/new", "one");
        write("top/.env", "exit 0");
        write("top/.git/config", "git's own");
        symlink(&other, top.join("link")).unwrap();
        fs::remove_file(top.join("c")).unwrap();
        symlink(other.join("file"), top.join("c")).unwrap();
        kept.remove_others(&top).unwrap();
        let names = |path: &str| {
            let mut names: Vec<_> =
                fs::read_dir(dir.join(path)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(
            (names("top"), names("top/target")),
            (vec![".git".into(), "target".into()], vec!["a".into()])
        );
        assert_eq!(names("top/.git"), ["HEAD", "config"]);
        assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "kept");

        FolderSnapshot::default().remove_others(&top).unwrap();
        assert_eq!(names("top"), [".git"]);
    }
}
