//! Machines that hand one loop to each other, in numbers. They die, freeze and are cut off, their pushes arrive late or
//! never, and a scheduler gives the loop to another machine when it has not heard of it for a time. Each machine does what
//! the engine does under a lease, with the real core: it claims the loop at the remote, records, replicates before an agent
//! is started, and stops at its deadline. Each tick is a second.

mod machine;

use crate::event::{AttemptFinished, End, Event, Record};
use crate::git::Oid;
use crate::ids::AttemptId;
use crate::r#loop::tests::journal::{oid, spec, started, time};
use crate::r#loop::{LoopState, RemoteLoop};
use crate::simulation::Simulation;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;

const MACHINES: usize = 3;
/// How long an accepted heartbeat lets a machine continue.
const LEASE: u64 = 6;
/// After this time without a heartbeat the scheduler gives the loop to another machine.
const LOST: u64 = 9;
/// No faults from then on.
const QUIET: u64 = 400;
const LONGEST: u64 = 2_000;

const FLEETS: Simulation = Simulation {
    one: "one_fleet",
    seeds: 500,
    covered: &[
        ("fault", "killed", 5_000),
        ("fault", "lost with its disk", 500),
        ("fault", "frozen runner", 3_000),
        ("fault", "frozen machine", 3_000),
        ("fault", "cut off", 5_000),
        ("fault", "given twice", 500),
        ("push", "late", 3_000),
        ("push", "its answer was lost", 3_000),
        ("order", "stale, refused", 500),
        ("drive", "fenced", 200),
        ("drive", "lapsed", 3_000),
        ("drive", "its keeper ended the agent", 1_000),
        ("journal", "its tail was put aside", 500),
        ("journal", "its tail was kept", 500),
        ("end", "completed", 1_000),
        ("end", "iteration cap", 1_000),
        ("end", "budget", 200),
        ("end", "refunds", 200),
    ],
    calm: |seed, aloud, _| Fleet::new(seed, false, aloud).run(&mut Tally::default()),
    crash: |seed, _, aloud, tally| {
        Fleet::new(seed, true, aloud).run(tally);
    },
};

#[test]
fn one_fleet() {
    FLEETS.run_one();
}

#[test]
fn fleets() {
    FLEETS.run_all();
}

#[derive(Clone, Debug)]
struct Commit {
    found: RemoteLoop,
    records: Vec<Record>,
}

/// A push on its way.
struct Push {
    expected: Option<Oid>,
    commit: Commit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PushResult {
    Done,
    Stale,
    Unknown,
}

/// Why records are not known beyond the machine.
enum Unreplicated {
    Fenced,
    Unreachable,
}

/// An agent at work, which the keeper of its machine looks after.
struct Agent {
    /// For so many more seconds.
    left: u64,
    finished: AttemptFinished,
}

/// What waits until the journal is known to the remote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Barrier {
    Agent(AttemptId),
    End,
}

struct Drive {
    fence: u64,
    state: LoopState,
    known: Option<Oid>,
    tried: Vec<(Oid, u64)>,
    covered: u64,
    deadline: u64,
    barrier: Option<Barrier>,
}

#[derive(Default)]
struct Machine {
    /// Its journal, as long as its disk is whole.
    disk: Vec<Record>,
    drive: Option<Drive>,
    agent: Option<Agent>,
    /// When its keeper ends the agent.
    keeper_deadline: u64,
    exited: Option<AttemptFinished>,
    claims: Vec<Oid>,
    /// The fences under which the scheduler gave it the loop.
    orders: Vec<u64>,
    runner_frozen_until: u64,
    frozen_until: u64,
    cut_until: u64,
}

struct Fleet {
    random: Random,
    aloud: bool,
    has_faults: bool,
    /// Its scheduler sometimes takes the loop from a machine that lives: then two agents may run at once, but only one of
    /// the drives makes anything known.
    is_hasty: bool,
    now: u64,
    commits: u32,
    remote: Option<Commit>,
    pushes: Vec<Push>,
    machines: [Machine; MACHINES],
    /// The scheduler: the last fence that it gave, to which machine, and when it heard of it last.
    fence: u64,
    given_to: usize,
    heard: u64,
    ended: Option<End>,
    started: Vec<AttemptId>,
    able_from: u64,
}

impl Fleet {
    fn new(seed: u64, has_faults: bool, aloud: bool) -> Self {
        let mut random = Random::new(seed ^ 0x666c_6565);
        let mut spec = spec();
        let small = |n: u64| u32::try_from(n).expect("a small number");
        spec.limits.max_iterations = Some(small(random.between(2, 6)));
        spec.limits.max_tokens = random.maybe(4, 300, 1_500);
        let able_from = if random.once_in(2) { u64::MAX } else { random.between(1, 5) };
        let is_hasty = random.once_in(4);
        let first = Record { seq: 1, at: time(0), event: started(spec) };
        let mut machines: [Machine; MACHINES] = Default::default();
        machines[0].disk = vec![first];
        machines[0].orders = vec![1];
        Self {
            random,
            aloud,
            has_faults,
            is_hasty,
            now: 1,
            commits: 0,
            remote: None,
            pushes: Vec::new(),
            machines,
            fence: 1,
            given_to: 0,
            heard: 1,
            ended: None,
            started: Vec::new(),
            able_from,
        }
    }

    /// Plays a whole run; answers how many records there are then.
    fn run(mut self, tally: &mut Tally) -> u64 {
        while self.ended.is_none() {
            self.now += 1;
            assert!(self.now < LONGEST, "the loop was lost");
            for which in 0..MACHINES {
                self.keep(which, tally);
            }
            for which in 0..MACHINES {
                if self.machines[which].wakes_at() <= self.now {
                    self.work(which, tally);
                }
            }
            let at_work = |machine: &&Machine| machine.agent.is_some() && machine.frozen_until <= self.now;
            let agents = self.machines.iter().filter(at_work).count();
            assert!(agents <= 1 || self.is_hasty, "two agents at once");
            self.schedule();
            self.deliver_late(tally);
            if self.has_faults && self.now < QUIET {
                self.fail(tally);
            }
        }
        let remote = self.remote.clone().expect("it has ended there");
        self.assert_exact(&remote.records, tally);
        remote.records.len() as u64
    }

    /// What the remote has in the end: every agent that was started, each once, and all that was paid within the caps.
    fn assert_exact(&self, records: &[Record], tally: &mut Tally) {
        let state = LoopState::fold(records).expect("what the remote has folds");
        let begun = records.iter().filter_map(|record| match &record.event {
            Event::AttemptStarted(id) => Some(*id),
            _ => None,
        });
        let begun: Vec<_> = begun.collect();
        for id in &self.started {
            assert!(begun.contains(id), "no record says that {id} was started");
        }
        let of_finished = |record: &Record| match &record.event {
            Event::AttemptFinished(finished) => finished
                .report
                .as_ref()
                .map_or(0, |report| report.tokens.map_or(0, |(_, tokens)| tokens.counted())),
            _ => 0,
        };
        let paid: u64 = records.iter().map(of_finished).sum();
        assert_eq!(state.spent.tokens.counted(), paid, "money");
        let cap = state.limits.max_iterations.expect("it has one");
        assert!(state.charged <= cap);
        tally.add(
            "end",
            match self.ended.expect("it has ended") {
                End::Completed { .. } => "completed",
                End::IterationCap => "iteration cap",
                End::BudgetExceeded { .. } => "budget",
                End::Blocked { .. } => "refunds",
                end => panic!("{end:?}"),
            },
        );
    }

    fn commit(&mut self, which: usize, fence: u64, records: Vec<Record>) -> Commit {
        self.commits += 1;
        let found = RemoteLoop { commit: oid(self.commits), fence, holder: Some(which.to_string()) };
        Commit { found, records }
    }

    fn push(&mut self, expected: Option<Oid>, commit: Commit, tally: &mut Tally) -> PushResult {
        let push = Push { expected, commit };
        let fate = if self.has_faults && self.now < QUIET { self.random.below(20) } else { 9 };
        match fate {
            0 => PushResult::Unknown,
            1 => {
                tally.add("push", "its answer was lost");
                self.deliver(push);
                PushResult::Unknown
            }
            2 => {
                tally.add("push", "late");
                self.pushes.push(push);
                PushResult::Unknown
            }
            _ if self.deliver(push) => PushResult::Done,
            _ => PushResult::Stale,
        }
    }

    /// The remote moves its reference by compare-and-swap. What it had is never lost, and an older fence never returns.
    fn deliver(&mut self, Push { expected, commit }: Push) -> bool {
        if self.remote.as_ref().map(|it| &it.found.commit) != expected.as_ref() {
            return false;
        }
        if let Some(before) = &self.remote {
            assert!(commit.records.starts_with(&before.records), "what was known is lost");
            assert!(commit.found.fence >= before.found.fence, "an older drive makes something known");
        }
        self.remote = Some(commit);
        true
    }

    fn deliver_late(&mut self, tally: &mut Tally) {
        if !self.pushes.is_empty() && self.random.once_in(4) {
            let which = usize::try_from(self.random.below(self.pushes.len() as u64)).expect("an index");
            let push = self.pushes.remove(which);
            if self.deliver(push) {
                tally.add("push", "late, and accepted");
            }
        }
    }

    fn schedule(&mut self) {
        let is_driven = self.machines[self.given_to].drive.as_ref().is_some_and(|it| it.fence == self.fence);
        let waits = self.machines[self.given_to].orders.contains(&self.fence);
        // A worker that lives says at once that its drive has ended.
        let is_told = !is_driven && !waits && !self.is_cut(self.given_to);
        if self.now - self.heard > LOST || is_told {
            self.give();
        }
    }

    fn give(&mut self) {
        self.fence += 1;
        self.heard = self.now;
        // Until the remote has the loop, only the first machine does.
        self.given_to = match self.remote {
            Some(_) => usize::try_from(self.random.below(MACHINES as u64)).expect("a small number"),
            None => 0,
        };
        let fence = self.fence;
        self.machines[self.given_to].orders.push(fence);
    }

    fn fail(&mut self, tally: &mut Tally) {
        let which = usize::try_from(self.random.below(MACHINES as u64)).expect("a small number");
        let (until, has_remote) = (self.now + self.random.between(2, 40), self.remote.is_some());
        let machine = &mut self.machines[which];
        match self.random.below(40) {
            0 => {
                tally.add("fault", "killed");
                (machine.drive, machine.agent, machine.exited) = (None, None, None);
            }
            1 if has_remote && self.random.once_in(3) => {
                tally.add("fault", "lost with its disk");
                *machine = Machine::default();
            }
            2 => {
                tally.add("fault", "frozen runner");
                machine.runner_frozen_until = until;
            }
            3 => {
                tally.add("fault", "frozen machine");
                machine.frozen_until = until;
            }
            4 => {
                tally.add("fault", "cut off");
                machine.cut_until = until;
            }
            5 if self.is_hasty => {
                tally.add("fault", "given twice");
                self.give();
            }
            _ => {}
        }
    }
}

impl Machine {
    fn wakes_at(&self) -> u64 {
        self.runner_frozen_until.max(self.frozen_until)
    }
}
