//! Opens a folder by a path without links, on Linux.

use std::path::{Component, Path};

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::{Errno, Result};

/// Opens a folder. A link anywhere in `path` is an error.
pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd> {
    match openat2(CWD, path, super::FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A kernel before 5.6, or a filter of system calls that does not know this one.
        Err(Errno::NOSYS | Errno::PERM) => walk(path),
        opened => opened,
    }
}

/// The same, one component after the other.
fn walk(path: &Path) -> Result<OwnedFd> {
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let start = if path.is_absolute() { "/" } else { "." };
    let mut folder = open(start, through, Mode::empty())?;
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir | Component::RootDir => continue,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        };
        folder = openat(&folder, name, through, Mode::empty())?;
    }
    openat(&folder, ".", super::FOLDER, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_system_call_a_link_anywhere_in_the_path_is_refused_too() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("real/inner")).unwrap();
        std::fs::File::create(dir.join("real/file")).unwrap();
        std::os::unix::fs::symlink(dir.join("real"), dir.join("link")).unwrap();
        for open in [open_folder, walk] {
            assert!(open(&dir.join("real/inner")).is_ok());
            assert_eq!(open(&dir.join("real/missing")).unwrap_err(), Errno::NOENT);
            for path in ["link", "link/inner", "real/file"] {
                let error = open(&dir.join(path)).unwrap_err();
                assert!([Errno::LOOP, Errno::NOTDIR].contains(&error), "{path}: {error}");
            }
        }
    }
}
