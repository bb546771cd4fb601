//! The sandbox of one process: user, mount, process, IPC and network namespaces, Landlock and seccomp.
//!
//! The binary starts itself twice. The *outer* process is the child of the supervisor process: it makes the namespaces and
//! stays outside of the mounts. The *init* process is process 1 of the sandbox: it mounts, restricts itself, starts the
//! program, reaps, and ends everything when the program ends. Without namespaces the outer process starts one that restricts
//! itself and becomes the program. Each is single-threaded, and nothing runs between fork and exec.
//!
//! The outer process gets its [`Plan`] over its standard input, which is a socket, with the program's own standard input;
//! over the same socket it sends back the listening sockets of the sandbox, which the runner serves.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod loopback;
mod messages;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod outer;
mod probe;
#[cfg(target_os = "linux")]
mod program;
mod protected;
mod refusal;
#[cfg(target_os = "linux")]
mod system;

#[cfg(target_os = "linux")]
pub use cgroup::held_bounds;
pub use messages::{HELPER_VERB, NO_SANDBOX, Plan, RecordFolders, Reply};
pub use probe::probe;
#[cfg(target_os = "linux")]
pub use protected::records::{restore_after, restore_left};

pub use protected::Restored;
pub use refusal::{Cause, Refusal, Step};

/// Runs the part of the sandbox that the words after [`HELPER_VERB`] name, and returns the exit code.
#[cfg(target_os = "linux")]
#[must_use]
pub fn run(words: &[String]) -> u8 {
    match words {
        [] => outer::run(),
        [word] if word == init::WORD => init::run(),
        [word, policy, argv @ ..] if word == program::WORD => program::run(policy, argv),
        _ => 2,
    }
}

/// There are no cgroups on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn held_bounds(_given: &refrain_core::sandbox::Bounds) -> refrain_core::sandbox::Bounds {
    refrain_core::sandbox::Bounds::default()
}

/// There was no sandbox on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn restore_left(_folder: &camino::Utf8Path) -> Restored {
    Restored::default()
}

/// There was no sandbox on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn restore_after(_init: Option<&std::os::fd::OwnedFd>, _folder: &camino::Utf8Path) -> Restored {
    Restored::default()
}

/// There is no sandbox on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn run(_words: &[String]) -> u8 {
    NO_SANDBOX
}
