//! Which changes of a worktree are the loop's own.

pub(crate) mod bad_paths;
pub(crate) mod evidence;
pub(crate) mod forged;
pub(crate) mod looks;
pub(crate) mod objects;
pub(crate) mod odd_files;
pub(crate) mod protection;
pub(crate) mod secrets_told;
pub(crate) mod states;
pub(crate) mod trees;
pub(crate) mod work;
