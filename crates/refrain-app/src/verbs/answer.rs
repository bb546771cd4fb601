//! Answering a loop: its agent gets the text with its next attempt, and a loop that has stopped continues.

use refrain_core::r#loop::Grant;
use refrain_core::view::StatusWord;
use refrain_core::{LoopId, Refusal};
use refrain_engine::{EngineError, LoopRequest, Runner, Service};

use super::approve::how_to_decide;
use super::resume::{self, ResumeOutcome, notify};
use super::steer::{Steering, steer};
use super::{Slow, start};
use crate::error::Message;
use crate::{Action, Code, Context, RequestError};

pub enum AnswerOutcome {
    /// The loop had stopped, and may be driven.
    Runner(Box<Runner>),
    /// Its runner passes the text on.
    Sent,
}

/// Sends the text to the loop, and takes it over if it has stopped. One whose limits are used up keeps the text for the
/// `resume` that the error names.
pub fn answer(
    context: &Context,
    service: &Service,
    id: &LoopId,
    answer: &Steering,
    slow: Slow<'_>,
) -> Result<AnswerOutcome, RequestError> {
    context.check_on(Action::Answer, service, id)?;
    answer.check()?;
    let grant = Grant::default();
    resume::check(context, service, id, &grant)?;
    let status = service.status(id).map_err(|error| match error {
        EngineError::IsPlan(_) => RequestError::new(Code::Usage, error.to_string())
            .hint(format!("refrain plan tune {id} TASK --words TEXT --resume answers the agent of a task")),
        error => error.into(),
    })?;
    let has_stopped = status.has_stopped();
    let state = service.state(id)?;
    resume::check_plan(service, &state)?;
    let instead = match status.status {
        _ if status.question.is_some() => None,
        _ if state.awaits_approval().is_some() => {
            Some((": it waits for an approval", how_to_decide(&status)))
        }
        // It may end with this very attempt, and no agent would get the text.
        _ if !has_stopped => Some(("", format!("refrain steer {id} TEXT sends a text to its agent"))),
        StatusWord::Crashed | StatusWord::Paused => Some((
            "",
            format!(
                "refrain resume {id} continues it; refrain steer {id} TEXT before that sends a text to its agent"
            ),
        )),
        _ => None,
    };
    if let Some((why, hint)) = instead {
        return Err(RequestError::new(Code::Refused, format!("{id} asks nothing{why}")).hint(hint));
    }
    let lacking = match state.resume(&grant) {
        _ if !has_stopped => None,
        Err(Refusal::NothingGranted { used, flag }) => Some((used, flag)),
        Err(why) => {
            return Err(EngineError::Refused { id: id.clone(), what: LoopRequest::Answer, why }.into());
        }
        Ok(_) => None,
    };
    steer(context, service, id, answer, slow)?;
    if let Some((used, flag)) = lacking {
        let error = format!("{id} keeps the answer, but does not continue: {used}");
        let hint = Message::own(&format!("refrain resume {id} {flag} gives its agent the answer"));
        return Err(RequestError::new(Code::Refused, error).hint(hint).lacking(&used, &flag));
    }
    if !has_stopped {
        return Ok(AnswerOutcome::Sent);
    }
    Ok(match resume::resume(context, service, id, (&grant, false), Slow::Wait)? {
        ResumeOutcome::Runner(runner) => AnswerOutcome::Runner(runner),
        ResumeOutcome::Hurried => AnswerOutcome::Sent,
    })
}

/// Sends the text to the loop; one that has stopped continues in a process of its own.
pub fn answer_detached(
    context: &Context,
    service: &Service,
    id: &LoopId,
    text: &Steering,
    slow: Slow<'_>,
) -> Result<(), RequestError> {
    context.check_on(Action::Answer, service, id)?;
    context.check(Action::Detach)?;
    if let AnswerOutcome::Runner(runner) = answer(context, service, id, text, slow)? {
        let dir = &service.project().worktree;
        start::detach(context, (service, *runner), dir, &notify(context, service))?.1.reap();
    }
    Ok(())
}
