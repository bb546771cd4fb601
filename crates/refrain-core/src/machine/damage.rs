use crate::event::FORMAT;

/// A record that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("record {0} should be the loop's start")]
    NoStart(u64),
    #[error("record {found} stands where {expected} should")]
    Sequence { expected: u64, found: u64 },
    #[error("record {0} is older than the one before it")]
    Time(u64),
    #[error("record {seq} ({what}) cannot follow the one before it")]
    Order { seq: u64, what: &'static str },
    #[error(
        "the journal has format {found}, this version of Refrain reads 1 to {FORMAT}; use the version that wrote it"
    )]
    Format { found: u32 },
}
