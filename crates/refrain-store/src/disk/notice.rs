//! Notices that files changed. A hint only: the woken caller looks for itself. One file an operating system, one
//! interface.

#[cfg_attr(target_os = "linux", path = "notice/linux.rs")]
mod system;

pub use system::Notice;
pub(crate) use system::tell_above;
