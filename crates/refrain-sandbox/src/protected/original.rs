//! One protected place as it was: a file or a symbolic link, which without namespaces the program can change.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::system::is_open_for_writing;
use crate::system::paths::{self, is_denied, kind};

/// The largest file whose content is in the record.
const LARGEST: u64 = 1 << 20;
/// How much of a file is compared at a time.
const PART: usize = 64 << 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Original {
    /// With its content and its mode.
    File(Vec<u8>, u32),
    /// A larger one, with a file that has its content, and its mode.
    Copy {
        copy: Utf8PathBuf,
        mode: u32,
    },
    Link {
        target: Vec<u8>,
    },
}

impl Original {
    /// What is at a path, if it is a file or a link.
    pub(super) fn read(path: &Utf8Path) -> Option<Self> {
        match kind(path)? {
            FileType::RegularFile => {
                let (file, metadata) = open(path)?;
                let mode = metadata.permissions().mode();
                if metadata.len() > LARGEST {
                    return Some(Self::Copy { copy: path.to_owned(), mode });
                }
                let mut bytes = Vec::new();
                file.take(LARGEST).read_to_end(&mut bytes).ok()?;
                Some(Self::File(bytes, mode))
            }
            FileType::Symlink => Some(Self::Link { target: target(path.as_std_path()) }),
            _ => None,
        }
    }

    /// Whether the path has that still, and nothing leads there that writes it later: no new hard link, and no file that was
    /// opened for writing, which another program may have been given.
    pub(super) fn at(&self, path: &Utf8Path, was_hard_linked: bool) -> FileState {
        if !was_hard_linked && is_hard_linked(path) {
            return FileState::Changed;
        }
        let still = |content: &mut dyn Read| {
            let mut file = open(path)?.0;
            Some(match (same(&mut file, content).ok()?, is_open_for_writing(&file)) {
                (false, _) | (_, Ok(true)) => FileState::Changed,
                (true, Ok(false)) => FileState::Kept,
                // Another user's file that this one, and so the program, cannot write.
                (true, Err(error)) if is_denied(&error) && !is_writable(path) => FileState::Kept,
                (true, Err(_)) => FileState::Unsure,
            })
        };
        let found = || match self {
            Self::File(bytes, _) => still(&mut bytes.as_slice()),
            Self::Copy { copy, .. } => still(&mut open(copy)?.0),
            Self::Link { target: then } => (target(path.as_std_path()) == *then).then_some(FileState::Kept),
        };
        found().unwrap_or(FileState::Changed)
    }

    /// Puts the same in a new file: what has the old one open writes elsewhere from then on. Of a file of another user only that
    /// user and root learn who has it open, so others share it by its group still.
    pub(super) fn renew(&self, path: &Utf8Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default();
        let new = path.with_file_name(format!("{name}.refrain-new-{}", std::process::id()));
        // What a killed process left, or the program put there.
        let _ = paths::remove(&new, AtFlags::empty());
        let old = path.symlink_metadata().ok();
        self.write(&new, old.as_ref()).and_then(|()| paths::replace(path, &new)).inspect_err(|_| {
            let _ = paths::remove(&new, AtFlags::empty());
        })
    }

    /// Renames what is there, and puts this in its place.
    pub(super) fn put_back(&self, path: &Utf8Path) -> io::Result<()> {
        match (kind(path), path.parent()) {
            // The name of a link is worth nothing, and it would lead there still.
            (Some(FileType::Symlink), _) => paths::remove(path, AtFlags::empty())?,
            (Some(_), _) => drop(put_aside(path)?),
            (None, Some(folder)) => {
                paths::make_folder(folder)?;
                paths::open_to_owner(&paths::open(folder)?)?;
            }
            (None, None) => {}
        }
        self.write(path, None)
    }

    /// Writes it into a new file, with the owner and the group of another as far as this process may give them.
    fn write(&self, path: &Utf8Path, like: Option<&fs::Metadata>) -> io::Result<()> {
        let (mut content, mode): (Box<dyn Read>, _) = match self {
            Self::File(bytes, mode) => (Box::new(bytes.as_slice()), mode),
            Self::Copy { copy, mode } => (Box::new(File::open(copy)?), mode),
            Self::Link { target } => return paths::link(OsStr::from_bytes(target), path),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = paths::open_file(path, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some(like) = like {
            let _ = fchown(&file, None, Some(like.gid()));
            let _ = fchown(&file, Some(like.uid()), None);
        }
        file.set_permissions(Permissions::from_mode(*mode))?;
        io::copy(&mut content, &mut file)?;
        file.sync_all()
    }
}

/// What is at a protected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    Kept,
    /// The same content, and whether something has it open for writing is not known.
    Unsure,
    Changed,
}

fn is_writable(path: &Utf8Path) -> bool {
    paths::open_file(path, OFlags::WRONLY, Mode::empty()).is_ok()
}

pub(super) fn is_hard_linked(path: &Utf8Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 1)
}

/// A regular file.
pub(super) fn open(path: &Utf8Path) -> Option<(File, fs::Metadata)> {
    let file = paths::open_file(path, OFlags::RDONLY, Mode::empty()).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    Some((file, metadata))
}

/// Where a link leads; nowhere if it is none.
pub(super) fn target(path: &Path) -> Vec<u8> {
    fs::read_link(path).map(|target| target.into_os_string().as_bytes().to_vec()).unwrap_or_default()
}

fn same(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::with_capacity(PART), Vec::with_capacity(PART));
    loop {
        left.clear();
        right.clear();
        Read::take(&mut *one, PART as u64).read_to_end(&mut left)?;
        Read::take(&mut *other, PART as u64).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

/// However many names the program took, one is free.
pub(super) fn put_aside(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let name = path.file_name().unwrap_or_default();
    paths::rename(path, (1_u64..).map(|number| format!("{name}.refrain-refused-{number}")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// On a file system without leases.
    #[test]
    fn a_file_that_something_may_have_open_is_replaced_by_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path =
            Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap().join("settings.json");
        File::create(&path).unwrap().write_all(b"mine").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let original = Original::read(&path).unwrap();
        let mut opened = File::options().append(true).open(&path).unwrap();
        original.renew(&path).unwrap();
        opened.write_all(b"evil").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
        assert_eq!(original.at(&path, false), FileState::Kept);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_renewed_file_keeps_its_owner_and_group() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap().join("config");
        let file = File::create(&path).unwrap();
        // Only root may.
        let _ = fchown(&file, Some(4711), Some(4712));
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        let owner = || path.metadata().map(|it| (it.uid(), it.gid(), it.mode())).unwrap();
        let (before, inode) = (owner(), file.metadata().unwrap().ino());
        Original::read(&path).unwrap().renew(&path).unwrap();
        assert_eq!(owner(), before);
        assert_ne!(path.metadata().unwrap().ino(), inode);
    }

    #[test]
    fn without_leases_it_is_not_known_who_writes() {
        assert!(is_open_for_writing(&File::open("/dev/null").unwrap()).is_err());
    }
}
