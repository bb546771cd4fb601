use std::process::ExitCode;

use refrain_app::{Code, RequestError};
use refrain_core::LoopId;
use refrain_core::view::StatusWord;
use refrain_engine::{PlanFollower, Service};

use crate::out::{self, Target};
use crate::plan::screen::PlanScreen;
use crate::plan::status_text::{self, Art};
use crate::render::phrase;

/// Shows the plan's status, and then its events until it has stopped; scripts get every event.
pub(crate) fn watch(
    service: &Service,
    (id, follower): (&LoopId, PlanFollower),
    events: bool,
) -> Result<ExitCode, RequestError> {
    let state = service.plan(id)?;
    let progress = (!events).then_some(Target::Stdout);
    let past = if events { 0 } else { state.seq };
    if !events {
        out::print(&status_text::text(&service.plan_status(id)?, Art::current(), refrain_engine::now()));
    }
    let mut screen = PlanScreen::new(progress, events, past);
    screen.join(service, &state);
    screen.run(service, follower);
    let view = service.plan_status(id)?;
    if !events && view.status == StatusWord::Crashed {
        let word = phrase::coloured(view.tone(), view.status.as_str());
        out::print(&format!("{word}: {}\n  next: {}\n", view.reason, view.needs.unwrap_or_default()));
    }
    Ok(Code::Done.into())
}
