//! The one error type of this tool: a sentence for the person who ran it. No error is handled by kind, so it has none.

use std::fmt;

/// Why a task could not be done.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

pub(crate) fn fail<T>(sentence: impl Into<String>) -> Result<T> {
    Err(Failure(sentence.into()))
}

/// Adds to a lower error what was being done.
pub(crate) trait Doing<T> {
    /// `what` is put in front of the error: "read Cargo.toml: permission denied".
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
