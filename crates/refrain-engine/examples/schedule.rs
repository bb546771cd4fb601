//! The cost of decisions: plans of many tasks run to their end, with every event applied and every step asked for, and
//! nothing else done. `cargo run --release -p refrain-engine --example schedule -- TASKS` prints one JSON object with
//! the milliseconds of CPU that each shape of graph took, the least of five times.

use std::collections::VecDeque;
use std::error::Error;

use jiff::Timestamp;
use refrain_core::event::{FORMAT, Record};
use refrain_core::gate::{Check, GateSpec, GateWhen};
use refrain_core::git::Oid;
use refrain_core::plan::{
    Card, MergedTask, PlanEvent, PlanLimits, PlanLive, PlanSpec, PlanStarted, PlanState, PlanStep, Priority,
    TaskEnd, TaskEnded, TaskId, TaskStarted, TaskStatus, next_step,
};
use refrain_core::spec::{AgentKind, AgentSpec, Millis};
use refrain_core::{LoopId, Machine, Spec};

const JOBS: u32 = 8;
/// At least this many tasks are measured at once, of a plan of a thousand or more: of less no figure is taken.
const REPEATED: usize = 20_000;

/// The dependencies of a plan's tasks, by their places.
type Shape = fn(usize) -> Vec<usize>;

/// A hundred a wave; one after the other; no order at all; all after the first.
const SHAPES: [(&str, Shape); 4] = [
    ("layers", |task| match task / 100 {
        0 => Vec::new(),
        layer => (0..3).map(|n| (layer - 1) * 100 + (task * 7 + n * 31) % 100).collect(),
    }),
    ("chain", |task| task.checked_sub(1).into_iter().collect()),
    ("wide", |_| Vec::new()),
    ("star", |task| if task == 0 { Vec::new() } else { vec![0] }),
];

fn main() -> Result<(), Box<dyn Error>> {
    let tasks: usize = std::env::args().nth(1).ok_or("usage: schedule TASKS")?.parse()?;
    let mut figures = serde_json::Map::new();
    for (name, shape) in SHAPES {
        let mut least = f64::INFINITY;
        let repeated = if tasks < 1_000 { 1 } else { REPEATED.div_ceil(tasks) };
        for _ in 0..5 {
            // The system counts in steps of some milliseconds: what takes less is done more often.
            let plans = (0..repeated).map(|_| Plan::new(cards(tasks, shape)?));
            let mut plans = plans.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
            let from = cpu_ms()?;
            plans.iter_mut().try_for_each(Plan::drive)?;
            least = least.min((cpu_ms()? - from) / plans.len() as f64);
        }
        figures.insert(name.to_owned(), least.into());
    }
    #[expect(clippy::print_stdout, reason = "its result is what it prints")]
    {
        println!("{}", serde_json::Value::Object(figures));
    }
    Ok(())
}

fn cpu_ms() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().ok_or("no figure")?.parse()?;
    Ok(nanoseconds / 1e6)
}

fn cards(tasks: usize, shape: Shape) -> Result<Vec<Card>, Box<dyn Error>> {
    (0..tasks).map(|task| card(task, shape(task))).collect()
}

fn card(task: usize, needs: Vec<usize>) -> Result<Card, Box<dyn Error>> {
    let id = |task: usize| task.to_string().parse::<TaskId>();
    Ok(Card {
        id: id(task)?,
        title: "A task".to_owned(),
        status: TaskStatus::Pending,
        complexity: u32::try_from(task % 8)?,
        priority: Priority::Medium,
        dependencies: needs.into_iter().map(id).collect::<Result<_, _>>()?,
        parent: None,
    })
}

struct Plan {
    state: PlanState,
    live: PlanLive,
    cards: Vec<Card>,
    /// Loops that run, the oldest first.
    loops: VecDeque<(LoopId, TaskId)>,
    head: Oid,
}

impl Plan {
    fn new(cards: Vec<Card>) -> Result<Self, Box<dyn Error>> {
        let spec = PlanSpec {
            id: "plan".parse()?,
            tag: "main".to_owned(),
            tasks: "tasks.json".into(),
            brief: Default::default(),
            each: Box::new(spec()?),
            jobs: JOBS,
            pipeline: false,
            waves_before: 0,
            mirror: false,
            tune: false,
            fleet: None,
            verifications: None,
            limits: PlanLimits { total: u32::MAX, ..PlanLimits::default() },
        };
        let started = PlanStarted { format: FORMAT, refrain: "bench".to_owned(), spec };
        let event = PlanEvent::Started(Box::new(started));
        let state = PlanState::begin(&Record { seq: 1, at: Timestamp::UNIX_EPOCH, event })?;
        let head: Oid = "0".repeat(40).parse()?;
        Ok(Self { state, live: PlanLive::default(), cards, loops: VecDeque::new(), head })
    }

    fn apply(&mut self, event: PlanEvent) -> Result<(), Box<dyn Error>> {
        Ok(self.state.apply(&Record { seq: self.state.seq + 1, at: Timestamp::UNIX_EPOCH, event })?)
    }

    fn drive(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let head = self.head.clone();
            let event = match next_step(&self.state, &self.live, Timestamp::UNIX_EPOCH) {
                PlanStep::TakeTasks => PlanEvent::TasksTaken { tasks: std::mem::take(&mut self.cards) },
                PlanStep::TakeBase => PlanEvent::BaseTaken { head, branch: None },
                PlanStep::Start { task, granted, money } => {
                    let task = self.state.tasks[task].card.id.clone();
                    let id = self.state.spec.loop_of(&task, 1);
                    self.live.driven.insert(id.clone());
                    self.loops.push_back((id.clone(), task.clone()));
                    let slot = 0;
                    PlanEvent::TaskStarted(Box::new(TaskStarted {
                        task,
                        round: 1,
                        id,
                        slot,
                        onto: head,
                        granted,
                        money,
                    }))
                }
                PlanStep::Await { .. } => {
                    let (id, task) = self.loops.pop_front().ok_or("it waits for nothing")?;
                    self.live.driven.remove(&id);
                    let end = TaskEnd::Proven { tree: None };
                    PlanEvent::TaskEnded(Box::new(TaskEnded {
                        task,
                        end,
                        head: None,
                        iterations: 1,
                        cost: None,
                        cost_at_least: false,
                        assumed_cost: None,
                        fault: None,
                        failed_gate: None,
                    }))
                }
                PlanStep::Merge { tasks } => {
                    let merged = tasks.into_iter().map(|task| self.state.tasks[task].card.id.clone());
                    let merged = merged.map(|task| MergedTask { task, tree: head.clone() }).collect();
                    PlanEvent::BatchMerged { merged, refused: Vec::new() }
                }
                PlanStep::Verify { upto } => PlanEvent::BatchVerified { upto, failed: None },
                PlanStep::Land { upto } => PlanEvent::BatchLanded {
                    commits: vec![Some(head.clone()); upto],
                    refused: None,
                    tip: head,
                    line_was: None,
                },
                PlanStep::CompleteWave { wave } => {
                    let tasks = self.state.line.iter().map(|(id, _)| id.clone()).collect();
                    PlanEvent::WaveCompleted {
                        wave,
                        commit: Some(head),
                        tasks,
                        rest: Vec::new(),
                        commits: Vec::new(),
                    }
                }
                PlanStep::HandOver => PlanEvent::HandedOver {
                    head: Some(head),
                    rest: Vec::new(),
                    waves: Vec::new(),
                    refused: None,
                },
                PlanStep::Finish(end) => PlanEvent::Ended(end),
                PlanStep::Rest => return Ok(()),
                step @ (PlanStep::Drive { .. } | PlanStep::Quiet { .. } | PlanStep::Abandon) => {
                    return Err(format!("{step:?} was not expected").into());
                }
            };
            self.apply(event)?;
        }
    }
}

/// The specification of each loop, as small as possible.
fn spec() -> Result<Spec, Box<dyn Error>> {
    Ok(Spec {
        gates: vec![GateSpec {
            name: "test".parse()?,
            check: Check::Command("true".to_owned()),
            hard: true,
            timeout: Millis(1),
            retries: 0,
            when: GateWhen::Iteration,
            completes: false,
            own_tests: false,
            by_default: false,
        }],
        ..Spec::new("each".parse()?, AgentSpec::new(AgentKind::Generic, "true"), String::new(), "/")
    })
}
