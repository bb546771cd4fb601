//! Running git: the folder, the environment, and which user settings are overridden.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;
use refrain_core::text::printable;
use refrain_proc::program::{folders_outside, in_path, in_path_outside};
use refrain_proc::tool::{Cancel, FileLimits, Sweeper, Tool, ToolOutput, loader};

use crate::error::GitError;
use crate::plumbing::blocking_file;
use crate::plumbing::overrides::Overrides;
use refrain_forge::FROM_FILE;

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

/// The variables with which a surrounding git (a hook, `git rebase --exec`) would redirect ours to its own
/// repository: the output of `git rev-parse --local-env-vars`, without the configuration of a `git -c`; and the one
/// that names a tree with other attributes.
const BENDING: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Variables set for every git: no prompts, no editor, no optional locks.
const SET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANGUAGE", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // Replacements by `git replace` are ignored.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

/// The commands that run filters or merge drivers, if any exist: those that write files or compare them, and those that write
/// an index, which compares files whose times are not old enough.
const FILTERING: &[&str] = &[
    "checkout-index",
    "commit",
    "diff-files",
    "ls-files",
    "merge",
    "merge-tree",
    "read-tree",
    "reset",
    "status",
    "switch",
    "update-index",
    "write-tree",
];

/// The commands that connect to a remote. A remote that is a local folder has hooks and a configuration that an agent
/// can write, and their processes are children of these commands.
const TALKING: &[&str] = &["fetch", "ls-remote", "push"];

/// How long a git may take that runs no program of the user and connects nowhere, unless it has another limit.
const LONGEST: Duration = Duration::from_mins(30);

/// How long a git may take that compares all paths with the patterns of `.gitignore`, which an agent can make very slow.
const LONGEST_LOOK: Duration = Duration::from_mins(10);

/// The words of such a git.
const LOOKING: &[&str] = &["status", "check-ignore", "--others"];

/// How long git may take to say where its programs are.
const ASKING: Duration = Duration::from_secs(10);

/// A git that takes longer may wait for a FIFO.
const DOUBTFUL: Duration = Duration::from_secs(2);

pub(crate) const NO_LAZY_FETCH: (&str, &str) = ("GIT_NO_LAZY_FETCH", "1");

fn command_of(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word {
            "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
    None
}

/// Derives the environment for git from the user's.
pub(crate) fn environment(person: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        !BENDING.contains(&name)
            && name != FROM_FILE
            && !name.starts_with("GIT_TRACE")
            && !SET.iter().any(|(set, _)| *set == name)
    };
    let mut env: Vec<_> = person.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    env.extend(SET.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    env
}

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

/// The author of a commit: name, address, and date, as in [`AUTHOR`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author(pub(crate) [OsString; 3]);

/// The variables that set the author of a commit (git-commit-tree(1)).
const AUTHOR: [&str; 3] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

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

    /// The same without filters.
    pub(crate) fn without_filters(self) -> Self {
        Self { filtering: Filtering::Off, ..self }
    }

    /// The same with filters that run with the rights of the user: its folder has nothing that an agent wrote but attributes.
    pub(crate) fn with_filters_apart(self) -> Self {
        Self { filtering: Filtering::Apart, ..self }
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
        let (program, path) = match self.guard {
            Some(guard) => (guard.program().map(Path::to_owned), guard.path().cloned()),
            None => (program(self.env, &[self.dir]), path_outside(self.env, &[self.dir])),
        };
        let mut tool = Tool::new("git", self.dir.as_std_path()).env(self.env).at(program.clone());
        let mut overrides = match self.guard {
            Some(guard) => guard.overrides(self)?,
            None => Overrides::default(),
        };
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        // A hook of the user gets the user's own `PATH`.
        let mut runs_hooks = self.runs_hooks && overrides.allows_hooks;
        runs_hooks &= overrides.has_reference_hook || command_of(&args) != Some("update-ref");
        if let Some(path) = path.filter(|_| !runs_hooks) {
            tool = tool.with("PATH", path);
        }
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
        tool = overrides.variables.iter().fold(tool, |tool, (name, value)| tool.with(name, value));
        for (name, value) in in_variables(&overrides.settings, self.env) {
            tool = tool.with(name, value);
        }
        let mut args = args;
        let compares = args.iter().position(|word| word == "diff-tree" || word == "diff-index");
        if let Some(at) = compares {
            // Otherwise git reads .gitmodules of the worktree, which can hide a change, and end git by a wrong value.
            args.insert(at + 1, "--ignore-submodules=none".into());
        }
        let is_one_of = |commands: &[&str]| command_of(&args).is_some_and(|it| commands.contains(&it));
        if overrides.variables.contains(&NO_LAZY_FETCH) && !runs_hooks && !is_one_of(TALKING) {
            // A git before 2.45 ignores the other variable.
            tool = tool.with("GIT_ALLOW_PROTOCOL", "none");
        }
        let runs_programs = (runs_hooks && overrides.has_programs)
            || (!overrides.filters.is_empty()
                && (is_one_of(FILTERING) || args.iter().any(|arg| arg == "--filters")))
            || is_one_of(TALKING)
            || command_of(&args) == Some("commit-tree") && overrides.has_programs;
        let is_look = args.iter().any(|word| LOOKING.iter().any(|look| word == look));
        let longest = if is_look { LONGEST_LOOK } else { LONGEST };
        let limit = self.limit.or((!runs_programs).then_some(longest));
        if let Some(limit) = limit {
            tool = tool.limit(limit).bounded(!runs_programs);
        }
        let sweeper = self.guard.and_then(Guard::sweeper).filter(|_| runs_programs);
        // A push needs the user's logins, and a signature the user's keys: neither runs what an agent can change.
        let is_confined = !is_one_of(TALKING)
            && command_of(&args) != Some("commit-tree")
            && self.filtering != Filtering::Apart;
        let fetches = overrides.fetches && !overrides.variables.contains(&NO_LAZY_FETCH);
        let limits = if runs_programs || fetches {
            None
        } else {
            self.file_limits(&args, program.as_deref(), overrides.link_targets)
        };
        let tool = tool.args(args).input(input).cancel(self.cancel).outlasting_signals(self.is_final);
        let mut tool = tool.swept_by(sweeper).confined(is_confined).held_to(limits);
        if let Some(most) = self.most {
            tool = tool.most(most);
        }
        if let Some(git_dir) = self.git_dir {
            tool = tool.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", self.dir);
        }
        // A sandbox reads only what the agent reads, and does not write another folder.
        let is_in_sandbox = is_confined && sweeper.is_some_and(|sweeper| sweeper.confinement.is_some());
        let (objects, shallow) = match self.objects {
            Some(ObjectPlace::Alone { folder, shallow }) => (Some(folder), Some(shallow)),
            Some(ObjectPlace::Apart { folder, others }) if !is_in_sandbox => {
                let others = OsString::from_vec(quoted(others.as_str().as_bytes()));
                tool = tool.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", others);
                (Some(folder), None)
            }
            Some(ObjectPlace::Apart { .. }) | None => (None, None),
        };
        let of_this_run = [
            ("GIT_INDEX_FILE", self.index),
            ("GIT_OBJECT_DIRECTORY", objects),
            ("GIT_SHALLOW_FILE", shallow),
        ];
        let of_this_run = of_this_run.into_iter().filter_map(|(name, path)| Some((name, path?)));
        let tool = of_this_run.fold(tool, |tool, (name, path)| tool.with(name, path));
        let author = self.author.into_iter().flat_map(|author| AUTHOR.iter().zip(&author.0));
        Ok(author.fold(tool, |tool, (name, value)| tool.with(name, value)))
    }

    /// The limits of a git in a known repository, if it runs no program of the user: an agent that writes the git folder can
    /// put links there, and programs into a configuration that was read before.
    fn file_limits(
        self,
        args: &[OsString],
        program: Option<&Path>,
        link_targets: Vec<Utf8PathBuf>,
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
        // A worktree that git makes or removes.
        let worktree = (command_of(args) == Some("worktree")).then_some(args).into_iter().flatten();
        let worktree = worktree.map(Path::new).filter(|path| path.is_absolute());
        let around = worktree.filter_map(|path| path.ancestors().skip(1).find(|above| above.is_dir()));
        let written = all.map(|folder| folder.as_std_path().to_owned()).chain(around.map(Path::to_owned));
        Some(FileLimits { written: written.collect(), run: own_programs(self.env, program)? })
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

/// The path of a `git` program outside `dirs`, which an agent can write to; none if there is none.
pub(crate) fn program(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> Option<PathBuf> {
    in_path_outside("git", env, dirs)
}

/// The environment's `PATH` without folders in `dirs`; none if it contains none of them.
pub(crate) fn path_outside(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> Option<OsString> {
    let (outside, is_all) = folders_outside(env, dirs);
    if is_all { None } else { std::env::join_paths(outside).ok() }
}

/// A path as git reads it in double quotes.
pub(crate) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' | 0..=31 | 127 => quoted.extend(format!("\\{byte:03o}").into_bytes()),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// The variables that pass these settings to git (git(1), `GIT_CONFIG_COUNT`), before those that are already in the
/// environment.
fn in_variables(settings: &[(String, String)], env: &[(OsString, OsString)]) -> Vec<(String, OsString)> {
    if settings.is_empty() {
        return Vec::new();
    }
    let variable = |name: &str| env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
    let count: usize =
        variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    let theirs = (0..count).filter_map(|at| {
        Some((
            variable(&format!("GIT_CONFIG_KEY_{at}"))?.clone(),
            variable(&format!("GIT_CONFIG_VALUE_{at}"))?.clone(),
        ))
    });
    let ours = settings.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let all: Vec<_> = ours.chain(theirs).collect();
    let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), all.len().to_string().into())];
    for (at, (key, value)) in all.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{at}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{at}"), value));
    }
    variables
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
    fn a_surrounding_git_does_not_bend_ours() {
        let person = [("GIT_DIR", "/x"), ("GIT_INDEX_FILE", "/y"), ("LC_ALL", "de_DE"), ("HOME", "/h")];
        let person = person.map(|(name, value)| (name.into(), value.into()));
        let env = environment(&person);
        let value =
            |name: &str| env.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        assert!(value("GIT_DIR").is_empty() && value("GIT_INDEX_FILE").is_empty());
        assert_eq!((value("LC_ALL"), value("HOME")), (vec!["C".into()], vec!["/h".into()]));
    }

    #[test]
    fn settings_stand_before_those_of_the_environment() {
        let env: Vec<(OsString, OsString)> =
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_VALUE_0", "theirs")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        let told = in_variables(&[("a.b".to_owned(), "ours".to_owned())], &env);
        let value = |name: &str| told.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(value("GIT_CONFIG_COUNT"), "2");
        assert_eq!(
            (value("GIT_CONFIG_VALUE_0"), value("GIT_CONFIG_VALUE_1")),
            ("ours".into(), "theirs".into())
        );
        assert!(in_variables(&[], &env).is_empty());
    }

    #[test]
    fn no_git_of_the_project_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join("git")).unwrap();
        let env = [("PATH".into(), format!("{root}:.:/nonexistent").into())];
        assert_eq!(program(&env, &[root]), None);
        assert_eq!(path_outside(&env, &[root]), Some("/nonexistent".into()));
    }
}
