//! Reading and writing files of the repository, with errors that name the path.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Result};
use crate::process::{capture, command};

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).doing(format!("read {}", path.display()))
}

/// Replaces a file, with the folders above it. No promise about crashes: everything here can be made again.
#[expect(clippy::disallowed_methods, reason = "generated and scratch files only, never Refrain's own data")]
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    fs::write(path, text).doing(format!("write {}", path.display()))
}

pub(crate) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).doing(format!("create {}", path.display()))
}

/// An empty folder: previous content is removed.
pub(crate) fn fresh_folder(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).doing(format!("empty {}", path.display()))?;
    }
    make_folder(path)
}

/// The entries of a folder, sorted by name; none if the folder does not exist.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).doing(format!("list {}", folder.display()))? {
        found.push(entry.doing(format!("list {}", folder.display()))?.path());
    }
    found.sort();
    Ok(found)
}

/// Every file below a folder, sorted.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        // A link is neither followed nor listed: it could lead out of the folder.
        let kind = fs::symlink_metadata(&path).doing(format!("look at {}", path.display()))?;
        if kind.is_dir() {
            found.extend(below(&path)?);
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

/// A path as the reader of a message knows it: relative to the root of the repository.
pub(crate) fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The Rust files of the repository, tracked or new, relative to its root.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<String>> {
    tracked(root, "*.rs")
}

/// The files of the repository that match a pattern of git, tracked or new, relative to its root.
pub(crate) fn tracked(root: &Path, pattern: &str) -> Result<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", pattern];
    let listed = capture(command("git").current_dir(root).args(list))?;
    let names = listed.split('\0').filter(|name| !name.is_empty());
    // A deleted file may still be in the index.
    Ok(names.filter(|name| root.join(name).is_file()).map(str::to_owned).collect())
}
