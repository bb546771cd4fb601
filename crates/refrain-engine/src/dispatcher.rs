//! A runner at work. Every source of news (its agent, its doorbell, signals, the clock) becomes one [`Input`] in one
//! select, and one handler turns it into events; the core says what comes next.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_agents::{ear, environment};
use refrain_core::agent::Usage;
use refrain_core::event::{Ask, Event, Urgency};
use refrain_core::gate::Check;
use refrain_core::git::CommitResult;
use refrain_core::r#loop::{Candidate, Proving};
use refrain_core::prompt::Printed;
use refrain_core::review::Changes;
use refrain_core::{AttemptId, Live, LoopState, Step, next_step};
use refrain_proc::keeper::StopLadder;
use refrain_proc::{Job, Meter, Supervisor, identity};
use refrain_store::journal::{Committed, Durability};
use refrain_store::{Doorbell, Journal, LoopDir, RunnerLock, WorktreeLock, inbox};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::account::Account;
use crate::agent_news::{AgentNews, Supervised, supervise};
use crate::asking::answer_without_runner;
use crate::budget::Purse;
use crate::error::chain;
use crate::executor::{self, Plan, SharedFiles};
use crate::gate;
use crate::hearing::Hearing;
use crate::judge::Brief;
use crate::pulse::Pulse;
use crate::repository::{LONGEST, Opened, Work, changes};
use crate::runner::Runner;
use crate::service::Host;
use crate::signals::{SignalSources, Signals, Wish};
use crate::{EngineError, now};

/// What can happen to a runner.
enum Input {
    /// Its agent's supervisor says something.
    Agent(AgentNews),
    /// Somebody put a request into the inbox.
    Bell,
    /// A signal came.
    Signal(Wish),
    /// Git is done.
    Repository(Event),
    /// The time that was awaited has come.
    Time,
}

/// What is known of the attempt, or the gate, in flight, but not worth an event each time.
struct Flight {
    /// How much it has printed, and when last.
    meter: Arc<Meter>,
    /// What it has used so far.
    used: Usage,
    /// What it prints cannot be kept any more.
    output_lost: bool,
}

/// A runner at work.
pub(crate) struct Drive {
    /// Dropped first: whoever still has news to give must not wait for somebody to take it.
    news: mpsc::Receiver<AgentNews>,
    /// Dropped next: nobody is left before the lock is free.
    supervisor: Supervisor<Hearing>,
    journal: Journal,
    lock: RunnerLock,
    worktree: WorktreeLock,
    /// What git is doing for the loop.
    work: Option<Work>,
    opened: Opened,
    pulse: Arc<Pulse>,
    /// The other end of it, for what an attempt uses.
    sender: mpsc::Sender<AgentNews>,
    account: Option<Account>,
    /// Only lent to the thread that asks for money.
    purse: Option<Purse>,
    state_home: Utf8PathBuf,
    env: Vec<(OsString, OsString)>,
    git_env: Vec<(OsString, OsString)>,
    /// The attempt, or the gate, in flight.
    flight: Option<Flight>,
    files: SharedFiles,
    doorbell: pipe::Receiver,
    signals: SignalSources,
    /// The inbox is to be looked into: something may have come while nobody could ring.
    look_again: bool,
}

impl Drive {
    /// Takes the loop over, on disk; `ready` is called then.
    pub(crate) async fn begin(
        runner: Runner,
        host: &Host,
        signals: Signals,
        ready: impl FnOnce(),
    ) -> Result<Self, EngineError> {
        let Runner { mut journal, lock, worktree, pulse, .. } = runner;
        let signals = SignalSources::new(signals)?;
        let doorbell = install_doorbell(journal.dir())?;
        // Whoever resumed it here has taken it over already.
        let own = identity::own();
        if journal.state().runner.as_ref() != Some(&own) {
            journal.push(journal.state().recover(own), now())?;
        }
        let batch = journal.batch(Durability::Synced);
        let committed = blocking(move || batch.write()).await?;
        pulse.update(|beat| beat.journal = committed.length);
        ready();

        let spec = journal.state().spec.clone();
        let Supervised { supervisor, sender, news, files } = supervise(&spec, host, &pulse)?;
        let env = environment::base(&spec, host.env.iter().cloned());
        Ok(Self {
            account: Account::new(&spec, &env, &host.state_home),
            purse: Some(Purse::new(&spec, journal.dir(), host)),
            state_home: host.state_home.clone(),
            env,
            git_env: environment::of_git(&spec, host.env.iter().cloned()),
            sender,
            flight: None,
            journal,
            lock,
            worktree,
            work: None,
            opened: Opened::default(),
            pulse,
            supervisor,
            news,
            files,
            doorbell,
            signals,
            // What came while nobody drove the loop comes first.
            look_again: true,
        })
    }

    /// Drives the loop until it stops.
    pub(crate) async fn run(mut self) -> Result<LoopState, EngineError> {
        loop {
            if std::mem::take(&mut self.look_again) {
                self.handle(Input::Bell).await?;
            }
            let now = now();
            let step = self.decide(now).await?;
            if self.work.as_ref().is_some_and(|work| work.step != step) {
                self.abandon_work().await?;
                continue;
            }
            match step {
                Step::BeginIteration { .. } if self.door_was_gone() => self.look_again = true,
                Step::BeginIteration { iteration } => {
                    self.journal.push(Event::IterationBegun { iteration }, now)?;
                }
                Step::StartAttempt(id) => self.start_attempt(id).await?,
                Step::StopAttempt(because) => {
                    self.journal.push(Event::AttemptStopRequested { because }, now)?;
                    self.commit(Durability::Written).await?;
                    self.supervisor.stop(ear::ladder(self.journal.state().spec.agent.kind));
                }
                Step::RunGate { gate, run } => self.start_gate(gate, run).await?,
                Step::StopGate(because) => {
                    let ladder = self.gate_ladder();
                    self.journal.push(Event::GateStopRequested { because }, now)?;
                    self.commit(Durability::Written).await?;
                    self.supervisor.stop(ladder);
                }
                Step::TakeCandidate if !self.journal.state().spec.git.candidates => {
                    self.journal.push(
                        Event::CandidateTaken { tree: None, partial: false, touched: Vec::new() },
                        now,
                    )?;
                }
                Step::TakeBase
                | Step::TakeCandidate
                | Step::Commit { .. }
                | Step::SaveWork
                | Step::ReleaseWorktree => self.work(step).await?,
                Step::Critique { iteration } => self.start_critique(iteration).await?,
                Step::StopCritique(because) => {
                    let critique = self.journal.state().spec.critique.as_ref();
                    let ladder = critique.map(|critique| ear::ladder(critique.critic.kind));
                    self.journal.push(Event::CritiqueStopRequested { because }, now)?;
                    self.commit(Durability::Written).await?;
                    self.supervisor.stop(ladder.unwrap_or_default());
                }
                Step::ChangeAgent => self.change_agent(now)?,
                Step::Wait(wait) => self.journal.push(Event::WaitStarted(wait), now)?,
                Step::Await { until } => self.take(until).await?,
                Step::Finish(end) => self.journal.push(Event::LoopEnded(end), now)?,
                // The end is on record; how the sweep went still is to be.
                Step::Rest if self.journal.state().sweeping => self.take(None).await?,
                Step::Rest => return self.let_go().await,
            }
        }
    }

    /// Whether somebody deleted the doorbell, so that nobody could ring; looked at once an iteration. It is made anew.
    fn door_was_gone(&mut self) -> bool {
        let dir = self.journal.dir();
        if dir.doorbell().exists() {
            return false;
        }
        // Where its whole folder is gone, the next commit writes it back, and the doorbell with it.
        let installed = install_doorbell(dir).ok();
        installed.is_some_and(|doorbell| {
            self.doorbell = doorbell;
            true
        })
    }

    /// What comes next. Whether the account waits is asked only where an attempt would start: whoever asks may become the
    /// one that tries first.
    async fn decide(&mut self, now: Timestamp) -> Result<Step, EngineError> {
        if let Some(cost) = self.purse.as_ref().and_then(|purse| purse.due(self.journal.state())) {
            self.with_purse(move |purse| purse.settle(cost)).await;
        }
        let mut live = self.live(now);
        let mut step = next_step(self.journal.state(), &live, now);
        let account = if let Step::StartAttempt(_) = step { self.account.take() } else { None };
        if let Some(mut account) = account {
            let (account, wait) = blocking(move || {
                let wait = account.wait(now);
                (account, wait)
            })
            .await;
            self.account = Some(account);
            live.account = wait;
            step = next_step(self.journal.state(), &live, now);
        }
        let state = self.journal.state();
        let question = match (state.costs_of(&step), &mut self.purse) {
            (Some(agent), Some(purse)) => purse.question(state, (&step, agent), now)?,
            _ => None,
        };
        let Some(question) = question else { return Ok(step) };
        if let Some(allowance) = self.with_purse(move |purse| purse.ask(question)).await {
            live.allowance = allowance?;
        }
        Ok(next_step(self.journal.state(), &live, now))
    }

    /// Has something done about money where blocking is allowed.
    async fn with_purse<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Purse) -> T + Send + 'static,
    ) -> Option<T> {
        let mut purse = self.purse.take()?;
        let (purse, result) = blocking(move || {
            let result = work(&mut purse);
            (purse, result)
        })
        .await;
        self.purse = Some(purse);
        Some(result)
    }

    /// What is known of the attempt in flight.
    fn live(&self, now: Timestamp) -> Live {
        let Some(flight) = &self.flight else { return Live::default() };
        let last_output = flight.meter.last_output().and_then(|ago| now.checked_sub(ago).ok());
        let allowance = self.purse.as_ref().and_then(Purse::allowance);
        Live { last_output, output_lost: flight.output_lost, used: flight.used, account: None, allowance }
    }

    /// The record first, synced; then the agent.
    async fn start_attempt(&mut self, id: AttemptId) -> Result<(), EngineError> {
        let dir = self.journal.dir().attempt(id);
        let (state, loop_dir) = (self.journal.state(), self.journal.dir());
        let (logs, gate_logs) =
            (executor::failure_logs(state, loop_dir), gate::failure_logs(state, loop_dir));
        let before = executor::earlier_logs(state, loop_dir);
        let touched = gate::touched_log(state, loop_dir);
        let is_well = logs.is_empty() && gate_logs.is_empty() && touched.is_none();
        let (attempt, gates, touched, earlier) = match is_well {
            true => (None, Vec::new(), None, Vec::new()),
            false => {
                let read = move || {
                    let earlier =
                        before.iter().filter_map(|(id, logs)| Some((*id, executor::last_words(logs)?)));
                    let touched = touched.as_deref().and_then(executor::end_of);
                    (executor::last_words(&logs), gate::last_words(&gate_logs), touched, earlier.collect())
                };
                blocking(read).await
            }
        };
        let (attempt, touched) = (attempt.as_deref(), touched.as_deref());
        let printed = Printed { attempt, gates: &gates, touched, earlier: &earlier };
        let heard = (self.take_off(), self.sender.clone());
        let allowance = self.purse.as_ref().and_then(Purse::allowance);
        let plan = Plan::new(self.journal.state(), id, dir, printed, &self.env, heard, allowance);
        let (spec, files) = (self.journal.state().spec.clone(), Arc::clone(&self.files));
        self.journal.push(Event::AttemptStarted(id), now())?;
        let batch = self.journal.batch(Durability::Synced);
        let (committed, job) = blocking(move || {
            let committed = batch.write()?;
            Ok::<_, EngineError>((committed, executor::prepare(&spec, plan, &files)))
        })
        .await?;
        self.committed(committed).await?;
        match job {
            Ok(job) => self.supervisor.run(job),
            Err(error) => self.journal.push(Event::AttemptSpawnFailed { error: chain(&error) }, now())?,
        }
        Ok(())
    }

    /// From here on another agent works, whose provider may be another too.
    fn change_agent(&mut self, now: Timestamp) -> Result<(), EngineError> {
        let Some(agent) = self.journal.state().other_agent().cloned() else { return Ok(()) };
        self.journal.push(Event::AgentChanged(Box::new(agent)), now)?;
        self.account = Account::new(&self.journal.state().spec, &self.env, &self.state_home);
        Ok(())
    }

    /// The record first, synced with all that led here; then the gate.
    async fn start_gate(&mut self, place: usize, run: u32) -> Result<(), EngineError> {
        let meter = self.take_off();
        let state = self.journal.state();
        let proving = state.proving();
        let of = proving.map(Proving::folder);
        let (Some(of), Some(gate)) = (of, state.spec.gates.get(place).cloned()) else { return Ok(()) };
        let started = Event::GateStarted { gate: gate.name.clone(), run };
        let job = match &gate.check {
            Check::Command(command) => {
                let job = gate::job(state, (&gate, command), (of, run), self.journal.dir(), meter);
                self.journal.push(started, now())?;
                self.commit(Durability::Synced).await?;
                Ok(job)
            }
            Check::Review(review) => {
                let candidate = proving.and_then(|proving| proving.candidate.clone());
                let (review, dir) = (review.clone(), self.journal.dir().clone());
                self.journal.push(started, now())?;
                self.commit(Durability::Synced).await?;
                self.prepare(meter, candidate, move |state, changes| {
                    Brief::review(state, (&gate, &review), (of, run), &dir, changes)
                })
                .await
            }
        };
        match job {
            Ok(job) => self.supervisor.run(job),
            Err(error) => {
                self.flight = None;
                self.journal.push(Event::GateSpawnFailed { error: chain(&error) }, now())?;
            }
        }
        Ok(())
    }

    /// The record first, synced with all that led here; then the critic.
    async fn start_critique(&mut self, iteration: u32) -> Result<(), EngineError> {
        let state = self.journal.state();
        let critic = state.spec.critique.as_ref().map(|critique| critique.critic.clone());
        let (Some(critic), Some(last)) = (critic, state.last_charged()) else { return Ok(()) };
        let (of, dir) = (last.id, self.journal.dir().clone());
        let candidate = state.proof.as_ref().map(|proof| proof.candidate.clone());
        let meter = self.take_off();
        self.journal.push(Event::CritiqueStarted { iteration }, now())?;
        self.commit(Durability::Synced).await?;
        let brief = move |state: &LoopState, changes: Option<&Changes>| {
            Brief::critique(state, &critic, of, &dir, changes)
        };
        match self.prepare(meter, candidate, brief).await {
            Ok(job) => self.supervisor.run(job),
            Err(error) => {
                self.flight = None;
                self.journal.push(Event::CritiqueFailed { error: chain(&error) }, now())?;
            }
        }
        Ok(())
    }

    /// Everything that must be there before an agent judges: what was changed, and what it is told of that.
    async fn prepare(
        &self,
        meter: Arc<Meter>,
        candidate: Option<Candidate>,
        brief: impl FnOnce(&LoopState, Option<&Changes>) -> Brief + Send + 'static,
    ) -> Result<Job<Hearing>, EngineError> {
        let (state, env, news) = (self.journal.state().clone(), self.env.clone(), self.sender.clone());
        let allowance = self.purse.as_ref().and_then(Purse::allowance);
        blocking(move || {
            let changes = changes(&state.spec, state.git.began.as_ref(), candidate.as_ref(), &env)?;
            brief(&state, changes.as_ref()).prepare(&state, &env, (meter, news), allowance)
        })
        .await
    }

    /// How the gate in flight is ended.
    fn gate_ladder(&self) -> StopLadder {
        let state = self.journal.state();
        let gate = state.running_gate().and_then(|running| state.spec.gates.get(running.gate));
        match gate.map(|gate| &gate.check) {
            Some(Check::Review(review)) => ear::ladder(review.agent.kind),
            Some(Check::Command(_)) | None => StopLadder::default(),
        }
    }

    /// From here on a process of the loop's is watched.
    fn take_off(&mut self) -> Arc<Meter> {
        let pulse = Arc::clone(&self.pulse);
        let meter = Arc::new(Meter::new(move || pulse.update(|beat| beat.prints += 1)));
        self.flight = Some(Flight { meter: Arc::clone(&meter), used: Usage::default(), output_lost: false });
        meter
    }

    /// Has git do the step, and waits for one input: that it is done, or something else.
    async fn work(&mut self, step: Step) -> Result<(), EngineError> {
        if self.work.is_none() {
            // Whatever git does is behind what is on disk: a crash finds the step still to be done, and git looks first.
            self.commit(Durability::Synced).await?;
            let (journal, env) = (&self.journal, &self.git_env);
            self.work = Work::begin(step, journal.state(), journal.dir(), env, &self.opened, LONGEST)?;
        }
        self.take(None).await
    }

    /// The loop has something else to do than to wait for git: it is ended, with its hooks. What it had done by then counts.
    async fn abandon_work(&mut self) -> Result<(), EngineError> {
        let Some(mut work) = self.work.take() else { return Ok(()) };
        work.abandon();
        if let Event::CommitSettled(report) = work.done().await?
            && matches!(report.result, CommitResult::Made { .. })
        {
            self.journal.push(Event::CommitSettled(report), now())?;
        }
        Ok(())
    }

    /// Makes everything so far durable, waits for one input, and handles it.
    async fn take(&mut self, until: Option<Timestamp>) -> Result<(), EngineError> {
        if self.journal.has_pending() {
            self.commit(Durability::Synced).await?;
        }
        // A timer stands still while the machine sleeps and does not know that its clock was set: a wait of the loop's is
        // looked at again now and then. All else is measured on the timer's own clock.
        let waits = self.journal.state().wait.is_some();
        let longest = Duration::from_secs(if waits { 60 } else { 24 * 3600 });
        let timer = until.map(|until| {
            let left = Duration::try_from(until.duration_since(now())).unwrap_or_default();
            Instant::now() + left.min(longest)
        });
        let mut rung = [0; 64];
        let input = tokio::select! {
            Some(news) = self.news.recv() => Input::Agent(news),
            _ = self.doorbell.readable() => {
                let _ = self.doorbell.try_read(&mut rung);
                Input::Bell
            }
            wish = self.signals.next() => Input::Signal(wish),
            done = done(&mut self.work) => Input::Repository(done?),
            () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => Input::Time,
        };
        self.handle(input).await
    }

    async fn handle(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Time => Ok(()),
            Input::Repository(event) => {
                self.work = None;
                Ok(self.journal.push(event, now())?)
            }
            Input::Agent(news) => self.hear(news).await,
            Input::Bell => self.answer().await,
            Input::Signal(Wish::Interrupt) => match self.journal.state().pause {
                None => self.pause(Urgency::AfterIteration),
                Some(_) => self.pause(Urgency::Now),
            },
            Input::Signal(Wish::Terminate) => self.pause(Urgency::Now),
        }
    }

    fn pause(&mut self, urgency: Urgency) -> Result<(), EngineError> {
        Ok(self.journal.push(Event::Asked { request: None, ask: Ask::Pause(urgency) }, now())?)
    }

    async fn hear(&mut self, news: AgentNews) -> Result<(), EngineError> {
        match news {
            // Only an attempt's number is of use to anybody: all else is found by its mark.
            AgentNews::Started(_) if self.journal.state().in_flight().is_none() => Ok(()),
            AgentNews::NotStarted(error) if self.journal.state().critiquing().is_some() => {
                self.flight = None;
                Ok(self.journal.push(Event::CritiqueFailed { error }, now())?)
            }
            AgentNews::CritiqueFinished(finished) => {
                self.flight = None;
                Ok(self.journal.push(Event::CritiqueFinished(finished), now())?)
            }
            AgentNews::NotStarted(error) if self.journal.state().running_gate().is_some() => {
                self.flight = None;
                Ok(self.journal.push(Event::GateSpawnFailed { error }, now())?)
            }
            AgentNews::GateFinished(finished) => {
                self.flight = None;
                Ok(self.journal.push(Event::GateFinished(finished), now())?)
            }
            AgentNews::Started(process) => {
                self.journal.push(Event::AttemptSpawned { process }, now())?;
                self.commit(Durability::Written).await
            }
            AgentNews::NotStarted(error) => {
                Ok(self.journal.push(Event::AttemptSpawnFailed { error }, now())?)
            }
            AgentNews::Used(used) => {
                self.flight.iter_mut().for_each(|flight| flight.used = used);
                let cost = self.journal.state().cost_so_far(&used);
                if self.purse.as_ref().is_some_and(|purse| purse.is_tight(cost)) {
                    self.with_purse(move |purse| purse.grow(cost)).await;
                }
                Ok(())
            }
            AgentNews::Answered => {
                if let Some(account) = &mut self.account {
                    account.answered();
                }
                Ok(())
            }
            AgentNews::Finished(finished) => {
                self.flight = None;
                self.journal.push(Event::AttemptFinished(finished), now())?;
                if let Some(account) = &mut self.account {
                    account.learn(self.journal.state());
                }
                Ok(())
            }
            AgentNews::Swept { killed, survivors } => {
                Ok(self.journal.push(Event::AttemptSwept { killed, survivors }, now())?)
            }
            AgentNews::OutputLost => {
                self.flight.iter_mut().for_each(|flight| flight.output_lost = true);
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
        let Self { news, journal, lock, worktree, supervisor, git_env, .. } = self;
        let (dir, state) = (journal.dir().clone(), journal.state().clone());
        // Whoever asked while the lock was still held was told to wait for it: look once more.
        let later = blocking(move || {
            drop(news);
            drop(supervisor);
            drop((journal, worktree, lock));
            answer_without_runner(&dir, &git_env)
        });
        Ok(later.await?.unwrap_or(state))
    }

    async fn commit(&mut self, durability: Durability) -> Result<(), EngineError> {
        let batch = self.journal.batch(durability);
        let committed = match durability {
            // A few hundred bytes into the page cache: handing them to another thread takes longer.
            Durability::Written => batch.write()?,
            Durability::Synced => blocking(move || batch.write()).await?,
        };
        self.committed(committed).await
    }

    /// Tells the screen; and where the journal had to be written back, records that, and takes what was deleted with it.
    async fn committed(&mut self, mut committed: Committed) -> Result<(), EngineError> {
        while let Some(bytes) = committed.restored {
            self.journal.push(Event::JournalRestored { bytes }, now())?;
            let batch = self.journal.batch(Durability::Synced);
            committed = blocking(move || batch.write()).await?;
            // The doorbell went with it. If it is being deleted again, so is the journal, and the next commit comes by here
            // once more.
            if let Ok(doorbell) = install_doorbell(self.journal.dir()) {
                self.doorbell = doorbell;
                self.look_again = true;
            }
        }
        self.pulse.update(|beat| beat.journal = committed.length);
        Ok(())
    }
}

/// What git did, once it is done; never, where it does nothing.
async fn done(work: &mut Option<Work>) -> Result<Event, EngineError> {
    match work {
        Some(work) => work.done().await,
        None => std::future::pending().await,
    }
}

/// The runner's end of the doorbell.
fn install_doorbell(dir: &LoopDir) -> Result<pipe::Receiver, EngineError> {
    pipe::OpenOptions::new()
        .read_write(true)
        .open_receiver(Doorbell::install(dir)?)
        .map_err(|error| EngineError::Process("the doorbell cannot be opened", error))
}

/// Runs what blocks where blocking is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        // Nobody cancels these tasks: it panicked, and so do we.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
