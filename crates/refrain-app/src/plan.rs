//! A plan to work on: its options, and the specification that they and the configuration make.

use camino::Utf8Path;
use refrain_core::LoopId;
use refrain_core::plan::PlanState;
use refrain_engine::{DetachedRunner, PlanRunner, Service};

use crate::options::notify::NotifyArgs;
use crate::verbs::start::drive_words;
use crate::{Action, Context, Note, RequestError, trust};

pub mod edit_tasks;
pub mod new_plan;
mod prepare;
mod source;
mod spec_args;
mod task_mode;
pub mod tune;

pub use prepare::{PreparedPlan, RunPlan};
pub use source::{Source, SourceArgs};
pub use spec_args::SpecArgs;
pub use task_mode::HowArgs;

/// Hands a plan to a process of its own: `refrain drive ID`. Returns the plan's state once that has taken over.
pub fn detach(
    context: &Context,
    (service, runner): (&Service, PlanRunner),
    dir: &Utf8Path,
    notify: &NotifyArgs,
) -> Result<(PlanState, DetachedRunner), RequestError> {
    context.check(Action::Detach)?;
    let mut words = drive_words(dir, runner.id(), notify);
    words.extend(service.trusts_once().then(|| "--yes".to_owned()));
    Ok(service.detach_plan(runner, &words)?)
}

/// Works on a plan in a process of its own, with the notify options of the configuration.
pub fn run_detached(
    context: &Context,
    request: RunPlan,
    note: Note<'_>,
) -> Result<(Service, LoopId), RequestError> {
    context.check(Action::Start)?;
    context.check(Action::Detach)?;
    context.typed.check()?;
    let named = request.name.clone();
    let prepared = PreparedPlan::runnable(context, request, note)?;
    prepared.check_trust(context)?;
    let too_long = prepared.over_budget(&prepared.texts(context)?);
    let PreparedPlan { service, settings, dir, spec, notes, .. } = prepared;
    let runner = service.start_plan(spec, named.as_ref())?;
    let trusted = trust::announce(context, &service);
    let id = runner.id().clone();
    let notify = NotifyArgs::default().or_configured(&settings.config.notify);
    notes
        .into_iter()
        .chain(too_long)
        .chain(trusted)
        .chain(notify.notes(context, &settings, false))
        .for_each(note);
    detach(context, (&service, runner), &dir, &notify)?.1.reap();
    Ok((service, id))
}
