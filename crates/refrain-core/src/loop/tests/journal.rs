//! A journal written by hand: events under a virtual clock, folded as they come.

use jiff::{SignedDuration, Timestamp};

use crate::agent::{AgentReport, Fault, FaultKind, Scope, Tokens, Usd};
use crate::event::{
    Arrival, Ask, Asker, AttemptFinished, BlockReason, ClaimSource, CritiqueFinished, Departure, End, Event,
    Exit, FORMAT, GateFinished, Identity, LoopStarted, Process, Record, StopReason, Urgency, Wait, WaitKind,
};
use crate::gate::{Check, GateName, GateSpec, GateWhen};
use crate::git::{
    Base, Checks, ChecksVerdict, CommitReport, CommitResult, Effect, FailedCheck, Oid, PublishReport,
    PublishResult, PullRequest, Refusal, SkipReason, Workflow,
};
use crate::ids::{AttemptId, RequestId};
use crate::r#loop::{ChildId, Grant, Live, LoopState, Phase, Steering, Step, next_step};
use crate::machine::Damage;
use crate::plan::TaskRef;
use crate::promise::{MatchMode, Promise, PromiseText};
use crate::prompt::state_file::WorkStatus;
use crate::session::{MAX_IDLE_TURNS, Session, SessionSpec};
use crate::spec::{AgentKind, AgentSpec, Limits, Millis, OnStuck, Spec};

impl PartialEq<&str> for Steering {
    fn eq(&self, text: &&str) -> bool {
        self.by == Asker::Person && self.text == *text
    }
}

/// The instant `ms` milliseconds after every test's first event.
pub(crate) fn time(ms: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000) + SignedDuration::from_millis(ms)
}

pub(in crate::r#loop) fn unlimited() -> Limits {
    Limits::default()
}

/// A specification with a promise and without any limit.
pub(crate) fn spec() -> Spec {
    let text = "COMPLETE".parse::<PromiseText>().unwrap();
    Spec {
        promise: Some(Promise { text, mode: MatchMode::Plain }),
        limits: unlimited(),
        ..Spec::new(
            "mend".parse().unwrap(),
            AgentSpec::new(AgentKind::Generic, "agent"),
            "Mend the tests.",
            "/project",
        )
    }
}

pub(in crate::r#loop) fn session(id: Option<&str>) -> Session {
    let Identity { process, boot, host } = runner(9);
    Session { agent: AgentKind::Claude, id: id.map(str::to_owned), process: Some(process), boot, host }
}

/// The end of a session's turn that only talked.
pub(in crate::r#loop) fn idle() -> AttemptFinished {
    AttemptFinished { idle: true, ..finished(Exit::Unseen) }
}

/// A plan's task that a loop can be about.
pub(in crate::r#loop) fn task() -> TaskRef {
    let title = "Mend the tests".to_owned();
    TaskRef { plan: "plan".parse().unwrap(), tag: "main".into(), id: "2".parse().unwrap(), title, round: 1 }
}

pub(crate) fn runner(pid: i32) -> Identity {
    Identity { process: Process { pid, start: 1 }, boot: "boot".into(), host: "host".into() }
}

/// What `resume` grants.
pub(in crate::r#loop) fn grant(max_iterations: Option<u32>, max_duration: Option<Millis>) -> Grant {
    Grant { max_iterations, max_duration, ..Grant::default() }
}

/// The end of an agent that said nothing.
pub(crate) fn finished(exit: Exit) -> AttemptFinished {
    AttemptFinished::new(exit)
}

/// The end of an agent that needs a person.
pub(in crate::r#loop) fn blocked() -> AttemptFinished {
    AttemptFinished { state: Some(WorkStatus::Blocked), ..finished(Exit::Code(0)) }
}

/// The end of an agent whose stream came to this; it said that it is over.
pub(in crate::r#loop) fn reporting(change: impl FnOnce(&mut AgentReport)) -> AttemptFinished {
    let mut report = AgentReport { is_final: true, ..AgentReport::default() };
    change(&mut report);
    AttemptFinished { report: Some(Box::new(report)), ..finished(Exit::Code(0)) }
}

/// The end of an agent that met this fault.
pub(in crate::r#loop) fn failing(kind: FaultKind) -> AttemptFinished {
    let fault = Fault { kind, message: "so it was".into(), until: None };
    AttemptFinished { exit: Exit::Code(1), ..reporting(|report| report.fault = Some(fault)) }
}

pub(in crate::r#loop) fn tokens(input: u64, output: u64) -> Tokens {
    Tokens { input: Some(input), cached_input: None, output: Some(output) }
}

/// The end of an agent that claims like this.
pub(in crate::r#loop) fn claiming(claim: ClaimSource) -> AttemptFinished {
    AttemptFinished {
        promised: claim == ClaimSource::Promise,
        state: (claim == ClaimSource::StateFile).then_some(WorkStatus::Done),
        ..finished(Exit::Code(0))
    }
}

pub(in crate::r#loop) fn started(spec: Spec) -> Event {
    Event::LoopStarted(Box::new(LoopStarted { format: FORMAT, refrain: "0.1.0".into(), spec }))
}

pub(in crate::r#loop) fn spawned() -> Event {
    Event::AttemptSpawned { process: Process { pid: 7, start: 7 } }
}

pub(in crate::r#loop) fn spawn_failed() -> Event {
    Event::AttemptSpawnFailed { error: "no such file".into() }
}

pub(in crate::r#loop) fn stop(because: StopReason) -> Event {
    Event::AttemptStopRequested { because }
}

pub(in crate::r#loop) fn asked(ask: Ask) -> Event {
    Event::Asked { request: None, ask, by: Default::default() }
}

pub(in crate::r#loop) fn request(id: impl Into<String>) -> RequestId {
    id.into().parse().unwrap()
}

pub(in crate::r#loop) fn pace(until: i64) -> Wait {
    Wait { kind: WaitKind::Pace, until: time(until) }
}

pub(in crate::r#loop) fn id(iteration: u32, attempt: u32) -> AttemptId {
    AttemptId { iteration, attempt }
}

/// The name of the object that has this number.
pub(in crate::r#loop) fn oid(number: u32) -> Oid {
    format!("{number:040x}").parse().unwrap()
}

/// A clean tree on `main`.
/// It leaves for a remote, from the machine with this fence.
pub(in crate::r#loop) fn left(fence: u64) -> Event {
    Event::LoopLeft(Box::new(Departure { to: "there".into(), fence, head: oid(1), work: None }))
}

/// It arrives at another machine, with this fence.
pub(in crate::r#loop) fn moved(fence: u64) -> Event {
    Event::LoopMoved(Box::new(Arrival {
        from: "there".into(),
        fence,
        claim: Some(oid(7)),
        host: "two".into(),
        project: "/two".into(),
        worktree: "/two/w".into(),
        branch: None,
        working_dir: "/two/w/a".into(),
        agents: [("agent".to_owned(), "/two/agent".to_owned())].into(),
        pins: None,
        programs: vec![],
        sandbox: None,
    }))
}

pub(in crate::r#loop) fn base_taken() -> Event {
    Event::BaseTaken(Box::new(Base { head: Some(oid(0)), branch: Some("main".into()), ..Base::default() }))
}

/// Every third iteration changes nothing.
pub(in crate::r#loop) fn commit_settled(iteration: u32) -> Event {
    let made = !iteration.is_multiple_of(3);
    let result = match made {
        true => CommitResult::Made { commit: oid(iteration), tree: oid(1000 + iteration) },
        false => CommitResult::Skipped(SkipReason::Nothing),
    };
    let head = Some(oid(if made { iteration } else { iteration.saturating_sub(1) }));
    Event::CommitSettled(Box::new(CommitReport {
        result,
        ..CommitReport::skipped(iteration, SkipReason::Nothing, head)
    }))
}

pub(in crate::r#loop) fn published(effect: Effect, result: PublishResult) -> Event {
    Event::PublishSettled(Box::new(PublishReport { effect, result }))
}

pub(in crate::r#loop) fn well(effect: Effect) -> PublishResult {
    match effect {
        Effect::Push => PublishResult::Pushed { remote: "origin".into(), branch: "loop/mend".into() },
        Effect::Open | Effect::Ready => {
            PublishResult::Requested(PullRequest { number: 7, url: "https://forge/7".into() })
        }
        Effect::Look => checked(ChecksVerdict::Green),
        Effect::Merge => PublishResult::Merged { commit: Some(oid(77)) },
        Effect::Return => PublishResult::Returned { kept: None },
    }
}

/// The results of two checks, of which one failed if they are red.
pub(in crate::r#loop) fn checked(verdict: ChecksVerdict) -> PublishResult {
    let failed = FailedCheck { name: "build".into(), url: None };
    let failed = if verdict == ChecksVerdict::Red { vec![failed] } else { Vec::new() };
    PublishResult::Checked(Checks { head: oid(1), verdict, total: 2, over: 1, failed })
}

pub(in crate::r#loop) fn gate_name(place: usize) -> GateName {
    format!("gate-{place}").parse().unwrap()
}

pub(crate) fn gates<const N: usize>(hard: [bool; N]) -> Vec<GateSpec> {
    let gate = |(place, hard)| GateSpec {
        name: gate_name(place),
        check: Check::Command(format!("check {place}")),
        hard,
        timeout: Millis(60_000),
        retries: 0,
        when: GateWhen::Iteration,
        completes: false,
        own_tests: false,
        by_default: false,
    };
    hard.into_iter().enumerate().map(gate).collect()
}

/// A candidate with the tree of this number; none if there is no repository.
pub(in crate::r#loop) fn candidate_taken(tree: Option<u32>) -> Event {
    Event::CandidateTaken { tree: tree.map(oid), partial: false, touched: Vec::new(), changed: Vec::new() }
}

pub(in crate::r#loop) fn gate_finished(place: usize, exit: Exit) -> GateFinished {
    GateFinished { duration: Millis(7), ..GateFinished::new(gate_name(place), exit) }
}

/// The end of a critic that had something to say.
pub(in crate::r#loop) fn criticised(exit: Exit) -> CritiqueFinished {
    let feedback = Some("Look at the other file.".to_owned());
    CritiqueFinished { exit, feedback, error: None, left: false, report: None }
}

/// The agent that continues when a loop is stuck.
pub(in crate::r#loop) fn other_agent() -> AgentSpec {
    AgentSpec { model: Some("another".into()), ..spec().agent }
}

pub(in crate::r#loop) fn work_saved() -> Event {
    Event::WorkSaved { branch: "wip/mend".into(), commit: oid(99), pushed: None, mixed: Vec::new() }
}

/// The event that records a step, for steps that are recorded.
pub(in crate::r#loop) fn event_of(state: &LoopState, step: Step) -> Option<Event> {
    match step {
        Step::TakeBase => Some(base_taken()),
        Step::Commit { iteration } => Some(commit_settled(iteration)),
        Step::ReleaseWorktree => Some(Event::WorktreeReleased { kept: None, branch_removed: false }),
        Step::BeginIteration { iteration } => Some(Event::IterationBegun { iteration, work: None }),
        Step::Start(child) => state.started(child),
        Step::Stop(because) => state.stop_requested(because),
        Step::TakeCandidate => Some(candidate_taken(None)),
        Step::Intend(effect) => Some(Event::PublishStarted { effect }),
        Step::Publish(effect) => Some(published(effect, well(effect))),
        Step::ChangeAgent => Some(Event::AgentChanged(Box::new(other_agent()))),
        Step::SaveWork => Some(work_saved()),
        Step::Wait(wait) => Some(Event::WaitStarted(wait)),
        Step::Finish(end) => Some(Event::LoopEnded(end)),
        Step::Await { .. } | Step::Rest => None,
    }
}

pub(in crate::r#loop) fn kind(event: &Event) -> &'static str {
    match event {
        Event::LoopStarted(_) => "loop.started",
        Event::RunnerStarted { .. } => "runner.started",
        Event::SessionBound(_) => "session.bound",
        Event::SessionLeft => "session.left",
        Event::BaseTaken(_) => "base.taken",
        Event::BaseRefused { .. } => "base.refused",
        Event::CommitSettled(_) => "commit.settled",
        Event::WorktreeReleased { .. } => "worktree.released",
        Event::PublishStarted { .. } => "publish.started",
        Event::PublishSettled(_) => "publish.settled",
        Event::CritiqueStarted { .. } => "critique.started",
        Event::CritiqueFailed { .. } => "critique.failed",
        Event::CritiqueStopRequested { .. } => "critique.stop-requested",
        Event::CritiqueFinished(_) => "critique.finished",
        Event::AgentChanged(_) => "agent.changed",
        Event::WorkSaved { .. } => "work.saved",
        Event::WorkUnsaved { .. } => "work.unsaved",
        Event::CandidateTaken { .. } => "candidate.taken",
        Event::CandidateRefused { .. } => "candidate.refused",
        Event::GateStarted { .. } => "gate.started",
        Event::GateSpawnFailed { .. } => "gate.spawn-failed",
        Event::GateStopRequested { .. } => "gate.stop-requested",
        Event::GateFinished(_) => "gate.finished",
        Event::IterationBegun { .. } => "iteration.begun",
        Event::AttemptStarted(_) => "attempt.started",
        Event::AttemptSpawned { .. } => "attempt.spawned",
        Event::AttemptSpawnFailed { .. } => "attempt.spawn-failed",
        Event::AttemptStopRequested { .. } => "attempt.stop-requested",
        Event::AttemptFinished(_) => "attempt.finished",
        Event::AttemptSwept { .. } => "attempt.swept",
        Event::Asked { .. } => "asked",
        Event::WaitStarted(_) => "wait.started",
        Event::LoopEnded(_) => "loop.ended",
        Event::LoopResumed { .. } => "loop.resumed",
        Event::LoopLeft(_) => "loop.left",
        Event::LoopMoved(_) => "loop.moved",
        Event::JournalTorn { .. } => "journal.torn",
        Event::JournalRestored { .. } => "journal.restored",
    }
}

/// A journal, the state that it adds up to, and a clock.
#[derive(Clone, Debug)]
pub(in crate::r#loop) struct Journal {
    pub(in crate::r#loop) records: Vec<Record>,
    pub(in crate::r#loop) state: LoopState,
    pub(in crate::r#loop) live: Live,
    pub(in crate::r#loop) now: i64,
}

impl Journal {
    /// A loop that exists and has no runner.
    pub(in crate::r#loop) fn of(spec: Spec) -> Self {
        let record = Record { seq: 1, at: time(0), event: started(spec) };
        let state = LoopState::begin(&record).unwrap();
        Self { records: vec![record], state, live: Live::default(), now: 0 }
    }

    pub(in crate::r#loop) fn limited(change: impl FnOnce(&mut Limits)) -> Self {
        let mut spec = spec();
        change(&mut spec.limits);
        Self::of(spec).taken_over()
    }

    /// A loop without any limit, and with a runner.
    pub(in crate::r#loop) fn running() -> Self {
        Self::limited(|_| ())
    }

    pub(in crate::r#loop) fn committing() -> Self {
        let mut spec = spec();
        spec.git.workflow = Workflow::Commit;
        Self::of(spec).taken_over()
    }

    pub(in crate::r#loop) fn publishing(workflow: Workflow, change: impl FnOnce(&mut Spec)) -> Self {
        let mut spec = spec();
        spec.git.workflow = workflow;
        change(&mut spec);
        Self::of(spec).taken_over().obey()
    }

    /// A loop with gates, of which these decide, and a runner. There is a repository, whose base is known.
    pub(in crate::r#loop) fn gated<const N: usize>(hard: [bool; N]) -> Self {
        Self::gated_by(gates(hard), |_| ())
    }

    pub(in crate::r#loop) fn gated_by(gates: Vec<GateSpec>, change: impl FnOnce(&mut Spec)) -> Self {
        let mut spec = Spec { gates, ..spec() };
        spec.git.candidates = true;
        change(&mut spec);
        let journal = Self::of(spec).taken_over();
        if journal.state.spec.git.needs_base() { journal.obey() } else { journal }
    }

    /// A loop whose gate failed five times in the same way, though it claimed and something was changed each time.
    pub(in crate::r#loop) fn stuck(answer: OnStuck) -> Self {
        let journal = Self::gated_by(gates([true]), |spec| spec.stuck.answer = answer);
        (1..=5).fold(journal.takes(0).gates_end(&[1]), |journal, tree| {
            journal.attempts(claiming(ClaimSource::Promise)).takes(tree).gates_end(&[1])
        })
    }

    /// A loop that hardly waits for its provider.
    fn hurried() -> Self {
        Self::limited(|limits| limits.retry_for = Some(Millis(1)))
    }

    pub(in crate::r#loop) fn claimed(claim: ClaimSource) -> Self {
        let mut spec = spec();
        spec.promise = spec.promise.filter(|_| claim != ClaimSource::ExitCode);
        Self::of(spec).taken_over().spawns().after_ms(3_000).ends(claiming(claim))
    }

    pub(in crate::r#loop) fn in_session() -> Self {
        let begun = SessionSpec {
            command: "/refrain:loop".into(),
            args: String::new(),
            isolation: Default::default(),
        };
        Self::of(Spec { session: Some(begun), ..spec() }).then(Event::SessionBound(session(Some("s"))))
    }

    pub(in crate::r#loop) fn turns(self, finished: AttemptFinished) -> Self {
        self.starts().after_ms(3_000).ends(finished)
    }

    /// A loop that stopped like this, by what leads there.
    pub(in crate::r#loop) fn ended(end: End) -> Self {
        let journal = match end {
            End::Completed { claim } => Self::claimed(claim),
            End::Cancelled => Self::running().asks(Ask::Cancel(Urgency::AfterIteration)),
            End::Paused => Self::running().asks(Ask::Pause(Urgency::AfterIteration)),
            End::IterationCap => {
                Self::limited(|limits| limits.max_iterations = Some(1)).runs(3_000, Exit::Code(0))
            }
            End::TimedOut => {
                Self::limited(|limits| limits.max_duration = Some(Millis(3_000))).runs(3_000, Exit::Code(0))
            }
            End::BudgetExceeded { .. } => {
                Self::limited(|limits| limits.max_tokens = Some(100)).spawns().ends(reporting(|report| {
                    report.tokens = Some((Scope::Attempt, tokens(90, 10)));
                }))
            }
            End::Blocked { why: BlockReason::CostUnknown } => {
                Self::limited(|limits| limits.max_cost = Some(Usd(1))).spawns().ends(reporting(|_| ()))
            }
            End::Blocked { why: BlockReason::Limit } => {
                Self::hurried().spawns().ends(failing(FaultKind::Limit))
            }
            End::Blocked { why: BlockReason::Outage } => {
                Self::hurried().spawns().ends(failing(FaultKind::Overloaded))
            }
            End::Blocked { why: BlockReason::Login } => {
                Self::running().spawns().ends(failing(FaultKind::Login))
            }
            End::Blocked { why: BlockReason::Forbidden } => {
                Self::running().spawns().ends(failing(FaultKind::Forbidden))
            }
            End::Blocked { why: BlockReason::Credit } => {
                Self::running().spawns().ends(failing(FaultKind::Credit))
            }
            End::Blocked { why: BlockReason::Model } => {
                Self::running().spawns().ends(failing(FaultKind::Model))
            }
            End::Blocked { why: BlockReason::Setup } => {
                Self::running().spawns().ends(failing(FaultKind::Setup))
            }
            End::Blocked { why: BlockReason::Session } => {
                Self::running().spawns().ends(failing(FaultKind::Session))
            }
            End::Blocked { why: BlockReason::Refunds } => Self::running().crashes().crashes().crashes(),
            End::Blocked { why: BlockReason::Churn } => {
                (0..3).fold(Self::running(), |journal, _| journal.runs(0, Exit::Code(1)))
            }
            End::Blocked { why: BlockReason::AgentMissing } => Self::running().starts().then(spawn_failed()),
            End::Blocked { why: BlockReason::GateMissing } => {
                let journal = Self::gated_by(gates([true]), |spec| spec.gates_must_run = true);
                journal.takes(0).gates_end(&[127])
            }
            End::Stuck => Self::stuck(OnStuck::Stop).obey(),
            End::Blocked { why: BlockReason::Stuck } => Self::stuck(OnStuck::Ask),
            End::Blocked { why: BlockReason::Idle } => {
                (0..MAX_IDLE_TURNS).fold(Self::in_session(), |journal, _| journal.turns(idle()))
            }
            End::Blocked { why: BlockReason::StateFile } => {
                Self::running().attempts(blocked()).attempts(blocked())
            }
            End::Blocked { why: BlockReason::GaveUp } => {
                let gave_up = Some("there is no such file".to_owned());
                let spec = Spec { task: Some(task()), ..spec() };
                let ended = AttemptFinished { gave_up, ..finished(Exit::Code(0)) };
                Self::of(spec).taken_over().attempts(ended).obey()
            }
            End::Blocked { why: BlockReason::Approval } => Self::of(Spec { approval: true, ..spec() })
                .taken_over()
                .obey()
                .attempts(claiming(ClaimSource::Promise))
                .takes(1),
            End::Blocked { why: BlockReason::Repository } => {
                Self::committing().then(Event::BaseRefused { error: "fatal: no".into() })
            }
            End::Blocked { why: BlockReason::Publish } => {
                let no = PublishResult::Refused { why: Refusal::Permission, said: "no".into() };
                let journal = Self::publishing(Workflow::Push, |_| ()).obey();
                journal.attempts(claiming(ClaimSource::Promise)).obey().publishes(Effect::Push, no)
            }
            End::Blocked { why: BlockReason::OutputLost } => {
                let full =
                    AttemptFinished { output_error: Some("disk full".into()), ..finished(Exit::Code(0)) };
                Self::running().spawns().ends(full)
            }
        };
        let journal = journal.obey();
        assert_eq!(journal.state.ended.map(|ended| ended.end), Some(end));
        journal
    }

    pub(in crate::r#loop) fn record(&self, event: Event) -> Record {
        Record { seq: self.state.seq + 1, at: time(self.now).max(self.state.updated_at), event }
    }

    pub(in crate::r#loop) fn then(mut self, event: Event) -> Self {
        let record = self.record(event);
        self.state.apply(&record).unwrap_or_else(|damage| panic!("{damage}\nafter {:#?}", self.state));
        self.records.push(record);
        self
    }

    /// The event is damage, and changes nothing.
    pub(in crate::r#loop) fn refuses(&self, event: Event) -> Damage {
        let mut state = self.state.clone();
        let damage = state.apply(&self.record(event)).unwrap_err();
        assert_eq!(state, self.state, "damaged by an event that it refused");
        damage
    }

    pub(in crate::r#loop) fn after_ms(mut self, ms: i64) -> Self {
        self.now += ms;
        self
    }

    pub(in crate::r#loop) fn asks(self, ask: Ask) -> Self {
        self.then(asked(ask))
    }

    /// A new runner finds what the last one left.
    pub(in crate::r#loop) fn taken_over(self) -> Self {
        let event = self.state.recover(runner(1));
        self.then(event)
    }

    pub(in crate::r#loop) fn next(&self) -> Step {
        next_step(&self.state, &self.live, time(self.now))
    }

    pub(in crate::r#loop) fn obey(self) -> Self {
        let event =
            event_of(&self.state, self.next()).unwrap_or_else(|| panic!("{:?} is not recorded", self.next()));
        self.then(event)
    }

    /// Obeys until an attempt is recorded as started.
    pub(in crate::r#loop) fn starts(mut self) -> Self {
        assert!(self.state.running_gate().is_none(), "a gate is in flight");
        while !matches!(self.state.phase, Phase::InFlight(_)) {
            self = self.obey();
        }
        self.live = Live::default();
        self
    }

    /// Obeys until an agent runs.
    pub(in crate::r#loop) fn spawns(self) -> Self {
        self.starts().then(spawned())
    }

    pub(in crate::r#loop) fn ends(self, finished: AttemptFinished) -> Self {
        self.then(Event::AttemptFinished(Box::new(finished)))
    }

    pub(in crate::r#loop) fn exits(self, exit: Exit) -> Self {
        self.ends(finished(exit))
    }

    /// The candidate is taken, with the tree of this number.
    pub(in crate::r#loop) fn takes(self, tree: u32) -> Self {
        assert_eq!(self.next(), Step::TakeCandidate);
        self.then(candidate_taken(Some(tree)))
    }

    pub(in crate::r#loop) fn gates(self) -> Self {
        assert!(matches!(self.next(), Step::Start(ChildId::Gate { .. })), "{:?}", self.next());
        self.obey()
    }

    pub(in crate::r#loop) fn answers(self, change: impl FnOnce(&mut GateFinished)) -> Self {
        let place = self.state.running_gate().expect("a gate is in flight").gate;
        let mut finished = gate_finished(place, Exit::Code(0));
        change(&mut finished);
        self.then(Event::GateFinished(Box::new(finished)))
    }

    /// The next gates are run one after another, and end with these codes.
    pub(in crate::r#loop) fn gates_end(self, codes: &[i32]) -> Self {
        codes
            .iter()
            .fold(self, |journal, code| journal.gates().answers(|finished| finished.exit = Exit::Code(*code)))
    }

    pub(in crate::r#loop) fn attempts(self, finished: AttemptFinished) -> Self {
        self.spawns().after_ms(3_000).ends(finished)
    }

    /// A whole attempt of `ms` milliseconds.
    pub(in crate::r#loop) fn runs(self, ms: i64, exit: Exit) -> Self {
        self.spawns().after_ms(ms).exits(exit)
    }

    /// The next effect outside is begun, and has this result.
    pub(in crate::r#loop) fn publishes(self, effect: Effect, result: PublishResult) -> Self {
        let journal =
            if effect.leaves_something() { self.then(Event::PublishStarted { effect }) } else { self };
        journal.then(published(effect, result))
    }

    pub(in crate::r#loop) fn crashes(self) -> Self {
        self.spawns().taken_over()
    }

    /// Stops, and is resumed with the same limits.
    pub(in crate::r#loop) fn resumes(self) -> Self {
        self.granted(None, None)
    }

    /// A person approves of what it waits with.
    pub(in crate::r#loop) fn approves(self) -> Self {
        let event = self.state.approve(&Grant::default(), None).unwrap().expect("something to record");
        self.then(event).taken_over()
    }

    /// Is resumed with other totals.
    pub(in crate::r#loop) fn granted(self, iterations: Option<u32>, duration: Option<Millis>) -> Self {
        let event = self.state.resume(&grant(iterations, duration)).unwrap().expect("something to record");
        self.then(event).taken_over()
    }
}
