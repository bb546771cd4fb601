//! Finds the FIFO or device on which git blocks: an agent can put one in the place of a file that git opens. It is looked for
//! only when a git takes long, as that reads all folders.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use camino::Utf8Path;

/// The files of a worktree that git opens, in each of its folders.
const OPENED: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// How many files and folders are looked at.
const MOST: usize = 2_000_000;

/// A file in `worktree` or in the git folders on which git would block.
pub(crate) fn find(worktree: &Utf8Path, git_folders: &[&Utf8Path]) -> Option<PathBuf> {
    let git_folders = git_folders.iter().map(|folder| (folder.as_std_path().to_owned(), true));
    let mut folders: Vec<(PathBuf, bool)> = git_folders.collect();
    folders.insert(0, (worktree.as_std_path().to_owned(), false));
    let mut seen = 0;
    while let Some((folder, is_of_git)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            if seen > MOST {
                return None;
            }
            let is_opened = is_of_git || OPENED.iter().any(|opened| name == *opened);
            if kind.is_dir() {
                // Refrain has FIFOs of its own.
                if !is_of_git || name != "refrain" {
                    folders.push((entry.path(), is_of_git || name == OsStr::new(".git")));
                }
            } else if is_opened && !kind.is_file() && blocks(&entry.path()) {
                return Some(entry.path());
            }
        }
    }
    None
}

/// Whether opening it may wait for ever; a link counts as its target.
fn blocks(path: &Path) -> bool {
    let kind = fs::metadata(path).map(|meta| meta.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_block_device())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_that_git_opens_is_found_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let git = root.join(".git");
        for (path, is_found) in [
            (".gitignore", true),
            ("deep/er/.gitattributes", true),
            ("nested/.git/HEAD", true),
            (".git/objects/info/x", true),
            ("control.fifo", false),
            (".git/refrain/bell", false),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let folder = refrain_files::Folder::open(&path.parent().unwrap().canonicalize_utf8().unwrap());
            assert!(folder.unwrap().make_fifo(path.file_name().unwrap()).unwrap());
            assert_eq!(find(root, &[&git]).is_some(), is_found, "{path}");
            fs::remove_file(&path).unwrap();
        }
    }
}
