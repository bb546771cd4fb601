//! Whether the processes of a loop live: its runner, its session, a leftover agent.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_core::LoopState;
use refrain_core::event::{Identity, Process};
use refrain_core::session::Session;
use refrain_core::view::{self, Alive, Status, StatusWord};
use refrain_proc::{identity, output};
use refrain_store::{LoopDir, RunnerLock, journal};

/// How much of the end of a runner's log is read for its error, in bytes.
const LONGEST_END: u64 = 4 << 10;
/// How much earlier than by the clock a file system may say that a file was written.
const COARSE: Duration = Duration::from_secs(1);

/// The view of a loop, with what only the machine knows: whether its runner lives.
pub(crate) fn look(dir: &LoopDir, state: &LoopState) -> Status {
    status(dir, state, alive(dir, state))
}

/// The same, if it is known what lives; with the error of a runner that stopped by one.
pub(crate) fn status(dir: &LoopDir, state: &LoopState, alive: Alive) -> Status {
    let status = view::status(state, alive);
    let is_crashed = status.status == StatusWord::Crashed;
    match is_crashed.then(|| last_error(dir, state.updated_at)).flatten() {
        Some(error) => status.of_failed_runner(&error),
        None => status,
    }
}

/// The error that a detached runner of what lies there stopped by, if that was after the last record.
pub(crate) fn last_error(dir: &LoopDir, recorded: Timestamp) -> Option<String> {
    let log = dir.runner_log();
    let written = Timestamp::try_from(fs::metadata(&log).ok()?.modified().ok()?).ok()?;
    if written.checked_add(COARSE).ok()? < recorded {
        return None;
    }
    let end = output::read_end(&log, LONGEST_END).ok()?;
    let end = String::from_utf8_lossy(&end);
    let error = end.lines().rev().find_map(|line| line.strip_prefix("refrain: "))?;
    Some(error.to_owned())
}

pub(crate) fn alive(dir: &LoopDir, state: &LoopState) -> Alive {
    if let Some(session) = state.session.as_ref().filter(|_| state.is_in_session())
        && RunnerLock::is_free(dir)
    {
        return Alive { runner: is_session_alive(session), ..Alive::default() };
    }
    // Looked up once: a list does it for each loop that runs.
    let seen = state.runner.as_ref().and_then(identity::seen);
    let runner = is_held(dir, seen.map(|stat| stat.is_some()));
    let spawned = state.in_flight().and_then(|flight| flight.spawned).map(|(process, _)| process);
    let orphan = spawned.filter(|agent| runner == Some(false) && identity::is_running(*agent));
    let stopped = runner == Some(true) && seen.flatten().is_some_and(|stat| stat.stopped);
    Alive { runner, orphan: orphan.map(|agent| agent.pid), stopped }
}

/// Whether the runner of what lies there lives; none where that is not known.
pub(crate) fn is_driven(dir: &LoopDir, runner: Option<&Identity>) -> Option<bool> {
    is_held(dir, runner.and_then(identity::is_alive))
}

/// The same, if it is known whether its process lives.
fn is_held(dir: &LoopDir, is_alive: Option<bool>) -> Option<bool> {
    // A process that lives may have given it up, and of one on another machine nothing is known: the lock says more.
    let alive = is_alive.filter(|alive| !alive || !RunnerLock::is_free(dir));
    alive.or_else(|| RunnerLock::is_free(dir).then_some(false))
}

/// Whether a runner lives on this machine, and is stopped.
pub(crate) fn is_stopped(runner: Option<&Identity>) -> bool {
    runner.is_some_and(|it| identity::is_alive(it) == Some(true) && identity::is_stopped(it.process))
}

/// Whether a session's process lives; none if it is not known.
pub(crate) fn is_session_alive(session: &Session) -> Option<bool> {
    let process = session.process?;
    identity::is_alive(&Identity { process, boot: session.boot.clone(), host: session.host.clone() })
}

/// Whether this process is the runner that the journal in a loop's data folder names last, in this run of this machine.
pub fn is_driven_by(loop_dir: &Utf8Path, process: Process) -> bool {
    let named =
        journal::read(&LoopDir(loop_dir.to_owned())).ok().and_then(|read| read.state.lifecycle.runner);
    named.is_some_and(|runner| runner.process == process && identity::is_alive(&runner) == Some(true))
}
