//! The keeper's main loop: one poll over the runner's socket and the signals, until the socket closes.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use process_wrap::std::{CommandWrap, ProcessSession};
use refrain_core::event::{Exit, Process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use signal_hook::consts::{FORBIDDEN, SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::wire::{FrameReader, KeeperReport, Order, Rung, StopLadder, drain_wakes, send};
use crate::identity;
use crate::lease::LeaseTime;
use crate::sweep::{end_descendants, living_descendants, living_names, signal_descendants};

/// The time for an agent's leftover processes to end by themselves. Short: the next attempt waits for it.
const LEFTOVER_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for killed processes. One that still exists then cannot be ended: it changed its user, or hangs
/// in the system. The loop must not hang too.
pub(crate) const LEFTOVER_BOUND: Duration = Duration::from_secs(10);

/// How often the end of a lease is checked, in case the machine slept.
const SLEEP_CHECK: Duration = Duration::from_secs(1);

/// Runs the keeper until the runner is gone.
/// Errors: If it cannot be set up, or its socket fails; all processes are ended all the same.
pub fn run() -> io::Result<()> {
    let mut keeper = Keeper::set_up()?;
    let result = keeper.serve();
    end_descendants();
    result
}

struct Keeper {
    socket: UnixStream,
    reader: FrameReader,
    signals: UnixStream,
    agent: Option<Agent>,
    leftovers: Option<Leftovers>,
    /// When the lease of this machine ends, if it has one.
    lease: Option<LeaseTime>,
}

struct Agent {
    process: Process,
    ladder: Option<Ladder>,
}

struct Ladder {
    rungs: std::vec::IntoIter<Rung>,
    next: Instant,
    /// When to stop waiting for it after the kill.
    given_up: Option<Instant>,
}

/// The leftover processes of an agent that were asked to end.
struct Leftovers {
    until: Instant,
    given_up: Instant,
    gone: u32,
    names: Vec<String>,
}

impl Keeper {
    fn set_up() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        // Agents must not get the socket: their standard input is another, and this copy closes on exec.
        rustix::process::setsid()?;
        crate::system::adopt_orphans()?;
        // Agents run as the same user: they must not trace the keeper, nor take its socket. Root can all the same.
        crate::system::deny_tracing()?;
        // Without a runner, no process would continue a stopped keeper so that it can end all the others.
        crate::system::continue_when_parent_ends()?;
        let (signals, wake) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        // A handler, unlike an ignored signal, does not outlive exec: every agent starts with default dispositions,
        // even if `nohup` or a background job set others.
        let unheeded = Arc::new(AtomicBool::new(false));
        for signal in (1..=31).filter(|signal| !FORBIDDEN.contains(signal)) {
            match signal {
                SIGCHLD | SIGTERM | SIGINT | SIGHUP => {
                    signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
                }
                signal => {
                    signal_hook::flag::register(signal, Arc::clone(&unheeded))?;
                }
            }
        }
        Ok(Self {
            socket,
            reader: FrameReader::default(),
            signals,
            agent: None,
            leftovers: None,
            lease: None,
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let deadline = [
                self.agent.as_ref().and_then(|agent| agent.ladder.as_ref()).map(|ladder| ladder.next),
                self.leftovers.as_ref().map(|leftovers| leftovers.until),
            ];
            let wait =
                deadline.into_iter().flatten().min().map(|at| at.saturating_duration_since(Instant::now()));
            // The clock of a poll pauses while the machine sleeps.
            let lease =
                self.lease.filter(|_| self.agent.as_ref().is_some_and(|agent| agent.ladder.is_none()));
            let wait = wait.into_iter().chain(lease.map(|lease| lease.left().min(SLEEP_CHECK))).min();
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            let mut fds =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            match poll(&mut fds, wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [ordered, signalled] = fds.map(|fd| !fd.revents().is_empty());
            if signalled {
                drain_wakes(&self.signals);
            }
            self.reap()?;
            if ordered {
                if !self.reader.fill(&self.socket)? {
                    return Ok(());
                }
                while let Some(order) = self.reader.next()? {
                    self.obey(order)?;
                }
            }
            self.enforce_lease();
            self.climb()?;
            self.press_leftovers()?;
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Start { argv, dir, env } => {
                let answer = match self.start(&argv, &dir, env) {
                    Ok(process) => KeeperReport::Started(process),
                    Err(error) => KeeperReport::NotStarted(error.to_string()),
                };
                send(&self.socket, &answer, &[])
            }
            Order::Until(lease) => {
                self.lease = Some(lease);
                Ok(())
            }
            Order::Stop(StopLadder(rungs)) => {
                if let Some(agent) = &mut self.agent
                    && agent.ladder.as_ref().is_none_or(|it| rungs.is_empty() && it.given_up.is_none())
                {
                    agent.ladder =
                        Some(Ladder { rungs: rungs.into_iter(), next: Instant::now(), given_up: None });
                }
                Ok(())
            }
        }
    }

    fn start(&mut self, argv: &[String], dir: &str, env: Vec<(String, String)>) -> io::Result<Process> {
        let [stdin, stdout, stderr] = self.reader.take_fds()?;
        if self.lease.is_some_and(LeaseTime::has_passed) {
            return Err(io::Error::other("the lease of this machine is over: another may have the loop"));
        }
        let Some((program, args)) = argv.split_first() else { return Err(io::Error::other("no program")) };
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let mut command = Command::new(program);
        command.args(args).current_dir(dir).envs(env);
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let mut command = CommandWrap::from(command);
        let child = command.wrap(ProcessSession).spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        // Not reaped yet, so the number is still its own.
        let process = identity::stat(pid).map_or(Process { pid, start: 0 }, |stat| stat.process);
        self.agent = Some(Agent { process, ladder: None });
        Ok(process)
    }

    /// Reaps ended children: the agent is reported, orphans are only counted.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => (pid.as_raw_nonzero().get(), status),
                Ok(None) => return Ok(()),
                Err(rustix::io::Errno::CHILD) => {
                    if let Some(leftovers) = self.leftovers.take() {
                        let Leftovers { gone: killed, names, .. } = leftovers;
                        let swept = KeeperReport::Swept { killed, survivors: Vec::new(), names };
                        send(&self.socket, &swept, &[])?;
                    }
                    return Ok(());
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(leftovers) = &mut self.leftovers {
                leftovers.gone += 1;
            }
            if self.agent.as_ref().is_some_and(|agent| agent.process.pid == pid) {
                self.agent = None;
                let exit = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Lost,
                };
                // Children that still live are the agent's leftovers: this process is a subreaper, so these are all
                // of them. Dead children that were not waited for yet ended with it.
                let names = living_names();
                let left = names.is_some();
                if let Some(names) = names {
                    signal_descendants(Signal::TERM);
                    let now = Instant::now();
                    let (until, given_up) = (now + LEFTOVER_GRACE, now + LEFTOVER_BOUND);
                    self.leftovers = Some(Leftovers { until, given_up, gone: 0, names });
                }
                send(&self.socket, &KeeperReport::Exited { exit, left }, &[])?;
            }
        }
    }

    /// Ends the agent when the lease is over. The runner may be frozen, or cut off: another machine may have the loop.
    fn enforce_lease(&mut self) {
        if self.lease.is_some_and(LeaseTime::has_passed)
            && let Some(agent) = self.agent.as_mut().filter(|agent| agent.ladder.is_none())
        {
            let StopLadder(rungs) = StopLadder::default();
            agent.ladder = Some(Ladder { rungs: rungs.into_iter(), next: Instant::now(), given_up: None });
        }
    }

    /// Takes the next rung of the stop ladder when its time has come; after the last, all processes are killed. An
    /// agent that cannot be ended is given up, like leftover processes.
    fn climb(&mut self) -> io::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let Some(ladder) = &mut agent.ladder else { return Ok(()) };
        let now = Instant::now();
        if now < ladder.next {
            return Ok(());
        }
        match ladder.rungs.next() {
            Some(rung) => {
                ladder.next = now + rung.grace;
                if let (Some(group), Some(signal)) =
                    (Pid::from_raw(agent.process.pid), Signal::from_named_raw(rung.signal))
                {
                    let _ = kill_process_group(group, signal);
                }
            }
            None => {
                end_descendants();
                // Killed; the SIGCHLD for it is on its way.
                ladder.next = now + LEFTOVER_GRACE;
                let given_up = *ladder.given_up.get_or_insert(now + LEFTOVER_BOUND);
                if now >= given_up {
                    self.agent = None;
                    let names = living_names().unwrap_or_default();
                    self.leftovers = Some(Leftovers { until: now, given_up, gone: 0, names });
                    return send(&self.socket, &KeeperReport::Exited { exit: Exit::Lost, left: true }, &[]);
                }
            }
        }
        Ok(())
    }

    fn press_leftovers(&mut self) -> io::Result<()> {
        if let Some(leftovers) = &mut self.leftovers
            && Instant::now() >= leftovers.until
        {
            end_descendants();
            leftovers.until = Instant::now() + LEFTOVER_GRACE;
            self.reap()?;
        }
        let survived = self.leftovers.take_if(|leftovers| Instant::now() >= leftovers.given_up);
        survived.map_or(Ok(()), |Leftovers { gone: killed, names, .. }| {
            send(&self.socket, &KeeperReport::Swept { killed, survivors: living_descendants(), names }, &[])
        })
    }
}
