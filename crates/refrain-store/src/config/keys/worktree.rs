//! Where the work is done, and what it may touch: `[git]`, `[worktrees]`, `[sandbox]`, `[protect]`.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use refrain_core::git::{self, CommitWhen, Template, Workflow};
use refrain_core::glob::PathGlob;
use refrain_core::sandbox::{Host, SandboxMode, SandboxSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::value_text::{self, Command, ValueText};

/// `[git]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Git {
    /// What is done after each iteration (`--git-workflow`).
    #[schemars(extend("default" = "none"))]
    pub workflow: Option<Workflow>,
    /// The message of a loop's commits.
    #[schemars(extend("default" = Template::COMMIT))]
    pub commit_template: Option<Template>,
    /// Which iterations are committed if there are required gates: "verified" or "each", which needs a branch of the loop's own.
    #[schemars(extend("default" = "verified"))]
    pub commit_when: Option<CommitWhen>,
    /// Work on a new branch.
    #[schemars(extend("default" = false))]
    pub create_branch: Option<bool>,
    /// The name of a new branch.
    #[schemars(extend("default" = Template::BRANCH))]
    pub branch_template: Option<Template>,
    /// Work in a worktree of its own.
    #[schemars(extend("default" = false))]
    pub worktree: Option<bool>,
    /// What such a worktree begins at: a branch, a tag, a commit.
    #[schemars(extend("default" = "HEAD"))]
    pub base: Option<String>,
    /// The largest file that is committed, in bytes or like "10MiB".
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>", extend("default" = git::largest_file()))]
    pub largest_file: Option<u64>,
    /// Files that may be committed though they look like secrets: patterns as in .gitignore.
    #[serde(deserialize_with = "value_text::globs")]
    #[schemars(with = "Option<Command>", extend("default" = []))]
    pub allow_secrets: Option<Vec<PathGlob>>,
}

/// `[worktrees]`: those of loops, and those that tasks work in one after the other, with what their tools keep in them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Worktrees {
    /// The largest size of a project's unused worktrees, in bytes or like "20GiB". Above it, files that git ignores
    /// are removed from those unused for longest, then those worktrees themselves; never one with work in it that
    /// is nowhere else.
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>", extend("default" = Worktrees::DISK_BUDGET))]
    pub disk_budget: Option<u64>,
    /// A shell command that prepares a new worktree before an agent works in it, such as "npm ci". It counts only in trusted
    /// configuration.
    pub setup: Option<String>,
}

impl Worktrees {
    /// How much room they may take unless configured: 20 GiB.
    pub const DISK_BUDGET: u64 = 20 << 30;

    /// How much room they may take, in bytes.
    pub fn disk_budget(&self) -> u64 {
        self.disk_budget.unwrap_or(Self::DISK_BUDGET)
    }
}

/// `[sandbox]`: of its keys a project's file may have `mode` alone, and only to ask for more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Sandbox {
    /// Whether agents and gates run in a sandbox (`--sandbox`): "on", "auto", "files" or "off".
    #[schemars(extend("default" = "off"))]
    pub mode: Option<SandboxMode>,
    /// Hosts that agents and gates may reach besides those of the agent's provider: NAME, NAME:PORT or
    /// NAME:PORT=ADDRESS.
    #[schemars(extend("default" = []))]
    pub hosts: Option<Vec<Host>>,
    /// Whether they may reach the registries of packages that lock files and your tools name when the loop starts.
    #[schemars(extend("default" = true))]
    pub registries: Option<bool>,
    /// Ports of the machine's own loopback address that they may reach.
    #[schemars(extend("default" = []))]
    pub localhost: Option<Vec<u16>>,
    /// Folders that they may write besides the worktree: absolute paths, or `~/`.
    #[schemars(with = "Option<Vec<String>>", extend("default" = []))]
    pub write: Option<Vec<Utf8PathBuf>>,
    /// Folders and files that they do not see, besides the usual ones: absolute paths, or `~/`.
    #[schemars(with = "Option<Vec<String>>", extend("default" = []))]
    pub hide: Option<Vec<Utf8PathBuf>>,
    /// How many processes one of them may have at a time.
    #[schemars(range(min = SandboxSpec::FEWEST_PROCESSES, max = 4_000_000), extend("default" = SandboxSpec::PROCESSES))]
    pub processes: Option<u32>,
    /// How much memory one of them may have, in bytes or like "8GiB"; needs a cgroup of your own.
    #[serde(deserialize_with = "value_text::bytes")]
    #[schemars(with = "Option<ValueText>")]
    pub memory: Option<u64>,
    /// How many CPUs one of them may use; needs a cgroup of your own.
    #[schemars(range(min = 1))]
    pub cpus: Option<NonZeroU32>,
}

/// `[protect]`: globs, seen from the top of the worktree.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct Protect {
    /// What neither changes, nor goes, nor comes (`--protect`).
    pub frozen: Vec<String>,
    /// What neither changes nor goes; new files are welcome (`--protect-existing`).
    pub existing: Vec<String>,
}
