//! Running git and reading its output: commands, objects, references, index, list of worktrees and settings.

pub(crate) mod attributes;
pub(crate) mod blocking_file;
pub(crate) mod commit_config;
pub(crate) mod configuration;
pub(crate) mod disk;
pub(crate) mod git;
pub(crate) mod git_files;
pub(crate) mod index;
pub(crate) mod object;
pub(crate) mod overrides;
pub(crate) mod parts;
pub(crate) mod verified_objects;
pub(crate) mod worktree;
pub(crate) mod worktree_list;
