//! The critical path: what limits how long a plan still takes, however many tasks run at a time.

use std::collections::HashMap;

use super::{TaskView, TaskWord};
use crate::plan::TaskId;

/// The longest chain of tasks that are still to be done, each after the one before it; a task is as long as it is hard.
/// Of several the one whose tasks come first in the file.
pub fn critical_path(tasks: &[TaskView]) -> Vec<TaskId> {
    let open: Vec<&TaskView> = tasks.iter().filter(|task| is_open(task)).collect();
    let places: HashMap<&TaskId, usize> = open.iter().enumerate().map(|(n, task)| (&task.id, n)).collect();
    // The length of the chain that ends with a task, and the task before it in that chain.
    let mut ends: Vec<Option<(u64, Option<usize>)>> = vec![None; open.len()];
    let mut by_wave: Vec<usize> = (0..open.len()).collect();
    // A task's dependencies are in waves before its own.
    by_wave.sort_by_key(|n| open[*n].wave);
    for n in by_wave {
        let before = open[n].dependencies.iter().filter_map(|id| places.get(id));
        let before = before.filter_map(|m| Some((ends[*m]?.0, *m)));
        let before = before.max_by_key(|(length, m)| (*length, std::cmp::Reverse(*m)));
        let length = before.map_or(0, |(length, _)| length) + u64::from(open[n].complexity.max(1));
        ends[n] = Some((length, before.map(|(_, m)| m)));
    }
    let last = (0..open.len()).max_by_key(|n| (ends[*n].map(|(length, _)| length), std::cmp::Reverse(*n)));
    let mut path: Vec<TaskId> =
        std::iter::successors(last, |n| ends[*n]?.1).map(|n| open[n].id.clone()).collect();
    path.reverse();
    path
}

/// Whether it is the plan's to do and neither done nor given up.
fn is_open(task: &TaskView) -> bool {
    use TaskWord::{Cancelled, Deferred, Done, Expanded, Failed, Review};
    let is_over = matches!(task.status, Done | Review | Deferred | Cancelled | Expanded | Failed);
    task.wave.is_some() && !is_over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Priority;

    fn task(id: &str, wave: u32, complexity: u32, dependencies: &[&str], status: TaskWord) -> TaskView {
        TaskView {
            id: id.parse().unwrap(),
            title: String::new(),
            wave: Some(wave),
            status,
            complexity,
            priority: Priority::default(),
            dependencies: dependencies.iter().map(|id| id.parse().unwrap()).collect(),
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
            at_least: false,
        }
    }

    fn path(tasks: &[TaskView]) -> String {
        critical_path(tasks).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_longest_chain_that_is_left_is_critical() {
        let all = |first: TaskWord| {
            [
                task("d", 3, 1, &["b", "c"], TaskWord::Pending),
                task("a", 1, 9, &[], first),
                task("b", 2, 1, &["a"], TaskWord::Pending),
                task("c", 2, 5, &[], TaskWord::Pending),
            ]
        };
        assert_eq!(path(&all(TaskWord::InProgress)), "a b d");
        assert_eq!(path(&all(TaskWord::Done)), "c d", "what is done takes no more time");
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn unrated_tasks_count_as_one_each() {
        let tasks = [task("a", 1, 0, &[], TaskWord::Pending), task("b", 2, 0, &["a"], TaskWord::Pending)];
        assert_eq!(path(&tasks), "a b");
    }
}
