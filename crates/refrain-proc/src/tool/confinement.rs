//! A tool that runs programs of the user: it runs under a keeper of its own, so that none of their processes live on,
//! in any session or environment.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::Exit;
use refrain_files::IfThere;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::interruption::held_signal;
use super::pipe_io::COMPLAINT;
use super::{Cancel, Tool, ToolError, ToolOutput, Watch};
use crate::keeper::StopLadder;
use crate::output::{self, Listener, Meter};
use crate::supervisor::{Job, KeeperSpec, Report, Stdin, Supervisor};

/// Puts the process of a tool into a sandbox. It gets the tool's environment, and the folders that the tool writes.
type Confine =
    dyn Fn(Job<NoListener>, &[Variable], &[Utf8PathBuf]) -> io::Result<Job<NoListener>> + Send + Sync;
type Variable = (OsString, OsString);

/// The sandbox of a tool.
#[derive(Clone)]
pub struct Confinement(Arc<Confine>);

impl Confinement {
    pub fn new(
        confine: impl Fn(Job<NoListener>, &[Variable], &[Utf8PathBuf]) -> io::Result<Job<NoListener>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(confine))
    }
}

impl fmt::Debug for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confinement")
    }
}

#[derive(Clone, Debug)]
pub struct Sweeper {
    pub program: PathBuf,
    /// The mark of the processes, as `NAME=value`.
    pub mark: String,
    pub loop_dir: Utf8PathBuf,
    /// A folder for the tool's input and output.
    pub scratch: Utf8PathBuf,
    /// None if the tool gets the user's rights.
    pub confinement: Option<Confinement>,
}

/// The output of a tool is read from its logs.
#[derive(Debug)]
pub struct NoListener;

impl Listener for NoListener {
    fn hear(&mut self, _chunk: &[u8]) {}
}

/// A folder for one run, removed with it.
struct Scratch(Utf8PathBuf);

impl Scratch {
    fn new(sweeper: &Sweeper) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = sweeper.scratch.join(format!("tool-{}-{number}", std::process::id()));
        // Left by a killed process with the same number.
        let _ = fs::remove_dir_all(&folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a tool to its end, and ends all processes that it left.
pub(super) fn run(tool: &Tool<'_>, sweeper: &Sweeper) -> Result<ToolOutput, ToolError> {
    let failed = |source: io::Error| tool.io(source);
    let scratch = Scratch::new(sweeper).map_err(failed)?;
    let confinement = sweeper.confinement.as_ref().filter(|_| tool.is_confined);
    let own = scratch.0.join("own");
    let mut job = job(tool, &scratch).map_err(failed)?;
    let (stdout, stderr) = (job.stdout_log.clone(), job.stderr_log.clone());
    let env: Vec<Variable> = tool.env.map_or_else(|| std::env::vars_os().collect(), <[_]>::to_vec);
    let mut copy = None;
    if let Some(Confinement(confine)) = confinement {
        fs::create_dir(&own).map_err(failed)?;
        copy = IndexCopy::make(&mut job, &own).map_err(failed)?;
        let objects = job.env.iter().find(|(name, _)| name == OBJECTS).map(|(_, path)| path.into());
        let folders: Vec<Utf8PathBuf> = [own].into_iter().chain(objects).collect();
        job = confine(job, &env, &folders).map_err(failed)?;
    }
    let (program, marks) = (sweeper.program.clone(), vec![sweeper.mark.clone()]);
    let keeper = KeeperSpec { program, env, marks, loop_dir: Some(sweeper.loop_dir.clone()), lease: None };
    let (told, tell) = UnixStream::pair().map_err(failed)?;
    let (sender, reports) = mpsc::channel();
    let supervisor = Supervisor::start(keeper, move |report: Report<NoListener>| {
        // A receiver that has stopped waiting needs no report.
        let _ = sender.send(report);
        let _ = (&tell).write(b"!");
    })
    .map_err(failed)?;
    supervisor.run(job);
    let mut watch = Watch::new(tool);
    let signal = held_signal().filter(|_| !tool.outlasts_signals);
    let ends: Vec<_> =
        tool.cancel.map(Cancel::as_fd).into_iter().chain(signal.as_deref().map(PipeReader::as_fd)).collect();
    let (mut ended, mut stopped) = (None, None);
    let exit = loop {
        match reports.try_recv() {
            Ok(Report::NotStarted(error)) => {
                return Err(tool.not_started(io::Error::other(error)));
            }
            Ok(Report::Exited { exit, left: true, .. }) => ended = Some(exit),
            Ok(Report::Exited { exit, left: false, .. }) => break exit,
            Ok(Report::Swept { .. }) => match ended {
                Some(exit) => break exit,
                None => continue,
            },
            Ok(Report::Started(_) | Report::OutputFailed) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Err(failed(io::ErrorKind::BrokenPipe.into())),
            Err(mpsc::TryRecvError::Empty) => {
                let limits = if stopped.is_none() { Some(&mut watch) } else { None };
                if let (None, Err(error)) = (&stopped, wait(tool, (&told, &ends), limits)) {
                    stopped = Some(error);
                    supervisor.stop(StopLadder::default());
                }
            }
        }
    };
    drop(supervisor);
    if let Some(error) = stopped {
        return Err(error);
    }
    if let Some(copy) = copy {
        copy.bring_back().map_err(failed)?;
    }
    let status = match exit {
        Exit::Code(code) => ExitStatus::from_raw(code << 8),
        Exit::Signal(signal) => ExitStatus::from_raw(signal),
        Exit::Lost | Exit::Unseen => return Err(failed(io::Error::other("its supervisor was lost"))),
    };
    // A tool without output leaves no log.
    let read = |path: &Utf8Path, most| output::read_end(path, most).if_there().map(Option::unwrap_or_default);
    let stdout = read(&stdout, u64::MAX).map_err(failed)?;
    if stdout.len() > tool.most {
        return Err(ToolError::TooMuch { command: tool.command(), most: tool.most });
    }
    Ok(ToolOutput { status, stdout, stderr: read(&stderr, COMPLAINT as u64).map_err(failed)? })
}

/// The variable that names the index of git.
const INDEX: &str = "GIT_INDEX_FILE";
/// The variable that names the folder of the objects of git, if that is not the one of the repository.
const OBJECTS: &str = "GIT_OBJECT_DIRECTORY";

/// A private index lies beside what a program in a sandbox may not write: it gets a copy.
struct IndexCopy {
    copy: Utf8PathBuf,
    original: Utf8PathBuf,
}

impl IndexCopy {
    fn make<L>(job: &mut Job<L>, folder: &Utf8Path) -> io::Result<Option<Self>> {
        let Some((_, path)) = job.env.iter_mut().find(|(name, _)| name == INDEX) else { return Ok(None) };
        let copy = folder.join("index");
        let original = Utf8PathBuf::from(std::mem::replace(path, copy.to_string()));
        if let Some(mut file) = refrain_files::open_regular(&original).if_there()? {
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy)?;
            io::copy(&mut file, &mut new)?;
        }
        Ok(Some(Self { copy, original }))
    }

    /// Takes the index as the tool left it. Nothing runs in its sandbox any more.
    fn bring_back(self) -> io::Result<()> {
        match self.copy.symlink_metadata().if_there()? {
            Some(metadata) if metadata.is_file() => fs::rename(self.copy, self.original),
            Some(_) => Err(io::Error::other("a program replaced the index of git")),
            None => Ok(()),
        }
    }
}

/// Waits for a report, and with limits until the tool is stopped: for one of `ends`, too.
/// Errors: Why the tool has to be stopped.
fn wait(
    tool: &Tool<'_>,
    (told, ends): (&UnixStream, &[BorrowedFd<'_>]),
    mut watch: Option<&mut Watch<'_>>,
) -> Result<(), ToolError> {
    let mut fds = vec![PollFd::new(told, PollFlags::IN)];
    fds.extend(ends.iter().filter(|_| watch.is_some()).map(|end| PollFd::new(end, PollFlags::IN)));
    let longest = watch.as_ref().and_then(|watch| Timespec::try_from(watch.left()?).ok());
    // An interrupt is a spurious wake-up.
    let _ = poll(&mut fds, longest.as_ref());
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    if ready.next() == Some(true) {
        let _ = rustix::io::read(told, &mut [0_u8; 1]);
        return Ok(());
    }
    if ready.any(|is_ready| is_ready) {
        return Err(ToolError::Cancelled { command: tool.command() });
    }
    watch.as_mut().map_or(Ok(()), |watch| watch.check())
}

fn job(tool: &Tool<'_>, scratch: &Scratch) -> io::Result<Job<NoListener>> {
    let text = |word: &std::ffi::OsStr| {
        word.to_str().map(str::to_owned).ok_or_else(|| io::Error::other(format!("{word:?} is not UTF-8")))
    };
    let program = tool.at.clone().or_else(|| tool.found());
    let program = program.map_or_else(|| tool.program.clone(), PathBuf::into_os_string);
    let argv = std::iter::once(&program).chain(&tool.args).map(|word| text(word));
    let env = tool.more_env.iter().map(|(name, value)| Ok((text(name)?, text(value)?)));
    let dir = Utf8PathBuf::from(text(tool.dir.as_os_str())?);
    Ok(Job {
        argv: argv.collect::<io::Result<_>>()?,
        dir,
        env: env.collect::<io::Result<_>>()?,
        stdin: match tool.input {
            [] => Stdin::Closed,
            input => Stdin::Text(input.to_vec()),
        },
        stdout_log: scratch.0.join("output"),
        stderr_log: scratch.0.join("complaint"),
        cap: 4 * tool.most as u64,
        listener: NoListener,
        meter: Arc::new(Meter::new(|| ())),
    })
}
