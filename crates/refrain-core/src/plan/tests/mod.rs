//! The rules of a plan, by example. Whole plans with people, crashes and a failing git are in `simulation`.

mod ending;
mod landing;
mod order;
mod starting;
mod telling;

use super::*;
use crate::agent::Usd;
use crate::event::{Ask, FORMAT, Record, Urgency};
use crate::git::{Oid, RepoPath};
use crate::r#loop::tests::journal::{gates, runner, spec, time};
use crate::machine::{Damage, Machine};

/// A plan by hand: events under a stopped clock, folded as they come.
#[derive(Clone)]
struct Plan {
    state: PlanState,
    live: PlanLive,
    at: i64,
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

/// A commit or a tree, by its number.
fn oid(number: u32) -> Oid {
    format!("{number:040x}").parse().unwrap()
}

fn card(name: &str, needs: &[&str]) -> Card {
    Card {
        id: id(name),
        title: String::new(),
        status: TaskStatus::Pending,
        complexity: 1,
        priority: Priority::Medium,
        dependencies: needs.iter().map(|need| id(need)).collect(),
        parent: None,
    }
}

/// The end of a round of one iteration, with nothing else to say of it.
fn task_ended(name: &str, end: TaskEnd) -> TaskEnded {
    TaskEnded {
        task: id(name),
        end,
        head: None,
        iterations: 1,
        cost: None,
        cost_at_least: false,
        assumed_cost: None,
        fault: None,
        failed_gate: None,
    }
}

fn failed() -> FailedGate {
    FailedGate { gate: "test".parse().unwrap(), log: "log".into() }
}

impl Plan {
    /// A plan with a gate, and room for four at a time.
    fn new(change: impl FnOnce(&mut PlanSpec)) -> Self {
        let mut each = Box::new(spec());
        each.gates = gates([true]);
        let mut spec = PlanSpec {
            id: "plan".parse().unwrap(),
            tag: "main".into(),
            tasks: "tasks.json".into(),
            brief: BriefSpec::default(),
            each,
            jobs: 4,
            pipeline: false,
            waves_before: 0,
            mirror: false,
            tune: false,
            fleet: None,
            verifications: None,
            limits: PlanLimits::default(),
        };
        change(&mut spec);
        let started = PlanStarted { format: FORMAT, refrain: "0.1.0".into(), spec };
        let event = PlanEvent::Started(Box::new(started));
        let state = PlanState::begin(&Record { seq: 1, at: time(0), event }).unwrap();
        Self { state, live: PlanLive::default(), at: 0 }.then(PlanEvent::RunnerStarted { runner: runner(1) })
    }

    /// A plan that knows its tasks, and begins at commit 1.
    fn of(tasks: &[(&str, &[&str])], change: impl FnOnce(&mut PlanSpec)) -> Self {
        let cards: Vec<_> = tasks.iter().map(|(name, needs)| card(name, needs)).collect();
        Self::new(change)
            .reads(cards)
            .then(PlanEvent::BaseTaken { head: oid(1), branch: Some("main".into()) })
    }

    fn try_then(&mut self, event: PlanEvent) -> Result<(), Damage> {
        self.state.apply(&Record { seq: self.state.seq + 1, at: time(self.at), event })
    }

    fn then(mut self, event: PlanEvent) -> Self {
        self.try_then(event).unwrap();
        self
    }

    /// Why that cannot follow; and nothing has changed by it.
    fn refuses(&self, event: PlanEvent) -> &'static str {
        let mut plan = self.clone();
        let Err(Damage::Order { what, .. }) = plan.try_then(event.clone()) else {
            panic!("{event:?} follows")
        };
        assert_eq!(format!("{:?}", plan.state), format!("{:?}", self.state));
        what
    }

    fn reads(self, tasks: Vec<Card>) -> Self {
        self.then(PlanEvent::TasksTaken { tasks })
    }

    /// The file as it is, but for the status of one task.
    fn sets(self, name: &str, status: TaskStatus) -> Self {
        let says = |task: &TaskState| match task.card.id == id(name) {
            true => Card { status, ..task.card.clone() },
            false => Card { status: self.state.status_of(task), ..task.card.clone() },
        };
        let cards = self.state.tasks.iter().map(says).collect();
        self.reads(cards)
    }

    fn next(&self) -> PlanStep {
        next_step(&self.state, &self.live, time(self.at))
    }

    fn place(&self, name: &str) -> usize {
        self.state.graph.index(&id(name)).unwrap()
    }

    fn task(&self, name: &str) -> &TaskState {
        &self.state.tasks[self.place(name)]
    }

    /// The names of those that it starts now, one after the other.
    fn started(mut self) -> (Self, Vec<String>) {
        let mut names = Vec::new();
        while let PlanStep::Start { task, granted, money } = self.next() {
            let name = self.state.tasks[task].card.id.to_string();
            self = self.start(&name, granted, money);
            names.push(name);
        }
        (self, names)
    }

    fn start(mut self, name: &str, granted: u32, money: Option<Usd>) -> Self {
        let task = self.task(name);
        let (round, onto) = (task.rounds + 1, self.state.tip.clone().unwrap());
        let loop_id = self.state.spec.loop_of(&id(name), round);
        self.live.driven.insert(loop_id.clone());
        self.then(PlanEvent::TaskStarted(Box::new(TaskStarted {
            task: id(name),
            round,
            id: loop_id,
            slot: 0,
            onto,
            granted,
            money,
        })))
    }

    fn starts(self) -> Self {
        self.started().0
    }

    fn end(self, name: &str, end: TaskEnd, iterations: u32, cost: Option<Usd>) -> Self {
        self.over(TaskEnded { iterations, cost, ..task_ended(name, end) })
    }

    fn over(mut self, ended: TaskEnded) -> Self {
        if let Some(Stage::Running(running)) = self.state.task(&ended.task).map(|task| &task.stage) {
            self.live.driven.remove(&running.id);
        }
        self.then(PlanEvent::TaskEnded(Box::new(ended)))
    }

    /// Its agent failed, and left this on its branch.
    fn fails(self, name: &str, said: &str, head: Option<Oid>) -> Self {
        let fault = Some(AgentFault { said: said.to_owned(), fingerprint: None });
        let end = TaskEnd::Stopped(Stop::UsedUp);
        self.over(TaskEnded { head, iterations: 3, fault, ..task_ended(name, end) })
    }

    fn refused(self, name: &str, gate: &str) -> Self {
        let failed_gate = Some(gate.to_owned());
        let end = TaskEnd::Stopped(Stop::UsedUp);
        self.over(TaskEnded { iterations: 3, failed_gate, ..task_ended(name, end) })
    }

    fn proves(self, name: &str) -> Self {
        self.end(name, TaskEnd::Proven { tree: None }, 1, None)
    }

    fn stops(self, name: &str, stop: Stop) -> Self {
        self.end(name, TaskEnd::Stopped(stop), 1, None)
    }

    /// The work of these is merged; each with them has the tree of its place, from 101.
    fn merges(self, names: &[&str]) -> Self {
        let part = |(tree, name): (u32, &&str)| MergedTask { task: id(name), tree: oid(tree) };
        self.then(PlanEvent::BatchMerged {
            merged: (101..).zip(names).map(part).collect(),
            refused: Vec::new(),
        })
    }

    fn conflicts(self, name: &str) -> Self {
        let paths = vec![RepoPath::from_bytes(b"a.rs")];
        let refused = vec![UnmergedTask { task: id(name), paths, why: None }];
        self.then(PlanEvent::BatchMerged { merged: Vec::new(), refused })
    }

    fn verified(self, upto: usize, passes: bool) -> Self {
        self.then(PlanEvent::BatchVerified { upto, failed: (!passes).then(failed) })
    }

    /// `count` of the batch are on the line now, whose tip is this commit.
    fn lands(self, count: u32, tip: u32) -> Self {
        let commits = (0..count).map(|n| Some(oid(tip - count + 1 + n))).collect();
        self.then(PlanEvent::BatchLanded { commits, refused: None, tip: oid(tip), line_was: None })
    }

    fn does(self, name: &str, tip: u32) -> Self {
        self.start(name, 3, None).proves(name).merges(&[name]).verified(1, true).lands(1, tip)
    }

    fn completes(self, wave: u32, commit: u32) -> Self {
        let wave = WaveNumber(wave);
        let tasks = self.state.tasks.iter().filter(|task| task.wave == wave.place());
        let tasks: Vec<_> = tasks.map(|task| task.card.id.clone()).collect();
        let is_later = |(id, _): &&(TaskId, Oid)| !tasks.contains(id);
        let rest =
            (0..).zip(self.state.line.iter().filter(is_later)).map(|(n, _)| oid(commit * 10 + n)).collect();
        self.then(PlanEvent::WaveCompleted { wave, commit: Some(oid(commit)), tasks, rest, commits: vec![] })
    }

    /// Completed with its landed work, and handed over.
    fn lands_wave(self, wave: u32, commit: u32) -> Self {
        let tasks = self.state.line.iter().map(|(id, _)| id.clone()).collect();
        let commit = oid(commit);
        self.then(PlanEvent::WaveCompleted {
            wave: WaveNumber(wave),
            commit: Some(commit.clone()),
            tasks,
            rest: vec![],
            commits: vec![],
        })
        .then(PlanEvent::HandedOver {
            head: Some(commit),
            rest: vec![],
            waves: vec![],
            refused: None,
        })
    }

    fn hands_over(self, head: u32) -> Self {
        let rest = (0..).zip(&self.state.line).map(|(n, _)| oid(head * 10 + n)).collect();
        self.then(PlanEvent::HandedOver { head: Some(oid(head)), rest, waves: vec![], refused: None })
    }

    fn asked(self, ask: Ask) -> Self {
        self.then(PlanEvent::Asked { request: None, ask, by: Default::default() })
    }

    fn ends(self) -> Self {
        match self.next() {
            PlanStep::Finish(end) => self.then(PlanEvent::Ended(end)),
            step => panic!("{step:?} is no end"),
        }
    }

    fn resumed(self, change: impl FnOnce(&mut PlanLimits)) -> Self {
        let mut limits = self.state.limits.clone();
        change(&mut limits);
        self.then(PlanEvent::Resumed { limits })
    }
}
