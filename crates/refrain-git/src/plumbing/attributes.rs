//! The attributes of a tree as files in a folder of their own. `GIT_ATTR_SOURCE` names a tree only since git 2.41; an
//! older git ignores it and reads the files of the worktree, which an agent can change at any time.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::candidate::next_object;
use crate::candidate::stage::{Change, empty_tree};
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::ScratchFolder;
use crate::plumbing::git::Git;

/// A folder in which git finds no files but those that set attributes; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct AttributesFolder {
    folder: ScratchFolder,
    /// An index that does not exist: git finds no attributes there either.
    index: Utf8PathBuf,
}

impl AttributesFolder {
    pub(crate) fn empty() -> Result<Self, GitError> {
        let folder = ScratchFolder::new()?;
        Ok(Self { index: folder.path().join(".index"), folder })
    }

    pub(crate) fn of(git: Git<'_>, commit: &Oid) -> Result<Self, GitError> {
        let attributes = Self::empty()?;
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", empty_tree(commit), commit.as_str()];
        let printed = git.output(words.into_iter().chain(["--", ":(glob)**/.gitattributes"]), &[])?;
        let changes = Change::all(&printed);
        // Git follows no link in such a place.
        let files = changes.iter().filter_map(|change| Some((change.path, change.file()?)));
        let files: Vec<_> = files.filter(|(_, (mode, _))| mode.starts_with("100")).collect();
        if files.is_empty() {
            return Ok(attributes);
        }
        let asked: String = files.iter().map(|(_, (_, object))| format!("{object}\n")).collect();
        let printed = Git::output(git, ["cat-file", "--buffer", "--batch"], asked.as_bytes())?;
        let mut rest = printed.as_slice();
        for (path, _) in files {
            let content = next_object(&mut rest).unwrap_or_default();
            attributes.write(path, content)?;
        }
        Ok(attributes)
    }

    fn write(&self, path: &[u8], content: &[u8]) -> Result<(), GitError> {
        let path = Path::new(OsStr::from_bytes(path));
        // A tree that git did not write may have `..` in it.
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        let Some(path) = Utf8Path::from_path(path).filter(|_| is_inside) else { return Ok(()) };
        let path = self.folder.path().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).on("create", folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).on("create", &path)?;
        file.write_all(content).on("write", &path)
    }

    pub(crate) fn apply<'a>(&'a self, git: Git<'a>, git_dir: &'a Utf8Path) -> Git<'a> {
        git.for_files_in(self.folder.path(), git_dir).with_index(&self.index)
    }
}
