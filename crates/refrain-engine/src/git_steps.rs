//! The steps of a loop that use git: base, candidate, commit, publish, failure branch; and the pool of worktrees. Git
//! itself is run by `refrain-git`.

pub(crate) mod differences;
pub(crate) mod discard;
pub(crate) mod discard_refs;
pub(crate) mod failure_branch;
pub(crate) mod gc;
pub(crate) mod git_words;
pub(crate) mod merge;
pub(crate) mod moving;
pub(crate) mod pool;
pub(crate) mod protection;
pub(crate) mod publish;
pub(crate) mod repository;
pub(crate) mod tool_pins;
pub(crate) mod work;
pub(crate) mod worktree_setup;
