//! The command that prepares a new worktree, once, before an agent works in it: `[worktrees] setup` of trusted
//! configuration. It runs under a supervisor, which ends every process that it leaves.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use camino::Utf8Path;
use refrain_core::git::SETUP_FAILED;
use refrain_git::{Cancel, Repository, Sweeper};
use refrain_proc::tool::{Tool, ToolError};
use refrain_store::write_nofollow;

use crate::chain;

pub(crate) const LONGEST: Duration = Duration::from_mins(30);
/// How much it may print, in bytes.
const MOST: usize = 16 << 20;
/// The file in the git folder of a worktree that has the command that prepared it. It goes with the worktree.
const DONE: &str = "refrain-setup";

pub(crate) struct WorktreeSetup<'a> {
    pub(crate) command: &'a str,
    pub(crate) repository: &'a Repository,
    /// The folder in the worktree that it runs in.
    pub(crate) dir: &'a Utf8Path,
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) sweeper: &'a Sweeper,
    pub(crate) cancel: Option<&'a Cancel>,
    pub(crate) log: &'a Utf8Path,
}

impl WorktreeSetup<'_> {
    /// Runs the command, unless it has prepared this worktree before.
    pub(crate) fn run(&self) -> Result<(), String> {
        let Self { command, repository, dir, env, sweeper, cancel, log } = self;
        let done = repository.git_dir().join(DONE);
        if refrain_files::read_regular(&done, MOST as u64).is_ok_and(|by| by == command.as_bytes()) {
            return Ok(());
        }
        let failed = |why: String| format!("{SETUP_FAILED}: {command}: {why}");
        // Both streams in their order.
        let script = format!("exec 2>&1\n{command}");
        let tool = Tool::own("sh", dir.as_std_path())
            .args(["-c", &script])
            .env(env)
            .swept_by(Some(sweeper))
            // It runs the project's code, which agents of earlier tasks may have written.
            .confined(true)
            .cancel(*cancel)
            .limit(LONGEST)
            .most(MOST);
        let ran = tool.run().map_err(|error| match error {
            ToolError::TimedOut { .. } => {
                failed(format!("it was not done after {} min", LONGEST.as_secs() / 60))
            }
            ToolError::Cancelled { .. } => failed("it was stopped".to_owned()),
            ToolError::TooMuch { most, .. } => failed(format!("it printed more than {} MiB", most >> 20)),
            error @ (ToolError::Missing { .. }
            | ToolError::NoFolder { .. }
            | ToolError::Failed { .. }
            | ToolError::Blocked { .. }
            | ToolError::Io { .. }) => failed(chain(&error)),
        })?;
        write_nofollow(log, &ran.stdout).map_err(|error| failed(chain(&error)))?;
        if !ran.status.success() {
            let how = match (ran.status.code(), ran.status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "no exit code".to_owned(),
            };
            return Err(failed(format!("{how}; {log} has what it printed")));
        }
        write_nofollow(&done, command.as_bytes()).map_err(|error| failed(chain(&error)))
    }
}
