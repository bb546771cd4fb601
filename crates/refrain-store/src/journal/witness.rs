//! What makes a journal known beyond this machine. With a witness, a record that was committed as
//! [`Durability::Replicated`](super::Durability::Replicated) outlives the machine; and once another machine has the
//! loop, nothing more of this one is known.

use std::fmt;

pub trait Witness: Send + Sync + fmt::Debug {
    /// Makes a journal of these bytes and this many records known, in one try. Blocks, for some seconds at most.
    fn replicate(&self, seq: u64, journal: &[u8]) -> Result<(), Unreplicated>;

    /// Whether the record with this number is known beyond this machine.
    fn covers(&self, seq: u64) -> bool;
}

/// Why a record is not known beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreplicated {
    /// It never will be.
    #[error("another machine has the loop")]
    Fenced,
    /// It is not yet, or it is not known that it is.
    #[error("the journal cannot be replicated: {0}")]
    Unreachable(String),
}
