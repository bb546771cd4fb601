//! Operating system differences: reading data of other processes, signalling and waiting for one process exactly, and
//! adopting orphans. One file per operating system, with one interface; the rest of this crate is POSIX.

#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
mod os;

pub use os::{OWN_PROGRAM, free_memory};
pub(crate) use os::{
    adopt_orphans, age, arguments, boot, continue_when_parent_ends, deny_tracing, end_of, environment,
    folder, is_gone_within, is_ignored, name, signal, since_boot, stat, stats, widen,
};
