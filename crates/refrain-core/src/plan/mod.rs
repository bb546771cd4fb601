//! Plans: many tasks, in waves, each of them a loop. What a task is, how it stands in its file, what the graph of all of
//! them says, what comes next. What is done about that is the engine's.

pub mod brief;
mod cycles;
mod edges;
pub mod file;
mod graph;
mod links;
mod problem;
mod standing;
mod task;
mod task_loop;
mod task_ref;
pub mod tokens;
pub mod view;

pub use graph::Graph;
pub use problem::Problem;
pub use standing::Standing;
pub use task::{Note, Priority, Task, TaskId, TaskIdError, TaskStatus};
pub use task_loop::task_loop;
pub use task_ref::TaskRef;
