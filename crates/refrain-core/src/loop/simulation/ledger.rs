//! What must hold of a journal, by rules that are simpler than the core's and written from the words of the contract,
//! so that the same mistake would have to be made twice.

mod approval;
mod end;
mod forge;
mod progress;
mod success;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{AgentReport, FaultKind};
use crate::event::{
    Ask, AttemptFinished, BlockReason, ClaimSource, End, Event, Exit, Record, StopReason, Urgency,
};
use crate::gate::{GateName, GateSpec, Verdict};
use crate::git::{CommitResult, Effect, Oid, PublishResult};
use crate::ids::{AttemptId, RequestId};
use crate::r#loop::LoopState;
use crate::r#loop::proof::MAX_ROUNDS;
use crate::prompt::state_file::WorkStatus;
use crate::spec::{Limits, Spec, Until};

/// What is known of a loop from its records, and from when its runners died.
#[derive(Debug)]
pub(super) struct Ledger {
    spec: Spec,
    limits: Limits,
    seq: u64,
    at: Timestamp,
    pub(super) iteration: u32,
    charged: u32,
    started: BTreeSet<AttemptId>,
    flight: Option<Flight>,
    last: Option<Last>,
    refunds: u32,
    instant_failures: u32,
    asked: BTreeMap<RequestId, Ask>,
    cancelled: Option<Urgency>,
    paused: Option<Urgency>,
    /// Words for the next prompt, and whether an agent got them.
    steering: Vec<(String, bool)>,
    waiting: bool,
    ended: Option<End>,
    driven: bool,
    /// A runner drove it since it was last resumed.
    had_runner: bool,
    /// Processes of the last attempt are still there.
    sweeping: bool,
    tokens: u64,
    has_base: bool,
    /// The last iteration whose commit was settled.
    settled: u32,
    /// It was stopped with everything committed, and a person resumed it.
    stale: bool,
    /// The last iteration is still to be committed.
    uncommitted: bool,
    tree: Option<Oid>,
    /// The gate in flight: since when, and why it is stopped.
    gate: Option<(GateName, Timestamp, Option<StopReason>)>,
    /// The last result of each gate: whether it passed, and on which tree.
    words: BTreeMap<GateName, (bool, Option<Oid>)>,
    /// Gates that could not run.
    missing: success::MissingCommands,
    committed: Option<Oid>,
    released: bool,
    /// The critic in flight: since when, and why it is stopped.
    critic: Option<(Timestamp, Option<StopReason>)>,
    /// The last iteration that a critic was asked about.
    criticised: u32,
    /// The last candidate touched protected files.
    touched: bool,
    /// The agent said that it cannot be done, and the loop was not resumed since.
    gave_up: bool,
    /// How many iterations in a row said that a person is needed, since the loop was last resumed.
    blocked: u32,
    /// The candidate has more to it than its tree shows.
    partial: bool,
    /// The next candidate is the first one after an attempt or a commit.
    fresh: bool,
    /// The last attempt ended well without a word.
    silent: bool,
    /// The loop's work is saved, since it was last resumed.
    kept: bool,
    changed: bool,
    /// No attempt before that, unless a person says so.
    not_before: Option<Timestamp>,
    active: Duration,
    outside: forge::ForgeLedger,
    approval: approval::Approval,
    progress: progress::Progress,
    /// How often the candidate of this iteration changed, since the work was made or approved.
    changes: u32,
}

#[derive(Debug)]
struct Flight {
    id: AttemptId,
    spawned: Option<Timestamp>,
    stopped: Option<StopReason>,
}

#[derive(Debug)]
enum Last {
    Charged { claim: Option<ClaimSource> },
    Refunded,
    CouldNotStart,
    DiskFull,
    Provider,
    NeedsAPerson,
}

impl Ledger {
    pub(super) fn new(record: &Record) -> Self {
        let Event::LoopStarted(start) = &record.event else { panic!("a journal begins with its start") };
        Self {
            spec: start.spec.clone(),
            limits: start.spec.limits.clone(),
            seq: record.seq,
            at: record.at,
            iteration: 0,
            charged: 0,
            started: BTreeSet::new(),
            flight: None,
            last: None,
            refunds: 0,
            instant_failures: 0,
            asked: BTreeMap::new(),
            cancelled: None,
            paused: None,
            steering: Vec::new(),
            waiting: false,
            ended: None,
            sweeping: false,
            tokens: 0,
            has_base: false,
            settled: 0,
            stale: false,
            uncommitted: false,
            tree: None,
            gate: None,
            words: BTreeMap::new(),
            missing: Default::default(),
            committed: None,
            released: false,
            critic: None,
            criticised: 0,
            touched: false,
            gave_up: false,
            blocked: 0,
            partial: false,
            fresh: true,
            silent: false,
            kept: false,
            changed: false,
            not_before: None,
            outside: Default::default(),
            approval: Default::default(),
            progress: Default::default(),
            changes: 0,
            driven: false,
            had_runner: false,
            active: Duration::ZERO,
        }
    }

    /// The ledger of a whole journal, whose runners died right after the records `deaths`.
    pub(super) fn of(records: &[Record], deaths: &BTreeSet<u64>) -> Self {
        let (first, rest) = records.split_first().expect("a loop has a first record");
        let mut ledger = Self::new(first);
        for record in rest {
            if deaths.contains(&ledger.seq) {
                ledger.crashed();
            }
            ledger.enter(record);
        }
        if deaths.contains(&ledger.seq) {
            ledger.crashed();
        }
        ledger
    }

    /// The loop has no runner from here on.
    pub(super) fn crashed(&mut self) {
        self.driven = false;
    }

    pub(super) fn has_started(&self, id: AttemptId) -> bool {
        self.started.contains(&id)
    }

    pub(super) fn has_asked(&self, request: &RequestId) -> bool {
        self.asked.contains_key(request)
    }

    pub(super) fn enter(&mut self, record: &Record) {
        let Record { seq, at, event } = record;
        assert_eq!(*seq, self.seq + 1, "a record is missing");
        assert!(*at >= self.at, "time went backwards");
        if self.driven && !self.waiting && self.ended.is_none() {
            self.active +=
                Duration::try_from(at.duration_since(self.at)).expect("time does not go backwards");
        }
        (self.seq, self.at) = (*seq, *at);
        match event {
            Event::LoopStarted(_) => panic!("a loop starts once"),
            Event::SessionBound(_) | Event::SessionLeft => panic!("no session drives a loop here"),
            Event::RunnerStarted { interrupted, judged, .. } => {
                self.pay(judged.as_deref());
                assert_eq!(
                    *interrupted,
                    self.flight.as_ref().map(|flight| flight.id),
                    "an attempt is not settled"
                );
                assert_eq!(self.ended, None, "a runner drives what has stopped");
                if self.flight.take().is_some() {
                    self.refund(Last::Refunded);
                }
                if self.gate.take().is_some() {
                    self.refunds += 1;
                }
                // A critic that is lost is not missed.
                self.critic = None;
                self.outside.forget();
                (self.driven, self.had_runner, self.sweeping) = (true, true, false);
            }
            Event::CritiqueStarted { iteration } => {
                let every = self.spec.critique.as_ref().expect("a critic").every;
                assert_eq!(*iteration, self.iteration, "it is asked about something else");
                assert!(
                    self.charged.is_multiple_of(every) && *iteration > self.criticised,
                    "it is not its turn"
                );
                assert!(
                    self.flight.is_none() && self.gate.is_none() && !self.sweeping,
                    "beside another child"
                );
                self.assert_may_go_on();
                (self.criticised, self.critic) = (*iteration, Some((*at, None)));
            }
            Event::CritiqueFailed { .. } => assert!(self.critic.take().is_some(), "no critic was started"),
            Event::CritiqueStopRequested { because } => {
                let (since, stopped) = self.critic.as_mut().expect("a critic is in flight");
                assert_eq!(stopped.replace(*because), None, "it is stopped twice");
                let limit = self.spec.critique.as_ref().expect("a critic").timeout;
                match because {
                    StopReason::Cancel => assert!(self.cancelled.is_some()),
                    StopReason::Interrupt => assert!(self.paused.is_some()),
                    StopReason::TimeLimit => assert!(at.duration_since(*since).as_millis() >= limit.0.into()),
                    StopReason::LoopDuration => {
                        assert!(self.active >= self.limits.max_duration.expect("a limit").into());
                    }
                    StopReason::Silence
                    | StopReason::OutputLost
                    | StopReason::Budget
                    | StopReason::ProviderWait => panic!("no critic's"),
                }
            }
            Event::CritiqueFinished(finished) => {
                assert!(self.critic.take().is_some(), "no critic was started");
                self.pay(finished.report.as_deref());
                self.sweeping = finished.left;
            }
            Event::AgentChanged(agent) => {
                self.progress.assert_stuck(&self.spec, &self.failures());
                self.progress.forget();
                assert!(!std::mem::replace(&mut self.changed, true), "it changes twice");
                assert_ne!(**agent, self.spec.agent, "nothing changed");
            }
            Event::WorkSaved { .. } | Event::WorkUnsaved { .. } => {
                assert!(self.flight.is_none() && self.gate.is_none() && self.critic.is_none());
                assert!(
                    self.driven && self.ended.is_none() && !self.sweeping,
                    "another process may still write"
                );
                assert!(!std::mem::replace(&mut self.kept, true), "it is kept twice");
            }
            Event::PublishStarted { effect } => {
                assert!(
                    self.driven && self.ended.is_none() && !self.sweeping,
                    "another process may still write"
                );
                assert!(self.flight.is_none() && self.gate.is_none() && self.critic.is_none());
                assert!(self.cancelled != Some(Urgency::Now) && self.paused != Some(Urgency::Now));
                self.waiting = false;
                if matches!(effect, Effect::Ready | Effect::Merge) {
                    self.assert_approved();
                }
                if !self.claims() && matches!(effect, Effect::Ready | Effect::Merge) {
                    self.assert_proven();
                }
                self.outside.intend(*effect, self.spec.git.workflow, self.claims() || self.is_counted());
            }
            Event::PublishSettled(report) => {
                self.waiting = false;
                self.outside.settle(report);
                if let PublishResult::Rebased { tree, .. } = &report.result {
                    self.committed = Some(tree.clone());
                }
            }
            Event::BaseTaken(base) => {
                self.outside.base(base.head.as_ref());
                assert!(self.driven, "no runner drives it");
                assert!(self.spec.git != Default::default(), "git was not requested");
                let again = std::mem::replace(&mut self.has_base, true);
                assert_eq!(again, std::mem::take(&mut self.stale), "the base is taken twice, or not anew");
            }
            Event::BaseRefused { .. } => panic!("no repository here refuses"),
            Event::CommitSettled(report) => {
                assert_eq!(report.iteration, self.iteration);
                (self.settled, self.fresh) = (report.iteration, true);
                self.outside.commit(report.head.as_ref());
                // What is to be published is checked once more if others may have worked.
                let again = self.has_hard_gates()
                    || self.proves() && self.spec.git.workflow.publishes()
                    || self.spec.approval && self.claims();
                if self.claims() && self.ends_by_claim() {
                    self.assert_approved();
                }
                assert!(std::mem::take(&mut self.uncommitted) || again, "an iteration is committed twice");
                assert!(self.driven && !self.sweeping, "another process may still write");
                self.assert_proven();
                self.committed = match &report.result {
                    CommitResult::Made { tree, .. } => {
                        self.changes += u32::from(self.tree.as_ref() != Some(tree));
                        Some(tree.clone())
                    }
                    CommitResult::Skipped(_) => None,
                };
            }
            Event::WorktreeReleased { .. } => {
                assert!(self.spec.git.checkout.is_own_worktree() && self.has_base);
                let claimed = self.claims() && !self.uncommitted;
                let is_over = claimed || self.is_counted() && (!self.uncommitted || self.proves());
                assert!(is_over || self.cancelled.is_some(), "it may need its worktree");
                assert!(!self.sweeping, "another process may still write");
                assert!(!std::mem::replace(&mut self.released, true), "the worktree is released twice");
            }
            Event::CandidateTaken { tree, partial, touched, .. } => {
                self.progress.judge();
                assert!(
                    self.driven && self.ended.is_none() && !self.sweeping,
                    "another process may still write"
                );
                assert!(self.flight.is_none() && self.gate.is_none(), "another process still writes");
                assert!(!self.gave_up, "no claim can follow");
                let differs = tree.is_none() || *tree != self.tree;
                self.changes += u32::from(differs && !self.fresh && tree.is_some());
                if std::mem::take(&mut self.silent) && (differs || *partial || self.partial) {
                    self.last = Some(Last::Charged { claim: Some(ClaimSource::Result) });
                }
                if std::mem::take(&mut self.fresh) || differs {
                    (self.partial, self.touched) = (*partial, false);
                }
                self.tree.clone_from(tree);
                // The gates ran with what was touched when they began.
                self.touched |= !touched.is_empty();
            }
            Event::CandidateRefused { .. } => panic!("no repository here refuses"),
            Event::GateStarted { gate, .. } => {
                assert!(self.driven && self.ended.is_none() && !self.sweeping, "beside another child");
                assert!(self.flight.is_none() && self.gate.is_none(), "beside another child");
                assert!(self.cancelled != Some(Urgency::Now) && self.paused != Some(Urgency::Now));
                assert!(self.refunds < 3, "a gate is run for the fourth time");
                self.gate = Some((gate.clone(), *at, None));
            }
            Event::GateSpawnFailed { .. } => {
                let (gate, ..) = self.gate.take().expect("a gate is in flight");
                self.refunds = 0;
                self.missing.forget(&gate);
                self.words.insert(gate, (false, self.tree.clone()));
            }
            Event::GateStopRequested { because } => {
                let (gate, since, stopped) = self.gate.as_mut().expect("a gate is in flight");
                assert_eq!(stopped.replace(*because), None, "it is stopped twice");
                let limit = self.spec.gates.iter().find(|it| it.name == *gate).expect("a gate").timeout;
                match because {
                    StopReason::Cancel => assert_eq!(self.cancelled, Some(Urgency::Now)),
                    StopReason::Interrupt => assert_eq!(self.paused, Some(Urgency::Now)),
                    StopReason::TimeLimit => assert!(at.duration_since(*since).as_millis() >= limit.0.into()),
                    StopReason::LoopDuration => {
                        assert!(self.active >= self.limits.max_duration.expect("a limit").into());
                    }
                    StopReason::Silence
                    | StopReason::OutputLost
                    | StopReason::Budget
                    | StopReason::ProviderWait => panic!("no gate's"),
                }
            }
            Event::GateFinished(finished) => {
                let (gate, _, stopped) = self.gate.take().expect("a gate is in flight");
                self.sweeping = finished.left;
                self.pay(finished.review.as_ref().and_then(|said| said.report.as_deref()));
                match (finished.exit, stopped) {
                    (Exit::Lost, _) => self.refunds += 1,
                    (_, None | Some(StopReason::TimeLimit)) => {
                        let good = match &finished.review {
                            Some(said) => said.verdict == Verdict::Pass,
                            None => finished.exit == Exit::Code(0) && finished.no_test.is_none(),
                        };
                        match stopped {
                            None => self.missing.hear(finished),
                            Some(_) => self.missing.forget(&gate),
                        }
                        self.words.insert(gate, (good && stopped.is_none(), self.tree.clone()));
                        self.refunds = 0;
                    }
                    (_, Some(_)) => {}
                }
            }
            Event::IterationBegun { iteration, work } => {
                let failures = self.failures();
                self.progress.begins(work.as_ref(), &self.spec, &failures);
                assert!(self.critic.is_none(), "beside its critic");
                self.committed = None;
                let mut commands = self.spec.gates.iter().filter(|gate| !gate.is_review());
                let asked = commands.all(|gate| self.words.contains_key(&gate.name));
                // The tree that a task begins at has landed, and was verified by that.
                let is_known = asked || self.spec.task.is_some();
                assert!(self.gate.is_none() && is_known, "no baseline");
                assert!(self.has_base || self.spec.git == Default::default(), "the base is not known");
                let refused = self.may_be_refused();
                let held_back = std::mem::take(&mut self.uncommitted) && refused;
                assert!(!self.uncommitted || held_back, "the last iteration is not committed");
                assert_eq!(*iteration, self.iteration + 1, "the counter moves by one");
                self.assert_may_go_on();
                self.assert_not_completed();
                assert!(self.instant_failures < 3, "it continues though the agent only fails");
                (self.iteration, self.waiting) = (*iteration, false);
            }
            Event::AttemptStarted(id) => {
                assert_eq!(id.iteration, self.iteration);
                assert!(self.started.insert(*id), "attempt {id} is started twice");
                assert!(self.flight.is_none(), "two attempts at a time");
                assert!(!self.sweeping, "an attempt beside what the last one left behind");
                assert!(self.not_before.is_none_or(|time| *at >= time), "it does not wait for its provider");
                assert!(
                    self.limits.max_tokens.is_none_or(|cap| self.tokens < cap),
                    "it continues past its budget"
                );
                self.assert_may_go_on();
                self.waiting = false;
                self.steering.iter_mut().for_each(|(_, told)| *told = true);
                self.flight = Some(Flight { id: *id, spawned: None, stopped: None });
            }
            Event::AttemptSpawned { .. } => self.flight_mut().spawned = Some(*at),
            Event::AttemptSpawnFailed { .. } => {
                self.flight = None;
                self.refund(Last::CouldNotStart);
            }
            Event::AttemptStopRequested { because } => self.stop(*because, *at),
            Event::AttemptFinished(finished) => self.finish(finished, *at),
            Event::AttemptSwept { .. } => self.sweeping = false,
            Event::LoopLeft(_) | Event::LoopMoved(_) => panic!("the simulation has one machine"),
            Event::JournalTorn { .. } | Event::JournalRestored { .. } => {}
            Event::Asked { request, ask, .. } => {
                if let Some(request) = request {
                    let before = self.asked.insert(request.clone(), ask.clone());
                    assert_eq!(before, None, "{request:?} is answered twice");
                }
                match ask {
                    Ask::Cancel(urgency) => self.cancelled = self.cancelled.max(Some(*urgency)),
                    Ask::Pause(urgency) => self.paused = self.paused.max(Some(*urgency)),
                    Ask::Proceed => {
                        (self.waiting, self.not_before) = (false, None);
                        self.outside.waits = false;
                    }
                    Ask::Steer(text) => self.steering.push((text.clone(), false)),
                    Ask::Withdraw(request) => match &self.asked[request] {
                        Ask::Pause(_) => self.paused = None,
                        Ask::Cancel(_) => self.cancelled = None,
                        Ask::Steer(text) => {
                            let is_told = |told: bool| told && self.flight.is_some();
                            let mut waiting = self.steering.iter();
                            let place = waiting.position(|(said, told)| said == text && !is_told(*told));
                            self.steering.remove(place.expect("it waits for a prompt"));
                        }
                        ask @ (Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_)) => {
                            panic!("{ask:?} cannot be taken back")
                        }
                    },
                    Ask::AllowHost(_) => {}
                }
            }
            Event::WaitStarted(wait) => {
                let found_nothing = self.spec.until == Until::Forever && self.claims();
                let waits = self.limits.pause.is_some() || self.not_before.is_some() || self.outside.waits;
                assert!(found_nothing || waits);
                assert!(self.cancelled.is_none() && self.paused.is_none());
                assert!(self.driven && self.ended.is_none(), "no runner drives it");
                assert!(self.flight.is_none(), "it has something else to do than to wait");
                // The clock was set back: it begins again.
                if std::mem::replace(&mut self.waiting, true) {
                    self.not_before = self.not_before.map(|time| time.min(wait.until));
                }
            }
            Event::LoopEnded(end) => self.end(*end),
            Event::LoopResumed { limits, approved, .. } => {
                let is_idle = self.iteration == 0 || matches!(self.last, Some(Last::Charged { .. }));
                self.stale |= is_idle && !self.uncommitted && self.has_base && self.settled == self.iteration;
                assert!(self.cancelled.is_none(), "resumed after a cancel");
                assert!(self.flight.is_none(), "an attempt is not settled");
                let end = self.ended.take();
                if matches!(end, Some(End::Stuck | End::Blocked { why: BlockReason::Stuck })) {
                    self.progress.forget();
                }
                self.approval.hear(end, approved.as_ref(), self.tree.as_ref());
                if approved.is_some() {
                    self.changes = 0;
                }
                assert!(
                    !matches!(end, Some(End::Completed { .. } | End::Cancelled)),
                    "resumed after its end"
                );
                let more = limits.max_iterations.is_none_or(|cap| cap > self.charged);
                let pending = self.uncommitted || self.proves() || self.spec.git.workflow.publishes();
                if self.outside.objected {
                    self.progress.refuse();
                }
                self.outside.forget();
                assert!(more || pending, "resumed to end at once");
                assert!(
                    limits.max_duration.is_none_or(|all| self.active < all.into()),
                    "resumed to end at once"
                );
                (self.kept, self.gave_up, self.blocked) = (false, false, 0);
                self.limits = limits.clone();
                (self.refunds, self.instant_failures, self.paused) = (0, 0, None);
                (self.driven, self.had_runner, self.waiting) = (false, false, false);
                self.not_before = self.not_before.filter(|_| !matches!(end, Some(End::Blocked { .. })));
                if matches!(self.last, Some(Last::CouldNotStart | Last::DiskFull | Last::NeedsAPerson)) {
                    self.last = Some(Last::Refunded);
                }
            }
        }
    }

    fn flight_mut(&mut self) -> &mut Flight {
        self.flight.as_mut().expect("an attempt is in flight")
    }

    fn refund(&mut self, last: Last) {
        self.refunds += 1;
        self.last = Some(last);
    }

    fn assert_may_go_on(&self) {
        assert!(self.driven, "no runner drives it");
        assert!(self.ended.is_none(), "it continues after its end");
        assert!(self.cancelled.is_none(), "it continues after a cancel");
        assert!(self.paused.is_none(), "it continues after a pause");
        assert!(!self.gave_up, "it continues though the agent gave up");
        assert!(self.blocked < 2, "it continues though only a person can help");
        assert!(self.refunds < 3, "a fourth attempt after three refunds");
        assert!(self.limits.max_iterations.is_none_or(|cap| self.charged < cap), "it continues past its cap");
        let over = self.limits.max_duration.is_some_and(|all| self.active >= all.into());
        assert!(!over, "it continues past its duration");
        assert!(!matches!(self.last, Some(Last::CouldNotStart)), "it starts an agent that cannot be");
        assert!(!matches!(self.last, Some(Last::NeedsAPerson)), "it continues though a person is needed");
        assert!(!matches!(self.last, Some(Last::DiskFull)), "it starts an agent whose output cannot be kept");
        if let Some(Last::Charged { claim: Some(_) }) = self.last {
            // By the last word, without retries and rounds, of which more can only refuse.
            let may = self.may_be_refused() || self.outside.objected || self.spec.until != Until::Complete;
            assert!(may, "it continues after a claim");
        }
    }

    /// Whether anything is checked after an attempt.
    fn proves(&self) -> bool {
        !self.spec.gates.is_empty() || !self.spec.protect.is_empty() || self.spec.approval
    }

    fn ends_by_claim(&self) -> bool {
        match self.spec.until {
            Until::Complete => true,
            Until::Count => Some(self.charged) == self.limits.max_iterations,
            Until::Forever => false,
        }
    }

    /// Whether as many iterations are done as were asked for, claimed or not.
    fn is_counted(&self) -> bool {
        self.spec.until == Until::Count && self.ends_by_claim()
    }

    /// Whether something here may reject a claim; advisory gates do so if a person approves one tree, and the gates
    /// change it each time.
    fn may_be_refused(&self) -> bool {
        let is_restless = self.spec.approval && self.changes >= MAX_ROUNDS;
        self.has_hard_gates() || self.touched || self.approval.sent_back || is_restless
    }

    /// If a person has the last word: they said yes to this very tree.
    fn assert_approved(&self) {
        let is_given = self.approval.is_given(self.tree.as_ref(), self.iteration);
        assert!(is_given || !self.spec.approval, "no person approved it");
    }

    /// Adds the usage of an agent that judges.
    fn pay(&mut self, report: Option<&AgentReport>) {
        let tokens = report.and_then(|report| report.tokens);
        self.tokens += tokens.map_or(0, |(_, tokens)| tokens.counted());
    }

    fn claims(&self) -> bool {
        matches!(self.last, Some(Last::Charged { claim: Some(_) })) || self.is_completed_by_gates()
    }

    /// In what ways the last iteration failed, apart from its agent.
    fn failures(&self) -> progress::Failures {
        let says_no = |gate: &&GateSpec| self.words.get(&gate.name).is_some_and(|(good, _)| !good);
        let gates = self.spec.gates.iter().filter(|gate| gate.hard).filter(says_no);
        progress::Failures {
            gates: gates.map(|gate| gate.name.clone()).collect(),
            others: self.touched || self.changes > 0 || self.approval.sent_back || self.outside.objected,
        }
    }

    fn has_hard_gates(&self) -> bool {
        self.spec.gates.iter().any(|gate| gate.hard)
    }

    /// Nothing protected was touched, and the last result of every hard gate on this very tree is good.
    fn assert_proven(&self) {
        assert!(!self.touched, "what is protected was touched");
        for gate in self.spec.gates.iter().filter(|gate| gate.hard) {
            let (good, tree) = self.words.get(&gate.name).expect("a gate that was not asked");
            assert!(*good, "{} did not pass", gate.name);
            assert_eq!(*tree, self.tree, "{} was asked about something else", gate.name);
        }
    }

    fn stop(&mut self, because: StopReason, at: Timestamp) {
        let Limits { timeout, idle_timeout, max_duration, .. } = self.limits.clone();
        let (cancelled, paused, active) = (self.cancelled, self.paused, self.active);
        let flight = self.flight_mut();
        let since = flight.spawned.expect("nothing is stopped before it is there");
        assert_eq!(flight.stopped.replace(because), None, "it is stopped twice");
        let ran = Duration::try_from(at.duration_since(since)).expect("time does not go backwards");
        match because {
            StopReason::Cancel => assert_eq!(cancelled, Some(Urgency::Now)),
            StopReason::Interrupt => assert_eq!(paused, Some(Urgency::Now)),
            StopReason::TimeLimit => assert!(ran >= timeout.expect("a limit").into()),
            StopReason::Silence => assert!(ran >= idle_timeout.expect("a limit").into()),
            StopReason::LoopDuration => assert!(active >= max_duration.expect("a limit").into()),
            StopReason::OutputLost | StopReason::Budget | StopReason::ProviderWait => {}
        }
    }

    fn finish(&mut self, finished: &AttemptFinished, at: Timestamp) {
        let flight = self.flight.take().expect("an attempt is in flight");
        let lost = finished.exit == Exit::Lost;
        let report = finished.report.as_deref();
        self.tokens += report.and_then(|report| report.tokens).map_or(0, |(_, tokens)| tokens.counted());
        self.sweeping = finished.left;
        if finished.output_error.is_some() {
            return self.refund(Last::DiskFull);
        }
        if lost {
            return self.refund(Last::Refunded);
        }
        let fault = report.and_then(|report| report.fault.as_ref()).map(|fault| fault.kind);
        let had_ended = report.is_some_and(|report| report.is_final && report.fault.is_none());
        let stopped = match flight.stopped {
            Some(StopReason::TimeLimit | StopReason::Silence | StopReason::ProviderWait)
                if had_ended || fault.is_some() =>
            {
                None
            }
            Some(StopReason::Interrupt | StopReason::Budget | StopReason::LoopDuration) if had_ended => None,
            stopped => stopped,
        };
        match stopped {
            // A person's doing says nothing about the next attempt.
            Some(StopReason::Interrupt) => return self.last = Some(Last::Refunded),
            Some(StopReason::Cancel) => return self.refund(Last::Refunded),
            // Its program was not even up.
            Some(StopReason::TimeLimit | StopReason::Silence)
                if report.is_some_and(|report| report.no_events) =>
            {
                return self.refund(Last::Refunded);
            }
            _ => {}
        }
        let slept = (stopped == Some(StopReason::ProviderWait)).then_some(FaultKind::RateLimit);
        match fault.filter(|_| stopped.is_none()).or(slept) {
            Some(FaultKind::Limit | FaultKind::Overloaded | FaultKind::RateLimit) => {
                self.not_before =
                    Some(at.saturating_add(std::time::Duration::from_secs(5)).expect("in time"));
                return self.last = Some(Last::Provider);
            }
            Some(FaultKind::Login) => return self.last = Some(Last::NeedsAPerson),
            Some(_) => panic!("no agent here meets that"),
            None => {}
        }
        self.not_before = None;
        let ran = at.duration_since(flight.spawned.expect("what ended by itself was there"));
        let cut_off = report.is_some_and(|report| !report.is_final);
        let by_itself = stopped.is_none() && flight.stopped.is_some();
        let claim = if stopped.is_some() || cut_off {
            None
        } else if finished.promised {
            Some(ClaimSource::Promise)
        } else if finished.state == Some(WorkStatus::Done) {
            Some(ClaimSource::StateFile)
        } else if finished.state == Some(WorkStatus::Blocked) {
            None
        } else if self.spec.promise.is_none()
            && self.spec.until != Until::Forever
            && (finished.exit == Exit::Code(0) || by_itself)
        {
            Some(if self.has_hard_gates() { ClaimSource::Gates } else { ClaimSource::ExitCode })
        } else {
            None
        };
        let is_good = finished.exit == Exit::Code(0) || by_itself;
        self.gave_up = finished.gave_up.is_some() && claim.is_none() && stopped.is_none() && !cut_off;
        self.silent = is_good && claim.is_none() && !self.gave_up && stopped.is_none() && !cut_off;
        let is_blocked = finished.state == Some(WorkStatus::Blocked) && claim.is_none();
        self.blocked = if is_blocked { self.blocked + 1 } else { 0 };
        self.silent &=
            !is_blocked && self.spec.task.is_some() && self.spec.promise.is_some() && self.has_hard_gates();
        self.fresh = true;
        let worked = report.and_then(|report| report.tokens).is_some_and(|(_, tokens)| tokens.counted() > 0);
        let good = worked || claim.is_some() || finished.exit == Exit::Code(0) || flight.stopped.is_some();
        let instant = !good && ran.as_millis() < 2_000;
        self.instant_failures = if instant { self.instant_failures + 1 } else { 0 };
        self.steering.retain(|(_, told)| !told);
        self.charged += 1;
        self.approval.sent_back = false;
        self.changes = 0;
        // What a gate decides about is checked when it is committed.
        self.uncommitted = self.spec.git.workflow.commits();
        self.refunds = 0;
        self.last = Some(Last::Charged { claim });
        let is_said = claim.is_some_and(ClaimSource::is_said);
        self.progress.ends(finished.work.as_ref(), is_said, finished.fingerprint.is_some());
        assert_eq!(self.charged, self.iteration, "every iteration is charged once");
    }

    pub(super) fn assert_agrees(&self, state: &LoopState) {
        assert_eq!(state.seq, self.seq);
        assert_eq!(state.iteration, self.iteration, "the counter is lost");
        assert_eq!(state.charged, self.charged);
        assert!(self.limits.max_iterations.is_none_or(|cap| self.charged <= cap), "the cap is exceeded");
        assert_eq!(state.attempts.len() + usize::from(self.flight.is_some()), self.started.len());
        assert_eq!(state.in_flight().map(|flight| flight.id), self.flight.as_ref().map(|flight| flight.id));
        assert_eq!(state.cancel, self.cancelled, "a cancel is lost");
        assert_eq!(state.pause, self.paused);
        assert_eq!(state.wait.is_some(), self.waiting, "it waits for nothing, or not at all");
        assert_eq!(state.refunds_in_a_row, self.refunds);
        assert_eq!(state.blocked, self.blocked);
        assert_eq!(state.ended.map(|ended| ended.end), self.ended);
        if let Some(end @ End::Completed { claim: ClaimSource::Count }) = self.ended
            && state.is_proven()
        {
            self.assert_proven();
            self.outside.end(end, self.spec.git.workflow);
        }
        assert_eq!(state.limits, self.limits);
        assert_eq!(state.spent.tokens.counted(), self.tokens, "tokens are lost, or counted twice");
        assert!(
            state.steering.iter().map(|said| &said.text).eq(self.steering.iter().map(|(text, _)| text)),
            "words are lost"
        );
        assert_eq!(state.active, self.active, "the loop's own time is lost or invented");
    }
}
