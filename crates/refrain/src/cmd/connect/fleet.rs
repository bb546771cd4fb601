//! `refrain fleet` and `refrain worker`: the words were parsed, and the program of the fleet does them.

use std::process::ExitCode;

use refrain_app::{Context, RequestError};

use crate::fleet;

/// Becomes that program, with what was typed from the verb on.
pub(crate) fn run(context: &Context) -> Result<ExitCode, RequestError> {
    let words = std::env::args().skip(1).skip_while(|word| !matches!(word.as_str(), "fleet" | "worker"));
    fleet::become_program(context, &words.collect::<Vec<_>>())
}
