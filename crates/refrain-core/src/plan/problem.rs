//! What is wrong with a plan; each message says where and what to do. All problems are found at once, before any money
//! is spent.

use std::fmt;

use super::{TaskId, TaskStatus};
use crate::text::grouped;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Tasks that wait for each other. The first is repeated at the end.
    Cycle(Vec<TaskId>),
    /// A task that is a part of itself. The first is repeated at the end.
    PartOfItself(Vec<TaskId>),
    OnItself(TaskId),
    /// Two tasks of the same name: what depends on it could mean either.
    Duplicate(TaskId),
    /// A dependency, or a parent, that is not there.
    Unknown {
        task: TaskId,
        named: TaskId,
        /// Whether it names it as the task that it is a part of.
        as_parent: bool,
        nearest: Option<TaskId>,
    },
    /// A dependency that will not be done.
    WaitsOn {
        task: TaskId,
        on: TaskId,
        status: TaskStatus,
    },
    /// A task whose subtasks are to be done in its place, and that has none.
    NothingInItsPlace(TaskId),
    /// Tasks that nothing would prove done: neither they nor the plan say how.
    Unverified(Vec<TaskId>),
    /// The prompt of a task is longer than it may be.
    OverBudget {
        task: TaskId,
        /// Its length, in tokens.
        tokens: u64,
        budget: u64,
        /// The part of it that is the longest, in words, and how long that is.
        largest: (String, u64),
    },
    /// A complexity that is none of SCUD's.
    Complexity {
        task: TaskId,
        complexity: u32,
    },
    /// The waves that the file stores are not those of its dependencies.
    StoredWaves {
        task: TaskId,
        wave: u32,
        on: TaskId,
        on_wave: u32,
    },
}

impl Problem {
    /// Whether the plan cannot be run as it is.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Cycle(_)
            | Self::PartOfItself(_)
            | Self::OnItself(_)
            | Self::Duplicate(_)
            | Self::Unknown { .. } => true,
            Self::WaitsOn { .. }
            | Self::NothingInItsPlace(_)
            | Self::Unverified(_)
            | Self::OverBudget { .. }
            | Self::Complexity { .. }
            | Self::StoredWaves { .. } => false,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cycle(_) => "cycle",
            Self::PartOfItself(_) => "part-of-itself",
            Self::OnItself(_) => "depends-on-itself",
            Self::Duplicate(_) => "duplicate-id",
            Self::Unknown { .. } => "unknown-id",
            Self::WaitsOn { .. } => "waits-on",
            Self::NothingInItsPlace(_) => "no-subtasks",
            Self::Unverified(_) => "no-verification",
            Self::OverBudget { .. } => "over-budget",
            Self::Complexity { .. } => "complexity",
            Self::StoredWaves { .. } => "stored-waves",
        }
    }

    pub fn tasks(&self) -> &[TaskId] {
        match self {
            Self::Cycle(path) | Self::PartOfItself(path) => path.split_last().map_or(&[], |(_, path)| path),
            Self::Unverified(tasks) => tasks,
            Self::OnItself(task)
            | Self::Duplicate(task)
            | Self::NothingInItsPlace(task)
            | Self::Unknown { task, .. }
            | Self::WaitsOn { task, .. }
            | Self::OverBudget { task, .. }
            | Self::Complexity { task, .. }
            | Self::StoredWaves { task, .. } => std::slice::from_ref(task),
        }
    }
}

const NAMED: usize = 10;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(path) => write!(f, "tasks wait for each other in a cycle: {}", joined(path, " -> ")),
            Self::PartOfItself(path) => write!(f, "a task is a part of itself: {}", joined(path, " -> ")),
            Self::OnItself(task) => write!(f, "task {task} depends on itself"),
            Self::Duplicate(id) => write!(f, "more than one task is called {id}"),
            Self::Unknown { task, named, as_parent, nearest } => {
                let how = if *as_parent { "is said to be a part of" } else { "depends on" };
                write!(f, "task {task} {how} {named}, which is not there")?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
            }
            Self::WaitsOn { task, on, status } => {
                write!(f, "task {task} waits on task {on}, which is {status}: it cannot begin")
            }
            Self::NothingInItsPlace(task) => {
                write!(f, "task {task} is expanded, but has no subtasks: nothing is done in its place")
            }
            Self::Unverified(tasks) => {
                let (named, more) = tasks.split_at(tasks.len().min(NAMED));
                let (s, names) = (if tasks.len() == 1 { "" } else { "s" }, joined(named, ", "));
                let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
                write!(f, "nothing would prove task{s} {names}{more} done: give --verify CMD")
            }
            Self::OverBudget { task, tokens, budget, largest: (largest, of_it) } => {
                let (tokens, budget, of_it) = (grouped(*tokens), grouped(*budget), grouped(*of_it));
                write!(
                    f,
                    "the brief of task {task} has {tokens} tokens, more than {budget}; the largest part is {largest}: \
                     {of_it} of {tokens} tokens"
                )
            }
            Self::Complexity { task, complexity } => write!(
                f,
                "task {task} has complexity {complexity}; SCUD knows 0 and Fibonacci's numbers up to 89"
            ),
            Self::StoredWaves { task, wave, on, on_wave } => write!(
                f,
                "the file puts task {task} in wave {wave}, but it depends on task {on} of wave {on_wave}; the waves are \
                 made from the dependencies instead"
            ),
        }
    }
}

fn joined(ids: &[TaskId], between: &str) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(between)
}
