//! What the runners of loops and plans have in common: a journal, locks, and the sources of requests, signals and file
//! changes. Every source becomes one [`Input`] in one select.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::{Machine, SharedEvent};
use refrain_store::journal::{Durability, MOST_RESTORED, SyncReport};
use refrain_store::project::inbox;
use refrain_store::{Journal, JournalError, WakePipe};
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until};

use crate::blocking::blocking;
use crate::driver::doorbell::install_doorbell;
use crate::driver::progress::LiveProgress;
use crate::driver::signals::{SignalRequest, SignalSources, Signals};
use crate::observe::file_watch::DelayedFileWatch;
use crate::service::requests::{Unattended, answer_without_runner};
use crate::{EngineError, Host, now};

/// How long a process gets to finish deleting a folder: a file that is made in it meanwhile would keep the folder.
const SETTLE: Duration = Duration::from_millis(50);

/// The longest that a timer runs: it pauses while the machine sleeps.
const LONGEST_TIMER: Duration = Duration::from_hours(24);

/// What can happen to a runner; `T` is the type of its own work's events.
pub(crate) enum Input<T> {
    /// Its own work: agents, git, the loops of tasks.
    Own(T),
    /// A request came into the inbox.
    Bell,
    Signal(SignalRequest),
    Files,
    /// The time that was awaited has come.
    Time,
}

/// The part of a runner at work that loops and plans have in common.
pub(crate) struct Driver<'a, M, L> {
    pub(crate) host: &'a Host,
    /// On the heap, as the state is large and futures hold what they are given several times over.
    pub(crate) journal: Box<Journal<M>>,
    /// Shared with all that works for the machine: until that is over no other runner drives it.
    pub(crate) locks: Arc<L>,
    pub(crate) live_progress: Arc<LiveProgress>,
    pub(crate) signals: SignalSources,
    /// The inbox is to be looked into: something may have come while the doorbell was gone.
    pub(crate) look_again: bool,
    doorbell: pipe::Receiver,
    /// Its own files, which another process may delete.
    watch: DelayedFileWatch,
}

impl<'a, M, L> Driver<'a, M, L>
where
    M: Machine + Send + 'static,
    L: Send + Sync + 'static,
{
    /// Takes the machine over, on disk, with the event that says so, and does `also` beside that; `ready` is called
    /// then.
    pub(crate) async fn begin(
        (mut journal, locks, live_progress): (Box<Journal<M>>, Arc<L>, Arc<LiveProgress>),
        (host, signals): (&'a Host, Signals),
        taken_over: Option<M::Event>,
        also: impl FnOnce() + Send + 'static,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let signals = SignalSources::new(signals)?;
        let doorbell = install_doorbell(journal.dir())?;
        // It may have been paused between two runners: there is nothing to drive then.
        if let Some(event) = taken_over.filter(|_| journal.state().ended.is_none()) {
            journal.push(event, now())?;
        }
        let (batch, held) = (journal.batch(Durability::Synced), Arc::clone(&locks));
        let committed = blocking(move || {
            let committed = batch.write();
            also();
            drop(held);
            committed
        })
        .await?;
        live_progress.update(|snapshot| snapshot.journal = committed.length);
        ready();
        // Drain the inbox before the first step: requests may have come before there was a runner.
        let (look_again, watch) = (true, DelayedFileWatch::later());
        Ok(Self { host, journal, locks, live_progress, signals, look_again, doorbell, watch })
    }

    /// Waits for one input, what its own work says among them.
    pub(crate) async fn next<T>(
        &mut self,
        own: impl Future<Output = T>,
        at_most: Option<Duration>,
    ) -> Input<T> {
        let timer = at_most.map(|left| Instant::now() + left.min(LONGEST_TIMER));
        let mut rung = [0; 64];
        tokio::select! {
            own = own => Input::Own(own),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            () = self.watch.changed() => Input::Files,
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Input::Time,
        }
    }

    /// Whether the doorbell rang, and the wish of a signal, while it did something else.
    pub(crate) async fn missed(&mut self) -> (bool, Option<SignalRequest>) {
        let mut rung = [0; 64];
        let is_rung = self.doorbell.try_read(&mut rung).is_ok_and(|count| count > 0);
        let wish = tokio::select! {
            biased;
            wish = self.signals.next() => Some(wish),
            () = std::future::ready(()) => None,
        };
        (is_rung, wish)
    }

    /// Whether the system had no watch left for its files.
    pub(crate) fn has_no_watch(&self) -> bool {
        self.watch.has_no_watch()
    }

    /// The request of a signal, and whether it is new and allowed.
    pub(crate) fn asked_by(&self, wish: SignalRequest) -> (Ask, bool) {
        let state = self.journal.state();
        let urgency = match wish {
            SignalRequest::Interrupt if state.pause.is_none() => Urgency::AfterIteration,
            SignalRequest::Interrupt => Urgency::Now,
            SignalRequest::Pause(urgency) => urgency,
        };
        let ask = Ask::Pause(urgency);
        let is_new = state.pause < Some(urgency) && state.admits(&ask).is_ok();
        (ask, is_new)
    }

    pub(crate) fn record_signal(&mut self, ask: Ask) -> Result<(), EngineError> {
        Ok(self.journal.push(M::event(SharedEvent::Asked(None, ask, Asker::Person)), now())?)
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone. `heard` is called before
    /// each is recorded.
    pub(crate) async fn answer(&mut self, mut heard: impl FnMut(&M, &Ask)) -> Result<(), EngineError>
    where
        M: Unattended,
    {
        let (dir, signing) = (self.journal.dir().clone(), self.host.signing());
        let waiting = self.blocking(move || signing.requests(&dir)).await?;
        for (request, _) in &waiting {
            if self.journal.state().is_new(request) {
                heard(self.journal.state(), &request.ask);
                M::record(&mut self.journal, request)?;
            }
        }
        if self.journal.has_pending() || !waiting.is_empty() && !self.journal.is_replicated() {
            match self.commit(Durability::Replicated).await {
                // The requests wait until they are known beyond this machine: then they are not recorded again.
                Err(error) if error.is_unreachable() => return Ok(()),
                committed => committed?,
            };
        }
        self.blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        Ok(())
    }

    /// Everything so far is on disk. A journal that was deleted is written back, and that is recorded; says whether it
    /// was.
    pub(crate) async fn commit(&mut self, durability: Durability) -> Result<bool, EngineError> {
        let batch = self.journal.batch(durability);
        let mut committed: SyncReport = match durability {
            // A few hundred bytes into the page cache: handing them to another thread takes longer.
            Durability::Written => batch.write()?,
            Durability::Synced | Durability::Replicated => self.blocking(move || batch.write()).await?,
        };
        let was_restored = committed.restored.is_some();
        for _ in 0..MOST_RESTORED {
            let Some(restored) = committed.restored else { break };
            self.journal.push(restored.event::<M>(), now())?;
            let batch = self.journal.batch(durability.max(Durability::Synced));
            committed = self.blocking(move || batch.write()).await?;
            // The doorbell went with it. If it is being deleted again, so is the journal, and the next commit comes by
            // here once more.
            self.renew_doorbell();
        }
        self.live_progress.update(|snapshot| snapshot.journal = committed.length);
        Ok(was_restored)
    }

    /// Checks its own files: something happened to them, or they are watched from here on, with those that are only
    /// read. `is_whole` says whether the other files that it holds are there.
    pub(crate) async fn keep_files(
        &mut self,
        held: Option<Utf8PathBuf>,
        read: &[&Utf8Path],
        is_whole: bool,
    ) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        if !self.watch.is_armed() {
            let kept = [dir.journal(), dir.runner_lock(), dir.doorbell()].into_iter().chain(held);
            self.watch.arm(&kept.collect::<Vec<_>>(), read);
        }
        if !is_whole || !self.journal.is_in_place() || !WakePipe::is_in_place(&dir) {
            sleep(SETTLE).await;
        }
        if !self.journal.is_in_place() {
            match self.journal.keep_lock() {
                // The folder is gone, too: it is written back with the journal, and the lock before that.
                Ok(()) | Err(JournalError::Disk(_)) => {}
                // Another runner has it.
                Err(error) => return Err(error.into()),
            }
        }
        if !self.journal.is_in_place() {
            self.commit(Durability::Synced).await?;
        }
        self.keep_doorbell();
        Ok(())
    }

    /// Makes the doorbell anew if it was deleted; says whether it was. Where its whole folder is gone, the next commit writes it
    /// back, and the doorbell with it.
    pub(crate) fn keep_doorbell(&mut self) -> bool {
        !WakePipe::is_in_place(self.journal.dir()) && self.renew_doorbell()
    }

    fn renew_doorbell(&mut self) -> bool {
        let Ok(doorbell) = install_doorbell(self.journal.dir()) else { return false };
        (self.doorbell, self.look_again) = (doorbell, true);
        true
    }

    /// Runs blocking work where blocking is allowed; the locks are held until it is done, even if the future is
    /// dropped.
    pub(crate) fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + use<T, W, M, L>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let locks = Arc::clone(&self.locks);
        blocking(move || {
            let done = work();
            drop(locks);
            done
        })
    }

    /// The machine has stopped: the end is on disk, `last` is done, then the lock is free.
    pub(crate) async fn release(
        mut self,
        actor: M::Actor,
        last: impl FnOnce(&M::Actor, &M) -> Result<(), EngineError> + Send + 'static,
    ) -> Result<M, EngineError>
    where
        M: Unattended,
        M::Actor: Send + 'static,
    {
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        let Self { journal, locks, .. } = self;
        blocking(move || {
            let (dir, state) = (journal.dir().clone(), journal.state().clone());
            last(&actor, &state)?;
            drop((journal, locks));
            // A caller that came while the lock was still held waits for it: look once more.
            Ok(answer_without_runner(&actor, &dir)?.unwrap_or(state))
        })
        .await
    }
}
