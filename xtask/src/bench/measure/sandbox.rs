//! A fresh git repository with its own home for one run, and what can be read from it afterwards.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::measure::tools::Tools;
use crate::failure::{Doing, Result};
use crate::files::{below, fresh_folder, make_folder, write};
use crate::process::{capture, command};

/// The id that every measured loop is given.
pub(crate) const LOOP: &str = "bench";

/// The number of files in the repository beside those that the agent changes.
const FILES: u32 = 100;

/// It outlives its run, until all have been measured ([`Tools`]).
pub(crate) struct Sandbox {
    base: PathBuf,
    path: std::ffi::OsString,
}

impl Sandbox {
    /// A repository with one commit.
    pub(crate) fn new(tools: &Tools) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base = tools.scratch.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        fresh_folder(&base)?;
        let mut path = tools.folder.clone().into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let sandbox = Self { base, path };
        make_folder(&sandbox.home())?;
        make_folder(&sandbox.repository())?;
        write(
            &sandbox.repository().join("PROMPT.md"),
            "Do the next item of the plan. When all is finished say so as agreed.\n",
        )?;
        write(&sandbox.counter(), "")?;
        for file in 0..FILES {
            write(&sandbox.repository().join(format!("file{file}.txt")), "one of many\n")?;
        }
        for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "init"]] {
            capture(sandbox.command("git").args(words))?;
        }
        Ok(sandbox)
    }

    /// A command that runs in the repository, with nothing of this machine's user in its environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = command(program);
        command.current_dir(self.repository()).env_clear().envs([
            ("PATH", self.path.clone()),
            ("HOME", self.home().into()),
            ("TMPDIR", self.home().into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_AUTHOR_NAME", "n".into()),
            ("GIT_AUTHOR_EMAIL", "a@b.c".into()),
            ("GIT_COMMITTER_NAME", "n".into()),
            ("GIT_COMMITTER_EMAIL", "a@b.c".into()),
            ("MOCK_COUNTER", self.counter().into()),
            ("MOCK_PIDFILE", self.note("pids").into()),
            ("MOCK_EXITFILE", self.note("exits").into()),
        ]);
        command
    }

    /// One byte for each run of the agent: its work, without which a loop would be stuck.
    fn counter(&self) -> PathBuf {
        self.repository().join("runs.txt")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.base.join("repo")
    }

    fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// A file beside the repository, through which the harness and the mock agent communicate.
    pub(crate) fn note(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// How often the agent was started.
    pub(crate) fn agent_runs(&self) -> u64 {
        fs::metadata(self.counter()).map_or(0, |file| file.len())
    }

    /// The journal of the measured loop; empty before there is one.
    pub(crate) fn journal(&self) -> Vec<u8> {
        fs::read(self.loop_folder().join("journal.jsonl")).unwrap_or_default()
    }

    /// How many events of a type the journal holds.
    pub(crate) fn events(&self, kind: &str) -> usize {
        let name = format!("\"type\":\"{kind}\"");
        memchr::memmem::find_iter(&self.journal(), name.as_bytes()).count()
    }

    /// How many bytes of the agent's standard output were kept, by Refrain or by the floor.
    pub(crate) fn output_kept(&self) -> Result<u64> {
        let mut bytes = 0;
        for folder in [self.loop_folder(), self.repository().join(".floor")] {
            for path in below(&folder)? {
                if path.file_name().is_some_and(|name| name == "output.log") {
                    bytes += fs::metadata(&path).doing(format!("look at {}", path.display()))?.len();
                }
            }
        }
        Ok(bytes)
    }

    /// Removes large files.
    pub(crate) fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.base).doing(format!("remove {}", self.base.display()))
    }

    fn loop_folder(&self) -> PathBuf {
        self.repository().join(".git/refrain/loops").join(LOOP)
    }
}
