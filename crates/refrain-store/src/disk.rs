//! Shared file operations: atomic writes, locks, numbered folders, notices of changes, and checks of the file system.

pub(crate) mod atomic;
pub mod fs_probe;
pub mod lock;
pub(crate) mod migration;
pub mod notice;
pub(crate) mod numbered_folders;
