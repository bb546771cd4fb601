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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Priority;

    fn task(id: &str, wave: u32, complexity: u32, status: TaskWord, dependencies: &[&str]) -> TaskView {
        let id_of = |text: &str| text.parse::<TaskId>().unwrap();
        TaskView {
            id: id_of(id),
            title: String::new(),
            wave: Some(wave),
            status,
            complexity,
            priority: Priority::Medium,
            dependencies: dependencies.iter().map(|id| id_of(id)).collect(),
            waits_for: Vec::new(),
            rounds: 0,
            iterations: 0,
            id_of_loop: None,
            slot: None,
            commit: None,
            reason: None,
            left_out: Vec::new(),
            settled_at: None,
            cost_usd: None,
        }
    }

    #[test]
    fn it_is_the_hardest_chain_of_what_is_left() {
        use TaskWord::{Done, InProgress, Pending};
        let tasks = [
            task("1", 1, 8, Done, &[]),
            task("2", 2, 1, InProgress, &["1"]),
            task("3", 2, 5, Pending, &["1"]),
            task("4", 3, 1, Pending, &["2", "3"]),
            task("5", 1, 3, Pending, &[]),
        ];
        let path: Vec<_> = critical_path(&tasks).iter().map(ToString::to_string).collect();
        assert_eq!(path, ["3", "4"]);
        assert!(critical_path(&tasks[..1]).is_empty());
    }
}
