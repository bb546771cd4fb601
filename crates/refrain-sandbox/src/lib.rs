//! The sandbox of one process: user, mount, process, IPC and network namespaces, Landlock and seccomp.
//!
//! The binary starts itself three times. The *outer* process is the child of the supervisor process: it makes the
//! namespaces and stays outside of the mounts. The *init* process is process 1 of the sandbox: it mounts, reaps, and
//! ends everything when the program ends. The third one restricts itself and becomes the program. Each is
//! single-threaded, and nothing runs between fork and exec.
//!
//! The outer process gets its [`Plan`] over its standard input, which is a socket, with the program's own standard input;
//! over the same socket it sends back the listening sockets of the sandbox, which the runner serves.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod mounts;
mod originals;
#[cfg(target_os = "linux")]
mod outer;
mod probe;
#[cfg(target_os = "linux")]
mod program;
mod refusal;
#[cfg(target_os = "linux")]
mod system;

#[cfg(target_os = "linux")]
use std::os::unix::net::UnixStream;

use camino::Utf8PathBuf;
use refrain_core::sandbox::Policy;
use serde::{Deserialize, Serialize};

pub use originals::Originals;
pub use probe::probe;
pub use refusal::{Cause, Refusal, Step};

/// The first word of the command line that makes the binary a part of the sandbox.
pub const HELPER_VERB: &str = "sandbox-helper";

/// The exit code of a program that was not started because its sandbox could not be made.
pub const NO_SANDBOX: u8 = 125;

/// What to run in which sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub argv: Vec<String>,
    pub dir: Utf8PathBuf,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    pub policy: Policy,
    /// Ports to listen on, on the sandbox's own loopback address. Each listening socket is sent back.
    pub listen: Vec<u16>,
}

/// What the outer process sends back.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The listening socket of a port comes with it.
    Listening(u16),
    /// There is no sandbox, and the program was not started.
    Refused(Refusal),
    /// The program is about to be started.
    Ready,
}

/// From process 1 to the outer process.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, Deserialize)]
enum FromInit {
    Reply(Reply),
    Exited(Option<i32>),
    Killed(i32),
}

/// Runs the part of the sandbox that the words after [`HELPER_VERB`] name, and returns the exit code.
#[cfg(target_os = "linux")]
#[must_use]
pub fn run(words: &[String]) -> u8 {
    match words {
        [] => outer::run(),
        [word] if word == init::WORD => init::run(),
        [word, options, argv @ ..] if word == program::WORD => program::run(options, argv),
        _ => 2,
    }
}

/// There is no sandbox on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn run(_words: &[String]) -> u8 {
    NO_SANDBOX
}

/// Prints why there is no sandbox where the program's output goes.
#[cfg(target_os = "linux")]
fn complain(error: &dyn std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "refrain: sandbox: {error}");
}

/// The socket on standard input, over which each part of the sandbox speaks with the one that started it.
#[cfg(target_os = "linux")]
fn parent_socket() -> Option<UnixStream> {
    use std::os::fd::AsFd;
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    socket.inspect_err(|error| complain(error)).ok().map(UnixStream::from)
}
