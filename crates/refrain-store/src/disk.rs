//! What all files share: atomic writes, locks, numbered names, notices of changes, and what a file system can do.

pub(crate) mod atomic;
pub mod fs_probe;
pub mod lock;
pub(crate) mod migration;
pub mod notice;
pub(crate) mod numbered;
