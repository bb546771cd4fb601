//! What a server remembers of the loops that it lists again and again: the states of open loops. A state is used only if
//! its journal, and all that its signatures are judged by, are as they were then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use refrain_core::LoopState;

use super::stamp::Stamp;
use crate::access::signing::Signing;
use crate::project::layout::LoopDir;

/// Shared by all its copies.
#[derive(Clone, Debug, Default)]
pub struct KnownJournals(Arc<Mutex<States>>);

/// By the folder that they are on, and the names of their own.
pub(super) type States = HashMap<Utf8PathBuf, HashMap<String, (Basis, Arc<LoopState>)>>;

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
    pub(super) fn lock(&self) -> MutexGuard<'_, States> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().values().all(HashMap::is_empty)
    }
}
