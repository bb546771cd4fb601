//! `refrain memory reflect`, hidden: asks an agent what an ended loop teaches.

use std::process::ExitCode;

use refrain_app::resolve::agents;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::evolution::Proposal;
use refrain_engine::Service;
use refrain_engine::config::AgentChoice;

use crate::out;

/// Ask the agent of [evolution] what a loop that is over teaches about the project's instructions
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The loop
    id: LoopId,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    if service.settings(AgentChoice::default(), true)?.config.evolution.agent.is_none() {
        let error = "no agent is set to reflect on loops";
        return Err(
            RequestError::usage(error).hint("[evolution] of your config.toml says who: refrain docs memory")
        );
    }
    out::print(&match reflect(&service, &args.id)? {
        Some(proposal) => format!("proposed: refrain memory proposals {} shows it\n", proposal.id),
        None => "it has nothing to propose\n".to_owned(),
    });
    Ok(Code::Done.into())
}

/// Asks the agent of the user's configuration, if there is one.
pub(super) fn reflect(service: &Service, id: &LoopId) -> Result<Option<Proposal>, RequestError> {
    let settings = service.settings(AgentChoice::default(), true)?;
    let evolution = &settings.config.evolution;
    let Some(agent) = evolution.agent.as_deref() else { return Ok(None) };
    let spec = service.spec(id)?;
    let worker = (&spec.agent, &spec.limits);
    let agent = agents::judge("evolution.agent", Some(agent), evolution.model.as_deref(), worker, &settings)?;
    Ok(service.reflect(id, &agent, evolution.max_cost)?)
}
