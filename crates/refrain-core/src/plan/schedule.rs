//! Which task is started next, and in which order proven work lands.
//!
//! A task that came back, because its work did not fit what others had landed, goes before the fresh ones of its wave,
//! and is the only one of its kind at a time: else those that change the same lines would send each other back until
//! all but one are blocked. In its last round before that nothing else lands, so what fits the line at its begin still
//! fits when it lands.

use std::cmp::Reverse;

use super::apply::MAX_RETURNS;
use super::state::{PlanState, RunningTask, TaskState};

/// How many tasks are merged and verified together at most: the cost of a failure grows with it, if slowly.
const BATCH: usize = 16;

/// A task that could be started, those that come first in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    wave: usize,
    is_fresh: bool,
    /// A task with more work after it goes first; equal for all if one task follows another, as then the file's order
    /// counts.
    rank: Reverse<u64>,
    pub(super) task: usize,
}

impl TaskState {
    /// Whether it came back because its work did not fit what others had landed.
    pub(super) fn is_back(&self) -> bool {
        self.returns > 0
    }

    /// Whether it is blocked if that happens once more.
    fn has_last_chance(&self) -> bool {
        self.returns >= MAX_RETURNS
    }
}

impl PlanState {
    pub(super) fn turn(&self, task: usize) -> Option<Ready> {
        let rank = if self.spec.jobs == 1 { 0 } else { self.graph.rank(task) };
        let state = &self.tasks[task];
        Some(Ready { wave: state.wave?, is_fresh: !state.is_back(), rank: Reverse(rank), task })
    }

    /// The task to start, if there is one whose turn it is.
    pub(super) fn next_in_turn(&self) -> Option<usize> {
        let current = self.current_wave();
        let mut its_turn = self.ready.iter().take_while(|ready| self.spec.pipeline || ready.wave == current);
        let first = its_turn.next()?;
        if first.is_fresh {
            return Some(first.task);
        }
        if self.is_another_back() {
            return its_turn.find(|ready| ready.is_fresh).map(|ready| ready.task);
        }
        // A task that began meanwhile would only make it wait longer.
        let is_settling = self.batch.is_some() || !self.proven.is_empty();
        (!is_settling || !self.tasks[first.task].has_last_chance()).then_some(first.task)
    }

    /// Those that run, without those that rest, which block no other task.
    fn at_work(&self) -> impl Iterator<Item = (usize, &RunningTask)> {
        self.running().filter(|(_, running)| running.halt.is_none())
    }

    /// Whether a task that came back is under way, up to its landing.
    fn is_another_back(&self) -> bool {
        let at_work = self.at_work().map(|(task, _)| task);
        let in_batch = self.batch.iter().flat_map(|batch| &batch.merged);
        let in_batch = in_batch.filter_map(|one| self.graph.index(&one.task));
        let mut under_way = at_work.chain(self.proven.iter().copied()).chain(in_batch);
        under_way.any(|task| self.tasks[task].is_back())
    }

    /// The tasks to merge next: none while a task has its last chance. Tasks that came back go first, those with the
    /// fewest chances in front.
    pub(super) fn next_to_land(&self) -> Vec<usize> {
        let is_last = |(task, _): (usize, &RunningTask)| self.tasks[task].has_last_chance();
        if self.at_work().any(is_last) {
            return Vec::new();
        }
        let mut tasks: Vec<_> = self.proven.iter().copied().collect();
        tasks.sort_by_key(|task| Reverse(self.tasks[*task].returns));
        tasks.truncate(BATCH);
        tasks
    }
}
