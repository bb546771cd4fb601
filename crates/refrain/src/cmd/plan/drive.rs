//! Drives a plan in this process, watched by a person or a script, or hands it to a detached runner.

use std::process::ExitCode;

use camino::Utf8Path;

use refrain_app::options::notify::NotifyArgs;
use refrain_app::{Code, Context, RequestError, plan};
use refrain_core::plan::PlanState;
use refrain_core::view::plan as view;
use refrain_engine::{DETACHED_READY, PlanRunner, Service, Signals};

use crate::cmd::connect::fleet_plan::with_fleet;
use crate::plan::screen::PlanScreen;
use crate::run::{self, ShowArgs};
use crate::{notifier, out, telemetry};

/// Drives the plan until it stops, showing it; answers with the exit code of its end. Events up to `past` were shown before it was
/// resumed.
pub(super) fn in_foreground(
    context: &Context,
    service: &Service,
    runner: PlanRunner,
    show: &ShowArgs,
    past: u64,
) -> Result<ExitCode, RequestError> {
    let mut runner = with_fleet(context, runner);
    let (id, follower) = (runner.id().clone(), runner.follow());
    run::note_objection(context, show, out::is_watched());
    let progress = show.progress();
    let screen = (progress.is_some() || show.events).then(|| {
        let (mut screen, service) = (PlanScreen::new(progress, show.events, past), service.clone());
        screen.join(&service, runner.state());
        std::thread::spawn(move || screen.run(&service, follower))
    });
    let observers = observers(context, service, &mut runner, &show.notify);
    let driven = run::runtime()?.block_on(runner.drive(&context.host, Signals::Foreground, || {}));
    if let Some(screen) = screen {
        // It ends with the plan; if it panicked, the plan's own result counts.
        let _ = screen.join();
    }
    run::conclude(context, show, &id, observers, driven.map(|state| ended(&state)))
}

fn observers(
    context: &Context,
    service: &Service,
    runner: &mut PlanRunner,
    notify: &NotifyArgs,
) -> run::Observers {
    let telemetry = telemetry::begin(context, service, |to| runner.export(to));
    (notifier::begin(context, service, notify, |to| runner.notifier(to)), telemetry)
}

/// The status of a plan that has no runner.
fn ended(state: &PlanState) -> view::PlanStatus {
    view::status(state, &Default::default(), Some(false), refrain_engine::now())
}

/// Hands the plan to a process of its own.
pub(super) fn detached(
    context: &Context,
    service: &Service,
    runner: PlanRunner,
    dir: &Utf8Path,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let id = runner.id().clone();
    run::note_objection(context, show, false);
    if !show.quiet {
        notifier::note_objection(context, service);
    }
    let _ = plan::detach(context, (service, runner), dir, &show.notify)?;
    if show.json {
        out::print_json(&service.plan_status(&id)?)?;
    } else if !show.quiet {
        out::print(&format!("{id}\n"));
        let next = format!("refrain watch {id}, refrain plan status {id}, refrain plan pause {id}");
        out::tell_line("", &format!("runs in the background: {next}"));
    }
    Ok(Code::Done.into())
}

/// Drives the plan without a terminal, as a detached runner. It reports that it is ready, or why it is not.
pub(crate) fn alone(
    context: &Context,
    service: &Service,
    runner: PlanRunner,
    notify: &NotifyArgs,
) -> Result<ExitCode, RequestError> {
    let mut runner = with_fleet(context, runner);
    let id = runner.id().clone();
    let ready = || out::print(&format!("{DETACHED_READY}\n"));
    let observers = observers(context, service, &mut runner, notify);
    let driven = run::runtime()?.block_on(runner.drive(&context.host, Signals::Detached, ready));
    let show = ShowArgs { notify: notify.clone(), ..ShowArgs::default() };
    run::conclude(context, &show, &id, observers, driven.map(|state| ended(&state)))
}
