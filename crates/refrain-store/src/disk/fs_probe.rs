//! The file system under Refrain's data: what it can do, tried out, how much room there is, and who may read there. A
//! trial leaves nothing. What only one operating system knows has a file of its own.

#[cfg_attr(target_os = "linux", path = "fs_probe/linux.rs")]
mod system;

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open, statvfs};

use crate::disk::notice::Notice;
use crate::{DiskError, OnPath};

pub use system::network;

/// The folder itself, or the nearest one above it that is there: where it would be made.
pub fn standing(path: &Utf8Path) -> Utf8PathBuf {
    let found = path.ancestors().find(|folder| folder.is_dir());
    found.unwrap_or(Utf8Path::new("/")).to_owned()
}

/// What a loop needs of a file system and this one lacks.
#[derive(Debug, thiserror::Error)]
pub enum MissingFeature {
    #[error("nothing can be written")]
    Writing(#[source] io::Error),
    #[error("it has no locks, so two runners could drive one loop")]
    Locks(#[source] Option<io::Error>),
    #[error("it has no FIFOs, so a runner could not be asked anything")]
    Fifos(#[source] io::Error),
    #[error("changes of files cannot be noticed")]
    Notices(#[source] DiskError),
}

/// Tries out, in a folder of its own, what a loop needs of a file system. Returns all that is lacking.
pub fn try_out(dir: &Utf8Path) -> Vec<MissingFeature> {
    let trial = match tempfile::Builder::new().prefix(".refrain-trial-").tempdir_in(dir) {
        Ok(trial) => trial,
        Err(error) => return vec![MissingFeature::Writing(error)],
    };
    let path = trial.path();
    let mut lacks = Vec::new();
    match locks_hold(&path.join("lock")) {
        Ok(true) => {}
        Ok(false) => lacks.push(MissingFeature::Locks(None)),
        Err(error) => lacks.push(MissingFeature::Locks(Some(error))),
    }
    if let Err(error) = mkfifoat(CWD, path.join("fifo"), Mode::RUSR | Mode::WUSR) {
        lacks.push(MissingFeature::Fifos(error.into()));
    }
    if let Err(error) = Notice::new() {
        lacks.push(MissingFeature::Notices(error));
    }
    lacks
}

/// Whether a second open file is kept out of the lock of the first.
fn locks_hold(path: &std::path::Path) -> io::Result<bool> {
    let first = File::create(path)?;
    first.lock()?;
    match File::open(path)?.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(false),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub bytes: u64,
    /// Files that may still be made; none if the file system does not count them.
    pub files: Option<u64>,
    pub device: u64,
}

pub fn room(dir: &Utf8Path) -> Result<DiskSpace, DiskError> {
    let stat = statvfs(dir.as_std_path()).on("ask for the room of", dir)?;
    let device = fs::metadata(dir).on("look at", dir)?.dev();
    let files = (stat.f_files > 0).then_some(stat.f_favail);
    Ok(DiskSpace { bytes: stat.f_bavail.saturating_mul(stat.f_frsize), files, device })
}

/// The access to a folder that is the user's own affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// It is not there yet.
    Missing,
    Private,
    Open(u32),
    /// It belongs to another user, by number.
    Foreign(u32),
}

pub fn privacy(dir: &Utf8Path) -> Privacy {
    let Ok(meta) = fs::metadata(dir) else { return Privacy::Missing };
    let mode = meta.mode() & 0o7777;
    match meta.uid() {
        owner if owner != rustix::process::geteuid().as_raw() => Privacy::Foreign(owner),
        _ if mode & 0o077 == 0 => Privacy::Private,
        _ => Privacy::Open(mode),
    }
}

/// Lets only its owner look into `dir`.
/// Errors: [`DiskError`] if that cannot be, also if `dir` is a link: an agent could have put it there.
pub fn make_private(dir: &Utf8Path) -> Result<(), DiskError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(dir.as_std_path(), flags, Mode::empty()).on("make private", dir)?;
    File::from(folder).set_permissions(Permissions::from_mode(0o700)).on("make private", dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_file_system_lacks_nothing_and_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        assert!(try_out(dir).is_empty());
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        assert!(room(dir).unwrap().bytes > 0);
        assert_eq!(network(dir), None);
        assert_eq!(standing(&dir.join("not/yet")), dir);
    }

    #[test]
    fn an_unwritable_folder_is_reported() {
        let lacks = try_out(Utf8Path::new("/proc"));
        assert!(matches!(lacks.as_slice(), [MissingFeature::Writing(_)]), "{lacks:?}");
    }

    #[test]
    fn a_folder_that_others_may_look_into_is_made_private() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        assert_eq!(privacy(&dir.join("missing")), Privacy::Missing);
        fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(privacy(dir), Privacy::Open(0o755));
        make_private(dir).unwrap();
        assert_eq!(privacy(dir), Privacy::Private);
        std::os::unix::fs::symlink(dir, dir.join("link")).unwrap();
        assert!(make_private(&dir.join("link")).is_err());
    }
}
