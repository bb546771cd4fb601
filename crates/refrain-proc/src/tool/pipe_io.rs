//! Exchanging data with a running tool: its input is written and its output read, and neither side blocks the other
//! for ever.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};

use super::{Tool, ToolError, Watch, pid_of};
use crate::system;

/// How much of a tool's standard error is kept, in bytes: its end.
pub(super) const COMPLAINT: usize = 64 << 10;
/// How long a tool may take to clean up after it was asked to end.
const GRACE: Duration = Duration::from_secs(1);

/// A running tool and our ends of its pipes.
pub(super) struct Talk<'a> {
    tool: &'a Tool<'a>,
    watch: Watch<'a>,
    process: OwnedFd,
    stdin: Option<OwnedFd>,
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
    input: &'a [u8],
    interrupt: Option<&'a PipeReader>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl<'a> Talk<'a> {
    /// The tool is ended when `interrupt` becomes readable.
    pub(super) fn new(
        tool: &'a Tool<'a>,
        child: &mut Child,
        interrupt: Option<&'a PipeReader>,
    ) -> io::Result<Self> {
        let pid = pid_of(child).ok_or_else(|| io::Error::other("a program without a pid"))?;
        let stdin = child.stdin.take().map(OwnedFd::from);
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        for fd in [&stdin, &out, &err].into_iter().flatten() {
            fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(Self {
            tool,
            watch: Watch::new(tool),
            process: system::end_of(pid)?,
            stdin,
            out,
            err,
            input: tool.input,
            interrupt,
            stdout: Vec::new(),
            stderr: Vec::new(),
        })
    }

    pub(super) fn finish(&mut self) -> Result<(), ToolError> {
        loop {
            let ready = self.wait()?;
            if ready.write {
                self.write();
            }
            // Reads what the pipes hold when it has ended, and nothing that comes later.
            self.read()?;
            if ready.ended {
                return Ok(());
            }
        }
    }

    /// Waits until the tool has ended and its group has closed the pipes: git ends before the git that one of its
    /// hooks runs. The wait is limited to the grace, and output is drained meanwhile so that no process blocks.
    pub(super) fn leave_time(&mut self) {
        let until = Instant::now() + GRACE;
        self.stdin = None;
        let mut is_running = true;
        while is_running || self.out.is_some() || self.err.is_some() {
            let mut fds = Vec::new();
            if is_running {
                fds.push(PollFd::new(&self.process, PollFlags::IN));
            }
            let pipes = self.out.iter().chain(&self.err);
            fds.extend(pipes.map(|fd| PollFd::new(fd, PollFlags::IN | PollFlags::HUP)));
            let left = until.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else { return };
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) if left.is_zero() => return,
                Ok(_) => is_running = is_running && fds[0].revents().is_empty(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            drain(&mut self.out, &mut self.stdout, forget);
            drain(&mut self.err, &mut self.stderr, forget);
        }
    }

    fn wait(&mut self) -> Result<Ready, ToolError> {
        loop {
            let mut fds = vec![PollFd::new(&self.process, PollFlags::IN)];
            let cancel = self.tool.cancel.map(|cancel| &cancel.0.0);
            fds.extend(cancel.into_iter().chain(self.interrupt).map(|fd| PollFd::new(fd, PollFlags::IN)));
            let watched = fds.len();
            fds.extend(self.stdin.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
            fds.extend(
                self.out.iter().chain(&self.err).map(|fd| PollFd::new(fd, PollFlags::IN | PollFlags::HUP)),
            );
            let timeout = self
                .watch
                .left()
                .map(Timespec::try_from)
                .transpose()
                .map_err(|error| self.tool.io(io::Error::other(error)))?;
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {
                    drop(fds);
                    self.watch.check()?;
                }
                Ok(_) if fds[1..watched].iter().any(|fd| !fd.revents().is_empty()) => {
                    return Err(ToolError::Cancelled { command: self.tool.command() });
                }
                Ok(_) => {
                    let write = self.stdin.is_some() && !fds[watched].revents().is_empty();
                    return Ok(Ready { ended: !fds[0].revents().is_empty(), write });
                }
                Err(error) => return Err(self.tool.io(error)),
            }
        }
    }

    /// A tool that does not read all its input shows the reason in its exit code.
    fn write(&mut self) {
        let Some(fd) = &self.stdin else { return };
        match rustix::io::write(fd, self.input) {
            Ok(written) => self.input = &self.input[written..],
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            Err(_) => self.input = &[],
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
    }

    fn read(&mut self) -> Result<(), ToolError> {
        let most = self.tool.most;
        drain(&mut self.out, &mut self.stdout, |kept| kept.len() > most);
        if self.stdout.len() > most {
            return Err(ToolError::TooMuch { command: self.tool.command(), most });
        }
        drain(&mut self.err, &mut self.stderr, |kept| {
            // Checked in between, so that a tool with endless output can be ended too.
            let long = kept.len() > 2 * COMPLAINT;
            if long {
                kept.drain(..kept.len() - COMPLAINT);
            }
            long
        });
        self.stderr.drain(..self.stderr.len().saturating_sub(COMPLAINT));
        Ok(())
    }
}

struct Ready {
    ended: bool,
    write: bool,
}

/// Discards output that is not needed; returns true, so that one read per poll is enough.
fn forget(kept: &mut Vec<u8>) -> bool {
    kept.clear();
    true
}

/// Reads available bytes, without waiting, until `enough` returns true. A closed pipe is dropped.
fn drain(pipe: &mut Option<OwnedFd>, into: &mut Vec<u8>, mut enough: impl FnMut(&mut Vec<u8>) -> bool) {
    let Some(fd) = pipe else { return };
    let mut chunk = [0; 64 << 10];
    loop {
        match rustix::io::read(fd.as_fd(), &mut chunk) {
            Ok(0) => break,
            Ok(read) => into.extend_from_slice(&chunk[..read]),
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::AGAIN) => return,
            Err(_) => break,
        }
        if enough(into) {
            return;
        }
    }
    *pipe = None;
}
