//! Builds what a benchmark needs: the program under test, the floor, the mock agent and the launcher that measures.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Doing, Result, fail};
use crate::files::{fresh_folder, make_folder};
use crate::process::{capture, cargo, command, environment, succeed};
use crate::workspace::Workspace;

pub(crate) struct Tools {
    /// First in the PATH of every run: holds `mock_agent`, and the same program as `claude` for the shell loop.
    pub(crate) folder: PathBuf,
    pub(crate) meas: PathBuf,
    pub(crate) refrain: PathBuf,
    pub(crate) floor: PathBuf,
    /// Reads a folder of JSON files: the floor of a list.
    pub(crate) parse: PathBuf,
    /// The folder of the workspace's programs and of the examples of its libraries, which measure what no command
    /// line can.
    built: PathBuf,
    pub(crate) strace: Option<PathBuf>,
    /// Where sandboxes are made: below the target folder, because /tmp may be memory, on which a sync costs nothing.
    /// Nothing small is removed before all has been measured: for minutes after a file was deleted, ext4 checks before
    /// each new one whether its place is free for long enough, and hundreds of deletions doubled the CPU of the
    /// following runs.
    pub(crate) scratch: PathBuf,
    /// Held for the life of the run: two at once would measure each other, and share the scratch folder.
    _alone: File,
}

impl Tools {
    /// Builds everything at once and with the features of the tests: any other selection would compile dependencies
    /// anew. A smoke run uses the tests' build; only a measuring run needs an optimised program. `REFRAIN_BIN` names
    /// another binary to be measured instead of the workspace's own.
    pub(crate) fn prepare(workspace: &Workspace, smoke: bool) -> Result<Self> {
        let base = workspace.target.join("xtask-bench");
        let (folder, scratch) = (base.join("tools"), base.join("runs"));
        make_folder(&folder)?;
        let alone = alone(&base.join("lock"))?;
        fresh_folder(&scratch)?;

        let other = environment("REFRAIN_BIN").map(PathBuf::from);
        let profile = if smoke { "dev" } else { "dist" };
        eprintln!("bench: building the programs, profile {profile}");
        succeed(cargo().current_dir(&workspace.root).args([
            "build",
            "--workspace",
            "--bins",
            "--examples",
            "--quiet",
            "--profile",
            profile,
        ]))?;
        let built = workspace.target.join(if smoke { "debug" } else { profile });
        let refrain = match other {
            Some(path) => fs::canonicalize(&path).doing(format!("find REFRAIN_BIN={}", path.display()))?,
            None => built.join("refrain"),
        };

        let sources = workspace.root.join("xtask/bench");
        let meas = compile(&sources.join("meas.c"), &folder)?;
        let agent = compile(&sources.join("mock_agent.c"), &folder)?;
        fs::copy(&agent, folder.join("claude")).doing("copy the mock agent to the name `claude`")?;
        let strace = in_path("strace");
        if strace.is_none() {
            eprintln!("bench: strace is not installed; what only it can count is skipped");
        }
        let [floor, parse] = ["bench_floor", "bench_parse"].map(|name| built.join(name));
        Ok(Self { folder, meas, refrain, floor, parse, built, strace, scratch, _alone: alone })
    }

    /// An example of one of the libraries.
    pub(crate) fn example(&self, name: &str) -> Command {
        command(self.example_path(name))
    }

    pub(crate) fn example_path(&self, name: &str) -> PathBuf {
        self.built.join("examples").join(name)
    }

    /// A program that measures by itself.
    pub(crate) fn program(&self, name: &str) -> Command {
        command(self.built.join(name))
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        // The next run removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// Waits for any other run below the same target folder.
fn alone(path: &Path) -> Result<File> {
    let lock = File::create(path).doing(format!("create {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => return Ok(lock),
        Err(TryLockError::WouldBlock) => {
            eprintln!("bench: waiting for another run that holds {}", path.display())
        }
        Err(TryLockError::Error(error)) => return fail(format!("lock {}: {error}", path.display())),
    }
    lock.lock().doing(format!("lock {}", path.display()))?;
    Ok(lock)
}

/// Compiles one C file; static where the C library allows, because a static agent starts twice as fast and its start
/// is in every figure.
fn compile(source: &Path, folder: &Path) -> Result<PathBuf> {
    let Some(compiler) = in_path("cc").or_else(|| in_path("gcc")) else {
        return fail("no C compiler: the mock agent needs `cc` (Debian: gcc and libc6-dev)");
    };
    let program = folder.join(source.file_stem().unwrap_or_default());
    let build = |options: &[&str]| {
        capture(
            command(&compiler)
                .args(["-O2", "-Wall", "-Wextra"])
                .args(options)
                .arg("-o")
                .arg(&program)
                .arg(source),
        )
    };
    if build(&["-static"]).is_err() {
        eprintln!(
            "bench: no static C library; {} is linked dynamically and starts more slowly",
            source.display()
        );
        build(&[])?;
    }
    Ok(program)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = environment("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}
