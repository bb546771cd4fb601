//! The lazily started supervisor of a loop's processes. Its thread and its keeper come with the first process that the
//! loop starts, and go during long waits: a loop that sleeps costs neither.

use std::sync::Arc;

use refrain_core::Spec;
use refrain_proc::Job;
use refrain_proc::keeper::StopLadder;
use refrain_proc::lease::LeaseDeadline;
use refrain_store::LoopDir;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::EngineError;
use crate::child::{ChildEvent, ChildOutput, SupervisorReports, supervise};
use crate::driver::locks::Locks;
use crate::driver::progress::LiveProgress;
use crate::host::Host;
use crate::service::shared_files::SharedFiles;

/// The supervisor, if there is one, and the loop's locks, which stay held until all processes are gone. Dropping this
/// ends all processes without waiting for them: many may be dropped at once, on a thread that others need.
pub(crate) struct SupervisorHandle {
    at_work: Option<(SupervisorReports, Locks)>,
    /// Until when its processes may run, if this machine has the loop only for a time.
    lease: Option<LeaseDeadline>,
    runtime: Handle,
}

impl SupervisorHandle {
    /// No supervisor yet. Called on a runtime, which must live until all that it drives is over.
    pub(crate) fn new(lease: Option<LeaseDeadline>) -> Self {
        Self { at_work: None, lease, runtime: Handle::current() }
    }

    /// Starts the supervisor if there is none, and returns the sender for what else is to be reported.
    pub(crate) fn ready(
        &mut self,
        (spec, dir): (&Spec, &LoopDir),
        host: &Host,
        (live_progress, files): (&Arc<LiveProgress>, &SharedFiles),
        locks: &Locks,
    ) -> Result<mpsc::Sender<ChildEvent>, EngineError> {
        let at_work = match self.at_work.take() {
            Some(at_work) => at_work,
            None => (
                supervise(spec, host, (Some(dir), self.lease.as_ref()), live_progress, files)?,
                Arc::clone(locks),
            ),
        };
        Ok(self.at_work.insert(at_work).0.sender.clone())
    }

    /// Starts a process. There is a supervisor: the caller got the sender for the job's reports from [`Self::ready`].
    pub(crate) fn run(&self, job: Job<ChildOutput>) {
        if let Some((supervised, _)) = &self.at_work {
            supervised.supervisor.run(job);
        }
    }

    /// Ends the process that runs; without one this does nothing.
    pub(crate) fn stop(&self, ladder: StopLadder) {
        if let Some((supervised, _)) = &self.at_work {
            supervised.supervisor.stop(ladder);
        }
    }

    /// Ends the process that runs at once; without one this does nothing.
    pub(crate) fn kill(&self) {
        if let Some((supervised, _)) = &self.at_work {
            supervised.supervisor.kill();
        }
    }

    /// The supervisor's next event; never, if there is none.
    pub(crate) async fn news(&mut self) -> ChildEvent {
        let news = match &mut self.at_work {
            Some((supervised, _)) => supervised.news.recv().await,
            None => None,
        };
        match news {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Ends the process that runs by its stop ladder, then all that are left, and waits for that. What happens meanwhile
    /// is not reported.
    pub(crate) async fn end(&mut self, ladder: StopLadder) {
        let longest = ladder.longest();
        self.stop(ladder);
        let ended = async {
            while let Some((supervised, _)) = &mut self.at_work {
                match supervised.news.recv().await {
                    Some(ChildEvent::Finished(_) | ChildEvent::NotStarted(_)) | None => break,
                    Some(_) => {}
                }
            }
        };
        let _ = timeout(longest, ended).await;
        self.dismiss().await;
    }

    /// Ends all processes that are left, and waits for that.
    pub(crate) async fn dismiss(&mut self) {
        if let Some(at_work) = self.at_work.take() {
            // It panics with the thread only, which ends all processes too.
            let _ = self.runtime.spawn_blocking(move || drop(at_work)).await;
        }
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        if let Some(at_work) = self.at_work.take() {
            // A runtime that is going already waits for it here.
            self.runtime.spawn_blocking(move || drop(at_work));
        }
    }
}
