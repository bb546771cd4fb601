//! The tasks read from a task file, and the changes to it.

use crate::plan::{Note, Problem, Task, TaskId, TaskStatus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// What they are called together, if the file says so.
    pub name: Option<String>,
    /// The tasks, in the order of the file.
    pub tasks: Vec<Task>,
    /// The shell command that proves every one of them, if the file names one.
    pub verification: Option<String>,
    pub odd: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub task: TaskId,
    /// Its status when that was decided: any other by now comes from another writer, and is left.
    pub from: TaskStatus,
    pub status: TaskStatus,
    /// Why, if a person has to look at it. Without one, what the file said before is removed.
    pub note: Option<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedTasks {
    pub text: String,
    /// Changes of tasks that are not there any more.
    pub missing: Vec<TaskId>,
    /// Changes of tasks that another writer changed, which are left as they are.
    pub left: Vec<TaskId>,
}

impl Change {
    /// Whether no other writer changed the status, or wrote the same.
    pub(super) fn fits(&self, found: TaskStatus) -> bool {
        found == self.from || found == self.status
    }
}
