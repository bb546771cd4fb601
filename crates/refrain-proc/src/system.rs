//! What differs from one operating system to another: what can be known of other processes, how exactly one is signalled
//! or waited for, and how orphans are adopted. One file an operating system, one interface; all else in this crate is
//! POSIX.

#[cfg_attr(target_os = "linux", path = "system/linux.rs")]
mod os;

pub use os::{OWN_PROGRAM, free_memory};
pub(crate) use os::{
    adopt_orphans, age, arguments, boot, continue_when_parent_ends, deny_tracing, end_of, environment,
    folder, is_gone_within, name, signal, stat, stats, widen,
};
