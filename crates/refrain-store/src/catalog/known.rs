//! The journals of open loops as this process read them last, for a server that lists the same loops again and again.
//! One is used only if its journal, and all that its signatures are judged by, are as they were then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopState;

use super::stamp::Stamp;
use crate::access::signing::Signing;
use crate::project::layout::LoopDir;

/// Shared by all its copies.
#[derive(Clone, Debug, Default)]
pub struct KnownJournals(Arc<Mutex<HashMap<Utf8PathBuf, Folder>>>);

/// By the names of their folders.
pub(super) type Folder = HashMap<String, KnownJournal>;

/// What a state was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    journal: Stamp,
    signing: [Option<Stamp>; 3],
}

#[derive(Debug)]
pub(super) struct KnownJournal {
    pub(super) basis: Basis,
    pub(super) state: Arc<LoopState>,
}

impl Basis {
    /// Taken before the journal is read: what is written in between makes the next look read it again.
    pub(super) fn of(dir: &LoopDir, journal: Stamp, signing: &Signing) -> Self {
        Self { journal, signing: signing.judged_by(dir).map(|path| Stamp::at(&path)) }
    }
}

impl KnownJournals {
    /// Those of a folder. The caller puts back the ones that still hold, so that nothing is kept of loops that are gone.
    pub(super) fn take(&self, folder: &Utf8Path) -> Folder {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(folder).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().all(Folder::is_empty)
    }

    pub(super) fn put(&self, folder: Utf8PathBuf, known: Folder) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(folder, known);
    }
}
