//! What a journal adds up to, whatever it is the journal of: a loop, or a plan. The reader and the only writer of journals
//! (refrain-store) know no more of either than this.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{Event, Record};
use crate::ids::LoopId;
use crate::r#loop::{Damage, LoopState};
use crate::signature::{Signatures, Signed, SignedKind};

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

    /// What the journal is of.
    fn id(&self) -> &LoopId;

    /// The kind of a record with this event, if it is signed.
    fn signed(event: &Self::Event) -> Option<SignedKind>;

    /// Whether an end may stand on what this event says: whoever forges an end forges it too.
    fn is_result(event: &Self::Event) -> bool;

    /// What the signatures of its journal come to.
    fn judge(&self, records: &[Signed]) -> Signatures;

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

    fn id(&self) -> &LoopId {
        &self.spec.id
    }

    fn signed(event: &Event) -> Option<SignedKind> {
        event.signed()
    }

    fn is_result(event: &Event) -> bool {
        matches!(event, Event::AttemptFinished(_))
    }

    fn judge(&self, records: &[Signed]) -> Signatures {
        Signatures::of(records, self.ended.is_some())
    }

    fn torn(bytes: u64, kept_as: String) -> Event {
        Event::JournalTorn { bytes, kept_as }
    }

    fn restored(bytes: u64, kept_as: Option<String>) -> Event {
        Event::JournalRestored { bytes, kept_as }
    }
}
