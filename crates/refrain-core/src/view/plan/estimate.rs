//! When a plan is likely to be through: from how long its landed tasks took, by their complexity, from how many run at
//! a time, and from the dependencies among the rest.

use std::time::Duration;

use jiff::Timestamp;

use super::Estimate;
use crate::plan::{PlanState, Stage, TaskState};
use crate::spec::Millis;

/// The estimate, if something has landed and something is left that will be done without a person. `is_driven` says
/// whether a plan that has not stopped has a runner.
pub(super) fn of(state: &PlanState, is_driven: bool, now: Timestamp) -> Option<Estimate> {
    let is_driven = is_driven && state.ended.is_none();
    let landed = || {
        let is_measured = |task: &&TaskState| matches!(task.stage, Stage::Landed { .. }) && task.rounds > 0;
        state.tasks.iter().filter(is_measured)
    };
    let weights: u64 = landed().map(weight).sum();
    let worked: u128 = landed().map(|task| task.worked.as_millis()).sum();
    if weights == 0 || state.is_final() {
        return None;
    }
    let a_unit = u64::try_from(worked / u128::from(weights)).unwrap_or(u64::MAX);
    let active = if is_driven { state.active + state.stretch(now) } else { state.active };
    let mut left = vec![0; state.tasks.len()];
    for (place, task) in state.tasks.iter().enumerate() {
        let whole = a_unit.saturating_mul(weight(task));
        left[place] = match &task.stage {
            Stage::Waiting(_) if !task.is_hopeless => whole,
            Stage::Running(running) => {
                let ran = active.saturating_sub(running.since).as_millis();
                whole.saturating_sub(u64::try_from(ran).unwrap_or(u64::MAX))
            }
            Stage::Out
            | Stage::Waiting(_)
            | Stage::Proven { .. }
            | Stage::Landed { .. }
            | Stage::Stopped(_) => 0,
        };
    }
    if state.tasks.iter().all(TaskState::is_settled) {
        return None;
    }
    let left = if state.spec.pipeline { in_a_line(state, &left) } else { in_waves(state, &left) };
    let at = now.checked_add(Duration::from_millis(left)).ok();
    Some(Estimate { left_ms: Millis(left), at: at.filter(|_| is_driven), from_tasks: landed().count() })
}

/// The weight of a task, relative to others.
fn weight(task: &TaskState) -> u64 {
    u64::from(task.card.complexity.max(1))
}

/// Wave after wave: each takes as long as its longest task, or as all of them with this many jobs.
fn in_waves(state: &PlanState, left: &[u64]) -> u64 {
    let wave = |wave: &crate::plan::Wave| {
        let longest = wave.tasks.iter().map(|task| left[*task]).max().unwrap_or_default();
        let all = wave.tasks.iter().map(|task| left[*task]).sum::<u64>();
        longest.max(all / u64::from(state.spec.jobs.max(1)))
    };
    state.waves.iter().map(wave).sum()
}

/// Without barriers: as long as the longest chain, or as all with this many jobs.
fn in_a_line(state: &PlanState, left: &[u64]) -> u64 {
    let mut until = vec![0; left.len()];
    for task in state.waves.iter().flat_map(|wave| &wave.tasks) {
        let begin = state.graph.dependencies(*task).into_iter().map(|before| until[before]).max();
        until[*task] = begin.unwrap_or_default() + left[*task];
    }
    let longest = until.into_iter().max().unwrap_or_default();
    longest.max(left.iter().sum::<u64>() / u64::from(state.spec.jobs.max(1)))
}
