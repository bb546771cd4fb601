//! Being told that files changed. A hint only: whoever is woken looks for itself. One file an operating system, one
//! interface.

#[cfg_attr(target_os = "linux", path = "notice/linux.rs")]
mod system;

pub use system::Notice;
pub(crate) use system::tell_above;
