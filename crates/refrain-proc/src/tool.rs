//! Running a tool for ourselves, like git: no shell, in a process group of its own, bounded in time and in what it may say.
//!
//! What it prints is always drained, so it never waits for us. Whoever it leaves behind in its group is ended with it, and
//! is not waited for: a process in the background that keeps a pipe open holds nobody up.
//!
//! One that has to be ended early is asked first, and has a moment: git takes its locks away then, which a kill would leave
//! to the person.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::program::in_path;

/// How much of what a tool complains about is kept, in bytes: the end of it.
const COMPLAINT: usize = 64 << 10;

/// How long one that is asked to end may take to put its things away.
const GRACE: Duration = Duration::from_secs(1);

/// A tool that did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It could not be started.
    #[error("{program} cannot be started")]
    Missing {
        /// The tool.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// It said no.
    #[error("{command}: {complaint}")]
    Failed {
        /// What it was told.
        command: String,
        /// What it said.
        complaint: String,
    },
    /// It took longer than it may, and was ended.
    #[error("{command} was not done after {} s", .limit.as_secs())]
    TimedOut {
        /// What it was told.
        command: String,
        /// How long it had.
        limit: Duration,
    },
    /// Somebody asked to stop, and it was ended.
    #[error("{command} was cancelled")]
    Cancelled {
        /// What it was told.
        command: String,
    },
    /// It printed more than anybody can use, and was ended.
    #[error("{command} printed more than {} MiB", .most >> 20)]
    TooMuch {
        /// What it was told.
        command: String,
        /// How much it may print, in bytes.
        most: usize,
    },
    /// The system failed us while it ran.
    #[error("{command} cannot be talked to")]
    Io {
        /// What it was told.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A wish to stop that several tools and threads can look at. Once said, it stands.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    /// One that nobody has said yet.
    ///
    /// # Errors
    /// Where there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(fd)))
    }

    /// Asks everyone who looks at it to stop.
    pub fn cancel(&self) {
        // It is full only if it has been said very often.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// A tool, and what it is told.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    program: OsString,
    args: Vec<OsString>,
    dir: &'a Path,
    env: Option<&'a [(OsString, OsString)]>,
    more_env: Vec<(OsString, OsString)>,
    input: &'a [u8],
    limit: Option<Duration>,
    cancel: Option<&'a Cancel>,
    most: usize,
}

/// What a tool did.
#[derive(Clone, Debug)]
pub struct Done {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The end of what it complained about, at most 64 KiB.
    pub stderr: Vec<u8>,
}

impl<'a> Tool<'a> {
    /// `program`, run in `dir`, with nothing to read, in our environment and in a language that can be read.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>, dir: &'a Path) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            dir,
            env: None,
            more_env: vec![("LC_ALL".into(), "C".into())],
            input: &[],
            limit: None,
            cancel: None,
            most: 64 << 20,
        }
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// This environment instead of ours.
    #[must_use]
    pub fn env(mut self, env: &'a [(OsString, OsString)]) -> Self {
        self.env = Some(env);
        self
    }

    /// One variable more.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.more_env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// What it reads.
    #[must_use]
    pub fn input(mut self, input: &'a [u8]) -> Self {
        self.input = input;
        self
    }

    /// How long it may take; else it is ended with its group.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Who may stop it.
    #[must_use]
    pub fn cancel(mut self, cancel: Option<&'a Cancel>) -> Self {
        self.cancel = cancel;
        self
    }

    /// How much it may print, in bytes; 64 MiB unless said.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// What it is told, as one would type it.
    #[must_use]
    pub fn command(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs it to its end, whatever its exit code is.
    ///
    /// # Errors
    /// [`ToolError`] where it cannot be started, or was ended by us.
    pub fn run(&self) -> Result<Done, ToolError> {
        let mut child = self.start()?;
        let mut talk = Talk::new(self, &mut child).map_err(|source| self.io(source));
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
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let status = child.wait().map_err(|source| self.io(source))?;
        let talk = talk?;
        ended?;
        Ok(Done { status, stdout: talk.stdout, stderr: talk.stderr })
    }

    /// Runs it and returns what it printed.
    ///
    /// # Errors
    /// [`ToolError`], also where it ends with another code than 0.
    pub fn output(&self) -> Result<Vec<u8>, ToolError> {
        let done = self.run()?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let complaint = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(ToolError::Failed { command: self.command(), complaint })
    }

    fn start(&self) -> Result<Child, ToolError> {
        // The standard library starts one that it has to look for along another PATH by way of a copy of this process, which
        // is slow: one that is found already needs none.
        let found = self.found();
        #[expect(clippy::disallowed_methods, reason = "this crate is the home of starting processes")]
        let mut command = Command::new(found.as_deref().unwrap_or(self.program.as_ref()));
        command.arg0(&self.program);
        if let Some(env) = self.env {
            command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        }
        command.envs(self.more_env.iter().map(|(name, value)| (name, value)));
        let stdin = if self.input.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.args(&self.args).current_dir(self.dir).process_group(0);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|source| {
            ToolError::Missing { program: self.program.to_string_lossy().into_owned(), source }
        })
    }

    /// Where a tool is found along a PATH that is not ours; none where the system knows without us.
    fn found(&self) -> Option<PathBuf> {
        let found = in_path(&self.program, self.env?);
        // A relative folder would be one of the folder that it runs in.
        found.filter(|path| path.is_absolute() && Path::new(&self.program).components().count() == 1)
    }

    fn io(&self, source: impl Into<io::Error>) -> ToolError {
        ToolError::Io { command: self.command(), source: source.into() }
    }
}

/// Runs `program` in `dir` and returns what it printed.
///
/// # Errors
/// [`ToolError`] where it cannot be started or ends with another code than 0.
pub fn run(program: &str, args: &[&str], dir: &Path) -> Result<String, ToolError> {
    let printed = Tool::new(program, dir).args(args).output()?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// A tool that runs, seen from the other ends of its pipes.
struct Talk<'a> {
    tool: &'a Tool<'a>,
    until: Option<Instant>,
    process: OwnedFd,
    stdin: Option<OwnedFd>,
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
    input: &'a [u8],
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl<'a> Talk<'a> {
    fn new(tool: &'a Tool<'a>, child: &mut Child) -> io::Result<Self> {
        let pid = pid_of(child).ok_or_else(|| io::Error::other("a program without a pid"))?;
        let stdin = child.stdin.take().map(OwnedFd::from);
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        for fd in [&stdin, &out, &err].into_iter().flatten() {
            fcntl_setfl(fd, OFlags::NONBLOCK)?;
        }
        Ok(Self {
            tool,
            until: tool.limit.map(|limit| Instant::now() + limit),
            process: pidfd_open(pid, PidfdFlags::empty())?,
            stdin,
            out,
            err,
            input: tool.input,
            stdout: Vec::new(),
            stderr: Vec::new(),
        })
    }

    fn finish(&mut self) -> Result<(), ToolError> {
        loop {
            let ready = self.wait()?;
            if ready.write {
                self.write();
            }
            // All that is in the pipes when it has ended is read, and nothing that comes later.
            self.read()?;
            if ready.ended {
                return Ok(());
            }
        }
    }

    /// Waits until the tool has ended, and its group has let go of the pipes: git ends before the git that a hook of its
    /// runs. Nobody waits for longer than the grace, and nobody who still prints waits for us.
    fn leave_time(&mut self) {
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

    fn wait(&self) -> Result<Ready, ToolError> {
        loop {
            let mut fds = vec![PollFd::new(&self.process, PollFlags::IN)];
            if let Some(cancel) = self.tool.cancel {
                fds.push(PollFd::new(&*cancel.0, PollFlags::IN));
            }
            let watched = fds.len();
            fds.extend(self.stdin.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)));
            fds.extend(
                self.out.iter().chain(&self.err).map(|fd| PollFd::new(fd, PollFlags::IN | PollFlags::HUP)),
            );
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left
                .map(Timespec::try_from)
                .transpose()
                .map_err(|error| self.tool.io(io::Error::other(error)))?;
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) if left.is_some_and(|left| left.is_zero()) => {
                    let limit = self.tool.limit.unwrap_or_default();
                    return Err(ToolError::TimedOut { command: self.tool.command(), limit });
                }
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) if watched > 1 && !fds[1].revents().is_empty() => {
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

    /// A tool that does not read to the end has its reasons: they are in its exit code.
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
            // Looked at in between, so that one that never stops complaining can be ended too.
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

/// Of what nobody will read nothing is kept, and one look at it is enough.
fn forget(kept: &mut Vec<u8>) -> bool {
    kept.clear();
    true
}

/// Reads what is there, without waiting, until `enough` says so. A pipe that has ended is let go.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Tool<'_> {
        Tool::new("sh", Path::new("/")).args(["-c", script])
    }

    #[test]
    fn it_reads_what_it_is_given_and_says_what_it_says() {
        let input = b"line\n".repeat(100_000);
        let done = sh("cat; echo no >&2; exit 3").input(&input).run().unwrap();
        assert_eq!(done.status.code(), Some(3));
        assert_eq!(done.stdout, input);
        assert_eq!(done.stderr, b"no\n");
    }

    #[test]
    fn one_that_does_not_read_is_no_trouble() {
        assert_eq!(sh("echo done").input(&[b'x'; 1 << 20]).output().unwrap(), b"done\n");
    }

    #[test]
    fn it_has_the_environment_that_it_is_given_and_no_other() {
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "1".into())];
        let said = sh("echo $A-$B-$HOME").env(&env).with("B", "2").output().unwrap();
        assert_eq!(said, b"1-2-\n");
    }

    #[test]
    fn who_stays_in_its_group_holds_nobody_up_and_is_ended() {
        let script = "cat /dev/zero >/dev/null & echo started";
        let said = sh(script).limit(Duration::from_secs(60)).output().unwrap();
        assert_eq!(said, b"started\n");
    }

    #[test]
    fn what_takes_too_long_prints_too_much_or_is_cancelled_is_ended() {
        let error = sh("cat /dev/zero >/dev/null").limit(Duration::from_millis(20)).run().unwrap_err();
        assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
        let error = sh("cat /dev/zero").most(1 << 20).run().unwrap_err();
        assert!(matches!(error, ToolError::TooMuch { .. }), "{error}");
        let cancel = Cancel::new().unwrap();
        cancel.cancel();
        let error = sh("cat /dev/zero >/dev/null").cancel(Some(&cancel)).run().unwrap_err();
        assert!(matches!(error, ToolError::Cancelled { .. }), "{error}");
    }

    #[test]
    fn who_is_ended_may_put_its_things_away_but_not_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let begin = |rest: &str| {
            let script = format!("trap 'sleep 0.05; rm lock; exit' TERM; touch lock; {rest}");
            Tool::new("sh", dir.path()).args(["-c", &script]).limit(Duration::from_millis(200)).run()
        };
        // Below a program that ends at once, too.
        for rest in [
            "while :; do sleep 0.01; done",
            "(trap 'sleep 0.1; rm -f deep' TERM; touch deep; sleep 9) & wait",
        ] {
            let error = begin(rest).unwrap_err();
            assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
            assert!(!dir.path().join("lock").exists() && !dir.path().join("deep").exists(), "{rest}");
        }
        let began = Instant::now();
        let stubborn = sh("trap '' TERM; while :; do echo x; done").limit(Duration::from_millis(20)).run();
        assert!(matches!(stubborn, Err(ToolError::TimedOut { .. })), "{stubborn:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn of_a_long_complaint_the_end_is_kept() {
        let done = sh("yes no | head -c 1000000 >&2; echo end >&2").run().unwrap();
        assert_eq!(done.stderr.len(), COMPLAINT);
        assert!(done.stderr.ends_with(b"end\n"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = Tool::new("no-such-tool-at-all", Path::new("/")).run().unwrap_err();
        assert_eq!(error.to_string(), "no-such-tool-at-all cannot be started");
    }
}
