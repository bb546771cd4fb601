//! A worktree, how git runs in it, and its caches.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::{GitPins, Oid, Operation};
use refrain_formats::mirror;
use refrain_proc::tool::{Cancel, Sweeper};

use crate::candidate::memory::Memory;
use crate::error::{GitError, OnPath};
use crate::plumbing::configuration::Configurations;
use crate::plumbing::disk::ScratchFolder;
use crate::plumbing::git::{Git, environment, path_outside, program, said};
use crate::plumbing::git_files;
use crate::{operation, version};
use refrain_forge::FROM_FILE;

#[derive(Debug)]
pub struct Repository {
    root: Utf8PathBuf,
    git_dir: Utf8PathBuf,
    common_dir: Utf8PathBuf,
    env: Vec<(OsString, OsString)>,
    /// The git program and its `PATH`, without the project's own folders; none if they need not be set.
    pub(crate) program: Option<PathBuf>,
    pub(crate) path: Option<OsString>,
    /// The programs that git may run; none before they are pinned.
    pins: Option<Arc<GitPins>>,
    /// Runs every git that runs programs of the user; none if no keeper is available.
    pub(crate) sweeper: Option<Sweeper>,
    /// The user's token for GitHub, which only a git that pushes or fetches gets, and only when it is needed.
    token: Option<(OsString, OsString)>,
    cancel: Option<Cancel>,
    limit: Option<Duration>,
    /// Git's configuration, here and in the other worktrees.
    pub(crate) configured: Arc<Mutex<Configurations>>,
    /// The folder of new objects, if it is not that of the repository, and that one.
    new_objects: Option<Arc<(ScratchFolder, Utf8PathBuf)>>,
    memory: Mutex<Memory>,
}

impl Repository {
    /// The worktree that contains `worktree`, with the user's environment for git; variables set by a surrounding git
    /// are ignored.
    /// Errors: [`GitError::NotARepository`] in a plain folder, [`GitError::Bare`] if there are no files,
    /// [`GitError::NotOurs`] if git does not trust the owner, [`GitError::Missing`] without a git program;
    /// [`GitError::Planted`] and [`GitError::OtherRoot`] if git would look elsewhere.
    pub fn open(worktree: &Utf8Path, env: &[(OsString, OsString)]) -> Result<Self, GitError> {
        Self::open_with(worktree, env, None)
    }

    /// The same, with a time limit for each answer of git.
    pub fn open_within(
        worktree: &Utf8Path,
        env: &[(OsString, OsString)],
        limit: Duration,
    ) -> Result<Self, GitError> {
        Self::open_with(worktree, env, Some(limit))
    }

    fn open_with(
        worktree: &Utf8Path,
        env: &[(OsString, OsString)],
        limit: Option<Duration>,
    ) -> Result<Self, GitError> {
        let (env, token) = (environment(env), token(env));
        let git = Git::new(worktree, &env).within(limit);
        let asked =
            ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir", "--git-common-dir"];
        worktree.symlink_metadata().on("look at", worktree)?;
        if worktree.as_str().contains('\n') {
            return Err(GitError::LineBreak(worktree.to_owned()));
        }
        git_files::check_above(worktree)?;
        let done = git.run(asked, &[])?;
        let answer = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            return Err(match said(&done) {
                _ if answer.starts_with("false") => GitError::Bare(worktree.to_owned()),
                said if said.contains("not a git repository") => {
                    GitError::NotARepository(worktree.to_owned())
                }
                said if said.contains("dubious ownership") => {
                    GitError::NotOurs { path: worktree.to_owned(), said }
                }
                said => GitError::Failed { command: "git rev-parse".into(), said },
            });
        }
        if answer.starts_with("false") {
            return Err(GitError::Bare(worktree.to_owned()));
        }
        let mut lines = answer.lines();
        let (Some("true"), Some(up), Some(git_dir), Some(common), None) =
            (lines.next(), lines.next(), lines.next(), lines.next(), lines.next())
        else {
            // One answer per line, unless a path has a line break: the git folder may be elsewhere.
            return Err(match answer.starts_with("true") {
                true => GitError::LineBreak(worktree.to_owned()),
                false => GitError::Answer { command: "rev-parse", answer },
            });
        };
        let root = worktree.join(up);
        let root =
            if up.is_empty() { worktree.to_owned() } else { root.canonicalize_utf8().on("find", &root)? };
        if !up.is_empty() && worktree.join(".git").symlink_metadata().is_ok_and(|it| it.is_file()) {
            return Err(GitError::OtherRoot { path: worktree.to_owned(), root });
        }
        let (common_dir, git_dir) = (worktree.join(common), git_dir.into());
        let (configured, memory) = (Arc::default(), Mutex::default());
        let (program, path) = outside(&env, &root, &common_dir);
        let (pins, sweeper, cancel, new_objects) = (None, None, None, None);
        Ok(Self {
            common_dir,
            git_dir,
            root,
            env,
            program,
            path,
            pins,
            sweeper,
            token,
            cancel,
            limit,
            configured,
            new_objects,
            memory,
        })
    }

    /// The same, but git runs only programs that equal their pins.
    #[must_use]
    pub fn with_pins(self, pins: Option<&GitPins>) -> Self {
        Self { pins: pins.map(|pins| Arc::new(pins.clone())), ..self }
    }

    /// The same, but a git that runs hooks, filters or a signing program is supervised, and all processes that it
    /// leaves running are ended with it.
    #[must_use]
    pub fn with_sweeper(self, sweeper: Option<Sweeper>) -> Self {
        Self { sweeper, ..self }
    }

    /// The same, which keeps new objects in a folder of its own in `parent`, as long as it lives: an agent at work can put a
    /// link to a file that it may not read in the place of one of its files, and reads what the repository has.
    pub fn with_private_objects(self, parent: &Utf8Path) -> Result<Self, GitError> {
        let private = (ScratchFolder::inside(parent)?, self.common_dir.join("objects"));
        Ok(Self { new_objects: Some(Arc::new(private)), ..self })
    }

    /// The folders with the objects that it finds.
    pub(crate) fn object_folders(&self) -> impl Iterator<Item = Utf8PathBuf> {
        let new = self.new_objects.as_deref().map(|(new, _)| new.path().to_owned());
        new.into_iter().chain([self.common_dir.join("objects")])
    }

    pub(crate) fn pins(&self) -> Option<&GitPins> {
        self.pins.as_deref()
    }

    /// The same, but every git command can be cancelled, together with a running hook, unless a request has its own
    /// `cancel`. An interrupted git command may be repeated.
    #[must_use]
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// The same, in another environment of the user's.
    #[must_use]
    pub fn in_env(self, env: &[(OsString, OsString)]) -> Self {
        let (env, token) = (environment(env), token(env));
        let configured = match configuring(&env).eq(configuring(&self.env)) {
            true => self.configured,
            false => Arc::default(),
        };
        let (program, path) = outside(&env, &self.root, &self.common_dir);
        Self { env, program, path, token, configured, ..self }
    }

    /// The same worktree for another user of it, without asking git again for its location, configuration or commits.
    /// What is staged in one is not known to the other.
    pub fn again(&self) -> Self {
        Self {
            root: self.root.clone(),
            git_dir: self.git_dir.clone(),
            common_dir: self.common_dir.clone(),
            env: self.env.clone(),
            program: self.program.clone(),
            path: self.path.clone(),
            pins: self.pins.clone(),
            sweeper: self.sweeper.clone(),
            token: self.token.clone(),
            cancel: self.cancel.clone(),
            limit: self.limit,
            configured: Arc::clone(&self.configured),
            new_objects: self.new_objects.clone(),
            memory: Mutex::default(),
        }
    }

    /// Another worktree of the same repository, whose git folder is already known.
    pub(crate) fn beside(&self, root: &Utf8Path, git_dir: Utf8PathBuf) -> Self {
        Self { root: root.to_owned(), git_dir, ..self.again() }
    }

    /// The same, guarded like another one: what its git runs, in which sandbox, and how it is cancelled.
    pub(crate) fn guarded_like(self, other: &Self) -> Self {
        let (pins, sweeper, cancel) = (other.pins.clone(), other.sweeper.clone(), other.cancel.clone());
        Self { pins, sweeper, cancel, ..self }
    }

    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The folders that an agent writes: Refrain takes no program of its own from there.
    pub fn folders(&self) -> Vec<&Utf8Path> {
        folders(&self.root, &self.common_dir)
    }

    /// The committer identity here: `Name <address>`.
    pub fn committer(&self) -> Result<String, GitError> {
        let said = self.git().text(["var", "GIT_COMMITTER_IDENT"], &[])?;
        // A time follows the address.
        Ok(said.rfind('>').map_or(said.as_str(), |end| &said[..=end]).to_owned())
    }

    /// The operation of git in progress in this worktree.
    pub fn operation(&self) -> Option<Operation> {
        operation::in_progress(&self.git_dir)
    }

    /// A stamp of a path: different content has a different stamp. None if there is no file or link.
    pub(crate) fn stamp(&self, path: &[u8]) -> Option<u64> {
        let meta = fs::symlink_metadata(self.on_disk(path)).ok().filter(|meta| !meta.is_dir())?;
        let mut hash = blake3::Hasher::new();
        for part in [meta.len(), meta.mtime().cast_unsigned(), meta.mtime_nsec().cast_unsigned()] {
            hash.update(&part.to_le_bytes());
        }
        hash.update(&meta.mode().to_le_bytes());
        hash.finalize().as_bytes().first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The absolute path of one of git's paths.
    pub(crate) fn on_disk(&self, path: &[u8]) -> std::path::PathBuf {
        self.root.as_std_path().join(std::ffi::OsStr::from_bytes(path))
    }

    /// Declares that nothing has run here since git's last look, which was a moment ago: the next tree, or commit,
    /// uses that state. If the head moved or a file that git showed has changed, git is asked all the same.
    pub fn is_still(&self) {
        self.memory().is_still = true;
    }

    /// Whether [`Self::is_still`] was called, and the head at the survey if nothing was changed. Both are cleared by
    /// this.
    pub(crate) fn last_look(&self) -> (bool, Option<Oid>) {
        let mut memory = self.memory();
        (std::mem::take(&mut memory.is_still), memory.clean.take())
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        // Every entry is correct or absent, even if a holder of the lock panicked.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a git that is too old for commits, candidates and worktrees.
    pub fn check_version(&self) -> Result<(), GitError> {
        version::check(Git::new(&self.root, &self.env).within(self.limit), self.program.as_deref())
    }

    pub(crate) fn git(&self) -> Git<'_> {
        let new_objects = self.new_objects.as_deref().map(|(new, old)| (new.path(), old.as_path()));
        let git = Git::new(&self.root, &self.env).until(self.cancel.as_ref()).within(self.limit);
        git.guarded_by(self).with_new_objects(new_objects)
    }

    /// The user's environment, adapted for git.
    pub(crate) fn env(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// The user's own token for GitHub.
    pub(crate) fn token(&self) -> Option<&(OsString, OsString)> {
        self.token.as_ref()
    }

    /// The folder of this worktree with its index and its operation in progress.
    pub fn git_dir(&self) -> &Utf8Path {
        &self.git_dir
    }

    /// The folder of all worktrees with branches, hooks and objects.
    pub fn common_dir(&self) -> &Utf8Path {
        &self.common_dir
    }
}

fn folders<'a>(root: &'a Utf8Path, common_dir: &'a Utf8Path) -> Vec<&'a Utf8Path> {
    [Some(root), common_dir.parent()].into_iter().flatten().collect()
}

/// The git program and a `PATH` for it, both outside the worktree and the git folder's parent.
fn outside(
    env: &[(OsString, OsString)],
    root: &Utf8Path,
    common_dir: &Utf8Path,
) -> (Option<PathBuf>, Option<OsString>) {
    let dirs = folders(root, common_dir);
    (program(env, &dirs), path_outside(env, &dirs))
}

/// The user's token, as passed by the engine.
fn token(env: &[(OsString, OsString)]) -> Option<(OsString, OsString)> {
    env.iter().rev().find(|(name, _)| name == FROM_FILE).cloned()
}

/// The variables that configure git or set the author, committer and time of a commit.
fn configuring(env: &[(OsString, OsString)]) -> impl Iterator<Item = &(OsString, OsString)> {
    let others = ["HOME", "XDG_CONFIG_HOME", "EMAIL", "TZ", "PATH"];
    env.iter().filter(move |(name, _)| {
        name.to_str().is_some_and(|name| name.starts_with("GIT_") || others.contains(&name))
    })
}

/// Whether a path is Refrain's own, which is ignored by its own `.gitignore` unless an agent took that away, or
/// mirrors a loop.
pub(crate) fn is_refrains(path: &[u8]) -> bool {
    path == b".refrain" || path.starts_with(b".refrain/") || mirror::is_mirror(path)
}
