//! One thread that does all blocking work with one loop's processes: the socket to its keeper and the pipes of its
//! agent. It takes jobs and reports their results; meanwhile it drains, writes and polls.

mod attempt;
mod deadline;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use camino::Utf8PathBuf;
use refrain_core::event::{Exit, Process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};

use crate::keeper::wire::{FrameReader, KeeperReport, Order, drain_wakes, send};
use crate::keeper::{KEEPER_NAME, LEFTOVER_BOUND, StopLadder};
use crate::lease::{LeaseDeadline, LeaseTime, look_again};
use crate::output::{Listener, Log, Meter};
use crate::sweep::{Mark, sweep};
use crate::{identity, limits, system};

use attempt::{Attempt, CHUNK, Stream, end_of, pipe};
use deadline::{Deadline, PROMPTLY, proceed};

/// The pipe of an agent's standard output, in bytes: fewer, larger reads (perf.md section 7).
const PIPE: usize = 1 << 20;
#[derive(Clone, Debug)]
pub struct KeeperSpec {
    /// The binary that becomes the keeper when it is called [`KEEPER_NAME`].
    pub program: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// The variables that mark the loop's processes, in case the keeper dies: `NAME=value`.
    pub marks: Vec<String>,
    /// The data folder of the loop, if there is one: on the keeper's command line, so that its descendants can find
    /// it.
    pub loop_dir: Option<Utf8PathBuf>,
    /// Until when this machine may run the loop's processes; without it, as long as the runner lives.
    pub lease: Option<LeaseDeadline>,
}

#[derive(Debug, Default)]
pub enum Stdin {
    #[default]
    Closed,
    /// The program cannot change it, and it is no file of a folder.
    Text(Vec<u8>),
    Socket(OwnedFd),
}

impl Stdin {
    pub fn open(self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Text(text) => system::sealed_text(&text)?,
            Self::Closed => File::open("/dev/null")?.into(),
            Self::Socket(socket) => socket,
        })
    }
}

#[derive(Debug)]
pub struct Job<L> {
    /// The program and its arguments; no shell sees them.
    pub argv: Vec<String>,
    pub dir: Utf8PathBuf,
    pub env: Vec<(String, String)>,
    pub stdin: Stdin,
    pub stdout_log: Utf8PathBuf,
    pub stderr_log: Utf8PathBuf,
    /// The cap of each log, in bytes.
    pub cap: u64,
    pub listener: L,
    pub meter: Arc<Meter>,
}

#[derive(Debug)]
pub enum Report<L> {
    Started(Process),
    NotStarted(String),
    /// Its own process ended; all its output up to then is on disk.
    Exited {
        exit: Exit,
        stdout: u64,
        stderr: u64,
        listener: L,
        /// It left processes running: [`Report::Swept`] follows.
        left: bool,
        /// The error that stopped its output from being written.
        output_error: Option<io::Error>,
    },
    /// The processes that it left are gone.
    Swept {
        killed: u32,
        /// Processes that could not be ended.
        survivors: Vec<i32>,
        names: Vec<String>,
    },
    /// Its output cannot be written any more, most likely because the disk is full. It is not read any more either;
    /// the agent continues until it is stopped.
    OutputFailed,
}

enum Request<L> {
    Ready,
    Start(Box<Job<L>>),
    Stop(StopLadder),
    Kill,
}

/// The handle to the thread. Dropping it ends the keeper, and with it all its processes.
#[derive(Debug)]
pub struct Supervisor<L> {
    requests: Option<Sender<Request<L>>>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl<L: Listener> Supervisor<L> {
    /// Starts the thread; the keeper is started with the first job. `report` is called on that thread: while it
    /// blocks, nothing more is read.
    pub fn start(spec: KeeperSpec, report: impl FnMut(Report<L>) + Send + 'static) -> io::Result<Self> {
        // A killed keeper's orphans become ours, so that they can be found and ended.
        crate::system::adopt_orphans()?;
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let (requests, inbox) = channel();
        let worker =
            Worker { spec, inbox, woken, keeper: None, attempt: None, report, sweep_owed: false, owed: None };
        let thread = std::thread::Builder::new()
            .name("supervisor".to_owned())
            .stack_size(1 << 20)
            .spawn(move || worker.run())?;
        Ok(Self { requests: Some(requests), wake, thread: Some(thread) })
    }

    /// Starts the keeper ahead of the first job. If it cannot be started, that job reports the error.
    pub fn ready(&self) {
        self.request(Request::Ready);
    }

    /// Starts an agent. One at a time: the next comes after the last one's [`Report::Exited`] and [`Report::Swept`].
    pub fn run(&self, job: Job<L>) {
        self.request(Request::Start(Box::new(job)));
    }

    /// Ends the agent by a stop ladder; a second time, or without an agent, this does nothing. If the keeper does not
    /// end it in that time, the keeper is killed and the agent is ended without it.
    pub fn stop(&self, ladder: StopLadder) {
        self.request(Request::Stop(ladder));
    }

    /// Ends the agent at once, ignoring its stop ladder; without an agent this does nothing.
    pub fn kill(&self) {
        self.request(Request::Kill);
    }

    fn request(&self, request: Request<L>) {
        if let Some(requests) = &self.requests {
            // The thread ends only with this handle.
            let _ = requests.send(request);
            let _ = (&self.wake).write(b"!");
        }
    }
}

impl<L> Drop for Supervisor<L> {
    fn drop(&mut self) {
        self.requests = None;
        let _ = (&self.wake).write(b"!");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker<L, F> {
    spec: KeeperSpec,
    inbox: Receiver<Request<L>>,
    woken: UnixStream,
    keeper: Option<Keeper>,
    attempt: Option<Attempt<L>>,
    report: F,
    /// The keeper has reported leftover processes of an agent, and not yet that they are gone.
    sweep_owed: bool,
    owed: Option<Deadline>,
}

struct Keeper {
    child: Child,
    process: Option<Process>,
    socket: UnixStream,
    reader: FrameReader,
    /// The end of the lease that it knows.
    lease: Option<LeaseTime>,
}

impl<L: Listener, F: FnMut(Report<L>)> Worker<L, F> {
    fn run(mut self) {
        loop {
            loop {
                match self.inbox.try_recv() {
                    Ok(Request::Ready) => {
                        // The first job tries again.
                        let _ = self.keep();
                    }
                    Ok(Request::Start(job)) => {
                        if let Err(error) = self.start(*job) {
                            self.attempt = None;
                            (self.report)(Report::NotStarted(error.to_string()));
                        }
                    }
                    Ok(Request::Stop(ladder)) => self.stop(ladder),
                    Ok(Request::Kill) => self.kill(),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.close(),
                }
            }
            self.pass_lease_on();
            let [woken, answered, printed, complained, ended] = self.wait();
            if woken {
                drain_wakes(&self.woken);
            }
            if printed || complained {
                self.drain(printed, complained);
            }
            if answered {
                self.listen();
            }
            if ended && let Some(attempt) = &mut self.attempt {
                attempt.end = None;
                self.owed.get_or_insert_with(|| Deadline::within(PROMPTLY));
            }
            let keeper = self.keeper.as_ref().and_then(|keeper| keeper.process);
            if self.owed.as_mut().is_some_and(|owed| owed.is_given_up(keeper)) {
                self.give_up_keeper();
            }
        }
    }

    /// Waits until there is something to do, and returns which sources are ready.
    fn wait(&self) -> [bool; 5] {
        let attempt = self.attempt.as_ref();
        let sources = [
            Some(self.woken.as_fd()),
            self.keeper.as_ref().map(|keeper| keeper.socket.as_fd()),
            attempt.and_then(|attempt| attempt.stdout.pipe.as_ref()).map(File::as_fd),
            attempt.and_then(|attempt| attempt.stderr.pipe.as_ref()).map(File::as_fd),
            attempt.and_then(|attempt| attempt.end.as_ref()).map(AsFd::as_fd),
        ];
        let mut fds: Vec<_> = sources.iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let lease = self.keeper.as_ref().and_then(|keeper| keeper.lease).filter(|_| self.attempt.is_some());
        let longest = self.owed.map(|owed| owed.left()).into_iter().chain(lease.map(look_again)).min();
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        // An interrupt is a spurious wake-up.
        let _ = poll(&mut fds, longest.as_ref());
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        sources.map(|source| source.is_some() && ready.next().unwrap_or(false))
    }

    fn start(&mut self, job: Job<L>) -> io::Result<()> {
        let stdin = job.stdin.open()?;
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = pipe()?;
        // Refused if the user has many such pipes: the default size works too.
        system::widen(&stdout, PIPE);
        let order = Order::Start { argv: job.argv, dir: job.dir.into_string(), env: job.env };
        self.keep()?;
        self.pass_lease_on();
        let keeper = self.keep()?;
        send(&keeper.socket, &order, &[stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()])?;
        self.attempt = Some(Attempt {
            stdout: Stream { pipe: Some(stdout), log: Log::new(job.stdout_log, job.cap) },
            stderr: Stream { pipe: Some(stderr), log: Log::new(job.stderr_log, job.cap) },
            listener: job.listener,
            meter: job.meter,
            process: None,
            end: None,
            stopping: false,
            output_error: None,
            chunk: vec![0; CHUNK],
        });
        self.owed = Some(Deadline::within(PROMPTLY));
        Ok(())
    }

    /// The keeper, started if there is none.
    fn keep(&mut self) -> io::Result<&mut Keeper> {
        match &mut self.keeper {
            Some(keeper) => Ok(keeper),
            keeper => Ok(keeper.insert(Keeper::start(&self.spec)?)),
        }
    }

    /// The keeper learns when the lease ends, if that has changed.
    fn pass_lease_on(&mut self) {
        let Some(until) = self.spec.lease.as_ref().map(LeaseDeadline::until) else { return };
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.lease != Some(until)) {
            keeper.lease = Some(until);
            // If it cannot be reached it is dead, and its socket reports that next.
            let _ = send(&keeper.socket, &Order::Until(until), &[]);
        }
    }

    fn stop(&mut self, ladder: StopLadder) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.stopping) else { return };
        attempt.stopping = true;
        self.owed = Some(Deadline::within(ladder.longest()));
        self.order(&Order::Stop(ladder));
    }

    fn kill(&mut self) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.stopping = true;
        if self.keeper.as_ref().and_then(|keeper| keeper.process).is_some_and(identity::is_stopped) {
            return self.give_up_keeper();
        }
        self.owed = Some(Deadline::within(Duration::ZERO));
        self.order(&Order::Stop(StopLadder(Vec::new())));
    }

    fn order(&mut self, order: &Order) {
        if let Some(keeper) = &self.keeper {
            proceed(keeper.process);
            // If the keeper cannot be reached it is dead, and its socket reports that next.
            let _ = send(&keeper.socket, order, &[]);
        }
    }

    /// Reads the agent's output: one chunk of each stream, so that neither starves the other.
    fn drain(&mut self, printed: bool, complained: bool) {
        let Some(attempt) = &mut self.attempt else { return };
        if let Err(error) = attempt.read(printed, complained) {
            attempt.stdout.pipe = None;
            attempt.stderr.pipe = None;
            attempt.output_error = Some(error);
            (self.report)(Report::OutputFailed);
        }
    }

    fn listen(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        let mut alive = keeper.reader.fill(&keeper.socket).unwrap_or(false);
        while let Some(answer) = self.keeper.as_mut().and_then(|keeper| keeper.reader.next().transpose()) {
            let Ok(answer) = answer else {
                // Protocol error: treat the keeper as dead.
                alive = false;
                break;
            };
            match answer {
                KeeperReport::Started(process) => {
                    if let Some(attempt) = &mut self.attempt {
                        attempt.process = Some(process);
                        attempt.end = end_of(process);
                        self.owed = self.owed.filter(|_| attempt.stopping);
                    }
                    (self.report)(Report::Started(process));
                }
                KeeperReport::NotStarted(error) => {
                    (self.attempt, self.owed) = (None, None);
                    (self.report)(Report::NotStarted(error));
                }
                KeeperReport::Exited { exit, left } => {
                    self.sweep_owed = left;
                    self.owed = left.then(|| Deadline::within(LEFTOVER_BOUND));
                    self.exited(exit, left);
                }
                KeeperReport::Swept { killed, survivors, names } => {
                    (self.sweep_owed, self.owed) = (false, None);
                    (self.report)(Report::Swept { killed, survivors, names });
                }
            }
        }
        if !alive {
            self.keeper_died(Exit::Lost);
        }
    }

    /// The agent is gone: its output is in the pipes. Processes that still hold them open are not waited for.
    fn exited(&mut self, exit: Exit, left: bool) {
        let Some(mut attempt) = self.attempt.take() else { return };
        let rest = attempt.read_rest();
        (self.report)(Report::Exited {
            exit,
            stdout: attempt.stdout.log.total(),
            stderr: attempt.stderr.log.total(),
            listener: attempt.listener,
            left,
            output_error: attempt.output_error.or(rest.err()),
        });
        for stream in [attempt.stdout, attempt.stderr] {
            // Only now, because much may have to be copied; if it fails, the log is read in parts.
            let _ = stream.log.merge();
        }
    }

    /// Without its keeper the agent is unsupervised: it is ended with all processes that bear the loop's mark.
    fn keeper_died(&mut self, exit: Exit) {
        self.owed = None;
        let Some(keeper) = self.keeper.take() else { return };
        let killed = keeper.end(self.mark(), true);
        let running = self.attempt.is_some();
        self.exited(exit, true);
        if running || std::mem::take(&mut self.sweep_owed) {
            self.sweep_owed = false;
            (self.report)(Report::Swept { killed, survivors: Vec::new(), names: Vec::new() });
        }
    }

    /// Kills a keeper that does not answer, and with it all that it looked after. An agent that was to end ended by
    /// that.
    fn give_up_keeper(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.child.kill();
        }
        let was_told = self.attempt.as_ref().is_some_and(|attempt| attempt.stopping);
        self.keeper_died(if was_told { Exit::Signal(Signal::KILL.as_raw()) } else { Exit::Lost });
    }

    /// Ends the keeper, and with it all its processes, and waits for that.
    fn close(mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.end(self.mark(), false);
        }
    }

    /// The mark of this loop's processes, for a sweep without the keeper.
    fn mark(&self) -> Mark {
        let session = self.attempt.as_ref().and_then(|attempt| attempt.process);
        Mark { variables: self.spec.marks.clone(), session, keeper: None }
    }
}

impl Keeper {
    fn start(spec: &KeeperSpec) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let child = Command::new(&spec.program)
            .arg0(KEEPER_NAME)
            .args(&spec.loop_dir)
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        limits::hand_down(child.id());
        let process = i32::try_from(child.id()).ok().and_then(identity::stat).map(|stat| stat.process);
        Ok(Self { child, process, socket, reader: FrameReader::default(), lease: None })
    }

    /// Asks it to end, and waits. If it does not end in time, it is killed. It ends all its descendants, unless it
    /// was killed: then, and if `is_lost`, they are swept. Returns how many were.
    fn end(self, mark: Mark, is_lost: bool) -> u32 {
        let Self { mut child, process, socket, .. } = self;
        // Closed from this side too, so that the keeper ends after any kind of failure.
        drop(socket);
        proceed(process);
        let (pid, mut owed, mut is_killed) = (Pid::from_child(&child), Deadline::within(PROMPTLY), false);
        while !is_killed && matches!(system::is_gone_within(pid, owed.left()), Ok(false)) {
            // A lost keeper was killed, or is about to end.
            is_killed = owed.is_given_up(process) || is_lost && owed.is_late();
        }
        if is_killed {
            let _ = child.kill();
        }
        let swept = if is_killed || is_lost { sweep(&Mark { keeper: process, ..mark }) } else { 0 };
        // A tracer can hold it even when it is killed, and until the tracer ends only that can wait for it. The sweep
        // ended the tracer if the loop started it; no other is waited for.
        let _ = system::is_gone_within(pid, PROMPTLY);
        let _ = child.try_wait();
        swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Listener for Nobody {
        fn hear(&mut self, _chunk: &[u8]) {}
    }

    #[test]
    fn the_end_is_reported_before_anything_is_merged() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let (path, tail) = (dir.join("output.log"), dir.join("output.log.tail"));
        let stream = |log| Stream { pipe: None, log };
        let mut stdout = stream(Log::new(path.clone(), 8));
        stdout.log.write(b"past its cap").unwrap();
        let (report, reports) = channel();
        let parts = tail.clone();
        let mut worker = Worker {
            spec: KeeperSpec {
                program: PathBuf::new(),
                env: Vec::new(),
                marks: Vec::new(),
                loop_dir: None,
                lease: None,
            },
            inbox: channel().1,
            woken: UnixStream::pair().unwrap().0,
            keeper: None,
            attempt: Some(Attempt {
                stdout,
                stderr: stream(Log::new(dir.join("stderr.log"), 8)),
                listener: Nobody,
                meter: Arc::new(Meter::new(|| {})),
                process: None,
                end: None,
                stopping: false,
                output_error: None,
                chunk: vec![0; 8],
            }),
            report: move |said| report.send((said, parts.exists())).unwrap(),
            sweep_owed: false,
            owed: None,
        };
        worker.exited(Exit::Code(0), false);
        let (said, in_parts) = reports.try_recv().unwrap();
        assert!(matches!(said, Report::Exited { stdout: 12, .. }) && in_parts);
        assert!(!tail.exists() && std::fs::read_to_string(path).unwrap().ends_with(" cap"));
    }
}
