//! A runner at work. Every source of news (its agent, its doorbell, signals, the clock) becomes one [`Input`] in one
//! select, and one handler turns it into events; the core says what comes next.

mod deciding;
mod handling;
mod keeping;
mod starting;

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use refrain_agents::environment;
use refrain_core::agent::Usage;
use refrain_core::event::Event;
use refrain_core::git::{CommitReport, CommitResult};
use refrain_core::r#loop::Retrying;
use refrain_core::work::WorkDigest;
use refrain_core::{ChildId, LoopState, Step};
use refrain_git::Cancel;
use refrain_proc::{Meter, identity};
use refrain_store::journal::{Committed, Durability, MOST_RESTORED};
use refrain_store::{Doorbell, Journal};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::blocking::blocking;
use crate::child::ChildEvent;
use crate::child::crew::Crew;
use crate::child::proving_ground::{Ground, Ready};
use crate::driver::account::{self, Account};
use crate::driver::budget::Purse;
use crate::driver::doorbell::install_doorbell;
use crate::driver::locks::Locks;
use crate::driver::pulse::Pulse;
use crate::driver::runner::Runner;
use crate::driver::signals::{SignalSources, Signals, Wish};
use crate::git_steps::git_words::LONGEST;
use crate::git_steps::repository::{Done, Opened, Tools, Work, marked, sweeper};
use crate::git_steps::work::{self, WorkWatch};
use crate::host::Host;
use crate::observe::file_watch::DelayedFileWatch;
use crate::service::asking::answer_without_runner;
use crate::service::mirror;
use crate::service::shared_files::SharedFiles;
use crate::{EngineError, now};

pub(crate) use keeping::{SETTLE, keep_lock};

/// The shortest wait for which nobody is kept. To start a keeper takes a few milliseconds.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// What can happen to a runner.
enum Input {
    /// Its agent's supervisor says something.
    Agent(ChildEvent),
    /// Somebody put a request into the inbox.
    Bell,
    /// A signal came.
    Signal(Wish),
    /// Git is done.
    Repository(Done),
    /// Something happened to its own files.
    Files,
    /// The time that was awaited has come.
    Time,
}

/// What is known of the attempt, or the gate, in flight, but not worth an event each time.
struct Flight {
    /// How much it has printed, and when last.
    meter: Arc<Meter>,
    /// What it has used so far.
    used: Usage,
    /// Its program waits for its provider by itself.
    retrying: Option<Retrying>,
    /// What it prints cannot be kept any more.
    output_lost: bool,
}

/// A runner at work.
pub(crate) struct Drive<'a> {
    host: &'a Host,
    crew: Crew,
    journal: Box<Journal>,
    locks: Locks,
    /// What git is doing for the loop.
    work: Option<Work>,
    opened: Opened,
    /// Where gates run that are not to run in the worktree, and that it is ready for the step that comes next.
    ground: Ground,
    ready: Option<(Step, Ready)>,
    /// The step that is being done, and the one before it.
    steps: [Option<Step>; 2],
    pulse: Arc<Pulse>,
    account: Option<Account>,
    /// What is known of its worktree; only lent to the thread that looks at it.
    seen: Option<WorkWatch>,
    /// The work as the attempt that ended last left it; none once anything was waited for since.
    attempt_work: Option<WorkDigest>,
    /// Only lent to the thread that asks for money.
    purse: Option<Purse>,
    /// The attempt, or the gate, in flight.
    flight: Option<Flight>,
    files: SharedFiles,
    doorbell: pipe::Receiver,
    signals: SignalSources,
    /// The inbox is to be looked into: something may have come while nobody could ring.
    look_again: bool,
    /// Its own files, which somebody may delete.
    watch: DelayedFileWatch,
}

impl<'a> Drive<'a> {
    /// Takes the loop over, on disk; `ready` is called then.
    pub(crate) async fn begin(
        runner: Runner,
        host: &'a Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let Runner { mut journal, locks, pulse, opened, .. } = runner;
        let signals = SignalSources::new(signals)?;
        let doorbell = install_doorbell(journal.dir())?;
        // Whoever resumed it here has taken it over already.
        let own = identity::own();
        if journal.state().runner.as_ref() != Some(&own) {
            journal.push(journal.state().recover(own), now())?;
        }
        let batch = journal.batch(Durability::Synced);
        let (spec, held) = (journal.state().spec.clone(), Arc::clone(&locks));
        let committed = blocking(move || {
            let committed = batch.write();
            mirror::open(&spec);
            drop(held);
            committed
        })
        .await?;
        pulse.update(|beat| beat.journal = committed.length);
        ready();

        let mut drive = Self {
            host,
            crew: Crew::new(),
            account: None,
            seen: None,
            attempt_work: None,
            purse: Some(Purse::new(&journal.state().spec, journal.dir(), host)),
            flight: None,
            journal,
            locks,
            work: None,
            opened: Opened::default(),
            ground: Ground::default(),
            ready: None,
            steps: [None; 2],
            pulse,
            files: SharedFiles::default(),
            doorbell,
            signals,
            // What came while nobody drove the loop comes first.
            look_again: true,
            watch: DelayedFileWatch::later(),
        };
        drive.account = drive.own_account();
        let env = marked(&drive.git_env(), &drive.journal.state().spec);
        let sweeper = sweeper(&host.program, &drive.journal.state().spec, drive.journal.dir());
        let opened = opened.map(|opened| opened.in_env(&env).with_sweeper(Some(sweeper.clone())));
        drive.seen = Some(WorkWatch::of(opened.as_ref(), Some(sweeper)));
        drive.opened = Arc::new(Mutex::new(opened));
        Ok(drive)
    }

    /// The gate of the account that its agents use now.
    fn own_account(&self) -> Option<Account> {
        Account::new(&self.journal.state().spec, &self.env(), &self.host.state_home)
    }

    /// What its agents start from. Made when it is needed: of a loop that sleeps nothing is kept that others have too.
    fn env(&self) -> Vec<(OsString, OsString)> {
        environment::base(&self.journal.state().spec, self.host.env.iter().cloned())
    }

    /// What git is run in, likewise.
    fn git_env(&self) -> Vec<(OsString, OsString)> {
        self.host.git_env(&self.journal.state().spec)
    }

    /// Sees to it that somebody can start a process of the loop's; where its listeners say what it uses.
    fn ready_crew(&mut self) -> Result<mpsc::Sender<ChildEvent>, EngineError> {
        let Self { crew, journal, host, pulse, files, locks, .. } = self;
        crew.ready((&journal.state().spec, journal.dir()), host, (pulse, files), locks)
    }

    /// Drives the loop until it stops.
    pub(crate) async fn run(mut self) -> Result<LoopState, EngineError> {
        if let Some(wish) = self.signals.standing() {
            self.handle(Input::Signal(wish)).await?;
        }
        loop {
            if std::mem::take(&mut self.look_again) {
                self.handle(Input::Bell).await?;
            }
            let now = now();
            let step = self.decide(now).await?;
            if self.steps[0] != Some(step) {
                self.steps = [Some(step), self.steps[0]];
            }
            if self.work.as_ref().is_some_and(|work| work.step != step) {
                self.abandon_work().await?;
                continue;
            }
            match step {
                // What comes next is the session's.
                Step::BeginIteration { .. } | Step::Start(ChildId::Attempt(_))
                    if self.journal.state().session.is_some() =>
                {
                    return Box::pin(self.let_go()).await;
                }
                Step::BeginIteration { .. } if self.door_was_gone() => self.look_again = true,
                Step::BeginIteration { iteration } => {
                    let work = match self.attempt_work.take() {
                        Some(work) => Some(work),
                        None => self.look_at_work().await.0,
                    };
                    self.journal.push(Event::IterationBegun { iteration, work }, now)?;
                }
                Step::Start(_) if self.lacks_ground(step) => self.work(step).await?,
                Step::Start(child) => self.start_child(child).await?,
                Step::Stop(because) => self.stop_child(because).await?,
                Step::TakeCandidate if !self.journal.state().spec.git.candidates => {
                    self.journal.push(
                        Event::CandidateTaken {
                            tree: None,
                            partial: false,
                            touched: Vec::new(),
                            changed: Vec::new(),
                        },
                        now,
                    )?;
                }
                Step::TakeBase
                | Step::TakeCandidate
                | Step::Commit { .. }
                | Step::SaveWork
                | Step::Publish(_)
                | Step::ReleaseWorktree => self.work(step).await?,
                Step::Intend(effect) => self.journal.push(Event::PublishStarted { effect }, now)?,
                Step::ChangeAgent => self.change_agent(now)?,
                Step::Wait(wait) => self.journal.push(Event::WaitStarted(wait), now)?,
                Step::Await { until } => self.take(until).await?,
                Step::Finish(end) => self.journal.push(Event::LoopEnded(end), now)?,
                // The end is on record; how the sweep went still is to be.
                Step::Rest if self.journal.state().sweeping => self.take(None).await?,
                Step::Rest => return Box::pin(self.let_go()).await,
            }
        }
    }

    /// The work now, none if it cannot be known in time, or nothing asks for it; and what git would run that is not as it was
    /// pinned.
    async fn look_at_work(&mut self) -> (Option<WorkDigest>, Vec<String>) {
        let Some(mut seen) = self.seen.take() else { return (None, Vec::new()) };
        let spec = self.journal.state().spec.clone();
        let env = marked(&self.git_env(), &self.journal.state().spec);
        let cancel = Cancel::new().ok();
        let stop = cancel.clone();
        let mut looks = Box::pin(self.blocking(move || {
            let looked = seen.look(&spec, &env, cancel);
            (seen, looked)
        }));
        let looked = match timeout(work::LONGEST, &mut looks).await {
            Ok(looked) => looked,
            Err(_) => {
                stop.iter().for_each(Cancel::cancel);
                looks.await
            }
        };
        let (seen, looked) = looked;
        self.seen = Some(seen);
        looked
    }

    /// Whether somebody deleted the doorbell, so that nobody could ring; looked at once an iteration. It is made anew.
    fn door_was_gone(&mut self) -> bool {
        let dir = self.journal.dir();
        if Doorbell::is_in_place(dir) {
            return false;
        }
        // Where its whole folder is gone, the next commit writes it back, and the doorbell with it.
        let installed = install_doorbell(dir).ok();
        installed.is_some_and(|doorbell| {
            self.doorbell = doorbell;
            true
        })
    }

    /// From here on another agent works, whose provider may be another too.
    fn change_agent(&mut self, now: Timestamp) -> Result<(), EngineError> {
        let Some(agent) = self.journal.state().other_agent().cloned() else { return Ok(()) };
        self.journal.push(Event::AgentChanged(Box::new(agent)), now)?;
        self.account = self.own_account();
        Ok(())
    }

    /// Has git do the step, and waits for one input: that it is done, or something else.
    async fn work(&mut self, step: Step) -> Result<(), EngineError> {
        if self.work.is_none() {
            // Whatever git does is behind what is on disk: a crash finds the step still to be done, and git looks first.
            self.commit(Durability::Synced).await?;
            let tools = Tools {
                env: &self.git_env(),
                opened: &self.opened,
                ground: &self.ground,
                state_home: &self.host.state_home,
                program: &self.host.program,
                longest: LONGEST,
                locks: &self.locks,
                // A session goes on meanwhile, whatever it does.
                follows: self.steps[1].filter(|_| self.journal.state().session.is_none()),
            };
            self.work = Work::begin(step, self.journal.state(), self.journal.dir(), &tools)?;
        }
        self.take(None).await
    }

    /// The loop has something else to do than to wait for git: it is ended, with its hooks. What it had done by then counts.
    async fn abandon_work(&mut self) -> Result<(), EngineError> {
        let Some(mut work) = self.work.take() else { return Ok(()) };
        work.abandon();
        let Done::Recorded(event) = work.done().await? else { return Ok(()) };
        let is_committed = |report: &CommitReport| matches!(report.result, CommitResult::Made { .. });
        let is_made = matches!(event, Event::WorkSaved { .. })
            || matches!(&event, Event::CommitSettled(report) if is_committed(report))
            || matches!(&event, Event::PublishSettled(report) if report.is_done());
        if is_made {
            self.journal.push(event, now())?;
        }
        Ok(())
    }

    /// Makes everything so far durable, waits for one input, and handles it.
    async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.attempt_work = None;
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        // A timer stands still while the machine sleeps and does not know that its clock was set: a wait of the loop's is
        // looked at again now and then. All else is measured on the timer's own clock.
        let waits = self.journal.state().wait.is_some();
        let longest = match (waits, &self.account) {
            (true, Some(account)) => account.look_again(),
            (true, None) => account::LOOK_AGAIN,
            (false, _) => Duration::from_secs(24 * 3600),
        };
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        if waits && !self.journal.state().sweeping && left.is_some_and(|left| left >= LONG_WAIT) {
            self.crew.dismiss().await;
        }
        let timer = left.map(|left| Instant::now() + left.min(longest));
        let mut rung = [0; 64];
        let input = tokio::select! {
            news = self.crew.news() => Input::Agent(news),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            done = done(&mut self.work) => Input::Repository(done?),
            () = self.watch.changed() => Input::Files,
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Input::Time,
        };
        self.handle(input).await
    }

    /// The loop has stopped: everybody is gone, the end is on disk, then the lock is free.
    async fn let_go(mut self) -> Result<LoopState, EngineError> {
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        let (git_env, host) = (self.git_env(), self.host.clone());
        let Self { mut crew, journal, locks, ground, .. } = self;
        let (dir, state) = (journal.dir().clone(), journal.state().clone());
        let known = state.clone();
        crew.dismiss().await;
        // Whoever asked while the lock was still held was told to wait for it: look once more.
        let later = blocking(move || {
            mirror::close(&state, &dir);
            if let Some(checkout) = ground.lock().unwrap_or_else(PoisonError::into_inner).take() {
                checkout.leave();
            }
            drop((journal, locks));
            answer_without_runner(&dir, &host, &git_env)
        });
        Ok(later.await?.unwrap_or(known))
    }

    async fn commit(&mut self, durability: Durability) -> Result<(), EngineError> {
        let batch = self.journal.batch(durability);
        let committed = match durability {
            // A few hundred bytes into the page cache: handing them to another thread takes longer.
            Durability::Written => batch.write()?,
            Durability::Synced => self.blocking(move || batch.write()).await?,
        };
        self.committed(committed).await
    }

    /// Tells the screen; and where the journal had to be written back, records that, and takes what was deleted with it.
    async fn committed(&mut self, mut committed: Committed) -> Result<(), EngineError> {
        for _ in 0..MOST_RESTORED {
            let Some(restored) = committed.restored else { break };
            self.journal.push(restored.event::<LoopState>(), now())?;
            let batch = self.journal.batch(Durability::Synced);
            committed = self.blocking(move || batch.write()).await?;
            // The doorbell went with it. If it is being deleted again, so is the journal, and the next commit comes by here
            // once more.
            if let Ok(doorbell) = install_doorbell(self.journal.dir()) {
                self.doorbell = doorbell;
                self.look_again = true;
            }
            self.keep_worktree().await?;
        }
        self.pulse.update(|beat| beat.journal = committed.length);
        Ok(())
    }

    /// Runs what blocks where blocking is allowed; the loop's locks are held until it is done, whoever waits for it.
    fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + use<T, W>
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
}

/// What git did, once it is done; never, where it does nothing.
async fn done(work: &mut Option<Work>) -> Result<Done, EngineError> {
    match work {
        Some(work) => work.done().await,
        None => std::future::pending().await,
    }
}
