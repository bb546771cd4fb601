//! The places of all data. Paths are made here and nowhere else.

use std::io::{BufRead, BufReader};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::GateName;
use refrain_core::{AttemptId, LoopId};
use refrain_files::{Folder, IfThere, open_regular, read_text, split};

use crate::{DiskError, OnPath};

pub(crate) const JOURNAL: &str = "journal.jsonl";

/// The start of the name of each file that another process put in the journal's place.
pub(crate) const FOREIGN: &str = "foreign-";

pub(crate) const RUNNER_LOCK: &str = "runner.lock";

pub(crate) const DOORBELL: &str = "doorbell";

/// The name of the folder of its requests there.
const INBOX: &str = "inbox";

/// The name of the folder of its attempts there.
const ITERATIONS: &str = "iterations";

/// The name of the folder of gates' logs in that of an attempt.
const GATES: &str = "gates";

/// The name of what a detached runner would have said there.
const RUNNER_LOG: &str = "runner.log";

const INDEX: &str = "index";

/// The name of the pool among the worktrees of loops. No loop's name has such a sign.
pub(crate) const POOL: &str = "_pool";

/// A project: the repository (its main worktree), else the folder; and where Refrain keeps its data on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub root: Utf8PathBuf,
    /// The checkout that it was found from: the main worktree, a linked one, or the folder.
    pub worktree: Utf8PathBuf,
    /// Refrain's data, out of reach of `git clean`, `git stash` and `git add`.
    pub data: Utf8PathBuf,
}

impl Project {
    /// The project that `dir` lies in. Read from the files that git itself reads, because `status` and hooks must not
    /// wait for a git process (1.2 ms, `perf.md` section 5).
    pub fn find(dir: &Utf8Path) -> Result<Self, DiskError> {
        let dir = dir.canonicalize_utf8().on("find the folder", dir)?;
        for folder in dir.ancestors() {
            let dot_git = folder.join(".git");
            // Also of a git folder that an agent broke, the loops are known.
            if dot_git.join("HEAD").metadata().is_ok_and(|meta| !meta.is_dir()) {
                // Where it is a link, that is how the user has it.
                let data = dot_git.canonicalize_utf8().on("find the git folder", &dot_git)?.join("refrain");
                return Ok(Self { root: folder.to_owned(), worktree: folder.to_owned(), data });
            }
            if dot_git.is_file() {
                return Self::of_linked_worktree(folder, &dot_git);
            }
        }
        Ok(Self { data: dir.join(".refrain/data"), worktree: dir.clone(), root: dir })
    }

    /// Whether it is in a repository of git, and no plain folder.
    pub fn is_repository(&self) -> bool {
        self.data.parent().is_some_and(|git| git.join("HEAD").is_file())
    }

    /// A linked worktree names its own git folder in `.git`, and that one names the common folder in `commondir`.
    fn of_linked_worktree(folder: &Utf8Path, dot_git: &Utf8Path) -> Result<Self, DiskError> {
        let text = read_text(dot_git).on("read", dot_git)?;
        let git_dir = folder.join(text.trim().trim_start_matches("gitdir:").trim());
        let common = match read_text(&git_dir.join("commondir")) {
            Ok(common) => git_dir.join(common.trim()),
            // A submodule, or a repository with a separate git folder: it is its own project.
            Err(_) => git_dir,
        };
        let common = common.canonicalize_utf8().on("find the git folder", &common)?;
        let root = match (common.file_name(), common.parent()) {
            (Some(".git"), Some(main)) => main.to_owned(),
            _ => folder.to_owned(),
        };
        Ok(Self { root, worktree: folder.to_owned(), data: common.join("refrain") })
    }

    /// The folder of one loop, whether it exists or not.
    pub fn loop_dir(&self, id: &LoopId) -> LoopDir {
        LoopDir(self.loops().join(id.as_str()))
    }

    /// The folder of one plan, whether it exists or not: what it shares with a loop's (journal, locks, inbox, doorbell)
    /// lies in it likewise.
    pub fn plan_dir(&self, id: &LoopId) -> LoopDir {
        LoopDir(self.data.join("plans").join(id.as_str()))
    }

    /// Every loop that exists, by id: one whose journal has begun, or is damaged.
    /// Errors: [`DiskError`] if the folder cannot be read; a missing one is no error, there are just no loops.
    pub fn loop_dirs(&self) -> Result<Vec<LoopDir>, DiskError> {
        dirs(&self.loops())
    }

    pub fn plan_dirs(&self) -> Result<Vec<LoopDir>, DiskError> {
        dirs(&self.data.join("plans"))
    }
    pub fn loops(&self) -> Utf8PathBuf {
        self.data.join("loops")
    }

    /// A loop's own worktree: in the user's state home and never inside a project, where tools that look upwards would
    /// find the main worktree (design.md section 5).
    pub fn own_worktree(&self, state_home: &Utf8Path, id: &LoopId) -> Utf8PathBuf {
        state_home.join("worktrees").join(self.own_name()).join(id.as_str())
    }

    /// The folder of the numbered worktrees for tasks, beside those of loops; no loop can have its name.
    pub fn pool(&self, state_home: &Utf8Path) -> Utf8PathBuf {
        state_home.join("worktrees").join(self.own_name()).join(POOL)
    }

    /// The folder of clean checkouts, outside the project for the same reason.
    pub fn checkouts(&self, state_home: &Utf8Path) -> Utf8PathBuf {
        state_home.join("checkouts").join(self.own_name())
    }

    /// A name that differs from those of all other projects of the user.
    pub fn own_name(&self) -> String {
        let hash = blake3::hash(self.root.as_str().as_bytes()).to_hex();
        format!("{}-{}", self.root.file_name().unwrap_or("project"), &hash[..8])
    }

    /// The folder of notes on which session drives which loop.
    pub fn sessions(&self) -> Utf8PathBuf {
        self.data.join("sessions")
    }

    pub fn archive(&self) -> Utf8PathBuf {
        self.data.join("archive")
    }

    pub fn plan_archive(&self) -> Utf8PathBuf {
        self.data.join("plan-archive")
    }
}

fn dirs(folder: &Utf8Path) -> Result<Vec<LoopDir>, DiskError> {
    let entries = folder.read_dir_utf8().if_there().on("read", folder)?.into_iter().flatten();
    let mut dirs: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().parse::<LoopId>().is_ok())
        .map(|entry| LoopDir(entry.path().to_owned()))
        .filter(LoopDir::exists)
        .collect();
    dirs.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(dirs)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDir(pub Utf8PathBuf);

impl LoopDir {
    pub fn journal(&self) -> Utf8PathBuf {
        self.0.join(JOURNAL)
    }

    pub fn runner_lock(&self) -> Utf8PathBuf {
        self.0.join(RUNNER_LOCK)
    }

    pub fn append_lock(&self) -> Utf8PathBuf {
        self.0.join("append.lock")
    }

    pub fn inbox(&self) -> Utf8PathBuf {
        self.0.join(INBOX)
    }

    pub fn doorbell(&self) -> Utf8PathBuf {
        self.0.join(DOORBELL)
    }

    pub fn setup_log(&self) -> Utf8PathBuf {
        self.0.join("setup.log")
    }

    /// Git's index for the loop's commits: the last commit's, with its cache of file states.
    pub fn index(&self) -> Utf8PathBuf {
        self.0.join(INDEX)
    }

    /// The agent's notes, kept from a worktree that was removed.
    pub fn state_file(&self) -> Utf8PathBuf {
        self.0.join("state.md")
    }

    /// Up to where a webhook got the notices of the loop.
    pub fn webhook(&self) -> Utf8PathBuf {
        self.0.join("webhook.json")
    }

    pub fn slack(&self) -> Utf8PathBuf {
        self.0.join("slack.json")
    }

    /// What a detached runner would have said on a terminal.
    pub fn runner_log(&self) -> Utf8PathBuf {
        self.0.join(RUNNER_LOG)
    }

    pub fn iterations(&self) -> Utf8PathBuf {
        self.0.join(ITERATIONS)
    }

    pub fn attempt(&self, id: AttemptId) -> AttemptDir {
        AttemptDir(self.iterations().join(id.dir_name()))
    }

    /// Removes links from the folder of the loop, and from that of an attempt, and anything else in the place of one of
    /// its folders. An agent can put them there. What is missing then is made again by its writer. A link in the place
    /// of the journal stays: the journal's writer puts it aside as `foreign-N`, records that, and opens neither.
    /// Errors: [`DiskError`] if something of it stays, or the folder of all loops is reached through a link.
    pub fn remove_links(&self, of: Option<AttemptId>) -> Result<(), DiskError> {
        self.reclaim(of).on("remove the links in", &self.0)
    }

    fn reclaim(&self, of: Option<AttemptId>) -> std::io::Result<()> {
        let (above, name) = split(&self.0)?;
        let Some(above) = Folder::open(above).if_there()? else { return Ok(()) };
        let Some(folder) = above.reclaim(name)? else { return Ok(()) };
        folder.remove_links(|name| name == JOURNAL.as_bytes() || name.starts_with(FOREIGN.as_bytes()))?;
        folder.reclaim(INBOX)?;
        let iterations = folder.reclaim(ITERATIONS)?;
        let (Some(iterations), Some(of)) = (iterations, of) else { return Ok(()) };
        let Some(attempt) = iterations.reclaim(&of.dir_name())? else { return Ok(()) };
        attempt.remove_links(|_| false)?;
        match attempt.reclaim(GATES)? {
            Some(gates) => gates.remove_links(|_| false),
            None => Ok(()),
        }
    }

    /// Whether there is a loop, whole or damaged: a journal with a first complete line, or files that only a loop
    /// leaves.
    pub fn exists(&self) -> bool {
        self.has_first_line() || self.has_remains()
    }

    /// Whether files are there that are made only after the first line of the journal is on disk: without that line the
    /// loop is damaged. A `start` that was killed in its first write leaves none of them, and no loop.
    pub fn has_remains(&self) -> bool {
        let made_later = [ITERATIONS, DOORBELL, RUNNER_LOG, INDEX];
        self.0.is_dir() && made_later.iter().any(|name| self.0.join(name).symlink_metadata().is_ok())
    }

    fn has_first_line(&self) -> bool {
        let mut line = Vec::new();
        let read =
            open_regular(&self.journal()).and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
        read.is_ok() && line.ends_with(b"\n")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptDir(pub Utf8PathBuf);

impl AttemptDir {
    pub fn prompt(&self) -> Utf8PathBuf {
        self.0.join("prompt.md")
    }

    /// Its standard output: a message, or a stream of events.
    pub fn stdout(&self, streams: bool) -> Utf8PathBuf {
        self.0.join(if streams { "stream.jsonl" } else { "output.log" })
    }

    pub fn last_message(&self) -> Utf8PathBuf {
        self.0.join("final.md")
    }

    /// What a gate printed after it, in its `run`-th run there.
    pub fn gate(&self, name: &GateName, run: u32) -> Utf8PathBuf {
        self.0.join(GATES).join(match run {
            1 => format!("{name}.log"),
            again => format!("{name}.{again}.log"),
        })
    }

    /// Changes of protected paths, as `git diff` prints them; there is no file without any.
    pub fn touched(&self) -> Utf8PathBuf {
        self.0.join("touched.diff")
    }

    /// What the checks printed that failed after it, or what both sides of a conflict with the remote did.
    pub fn outside(&self) -> Utf8PathBuf {
        self.0.join("outside.log")
    }

    /// What a critic printed after it.
    pub fn critique(&self) -> Utf8PathBuf {
        self.0.join("critique.log")
    }

    /// What it printed on standard error; there is no file if it printed nothing.
    pub fn stderr(&self) -> Utf8PathBuf {
        self.0.join("stderr.log")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: &Utf8Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::write_atomic(path, text.as_bytes()).unwrap();
    }

    #[test]
    fn a_project_is_the_repository_even_from_a_linked_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        let main = dir.join("main");
        write(&main.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&main.join(".git/worktrees/side/commondir"), "../..\n");
        write(&dir.join("side/.git"), &format!("gitdir: {main}/.git/worktrees/side\n"));
        fs::create_dir_all(dir.join("side/src")).unwrap();
        fs::create_dir_all(dir.join("plain")).unwrap();

        let expected =
            Project { root: main.clone(), worktree: main.clone(), data: main.join(".git/refrain") };
        assert_eq!(Project::find(&main).unwrap(), expected);
        let expected = Project { worktree: dir.join("side"), ..expected };
        assert_eq!(Project::find(&dir.join("side/src")).unwrap(), expected);
        let plain = Project::find(&dir.join("plain")).unwrap();
        assert_eq!(plain.data, dir.join("plain/.refrain/data"));
        assert!(Project::find(&dir.join("missing")).is_err());
    }
}
