//! What the processes of a sandbox tell each other.

#[cfg(target_os = "linux")]
use std::os::unix::net::UnixStream;

use camino::Utf8PathBuf;
use refrain_core::sandbox::Policy;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

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
    /// Where it is recorded, while the program runs, what was at protected places before. The program does not see it.
    #[serde(default)]
    pub records: Option<RecordFolders>,
}

/// Where records of sandboxes are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordFolders {
    pub of_loop: Utf8PathBuf,
    /// With a link to each record of all loops of the user: what their agents write, those of other loops write too.
    pub of_user: Utf8PathBuf,
}

/// What the outer process sends back.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// A descriptor of process 1 comes with it. When that is gone, so is every process of the sandbox.
    Init,
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
pub(crate) enum FromInit {
    Reply(Reply),
    Exited(Option<i32>),
    Killed(i32),
}

/// Prints why there is no sandbox where the program's output goes.
#[cfg(target_os = "linux")]
pub(crate) fn complain(error: &dyn std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "refrain: sandbox: {error}");
}

/// The socket on standard input, over which each part of the sandbox speaks with the one that started it.
#[cfg(target_os = "linux")]
pub(crate) fn parent_socket() -> Option<UnixStream> {
    use std::os::fd::AsFd;
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    socket.inspect_err(|error| complain(error)).ok().map(UnixStream::from)
}
