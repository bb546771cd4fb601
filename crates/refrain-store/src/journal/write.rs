//! Writing a journal: one writer, and appends only.
//!
//! Events are folded into the state as they are pushed; what was pushed since the last commit is one write. So the end
//! of one iteration and the begin of the next cost one append and one sync between them.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use refrain_core::signature::{Signature, statement};
use refrain_core::{LoopState, Machine, Record, SharedEvent};
use serde::Serialize;

use super::JournalError;
use super::disk::{Disk, Durability, FileState, SharedFile, Stamp, SyncReport, folder, open};
use super::line::{self, Hash, ROOT};
use super::reader::{Snapshot, fold_folder};
use super::witness::Witness;
use crate::access::signing::{LastSigned, Signing};
use crate::disk::lock::AppendLock;
use crate::project::layout::LoopDir;
use crate::{DiskError, OnPath, make_dir_nofollow};

/// How often one commit writes the journal back and records that, while another process changes it again and again.
pub const MOST_RESTORED: u32 = 4;

/// The writer of one loop's journal, or one plan's, and the state that it adds up to.
#[derive(Debug)]
pub struct Journal<S = LoopState> {
    dir: LoopDir,
    state: S,
    head: Hash,
    /// Lines that were pushed and not yet committed.
    pending: Vec<u8>,
    last_signed: Option<PendingSignature>,
    /// What signs it; none for a journal that is not signed.
    signing: Option<Signing>,
    disk: Arc<Mutex<Disk>>,
    witness: Option<Arc<dyn Witness>>,
}

/// Lines on their way to disk. Detached from the journal, so that a thread that may block can write them.
#[derive(Debug)]
#[must_use = "pushed events are not on disk until their batch is written"]
pub struct Batch {
    disk: Arc<Mutex<Disk>>,
    bytes: Vec<u8>,
    durability: Durability,
    /// The last line of them that is signed, and what remembers it.
    last_signed: Option<(PendingSignature, Signing)>,
    /// What is to know the journal, up to the record with this number.
    witness: Option<(Arc<dyn Witness>, u64)>,
}

/// A line that is signed and not yet written: its number, its hash, and where it ends among those that are not.
#[derive(Clone, Copy, Debug)]
struct PendingSignature {
    seq: u64,
    hash: Hash,
    end: usize,
}

impl<S: Machine> Journal<S> {
    /// Makes a loop: its folder, and the first line of its journal, synced. The loop exists from then on.
    /// Errors: [`JournalError::Taken`] if it exists already; else what could not be written, and then there is no loop.
    pub fn create(dir: LoopDir, started: S::Event, at: Timestamp) -> Result<Self, JournalError> {
        Self::make(dir, started, at, None)
    }

    pub fn create_signed(
        dir: LoopDir,
        started: S::Event,
        at: Timestamp,
        signing: Signing,
    ) -> Result<Self, JournalError> {
        Self::make(dir, started, at, Some(signing))
    }

    fn make(
        dir: LoopDir,
        started: S::Event,
        at: Timestamp,
        signing: Option<Signing>,
    ) -> Result<Self, JournalError> {
        dir.remove_links(None)?;
        make_dir_nofollow(&dir.inbox())?;
        let path = dir.journal();
        let record = Record { seq: 1, at, event: started };
        let state = S::begin(&record).map_err(|damage| JournalError::impossible(&path, damage))?;
        let mut bytes = Vec::with_capacity(4096);
        let head =
            encode(&record, ROOT, &mut bytes, &dir, |hash| sign(signing.as_ref(), &state, &record, hash))?;
        let lock = AppendLock::open(&dir)?;
        let file = lock.hold(&path, || {
            if dir.exists() {
                return Err(JournalError::Taken(path.clone()));
            }
            let mut file = open(&dir, true)?;
            // A first write that another `start` could not finish before it was killed is no loop.
            file.set_len(0).on("write", &path)?;
            if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_all()) {
                let _ = file.set_len(0); // the disk is full, most likely: leave no half a loop
                return Err(error).on("write", &path)?;
            }
            folder(&dir)?.sync().on("sync", &dir.0)?;
            Ok(file)
        })?;
        let mut disk = Disk::new(dir.clone(), file, lock, bytes, None)?;
        disk.tell();
        if let Some(signing) = signing.as_ref().filter(|_| S::signed(&record.event).is_some()) {
            signing.remember(&dir, &LastSigned::new(1, disk.length(), head));
        }
        let disk = Arc::new(Mutex::new(disk));
        Ok(Self { dir, state, head, pending: Vec::new(), last_signed: None, signing, disk, witness: None })
    }

    /// Opens a loop's journal to write it; a torn tail is moved aside and recorded. The caller has the right to write.
    pub fn open(dir: LoopDir, now: Timestamp) -> Result<Self, JournalError> {
        Self::load(dir, now, u64::MAX, None)
    }

    /// The same, signed from here on. Everything from the first record that should be signed and has no signature is
    /// put aside.
    /// Errors: As [`Self::open`]; [`JournalError::Damaged`] too if it is shorter than what was signed, or differs
    /// before.
    pub fn open_signed(dir: LoopDir, now: Timestamp, signing: Signing) -> Result<Self, JournalError> {
        Self::load(dir, now, u64::MAX, Some(signing))
    }

    /// Opens it as far as `length` bytes; what lies after them is put aside.
    fn load(
        dir: LoopDir,
        now: Timestamp,
        length: u64,
        signing: Option<Signing>,
    ) -> Result<Self, JournalError> {
        let path = dir.journal();
        if !dir.exists() {
            return Err(JournalError::Missing(path));
        }
        let lock = AppendLock::open(&dir)?;
        let file = open(&dir, false)?;
        // From before it is read: a change since then shows.
        let stamp = Stamp::of(&file).on("look at", &path)?;
        let mut own = Vec::new();
        let snapshot: Snapshot<S> = lock.hold(&path, || {
            let read = file.try_clone().on("open", &path)?.take(length);
            fold_folder(read, &dir, |_, _, line| own.extend_from_slice(line))
        })?;
        if let Some(signing) = signing.as_ref().filter(|_| length == u64::MAX)
            && let Some(length) = snapshot.forged_from(&signing.judge(&dir, &snapshot)?)
        {
            let mut journal = Self::load(dir, now, length, Some(signing.clone()))?;
            // Writes back what is believed, and records that.
            journal.commit(Durability::Synced)?;
            return Ok(journal);
        }
        let Snapshot { state, torn, head, .. } = snapshot;
        let stamp = Some(stamp).filter(|stamp| stamp.length <= length);
        let mut disk = Disk::new(dir.clone(), file, lock, own, stamp)?;
        let kept_as = disk.cut(torn)?;
        let disk = Arc::new(Mutex::new(disk));
        let mut journal =
            Self { dir, state, head, pending: Vec::new(), last_signed: None, signing, disk, witness: None };
        if let Some(kept_as) = kept_as {
            journal.push(S::event(SharedEvent::JournalTorn(torn, kept_as)), now)?;
            journal.commit(Durability::Synced)?;
        }
        Ok(journal)
    }

    /// From here on this witness gets what is committed as [`Durability::Replicated`].
    pub fn replicate_to(&mut self, witness: Arc<dyn Witness>) {
        self.witness = Some(witness);
    }

    /// Whether everything pushed is known beyond this machine, as far as it is to be.
    pub fn is_replicated(&self) -> bool {
        self.witness.as_ref().is_none_or(|witness| witness.covers(self.state.seq))
    }

    /// What the journal adds up to, pushed events included.
    pub fn state(&self) -> &S {
        &self.state
    }

    pub fn dir(&self) -> &LoopDir {
        &self.dir
    }

    /// Folds one more event into the state; it is on disk once the batch that holds it is written.
    /// Errors: [`JournalError::Damaged`] if the event cannot follow; nothing changes then.
    pub fn push(&mut self, event: S::Event, at: Timestamp) -> Result<(), JournalError> {
        // A clock that was set back does not turn a journal around.
        let at = at.max(self.state.updated_at);
        let record = Record { seq: self.state.seq + 1, at, event };
        let pending = self.pending.len();
        let Self { state, signing, .. } = self;
        let sign = |hash: &str| sign(signing.as_ref(), state, &record, hash);
        let pushed = encode(&record, self.head, &mut self.pending, &self.dir, sign)
            .map_err(JournalError::from)
            .and_then(|head| match self.state.apply(&record) {
                Ok(()) => Ok(head),
                Err(damage) => Err(JournalError::impossible(&self.dir.journal(), damage)),
            });
        match pushed {
            Ok(head) => {
                self.head = head;
                if self.signing.is_some() && S::signed(&record.event).is_some() {
                    let end = self.pending.len();
                    self.last_signed = Some(PendingSignature { seq: record.seq, hash: head, end });
                }
            }
            Err(_) => self.pending.truncate(pending),
        }
        pushed.map(drop)
    }

    /// Whether events were pushed and not yet taken to be written.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the journal, as it was written, and the lock of its writer still lie in their folder. Without them the
    /// loop cannot be found, and another could start under its name. The next commit writes the journal back.
    pub fn is_in_place(&self) -> bool {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        disk.place().is_ok_and(|place| place == FileState::Own) && disk.has_lock()
    }

    /// Takes the lock of the journal's writer again if its file was deleted or replaced.
    pub fn keep_lock(&self) -> Result<(), JournalError> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).keep_lock()
    }

    pub(super) fn written(&self) -> SharedFile {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).file()
    }

    pub fn batch(&mut self, durability: Durability) -> Batch {
        let (disk, bytes) = (Arc::clone(&self.disk), std::mem::take(&mut self.pending));
        let last_signed = self.last_signed.take().zip(self.signing.clone());
        // The last signed record outlives a power loss, and so must the record itself.
        let witness = self.witness.clone().filter(|_| durability == Durability::Replicated);
        let durability = if last_signed.is_some() { durability.max(Durability::Synced) } else { durability };
        Batch { disk, bytes, durability, last_signed, witness: witness.map(|it| (it, self.state.seq)) }
    }

    pub fn is_written(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes what was pushed; if the file had to be written back first, that is recorded too. Blocks.
    pub fn commit(&mut self, durability: Durability) -> Result<(), JournalError> {
        let mut committed = self.batch(durability.max(Durability::Synced)).write()?;
        for _ in 0..MOST_RESTORED {
            let Some(restored) = committed.restored else { break };
            self.push(restored.event::<S>(), self.state.updated_at)?;
            committed = self.batch(durability).write()?;
        }
        Ok(())
    }
}

impl Batch {
    /// Writes the lines, as one append. Blocks.
    /// Errors: [`JournalError`]: the file is back at its last good length where the disk allows it. A failed sync is
    /// final, because what the disk then holds is unknown: nothing more is written to this journal. Only
    /// [`JournalError::Unreplicated`] leaves the lines on disk: the next batch replicates them.
    pub fn write(self) -> Result<SyncReport, JournalError> {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let written = disk.write(&self.bytes, self.durability);
        if let (Ok(committed), Some((last, signing))) = (&written, &self.last_signed) {
            let bytes = committed.length - (self.bytes.len() - last.end) as u64;
            signing.remember(disk.dir(), &LastSigned::new(last.seq, bytes, last.hash));
        }
        // A journal that was written back is replicated with the record of that.
        if let (Ok(SyncReport { restored: None, .. }), Some((witness, seq))) = (&written, self.witness) {
            let journal = disk.own().to_vec();
            drop(disk);
            witness.replicate(seq, &journal)?;
        }
        written
    }
}

/// The signature of a record of this loop whose line has this hash without one; none if it is not signed.
fn sign<S: Machine>(
    signing: Option<&Signing>,
    state: &S,
    record: &Record<S::Event>,
    hash: &str,
) -> Option<Signature> {
    S::signed(&record.event)?;
    signing?.sign(&statement(state.id(), record.seq, hash))
}

fn encode<E: Serialize>(
    record: &Record<E>,
    before: Hash,
    out: &mut Vec<u8>,
    dir: &LoopDir,
    sign: impl FnOnce(&str) -> Option<Signature>,
) -> Result<Hash, DiskError> {
    line::write(record, before, out, sign).map_err(io::Error::from).on("encode a record for", &dir.journal())
}
