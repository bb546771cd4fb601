//! What only a person may do, from outside of an attempt.

use crate::cli::Context;
use crate::error::{CliError, Code};

/// Refuses what changes memories from inside an attempt: what all later loops are told is a person's to say, and an agent's
/// words would count there as a person's.
pub(super) fn only_from_outside(context: &Context, what: &str) -> Result<(), CliError> {
    let Some(own) = &context.inside else { return Ok(()) };
    let error = format!("loop {own} cannot {what} from inside an attempt");
    Err(CliError::new(Code::Refused, error)
        .hint("a person does that, from outside; refrain memory search is free"))
}
