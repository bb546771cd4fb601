//! A plan for tests: its events, one after the other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use refrain_core::plan::{PlanEvent, PlanState};
use refrain_core::view::StatusWord;
use refrain_core::view::plan::{PlanStatus, TaskLoop, status};
use refrain_core::{Machine, Record};
use serde_json::{Value, json};

/// A plan to which things happen, ten seconds apart.
pub(crate) struct ScriptedPlan {
    pub(crate) records: Vec<Record<PlanEvent>>,
}

fn at(records: usize) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 10 * i64::try_from(records).unwrap()).unwrap()
}

pub(crate) fn oid(n: usize) -> String {
    format!("{n:x}").repeat(40)[..40].to_owned()
}

impl ScriptedPlan {
    /// A plan with these tasks: id, title, complexity, dependencies.
    pub(crate) fn of(tasks: &[(&str, &str, u32, &[&str])]) -> Self {
        let gate = json!({"name": "verify", "command": "cargo check && cargo test", "hard": true, "timeout_ms": 600_000});
        let each = json!({
            "id": "feature-x", "prompt": "p", "iteration_context": true, "limits": {}, "project": "/home/you/project",
            "worktree": "/home/you/project", "working_dir": "/home/you/project", "depth": 0, "output_cap": 1024, "gates": [gate],
            "agent": {
                "kind": "claude", "program": "claude", "args": [], "prompt_mode": "auto", "clean_env": false, "env": {},
                "permissions": "auto", "output_format": "auto"
            }
        });
        let spec = json!({
            "id": "feature-x", "tag": "feature-x", "tasks": "/home/you/project/.scud/tasks/feature-x.json", "each": each,
            "jobs": 2, "limits": {"per_task": 3, "total": 100}
        });
        let cards: Vec<_> = tasks
            .iter()
            .map(|(id, title, complexity, on)| {
                json!({"id": id, "title": title, "status": "pending", "complexity": complexity, "dependencies": on})
            })
            .collect();
        let runner = json!({"runner": {"process": {"pid": 7, "start": 1}, "boot": "b", "host": "h"}});
        Self { records: Vec::new() }
            .then("plan.started", json!({"format": 1, "refrain": "0", "spec": spec}))
            .then("runner.started", runner)
            .then("tasks.taken", json!({"tasks": cards}))
            .then("base.taken", json!({"head": oid(1), "branch": "main"}))
    }

    /// A plan in the middle of its second wave, with one task blocked.
    pub(crate) fn feature() -> Self {
        let tasks: [(&str, &str, u32, &[&str]); 7] = [
            ("1", "Describe the schema", 2, &[]),
            ("2", "Set up the router", 1, &[]),
            ("3", "Setup database", 3, &["1"]),
            ("4", "Implement auth middleware", 5, &["2"]),
            ("5", "Store \u{1b}[31msessions", 3, &["3", "4"]),
            ("6", "Rate limits", 2, &["4"]),
            ("7", "Write the guide to sessions, for everybody who has never seen one before", 1, &["5", "6"]),
        ];
        let used_up = json!({"task": "3", "end": {"stopped": "used-up"}, "iterations": 3, "cost": 0.5});
        Self::of(&tasks)
            .does("1")
            .does("2")
            .then("wave.completed", json!({"wave": 1, "commit": oid(0xa), "tasks": ["1", "2"]}))
            .then("waves.handed-over", json!({"head": oid(0xa)}))
            .starts("3", 1)
            .then("task.ended", used_up)
            .starts("4", 1)
    }

    pub(crate) fn then(mut self, name: &str, data: Value) -> Self {
        let event = serde_json::from_value(json!({"type": name, "data": data})).unwrap();
        let seq = self.records.len() as u64 + 1;
        self.records.push(Record { seq, at: at(self.records.len()), event });
        self
    }

    pub(crate) fn starts(self, task: &str, round: u32) -> Self {
        let id = if round > 1 { format!("feature-x-{task}-r{round}") } else { format!("feature-x-{task}") };
        let started =
            json!({"task": task, "round": round, "id": id, "slot": 1, "onto": oid(1), "granted": 3});
        self.then("task.started", started)
    }

    pub(crate) fn proves(self, task: &str) -> Self {
        let ended = json!({"task": task, "end": {"proven": {"tree": oid(9)}}, "iterations": 1, "cost": 0.25});
        self.then("task.ended", ended)
    }

    fn does(self, task: &str) -> Self {
        self.starts(task, 1)
            .proves(task)
            .then("batch.merged", json!({"merged": [{"task": task, "tree": oid(9)}], "refused": []}))
            .then("batch.landed", json!({"commits": [oid(5)], "tip": oid(5)}))
    }

    pub(crate) fn state(&self) -> PlanState {
        let mut state = PlanState::begin(&self.records[0]).unwrap();
        self.records[1..].iter().for_each(|record| state.apply(record).unwrap());
        state
    }

    /// Ten seconds after its last event.
    pub(crate) fn now(&self) -> Timestamp {
        at(self.records.len())
    }

    pub(crate) fn view(&self) -> PlanStatus {
        let says = TaskLoop {
            iteration: 2,
            attempt: 1,
            status: StatusWord::Running,
            reason: "gate verify is running after attempt 2".to_owned(),
            wait: None,
            preview: None,
            usage: refrain_core::view::Usage::default(),
        };
        let loops = BTreeMap::from([("4".parse().unwrap(), says)]);
        status(&self.state(), &loops, Some(true), self.now())
    }
}
