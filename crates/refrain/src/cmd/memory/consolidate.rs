//! `refrain memory consolidate`, hidden: learns from an ended loop in a process of its own. The loop's runner starts it
//! and waits only for its first line; later output goes to the loop's `runner.log`.

use std::process::ExitCode;

use refrain_app::resolve::agents;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::spec::Limits;
use refrain_engine::config::AgentChoice;
use refrain_engine::{DETACHED_READY, ReflectionOutcome, Service, leave_terminal};

use super::reflect::reflect;
use crate::out;

/// Learn from a loop that is over
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    id: LoopId,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    leave_terminal();
    out::print(&format!("{DETACHED_READY}\n"));
    let learnt = look_back(&service, &args.id);
    // An error in one must not prevent the other.
    let reflected = reflect(&service, &args.id).inspect_err(|_| {
        if let Err(error) = &learnt {
            out::report(error);
        }
    });
    if let Some(proposal) = reflected? {
        out::tell_line("", &format!("proposed: refrain memory proposals {} shows it", proposal.id));
    }
    learnt?;
    Ok(Code::Done.into())
}

/// Asks the judge of the user's configuration, if there is one.
fn look_back(service: &Service, id: &LoopId) -> Result<(), RequestError> {
    let settings = service.settings(AgentChoice::default(), true)?;
    let Some(judge) = settings.config.memory.judge.as_deref() else { return Ok(()) };
    let spec = service.spec(id)?;
    // It counts against none of the loop's limits, so it need not be an agent that enforces them.
    let limits = Limits { max_cost: None, max_tokens: None, ..spec.limits };
    let judge = agents::judge("memory.judge", Some(judge), None, (&spec.agent, &limits), &settings)?;
    match service.look_back(id, &judge)? {
        ReflectionOutcome::Remembered(count) => {
            out::tell_line("", &format!("learned from {id}: {count} memories"))
        }
        ReflectionOutcome::Nothing => {}
    }
    Ok(())
}
