//! Starting a runner that outlives its starter: a session of its own, nothing shared but the pipe on which it says that
//! it has taken over.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// The stack of a thread that only waits, in bytes.
const STACK: usize = 64 << 10;

/// A runner that was started and has taken over.
#[derive(Debug)]
pub struct Detached(Child);

impl Detached {
    /// Waits for its end in a thread: a starter that outlives it would keep a dead process otherwise.
    pub fn reap(self) {
        let Self(mut child) = self;
        // Without a thread the dead process goes with its starter.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || child.wait());
    }
}

/// What a detached runner prints, alone on a line, once it has taken over.
pub const READY: &str = "ready";

/// Leaves the terminal that this process was started from: its signals and its end are no longer ours.
pub fn leave_terminal() {
    // A process that leads a group already has left it.
    let _ = rustix::process::setsid();
}

/// Starts `program` under the name `arg0` with this environment, its diagnostics going to `log`, and waits until it is ready or
/// gone.
///
/// # Errors
/// Where it cannot be started, or ends before it is ready; its last words are the error's text.
pub fn start(
    program: &Path,
    arg0: &str,
    args: &[String],
    env: &[(OsString, OsString)],
    log: &Path,
) -> io::Result<Detached> {
    let log = File::options().create(true).append(true).open(log)?;
    #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
    let mut child = Command::new(program)
        .arg0(arg0)
        .args(args)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let mut last = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            last = line?;
            if last == READY {
                return Ok(Detached(child));
            }
        }
    }
    let status = child.wait()?;
    Err(io::Error::other(if last.is_empty() { format!("the runner ended with {status}") } else { last }))
}
