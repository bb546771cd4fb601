//! `refrain memory reflect`, hidden: asks an agent what a loop that is over teaches. A loop's end starts it, detached.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_engine::config::Chosen;
use refrain_engine::config::keys::Evolution;
use refrain_engine::{DETACHED_READY, leave_terminal};

use super::only_from_outside;
use crate::cli::Context;
use crate::cmd::start::others;
use crate::error::{CliError, Code};
use crate::out;

/// Ask the agent of [evolution] what a loop that is over teaches about the project's instructions
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The loop
    id: LoopId,
    /// Nobody waits for it
    #[arg(long)]
    detached: bool,
}

/// Asks, and says what came of it.
pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    if args.detached {
        leave_terminal();
        out::print(&format!("{DETACHED_READY}\n"));
    }
    only_from_outside(context, "reflect on loops")?;
    let service = context.service()?;
    let evolution = Evolution::of_the_user(&context.host.config_home);
    let Some(agent) = evolution.agent.as_deref() else {
        let error = "nobody is to reflect on loops";
        return Err(CliError::usage(error).hint("[evolution] of your config.toml says who: docs/memory.md"));
    };
    let settings = service.settings(Chosen::default(), true)?;
    let spec = service.state(&args.id)?.spec;
    let worker = (&spec.agent, &spec.limits);
    let agent = others::judge("evolution.agent", Some(agent), evolution.model.as_deref(), worker, &settings)?;
    let text = match service.reflect(&args.id, &agent, evolution.max_cost)? {
        Some(proposal) => format!("proposed: refrain memory proposals {} shows it\n", proposal.id),
        None => "it has nothing to propose\n".to_owned(),
    };
    if !args.detached {
        out::print(&text);
    }
    Ok(Code::Done.into())
}
