//! Starting a runner that outlives its starter: in a session of its own, sharing only the pipe on which it reports
//! that it has taken over.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use refrain_files::OFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The time limit for a runner to become ready.
const PATIENCE: Duration = Duration::from_mins(2);
/// The stack of a thread that only waits, in bytes.
const STACK: usize = 64 << 10;

/// A runner that was started and has taken over.
#[derive(Debug)]
#[must_use = "a starter that outlives the runner reaps it"]
pub struct DetachedRunner(Child);

impl DetachedRunner {
    /// Waits for its end in a thread: otherwise a long-lived starter would keep a zombie.
    pub fn reap(self) {
        let Self(mut child) = self;
        // Without a thread the zombie disappears with its starter.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || child.wait());
    }
}

/// A detached runner prints this, alone on a line, once it has taken over.
pub const READY: &str = "ready";

/// Leaves the terminal that this process was started from: its signals and its end are no longer ours.
pub fn leave_terminal() {
    // Fails for a group leader, which has already left it.
    let _ = rustix::process::setsid();
}

/// Starts `program` under the name `arg0` with this environment, its diagnostics going to `log`, and waits until it
/// is ready or gone.
/// Errors: If it cannot be started, or ends before it is ready; the error text is its last line of output.
pub fn start(
    program: &Path,
    arg0: &str,
    args: &[String],
    env: &[(OsString, OsString)],
    log: &Utf8Path,
) -> io::Result<DetachedRunner> {
    let log = refrain_files::open(log, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
    #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
    let mut child = Command::new(program)
        .arg0(arg0)
        .args(args)
        // It works in the folder of `-C`; its starter's folder may be deleted.
        .current_dir("/")
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let Some(stdout) = child.stdout.take() else { return Err(io::Error::other("the runner has no output")) };
    let said = match read_until_ready(stdout) {
        Ok(None) => return Ok(DetachedRunner(child)),
        Ok(Some(said)) => said,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    };
    let status = child.wait()?;
    let last = said.lines().last().unwrap_or_default();
    Err(io::Error::other(if last.is_empty() {
        format!("the runner ended with {status}")
    } else {
        last.to_owned()
    }))
}

/// Reads a runner's output until it is ready; if it ends before that, returns the output.
fn read_until_ready(mut stdout: ChildStdout) -> io::Result<Option<String>> {
    let until = Instant::now() + PATIENCE;
    let (mut said, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => {
                let error = format!("the runner was not ready within {} s", PATIENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, error));
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match stdout.read(&mut chunk)? {
            0 => return Ok(Some(String::from_utf8_lossy(&said).into_owned())),
            length => said.extend_from_slice(&chunk[..length]),
        }
        if said.split(|byte| *byte == b'\n').any(|line| line == READY.as_bytes()) {
            return Ok(None);
        }
    }
}
