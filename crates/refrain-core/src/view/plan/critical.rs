//! The critical path: the chain of tasks that is the longest of what is left to do.

use std::collections::BTreeMap;

use super::{TaskView, TaskWord};
use crate::plan::TaskId;

/// The tasks that are left of the chain that takes longest, by how hard they are, the first first.
#[must_use]
pub fn critical_path(tasks: &[TaskView]) -> Vec<TaskId> {
    let is_left = |task: &&TaskView| {
        task.wave.is_some()
            && match task.status {
                TaskWord::Pending
                | TaskWord::InProgress
                | TaskWord::Landing
                | TaskWord::Blocked
                | TaskWord::WaitingOnBlocked
                | TaskWord::AwaitingTune
                | TaskWord::Failed => true,
                TaskWord::Done
                | TaskWord::Review
                | TaskWord::Deferred
                | TaskWord::Cancelled
                | TaskWord::Expanded => false,
            }
    };
    let mut left: Vec<_> = tasks.iter().filter(is_left).collect();
    // What a task depends on lies in an earlier wave.
    left.sort_by_key(|task| task.wave);
    let mut chains: BTreeMap<&str, (u64, Vec<&TaskView>)> = BTreeMap::new();
    for task in left {
        let before = task.dependencies.iter().filter_map(|id| chains.get(id.as_str()));
        let (length, mut chain) = before.max_by_key(|(length, _)| *length).cloned().unwrap_or_default();
        chain.push(task);
        chains.insert(task.id.as_str(), (length + u64::from(task.complexity.max(1)), chain));
    }
    let longest = chains.into_values().max_by_key(|(length, _)| *length);
    longest.map(|(_, chain)| chain.into_iter().map(|task| task.id.clone()).collect()).unwrap_or_default()
}
