//! `refrain plan`: many tasks, in waves.

use refrain_app::{Action, Context, RequestError};

mod cancel;
pub(crate) mod drive;
mod edit_tasks;
mod new;
mod pause;
mod preview;
mod rehearsal;
mod resume;
pub(crate) mod run;
mod selection;
mod status;
mod tune;
mod watch;
mod waves;

use std::process::ExitCode;

pub(crate) use {rehearsal::Rehearsal, tune::TuneOutput};

use preview::{check, show};
pub(crate) use {resume::resume, watch::watch};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan run --tag my-feature --jobs 4
  refrain plan status")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    New(new::Args),
    Run(Box<run::Args>),
    Check(Box<check::Args>),
    Waves(waves::Args),
    Show(Box<show::Args>),
    Status(status::Args),
    Resume(resume::Args),
    Pause(pause::Args),
    Cancel(cancel::Args),
    Tune(tune::Args),
    Add(edit_tasks::AddArgs),
    Retry(edit_tasks::RetryArgs),
    Block(edit_tasks::BlockArgs),
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        match &self.verb {
            Verb::New(_) | Verb::Run(_) => Action::Start,
            Verb::Check(_) | Verb::Waves(_) | Verb::Show(_) | Verb::Status(_) => Action::Look,
            Verb::Resume(_) => Action::ResumePlan,
            Verb::Pause(_) => Action::Pause,
            Verb::Cancel(_) => Action::Cancel,
            Verb::Tune(_) => Action::Tune,
            Verb::Add(_) | Verb::Retry(_) | Verb::Block(_) => Action::EditTasks,
        }
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    match args.verb {
        Verb::New(args) => new::run(context, args),
        Verb::Run(args) => run::run(context, *args),
        Verb::Check(args) => check::run(context, *args),
        Verb::Waves(args) => waves::run(context, &args),
        Verb::Show(args) => show::run(context, *args),
        Verb::Status(args) => status::run(context, &args),
        Verb::Resume(args) => resume::run(context, &args),
        Verb::Pause(args) => pause::run(context, &args),
        Verb::Cancel(args) => cancel::run(context, &args),
        Verb::Tune(args) => tune::run(context, &args),
        Verb::Add(args) => edit_tasks::add(context, args),
        Verb::Retry(args) => edit_tasks::retry(context, &args),
        Verb::Block(args) => edit_tasks::block(context, &args),
    }
}
