//! One session with the program: its arguments and input, its output, and signals to it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use serde_json::Value;

use crate::wait::{DEADLINE, eventually};

/// A command line that is about to be run.
#[derive(Debug)]
#[must_use = "an invocation does nothing before it is run or spawned"]
pub struct Invocation {
    command: Command,
    words: String,
    /// Files for standard output and standard error, so that a process that holds a pipe open cannot delay a test.
    files: [PathBuf; 2],
}

/// A line of the header of a loop.
const SANDBOX: &str = "sandbox: available, add --sandbox\n";

impl Invocation {
    pub(crate) fn new(mut command: Command, words: String, files: [PathBuf; 2]) -> Self {
        let [stdout, stderr] = files.each_ref().map(|path| File::create(path).expect("a file can be made"));
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        Self { command, words, files }
    }

    /// One more argument, of any bytes.
    pub fn arg(mut self, word: &OsStr) -> Self {
        self.command.arg(word);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn envs(mut self, variables: &[(String, String)]) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        let path = self.files[0].with_extension("stdin");
        crate::write(&path, text);
        self.command.stdin(File::open(path).expect("what was just written can be read"));
        self
    }

    /// Runs it to its end; a deadline kills it and fails the test.
    #[track_caller]
    pub fn run(self) -> Run {
        self.spawn().wait()
    }

    /// Starts it, in a process group of its own.
    #[track_caller]
    pub fn spawn(mut self) -> Session {
        let child = self.command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.words));
        Session { child, words: self.words, files: self.files }
    }
}

impl Invocation {
    /// Starts it with its standard input and output piped to the caller.
    #[track_caller]
    pub fn talk(mut self) -> (Session, ChildStdin, ChildStdout) {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = self.spawn();
        let pipes = session.child.stdin.take().zip(session.child.stdout.take());
        let (input, output) = pipes.expect("both are pipes");
        (session, input, output)
    }
}

#[derive(Debug)]
pub struct Session {
    child: Child,
    words: String,
    files: [PathBuf; 2],
}

impl Session {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process numbers are small")
    }

    /// Sends it a signal; to it alone.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap_or_else(|error| panic!("{}: {error}", self.words));
    }

    /// Sends a signal to its whole process group, as a terminal would.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.id(), signal).unwrap_or_else(|error| panic!("{}: {error}", self.words));
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.pid()).expect("a child has a number")
    }

    pub fn stdout(&self) -> String {
        text(&self.files[0])
    }

    /// What it printed on standard error, without what the machine alone decides: whether it could have a sandbox.
    pub fn stderr(&self) -> String {
        text(&self.files[1]).replace(SANDBOX, "")
    }

    /// Waits until it has printed `part` on standard output.
    #[track_caller]
    pub fn wait_for_output(&self, part: &str) {
        eventually(&format!("{} prints {part:?}", self.words), || self.stdout().contains(part).then_some(()));
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Waits for its end; a deadline kills it and fails the test.
    #[track_caller]
    pub fn wait(self) -> Run {
        self.wait_at_most(DEADLINE)
    }

    /// Waits for its end, at most that long.
    #[track_caller]
    pub fn wait_at_most(mut self, limit: Duration) -> Run {
        if self.is_running() {
            // Its descriptor becomes readable at once: benchmarks measure until here.
            let process =
                pidfd_open(self.id(), PidfdFlags::empty()).expect("it is a child, not yet waited for");
            let limit = limit.try_into().expect("no test waits for centuries");
            let ended = &mut [PollFd::new(&process, PollFlags::IN)];
            retry_on_intr(|| poll(ended, Some(&limit))).expect("a process can be waited for");
        }
        let Some(status) = self.child.try_wait().expect("a child can be waited for") else {
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("{} did not end within {limit:?}\n{}\n{}", self.words, self.stdout(), self.stderr());
        };
        Run { stdout: self.stdout(), stderr: self.stderr(), code: code(status), words: self.words }
    }

    /// Kills it with -9, alone, and waits until it is gone.
    pub fn kill(mut self) -> Run {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("a child can be waited for");
        Run { stdout: self.stdout(), stderr: self.stderr(), code: code(status), words: self.words }
    }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// As in a shell: 128 plus the signal if one ended it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[derive(Clone, Debug)]
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    /// The exit code; 128 plus the signal if one ended it.
    pub code: i32,
    words: String,
}

impl Run {
    /// Fails the test, showing everything, unless it ended with this code.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        let Self { stdout, stderr, words, .. } = &self;
        assert_eq!(self.code, code, "exit code of {words}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        self
    }

    /// Standard output as the one JSON value that it must be.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}\n{}", self.words, self.stdout, self.stderr))
    }

    /// Standard output as JSON values, one a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.words))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Whether standard output has this line.
    pub fn has_line(&self, line: &str) -> bool {
        self.stdout.lines().any(|found| found == line)
    }
}
