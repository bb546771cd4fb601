//! The protocol between runner and keeper: JSON after its length, on a socket between a process and its own child.
//! Both ends are one binary, so there is no version.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_core::event::{Exit, Process};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lease::LeaseTime;

/// How an agent is ended: signals to its group, each with a time to react; then all processes are killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopLadder(pub Vec<Rung>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    pub signal: i32,
    /// How long the agent may take to react.
    pub grace: Duration,
}

impl Default for StopLadder {
    /// First the signal of a user at a terminal, then that of a system shutdown (design.md section 4).
    fn default() -> Self {
        let rung = |signal: rustix::process::Signal, seconds| Rung {
            signal: signal.as_raw(),
            grace: Duration::from_secs(seconds),
        };
        Self(vec![rung(rustix::process::Signal::INT, 3), rung(rustix::process::Signal::TERM, 5)])
    }
}

impl StopLadder {
    /// The same, with another time for the agent to end by itself after the first signal.
    #[must_use]
    pub fn patient(mut self, grace: Option<Duration>) -> Self {
        if let (Some(asked), Some(grace)) = (self.0.first_mut(), grace) {
            asked.grace = grace;
        }
        self
    }

    /// How long the whole ladder takes until the agent is killed.
    pub fn longest(&self) -> Duration {
        self.0.iter().map(|rung| rung.grace).sum()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start an agent. Three descriptors come with it: its standard input, output and error.
    Start {
        argv: Vec<String>,
        dir: String,
        /// Added to the keeper's own environment.
        env: Vec<(String, String)>,
    },
    /// The lease of this machine ends then: no agent is started from then on, and one that runs is ended.
    Until(LeaseTime),
    /// End it. A second time this does nothing, unless there are no rungs: then all processes are killed at once.
    Stop(StopLadder),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum KeeperReport {
    Started(Process),
    NotStarted(String),
    /// The agent's own process ended. If `left`, it left other processes running, and `Swept` follows.
    Exited {
        exit: Exit,
        left: bool,
    },
    /// All processes have ended, except for those that cannot be.
    Swept {
        killed: u32,
        survivors: Vec<i32>,
        #[serde(default)]
        names: Vec<String>,
    },
}

/// An order's descriptors: standard input, output and error.
pub(crate) const ORDER_FDS: usize = 3;

/// Writes one message, with descriptors on its first byte.
pub fn send(mut socket: &UnixStream, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    let mut sent = 0;
    if !fds.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ORDER_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("more descriptors than an order has"));
        }
        sent = sendmsg(socket.as_fd(), &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    socket.write_all(&frame[sent..])
}

/// The reading end: collects bytes and descriptors, and returns complete messages.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl FrameReader {
    /// Reads the available bytes, waiting for the first; `false` once the other end is gone.
    pub fn fill(&mut self, socket: &UnixStream) -> io::Result<bool> {
        let mut buffer = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ORDER_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        );
        let received = match received {
            Ok(received) => received,
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(rustix::io::Errno::CONNRESET) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        self.bytes.extend_from_slice(&buffer[..received.bytes]);
        Ok(received.bytes > 0)
    }

    #[expect(clippy::should_implement_trait, reason = "the caller chooses the type of each message")]
    pub fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(message)?;
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }

    pub fn take_fds<const COUNT: usize>(&mut self) -> io::Result<[OwnedFd; COUNT]> {
        let lacking = || io::Error::other("a message without its descriptors");
        if self.fds.len() < COUNT {
            return Err(lacking());
        }
        self.fds.drain(..COUNT).collect::<Vec<_>>().try_into().map_err(|_| lacking())
    }
}

pub(crate) fn drain_wakes(mut pipe: &UnixStream) {
    let mut buffer = [0; 64];
    while matches!(pipe.read(&mut buffer), Ok(n) if n == buffer.len()) {}
}
