//! Whether the processes of a loop live: its runner, its session, a leftover agent.

use camino::Utf8Path;
use refrain_core::LoopState;
use refrain_core::event::{Identity, Process};
use refrain_core::session::Session;
use refrain_core::view::{self, Alive, Status};
use refrain_proc::identity;
use refrain_store::{LoopDir, RunnerLock, journal};

/// The view of a loop, with what only the machine knows: whether its runner lives.
pub(crate) fn look(dir: &LoopDir, state: &LoopState) -> Status {
    view::status(state, alive(dir, state))
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
