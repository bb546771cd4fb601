//! `refrain memory`: what is remembered of loops that are over. A file a verb; what they share is here.

mod add;
mod apply;
mod consolidate;
mod dismiss;
mod export;
mod forget;
mod list;
mod outside;
pub(super) mod proposals;
mod reflect;
mod search;
mod told;

use std::process::ExitCode;

use refrain_engine::config::Chosen;
use refrain_engine::{EvolutionError, MemoryError, RememberError, chain};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;

#[derive(Debug, clap::Args)]
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

/// What is wrong with the configuration keeps nobody from looking, but it may be why there is less to see.
fn mention_what_cannot_be_used(context: &Context) -> Result<(), CliError> {
    let settings = context.service()?.settings(Chosen::default(), context.inside.is_none());
    if let Err(error) = settings {
        out::tell_line("", &format!("note: nothing of the configuration counts here: {error}"));
    }
    Ok(())
}

/// Does what the verb says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    if let Verb::Search(_) | Verb::List(_) | Verb::Proposals(_) = &args.verb {
        mention_what_cannot_be_used(context)?;
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

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        let hint = match &error {
            MemoryError::Damaged(_) => Some("the next time something is remembered, a new one is begun"),
            MemoryError::Newer => Some("use that version"),
            MemoryError::Unreachable(_) => Some("try again: somebody else may be writing it"),
            MemoryError::Disk(_) => None,
        };
        let error = Self::new(Code::Failed, chain(&error));
        hint.into_iter().fold(error, Self::hint)
    }
}

impl From<EvolutionError> for CliError {
    fn from(error: EvolutionError) -> Self {
        let (code, hint) = match &error {
            EvolutionError::Engine(_) => match error {
                EvolutionError::Engine(error) => return error.into(),
                other => return Self::new(Code::Failed, chain(&other)),
            },
            EvolutionError::None(_) => (Code::NotFound, "refrain memory proposals shows what there is"),
            EvolutionError::Decided { .. } => {
                (Code::Refused, "refrain memory proposals shows what else there is")
            }
            EvolutionError::Changed(_) => (
                Code::Refused,
                "add what you want of it by hand, then refrain memory dismiss; nothing was changed",
            ),
            EvolutionError::Useless(_) => (Code::Refused, "refrain list shows loops that ended"),
            EvolutionError::Fault(_) => (Code::Failed, "nothing was changed"),
            EvolutionError::Disk(_) => (Code::Failed, "nothing was changed"),
        };
        Self::new(code, chain(&error)).hint(hint)
    }
}

impl From<RememberError> for CliError {
    fn from(error: RememberError) -> Self {
        match error {
            RememberError::File(error) => error.into(),
            RememberError::Empty => Self::usage("TEXT has no words; accepted is what is to be remembered"),
            RememberError::Secret(_) => Self::usage(chain(&error)).hint("say it without the secret"),
        }
    }
}
