//! The file of a journal, as its one writer sees it. The writer knows every byte that it wrote. What another process
//! writes into the file is put aside, and the journal is written back as it was.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use refrain_core::{Machine, SharedEvent};
use refrain_files::{Folder, OFlags};
use rustix::fs::{AtFlags, Stat, fstat, statat};
use rustix::io::Errno;

use super::JournalError;
use crate::disk::lock::{AppendLock, RunnerLock, identity};
use crate::disk::notice::tell_above;
use crate::project::layout::{FOREIGN, JOURNAL, LoopDir, RUNNER_LOCK};
use crate::{DiskError, OnPath, make_dir_nofollow, write_nofollow};

/// How often a journal is written back while another process deletes its folder: a deletion ends, and each try takes
/// its time.
const RESTORE_TRIES: u32 = 100;

/// How many files with foreign content are kept beside a journal; a later one replaces the last.
const MOST_FOREIGN: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It survives the death of this process.
    Written,
    /// It survives a power loss, and so does everything committed before.
    Synced,
    /// It survives this machine too, if the journal has a witness.
    Replicated,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReport {
    /// The journal's length in bytes: everything up to here is whole.
    pub length: u64,
    /// The file had been deleted or changed, and was written back first.
    pub restored: Option<RestoredTail>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredTail {
    /// How many bytes were written back.
    pub bytes: u64,
    /// The name of the file that holds what another process had made of the journal; none if it had been deleted.
    pub kept_as: Option<String>,
}

impl RestoredTail {
    pub fn event<S: Machine>(self) -> S::Event {
        S::event(SharedEvent::JournalRestored(self.bytes, self.kept_as))
    }
}

/// What the system says of a file whenever its content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) length: u64,
    /// The time of the last change of content or status: no process can set it.
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }
}

impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        let nanoseconds = i64::try_from(stat.st_ctime_nsec).unwrap_or_default();
        Self { length: stat.st_size.cast_unsigned(), changed: (stat.st_ctime, nanoseconds) }
    }
}

/// What became of a journal's file since it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// It is as its writer left it.
    Own,
    Empty,
    /// Another process changed it, or put something else there.
    Foreign,
}

/// The file that a journal is written to, whichever that is now: a reader in the writer's process is not misled by a
/// file that was put in its place.
#[derive(Clone, Debug)]
pub(super) struct SharedFile(Arc<Mutex<Arc<File>>>);

impl SharedFile {
    fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(file))))
    }

    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, file: File) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    dir: LoopDir,
    /// The folder of the file, however it was reached.
    folder: Folder,
    file: SharedFile,
    lock: AppendLock,
    /// Every byte of the journal, as this writer read and wrote it.
    own: Vec<u8>,
    /// The file after the last write; none if it is to be compared with `own`.
    stamp: Option<Stamp>,
    /// The lock file of the runner, which is also the writer; none if the loop had no runner at first.
    held: Option<(u64, u64)>,
    /// That right, taken again after the lock file was deleted: the old file has no name any more.
    reclaimed: Option<RunnerLock>,
    /// The watchers of the folder of all loops were notified that a process writes here.
    told: bool,
    /// A write or sync failed: what the disk holds is unknown from here on.
    failed: bool,
}

impl Disk {
    /// The file of a journal that holds `own`, as its writer reads or writes it; `stamp` is from before it was read.
    pub(super) fn new(
        dir: LoopDir,
        file: File,
        lock: AppendLock,
        own: Vec<u8>,
        stamp: Option<Stamp>,
    ) -> Result<Self, DiskError> {
        Ok(Self {
            folder: folder(&dir)?,
            held: identity(&dir.runner_lock()),
            dir,
            file: SharedFile::new(file),
            lock,
            own,
            stamp,
            reclaimed: None,
            told: false,
            failed: false,
        })
    }

    pub(super) fn dir(&self) -> &LoopDir {
        &self.dir
    }

    pub(super) fn file(&self) -> SharedFile {
        self.file.clone()
    }

    /// Writes, unless an earlier write failed: what the disk holds is unknown from then on.
    pub(super) fn write(&mut self, bytes: &[u8], durability: Durability) -> Result<SyncReport, JournalError> {
        if self.failed {
            return Err(JournalError::Failed(self.dir.journal()));
        }
        let written = self.append(bytes, durability);
        self.failed = written.is_err();
        written
    }

    fn append(&mut self, bytes: &[u8], durability: Durability) -> Result<SyncReport, JournalError> {
        let path = self.dir.journal();
        let mut restored =
            if self.place()? == FileState::Own { None } else { Some(self.restore_patiently()?) };
        let Self { lock, own, .. } = self;
        let mut file = &*self.file.file();
        lock.hold(&path, || {
            if let Err(error) = file.write_all(bytes) {
                let _ = file.set_len(own.len() as u64); // a full disk leaves the last good length
                return Err(error).on("write", &path)?;
            }
            if durability != Durability::Written {
                file.sync_data().on("sync", &path)?;
            }
            Ok::<_, JournalError>(())
        })?;
        self.own.extend_from_slice(bytes);
        let stamp = Stamp::of(file).on("look at", &path)?;
        if stamp.length == self.length() {
            self.stamp = Some(stamp);
        } else {
            // Another process wrote at the same moment.
            restored = Some(self.restore_patiently()?);
        }
        self.tell();
        Ok(SyncReport { length: self.length(), restored })
    }

    pub(super) fn own(&self) -> &[u8] {
        &self.own
    }

    pub(super) fn length(&self) -> u64 {
        self.own.len() as u64
    }

    /// Notifies the watchers of all loops once for each writer, after the first line: a watch on every journal that
    /// there ever was would be too many.
    pub(super) fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            tell_above(&self.folder);
        }
    }

    /// Whether the file still lies in its folder, as it was written. The folder may have been moved, as long as nothing
    /// else has its place. The number of the file's links does not say so: it may have been given another name, and not
    /// every file system lowers the count of an open file.
    pub(super) fn place(&mut self) -> Result<FileState, DiskError> {
        let folder = fstat(&self.folder).map_err(io::Error::from).on("look at", &self.dir.0)?;
        if identity(&self.dir.0).is_some_and(|now| now != (folder.st_dev, folder.st_ino)) {
            return Ok(FileState::Foreign);
        }
        let file = self.file.file();
        let ours = fstat(&*file).map_err(io::Error::from).on("look at", &self.dir.journal())?;
        match statat(&self.folder, JOURNAL, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino) => {}
            Ok(_) => return Ok(FileState::Foreign),
            Err(Errno::NOENT) => return Ok(FileState::Empty),
            Err(_) => {}
        }
        let stamp = Stamp::from(&ours);
        if self.stamp == Some(stamp) {
            return Ok(FileState::Own);
        }
        if stamp.length != self.length() || !self.has_own_content(&file)? {
            return Ok(FileState::Foreign);
        }
        self.stamp = Some(stamp);
        Ok(FileState::Own)
    }

    /// Whether the file holds what this writer wrote, byte for byte.
    fn has_own_content(&self, file: &File) -> Result<bool, DiskError> {
        let mut chunk = vec![0; 64 << 10];
        for (part, at) in self.own.chunks(chunk.len()).zip((0..).step_by(chunk.len())) {
            let there = &mut chunk[..part.len()];
            match file.read_exact_at(there, at) {
                Ok(()) if there == part => {}
                Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                    return Err(error).on("read", &self.dir.journal());
                }
                Ok(()) | Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Keeps what lies in the journal's place, which this writer did not write, under another name; returns that.
    fn put_foreign_aside(&self) -> Result<Option<String>, DiskError> {
        let is_there = |name: &str| statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if !is_there(JOURNAL) {
            return Ok(None);
        }
        let aside = |number| format!("{FOREIGN}{number}");
        let is_free = |number: &u32| !is_there(&aside(*number));
        let aside = aside((1..MOST_FOREIGN).find(is_free).unwrap_or(MOST_FOREIGN));
        // A second name, so that readers find a journal at every moment; of a folder there is none.
        let _ = self.folder.remove(&aside);
        if self.folder.link(JOURNAL, &aside).is_err() {
            self.folder.rename(JOURNAL, &aside).on("move", &self.dir.journal())?;
        }
        Ok(Some(aside))
    }

    /// Moves an unterminated last line beside the journal; returns the file's name.
    pub(super) fn cut(&mut self, torn: u64) -> Result<Option<String>, DiskError> {
        if torn == 0 {
            return Ok(None);
        }
        let path = self.dir.journal();
        let (file, good) = (self.file.file(), self.length());
        let kept_as = format!("torn-{good}");
        let mut bytes = Vec::new();
        let mut tail = &*file;
        tail.seek(SeekFrom::Start(good)).on("read", &path)?;
        tail.take(torn).read_to_end(&mut bytes).on("read", &path)?;
        write_nofollow(&self.dir.0.join(&kept_as), &bytes)?;
        file.set_len(good).on("write", &path)?;
        self.stamp = None;
        Ok(Some(kept_as))
    }

    /// Restores; a process that is deleting the folder may not be done yet, and removes what was just made.
    fn restore_patiently(&mut self) -> Result<RestoredTail, JournalError> {
        for _ in 0..RESTORE_TRIES {
            match self.restore() {
                Err(JournalError::Disk(error)) if error.source.kind() == ErrorKind::NotFound => {}
                restored => return restored,
            }
        }
        self.restore()
    }

    /// The journal was deleted or changed under its writer: writes it back.
    fn restore(&mut self) -> Result<RestoredTail, JournalError> {
        if self.held.is_none() && self.dir.journal().exists() {
            // Without the right to drive the loop the other may be its runner.
            return Err(JournalError::Foreign(self.dir.journal()));
        }
        self.dir.remove_links(None)?;
        make_dir_nofollow(&self.dir.inbox())?;
        self.folder = folder(&self.dir)?;
        // Before there is a journal again, because a reader could take it for one without a writer.
        self.keep_lock()?;
        let kept_as = self.put_foreign_aside()?;
        write_nofollow(&self.dir.journal(), &self.own)?;
        self.told = false;
        self.file.replace(open(&self.dir, false)?);
        self.stamp = None;
        self.lock = AppendLock::open(&self.dir)?;
        Ok(RestoredTail { bytes: self.length(), kept_as })
    }

    /// Whether the lock still lies in the journal's folder, wherever that was moved to.
    pub(super) fn has_lock(&self) -> bool {
        let found = statat(&self.folder, RUNNER_LOCK, AtFlags::SYMLINK_NOFOLLOW).ok();
        self.held.is_none() || self.held == found.map(|found| (found.st_dev, found.st_ino))
    }

    pub(super) fn keep_lock(&mut self) -> Result<(), JournalError> {
        let path = self.dir.runner_lock();
        // The file that the lock is on is still open, so no other file has its number.
        if self.held.is_some() && identity(&path) == self.held {
            return Ok(());
        }
        match RunnerLock::try_take(&self.dir)? {
            Some(lock) => (self.reclaimed, self.held) = (Some(lock), identity(&path)),
            None if self.held.is_some() => return Err(JournalError::Usurped(self.dir.journal())),
            None => {}
        }
        Ok(())
    }
}

pub(super) fn folder(dir: &LoopDir) -> Result<Folder, DiskError> {
    Folder::open(&dir.0).on("open", &dir.0)
}

pub(super) fn open(dir: &LoopDir, create: bool) -> Result<File, DiskError> {
    let path = dir.journal();
    let flags = OFlags::RDWR | OFlags::APPEND | if create { OFlags::CREATE } else { OFlags::empty() };
    refrain_files::open(&path, flags).on("open", &path)
}
