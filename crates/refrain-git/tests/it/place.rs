//! A repository of a user, and its state as seen from outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::git::{Base, CommitReport, CommitResult, Oid, OmittedPath, SkipReason};
use refrain_core::glob::PathGlob;
use refrain_git::{Bounds, Cancel, CommitRequest, GitError, Repository};
use refrain_proc::tool::Tool;
use tempfile::TempDir;

/// The message of its commits, unless a test says another.
const MESSAGE: &str = "loop: iteration {iteration}";

pub(crate) struct TestRepository {
    _dir: TempDir,
    top: Utf8PathBuf,
    root: Utf8PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) allow_secrets: Vec<PathGlob>,
    pub(crate) message: &'static str,
}

/// Everything of the user's that must not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    files: BTreeMap<OsString, (u32, Vec<u8>)>,
    index: Vec<Vec<u8>>,
    stash: String,
}

impl TestRepository {
    /// A repository with the commit `Begin` on `main`, that has `README.md`, `src/a.rs` and `src/b.rs`.
    pub(crate) fn new() -> Self {
        let place = Self::unborn(&[]);
        place.write("README.md", "# A project\n");
        place.write("src/a.rs", "fn a() {}\n");
        place.write("src/b.rs", "fn b() {}\n");
        place.git(&["add", "."]);
        place.git(&["commit", "-qm", "Begin"]);
        place
    }

    pub(crate) fn unborn(init: &[&str]) -> Self {
        let dir =
            tempfile::Builder::new().prefix("refrain-git-").tempdir_in(testkit::scratch_folder()).unwrap();
        let top = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let root = top.join("project");
        for folder in [&root, &top.join("home"), &top.join("loop")] {
            fs::create_dir(folder).unwrap();
        }
        let path = std::env::vars_os().find(|(name, _)| name == "PATH").unwrap();
        let mut env = vec![path, ("HOME".into(), top.join("home").into_string().into())];
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CEILING_DIRECTORIES", top.as_str()),
            ("TZ", "UTC"),
            ("GNUPGHOME", "/nonexistent"),
        ] {
            env.push((name.into(), value.into()));
        }
        let place =
            Self { _dir: dir, top, root, env, cancel: None, allow_secrets: Vec::new(), message: MESSAGE };
        place.write_at(
            place.top.join("home/.gitconfig"),
            "[user]\nname = Test\nemail = test@localhost\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n",
        );
        place.git(&[&["init", "-q", "-b", "main"], init].concat());
        place
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    pub(crate) fn top(&self) -> &Utf8Path {
        &self.top
    }

    /// The same repository, seen from another worktree of it; the other must live as long.
    pub(crate) fn new_at(other: &Self, root: Utf8PathBuf) -> Self {
        let dir =
            tempfile::Builder::new().prefix("refrain-git-").tempdir_in(testkit::scratch_folder()).unwrap();
        Self {
            _dir: dir,
            top: other.top.clone(),
            root,
            env: other.env.clone(),
            cancel: None,
            allow_secrets: Vec::new(),
            message: MESSAGE,
        }
    }

    pub(crate) fn make_executable(&self, path: &str) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.as_std_path().join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        self.write_at(self.root.as_std_path().join(path), text);
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own folder")]
    pub(crate) fn write_at(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = path.as_ref();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.git_path("hooks").join(name);
        self.write_at(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes every git die that writes `zz.txt`, as long as there is a file `die` beside the repository.
    pub(crate) fn has_git_die(&self) {
        let die = self.top.join("die");
        self.write_at(&die, "");
        self.git(&["config", "filter.die.smudge", &format!("test -e {die} && kill -9 $PPID; cat")]);
        self.git(&["config", "filter.die.clean", "cat"]);
    }

    pub(crate) fn lets_git_live(&self) {
        fs::remove_file(self.top.join("die")).unwrap();
    }

    pub(crate) fn git_path(&self, what: &str) -> Utf8PathBuf {
        self.root.join(self.git(&["rev-parse", "--git-path", what]))
    }

    /// Runs the user's, or the agent's, git.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let printed = self.tool(args).output().unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned()
    }

    /// The same, but it may fail.
    pub(crate) fn try_git(&self, args: &[&str]) {
        self.tool(args).run().unwrap();
    }

    fn tool(&self, args: &[&str]) -> Tool<'_> {
        Tool::new("git", self.root.as_std_path()).env(&self.env).args(args)
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::open(&self.root, &self.env).unwrap()
    }

    pub(crate) fn survey(&self) -> Base {
        self.repository().survey().unwrap()
    }

    pub(crate) fn head(&self) -> Oid {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Commits an iteration of the loop; the last look was at the base.
    pub(crate) fn try_commit(&self, base: &Base, iteration: u32) -> Result<CommitReport, GitError> {
        self.commit_since(base, base.head.as_ref(), iteration)
    }

    pub(crate) fn commit_since(
        &self,
        base: &Base,
        last_head: Option<&Oid>,
        iteration: u32,
    ) -> Result<CommitReport, GitError> {
        self.commit_with(&self.repository(), base, last_head, iteration)
    }

    pub(crate) fn commit_with(
        &self,
        repository: &Repository,
        base: &Base,
        last_head: Option<&Oid>,
        iteration: u32,
    ) -> Result<CommitReport, GitError> {
        repository.commit(CommitRequest {
            base,
            last_head,
            id: &id(),
            iteration,
            message: &self.message.replace("{iteration}", &iteration.to_string()),
            index: &self.top.join("loop/index"),
            bounds: Bounds {
                largest_file: 1 << 20,
                allow_secrets: &self.allow_secrets,
                cancel: self.cancel.as_ref(),
            },
        })
    }

    #[track_caller]
    pub(crate) fn commit(&self, base: &Base, iteration: u32) -> CommitReport {
        self.try_commit(base, iteration).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Everything of the user's: all files, what is staged of the given paths, and the stash.
    pub(crate) fn snapshot(&self, paths: &[&str]) -> Snapshot {
        let mut files = BTreeMap::new();
        collect(self.root.as_std_path(), Path::new(""), &mut files);
        let is_theirs = |record: &&[u8]| paths.iter().any(|path| record.ends_with(path.as_bytes()));
        let staged = self.tool(&["ls-files", "-z", "--stage", "-v"]).output().unwrap();
        let index = staged.split(|byte| *byte == 0).filter(is_theirs).map(<[u8]>::to_vec).collect();
        Snapshot { files, index, stash: self.git(&["stash", "list"]) }
    }

    pub(crate) fn committed(&self, commit: &str) -> Vec<String> {
        let text = self.git(&["show", "--format=", "--name-status", "--no-renames", commit]);
        text.lines().map(|line| line.replace('\t', " ")).collect()
    }

    /// `git status --short`, a line each.
    pub(crate) fn status(&self) -> Vec<String> {
        let text = self.git(&["status", "--short", "-uall", "--no-renames"]);
        text.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn id() -> LoopId {
    "the-loop".parse().unwrap()
}

#[track_caller]
pub(crate) fn made(report: &CommitReport) -> Oid {
    match &report.result {
        CommitResult::Made { commit, .. } => commit.clone(),
        CommitResult::Skipped(skipped) => panic!("skipped: {skipped:?}"),
    }
}

#[track_caller]
pub(crate) fn skipped(report: &CommitReport) -> SkipReason {
    match &report.result {
        CommitResult::Made { commit, .. } => panic!("made: {commit}"),
        CommitResult::Skipped(skipped) => skipped.clone(),
    }
}

pub(crate) fn left_out(report: &CommitReport) -> Vec<String> {
    let say = |OmittedPath { path, why }: &OmittedPath| format!("{path}: {why}");
    report.left_out.iter().map(say).collect()
}

fn collect(root: &Path, below: &Path, files: &mut BTreeMap<OsString, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        let path = root.join(&name);
        let meta = fs::symlink_metadata(&path).unwrap();
        if name == Path::new(".git") {
            continue;
        }
        if meta.is_dir() {
            collect(root, &name, files);
        } else if meta.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            files.insert(name.into_os_string(), (meta.mode(), target.into_os_string().into_vec()));
        } else if meta.is_file() {
            files.insert(name.into_os_string(), (meta.mode(), fs::read(&path).unwrap()));
        } else {
            files.insert(name.into_os_string(), (meta.mode(), path.as_os_str().as_bytes().to_vec()));
        }
    }
}
