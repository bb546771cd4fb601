//! Plans and their tasks, and the files of other systems.

pub(crate) mod conflict_marks;
pub(crate) mod from_other_systems;
pub(crate) mod mirrors;
pub(crate) mod plan_ends;
pub(crate) mod plan_history;
pub(crate) mod plan_kills;
pub(crate) mod plan_new;
pub(crate) mod plan_runs;
pub(crate) mod plan_show;
pub(crate) mod plan_verbs;
pub(crate) mod run_task;
pub(crate) mod task_loops;
pub(crate) mod task_worktrees;
