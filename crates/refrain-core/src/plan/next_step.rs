//! What a plan does next. Total, deterministic, and the only place where it is decided.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::event::{PlanEnd, WaveNumber};
use super::state::{Halt, PlanState, Stage, TaskState};
use crate::agent::Usd;
use crate::event::Urgency;
use crate::ids::LoopId;
use crate::spec::Millis;

/// The smallest thing a plan does next. Tasks are named by their places. `docs/architecture/core.md` says whether a
/// step may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanStep {
    /// Record what the repository has checked out.
    TakeBase,
    /// Read the task file, and record its content.
    TakeTasks,
    /// Record, then do: start a loop for a task, in a worktree of the pool.
    Start {
        task: usize,
        granted: u32,
        /// How much money it may spend, if that is limited.
        money: Option<Usd>,
    },
    /// Drive the loop that a task has already, or record how it ended.
    Drive {
        task: usize,
    },
    /// Ask the loops that run to rest, or to end.
    Quiet {
        urgency: Urgency,
        for_good: bool,
    },
    /// Merge the work of these tasks, one after the other, onto what has landed, and record the result.
    Merge {
        tasks: Vec<usize>,
    },
    /// Run the verification on the first tasks of the batch, up to this many, and record the result.
    Verify {
        upto: usize,
    },
    /// Put this many of the batch onto the line of what has landed, and record it.
    Land {
        upto: usize,
    },
    /// Make the commit of a wave, and record it.
    CompleteWave {
        wave: WaveNumber,
    },
    /// Bring the branch that the plan began on to the last complete wave, and record the result.
    HandOver,
    /// The running work of git is not wanted any more: end it.
    Abandon,
    /// Nothing until then, or until an event.
    Await {
        /// When to ask again at the latest.
        until: Option<Timestamp>,
    },
    Finish(PlanEnd),
    Rest,
}

/// Facts that only the runner knows, and no journal needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanLive {
    pub driven: BTreeSet<LoopId>,
    /// The last stop request that they got.
    pub told: Option<Urgency>,
    /// A step that asks git, or runs the verification, is being done.
    pub working: bool,
    /// The task file is not as it was when it was read last.
    pub tasks_changed: bool,
}

pub fn next_step(state: &PlanState, live: &PlanLive, now: Timestamp) -> PlanStep {
    if state.ended.is_some() {
        // It is stopped, and a cancel was requested since.
        let is_unwanted = state.cancel.is_some() && !state.is_final();
        return if is_unwanted { PlanStep::Finish(PlanEnd::Cancelled) } else { PlanStep::Rest };
    }
    let until = deadline(state);
    if let Some((urgency, end)) = stopping(state, until, now) {
        return wind_down(live, urgency, end);
    }
    let wait = PlanStep::Await { until };
    if live.tasks_changed || (!state.taken && state.refused.is_none()) {
        return PlanStep::TakeTasks;
    }
    if !state.taken {
        return PlanStep::Finish(PlanEnd::Blocked);
    }
    if state.base.is_none() {
        return PlanStep::TakeBase;
    }
    let is_broke = state.slice() == Some(Usd(0));
    let is_idle = |halt: Option<Halt>| match halt {
        None => true,
        Some(Halt::OutOfMoney) => !is_broke,
        Some(Halt::Rests | Halt::CapReached(_)) => false,
    };
    let idle =
        state.running().find(|(_, running)| is_idle(running.halt) && !live.driven.contains(&running.id));
    if let Some((task, _)) = idle {
        return PlanStep::Drive { task };
    }
    if !live.working
        && let Some(step) = landing(state)
    {
        return step;
    }
    // One after the other: the next begins at what the one before it landed.
    let is_landing = live.working && state.spec.jobs == 1;
    if let Some(step) = start(state, is_broke || is_landing || state.shared_cap().is_some()) {
        return step;
    }
    if live.working || !live.driven.is_empty() {
        return wait;
    }
    // Nothing runs, nothing lands, nothing can be started.
    PlanStep::Finish(stands(state, is_broke))
}

/// How a plan ends that can do nothing more.
fn stands(state: &PlanState, is_broke: bool) -> PlanEnd {
    let halts = |halt| state.running().any(|(_, running)| running.halt == Some(halt));
    if halts(Halt::Rests) {
        return PlanEnd::Paused;
    }
    if state.shared_cap().is_some() {
        return PlanEnd::BudgetExceeded;
    }
    if is_broke && (halts(Halt::OutOfMoney) || !state.ready.is_empty()) {
        return PlanEnd::BudgetExceeded;
    }
    if !state.ready.is_empty() && state.iterations_left() == 0 {
        return PlanEnd::IterationCap;
    }
    let is_undone = |task: &TaskState| matches!(task.stage, Stage::Stopped(_) | Stage::Waiting(_));
    let waits =
        !state.handover.due.is_empty() || state.refused.is_some() || state.tasks.iter().any(is_undone);
    if waits { PlanEnd::Blocked } else { PlanEnd::Completed }
}

/// Why everything should stop, if so, and how fast.
fn stopping(state: &PlanState, until: Option<Timestamp>, now: Timestamp) -> Option<(Urgency, PlanEnd)> {
    if let Some(urgency) = state.cancel {
        // A signal makes the cancel more urgent.
        return Some((urgency.max(state.pause.unwrap_or(urgency)), PlanEnd::Cancelled));
    }
    if let Some(urgency) = state.pause {
        return Some((urgency, PlanEnd::Paused));
    }
    if until.is_some_and(|until| until <= now) {
        return Some((Urgency::Now, PlanEnd::TimedOut));
    }
    state.hindered.as_ref().map(|_| (Urgency::AfterIteration, PlanEnd::Blocked))
}

fn wind_down(live: &PlanLive, urgency: Urgency, end: PlanEnd) -> PlanStep {
    match (live.driven.is_empty(), live.working) {
        (false, _) if live.told < Some(urgency) => {
            PlanStep::Quiet { urgency, for_good: end == PlanEnd::Cancelled }
        }
        (_, true) if urgency == Urgency::Now => PlanStep::Abandon,
        (false, _) | (true, true) => PlanStep::Await { until: None },
        (true, false) => PlanStep::Finish(end),
    }
}

/// When its own duration is over.
fn deadline(state: &PlanState) -> Option<Timestamp> {
    let Millis(all) = state.limits.max_duration?;
    let left = std::time::Duration::from_millis(all).saturating_sub(state.active);
    state.updated_at.checked_add(left).ok()
}

/// The next step to land proven work, and to hand over landed work.
fn landing(state: &PlanState) -> Option<PlanStep> {
    if let Some(batch) = &state.batch {
        return Some(match batch.question() {
            Some(upto) => PlanStep::Verify { upto },
            None => PlanStep::Land { upto: batch.good },
        });
    }
    if !state.handover.due.is_empty() && state.handover.refused.is_none() {
        return Some(PlanStep::HandOver);
    }
    let tasks = state.next_to_land();
    if !tasks.is_empty() {
        return Some(PlanStep::Merge { tasks });
    }
    let wave = state.current_wave();
    is_over(state, wave).then(|| PlanStep::CompleteWave { wave: WaveNumber::of_place(wave) })
}

/// Whether a wave has nothing left to do. If nothing of it has landed, and nothing after it can, it is left open, for
/// when it is resumed.
fn is_over(state: &PlanState, wave: usize) -> bool {
    let has_landed = |task: &usize| matches!(state.tasks[*task].stage, Stage::Landed { .. });
    let Some((first, behind)) = state.waves.get(wave..).and_then(<[_]>::split_first) else { return false };
    first.open == 0
        && (first.tasks.iter().any(has_landed)
            || behind.iter().any(|wave| wave.open > 0 || wave.tasks.iter().any(has_landed)))
}

/// The task to start, if there is one and room for it.
fn start(state: &PlanState, is_held: bool) -> Option<PlanStep> {
    let has_room = state.running.len() < state.spec.jobs as usize;
    let granted = state.limits.per_task.min(state.iterations_left());
    if !has_room || granted == 0 || is_held {
        return None;
    }
    Some(PlanStep::Start { task: state.next_in_turn()?, granted, money: state.slice() })
}
