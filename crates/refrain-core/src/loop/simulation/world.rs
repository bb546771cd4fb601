//! The world of one run: its clock, its disk, its people and processes; and how a runner dies.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;

use super::agent::{Agent, AgentCharacter};
use super::critic::{Critic, sample_critic};
use super::forge::{ForgeState, sample_workflow};
use super::gate::{Gate, sample_gates, sample_success};
use super::ledger::Ledger;
use super::person::Person;
use super::tally::{end_name, pattern_name};
use super::work::Work;
use crate::event::{Ask, End, Event, Record};
use crate::git::{Checkout, Workflow};
use crate::ids::{AttemptId, RequestId};
use crate::r#loop::tests::journal::{gates, kind, spec, started, task, time};
use crate::r#loop::{Live, LoopState, Outcome, Step, next_step};
use crate::prompt::state_file::WorkStatus;
use crate::simulation::Crash;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;
use crate::spec::{Millis, Spec, Until};
use crate::stuck::Verdict;

const MANY_CRASHES: u32 = 4;

pub(super) struct World {
    pub(super) random: Random,
    pub(super) aloud: bool,
    /// Milliseconds since the run began, regardless of the wall clock.
    pub(super) real: u64,
    /// How far the wall clock was set wrong.
    pub(super) skew: i64,
    /// The records on disk; the first `synced` of them even after a power loss.
    pub(super) records: Vec<Record>,
    pub(super) synced: usize,
    /// A partial line follows the records.
    pub(super) torn: bool,
    pub(super) inbox: VecDeque<(RequestId, Ask)>,
    pub(super) state: LoopState,
    pub(super) live: Live,
    pub(super) agent: Option<Agent>,
    pub(super) gate: Option<Gate>,
    pub(super) critic: Option<Critic>,
    pub(super) outside: ForgeState,
    /// Its gates write, more often than not.
    pub(super) restless: bool,
    /// Its agents call for a person, more often than others.
    pub(super) despairs: bool,
    /// The content of the worktree, as a number.
    pub(super) tree: u32,
    /// The same, with files that git ignores; drawn from separate numbers, so that all other draws stay the same.
    pub(super) work: Work,
    /// When no process of the last attempt is left.
    pub(super) swept_at: Option<u64>,
    pub(super) person: Person,
    pub(super) temper: AgentCharacter,
    pub(super) able_from: u64,
    /// Agents claim in every iteration, and the gates fail in the same way.
    pub(super) boasts: bool,
    pub(super) ledger: Ledger,
    /// Attempts for which an agent was started, and requests that were answered as recorded.
    pub(super) started: Vec<AttemptId>,
    pub(super) told: Vec<RequestId>,
    pub(super) deaths: BTreeSet<u64>,
    pub(super) crash_at: Option<u64>,
    pub(super) crashes: u32,
    pub(super) written: u64,
    pub(super) turns: u32,
}

fn sample_spec(random: &mut Random) -> Spec {
    let mut spec = spec();
    let small = |n: u64| u32::try_from(n).expect("a small number");
    spec.promise = spec.promise.filter(|_| !random.once_in(5));
    let limits = &mut spec.limits;
    limits.max_iterations = (!random.once_in(8)).then(|| small(random.between(1, 6)));
    limits.max_duration = random.maybe(3, 20_000, 400_000).map(Millis);
    limits.timeout = random.maybe(2, 1_000, 90_000).map(Millis);
    limits.idle_timeout = random.maybe(3, 500, 60_000).map(Millis);
    limits.pause = random.maybe(4, 1_000, 60_000).map(Millis);
    limits.retry_for = random.maybe(3, 5_000, 100_000).map(Millis);
    limits.max_tokens = random.maybe(4, 100, 3_000);
    if random.once_in(3) {
        spec.git.workflow = Workflow::Commit;
    }
    if random.once_in(4) {
        spec.git.checkout = Checkout::Worktree { branch: "loop/mend".into(), from: "HEAD".into() };
    }
    spec.task = random.once_in(3).then(task);
    sample_gates(random, &mut spec);
    sample_critic(random, &mut spec);
    spec
}

/// Drawn from separate numbers, so that all other draws stay the same.
fn sample_until(seed: u64, spec: &Spec) -> Until {
    match Random::new(seed ^ 0x0075_6e74).between(1, 16) {
        1 if spec.limits.max_iterations.is_some() => Until::Count,
        // One that nothing limits would never end.
        2 if spec.limits.max_duration.is_some() => Until::Forever,
        _ => Until::Complete,
    }
}

fn sample_approval(seed: u64, spec: &mut Spec) {
    let mut random = Random::new(seed ^ 0x0061_7070);
    // Loops that gates alone end are few already.
    let by_gates = spec.promise.is_none() && spec.gates.iter().any(|gate| gate.hard);
    spec.approval = random.once_in(if by_gates { 32 } else { 8 });
    // Without a repository it is unknown whether a candidate has changed.
    spec.git.candidates |= spec.approval && !random.once_in(4);
}

impl World {
    pub(super) fn new(seed: u64, crash_at: Option<u64>, aloud: bool) -> Self {
        let mut random = Random::new(seed);
        let mut spec = sample_spec(&mut random);
        spec.until = sample_until(seed, &spec);
        sample_success(seed, &mut spec);
        sample_workflow(seed, &mut spec);
        sample_approval(seed, &mut spec);
        let boasts = Random::new(seed ^ 0x626f_6173).once_in(48) && spec.task.is_none();
        if boasts {
            (spec.promise, spec.gates) = (self::spec().promise, gates([true]));
            (spec.limits.max_iterations, spec.limits.max_duration) = (Some(12), None);
        }
        let first = Record { seq: 1, at: time(0), event: started(spec) };
        let person = Person::sample(&mut random, 0);
        let temper = AgentCharacter::sample(&mut random);
        // Some never succeed.
        let able_from = if random.once_in(6) { u64::MAX } else { random.between(1, 5) };
        let restless = random.once_in(8);
        if aloud {
            println!("{temper:?} agents, able from iteration {able_from}; {person:?}\n{first:?}");
        }
        Self {
            random,
            aloud,
            real: 0,
            skew: 0,
            state: LoopState::begin(&first).expect("a start"),
            ledger: Ledger::new(&first),
            records: vec![first],
            synced: 1,
            torn: false,
            inbox: VecDeque::new(),
            live: Live::default(),
            agent: None,
            gate: None,
            critic: None,
            outside: ForgeState::default(),
            tree: 0,
            work: Work::sample(seed),
            swept_at: None,
            person,
            temper,
            able_from,
            boasts,
            restless,
            despairs: Random::new(seed ^ 0x6865_6c70).once_in(20),
            started: Vec::new(),
            told: Vec::new(),
            deaths: BTreeSet::new(),
            crash_at,
            crashes: 0,
            written: 1,
            turns: 0,
        }
    }

    pub(super) fn into_records(self) -> Vec<Record> {
        self.records
    }

    /// Plays a whole run; answers how many events were written.
    pub(super) fn run(mut self, tally: &mut Tally) -> u64 {
        self.play(tally);
        assert!(self.crash_at.is_none() || self.crashes > 0, "the crash was missed");
        self.written
    }

    pub(super) fn play(&mut self, tally: &mut Tally) {
        if self.crash_at == Some(1) {
            self.crash(tally);
        }
        loop {
            match self.live(tally) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Crash) => self.crash(tally),
            }
        }
        let end = self.state.ended.expect("a run ends, or rests until a request arrives").end;
        assert_eq!(next_step(&self.state, &self.live, self.now()), Step::Rest);
        assert_eq!(LoopState::fold(&self.records).as_ref(), Ok(&self.state), "a replay differs");
        tally.add("end", end_name(end));
        if let Verdict::Stuck(pattern) = self.state.verdict() {
            tally.add("stuck", pattern_name(pattern));
        }
        let is_silent = self.state.attempts.last().is_some_and(|last| last.outcome != Outcome::Claimed);
        if is_silent && matches!(end, End::Completed { .. }) {
            tally.add("end", "completed: success command, whatever the agent said");
        }
        for attempt in &self.state.attempts {
            let is_refused = attempt.proof.as_ref().is_some_and(|proof| !proof.holds(&self.state.spec));
            if is_refused && attempt.claim.is_some() {
                tally.add("gate", "refused a claim");
            }
            let said =
                attempt.finished.as_ref().is_some_and(|it| it.promised || it.state == Some(WorkStatus::Done));
            if said && !matches!(attempt.outcome, Outcome::Claimed) {
                tally.add("agent", "claimed, but was stopped");
            }
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        time(i64::try_from(self.real).expect("a run is short") + self.skew)
    }

    pub(super) fn set_clock(&mut self, tally: &mut Tally) {
        let by = i64::try_from(self.random.between(1, 100_000)).expect("a small number");
        let back = self.random.once_in(2);
        self.skew += if back { -by } else { by };
        tally.add("clock", if back { "set back" } else { "set forward" });
    }

    pub(super) fn append(&mut self, event: Event) -> Result<(), Crash> {
        let at = self.now().max(self.state.updated_at);
        let record = Record { seq: self.state.seq + 1, at, event };
        if self.aloud {
            println!("{record:?}");
        }
        self.ledger.enter(&record);
        self.state.apply(&record).expect("what was decided can be recorded");
        self.ledger.assert_agrees(&self.state);
        self.records.push(record);
        self.written += 1;
        if self.crash_at == Some(self.written) { Err(Crash) } else { Ok(()) }
    }

    pub(super) fn sync(&mut self) {
        self.synced = self.records.len();
    }

    /// The last writer is gone, and time passes.
    pub(super) fn is_left_alone(&mut self) {
        self.deaths.insert(self.state.seq);
        self.ledger.crashed();
        self.real += self.random.below(2_000_000);
    }

    /// The runner dies, and its agent with it; what was not synced may be gone with the power.
    fn crash(&mut self, tally: &mut Tally) {
        let last = self.records.last().expect("a loop has a first record");
        tally.add("crash after", kind(&last.event));
        self.crashes += 1;
        let before =
            (self.crashes < MANY_CRASHES && self.random.once_in(2)).then(|| self.random.between(1, 12));
        self.crash_at = self.crash_at.filter(|at| *at > self.written).or(before.map(|n| self.written + n));
        (self.agent, self.gate, self.critic, self.swept_at) = (None, None, None, None);
        let unsynced = self.records.len() - self.synced;
        let mut lost = 0;
        if self.random.once_in(3) {
            tally.add("disk", "power lost");
            lost = usize::try_from(self.random.below(unsynced as u64 + 1)).expect("a small number");
        }
        self.records.truncate(self.records.len() - lost);
        self.sync();
        self.torn = self.random.once_in(6);
        let replayed = LoopState::fold(&self.records).expect("every prefix of a journal folds");
        if lost == 0 {
            assert_eq!(replayed, self.state, "a replay differs");
        } else {
            tally.add("disk", "unsynced records lost");
        }
        if replayed.iteration < self.state.iteration {
            tally.add("disk", "an iteration vanished before its agent");
        }
        self.state = replayed;
        let last = self.state.seq;
        self.deaths.retain(|seq| *seq <= last);
        self.ledger = Ledger::of(&self.records, &self.deaths);
        self.ledger.assert_agrees(&self.state);
        for id in &self.started {
            assert!(self.ledger.has_started(*id) && id.iteration <= self.ledger.iteration, "{id} vanished");
        }
        for request in &self.told {
            assert!(self.ledger.has_asked(request), "{request:?} was told that it was heard");
        }
        if self.aloud {
            println!(
                "crash: {lost} of {unsynced} unsynced records lost{}",
                if self.torn { ", a torn line" } else { "" }
            );
        }
        self.is_left_alone();
        if self.random.once_in(10) {
            self.set_clock(tally);
        }
    }
}

pub(super) fn span_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
