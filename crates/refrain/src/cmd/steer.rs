//! `refrain steer`.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::event::Ask;
use refrain_core::view::StatusWord;
use refrain_engine::Brief;

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::{out, values};

/// Say something to the agent, in the prompt of the next attempt
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which loop
    id: Option<LoopId>,
    /// What to say
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
}

/// Which loops it can mean: those that will have a next attempt, or may.
pub(super) fn could_be(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled)
}

/// Hands the words over; returns once the loop has heard them.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain steer", could_be)?;
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        return Err(CliError::usage("TEXT is empty; accepted is what the agent is to be told"));
    }
    service.ask(&id, "be steered", Ask::Steer(words), out::tell_slow(&id))?;
    out::print(&format!("{id} will be told with its next attempt\n"));
    Ok(Code::Done.into())
}
