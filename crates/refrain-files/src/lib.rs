//! Files and folders beneath a folder that an agent can write, where it can put a link in the place of anything.
//!
//! A [`Folder`] is opened by a path that has no link in it. All operations are relative to its descriptor: nothing is
//! written, renamed or removed through a link, even if the link is made meanwhile.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
mod system;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::Utf8Path;
pub use rustix::fs::OFlags;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, fcntl_setfl, linkat, mkdirat, mkfifoat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The largest text that is read, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

#[derive(Debug)]
pub struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Folder {
    /// Opens a folder.
    /// Errors: If it is missing, or a part of the path is a link or no folder: the error names that part.
    pub fn open(path: &Utf8Path) -> io::Result<Self> {
        system::open_folder(path.as_std_path()).map(Self).map_err(|error| explained(path, error))
    }

    /// Opens a folder that may be reached through links: one that is the user's, and no agent can replace.
    pub fn open_trusted(path: &Utf8Path) -> io::Result<Self> {
        let follow = FOLDER.difference(OFlags::NOFOLLOW);
        Ok(Self(rustix::fs::open(path.as_std_path(), follow, Mode::empty())?))
    }

    /// Opens a folder, which is made with its parents if it is missing: private to the user, and synced.
    pub fn make(path: &Utf8Path) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        let (parent, name) = split(path)?;
        let parent = Self::make(parent)?;
        parent
            .make_child(name)
            .and_then(|child| parent.sync().map(|()| child))
            .map_err(|error| named(path, error))
    }

    /// Opens the folder `name` in it.
    pub fn child(&self, name: &str) -> io::Result<Self> {
        Ok(Self(openat(&self.0, single(name)?, FOLDER, Mode::empty())?))
    }

    fn make_child(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.child(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the folder `name` in it, which is Refrain's own. What has its place and is no folder is removed first;
    /// none if there is no such folder then.
    pub fn reclaim(&self, name: &str) -> io::Result<Option<Self>> {
        let name = single(name)?;
        match openat(&self.0, name, FOLDER, Mode::empty()) {
            Ok(folder) => Ok(Some(Self(folder))),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => self.remove(name).map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, and makes it if it is missing. It is not synced.
    pub fn reclaim_or_make(&self, name: &str) -> io::Result<Self> {
        match self.reclaim(name)? {
            Some(folder) => Ok(folder),
            None => self.make_child(name),
        }
    }

    /// Removes each link in it whose name is not to be kept.
    pub fn remove_links(&self, is_kept: fn(&[u8]) -> bool) -> io::Result<()> {
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if is_kept(entry.file_name().to_bytes()) {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system says it in the list.
                FileType::Unknown => match statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error.into()),
                },
                kind => kind,
            };
            if kind == FileType::Symlink {
                match unlinkat(&self.0, entry.file_name(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Opens a regular file in it. A link, or what is no file, is an error.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // A FIFO would wait for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.0, single(name)?, flags, PRIVATE).map(File::from) {
            Err(Errno::LOOP) => Err(io::Error::other("it is a symbolic link, and Refrain follows none here")),
            Err(Errno::NXIO) => Err(io::Error::other("it is no regular file")),
            Err(error) => Err(error.into()),
            Ok(file) if file.metadata()?.is_file() => {
                fcntl_setfl(&file, flags.intersection(OFlags::APPEND))?;
                Ok(file)
            }
            Ok(_) => Err(io::Error::other("it is no regular file")),
        }
    }

    /// Makes a new file in it, in place of any file or link of that name.
    pub fn create(&self, name: &str) -> io::Result<File> {
        // A file that is there may have another name elsewhere.
        self.remove(name)?;
        self.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Replaces the file `name` in it: a reader sees the old file or the new one, also after a power loss.
    /// Errors: If the new file cannot be written; the old one stays then.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.exchange(name, bytes, File::sync_all)?;
        self.sync()
    }

    /// The same, but a power loss may leave an empty file.
    pub fn replace_unsynced(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.exchange(name, bytes, |_| Ok(()))
    }

    fn exchange(&self, name: &str, bytes: &[u8], settle: fn(&File) -> io::Result<()>) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = single(name)?;
        let (beside, mut file) = loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let beside = format!(".tmp-{}-{count}", std::process::id());
            match self.file(&beside, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                // One of another process that had this number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => break (beside, file?),
            }
        };
        let written = file.write_all(bytes).and_then(|()| settle(&file));
        let replaced = written.and_then(|()| self.rename(&beside, name));
        if replaced.is_err() {
            // The first error is what matters.
            let _ = self.remove(&beside);
        }
        replaced
    }

    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename_to(from, self, to)
    }

    /// Moves an entry of it into another folder.
    pub fn rename_to(&self, from: &str, folder: &Self, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, single(from)?, &folder.0, single(to)?)?)
    }

    /// Gives a file in it a second name there.
    /// Errors: What the system says: a folder has one name only.
    pub fn link(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(linkat(&self.0, single(from)?, &self.0, single(to)?, AtFlags::empty())?)
    }

    /// Removes a file or a link in it; one that is missing is no error.
    /// Errors: If it stays: a folder does.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, single(name)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder in it that holds only files; one that is missing is no error.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        let Some(folder) = self.reclaim(name)? else { return Ok(()) };
        for entry in Dir::read_from(&folder.0)? {
            let entry = entry?;
            if ![c".", c".."].contains(&entry.file_name()) {
                unlinkat(&folder.0, entry.file_name(), AtFlags::empty())?;
            }
        }
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes a FIFO in it; whether it did. What is there already stays.
    pub fn make_fifo(&self, name: &str) -> io::Result<bool> {
        match mkfifoat(&self.0, single(name)?, PRIVATE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

/// Opens a regular file by a path without links.
pub fn open(path: &Utf8Path, flags: OFlags) -> io::Result<File> {
    let (folder, name) = split(path)?;
    Folder::open(folder)?.file(name, flags)
}

/// Opens a regular file to read it. Links are followed: the path may be the user's own.
/// Errors: If it cannot be opened, or is no regular file: a FIFO would wait for its other end, and a device may never
/// end.
pub fn open_regular(path: &(impl AsRef<Path> + ?Sized)) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path.as_ref(), flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes. Links are followed, as by [`open_regular`].
/// Errors: As [`open_regular`]; and if the file is larger.
pub fn read_regular(path: &(impl AsRef<Path> + ?Sized), most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let is_larger = || io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most} bytes"));
    let length = file.metadata()?.len();
    if length > most {
        return Err(is_larger());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // It may grow meanwhile.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(is_larger()) } else { Ok(bytes) }
}

/// Reads a regular file of text of at most 64 MiB. Links are followed, as by [`open_regular`].
/// Errors: As [`read_regular`]; and if it is not UTF-8.
pub fn read_text(path: &Utf8Path) -> io::Result<String> {
    let bytes = read_regular(path, LARGEST_TEXT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Makes a new file in place of any file or link at that path. Its folder is Refrain's own: it is made if it is
/// missing, or something else has its place.
pub fn create(path: &Utf8Path) -> io::Result<File> {
    let (folder, name) = split(path)?;
    let (above, own) = split(folder)?;
    Folder::make(above)?.reclaim_or_make(own)?.create(name)
}

/// Makes a file with this text as [`create`] does. It is not synced.
pub fn write(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    create(path)?.write_all(bytes)
}

/// Removes a file or a link by a path without links; one that is missing is no error.
pub fn remove(path: &Utf8Path) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Folder::open(folder).if_there()?.map_or(Ok(()), |folder| folder.remove(name))
}

pub trait IfThere<T> {
    /// None if there is nothing in that place.
    fn if_there(self) -> io::Result<Option<T>>;
}

impl<T> IfThere<T> for io::Result<T> {
    fn if_there(self) -> io::Result<Option<T>> {
        match self {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }
}

pub fn split(path: &Utf8Path) -> io::Result<(&Utf8Path, &str)> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "the path has no file name")),
    }
}

/// Accepts a name in a folder, and no path.
fn single(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(ErrorKind::InvalidInput.into()),
        name if name.contains('/') => Err(ErrorKind::InvalidInput.into()),
        name => Ok(name),
    }
}

/// The error of a folder that cannot be opened, with the part of its path that is in the way.
fn explained(path: &Utf8Path, error: Errno) -> io::Error {
    if ![Errno::LOOP, Errno::NOTDIR].contains(&error) {
        return error.into();
    }
    let mut parts: Vec<_> = path.ancestors().collect();
    parts.reverse();
    for part in parts {
        match part.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                let text = format!("{part} is a symbolic link, and Refrain follows none here; remove it");
                return io::Error::other(text);
            }
            Ok(meta) if !meta.is_dir() => {
                return io::Error::new(ErrorKind::NotADirectory, format!("{part} is no folder"));
            }
            _ => {}
        }
    }
    error.into()
}

fn named(path: &Utf8Path, error: io::Error) -> io::Error {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    errno.map_or(error, |errno| explained(path, errno))
}

#[cfg(test)]
mod tests;
