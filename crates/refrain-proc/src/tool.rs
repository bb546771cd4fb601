//! Running a tool for ourselves, like git: no shell, in a process group of its own, with limits on time and output.
//!
//! Its output is always drained, so it never blocks on us. Processes that it leaves in its group are ended with it,
//! and are not waited for: a background process that keeps a pipe open delays nothing.
//!
//! A tool that has to be ended early gets SIGTERM first, and a moment: git removes its locks then, which a kill would
//! leave to the user.
//!
//! A program of the user that is [run as an errand](Tool::errand) is left as it is: it keeps its own language, and
//! processes that it leaves in the background live on.

mod confinement;
mod file_limits;
mod interruption;
mod orphans;
mod pipe_io;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::limits;
use crate::program::{folders_outside, in_path, in_path_outside};
pub use confinement::{Confinement, Sweeper, ToolFolders};
pub use file_limits::{FileLimits, loader};
use interruption::Running;
pub use interruption::{SignalHold, end_tools, heed_signals, is_hangup_ignored, leave_signals};
use pipe_io::Talk;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("{program} cannot be started")]
    Missing { program: String, source: io::Error },
    /// The folder that it is to run in.
    #[error("{command}: there is no folder {}", .dir.display())]
    NoFolder { command: String, dir: PathBuf },
    #[error("{command}: {complaint}")]
    Failed { command: String, complaint: String },
    #[error("{command} was not done after {} s", .limit.as_secs())]
    TimedOut { command: String, limit: Duration },
    #[error("{command} was cancelled")]
    Cancelled { command: String },
    /// Its lookout found what it waits for.
    #[error("{command} takes long: {by}")]
    Blocked { command: String, by: String },
    #[error("{command} printed more than {} MiB", .most >> 20)]
    TooMuch {
        command: String,
        /// The output limit, in bytes.
        most: usize,
    },
    #[error("{command} cannot be talked to")]
    Io { command: String, source: io::Error },
}

/// A request to cancel that several tools and threads can poll. It cannot be withdrawn.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<(PipeReader, PipeWriter)>);

impl Cancel {
    /// A new one that is not cancelled.
    pub fn new() -> io::Result<Self> {
        // The written byte is never read, so the pipe stays readable.
        let (said, say) = io::pipe()?;
        fcntl_setfl(&say, OFlags::NONBLOCK)?;
        Ok(Self(Arc::new((said, say))))
    }

    pub fn cancel(&self) {
        // The pipe is full only after very many cancels.
        let _ = rustix::io::write(&self.0.1, &[1]);
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled_within(Duration::ZERO)
    }

    /// Waits for it, at most this long.
    pub fn is_cancelled_within(&self, limit: Duration) -> bool {
        let mut waits = [PollFd::new(self, PollFlags::IN)];
        poll(&mut waits, Timespec::try_from(limit).ok().as_ref()).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Cancel {
    /// Becomes readable once it is cancelled.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// Looks for what a tool that takes long waits for.
#[derive(Clone, Copy)]
struct Lookout<'a> {
    first: Duration,
    look: &'a dyn Fn() -> Option<String>,
}

impl fmt::Debug for Lookout<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookout")
    }
}

/// The end of a tool's time, and its lookout.
struct Watch<'a> {
    command: String,
    until: Option<(Instant, Duration)>,
    /// When to look next, and how long to wait after that.
    lookout: Option<(Instant, Duration, Lookout<'a>)>,
}

impl<'a> Watch<'a> {
    fn new(tool: &Tool<'a>) -> Self {
        let now = Instant::now();
        Self {
            command: tool.command(),
            until: tool.limit.map(|limit| (now + limit, limit)),
            lookout: tool.lookout.map(|it| (now + it.first, it.first, it)),
        }
    }

    /// The time until [`Self::check`] has to be asked; none if never.
    fn left(&self) -> Option<Duration> {
        let next = [self.until.map(|it| it.0), self.lookout.map(|it| it.0)];
        next.into_iter().flatten().min().map(|next| next.saturating_duration_since(Instant::now()))
    }

    /// Why the tool has to be ended now, if it has.
    fn check(&mut self) -> Result<(), ToolError> {
        let command = || self.command.clone();
        if let Some((until, limit)) = self.until
            && Instant::now() >= until
        {
            return Err(ToolError::TimedOut { command: command(), limit });
        }
        if let Some((next, pause, lookout)) = &mut self.lookout
            && Instant::now() >= *next
        {
            if let Some(by) = (lookout.look)() {
                return Err(ToolError::Blocked { command: command(), by });
            }
            *pause *= 4;
            *next = Instant::now() + *pause;
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Tool<'a> {
    program: OsString,
    at: Option<PathBuf>,
    args: Vec<OsString>,
    dir: &'a Path,
    env: Option<&'a [(OsString, OsString)]>,
    more_env: Vec<(OsString, OsString)>,
    input: &'a [u8],
    limit: Option<Duration>,
    lookout: Option<Lookout<'a>>,
    cancel: Option<&'a Cancel>,
    most: usize,
    is_errand: bool,
    outlasts_signals: bool,
    is_bounded: bool,
    sweeper: Option<&'a Sweeper>,
    is_confined: bool,
    writes_objects: bool,
    file_limits: Option<FileLimits>,
}

#[derive(Clone, Debug)]
pub struct ToolOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// The end of its standard error, at most 64 KiB.
    pub stderr: Vec<u8>,
}

impl<'a> Tool<'a> {
    /// `program`, run in `dir`, without input, in our environment and the C locale.
    pub fn new(program: impl AsRef<OsStr>, dir: &'a Path) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            at: None,
            args: Vec::new(),
            dir,
            env: None,
            more_env: vec![("LC_ALL".into(), "C".into())],
            input: &[],
            limit: None,
            lookout: None,
            cancel: None,
            most: 64 << 20,
            is_errand: false,
            outlasts_signals: false,
            is_bounded: false,
            sweeper: None,
            is_confined: false,
            writes_objects: false,
            file_limits: None,
        }
    }

    /// The same, which no signal to this process ends in the middle.
    #[must_use]
    pub fn outlasting_signals(self, outlasts_signals: bool) -> Self {
        Self { outlasts_signals, ..self }
    }

    /// A program of the user, in our own environment and language: its output is ignored, and its background
    /// processes live on, unless it has to be ended itself.
    pub fn errand(program: impl AsRef<OsStr>, dir: &'a Path) -> Self {
        Self { more_env: Vec::new(), is_errand: true, ..Self::new(program, dir) }
    }

    /// Our own program, in our own locale: programs that it starts for the user must find the user's settings.
    pub fn own(program: impl AsRef<OsStr>, dir: &'a Path) -> Self {
        Self { more_env: Vec::new(), ..Self::new(program, dir) }
    }

    /// The path of the program, which takes precedence over `PATH`.
    #[must_use]
    pub fn at(self, at: Option<PathBuf>) -> Self {
        Self { at, ..self }
    }

    /// Run it under a keeper, which ends all processes that it leaves.
    #[must_use]
    pub fn swept_by(self, sweeper: Option<&'a Sweeper>) -> Self {
        Self { sweeper, ..self }
    }

    /// With bounds on memory and CPU time: it reads what an agent wrote, and starts no program of the user, which would
    /// inherit them.
    #[must_use]
    pub fn bounded(self, is_bounded: bool) -> Self {
        Self { is_bounded, ..self }
    }

    /// In the sandbox of its sweeper, if that has one.
    #[must_use]
    pub fn confined(self, is_confined: bool) -> Self {
        Self { is_confined, ..self }
    }

    /// A git that, in a sandbox, adds objects to the folder that it is given for them.
    #[must_use]
    pub fn writing_objects(self, writes_objects: bool) -> Self {
        Self { writes_objects, ..self }
    }

    /// Held to limits on files, if it has no sweeper.
    #[must_use]
    pub fn held_to(self, file_limits: Option<FileLimits>) -> Self {
        Self { file_limits, ..self }
    }

    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn env(mut self, env: &'a [(OsString, OsString)]) -> Self {
        self.env = Some(env);
        self
    }

    /// In this environment; the program and those that it runs are found only outside of `dirs`, where an agent writes.
    #[must_use]
    pub fn outside(mut self, env: &'a [(OsString, OsString)], dirs: &[&Utf8Path]) -> Self {
        self.env = Some(env);
        // Without a `PATH` the system has its own.
        if env.iter().any(|(name, _)| name == "PATH") {
            // A folder that was in PATH has no colon.
            let path = std::env::join_paths(folders_outside(env, dirs).0).unwrap_or_default();
            self.more_env.push(("PATH".into(), path));
            if Path::new(&self.program).components().count() == 1 {
                // A program with an empty path is missing.
                self.at = Some(in_path_outside(&self.program, env, dirs).unwrap_or_default());
            }
        }
        self
    }

    #[must_use]
    pub fn with(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.more_env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn input(mut self, input: &'a [u8]) -> Self {
        self.input = input;
        self
    }

    /// The time limit; after it the tool is ended with its group.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Asks `look` what the tool waits for, when it is not done after `first`, and again from time to time. If there is
    /// something, the tool is ended with its group.
    #[must_use]
    pub fn lookout(mut self, first: Duration, look: &'a dyn Fn() -> Option<String>) -> Self {
        self.lookout = Some(Lookout { first, look });
        self
    }

    #[must_use]
    pub fn cancel(mut self, cancel: Option<&'a Cancel>) -> Self {
        self.cancel = cancel;
        self
    }

    /// The output limit in bytes; 64 MiB by default.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// The command line as a user would type it: without the settings that Refrain gives git.
    pub fn command(&self) -> String {
        let is_git = Path::new(&self.program).file_name().is_some_and(|name| name == "git");
        let mut args = self.args.as_slice();
        while let [option, _, rest @ ..] = args
            && is_git
            && option == "-c"
        {
            args = rest;
        }
        let words = std::iter::once(&self.program).chain(args).map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Runs it to its end, with any exit code.
    pub fn run(&self) -> Result<ToolOutput, ToolError> {
        if let Some(sweeper) = self.sweeper {
            return confinement::run(self, sweeper);
        }
        let stdin = if self.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        // An errand continues when this process has ended.
        let mut running = (!self.is_errand).then(|| Running::begin(self.outlasts_signals));
        let child = self.start(stdin)?;
        running.iter_mut().for_each(|running| running.started(&child));
        self.finish(child, running.as_ref())
    }

    fn finish(&self, mut child: Child, running: Option<&Running>) -> Result<ToolOutput, ToolError> {
        let interrupt = running.and_then(|running| running.interrupt.as_deref());
        let mut talk = Talk::new(self, &mut child, interrupt).map_err(|source| self.io(source));
        let ended = match &mut talk {
            Ok(talk) => talk.finish(),
            Err(_) => Ok(()),
        };
        // Not reaped yet, so the number is still its own.
        if let Some(pid) = pid_of(&child) {
            if let (Ok(talk), Err(_)) = (&mut talk, &ended) {
                let _ = kill_process_group(pid, Signal::TERM);
                talk.leave_time();
            }
            if ended.is_err() || !self.is_errand {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        let group = pid_of(&child);
        let status = child.wait().map_err(|source| self.io(source))?;
        orphans::reap(group);
        let talk = talk?;
        ended?;
        Ok(ToolOutput { status, stdout: talk.stdout, stderr: talk.stderr })
    }

    /// Runs it and returns its output.
    /// Errors: [`ToolError`], also if its exit code is not 0.
    pub fn output(&self) -> Result<Vec<u8>, ToolError> {
        self.printed(self.run()?)
    }

    fn printed(&self, done: ToolOutput) -> Result<Vec<u8>, ToolError> {
        if done.status.success() {
            return Ok(done.stdout);
        }
        let complaint = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(ToolError::Failed { command: self.command(), complaint })
    }

    /// Runs an interactive program, like an editor, to its end; returns whether it succeeded. It belongs to the user, and
    /// gets the terminal as it is, and Ctrl-C.
    pub fn at_terminal(&self, stdin: Stdio) -> Result<bool, ToolError> {
        let mut command = self.prepared();
        command.stdin(stdin);
        let ended = interruption::with_terminal(|| command.status());
        ended.map(|status| status.success()).map_err(|source| self.not_started(source))
    }

    fn prepared(&self) -> Command {
        // To search another PATH, the standard library forks this process, which is slow: with a known path it does
        // not.
        let found = self.at.clone().or_else(|| self.found());
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let mut command = Command::new(found.as_deref().unwrap_or(self.program.as_ref()));
        command.arg0(&self.program);
        if let Some(env) = self.env {
            command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        }
        command.envs(self.more_env.iter().map(|(name, value)| (name, value)));
        command.args(&self.args).current_dir(self.dir);
        command
    }

    fn start(&self, stdin: Stdio) -> Result<Child, ToolError> {
        let mut command = self.prepared();
        // A background process that prints after we close the pipe would be killed by SIGPIPE.
        let stdout = if self.is_errand { Stdio::null() } else { Stdio::piped() };
        let command = command.process_group(0).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let spawned = match &self.file_limits {
            None => command.spawn(),
            Some(limits) => limits.start(|| command.spawn()),
        };
        let child = spawned.map_err(|source| self.not_started(source))?;
        // It is already running, but has hardly begun: the hooks that git starts are the user's programs.
        limits::hand_down(child.id());
        if let (true, Some(limit)) = (self.is_bounded, self.limit) {
            limits::bound(child.id(), limit);
        }
        Ok(child)
    }

    /// The path of a tool in a PATH that is not ours; none if the system's own search will do.
    fn found(&self) -> Option<PathBuf> {
        let found = in_path(&self.program, self.env?);
        // A relative PATH entry would refer to the tool's working folder.
        found.filter(|path| path.is_absolute() && Path::new(&self.program).components().count() == 1)
    }

    /// Why it was not started: the system does not say which of its program and its folder is missing.
    fn not_started(&self, source: io::Error) -> ToolError {
        if !self.dir.exists() {
            return ToolError::NoFolder { command: self.command(), dir: self.dir.to_owned() };
        }
        ToolError::Missing { program: self.program.to_string_lossy().into_owned(), source }
    }

    fn io(&self, source: impl Into<io::Error>) -> ToolError {
        ToolError::Io { command: self.command(), source: source.into() }
    }
}

/// Runs `program` in `dir` and returns its output.
pub fn run(program: &str, args: &[&str], dir: &Path) -> Result<String, ToolError> {
    let printed = Tool::new(program, dir).args(args).output()?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests;
