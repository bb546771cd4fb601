//! `refrain research`: `refrain start --mode research`, as in seed 002.

use std::process::ExitCode;

use refrain_app::{Context, RequestError};

use crate::cmd::launch::start::{self, Options};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A number alone is the maximum of iterations. All other options are those of refrain start: refrain docs modes

Examples:
  refrain research --agent claude
  refrain research 10 --agent claude
  refrain research --agent claude \\
    \"Which parser fits?\""
)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    start::run(context, start::Args::of_mode("research", args.options)?)
}
