//! The world of one plan: its clock, its journal, its task file, its git, the loops of its tasks, its people; and how a
//! runner dies.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::file::TaskFile;
use super::git::Git;
use super::ledger::Ledger;
use super::person::Person;
use super::runner::Job;
use super::task_loop::{LoopCharacter, TaskLoop};
use crate::agent::Usd;
use crate::event::{FORMAT, Record};
use crate::ids::LoopId;
use crate::r#loop::tests::journal::{gates, spec, time};
use crate::machine::Machine;
use crate::plan::{PlanEvent, PlanLimits, PlanLive, PlanSpec, PlanStarted, PlanState, TaskStatus};
use crate::simulation::Crash;
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;
use crate::spec::Millis;

/// When runners die: at the append of an event, before or after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crashes {
    pub(super) at: Option<u64>,
    pub(super) before: bool,
    pub(super) more: u32,
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) aloud: bool,
    pub(super) clock: u64,
    pub(super) records: Vec<Record<PlanEvent>>,
    pub(super) state: PlanState,
    /// The same, from what was written down and read again; for some seeds, as it takes its time.
    shadow: Option<PlanState>,
    pub(super) live: PlanLive,
    pub(super) file: TaskFile,
    pub(super) git: Git,
    pub(super) loops: BTreeMap<LoopId, TaskLoop>,
    /// The worktrees that this runner has locked, and for which loops. A runner that dies loses them.
    pub(super) pool: BTreeMap<u32, LoopId>,
    pub(super) temper: LoopCharacter,
    /// One in this many steps of git fails.
    pub(super) hinders: u64,
    pub(super) job: Option<Job>,
    pub(super) person: Person,
    pub(super) ledger: Ledger,
    crashes: Crashes,
    written: u64,
    pub(super) idle_steps: u32,
}

fn sample_spec(random: &mut Random) -> PlanSpec {
    let small = |n: u64| u32::try_from(n).expect("a small number");
    let mut each = Box::new(spec());
    each.gates = gates([true]).into_iter().filter(|_| !random.once_in(4)).collect();
    PlanSpec {
        id: "plan".parse().expect("an id"),
        tag: "main".into(),
        tasks: "tasks.json".into(),
        brief: Default::default(),
        each,
        jobs: small(random.pick(&[1, 1, 2, 3, 4, 8])),
        pipeline: random.once_in(2),
        waves_before: 0,
        mirror: false,
        tune: random.once_in(4),
        fleet: None,
        verifications: None,
        limits: PlanLimits {
            per_task: small(random.between(1, 4)),
            total: random.maybe(3, 1, 60).map_or(1_000, small),
            max_cost: random.maybe(3, 1, 20_000_000_000).map(Usd),
            max_duration: random.maybe(5, 1_000, 900_000).map(Millis),
        },
    }
}

impl World {
    pub(super) fn new(seed: u64, crashes: Crashes, aloud: bool) -> Self {
        let mut random = Random::new(seed);
        let spec = sample_spec(&mut random);
        let started = PlanStarted { format: FORMAT, refrain: "0.1.0".into(), spec };
        let first = Record { seq: 1, at: time(0), event: PlanEvent::Started(Box::new(started)) };
        let file = TaskFile::sample(&mut random);
        let person = Person::sample(&mut random);
        let temper = random.pick(&[
            LoopCharacter::Able,
            LoopCharacter::Able,
            LoopCharacter::Able,
            LoopCharacter::Mixed,
            LoopCharacter::Hopeless,
        ]);
        let rates =
            [[0, 0, 0, 0], [8, 0, 0, 0], [0, 6, 0, 0], [20, 20, 60, 60]][usize::from(random.once_in(2)) * 3];
        let rates =
            if random.once_in(2) { random.pick(&[[8, 0, 0, 0], [0, 6, 0, 0], [3, 3, 0, 0]]) } else { rates };
        if aloud {
            println!("{temper:?}, {person:?}, {file:#?}\n{first:?}");
        }
        let state = PlanState::begin(&first).expect("a start");
        Self {
            git: Git::new(seed, rates),
            hinders: random.pick(&[0, 0, 0, 0, 20]),
            random,
            aloud,
            clock: 0,
            ledger: Ledger::new(&state),
            shadow: seed.is_multiple_of(4).then(|| state.clone()),
            state,
            records: vec![first],
            live: PlanLive::default(),
            file,
            loops: BTreeMap::new(),
            pool: BTreeMap::new(),
            temper,
            job: None,
            person,
            crashes,
            written: 1,
            idle_steps: 0,
        }
    }

    /// Plays a whole plan; answers how many events were written.
    pub(super) fn run(mut self, tally: &mut Tally) -> u64 {
        loop {
            match self.live(tally) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Crash) => self.crash(tally),
            }
        }
        assert!(self.state.ended.is_some(), "a plan ends, or rests until a request arrives");
        self.fold_again();
        self.written
    }

    pub(super) fn now(&self) -> Timestamp {
        time(i64::try_from(self.clock).expect("a plan is short"))
    }

    pub(super) fn append(&mut self, event: PlanEvent) -> Result<(), Crash> {
        let is_due = self.crashes.at.is_some_and(|at| at <= self.written + 1);
        if is_due && self.crashes.before {
            return Err(Crash);
        }
        let record = Record { seq: self.state.seq + 1, at: self.now(), event };
        if self.aloud {
            println!("{:>8} {:?}", self.clock, record.event);
        }
        self.ledger.enter(&record.event, &self.state, &self.git);
        let is_file = matches!(record.event, PlanEvent::TasksTaken { .. });
        let before = self.words();
        self.state.apply(&record).expect("what was decided can be recorded");
        if let Some(shadow) = &mut self.shadow {
            let line = serde_json::to_string(&record).expect("a record is written");
            let read: Record<PlanEvent> = serde_json::from_str(&line).expect("a record is read");
            shadow.apply(&read).expect("what was written can be folded");
            assert_same(shadow, &self.state);
        }
        self.ledger.assert_agrees(&self.state);
        self.records.push(record);
        self.written += 1;
        if is_due {
            return Err(Crash);
        }
        // Only what changed is written.
        for ((task, was), is) in self.state.tasks.iter().zip(before).zip(self.words()) {
            if !is_file && was != is {
                self.file.write(&task.card.id, is);
            }
        }
        Ok(())
    }

    pub(super) fn assert_file_says_so(&self) {
        for (task, word) in self.state.tasks.iter().zip(self.words()) {
            self.file.assert_says(&task.card.id, word);
        }
    }

    fn words(&self) -> Vec<TaskStatus> {
        self.state.tasks.iter().map(|task| self.state.status_of(task)).collect()
    }

    /// The next runner finds the file as it was left.
    pub(super) fn bring_file_up_to_date(&mut self) {
        for (task, word) in self.state.tasks.iter().zip(self.words()) {
            self.file.write(&task.card.id, word);
        }
    }

    /// The runner dies, and all that it drove with it.
    fn crash(&mut self, tally: &mut Tally) {
        if self.aloud {
            println!("{:>8} crash {}", self.clock, if self.crashes.before { "before" } else { "after" });
        }
        tally.add("crash", if self.crashes.before { "before an event" } else { "after an event" });
        if self.job.is_some() {
            tally.add("crash", "while git works");
        }
        self.crashes.at = None;
        if self.crashes.more > 0 && self.random.once_in(2) {
            self.crashes.more -= 1;
            self.crashes.before = self.random.once_in(2);
            self.crashes.at = Some(self.written + self.random.between(1, 20));
        }
        self.rest();
        self.fold_again();
        self.clock += self.random.below(2_000_000);
    }

    pub(super) fn rest(&mut self) {
        self.job = None;
        self.live = PlanLive::default();
        self.pool.clear();
        self.loops.values_mut().for_each(TaskLoop::abandon);
    }

    fn fold_again(&mut self) {
        let mut folded = PlanState::begin(&self.records[0]).expect("a start");
        for record in &self.records[1..] {
            folded.apply(record).expect("every prefix of a journal folds");
        }
        assert_same(&folded, &self.state);
        self.state = folded;
    }
}

#[track_caller]
fn assert_same(one: &PlanState, other: &PlanState) {
    assert_eq!(one.tasks, other.tasks);
    assert_eq!(one.graph.waves(), other.graph.waves());
    assert_eq!((&one.waves, &one.batch, &one.handover), (&other.waves, &other.batch, &other.handover));
    assert_eq!((&one.tip, &one.trunk, &one.base), (&other.tip, &other.trunk, &other.base));
    assert_eq!((&one.ready, &one.running, &one.proven), (&other.ready, &other.running, &other.proven));
    assert_eq!((one.used, one.reserved, one.spent), (other.used, other.reserved, other.spent));
    assert_eq!(&one.lifecycle, &other.lifecycle);
    assert_eq!(&one.hindered, &other.hindered);
    assert_eq!(one.in_vain, other.in_vain);
    assert_eq!((&one.line, &one.gone, one.taken), (&other.line, &other.gone, other.taken));
    assert_eq!((&one.limits, &one.refused), (&other.limits, &other.refused));
}
