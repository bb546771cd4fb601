//! Writing a journal: one writer, appends only, and a length that is known to be good.
//!
//! Events are folded into the state as they are pushed; what was pushed since the last commit is one write. So the end of
//! one iteration and the begin of the next cost one append and one sync between them.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use refrain_core::{Fold, LoopState, Record};
use refrain_files::{Folder, OFlags};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::Errno;
use serde::Serialize;

use super::JournalError;
use super::line::{self, Hash, ROOT};
use super::read::{Snapshot, fold};
use crate::layout::{JOURNAL, LoopDir, RUNNER_LOCK};
use crate::lock::{AppendLock, RunnerLock, identity};
use crate::notice::tell_above;
use crate::{DiskError, OnPath, make_dir_nofollow, write_nofollow};

/// How often a journal is written back while somebody deletes its folder: a deletion ends, and each try takes its time.
const RESTORE_TRIES: u32 = 100;

/// What a commit promises when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives the death of this process.
    Written,
    /// It survives a power loss, and so does everything committed before.
    Synced,
}

/// The writer of one loop's journal, or one plan's, and the state that it adds up to.
#[derive(Debug)]
pub struct Journal<S = LoopState> {
    dir: LoopDir,
    state: S,
    head: Hash,
    /// Lines that were pushed and not yet committed.
    pending: Vec<u8>,
    disk: Arc<Mutex<Disk>>,
}

/// Lines on their way to disk. Detached from the journal, so that a thread that may block can write them.
#[derive(Debug)]
#[must_use = "pushed events are not on disk until their batch is written"]
pub struct Batch {
    disk: Arc<Mutex<Disk>>,
    bytes: Vec<u8>,
    durability: Durability,
}

/// What a written batch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The journal's length in bytes: everything up to here is whole.
    pub length: u64,
    /// The file had been deleted, and was written back first: so many bytes.
    pub restored: Option<u64>,
}

/// The file that a journal is written to, whichever that is now: who reads it in the writer's process is not misled by what
/// somebody put in its place.
#[derive(Clone, Debug)]
pub(super) struct Written(Arc<Mutex<Arc<File>>>);

impl Written {
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
struct Disk {
    dir: LoopDir,
    /// The folder that the file lies in, by whatever path.
    folder: Folder,
    file: Written,
    lock: AppendLock,
    /// The last length at which every line is whole.
    good: u64,
    /// The lock file of whoever has the right to drive the loop, who is also the writer; none if nobody had it at first.
    held: Option<(u64, u64)>,
    /// That right, taken again after the lock file was deleted: the old one has no name any more.
    reclaimed: Option<RunnerLock>,
    /// Whoever watches the folder of all loops was told that somebody writes here.
    told: bool,
    /// A write or sync failed: what the disk holds is unknown from here on.
    failed: bool,
}

impl<S: Fold> Journal<S> {
    /// Makes a loop: its folder, and the first line of its journal, synced. The loop exists from then on.
    ///
    /// # Errors
    /// [`JournalError::Taken`] where it exists already; else what could not be written, and then there is no loop.
    pub fn create(dir: LoopDir, started: S::Event, at: Timestamp) -> Result<Self, JournalError> {
        dir.remove_links(None)?;
        make_dir_nofollow(&dir.inbox())?;
        let path = dir.journal();
        let record = Record { seq: 1, at, event: started };
        let state = S::begin(&record).map_err(|damage| JournalError::impossible(&path, damage))?;
        let mut bytes = Vec::with_capacity(4096);
        let head = encode(&record, ROOT, &mut bytes, &dir)?;
        let lock = AppendLock::open(&dir)?;
        let file = lock.hold(&path, || {
            if dir.exists() {
                return Err(JournalError::Taken(path.clone()));
            }
            let mut file = open(&dir, true)?;
            // What another `start` left behind when it was killed in its first write is no loop.
            file.set_len(0).on("write", &path)?;
            if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_all()) {
                let _ = file.set_len(0); // the disk is full, most likely: leave no half a loop
                return Err(error).on("write", &path)?;
            }
            folder(&dir)?.sync().on("sync", &dir.0)?;
            Ok(file)
        })?;
        let mut disk = Disk {
            folder: folder(&dir)?,
            dir: dir.clone(),
            file: Written::new(file),
            lock,
            good: bytes.len() as u64,
            held: identity(&dir.runner_lock()),
            reclaimed: None,
            told: false,
            failed: false,
        };
        disk.tell();
        Ok(Self { dir, state, head, pending: Vec::new(), disk: Arc::new(Mutex::new(disk)) })
    }

    /// Opens a loop's journal to write it; a torn tail is moved aside and recorded. The caller has the right to write.
    ///
    /// # Errors
    /// [`JournalError`] where there is none, where it is damaged, or where it cannot be written.
    pub fn open(dir: LoopDir, now: Timestamp) -> Result<Self, JournalError> {
        let path = dir.journal();
        if !dir.exists() {
            return Err(JournalError::Missing(path));
        }
        let lock = AppendLock::open(&dir)?;
        let file = open(&dir, false)?;
        let Snapshot { state, torn, good, head, .. } =
            lock.hold(&path, || fold(file.try_clone().on("open", &path)?, path.clone(), |_, _| {}))?;
        let mut disk = Disk {
            folder: folder(&dir)?,
            dir: dir.clone(),
            file: Written::new(file),
            lock,
            good,
            held: identity(&dir.runner_lock()),
            reclaimed: None,
            told: false,
            failed: false,
        };
        let kept_as = disk.cut(torn)?;
        let disk = Arc::new(Mutex::new(disk));
        let mut journal = Self { dir, state, head, pending: Vec::new(), disk };
        if let Some(kept_as) = kept_as {
            journal.push(S::torn(torn, kept_as), now)?;
            journal.commit(Durability::Synced)?;
        }
        Ok(journal)
    }

    /// What the journal adds up to, pushed events included.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The folder that it lies in.
    #[must_use]
    pub fn dir(&self) -> &LoopDir {
        &self.dir
    }

    /// Folds one more event into the state; it is on disk once the batch that holds it is written.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] where the event cannot follow; nothing changes then.
    pub fn push(&mut self, event: S::Event, at: Timestamp) -> Result<(), JournalError> {
        // A clock that was set back does not turn a journal around.
        let at = at.max(self.state.updated_at());
        let record = Record { seq: self.state.seq() + 1, at, event };
        let pending = self.pending.len();
        let pushed = encode(&record, self.head, &mut self.pending, &self.dir)
            .map_err(JournalError::from)
            .and_then(|head| match self.state.apply(&record) {
                Ok(()) => Ok(head),
                Err(damage) => Err(JournalError::impossible(&self.dir.journal(), damage)),
            });
        match pushed {
            Ok(head) => self.head = head,
            Err(_) => self.pending.truncate(pending),
        }
        pushed.map(drop)
    }

    /// Whether events were pushed and not yet taken to be written.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the journal and the lock of its writer still lie in their folder. Without them nobody finds the loop, and another
    /// could start under its name. The next commit writes the journal back.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.is_in_its_place().is_ok_and(|is| is) && disk.has_lock()
    }

    /// Takes the lock of the journal's writer again if its file was deleted or replaced.
    ///
    /// # Errors
    /// [`JournalError::Usurped`] if another runner has it.
    pub fn keep_lock(&self) -> Result<(), JournalError> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).keep_lock()
    }

    pub(super) fn written(&self) -> Written {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).file.clone()
    }

    /// Takes what was pushed, to be written.
    pub fn batch(&mut self, durability: Durability) -> Batch {
        Batch { disk: Arc::clone(&self.disk), bytes: std::mem::take(&mut self.pending), durability }
    }

    /// Whether all that was pushed is written.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes what was pushed; if the file had to be written back first, that is recorded too. Blocks.
    ///
    /// # Errors
    /// As [`Batch::write`].
    pub fn commit(&mut self, durability: Durability) -> Result<(), JournalError> {
        let mut committed = self.batch(durability).write()?;
        while let Some(bytes) = committed.restored {
            self.push(S::restored(bytes), self.state.updated_at())?;
            committed = self.batch(Durability::Synced).write()?;
        }
        Ok(())
    }
}

impl Batch {
    /// Writes the lines, as one append. Blocks.
    ///
    /// # Errors
    /// [`JournalError`]: the file is back at its last good length where the disk allows it. A failed sync is final,
    /// because what the disk then holds is unknown: nothing more is written to this journal.
    pub fn write(self) -> Result<Committed, JournalError> {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.failed {
            return Err(JournalError::Failed(disk.dir.journal()));
        }
        let written = disk.append(&self.bytes, self.durability);
        disk.failed = written.is_err();
        written
    }
}

impl Disk {
    fn append(&mut self, bytes: &[u8], durability: Durability) -> Result<Committed, JournalError> {
        let path = self.dir.journal();
        let restored = if self.is_in_its_place()? { None } else { Some(self.restore_patiently()?) };
        let Self { lock, good, .. } = self;
        let mut file = &*self.file.file();
        lock.hold(&path, || {
            if restored.is_none() && file.metadata().on("look at", &path)?.len() != *good {
                return Err(JournalError::Foreign(path.clone()));
            }
            if let Err(error) = file.write_all(bytes) {
                let _ = file.set_len(*good); // a full disk leaves the last good length
                return Err(error).on("write", &path)?;
            }
            if durability == Durability::Synced {
                file.sync_data().on("sync", &path)?;
            }
            Ok(())
        })?;
        self.good += bytes.len() as u64;
        self.tell();
        Ok(Committed { length: self.good, restored })
    }

    /// Once for each writer, whoever looks out over all loops is told, behind the first line: a watch on every journal that
    /// there ever was would be too many.
    fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            tell_above(&self.folder);
        }
    }

    /// Whether the file still lies in its folder, wherever that was moved to, as long as nothing else has the folder's place.
    /// The number of its links does not say so: it may have been given another name, and not every file system counts a file
    /// down that somebody has open.
    fn is_in_its_place(&self) -> Result<bool, DiskError> {
        let folder = fstat(&self.folder).map_err(io::Error::from).on("look at", &self.dir.0)?;
        if identity(&self.dir.0).is_some_and(|now| now != (folder.st_dev, folder.st_ino)) {
            return Ok(false);
        }
        let ours = fstat(&*self.file.file()).map_err(io::Error::from).on("look at", &self.dir.journal())?;
        Ok(match statat(&self.folder, JOURNAL, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino),
            Err(error) => error != Errno::NOENT,
        })
    }

    /// Moves an unterminated last line beside the journal; returns the file's name.
    fn cut(&mut self, torn: u64) -> Result<Option<String>, DiskError> {
        if torn == 0 {
            return Ok(None);
        }
        let path = self.dir.journal();
        let kept_as = format!("torn-{}", self.good);
        write_nofollow(&self.dir.0.join(&kept_as), &self.read(self.good, torn)?)?;
        self.file.file().set_len(self.good).on("write", &path)?;
        Ok(Some(kept_as))
    }

    /// Restores; whoever is deleting the folder may not be through yet, and takes away what was just made.
    fn restore_patiently(&mut self) -> Result<u64, JournalError> {
        for _ in 0..RESTORE_TRIES {
            match self.restore() {
                Err(JournalError::Disk(error)) if error.source.kind() == ErrorKind::NotFound => {}
                restored => return restored,
            }
        }
        self.restore()
    }

    /// The journal was deleted under its writer, which still has it open: writes it back.
    fn restore(&mut self) -> Result<u64, JournalError> {
        let bytes = self.read(0, self.good)?;
        self.dir.remove_links(None)?;
        make_dir_nofollow(&self.dir.inbox())?;
        // Before there is a journal again, that somebody could find and take for one that nobody writes.
        self.keep_lock()?;
        write_nofollow(&self.dir.journal(), &bytes)?;
        self.folder = folder(&self.dir)?;
        self.told = false;
        self.file.replace(open(&self.dir, false)?);
        self.lock = AppendLock::open(&self.dir)?;
        Ok(self.good)
    }

    /// Whether the lock still lies in the journal's folder, wherever that was moved to.
    fn has_lock(&self) -> bool {
        let found = statat(&self.folder, RUNNER_LOCK, AtFlags::SYMLINK_NOFOLLOW).ok();
        self.held.is_none() || self.held == found.map(|found| (found.st_dev, found.st_ino))
    }

    fn keep_lock(&mut self) -> Result<(), JournalError> {
        let path = self.dir.runner_lock();
        // The file that the lock is on is still open, so its number is nobody else's.
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

    fn read(&mut self, from: u64, length: u64) -> Result<Vec<u8>, DiskError> {
        let path = self.dir.journal();
        let mut bytes = Vec::new();
        let mut file = &*self.file.file();
        file.seek(SeekFrom::Start(from)).on("read", &path)?;
        file.take(length).read_to_end(&mut bytes).on("read", &path)?;
        Ok(bytes)
    }
}

fn folder(dir: &LoopDir) -> Result<Folder, DiskError> {
    Folder::open(&dir.0).on("open", &dir.0)
}

fn open(dir: &LoopDir, create: bool) -> Result<File, DiskError> {
    let path = dir.journal();
    let flags = OFlags::RDWR | OFlags::APPEND | if create { OFlags::CREATE } else { OFlags::empty() };
    refrain_files::open(&path, flags).on("open", &path)
}

fn encode<E: Serialize>(
    record: &Record<E>,
    before: Hash,
    out: &mut Vec<u8>,
    dir: &LoopDir,
) -> Result<Hash, DiskError> {
    line::write(record, before, out).map_err(io::Error::from).on("encode a record for", &dir.journal())
}
