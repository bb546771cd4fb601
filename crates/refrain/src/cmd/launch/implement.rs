//! `refrain implement`: `refrain start --mode implement`, as in seed 002.

use std::process::ExitCode;

use refrain_app::{Context, RequestError};

use crate::cmd::launch::start::{self, Options};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
}

const EXAMPLES: &str = "Examples:
  refrain implement 20 --agent claude
  refrain implement --commit-only \\
    --agent claude \"Build the parser.\"

A number alone is the maximum of iterations. All else is as with start: refrain start --help, docs/modes.md";

/// Starts it.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    start::run(context, start::Args::of_mode("implement", args.options)?)
}
