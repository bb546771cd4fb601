//! The supervisor's reports on children. Files are read on its own thread.

use std::sync::{Arc, PoisonError};

use refrain_agents::environment;
use refrain_core::Spec;
use refrain_core::event::{Event, Exit};
use refrain_proc::lease::LeaseDeadline;
use refrain_proc::{KeeperSpec, Report, Supervisor};
use refrain_store::LoopDir;
use tokio::sync::mpsc;

use super::conclusion::ChildEnd;
use super::{ChildEvent, ChildOutput};
use crate::EngineError;
use crate::driver::progress::LiveProgress;
use crate::host::Host;
use crate::service::shared_files::SharedFiles;

/// The supervisor of one loop, and both ends of what it reports.
pub(crate) struct SupervisorReports {
    /// Dropped first: a sender must not wait for a receiver that is gone.
    pub(crate) news: mpsc::Receiver<ChildEvent>,
    pub(crate) supervisor: Supervisor<ChildOutput>,
    pub(crate) sender: mpsc::Sender<ChildEvent>,
}

/// Starts the supervisor of the loop in this folder. Its reports become events: what must block to be read is read on
/// its thread.
pub(crate) fn supervise(
    spec: &Spec,
    host: &Host,
    (dir, lease): (Option<&LoopDir>, Option<&LeaseDeadline>),
    live_progress: &Arc<LiveProgress>,
    files: &SharedFiles,
) -> Result<SupervisorReports, EngineError> {
    let keeper = KeeperSpec {
        program: host.program.clone(),
        env: environment::base(spec, host.env.iter().cloned()),
        marks: environment::marks(spec),
        loop_dir: dir.map(|dir| dir.0.clone()),
        lease: lease.cloned(),
    };
    // An attempt reports at most five times before the next one starts, and its usage now and then.
    let (sender, news) = mpsc::channel(8);
    let (spec, shared, live_progress, reports) =
        (spec.clone(), Arc::clone(files), Arc::clone(live_progress), sender.clone());
    let supervisor = Supervisor::start(keeper, move |report: Report<ChildOutput>| {
        let event = match report {
            Report::Started(process) => ChildEvent::Started(process),
            Report::NotStarted(error) => ChildEvent::NotStarted(error),
            Report::Exited { exit, stdout, stderr, listener, left, output_error } => {
                let output_error = output_error.map(|error| error.to_string());
                let mut event = listener.conclude(ChildEnd { exit, stdout, stderr, left, output_error });
                if let Event::AttemptFinished(finished) = &mut event
                    && exit != Exit::Lost
                {
                    let mut files = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    files.read_into(finished, &spec);
                }
                ChildEvent::Finished(Box::new(event))
            }
            Report::Swept { killed, survivors, names } => ChildEvent::Swept { killed, survivors, names },
            Report::OutputFailed => ChildEvent::OutputLost,
        };
        live_progress.update(|snapshot| snapshot.prints += 1);
        // The runner is gone only when this thread is about to be.
        let _ = reports.blocking_send(event);
    })
    .map_err(|error| EngineError::Process("the supervisor cannot be started", error))?;
    Ok(SupervisorReports { news, supervisor, sender })
}
