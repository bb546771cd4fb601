//! One protected place as it was: a file or a symbolic link, which without namespaces the program can change.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::system::is_open_for_writing;
use crate::system::paths::{self, kind};

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
    pub(super) fn is_at(&self, path: &Utf8Path, was_hard_linked: bool) -> bool {
        if !was_hard_linked && is_hard_linked(path) {
            return false;
        }
        let is_still = |content: &mut dyn Read| {
            let mut file = open(path)?.0;
            Some(!is_open_for_writing(&file) && same(&mut file, content).ok()?)
        };
        let is_same = || match self {
            Self::File(bytes, _) => is_still(&mut bytes.as_slice()),
            Self::Copy { copy, .. } => is_still(&mut open(copy)?.0),
            Self::Link { target: then } => Some(target(path.as_std_path()) == *then),
        };
        is_same().unwrap_or_default()
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
        let (mut content, mode): (Box<dyn Read>, _) = match self {
            Self::File(bytes, mode) => (Box::new(bytes.as_slice()), mode),
            Self::Copy { copy, mode } => (Box::new(File::open(copy)?), mode),
            Self::Link { target } => return paths::link(OsStr::from_bytes(target), path),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = paths::open_file(path, flags, Mode::RUSR | Mode::WUSR)?;
        file.set_permissions(Permissions::from_mode(*mode))?;
        io::copy(&mut content, &mut file)?;
        file.sync_all()
    }
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
