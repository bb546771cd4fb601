//! `refrain plan`: many tasks, in waves.

mod check;
mod show;
mod source;
mod spec_args;
mod waves;

use std::process::ExitCode;

use crate::cli::Context;
use crate::error::CliError;

/// Work on many tasks that depend on each other
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Check(check::Args),
    Waves(waves::Args),
    Show(show::Args),
}

/// Does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    match &args.verb {
        Verb::Check(args) => check::run(context, args),
        Verb::Waves(args) => waves::run(context, args),
        Verb::Show(args) => show::run(context, args),
    }
}
