//! Drives a loop in this process, watched by a person or a script: shared by `start` and `resume`.

use std::process::ExitCode;

use camino::Utf8Path;
use clap::Args;
use refrain_app::options::heading;
use refrain_app::options::notify::NotifyArgs;
use refrain_app::verbs::start;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::view::{self, Alive};
use refrain_engine::config::keys::Notify;
use refrain_engine::{EngineError, Exporter, Notifier, Remembrance, Runner, Service, Signals, chain};
use serde::Serialize;

use crate::notify::{self, StopNotice};
use crate::out::Target;
use crate::render::live::{Live, StatusStyle};
use crate::render::screen::Screen;
use crate::{notifier, out, telemetry};

// How to show a run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = heading::SHOWN)]
pub(crate) struct ShowArgs {
    /// Run in the background, in a process of its own
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print the final status as a JSON object; progress goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the journal's events on stdout as they happen, one JSON object a line; progress goes to stderr. With --json the
    /// last line is the final status object
    #[arg(long, conflicts_with = "detach")]
    pub(crate) events: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) notify: NotifyArgs,
}

impl ShowArgs {
    pub(crate) fn or_configured(self, notify: &Notify) -> Self {
        Self { notify: self.notify.or_configured(notify), ..self }
    }

    pub(crate) fn progress(&self) -> Option<Target> {
        match (self.quiet, self.json || self.events) {
            (true, _) => None,
            (false, true) => Some(Target::Stderr),
            (false, false) => Some(Target::Stdout),
        }
    }
}

/// Drives the loop, here or in a process of its own.
pub(crate) fn drive(
    context: &Context,
    service: &Service,
    runner: Runner,
    dir: &Utf8Path,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    // A loop that would end at once is not handed to a detached runner.
    match show.detach && !runner.ends_at_once() {
        true => detached(context, service, runner, dir, show),
        false => in_foreground(context, service, runner, show),
    }
}

/// Drives the loop until it stops, showing it; answers with the exit code of its end.
fn in_foreground(
    context: &Context,
    service: &Service,
    runner: Runner,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let (follower, id) = (runner.follow(), runner.id().clone());
    note_objection(context, show, out::is_watched());
    let progress = show.progress();
    let screen = (progress.is_some() || show.events).then(|| {
        let manner =
            if show.json || show.events { StatusStyle::Silent } else { StatusStyle::of(context, progress) };
        let screen = Screen::new(progress, show.events, Live::new(manner, refrain_engine::now()))
            .with_size(service.clone());
        std::thread::spawn(move || screen.run(follower))
    });
    let telemetry = telemetry::begin(context, service, |to| runner.export(to));
    let notifier = notifier::begin(context, service, &show.notify, |to| runner.notifier(to));
    let remembrance = runner.remembrance();
    let driven = runtime()?.block_on(runner.drive(&context.host, Signals::Foreground, || {}));
    if let Some(screen) = screen {
        // It ends with the loop; if it panicked, the loop's own result counts.
        let _ = screen.join();
    }
    let mut driven = driven.map(|state| view::status(&state, Alive::NO_RUNNER));
    if let Some(status) = driven.as_mut().ok().filter(|_| show.json) {
        // The runner signs what it writes; whether that is believed is for a reader to say.
        status.signed = context.service()?.status(&id).ok().and_then(|read| read.signed);
    }
    let concluded = conclude(context, show, &id, (notifier, telemetry), driven);
    tell_forgotten(&remembrance);
    concluded
}

/// Who tells others of what this process drives.
pub(crate) type Observers = (Option<Notifier>, Option<Exporter>);

/// Prints and tells how what was driven here ended; answers with the exit code of that.
pub(crate) fn conclude<S: Serialize>(
    context: &Context,
    show: &ShowArgs,
    id: &LoopId,
    (notifier, telemetry): Observers,
    driven: Result<S, EngineError>,
) -> Result<ExitCode, RequestError>
where
    for<'a> StopNotice<'a>: From<&'a S>,
{
    let printed = match (&driven, show.json, show.events) {
        (Ok(status), true, true) => out::print_json_line(status),
        (Ok(status), true, false) => out::print_json(status),
        (Ok(_), false, _) | (Err(_), ..) => Ok(()),
    };
    // Also if the reader has gone.
    match &driven {
        Ok(status) => notify::tell(&show.notify, context, id, &status.into()),
        Err(error) => notify::tell_failure(&show.notify, context, id.as_str(), &chain(error)),
    }
    notifier::finish(notifier);
    telemetry::finish(telemetry);
    let status = driven?;
    printed?;
    Ok(Code::from(StopNotice::from(&status).status).into())
}

/// Reports why a loop will not be remembered, although it should be; the loop itself is unaffected.
pub(crate) fn tell_forgotten(remembrance: &Remembrance) {
    if let Some(trouble) = remembrance.trouble() {
        out::tell_line("", &format!("refrain: the loop is not remembered: {trouble}"));
    }
}

/// Hands the loop to a process of its own.
fn detached(
    context: &Context,
    service: &Service,
    runner: Runner,
    dir: &Utf8Path,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let id = runner.id().to_string();
    note_objection(context, show, false);
    if !show.quiet {
        notifier::note_objection(context, service);
    }
    let (state, _) = start::detach(context, (service, runner), dir, &show.notify)?;
    if show.json {
        out::print_json(&view::status(&state, Alive::DRIVEN))?;
    } else if !show.quiet {
        out::print(&format!("{id}\n"));
        let next = format!("refrain watch {id}, refrain pause {id}, refrain cancel {id}");
        out::tell_line("", &format!("runs in the background: {next}"));
    }
    Ok(Code::Done.into())
}

pub(crate) fn note_objection(context: &Context, show: &ShowArgs, watched: bool) {
    if let Some(objection) = show.notify.objection(context, watched).filter(|_| !show.quiet) {
        out::tell_line("", &format!("note: {objection}"));
    }
}

/// A runtime with one thread for waiting; blocking work gets other threads while it runs.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, RequestError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(std::time::Duration::from_secs(1))
        .build()
        .map_err(|error| RequestError::new(Code::Failed, format!("the runtime cannot be started: {error}")))
}
