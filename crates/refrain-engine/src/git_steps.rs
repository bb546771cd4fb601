//! The steps of a loop that ask git, and the work of a loop that is kept in it.

pub(crate) mod differences;
pub(crate) mod discard;
pub(crate) mod failure_branch;
pub(crate) mod git_words;
pub(crate) mod merge;
pub(crate) mod pool;
pub(crate) mod protection;
pub(crate) mod publish;
pub(crate) mod repository;
pub(crate) mod tool_pins;
pub(crate) mod work;
