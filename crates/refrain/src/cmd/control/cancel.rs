use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::verbs::{Outcome, Slow, Urgent, cancel as app};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_core::{LoopId, LoopState};
use refrain_engine::{Brief, ByKind, ListEntry, Service};

use crate::cmd::connect::{fleet, fleet_plan};
use crate::cmd::state_file::{self, StateFile};
use crate::plan::leftovers;
use crate::render::{commits, phrase};
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain cancel docs-3f9c
  refrain cancel docs-3f9c --now")]
pub(crate) struct Args {
    /// The loop or plan [default: the only one that has not ended]
    #[arg(conflicts_with = "all")]
    id: Option<LoopId>,
    /// The loop that this file of another system shows, such as .descartes/loop-state.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "all"], hide_short_help = true)]
    state_file: Option<Utf8PathBuf>,
    /// Every loop and plan of this project that has not ended
    #[arg(long)]
    all: bool,
    /// End the agent now
    #[arg(long)]
    now: bool,
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        if self.all { Action::CancelAll } else { Action::Cancel }
    }
}

/// Asks for the end; returns once the loop has received the request.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    if !args.all {
        let id = match &args.state_file {
            None => values::only_one(
                &service,
                args.id.as_ref(),
                ("refrain cancel", "every loop here is completed or cancelled"),
                is_candidate,
            )?,
            Some(file) => own(context, &service, file)?,
        };
        if let Some(code) = fleet::ask(context, &service, (&id, Action::Cancel), || {
            Ok(FleetRequest::Cancel { now: args.now })
        })? {
            return Ok(code);
        }
        out::print(&cancel(context, &service, &id, args.now, Slow::Note(&mut out::tell_slow))?);
        return Ok(Code::Done.into());
    }
    let rows = service.list()?;
    let open: Vec<_> = rows
        .into_iter()
        .filter_map(|row| match row {
            ListEntry::Loop(status) if is_candidate(&status) => Some(status.id.clone()),
            ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
        })
        .collect();
    if open.is_empty() {
        out::print("No running loops to cancel.\n");
    }
    for id in &open {
        out::print(&cancel(context, &service, id, args.now, Slow::Note(&mut out::tell_slow))?);
    }
    Ok(Code::Done.into())
}

/// The loop that a file shows; only what Refrain drives can be cancelled.
fn own(context: &Context, service: &Service, file: &Utf8Path) -> Result<LoopId, RequestError> {
    match state_file::read(context, service, file)? {
        StateFile::Own(id) => Ok(id),
        StateFile::Foreign(found) => {
            let error = format!(
                "--state-file {file}: it is a loop of {}, which Refrain does not drive",
                found.system
            );
            Err(RequestError::new(Code::Refused, error).hint("end it there; the file is only read"))
        }
    }
}

/// Which loops it can mean: those that are not over.
pub(crate) fn is_candidate(status: &Brief) -> bool {
    !matches!(status.status, StatusWord::Completed | StatusWord::Cancelled)
}

/// Cancels this loop or plan; returns a text about the result.
pub(crate) fn cancel(
    context: &Context,
    service: &Service,
    id: &LoopId,
    now: bool,
    slow: Slow<'_>,
) -> Result<String, RequestError> {
    Ok(match app::cancel(context, service, id, Urgent { now }, slow)? {
        Outcome::Answered(state) => match &*state {
            ByKind::Loop(state) => of_loop(id, state, now),
            ByKind::Plan(state) => {
                fleet_plan::tell_tasks(context, service, state, &FleetRequest::Cancel { now: true })?;
                of_plan(id, state.ended.is_some(), now, &service.plan_status(id)?)
            }
        },
        // The loop has ended already (seed 000: exit 0).
        Outcome::Over(word) => format!("{id} is already {word}\n"),
    })
}

fn of_loop(id: &LoopId, state: &LoopState, now: bool) -> String {
    let when = match (state.ended.is_some(), now) {
        (true, _) => "is cancelled",
        (false, true) => "is being cancelled",
        (false, false) => "will be cancelled after this iteration (--now ends it at once)",
    };
    let progress = phrase::progress(state.iteration, state.limits.max_iterations);
    let mut words = format!("{id} {when}; it was at iteration {progress}\n");
    if state.git.released {
        let released = commits::released(state);
        words.push_str(&format!("{}\n", printable(&released)));
    }
    words
}

fn of_plan(id: &LoopId, ended: bool, now: bool, view: &PlanStatus) -> String {
    let when = match (ended, now) {
        (true, _) => "is cancelled",
        (false, true) => "is being cancelled",
        (false, false) => "will be cancelled after the iterations at work (--now ends them at once)",
    };
    let have = if view.tasks_done == 1 { "has" } else { "have" };
    let all = phrase::counted(u32::try_from(view.tasks_total).unwrap_or(u32::MAX), "task", "tasks");
    let without = match view.not_tried().count() {
        0 => String::new(),
        count => format!(", and {count} not tried"),
    };
    let landed = format!("{} of {all} {have} landed{without}", view.tasks_done);
    let mut words = format!("{id} {when}; {landed}\n");
    for left in [leftovers::behind(view), leftovers::branches(view), leftovers::uncommitted(view)]
        .into_iter()
        .flatten()
    {
        words.push_str(&format!("  {left}\n"));
    }
    words
}
