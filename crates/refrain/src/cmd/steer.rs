//! `refrain steer`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::event::Ask;

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;

/// Say something to the agent, in the prompt of the next attempt
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which loop
    id: LoopId,
    /// What to say
    #[arg(required = true, value_name = "TEXT")]
    words: Vec<String>,
}

/// The longest text, in bytes: it stands in a prompt, and in the journal for good.
const MOST: usize = 32 << 10;

/// Hands the words over; returns once the loop has heard them.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        return Err(CliError::usage("TEXT is empty; accepted is what the agent is to be told"));
    }
    if words.len() > MOST {
        let error = format!("TEXT is {} bytes long; accepted are at most {MOST}", words.len());
        return Err(CliError::usage(error).hint("put it into a file, and name that"));
    }
    context.service()?.ask(&args.id, "be steered", Ask::Steer(words))?;
    out::print(&format!("{} will be told with its next attempt\n", args.id));
    Ok(Code::Done.into())
}
