//! What a journal adds up to, whatever it is the journal of: a loop, or a plan. The reader and the only writer of journals
//! (refrain-store) know no more of either than this.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{Event, Record};
use crate::r#loop::{Damage, LoopState};

/// The state that a list of events adds up to.
pub trait Fold: Clone {
    /// What happens to it.
    type Event: Serialize + DeserializeOwned;

    /// The state behind the first record.
    ///
    /// # Errors
    /// [`Damage`] where that cannot be a first record.
    fn begin(record: &Record<Self::Event>) -> Result<Self, Damage>;

    /// The state behind one more record; unchanged where that cannot follow.
    ///
    /// # Errors
    /// [`Damage`] that says why not.
    fn apply(&mut self, record: &Record<Self::Event>) -> Result<(), Damage>;

    /// The number of the last record.
    fn seq(&self) -> u64;

    /// When the last record was made.
    fn updated_at(&self) -> Timestamp;

    /// What is recorded where the journal ended in half a line of `bytes` bytes, which lies beside it now.
    fn torn(bytes: u64, kept_as: String) -> Self::Event;

    /// What is recorded where the journal was deleted or changed under its writer, and `bytes` bytes were written back. What another
    /// process had made of it lies beside it.
    fn restored(bytes: u64, kept_as: Option<String>) -> Self::Event;
}

impl Fold for LoopState {
    type Event = Event;

    fn begin(record: &Record) -> Result<Self, Damage> {
        Self::begin(record)
    }

    fn apply(&mut self, record: &Record) -> Result<(), Damage> {
        self.apply(record)
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn torn(bytes: u64, kept_as: String) -> Event {
        Event::JournalTorn { bytes, kept_as }
    }

    fn restored(bytes: u64, kept_as: Option<String>) -> Event {
        Event::JournalRestored { bytes, kept_as }
    }
}
