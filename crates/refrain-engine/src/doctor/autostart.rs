//! A service of the user's own that resumes loops after a reboot. It exists only if a person asked for it. One file an
//! operating system, one interface: `Host::switch_autostart`, and a check of what is there.

#[cfg_attr(target_os = "linux", path = "autostart/linux.rs")]
mod os;

use camino::Utf8PathBuf;

pub(super) use os::look;

/// What was done to switch it on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutostartChange {
    On(Autostart),
    Off(Utf8PathBuf),
    WasOff(Utf8PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autostart {
    pub unit: Utf8PathBuf,
    pub link: Utf8PathBuf,
    /// Whether systemd runs it from now on; else it does from the next login on.
    pub is_started: bool,
    /// Whether the user's services start at boot; else they do at the first login.
    pub lingers: bool,
    /// Variables that hold a login now, and will not be there: secrets are not written into a unit.
    pub left_out: Vec<&'static str>,
}
