//! What no journal can hold.

use crate::event::FORMAT;

/// A record that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The journal does not begin with a start.
    #[error("record {0} should be the loop's start")]
    NoStart(u64),
    /// Records are missing, or duplicated.
    #[error("record {found} stands where {expected} should")]
    Sequence {
        /// The number that should be there.
        expected: u64,
        /// The number that is.
        found: u64,
    },
    /// Time went backwards.
    #[error("record {0} is older than the one before it")]
    Time(u64),
    /// The machine cannot do this from its present state.
    #[error("record {seq} ({what}) cannot follow the one before it")]
    Order {
        /// The record's number.
        seq: u64,
        what: &'static str,
    },
    /// Another version's format.
    #[error(
        "the journal has format {found}, this version of Refrain reads 1 to {FORMAT}; use the version that wrote it"
    )]
    Format {
        /// The journal's format.
        found: u32,
    },
}
