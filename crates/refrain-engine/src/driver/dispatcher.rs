//! A loop's runner at work: one handler turns every input ([`crate::driver::input`]) into events, and the core decides
//! the next step.

mod child_start;
mod decision;
mod input_handler;
mod worktree_guard;

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use refrain_agents::environment;
use refrain_core::agent::Usage;
use refrain_core::event::{Event, Identity};
use refrain_core::git::{CommitReport, CommitResult};
use refrain_core::r#loop::ProviderRetry;
use refrain_core::work::WorkDigest;
use refrain_core::{ChildId, LoopState, Step};
use refrain_git::Cancel;
use refrain_proc::{Meter, identity};
use refrain_store::journal::Durability;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::child::ChildEvent;
use crate::child::checkout_dir::{CheckoutDir, Ready};
use crate::child::supervisor_handle::SupervisorHandle;
use crate::driver::account::{self, Account};
use crate::driver::budget::BudgetReservation;
use crate::driver::input::Driver;
use crate::driver::lease::{Lease, LeaseState, Stop};
use crate::driver::locks::RunnerLocks;
use crate::driver::runner::Runner;
use crate::driver::signals::Signals;
use crate::git_steps::git_words::LONGEST;
use crate::git_steps::repository::{GitStepResult, Opened, Tools, Work, marked, sweeper};
use crate::git_steps::work::{self, WorkWatch};
use crate::host::Host;
use crate::service::mirror;
use crate::service::shared_files::SharedFiles;
use crate::{EngineError, now};

/// The shortest wait during which no keeper is kept alive. To start a keeper takes a few milliseconds.
const LONG_WAIT: Duration = Duration::from_secs(2);

enum News {
    Agent(ChildEvent),
    Repository(GitStepResult),
    Drain,
}

/// Facts of the attempt, or the gate, in flight, that are not worth an event each time.
pub(super) struct Flight {
    /// How much it has printed, and when last.
    meter: Arc<Meter>,
    used: Usage,
    /// Its program waits for its provider by itself.
    retrying: Option<ProviderRetry>,
    /// What it prints cannot be kept any more.
    output_lost: bool,
}

pub(crate) struct Drive<'a> {
    pub(super) driver: Driver<'a, LoopState, RunnerLocks>,
    pub(super) supervisor: SupervisorHandle,
    pub(super) work: Option<Work>,
    opened: Opened,
    /// The folder of gates that do not run in the worktree, and that it is ready for the next step.
    pub(super) ground: CheckoutDir,
    ready: Option<(Step, Ready)>,
    /// The step that is being done, and the one before it.
    steps: [Option<Step>; 2],
    account: Option<Account>,
    /// The last look at its worktree; only lent to the thread that looks at it.
    seen: Option<WorkWatch>,
    /// The work as the attempt that ended last left it; none once anything was waited for since.
    attempt_work: Option<WorkDigest>,
    /// Only lent to the thread that asks for money.
    reservation: Option<BudgetReservation>,
    pub(super) flight: Option<Flight>,
    files: SharedFiles,
    pub(super) lease: Option<LeaseState>,
}

impl<'a> Drive<'a> {
    /// Takes the loop over, on disk; `ready` is called then.
    pub(crate) async fn begin(
        runner: Runner,
        (host, signals): (&'a Host, Signals),
        lease: Option<Lease>,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let Runner { mut journal, locks, live_progress, opened, .. } = runner;
        // One that was resumed here has been taken over already, but not under the fence.
        let is_own = |own: &Identity| journal.state().runner.as_ref() == Some(own);
        let own = Some(identity::own()).filter(|own| lease.is_some() || !is_own(own));
        let fence = lease.as_ref().map(|lease| lease.fence);
        let taken_over = own.map(|own| journal.state().recover_under(own, fence));
        if let Some(lease) = &lease {
            journal.replicate_to(Arc::clone(&lease.witness));
        }
        let spec = journal.state().spec.clone();
        let driver = Driver::begin(
            (journal, locks, live_progress),
            (host, signals),
            taken_over,
            move || mirror::open(&spec),
            ready,
        );
        let driver = driver.await?;
        let state = driver.journal.state();
        let mut drive = Self {
            supervisor: SupervisorHandle::new(lease.as_ref().map(|lease| lease.deadline.clone())),
            account: None,
            seen: None,
            attempt_work: None,
            reservation: Some(BudgetReservation::new(
                &state.spec,
                driver.journal.dir(),
                host,
                lease.as_ref().and_then(|lease| lease.money.clone()),
            )),
            flight: None,
            driver,
            work: None,
            opened: Opened::default(),
            ground: CheckoutDir::default(),
            ready: None,
            steps: [None; 2],
            files: SharedFiles::default(),
            lease: lease.map(LeaseState::new),
        };
        drive.account = drive.own_account();
        let costs = drive.driver.journal.state().costs.clone();
        drive.with_purse(move |reservation| reservation.settle_left(&costs)).await;
        let state = drive.driver.journal.state();
        let env = marked(&drive.git_env(), &state.spec);
        let sweeper = sweeper(host, &state.spec, drive.driver.journal.dir());
        let opened = opened.map(|opened| opened.in_env(&env).with_sweeper(Some(sweeper.clone())));
        drive.seen = Some(WorkWatch::of(opened.as_ref(), Some(sweeper)));
        drive.opened = Arc::new(Mutex::new(opened));
        Ok(drive)
    }

    /// The gate of the account that its agents use now.
    fn own_account(&self) -> Option<Account> {
        let others = self.lease.as_ref().and_then(LeaseState::accounts);
        Account::new(&self.driver.journal.state().spec, &self.env(), &self.driver.host.state_home, others)
    }

    /// The environment of its agents. Made when it is needed, so that a sleeping loop keeps no copy of what others have
    /// too.
    fn env(&self) -> Vec<(OsString, OsString)> {
        environment::base(&self.driver.journal.state().spec, self.driver.host.env.iter().cloned())
    }

    /// What git is run in, likewise.
    fn git_env(&self) -> Vec<(OsString, OsString)> {
        self.driver.host.git_env(&self.driver.journal.state().spec)
    }

    /// Starts the supervisor of the loop's processes if there is none yet, and connects its listeners to the files and
    /// the pulse.
    fn ready_crew(&mut self) -> Result<mpsc::Sender<ChildEvent>, EngineError> {
        let Self { supervisor, driver: Driver { journal, host, live_progress, locks, .. }, files, .. } = self;
        supervisor.ready((&journal.state().spec, journal.dir()), host, (live_progress, files), locks)
    }

    /// Drives the loop until it stops.
    pub(crate) async fn run(mut self) -> Result<LoopState, EngineError> {
        self.steps().await?;
        Box::pin(self.release()).await
    }

    /// Does one step after the other until there is none to do here.
    pub(super) async fn steps(&mut self) -> Result<Stop, EngineError> {
        if let Some(wish) = self.driver.signals.standing() {
            self.signal(wish)?;
        }
        loop {
            if let Some(stop) = self.check_lease() {
                return Ok(stop);
            }
            if std::mem::take(&mut self.driver.look_again) {
                self.answer().await?;
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
            if let Some(stop) = self.leaves(step, now) {
                return Ok(stop);
            }
            match step {
                // The session takes the next step.
                Step::BeginIteration { .. } | Step::Start(ChildId::Attempt(_))
                    if self.driver.journal.state().session.is_some() =>
                {
                    return Ok(Stop::Rest);
                }
                // Looked at once an iteration.
                Step::BeginIteration { .. } if self.driver.keep_doorbell() => {}
                Step::BeginIteration { iteration } => {
                    let work = match self.attempt_work.take() {
                        Some(work) => Some(work),
                        None => self.look_at_work().await?.0,
                    };
                    if self.hear_missed().await? {
                        self.attempt_work = work;
                        continue;
                    }
                    self.driver.journal.push(Event::IterationBegun { iteration, work }, now)?;
                }
                Step::Start(_) if self.lacks_ground(step) => self.work(step).await?,
                Step::Start(child) => self.start_child(child).await?,
                Step::Stop(because) => self.stop_child(because).await?,
                Step::TakeCandidate if !self.driver.journal.state().spec.git.candidates => {
                    self.driver.journal.push(
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
                Step::Intend(effect) => self.driver.journal.push(Event::PublishStarted { effect }, now)?,
                Step::ChangeAgent => self.change_agent(now)?,
                Step::Wait(wait) => self.driver.journal.push(Event::WaitStarted(wait), now)?,
                Step::Await { until } => self.take(until).await?,
                Step::Finish(end) => self.driver.journal.push(Event::LoopEnded(end), now)?,
                // The end is on record; how the sweep went still is to be.
                Step::Rest if self.driver.journal.state().sweeping => self.take(None).await?,
                Step::Rest => return Ok(Stop::Rest),
            }
        }
    }

    /// The work now, none if it cannot be read in time, or is not needed; and the programs of git that differ from the
    /// pinned ones.
    /// A signal ends the look.
    async fn look_at_work(&mut self) -> Result<(Option<WorkDigest>, Vec<String>), EngineError> {
        let Some(mut seen) = self.seen.take() else { return Ok((None, Vec::new())) };
        let spec = self.driver.journal.state().spec.clone();
        let env = marked(&self.git_env(), &self.driver.journal.state().spec);
        let cancel = Cancel::new().ok();
        let stop = cancel.clone();
        let mut looks = Box::pin(self.driver.blocking(move || {
            let looked = seen.look(&spec, &env, cancel);
            (seen, looked)
        }));
        let wish = tokio::select! {
            (seen, looked) = &mut looks => {
                self.seen = Some(seen);
                return Ok(looked);
            }
            wish = self.driver.signals.next() => Some(wish),
            // The look keeps that limit itself, but git may not.
            () = sleep(work::LONGEST + Duration::from_secs(1)) => None,
        };
        stop.iter().for_each(Cancel::cancel);
        let (seen, looked) = looks.await;
        self.seen = Some(seen);
        if let Some(wish) = wish {
            self.signal(wish)?;
        }
        Ok(looked)
    }

    /// Takes what was asked while files were looked at; says whether anything was.
    async fn hear_missed(&mut self) -> Result<bool, EngineError> {
        let (is_rung, wish) = self.driver.missed().await;
        if is_rung {
            self.answer().await?;
        }
        if let Some(wish) = wish {
            self.signal(wish)?;
        }
        Ok(is_rung || wish.is_some())
    }

    /// From here on another agent works, and its provider may be another too.
    fn change_agent(&mut self, now: Timestamp) -> Result<(), EngineError> {
        let Some(agent) = self.driver.journal.state().other_agent().cloned() else { return Ok(()) };
        self.driver.journal.push(Event::AgentChanged(Box::new(agent)), now)?;
        self.account = self.own_account();
        Ok(())
    }

    /// Has git do the step, and waits for one input: that it is done, or another one.
    async fn work(&mut self, step: Step) -> Result<(), EngineError> {
        if self.work.is_none() {
            // Git works only after the step is on disk: after a crash the step is still to be done, and git looks
            // first.
            let is_outside = matches!(step, Step::Publish(_) | Step::SaveWork);
            self.commit(if is_outside { Durability::Replicated } else { Durability::Synced }).await?;
            let tools = Tools {
                env: &self.git_env(),
                opened: &self.opened,
                ground: &self.ground,
                host: self.driver.host,
                longest: LONGEST,
                locks: &self.driver.locks,
                // A session keeps working meanwhile.
                follows: self.steps[1].filter(|_| self.driver.journal.state().session.is_none()),
            };
            self.work = Work::begin(step, self.driver.journal.state(), self.driver.journal.dir(), &tools)?;
        }
        self.take(None).await
    }

    /// The loop has something else to do than to wait for git: it is ended, with its hooks. What it had done by then
    /// counts.
    async fn abandon_work(&mut self) -> Result<(), EngineError> {
        let Some(mut work) = self.work.take() else { return Ok(()) };
        work.abandon();
        let GitStepResult::Recorded(event) = work.done().await? else { return Ok(()) };
        let is_committed = |report: &CommitReport| matches!(report.result, CommitResult::Made { .. });
        let is_made = matches!(event, Event::WorkSaved { .. })
            || matches!(&event, Event::CommitSettled(report) if is_committed(report))
            || matches!(&event, Event::PublishSettled(report) if report.is_done());
        if is_made {
            self.driver.journal.push(event, now())?;
        }
        Ok(())
    }

    /// Makes everything so far durable, waits for one input, and handles it.
    async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        self.attempt_work = None;
        if self.driver.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        self.replicate_collected().await?;
        // A timer pauses while the machine sleeps and does not notice a changed clock: a wait of the loop's is checked
        // again now and then. All else is measured on the timer's own clock.
        let waits = self.driver.journal.state().wait.is_some();
        let longest = match (waits, &self.account) {
            (true, Some(account)) => account.look_again(),
            (true, None) => account::LOOK_AGAIN,
            (false, _) => Duration::MAX,
        };
        let left = until.map(|until| Duration::try_from(until.duration_since(now())).unwrap_or_default());
        if waits && !self.driver.journal.state().sweeping && left.is_some_and(|left| left >= LONG_WAIT) {
            self.supervisor.dismiss().await;
        }
        let Self { driver, supervisor, work, lease, .. } = self;
        let is_replicated = driver.journal.is_replicated();
        let of_lease = lease.as_ref().map(|held| held.look_again(is_replicated));
        let left = left.map(|left| left.min(longest)).into_iter().chain(of_lease).min();
        let own = async {
            tokio::select! {
                news = supervisor.news() => Ok(News::Agent(news)),
                done = done(work) => done.map(News::Repository),
                () = drained(lease) => Ok(News::Drain),
            }
        };
        let input = driver.next(own, left).await;
        self.handle(input).await
    }

    /// The loop has stopped: all processes are gone before the lock is free.
    async fn release(mut self) -> Result<LoopState, EngineError> {
        if self.driver.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        let Self { mut supervisor, driver, ground, .. } = self;
        supervisor.dismiss().await;
        let (dir, host) = (driver.journal.dir().clone(), driver.host.clone());
        let last = move |_: &Host, state: &LoopState| {
            mirror::close(state, &dir);
            if let Some(checkout) = ground.lock().unwrap_or_else(PoisonError::into_inner).take() {
                checkout.leave();
            }
            Ok(())
        };
        driver.release(host, last).await
    }
}

/// Returns when the lease asks the drive to end after the iteration.
async fn drained(lease: &mut Option<LeaseState>) {
    match lease {
        Some(lease) => lease.drained().await,
        None => std::future::pending().await,
    }
}

/// What git did, once it is done; never, if it does nothing.
async fn done(work: &mut Option<Work>) -> Result<GitStepResult, EngineError> {
    match work {
        Some(work) => work.done().await,
        None => std::future::pending().await,
    }
}
