//! How each task of a plan stands, given its parent and its subtasks.

use super::graph::links::edges;
use super::{Task, TaskStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskReadiness {
    /// Done: what depends on it may begin.
    Done,
    ToDo,
    /// Its subtasks are to be done in its place.
    InParts,
    /// It will not be done as it stands; what depends on it waits.
    Stopped,
}

/// How each task stands. Its parent decides too: the parts of a task that is done, or given up, are not done.
pub(super) fn standings(tasks: &[Task], parents: &[Option<usize>]) -> Vec<TaskReadiness> {
    let own = |task: &Task| match task.status {
        TaskStatus::Done | TaskStatus::Review => TaskReadiness::Done,
        TaskStatus::Pending | TaskStatus::InProgress => TaskReadiness::ToDo,
        TaskStatus::Expanded => TaskReadiness::InParts,
        TaskStatus::Blocked
        | TaskStatus::Deferred
        | TaskStatus::Cancelled
        | TaskStatus::Failed
        | TaskStatus::AwaitingTune => TaskReadiness::Stopped,
    };
    let mut standing: Vec<_> = tasks.iter().map(own).collect();
    let down = from_the_top(parents);
    for &at in &down {
        let above = parents[at].map(|parent| standing[parent]);
        if standing[at] != TaskReadiness::Done
            && let Some(decided @ (TaskReadiness::Done | TaskReadiness::Stopped)) = above
        {
            standing[at] = decided;
        }
    }
    // A task done in parts is done once each part is done or given up, and stopped if nothing of it was, or will be,
    // done.
    let mut parts = vec![(0_usize, 0_usize); tasks.len()];
    for &at in down.iter().rev() {
        if standing[at] == TaskReadiness::InParts && parts[at].1 == 0 {
            standing[at] = if parts[at].0 > 0 { TaskReadiness::Done } else { TaskReadiness::Stopped };
        }
        let Some(parent) = parents[at] else { continue };
        let is_open = tasks[at].status != TaskStatus::Cancelled && standing[at] != TaskReadiness::Done;
        parts[parent].0 += usize::from(standing[at] == TaskReadiness::Done);
        parts[parent].1 += usize::from(is_open);
    }
    standing
}

fn from_the_top(parents: &[Option<usize>]) -> Vec<usize> {
    let has_parent = |(at, parent): (usize, &Option<usize>)| Some(((*parent)?, at));
    let below = edges(parents.len(), parents.iter().enumerate().filter_map(has_parent));
    let mut down: Vec<_> = (0..parents.len()).filter(|at| parents[*at].is_none()).collect();
    let mut next = 0;
    while let Some(&at) = down.get(next) {
        down.extend(&below[at]);
        next += 1;
    }
    down
}
