//! The agent that a supervisor runs: its pipes and its log files.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::event::Process;
use rustix::io::ioctl_fionread;
use rustix::process::Pid;

use crate::output::{Listener, Log, Meter};
use crate::{identity, system};

/// The size of one read: at first, as most agents print little and one process may run many of them; and at most.
pub(super) const CHUNK: usize = 8 << 10;
const LARGEST_CHUNK: usize = 128 << 10;

pub(super) struct Attempt<L> {
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) listener: L,
    pub(super) meter: Arc<Meter>,
    pub(super) process: Option<Process>,
    /// Becomes readable when that process has ended, which the keeper reports next.
    pub(super) end: Option<OwnedFd>,
    pub(super) stopping: bool,
    /// Why its output is no longer written.
    pub(super) output_error: Option<io::Error>,
    /// The read buffer. A waiting loop does not need it.
    pub(super) chunk: Vec<u8>,
}

/// One pipe of an agent and its log file.
pub(super) struct Stream {
    pub(super) pipe: Option<File>,
    pub(super) log: Log,
}

impl<L: Listener> Attempt<L> {
    /// If both are ready, standard error is read first: output must not appear older than the error before it.
    pub(super) fn read(&mut self, printed: bool, complained: bool) -> io::Result<()> {
        if complained && let Some(n) = self.stderr.read(&mut self.chunk)? {
            self.listener.hear_stderr(&self.chunk[..n]);
            self.meter.tick();
        }
        if printed && let Some(n) = self.stdout.read(&mut self.chunk)? {
            self.listener.hear(&self.chunk[..n]);
            self.meter.tick();
            if n == self.chunk.len() && n < LARGEST_CHUNK {
                self.chunk.resize(2 * n, 0);
            }
        }
        Ok(())
    }

    /// Reads what the pipes hold now, and no more: a leftover process that keeps printing must not keep the attempt
    /// open.
    pub(super) fn read_rest(&mut self) -> io::Result<()> {
        let mut left = self.stdout.held()?;
        while left > 0
            && let Some(n) = self.stdout.read(&mut self.chunk)?
        {
            self.listener.hear(&self.chunk[..n]);
            left = left.saturating_sub(n as u64);
        }
        let mut left = self.stderr.held()?;
        while left > 0
            && let Some(n) = self.stderr.read(&mut self.chunk)?
        {
            left = left.saturating_sub(n as u64);
        }
        Ok(())
    }
}

impl Stream {
    /// Reads a chunk to disk; none at the end of the pipe.
    pub(super) fn read(&mut self, chunk: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(pipe) = &mut self.pipe else { return Ok(None) };
        let n = loop {
            match pipe.read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if n == 0 {
            self.pipe = None;
            return Ok(None);
        }
        self.log.write(&chunk[..n])?;
        Ok(Some(n))
    }

    /// How many bytes wait in the pipe.
    pub(super) fn held(&self) -> io::Result<u64> {
        self.pipe.as_ref().map_or(Ok(0), |pipe| Ok(ioctl_fionread(pipe)?))
    }
}

/// Becomes readable when this process has ended; none if it cannot be watched, or is already gone.
pub(super) fn end_of(process: Process) -> Option<OwnedFd> {
    let end = system::end_of(Pid::from_raw(process.pid)?).ok()?;
    identity::stat(process.pid).filter(|stat| stat.process == process).map(|_| end)
}

pub(super) fn pipe() -> io::Result<(File, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((File::from(OwnedFd::from(read)), write.into()))
}
