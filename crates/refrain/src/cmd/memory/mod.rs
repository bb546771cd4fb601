//! `refrain memory`: what Refrain remembers of ended loops. One file for each verb; shared code is here.

mod add;
mod apply;
mod consolidate;
mod dismiss;
mod export;
mod forget;
mod list;
pub(super) mod proposals;
mod reflect;
mod search;
mod table;

use std::process::ExitCode;

use refrain_app::{Action, Context, RequestError};
use refrain_engine::config::AgentChoice;

use crate::out;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain memory search \"flaky tests\"
  refrain memory add \"The database needs the port 5433.\"")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Search(search::Args),
    List(list::Args),
    Add(add::Args),
    Forget(forget::Args),
    Export(export::Args),
    Proposals(proposals::Args),
    Apply(apply::Args),
    Dismiss(dismiss::Args),
    #[command(hide = true)]
    Reflect(reflect::Args),
    #[command(hide = true)]
    Consolidate(consolidate::Args),
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        match &self.verb {
            Verb::Search(_) | Verb::List(_) | Verb::Export(_) | Verb::Proposals(_) => Action::Look,
            Verb::Add(_)
            | Verb::Forget(_)
            | Verb::Apply(_)
            | Verb::Dismiss(_)
            | Verb::Reflect(_)
            | Verb::Consolidate(_) => Action::ChangeMemories,
        }
    }
}

/// A configuration error does not prevent listing, but may explain missing entries.
fn mention_configuration_error(context: &Context) -> Result<(), RequestError> {
    let settings = context.service()?.settings(AgentChoice::default(), context.has_variables());
    if let Err(error) = settings {
        out::tell_line("", &format!("note: nothing of the configuration counts here: {error}"));
    }
    Ok(())
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    if let Verb::Search(_) | Verb::List(_) | Verb::Proposals(_) = &args.verb {
        mention_configuration_error(context)?;
    }
    match &args.verb {
        Verb::Search(args) => search::run(context, args),
        Verb::List(args) => list::run(context, args),
        Verb::Add(args) => add::run(context, args),
        Verb::Forget(args) => forget::run(context, args),
        Verb::Export(args) => export::run(context, args),
        Verb::Proposals(args) => proposals::run(context, args),
        Verb::Apply(args) => apply::run(context, args),
        Verb::Dismiss(args) => dismiss::run(context, args),
        Verb::Reflect(args) => reflect::run(context, args),
        Verb::Consolidate(args) => consolidate::run(context, args),
    }
}
