//! Files and folders that are there only while a program runs, so that they can be protected: the program cannot create them, not even
//! for a moment. All sandboxes that need one lock it, and the last one removes it.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::refusal::{At, Refusal, Step};
use crate::system::paths::{self, is_missing, kind};

/// The most that is read of one, which is more than any has.
const LONGEST: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(1);

/// A path with its content; without one it is a folder.
pub(crate) type Placeholder = (Utf8PathBuf, Option<String>);

/// The files that this process needs, removed with this value.
#[derive(Default)]
pub(crate) struct Placeholders {
    files: Vec<Placeholder>,
    locks: Vec<File>,
}

impl Placeholders {
    /// Makes those that are missing; the others are of sandboxes that run, and stay until the last one ends.
    pub(crate) fn make(files: &[Placeholder]) -> Result<Self, Refusal> {
        let mut placeholders = Self { files: files.to_vec(), locks: Vec::new() };
        for (path, text) in files {
            placeholders.locks.extend(make(path, text.as_deref()).at_path(Step::Plan, path)?);
        }
        Ok(placeholders)
    }
}

#[cfg(test)]
impl Placeholders {
    /// As a process that is killed leaves them.
    pub(crate) fn kill(mut self) {
        self.files.clear();
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.locks.clear();
        remove(&self.files);
    }
}

/// Removes them, except for those that another sandbox needs, and those that were changed.
pub(crate) fn remove(files: &[Placeholder]) {
    for (path, text) in files {
        if let Ok(Some(file)) = open(path, text.as_deref())
            && file.try_lock().is_ok()
        {
            // A folder that is not empty stays.
            let flags = if text.is_some() { AtFlags::empty() } else { AtFlags::REMOVEDIR };
            let _ = paths::remove(path, flags);
        }
    }
}

/// Whether one is there, unchanged.
pub(crate) fn is_there((path, text): &Placeholder) -> bool {
    matches!(open(path, text.as_deref()), Ok(Some(_)))
}

fn create(path: &Utf8Path, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else { return paths::make_one_folder(path) };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = paths::open_file(path, flags, Mode::from_raw_mode(0o644))?;
    // The folder around it can say which rights new ones have.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())
}

fn make(path: &Utf8Path, text: Option<&str>) -> io::Result<Option<File>> {
    loop {
        match create(path, text) {
            Ok(()) => {}
            // A git folder without that folder has nothing to protect.
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let Some(file) = open(path, text)? else {
            match kind(path) {
                // Another sandbox removed it meanwhile.
                None => continue,
                Some(_) => return Ok(None),
            }
        };
        lock(&file).map_err(|error| io::Error::other(format!("it cannot be locked: {error}")))?;
        // Another sandbox may have removed it before it was locked.
        let (folder, name) = paths::parent(path.as_std_path())?;
        let there = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let locked = file.metadata()?;
        if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (locked.dev(), locked.ino())) {
            return Ok(Some(file));
        }
    }
}

/// A sandbox that ends holds it for a moment. A program in another one can hold it for ever.
fn lock(file: &File) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
                let _ = rustix::event::poll(&mut [], Some(&pause));
            }
            locked => return Ok(locked?),
        }
    }
}

/// The file, if it has that content; or the folder.
fn open(path: &Utf8Path, text: Option<&str>) -> io::Result<Option<File>> {
    let Ok(mut file) = paths::open_file(path, OFlags::RDONLY, Mode::empty()) else { return Ok(None) };
    let mut bytes = Vec::new();
    let metadata = file.metadata()?;
    let Some(text) = text else { return Ok(metadata.is_dir().then_some(file)) };
    if !metadata.is_file() {
        return Ok(None);
    }
    (&mut file).take(LONGEST).read_to_end(&mut bytes)?;
    Ok((bytes == text.as_bytes()).then_some(file))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_that_holds_a_placeholder_delays_no_other_sandbox_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let files = [(Utf8Path::from_path(dir.path()).unwrap().join("made"), Some(String::new()))];
        let first = Placeholders::make(&files).unwrap();
        let held = File::open(&files[0].0).unwrap();
        first.locks[0].unlock().unwrap();
        held.lock().unwrap();
        let error = Placeholders::make(&files).err().unwrap().to_string();
        assert!(error.contains("cannot be locked"), "{error}");
    }

    #[test]
    fn the_last_sandbox_removes_a_placeholder() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let of_user = root.join("mine");
        File::create(&of_user).unwrap().write_all(b"mine").unwrap();
        let files = [
            (root.join("made"), Some(".\n".to_owned())),
            (root.join("folder"), None),
            (of_user.clone(), Some(".\n".to_owned())),
            (root.join("missing/file"), Some(String::new())),
        ];
        let (one, other) = (Placeholders::make(&files).unwrap(), Placeholders::make(&files).unwrap());
        assert_eq!(fs::read_to_string(root.join("made")).unwrap(), ".\n");
        drop(one);
        assert!(root.join("made").exists() && root.join("folder").is_dir(), "the other sandbox needs it");
        drop(other);
        assert!(!root.join("made").exists() && !root.join("folder").exists() && of_user.exists());
        // As a killed sandbox leaves it, and a user who changes it.
        for (text, stays) in [(".\n", false), ("changed", true)] {
            File::create(root.join("made")).unwrap().write_all(text.as_bytes()).unwrap();
            remove(&files);
            assert_eq!(root.join("made").exists(), stays, "{text}");
        }
    }
}
