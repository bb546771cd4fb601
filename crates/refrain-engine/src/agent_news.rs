//! What is heard of a loop's agent, and of its gates: the supervisor's reports, read on its own thread as far as that takes files.

use std::sync::{Arc, PoisonError};

use refrain_agents::environment;
use refrain_core::Spec;
use refrain_core::agent::{FaultKind, Until, Usage};
use refrain_core::event::{AttemptFinished, CritiqueFinished, Exit, GateFinished, Process};
use refrain_proc::{KeeperSpec, Report, Supervisor};
use refrain_store::worktree;
use tokio::sync::mpsc;

use crate::EngineError;
use crate::executor::SharedFiles;
use crate::hearing::Hearing;
use crate::judge::Ending;
use crate::pulse::Pulse;
use crate::service::Host;

/// What the supervisor reported, read as far as a blocking thread can.
pub(crate) enum AgentNews {
    Started(Process),
    NotStarted(String),
    Used(Usage),
    /// Its program waits for its provider by itself, for this reason and until then; or it does not any more.
    Retrying(Option<(FaultKind, Option<Until>)>),
    /// Its provider answered: something came from the model.
    Answered,
    Finished(Box<AttemptFinished>),
    GateFinished(Box<GateFinished>),
    CritiqueFinished(Box<CritiqueFinished>),
    Swept {
        killed: u32,
        survivors: Vec<i32>,
        names: Vec<String>,
    },
    OutputLost,
}

/// The supervisor of one loop, and both ends of what it reports.
pub(crate) struct Supervised {
    /// Dropped first: whoever still has news to give must not wait for somebody to take it.
    pub(crate) news: mpsc::Receiver<AgentNews>,
    pub(crate) supervisor: Supervisor<Hearing>,
    pub(crate) sender: mpsc::Sender<AgentNews>,
}

/// Starts the supervisor, whose reports become news: what must block to be read is read on its thread.
pub(crate) fn supervise(
    spec: &Spec,
    host: &Host,
    pulse: &Arc<Pulse>,
    files: &SharedFiles,
) -> Result<Supervised, EngineError> {
    let keeper = KeeperSpec {
        program: host.program.clone(),
        env: environment::base(spec, host.env.iter().cloned()),
        mark: environment::mark(spec),
    };
    // An attempt reports at most five times before the next one starts, and says now and then what it used.
    let (sender, news) = mpsc::channel(8);
    let (spec, shared, pulse, reports) = (spec.clone(), Arc::clone(files), Arc::clone(pulse), sender.clone());
    let supervisor = Supervisor::start(keeper, move |report: Report<Hearing>| {
        let news = match report {
            Report::Started(process) => AgentNews::Started(process),
            Report::NotStarted(error) => AgentNews::NotStarted(error),
            Report::Exited { exit, stdout, stderr, listener: Hearing::Gate(gate), left, output_error } => {
                AgentNews::GateFinished(Box::new(GateFinished {
                    left,
                    output_error: output_error.map(|error| error.to_string()),
                    ..gate.conclude(exit, stdout + stderr)
                }))
            }
            Report::Exited {
                exit,
                stdout,
                stderr,
                listener: Hearing::Attempt(listener),
                left,
                output_error,
            } => {
                let says = || shared.lock().unwrap_or_else(PoisonError::into_inner).says(&spec);
                let state = if exit == Exit::Lost { None } else { says() };
                AgentNews::Finished(Box::new(AttemptFinished {
                    state,
                    needs: worktree::needs(&spec, state),
                    stdout_bytes: stdout,
                    stderr_bytes: stderr,
                    left,
                    output_error: output_error.map(|error| error.to_string()),
                    ..listener.conclude(exit)
                }))
            }
            Report::Exited {
                exit,
                stdout: bytes,
                listener: Hearing::Judge(judge),
                left,
                output_error,
                ..
            } => {
                let output_error = output_error.map(|error| error.to_string());
                judge.conclude(Ending { exit, bytes, left, output_error })
            }
            Report::Swept { killed, survivors, names } => AgentNews::Swept { killed, survivors, names },
            Report::OutputFailed => AgentNews::OutputLost,
        };
        pulse.update(|beat| beat.prints += 1);
        // The runner is gone only when this thread is about to be.
        let _ = reports.blocking_send(news);
    })
    .map_err(|error| EngineError::Process("the supervisor cannot be started", error))?;
    Ok(Supervised { news, supervisor, sender })
}
