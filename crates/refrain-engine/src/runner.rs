//! The runner: drives one loop until it stops. Every source of news (its agent, its doorbell, signals, the clock) becomes
//! one [`Input`] in one select, and one handler turns it into events; the core says what comes next.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use refrain_agents::environment;
use refrain_agents::generic::Reader;
use refrain_core::event::{Ask, AttemptFinished, Event, Exit, Urgency};
use refrain_core::{AttemptId, Live, LoopId, LoopState, Spec, Step, next_step};
use refrain_proc::{KeeperSpec, Meter, Report, StopLadder, Supervisor, detach, identity};
use refrain_store::journal::{Batch, Durability};
use refrain_store::{Doorbell, Journal, RunnerLock, inbox};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::executor::{self, Plan, SharedFiles};
use crate::follow::Follower;
use crate::pulse::Pulse;
use crate::service::Host;
use crate::{EngineError, now};

/// How a runner takes the signals that its process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// At a terminal: SIGINT pauses after the iteration, a second one, SIGTERM and SIGHUP pause at once.
    Foreground,
    /// Without one: the same, but SIGHUP is ignored.
    Detached,
    /// Not at all: the process belongs to somebody else, who asks through the service.
    None,
}

/// What can happen to a runner.
enum Input {
    /// Its agent's supervisor says something.
    Agent(Box<AgentNews>),
    /// Somebody put a request into the inbox.
    Bell,
    /// A signal asks for a pause; a second one makes it urgent.
    Interrupt,
    /// A signal asks for a pause at once.
    Terminate,
    /// The time that was awaited has come.
    Time,
}

/// What the supervisor reported, read as far as a blocking thread can.
enum AgentNews {
    Started(refrain_core::event::Process),
    NotStarted(String),
    Finished { finished: AttemptFinished, left: bool },
    Swept(u32),
    OutputFailed(std::io::Error),
}

/// A loop that this process has the right to drive.
#[derive(Debug)]
pub struct Runner {
    pub(crate) journal: Journal,
    pub(crate) lock: RunnerLock,
    pub(crate) pulse: Arc<Pulse>,
    /// The events up to this one are of before it was started or resumed here.
    pub(crate) past: u64,
}

impl Runner {
    /// The loop.
    #[must_use]
    pub fn id(&self) -> &LoopId {
        &self.journal.state().spec.id
    }

    /// Follows the loop from its start, or its resumption, in this process.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower::of_own(self.journal.dir().clone(), Arc::clone(&self.pulse), self.past)
    }

    /// Drives the loop until it stops, and says how it stands then. `ready` is called once the takeover is on disk.
    ///
    /// # Errors
    /// [`EngineError`] where it cannot go on: what is on disk is what happened, and `resume` goes on from there.
    pub async fn drive(
        self,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<LoopState, EngineError> {
        let pulse = Arc::clone(&self.pulse);
        let driven = Drive::begin(self, host, signals, ready).await;
        let state = match driven {
            Ok(drive) => drive.run().await,
            Err(error) => Err(error),
        };
        pulse.update(|beat| beat.over = true);
        state
    }
}

/// A runner at work.
struct Drive {
    journal: Journal,
    lock: RunnerLock,
    pulse: Arc<Pulse>,
    supervisor: Supervisor<Reader>,
    news: mpsc::Receiver<AgentNews>,
    files: SharedFiles,
    doorbell: pipe::Receiver,
    signals: SignalSources,
    /// How much the attempt in flight has printed.
    meter: Option<Arc<Meter>>,
    /// What the last attempt left behind is being ended: nothing is started before that is over.
    sweeping: bool,
    /// What makes it impossible to go on once the attempt in flight is over.
    broken: Option<EngineError>,
}

impl Drive {
    async fn begin(
        runner: Runner,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let Runner { mut journal, lock, pulse, .. } = runner;
        let signals = SignalSources::new(signals)?;
        let bell = Doorbell::install(journal.dir())?;
        let doorbell = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&bell)
            .map_err(|error| EngineError::Process("the doorbell cannot be opened", error))?;
        journal.push(journal.state().recover(identity::own()), now())?;
        let batch = journal.batch(Durability::Synced);
        commit(&pulse, &mut journal, batch).await?;
        ready();

        let spec = journal.state().spec.clone();
        let (supervisor, news, files) = supervise(&spec, host, &pulse)?;
        Ok(Self {
            journal,
            lock,
            pulse,
            supervisor,
            news,
            files,
            doorbell,
            signals,
            meter: None,
            sweeping: false,
            broken: None,
        })
    }

    async fn run(mut self) -> Result<LoopState, EngineError> {
        // What came while nobody drove the loop comes first.
        self.handle(Input::Bell).await?;
        loop {
            let now = now();
            match next_step(self.journal.state(), &self.live(now), now) {
                Step::BeginIteration { iteration } => {
                    self.journal.push(Event::IterationBegun { iteration }, now)?;
                }
                Step::StartAttempt(_) if self.sweeping => self.take(None).await?,
                Step::StartAttempt(id) => self.start_attempt(id).await?,
                Step::StopAttempt(because) => {
                    self.journal.push(Event::AttemptStopRequested { because }, now)?;
                    self.commit(Durability::Written).await?;
                    self.supervisor.stop(StopLadder::default());
                }
                Step::Wait(wait) => self.journal.push(Event::WaitStarted(wait), now)?,
                Step::Await { until } => self.take(until).await?,
                Step::Finish(end) => self.journal.push(Event::LoopEnded(end), now)?,
                Step::Rest if self.sweeping => self.take(None).await?,
                Step::Rest => return self.let_go().await,
            }
            if self.journal.state().in_flight().is_none()
                && !self.sweeping
                && let Some(error) = self.broken.take()
            {
                self.commit(Durability::Synced).await?;
                return Err(error);
            }
        }
    }

    /// What is known of the attempt in flight.
    fn live(&self, now: Timestamp) -> Live {
        let ago = self.meter.as_ref().and_then(|meter| meter.last_output());
        Live { last_output: ago.and_then(|ago| now.checked_sub(ago).ok()) }
    }

    /// The record first, synced; then the agent.
    async fn start_attempt(&mut self, id: AttemptId) -> Result<(), EngineError> {
        let dir = self.journal.dir().attempt(id);
        let output = match executor::quoted(self.journal.state()) {
            Some(quoted) => {
                let loop_dir = self.journal.dir().clone();
                blocking(move || executor::last_failure(&loop_dir, quoted)).await
            }
            None => None,
        };
        let plan = Plan::new(self.journal.state(), id, &dir, output.as_deref());
        self.journal.push(Event::AttemptStarted(id), now())?;
        self.commit(Durability::Synced).await?;

        let pulse = Arc::clone(&self.pulse);
        let meter = Arc::new(Meter::new(move || pulse.update(|beat| beat.prints += 1)));
        self.meter = Some(Arc::clone(&meter));
        let (spec, files) = (self.journal.state().spec.clone(), Arc::clone(&self.files));
        let job = blocking(move || executor::prepare(&spec, &dir, plan, &files, meter)).await?;
        self.supervisor.run(job);
        Ok(())
    }

    /// Makes everything so far durable, waits for one input, and handles it.
    async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        // A wait longer than a timer can be is asked about again in between.
        let longest = Duration::from_secs(24 * 3600);
        let timer = until.map(|until| {
            let left = Duration::try_from(until.duration_since(now())).unwrap_or_default();
            Instant::now() + left.min(longest)
        });
        let mut rung = [0; 64];
        let input = tokio::select! {
            Some(news) = self.news.recv() => Input::Agent(Box::new(news)),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            input = self.signals.next() => input,
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Input::Time,
        };
        self.handle(input).await
    }

    async fn handle(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Agent(news) => self.hear(*news).await,
            Input::Bell => self.answer().await,
            Input::Interrupt => match self.journal.state().pause {
                None => self.pause(Urgency::AfterIteration),
                Some(_) => self.pause(Urgency::Now),
            },
            Input::Terminate => self.pause(Urgency::Now),
        }
    }

    fn pause(&mut self, urgency: Urgency) -> Result<(), EngineError> {
        Ok(self.journal.push(Event::Asked { request: None, ask: Ask::Pause(urgency) }, now())?)
    }

    async fn hear(&mut self, news: AgentNews) -> Result<(), EngineError> {
        match news {
            AgentNews::Started(process) => {
                self.journal.push(Event::AttemptSpawned { process }, now())?;
                self.commit(Durability::Written).await
            }
            AgentNews::NotStarted(error) => {
                Ok(self.journal.push(Event::AttemptSpawnFailed { error }, now())?)
            }
            AgentNews::Finished { finished, left } => {
                self.meter = None;
                self.sweeping = left;
                Ok(self.journal.push(Event::AttemptFinished(Box::new(finished)), now())?)
            }
            AgentNews::Swept(killed) => {
                self.sweeping = false;
                Ok(self.journal.push(Event::AttemptSwept { killed }, now())?)
            }
            AgentNews::OutputFailed(error) => {
                self.broken = Some(EngineError::Output(error));
                Ok(())
            }
        }
    }

    /// Turns what waits in the inbox into events, each once; only then the requests are gone.
    async fn answer(&mut self) -> Result<(), EngineError> {
        let dir = self.journal.dir().clone();
        let waiting = blocking(move || inbox::waiting(&dir)).await?;
        for (request, _) in &waiting {
            let state = self.journal.state();
            if !state.has_answered(&request.id) && state.admits(&request.ask).is_ok() {
                let event = Event::Asked { request: Some(request.id.clone()), ask: request.ask.clone() };
                self.journal.push(event, now())?;
            }
        }
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        blocking(move || waiting.iter().for_each(|(_, path)| inbox::remove(path))).await;
        Ok(())
    }

    /// The loop has stopped: everybody is gone, the end is on disk, then the lock is free.
    async fn let_go(mut self) -> Result<LoopState, EngineError> {
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        let Self { journal, lock, supervisor, .. } = self;
        let dir = journal.dir().clone();
        blocking(move || {
            drop(supervisor);
            drop(lock);
            // Whoever asked while the lock was still held was told to wait for it: look once more.
            crate::service::answer_without_runner(&dir)
        })
        .await?;
        Ok(journal.state().clone())
    }

    async fn commit(&mut self, durability: Durability) -> Result<(), EngineError> {
        let batch = self.journal.batch(durability);
        let restored = commit(&self.pulse, &mut self.journal, batch).await?;
        if restored {
            // Its folder was deleted with it: the lock and the doorbell are new files under the old names.
            let dir = self.journal.dir().clone();
            let (lock, bell) = blocking(move || {
                let lock = RunnerLock::try_take(&dir);
                (lock, Doorbell::install(&dir))
            })
            .await;
            if let Some(lock) = lock? {
                self.lock = lock;
            }
            self.doorbell = pipe::OpenOptions::new()
                .read_write(true)
                .open_receiver(&bell?)
                .map_err(|error| EngineError::Process("the doorbell cannot be opened", error))?;
        }
        Ok(())
    }
}

/// Starts the supervisor, whose reports become news: what must block to be read is read on its thread.
fn supervise(
    spec: &Spec,
    host: &Host,
    pulse: &Arc<Pulse>,
) -> Result<(Supervisor<Reader>, mpsc::Receiver<AgentNews>, SharedFiles), EngineError> {
    let keeper = KeeperSpec {
        program: host.program.clone(),
        env: environment::base(spec, host.env.iter().cloned()),
        mark: environment::mark(spec),
    };
    // An attempt reports at most four times before the next one starts.
    let (sender, news) = mpsc::channel(8);
    let files = SharedFiles::default();
    let (spec, shared, pulse) = (spec.clone(), Arc::clone(&files), Arc::clone(pulse));
    let supervisor = Supervisor::start(keeper, move |report: Report<Reader>| {
        let news = match report {
            Report::Started(process) => AgentNews::Started(process),
            Report::NotStarted(error) => AgentNews::NotStarted(error),
            Report::Exited { exit, stdout, stderr, listener, left } => {
                let finding = listener.conclude();
                let lost = exit == Exit::Lost;
                let finished = AttemptFinished {
                    exit,
                    promised: finding.claimed,
                    near_miss: finding.near_miss,
                    state_done: !lost
                        && shared.lock().unwrap_or_else(PoisonError::into_inner).says_done(&spec),
                    stdout_bytes: stdout,
                    stderr_bytes: stderr,
                    preview: finding.last_line,
                };
                AgentNews::Finished { finished, left }
            }
            Report::Swept { killed } => AgentNews::Swept(killed),
            Report::OutputFailed(error) => AgentNews::OutputFailed(error),
        };
        pulse.update(|beat| beat.prints += 1);
        // The runner is gone only when this thread is about to be.
        let _ = sender.blocking_send(news);
    })
    .map_err(|error| EngineError::Process("the supervisor cannot be started", error))?;
    Ok((supervisor, news, files))
}

/// Writes a batch, tells the screen, and records it where the file had to be written back.
async fn commit(pulse: &Pulse, journal: &mut Journal, batch: Batch) -> Result<bool, EngineError> {
    let mut committed = blocking(move || batch.write()).await?;
    let restored = committed.restored;
    if let Some(bytes) = restored {
        journal.push(Event::JournalRestored { bytes }, now())?;
        let batch = journal.batch(Durability::Synced);
        committed = blocking(move || batch.write()).await?;
    }
    pulse.update(|beat| beat.journal = committed.length);
    Ok(restored.is_some())
}

/// Runs what blocks where blocking is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        // Nobody cancels these tasks: it panicked, and so do we.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The signals that a runner listens to.
struct SignalSources {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    heed_hangup: bool,
}

impl SignalSources {
    fn new(signals: Signals) -> Result<Self, EngineError> {
        if signals == Signals::Detached {
            detach::leave_terminal();
        }
        let listen = |kind| match signals {
            Signals::None => Ok(None),
            Signals::Foreground | Signals::Detached => signal(kind).map(Some),
        };
        let all = || {
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hangup: listen(SignalKind::hangup())?,
                heed_hangup: signals == Signals::Foreground,
            })
        };
        all().map_err(|error| EngineError::Process("signals cannot be listened to", error))
    }

    async fn next(&mut self) -> Input {
        async fn of(signal: &mut Option<Signal>) {
            let heard = match signal {
                Some(signal) => signal.recv().await,
                None => None,
            };
            if heard.is_none() {
                std::future::pending().await
            }
        }
        loop {
            tokio::select! {
                () = of(&mut self.interrupt) => return Input::Interrupt,
                () = of(&mut self.terminate) => return Input::Terminate,
                () = of(&mut self.hangup) => {
                    if self.heed_hangup {
                        return Input::Terminate;
                    }
                }
            }
        }
    }
}
