//! Machines that hand one loop to each other, in numbers. They die, freeze and are cut off, their pushes arrive late or
//! never, and a scheduler gives the loop to another machine when it has not heard of it for a time. Each machine does what
//! the engine does under a lease, with the real core: it claims the loop at the remote, records, replicates before an agent
//! is started, and stops at its deadline. Each tick is a second.

use crate::agent::Scope;
use crate::event::{AttemptFinished, End, Event, Exit, Record};
use crate::git::Oid;
use crate::ids::AttemptId;
use crate::r#loop::tests::journal::{
    event_of, finished, moved, oid, reporting, runner, spawned, spec, started, time, tokens,
};
use crate::r#loop::{ChildId, Live, LoopState, RemoteLoop, Step, Takeover, next_step, take_lease};
use crate::simulation::Simulation;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;

const MACHINES: usize = 3;
/// How long an accepted heartbeat lets a machine go on.
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
            assert!(begun.contains(id), "nobody knows that {id} was started");
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

    /// The keeper of a machine: it enforces the deadline, even if the runner is frozen.
    fn keep(&mut self, which: usize, tally: &mut Tally) {
        let (now, machine) = (self.now, &mut self.machines[which]);
        if machine.frozen_until > now {
            return;
        }
        let Some(agent) = &mut machine.agent else { return };
        agent.left = agent.left.saturating_sub(1);
        if now >= machine.keeper_deadline {
            tally.add("drive", "its keeper ended the agent");
            machine.agent = None;
            machine.exited = Some(finished(Exit::Lost));
        } else if agent.left == 0 {
            machine.exited = machine.agent.take().map(|agent| agent.finished);
        }
    }

    fn is_cut(&self, which: usize) -> bool {
        self.machines[which].cut_until > self.now
    }

    /// A heartbeat of a drive under this fence; says whether the scheduler accepts it.
    fn beat(&mut self, which: usize, fence: u64) -> bool {
        let is_accepted = !self.is_cut(which) && self.fence == fence;
        if is_accepted {
            self.heard = self.now;
        }
        is_accepted
    }

    /// One second of the runner of a machine.
    fn work(&mut self, which: usize, tally: &mut Tally) {
        if self.machines[which].drive.is_none() {
            if let Some(fence) = self.machines[which].orders.last().copied()
                && !self.is_cut(which)
                && self.take(which, fence, tally)
            {
                self.machines[which].orders.clear();
            }
            return;
        }
        let Some(mut drive) = self.machines[which].drive.take() else { return };
        if self.now >= drive.deadline {
            tally.add("drive", "lapsed");
            return self.end_agent(which);
        }
        if self.beat(which, drive.fence) {
            drive.deadline = self.now + LEASE;
            self.machines[which].keeper_deadline = drive.deadline;
        }
        if let Some(finished) = self.machines[which].exited.take() {
            self.append(which, &mut drive, Event::AttemptFinished(Box::new(finished)));
        }
        if self.steps(which, &mut drive, tally) {
            self.machines[which].drive = Some(drive);
        } else {
            self.end_agent(which);
        }
    }

    fn end_agent(&mut self, which: usize) {
        let machine = &mut self.machines[which];
        (machine.agent, machine.exited) = (None, None);
    }

    fn append(&mut self, which: usize, drive: &mut Drive, event: Event) {
        let at = time(i64::try_from(self.now * 1_000).expect("a run is short"));
        let record = Record { seq: drive.state.seq + 1, at, event };
        if self.aloud {
            println!("{which} under {}: {record:?}", drive.fence);
        }
        drive.state.apply(&record).expect("what was decided can be recorded");
        self.machines[which].disk.push(record);
    }

    /// Does what can be done now; says whether the drive goes on.
    fn steps(&mut self, which: usize, drive: &mut Drive, tally: &mut Tally) -> bool {
        loop {
            if let Some(barrier) = drive.barrier {
                match self.replicate(which, drive, tally) {
                    Ok(()) => drive.barrier = None,
                    Err(Unreplicated::Unreachable) => return true,
                    Err(Unreplicated::Fenced) => {
                        tally.add("drive", "fenced");
                        return false;
                    }
                }
                match barrier {
                    Barrier::Agent(id) => {
                        self.start(which, id);
                        self.append(which, drive, spawned());
                    }
                    Barrier::End => {}
                }
            }
            let now = time(i64::try_from(self.now * 1_000).expect("a run is short"));
            match next_step(&drive.state, &Live::default(), now) {
                Step::Await { .. } => return true,
                Step::Rest => {
                    let end = drive.state.ended.expect("it rests").end;
                    // Without an answer of the scheduler the loop is given again, and found to be over.
                    self.ended = Some(end).filter(|_| self.beat(which, drive.fence)).or(self.ended);
                    return false;
                }
                Step::Start(ChildId::Attempt(id)) => {
                    self.append(which, drive, Event::AttemptStarted(id));
                    drive.barrier = Some(Barrier::Agent(id));
                }
                Step::Finish(end) => {
                    self.append(which, drive, Event::LoopEnded(end));
                    drive.barrier = Some(Barrier::End);
                }
                step => {
                    let event = event_of(&drive.state, step).expect("it is recorded");
                    self.append(which, drive, event);
                }
            }
        }
    }

    fn start(&mut self, which: usize, id: AttemptId) {
        assert!(!self.started.contains(&id), "an agent was started twice for {id}");
        self.started.push(id);
        let used = self.random.between(50, 400);
        let mut finished = reporting(|report| {
            report.tokens = Some((Scope::Attempt, tokens(used, 0)));
        });
        finished.promised = u64::from(id.iteration) >= self.able_from;
        self.machines[which].agent = Some(Agent { left: self.random.between(3, 20), finished });
    }

    /// What the witness does: it looks where the reference is, and moves it from where it left it.
    fn replicate(&mut self, which: usize, drive: &mut Drive, tally: &mut Tally) -> Result<(), Unreplicated> {
        if self.is_cut(which) {
            return Err(Unreplicated::Unreachable);
        }
        let there = self.remote.as_ref().map(|commit| commit.found.commit.clone());
        if let Some((commit, has)) = drive.tried.iter().find(|(commit, _)| Some(commit) == there.as_ref()) {
            drive.known = Some(commit.clone());
            drive.covered = *has;
        }
        if there != drive.known {
            return Err(Unreplicated::Fenced);
        }
        if drive.covered >= drive.state.seq {
            return Ok(());
        }
        let commit = self.commit(which, drive.fence, self.machines[which].disk.clone());
        let at = commit.found.commit.clone();
        drive.tried.push((at.clone(), drive.state.seq));
        match self.push(drive.known.clone(), commit, tally) {
            PushResult::Done => {
                (drive.known, drive.covered) = (Some(at), drive.state.seq);
                Ok(())
            }
            PushResult::Stale | PushResult::Unknown => Err(Unreplicated::Unreachable),
        }
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

    /// Takes the loop over under a fence; says whether the order is dealt with.
    fn take(&mut self, which: usize, fence: u64, tally: &mut Tally) -> bool {
        let there = self.remote.clone();
        match take_lease(there.as_ref().map(|it| &it.found), fence, &self.machines[which].claims) {
            Err(_) => {
                tally.add("order", "stale, refused");
                return true;
            }
            Ok(None) if self.machines[which].disk.is_empty() => return true,
            Ok(Some(Takeover::Claim { .. })) => {
                let there = there.clone().expect("it is claimed");
                let commit = self.commit(which, fence, there.records);
                self.machines[which].claims.push(commit.found.commit.clone());
                let expected = Some(there.found.commit);
                if self.push(expected, commit, tally) != PushResult::Done {
                    return false;
                }
            }
            Ok(_) => {}
        }
        // The order may be old: nothing is begun before the scheduler has accepted a heartbeat.
        match self.beat(which, fence) {
            true => self.lay_out(which, fence, tally),
            false => tally.add("order", "stale, dropped"),
        }
        true
    }

    fn lay_out(&mut self, which: usize, fence: u64, tally: &mut Tally) {
        let there = self.remote.clone();
        let records = there.as_ref().map(|it| it.records.clone()).unwrap_or_default();
        let machine = &mut self.machines[which];
        let is_ahead = !machine.disk.is_empty() && machine.disk.starts_with(&records);
        if is_ahead && machine.disk.len() > records.len() && there.is_some() {
            tally.add("journal", "its tail was kept");
        }
        if !is_ahead {
            if !records.starts_with(&machine.disk) {
                tally.add("journal", "its tail was put aside");
            }
            machine.disk.clone_from(&records);
        }
        machine.claims.clear();
        let state = LoopState::fold(&machine.disk).expect("what is there folds");
        let (known, covered) = (there.map(|it| it.found.commit), records.len() as u64);
        let deadline = self.now + LEASE;
        self.machines[which].keeper_deadline = deadline;
        let mut drive = Drive { fence, state, known, tried: Vec::new(), covered, deadline, barrier: None };
        if !is_ahead {
            self.append(which, &mut drive, moved(fence));
        }
        if drive.state.ended.is_none() {
            let pid = i32::try_from(which).expect("a small number");
            let recover = drive.state.recover_under(runner(pid), Some(fence));
            self.append(which, &mut drive, recover);
        } else {
            drive.barrier = Some(Barrier::End);
        }
        self.machines[which].drive = Some(drive);
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
