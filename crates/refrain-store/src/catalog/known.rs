//! What a server remembers of the loops that it lists again and again: the states of open loops, the rows of the others, and
//! the catalog's file, open. A state or a row is used only if its journal, and all that its signatures are judged by, are
//! as they were then; rows only if no other process has written to the catalog since, which would otherwise be left
//! without them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::LoopState;
use refrain_core::agent::Usage;
use rusqlite::Connection;

use super::fold::Brief;
use super::stamp::Stamp;
use crate::access::signing::Signing;
use crate::project::layout::{LoopDir, Project};

/// Shared by all its copies.
#[derive(Clone, Debug, Default)]
pub struct KnownJournals(Arc<Mutex<ListCache>>);

#[derive(Debug, Default)]
pub(super) struct ListCache {
    pub(super) file: Option<OpenFile>,
    /// By their paths.
    folders: HashMap<Utf8PathBuf, Folder>,
    /// What the attempts of stopped loops cost since then, by the data folder of their project.
    costs: HashMap<Utf8PathBuf, (Timestamp, Usage)>,
}

#[derive(Debug, Default)]
pub(super) struct Folder {
    /// By the names of their folders.
    pub(super) loops: HashMap<String, KnownLoop>,
    /// The rows of all that have stopped are among them.
    pub(super) has_rows: bool,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) db: Connection,
    /// Its device and inode: another may lie at its path by now.
    pub(super) place: (u64, u64),
    /// Another one if another connection has written to it.
    pub(super) version: i64,
}

#[derive(Debug)]
pub(super) enum KnownLoop {
    Stopped(Stamp, Brief),
    Open(Basis, Arc<LoopState>),
    /// It is in no row, and is read each time: it is damaged, or has not begun.
    Unreadable,
}

/// What a state was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    pub(super) journal: Stamp,
    /// What was signed last of this loop.
    last: Option<Stamp>,
    judged: Judged,
}

/// What the signatures of all loops are judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged([Option<Stamp>; 2]);

impl Judged {
    pub(super) fn by(signing: &Signing) -> Self {
        Self(signing.judges().map(|path| Stamp::at(&path)))
    }
}

impl Basis {
    /// Taken before the journal is read: what is written in between makes the next look read it again.
    pub(super) fn of(dir: &LoopDir, journal: Stamp, signing: &Signing, judged: &Judged) -> Self {
        Self { journal, last: Stamp::at(&signing.place(dir)), judged: judged.clone() }
    }
}

impl KnownJournals {
    /// Another list waits meanwhile: what this one reads, that one need not.
    pub(super) fn lock(&self) -> MutexGuard<'_, ListCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().folders.values().all(|folder| folder.loops.is_empty())
    }
}

impl ListCache {
    /// Those of a folder. The caller puts back the ones that still hold, so that nothing is kept of loops that are gone.
    pub(super) fn take(&mut self, folder: &Utf8Path) -> Folder {
        self.folders.remove(folder).unwrap_or_default()
    }

    pub(super) fn put(&mut self, folder: Utf8PathBuf, known: Folder) {
        self.folders.insert(folder, known);
    }

    pub(super) fn cost(&self, project: &Project, since: Timestamp) -> Option<Usage> {
        self.costs.get(&project.data).filter(|(then, _)| *then == since).map(|(_, usage)| *usage)
    }

    pub(super) fn put_cost(&mut self, project: &Project, since: Timestamp, usage: Usage) {
        self.costs.insert(project.data.clone(), (since, usage));
    }

    pub(super) fn forget_cost(&mut self, project: &Project) {
        self.costs.remove(&project.data);
    }

    /// Forgets what the catalog may not have any more.
    pub(super) fn forget_rows(&mut self) {
        self.costs.clear();
        for folder in self.folders.values_mut() {
            folder.has_rows = false;
            folder.loops.retain(|_, known| matches!(known, KnownLoop::Open(..)));
        }
    }
}
