//! `refrain plan`: many tasks, in waves.

mod cancel;
mod check;
pub(crate) mod drive;
mod pause;
mod prepare;
mod rehearsal;
mod resume;
pub(crate) mod run;
mod show;
mod source;
mod spec_args;
mod status;
mod tune;
mod watch;
mod waves;
mod which;

use std::process::ExitCode;

use crate::cli::Context;
use crate::error::CliError;

pub(super) use {cancel::cancel, pause::pause, resume::resume, status::show as show_status, watch::watch};
pub(crate) use {rehearsal::Rehearsal, tune::Tuned};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Run(Box<run::Args>),
    Check(Box<check::Args>),
    Waves(waves::Args),
    Show(Box<show::Args>),
    Status(status::Args),
    Resume(resume::Args),
    Pause(pause::Args),
    Cancel(cancel::Args),
    Tune(tune::Args),
}

/// Does what the verb says.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    match args.verb {
        Verb::Run(args) => run::run(context, *args),
        Verb::Check(args) => check::run(context, *args),
        Verb::Waves(args) => waves::run(context, &args),
        Verb::Show(args) => show::run(context, *args),
        Verb::Status(args) => status::run(context, &args),
        Verb::Resume(args) => resume::run(context, &args),
        Verb::Pause(args) => pause::run(context, &args),
        Verb::Cancel(args) => cancel::run(context, &args),
        Verb::Tune(args) => tune::run(context, &args),
    }
}
