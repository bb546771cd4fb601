//! The rounds of a plan's tasks: how one begins, how it ends, and whether there is another.

use jiff::Timestamp;

use super::MAX_IN_VAIN;
use crate::agent::Usd;
use crate::plan::event::{AgentFault, Stop, TaskEnd, TaskEnded, TaskStarted};
use crate::plan::state::{Halt, PlanState, Return, RunningTask, Stage};

impl PlanState {
    pub(super) fn begin_round(&mut self, started: &TaskStarted, at: Timestamp) -> Result<(), &'static str> {
        let task = self.place(&started.task)?;
        let since = self.active + self.stretch(at);
        let state = &mut self.tasks[task];
        if state.stage != Stage::Waiting(0) {
            return Err("the task cannot be started");
        }
        // One that a person tuned begins anew.
        let begins_anew = matches!(state.again, Some(Return::Tuned(_)));
        let last = state.head.take().zip(state.onto.take()).or(state.before.take());
        state.before = last.filter(|_| !begins_anew);
        (state.rounds, state.onto) = (started.round, Some(started.onto.clone()));
        state.stage = Stage::Running(RunningTask {
            id: started.id.clone(),
            round: started.round,
            slot: started.slot,
            onto: started.onto.clone(),
            granted: started.granted,
            money: started.money,
            started_at: at,
            since,
            halt: None,
        });
        if let Some(turn) = self.turn(task) {
            self.ready.remove(&turn);
        }
        self.running.insert(task);
        self.reserved += started.granted;
        Ok(())
    }

    pub(super) fn end_round(&mut self, ended: &TaskEnded, at: Timestamp) -> Result<(), &'static str> {
        let task = self.place(&ended.task)?;
        let active = self.active + self.stretch(at);
        let Stage::Running(running) = &mut self.tasks[task].stage else {
            return Err("no loop works on the task");
        };
        let (granted, worked) = (running.granted, active.saturating_sub(running.since));
        let assumed = ended.assumed_cost.unwrap_or_default();
        let is_empty = ended.head.as_ref().is_none_or(|head| *head == running.onto);
        match &ended.end {
            TaskEnd::Rests => {
                running.halt = Some(Halt::Rests);
                return Ok(());
            }
            TaskEnd::OutOfMoney => {
                self.grant_money(task, ended.cost.unwrap_or_default().plus(assumed));
                return Ok(());
            }
            TaskEnd::CapReached { by } => {
                running.halt = Some(Halt::CapReached(*by));
                return Ok(());
            }
            TaskEnd::Hindered { error } => {
                self.hindered = Some(error.clone());
                return Ok(());
            }
            TaskEnd::Proven { .. } | TaskEnd::Stopped(_) => {}
        }
        self.running.remove(&task);
        // What this loop had reserved of a shared cap is free for those that found nothing left.
        self.wake(|halt| matches!(halt, Halt::CapReached(_)));
        self.reserved = self.reserved.saturating_sub(granted);
        self.used += ended.iterations;
        let add = |all: &mut Option<Usd>| {
            if let Some(cost) = ended.cost {
                *all = Some(all.unwrap_or_default().plus(cost));
            }
        };
        add(&mut self.spent);
        self.assumed = self.assumed.plus(assumed);
        self.spent_at_least |= ended.cost_at_least;
        let state = &mut self.tasks[task];
        add(&mut state.cost);
        state.cost_at_least |= ended.cost_at_least;
        state.iterations += ended.iterations;
        (state.of_round, state.fault) = (ended.iterations, ended.fault.clone());
        state.failed_gate.clone_from(&ended.failed_gate);
        state.worked += worked;
        state.head = ended.head.clone().or(state.head.take());
        let is_in_vain = is_empty && matches!(ended.end, TaskEnd::Stopped(_));
        self.count_in_vain(ended.fault.as_ref().filter(|_| is_in_vain));
        let state = &mut self.tasks[task];
        match &ended.end {
            TaskEnd::Proven { .. } if state.is_withdrawn => self.withdraw(task),
            TaskEnd::Proven { tree } => {
                state.stage = Stage::Proven { tree: tree.clone() };
                self.proven.insert(task);
            }
            TaskEnd::Stopped(stop) => self.stop(task, stop.clone(), at),
            TaskEnd::Rests | TaskEnd::OutOfMoney | TaskEnd::CapReached { .. } | TaskEnd::Hindered { .. } => {}
        }
        Ok(())
    }

    /// Another task ended; in vain, if there is a `fault`.
    pub(super) fn count_in_vain(&mut self, fault: Option<&AgentFault>) {
        let before = self.in_vain.take();
        let Some(fault) = fault else { return };
        let same = before.filter(|(_, known)| known.is_same(fault)).map_or(0, |(count, _)| count);
        self.in_vain = Some((same + 1, fault.clone()));
        if same + 1 >= MAX_IN_VAIN {
            let count = same + 1;
            let error = format!("of {count} tasks in a row the agent {}; nothing was changed", fault.said);
            self.hindered.get_or_insert(error);
        }
    }

    /// A loop that has spent its share gets another share of what is left, if anything is left.
    pub(super) fn grant_money(&mut self, task: usize, cost: Usd) {
        let spent = |running: &mut RunningTask| running.money = running.money.map(|had| had.max(cost));
        self.running_of(task).map(spent);
        let more = self.slice();
        if let Some(running) = self.running_of(task) {
            running.money =
                running.money.zip(more).map(|(Usd(had), Usd(more))| Usd(had.saturating_add(more)));
            running.halt = (more == Some(Usd(0))).then_some(Halt::OutOfMoney);
        }
    }

    pub(super) fn running_of(&mut self, task: usize) -> Option<&mut RunningTask> {
        let Stage::Running(running) = &mut self.tasks[task].stage else { return None };
        Some(running)
    }

    pub(super) fn stop(&mut self, task: usize, stop: Stop, at: Timestamp) {
        if self.tasks[task].is_withdrawn {
            return self.withdraw(task);
        }
        let state = &mut self.tasks[task];
        (state.stage, state.settled_at) = (Stage::Stopped(stop), Some(at));
        self.lose(task);
    }

    /// It will not be done without a person, nor will what waits for it.
    pub(super) fn lose(&mut self, task: usize) {
        self.settle(task);
        // Each is reached once, as hopeless tasks are skipped.
        let mut reached = self.graph.dependents(task);
        while let Some(task) = reached.pop() {
            let state = &mut self.tasks[task];
            if !std::mem::replace(&mut state.is_hopeless, true) && matches!(state.stage, Stage::Waiting(_)) {
                self.settle(task);
                reached.extend(self.graph.dependents(task));
            }
        }
    }

    /// A task more of its wave needs nothing any more.
    pub(super) fn settle(&mut self, task: usize) {
        if let Some(wave) = self.tasks[task].wave.and_then(|wave| self.waves.get_mut(wave)) {
            wave.open = wave.open.saturating_sub(1);
        }
    }

    /// A person took it off the plan while it was under way.
    pub(super) fn withdraw(&mut self, task: usize) {
        self.tasks[task].stage = Stage::Out;
        self.arrange();
    }

    pub(super) fn retry(&mut self, task: usize, why: Return) {
        self.tasks[task].retry(why);
    }
}
