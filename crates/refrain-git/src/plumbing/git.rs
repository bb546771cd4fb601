//! Running git: where, with which settings, and within which limits.

mod command_line;
mod environment;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;
use refrain_core::text::printable;
use refrain_proc::program::in_path;
use refrain_proc::tool::{Cancel, FileLimits, Sweeper, Tool, ToolOutput, loader};

use crate::error::GitError;
use crate::plumbing::blocking_file;
use crate::plumbing::overrides::Overrides;
use command_line::CommandLine;
use environment::{AUTHOR, in_variables};
pub(crate) use environment::{Author, NO_LAZY_FETCH, environment, path_outside, program, quoted};

/// Overrides of the user's configuration: each only if it would change the answer or disturb the user.
const SETTINGS: &[&str] = &[
    // Paths are printed unquoted.
    "-c",
    "core.quotePath=false",
    // An iteration would pay for maintenance; the user's next git does it.
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=0",
    // A file system monitor that misses an event would hide a change; the private index has no monitor anyway.
    "-c",
    "core.fsmonitor=false",
    // An agent can set back a file's modification time, but not its inode change time.
    "-c",
    "core.trustCtime=true",
    "-c",
    "core.checkStat=default",
    // An agent can write resolutions of conflicts into the git folder.
    "-c",
    "rerere.enabled=false",
    // A split private index would leave its shared part in the repository.
    "-c",
    "core.splitIndex=false",
    // An agent can write a graph that gives commits another tree and other parents.
    "-c",
    "core.commitGraph=false",
    // Attributes come from files, never from a tree that an agent names.
    "-c",
    "attr.tree=",
    // Nothing that an agent can write is run: no program as a protocol, no signature unless it is requested, no
    // prompt, and nothing inside of a nested repository.
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "core.alternateRefsCommand=:",
    "-c",
    "core.askPass=",
    "-c",
    "log.showSignature=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.recurseSubmodules=false",
];

const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// How long a git may take that runs no program of the user and connects nowhere, unless it has another limit.
const LONGEST: Duration = Duration::from_mins(30);

/// How long a git may take that compares all paths with the patterns of `.gitignore`, which an agent can make very slow.
const LONGEST_LOOK: Duration = Duration::from_mins(10);

/// How long git may take to say where its programs are.
const ASKING: Duration = Duration::from_secs(10);

/// A git that takes longer may wait for a FIFO.
const DOUBTFUL: Duration = Duration::from_secs(2);

/// A program, and the folder of the others that the environment names.
type ProgramKey = (PathBuf, Option<OsString>);

/// The programs that git consists of; none if it needs others, as a script does.
fn own_programs(env: &[(OsString, OsString)], program: Option<&Path>) -> Option<Vec<PathBuf>> {
    static KNOWN: Mutex<BTreeMap<ProgramKey, Option<Vec<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let program = program.map(Path::to_owned).or_else(|| in_path("git", env))?.canonicalize().ok()?;
    let set = env.iter().rev().find(|(name, _)| name == "GIT_EXEC_PATH").map(|(_, path)| path.clone());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.entry((program.clone(), set)).or_insert_with(|| {
        let run: Vec<_> = loader(&program)?.into_iter().chain([program.clone()]).collect();
        let limits = FileLimits { written: Vec::new(), run: run.clone() };
        let asked = Tool::new("git", Path::new("/")).env(env).at(Some(program)).args(["--exec-path"]);
        let printed = asked.limit(ASKING).held_to(Some(limits)).output().ok()?;
        let folder = Path::new(OsStr::from_bytes(printed.trim_ascii_end()));
        Some(run.into_iter().chain([folder.to_owned()]).collect())
    });
    found.clone()
}

pub(crate) trait Guard: std::fmt::Debug + Sync {
    fn program(&self) -> Option<&Path>;
    /// The `PATH` without the project's own folders, if it contained some.
    fn path(&self) -> Option<&OsString>;
    /// Runs every git that runs programs of the user.
    fn sweeper(&self) -> Option<&Sweeper>;
    fn overrides(&self, git: Git<'_>) -> Result<Overrides, GitError>;
    /// The git folder that all worktrees share, and that of this worktree.
    fn git_folders(&self) -> [&Utf8Path; 2];
}

/// Where the filters of the user run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filtering {
    /// In the work, and in the sandbox of the loop if it has one.
    InWork,
    /// In a folder without the work, with the rights of the user. One that fails is an error.
    Apart,
    /// Nowhere: files have the content of their objects.
    Off,
}

/// The folders in which git finds objects, and to the first of which it adds new ones.
#[derive(Clone, Copy, Debug)]
enum ObjectPlace<'a> {
    /// This one only; a file lists the commits without history in it.
    Alone { folder: &'a Utf8Path, shallow: &'a Utf8Path },
    /// This one, and that of the repository.
    Apart { folder: &'a Utf8Path, others: &'a Utf8Path },
}

impl<'a> ObjectPlace<'a> {
    fn folder(self) -> &'a Utf8Path {
        match self {
            Self::Alone { folder, .. } | Self::Apart { folder, .. } => folder,
        }
    }
}

/// What a git runs of the user's programs.
#[derive(Clone, Copy, Debug)]
struct Programs {
    hooks: bool,
    /// A hook, a filter, a merge driver, what signs, or what connects to a remote.
    any: bool,
    /// In the sandbox of the loop, if it has one.
    confined: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Git<'a> {
    dir: &'a Utf8Path,
    env: &'a [(OsString, OsString)],
    index: Option<&'a Utf8Path>,
    /// None if they are in the repository.
    objects: Option<ObjectPlace<'a>>,
    /// The git folder to use for a folder without a `.git` of its own.
    git_dir: Option<&'a Utf8Path>,
    cancel: Option<&'a Cancel>,
    author: Option<&'a Author>,
    limit: Option<Duration>,
    guard: Option<&'a dyn Guard>,
    runs_hooks: bool,
    filtering: Filtering,
    /// No setting of the user is overridden: it is only read.
    is_bare: bool,
    /// It is not ended in the middle.
    is_final: bool,
    /// It gets no missing objects from a remote.
    is_offline: bool,
    /// The limit of its output, in bytes, if it is not the usual one.
    most: Option<usize>,
    /// Settings for this run only.
    settings: &'a [(String, String)],
}

impl<'a> Git<'a> {
    /// Git in `dir`, in an environment that [`environment`] made.
    pub(crate) fn new(dir: &'a Utf8Path, env: &'a [(OsString, OsString)]) -> Self {
        Self {
            dir,
            env,
            index: None,
            objects: None,
            git_dir: None,
            limit: None,
            cancel: None,
            author: None,
            guard: None,
            runs_hooks: false,
            filtering: Filtering::InWork,
            is_bare: false,
            is_final: false,
            is_offline: false,
            most: None,
            settings: &[],
        }
    }

    /// The same in a repository: it runs only what equals its pins.
    pub(crate) fn guarded_by(self, guard: &'a dyn Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// The same, which only reads the configuration as it is.
    pub(crate) fn bare(self) -> Self {
        Self { guard: None, is_bare: true, ..self }
    }

    /// The same with the user's hooks, if they equal their pins.
    pub(crate) fn with_hooks(self) -> Self {
        Self { runs_hooks: true, ..self }
    }

    /// The same in a folder that has nothing of the work but attributes.
    pub(crate) fn with_filters_apart(self) -> Self {
        Self { filtering: Filtering::Apart, ..self }
    }

    /// The same without filters.
    pub(crate) fn without_filters(self) -> Self {
        Self { filtering: Filtering::Off, ..self }
    }

    /// The same, which gets no missing objects from a remote.
    pub(crate) fn without_fetching(self) -> Self {
        Self { is_offline: true, ..self }
    }

    /// The same with another limit of its output, in bytes.
    pub(crate) fn printing_up_to(self, most: u64) -> Self {
        Self { most: usize::try_from(most).ok(), ..self }
    }

    pub(crate) fn with_settings(self, settings: &'a [(String, String)]) -> Self {
        Self { settings, ..self }
    }

    /// The same in another environment that [`environment`] made.
    pub(crate) fn in_env(self, env: &'a [(OsString, OsString)]) -> Self {
        Self { env, ..self }
    }

    /// The same for the files in `folder`, which is not registered as a worktree of this git folder.
    pub(crate) fn for_files_in(self, folder: &'a Utf8Path, git_dir: &'a Utf8Path) -> Self {
        Self { dir: folder, git_dir: Some(git_dir), ..self }
    }

    pub(crate) fn inside(self, dir: &'a Utf8Path) -> Self {
        Self { dir, ..self }
    }

    /// The same with another index than the user's.
    pub(crate) fn with_index(self, index: &'a Utf8Path) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The same with the objects in this folder alone, and a file that lists the commits without history.
    pub(crate) fn with_objects(self, folder: &'a Utf8Path, shallow: &'a Utf8Path) -> Self {
        Self { objects: Some(ObjectPlace::Alone { folder, shallow }), ..self }
    }

    /// The same, with a folder for new objects, if there is one, beside that of the repository.
    pub(crate) fn with_new_objects(self, folders: Option<(&'a Utf8Path, &'a Utf8Path)>) -> Self {
        Self { objects: folders.map(|(folder, others)| ObjectPlace::Apart { folder, others }), ..self }
    }

    /// The same for commits with this author; the user's own identity if none.
    pub(crate) fn by(self, author: Option<&'a Author>) -> Self {
        Self { author, ..self }
    }

    /// The same with this cancellation; an earlier one stays if none is given.
    pub(crate) fn until(self, cancel: Option<&'a Cancel>) -> Self {
        Self { cancel: cancel.or(self.cancel), ..self }
    }

    /// The same, with a time limit for each answer.
    pub(crate) fn within(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }

    /// The same, without cancellation, also by a signal.
    pub(crate) fn to_its_end(self) -> Self {
        Self { cancel: None, is_final: true, ..self }
    }

    fn tool<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<Tool<'a>, GitError> {
        let command = CommandLine::new(args);
        let overrides = match self.guard {
            Some(guard) => guard.overrides(self)?,
            None => Overrides::default(),
        };
        let runs = self.programs(&command, &overrides);
        let (program, path) = match self.guard {
            Some(guard) => (guard.program().map(Path::to_owned), guard.path().cloned()),
            None => (program(self.env, &[self.dir]), path_outside(self.env, &[self.dir])),
        };
        let mut tool = Tool::new("git", self.dir.as_std_path()).env(self.env).at(program.clone());
        // A hook of the user gets the user's own `PATH`.
        if let Some(path) = path.filter(|_| !runs.hooks) {
            tool = tool.with("PATH", path);
        }
        let is_look = command.is_look();
        let limit = self.limit.or((!runs.any).then_some(if is_look { LONGEST_LOOK } else { LONGEST }));
        if let Some(limit) = limit {
            tool = tool.limit(limit).bounded(!runs.any);
        }
        let fetches = overrides.fetches && !self.is_offline && !overrides.variables.contains(&NO_LAZY_FETCH);
        let limits = match runs.any || fetches {
            true => None,
            false => self.file_limits(&command, program.as_deref(), &overrides.link_targets),
        };
        let sweeper = self.guard.and_then(Guard::sweeper).filter(|_| runs.any);
        // A filter or a merge driver in a sandbox could give verified objects another content.
        let writes_objects = command.is(&["merge-tree", "write-tree"]);
        tool = tool.swept_by(sweeper).confined(runs.confined).writing_objects(writes_objects).held_to(limits);
        tool = tool.input(input).cancel(self.cancel).outlasting_signals(self.is_final);
        if let Some(most) = self.most {
            tool = tool.most(most);
        }
        tool = self.configured(tool, overrides, &command, runs.hooks);
        let is_in_sandbox = runs.confined && sweeper.is_some_and(|sweeper| sweeper.confinement.is_some());
        Ok(self.placed(tool, is_in_sandbox).args(command.args()))
    }

    /// The programs of the user that this command runs.
    fn programs(self, command: &CommandLine, overrides: &Overrides) -> Programs {
        let mut hooks = self.runs_hooks && overrides.allows_hooks;
        hooks &= overrides.has_reference_hook || !command.is(&["update-ref"]);
        // It signs.
        let is_commit = command.is(&["commit-tree"]);
        let any = (hooks || is_commit) && overrides.has_programs
            || self.filtering != Filtering::Off && !overrides.filters.is_empty() && command.filters()
            || command.connects();
        // A push needs the user's logins, and a signature the user's keys: neither runs what an agent can change.
        let confined = !command.connects() && !is_commit && self.filtering != Filtering::Apart;
        Programs { hooks, any, confined }
    }

    /// The tool with the settings of this git, those of the user that are overridden, and who makes its commits.
    fn configured(
        self,
        mut tool: Tool<'a>,
        mut overrides: Overrides,
        command: &CommandLine,
        runs_hooks: bool,
    ) -> Tool<'a> {
        if !self.is_bare {
            tool = tool.args(SETTINGS);
        }
        if !self.is_bare && !runs_hooks {
            tool = tool.args(NO_HOOKS);
            overrides.settings.append(&mut overrides.without_hooks);
        }
        match self.filtering {
            Filtering::InWork => {}
            Filtering::Apart => overrides.require_filters(true),
            Filtering::Off => overrides.drop_filters(),
        }
        overrides.settings.extend_from_slice(self.settings);
        if self.is_offline {
            overrides.variables.push(NO_LAZY_FETCH);
        }
        if overrides.variables.contains(&NO_LAZY_FETCH) && !runs_hooks && !command.connects() {
            // A git before 2.45 ignores the other variable.
            overrides.variables.push(("GIT_ALLOW_PROTOCOL", "none"));
        }
        let author = self.author.into_iter().flat_map(|author| AUTHOR.iter().zip(&author.0));
        let tool = overrides.variables.iter().fold(tool, |tool, (name, value)| tool.with(name, value));
        let settings = in_variables(&overrides.settings, self.env).into_iter();
        let tool = settings.fold(tool, |tool, (name, value)| tool.with(name, value));
        author.fold(tool, |tool, (name, value)| tool.with(name, value))
    }

    /// The tool with this git's folder, index and objects. A sandbox reads only what the agent reads, and does not write
    /// another folder.
    fn placed(self, mut tool: Tool<'a>, is_in_sandbox: bool) -> Tool<'a> {
        if let Some(git_dir) = self.git_dir {
            tool = tool.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", self.dir);
        }
        let (objects, shallow) = match self.objects {
            Some(ObjectPlace::Alone { folder, shallow }) => (Some(folder), Some(shallow)),
            Some(ObjectPlace::Apart { folder, others }) if !is_in_sandbox => {
                let others = OsString::from_vec(quoted(others.as_str().as_bytes()));
                tool = tool.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", others);
                (Some(folder), None)
            }
            Some(ObjectPlace::Apart { .. }) | None => (None, None),
        };
        let paths = [
            ("GIT_INDEX_FILE", self.index),
            ("GIT_OBJECT_DIRECTORY", objects),
            ("GIT_SHALLOW_FILE", shallow),
        ];
        let paths = paths.into_iter().filter_map(|(name, path)| Some((name, path?)));
        paths.fold(tool, |tool, (name, path)| tool.with(name, path))
    }

    /// The limits of a git in a known repository, if it runs no program of the user: an agent that writes the git folder can
    /// put links there, and programs into a configuration that was read before.
    fn file_limits(
        self,
        command: &CommandLine,
        program: Option<&Path>,
        link_targets: &[Utf8PathBuf],
    ) -> Option<FileLimits> {
        let [common, own] = self.guard.map(Guard::git_folders)?;
        // An agent can replace a folder in the git folder.
        let own =
            [Some(own), self.git_dir].into_iter().flatten().filter(|folder| !folder.starts_with(common));
        let index = self.index.and_then(Utf8Path::parent);
        let objects = self.objects.map(ObjectPlace::folder);
        let links = link_targets
            .iter()
            .map(|target| if target.is_dir() { target } else { target.parent().unwrap_or(target) });
        let all = [common, self.dir].into_iter().chain(own).chain(index).chain(objects).chain(links);
        let written = all.map(Utf8Path::as_std_path).chain(command.around_worktree());
        let written = written.map(Path::to_owned).collect();
        Some(FileLimits { written, run: own_programs(self.env, program)? })
    }

    /// What git printed.
    /// Errors: [`GitError`], also if it says no.
    pub(crate) fn output<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<Vec<u8>, GitError> {
        let look = || self.waits_for();
        Ok(self.tool(args, input)?.lookout(DOUBTFUL, &look).output()?)
    }

    /// Git's output as text, without the line break at its end.
    pub(crate) fn text<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<String, GitError> {
        let printed = self.output(args, input)?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
    }

    /// The result of git, with any exit code.
    pub(crate) fn run<S: AsRef<OsStr>>(
        self,
        args: impl IntoIterator<Item = S>,
        input: &'a [u8],
    ) -> Result<ToolOutput, GitError> {
        let look = || self.waits_for();
        Ok(self.tool(args, input)?.lookout(DOUBTFUL, &look).run()?)
    }

    /// What git waits for, printable.
    fn waits_for(self) -> Option<String> {
        let git_folders = self.guard.map(Guard::git_folders);
        blocking_file::find(self.dir, git_folders.as_ref().map_or(&[], |it| it.as_slice()))
    }
}

pub(crate) fn oid(command: &'static str, answer: &str) -> Result<Oid, GitError> {
    answer.trim().parse().map_err(|_| GitError::Answer { command, answer: answer.to_owned() })
}

/// How much of what git or a hook said is kept, in bytes.
const SAID: usize = 2 << 10;

/// The end of the output of git or a hook, printable.
pub(crate) fn said(done: &ToolOutput) -> String {
    let text = [done.stdout.as_slice(), done.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text);
    let text = printable(text.trim());
    if let (true, Some(signal)) = (text.is_empty(), done.status.signal()) {
        return format!("signal {signal} ended it");
    }
    let mut from = text.len().saturating_sub(SAID);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_that_was_killed_is_not_without_a_reason() {
        let ended = |raw, stderr: &str| {
            let status = std::process::ExitStatus::from_raw(raw);
            said(&ToolOutput { status, stdout: Vec::new(), stderr: stderr.into() })
        };
        assert_eq!(ended(15, ""), "signal 15 ended it");
        assert_eq!((ended(15, "fatal: x"), ended(256, "")), ("fatal: x".to_owned(), String::new()));
    }
}
