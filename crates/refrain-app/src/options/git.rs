//! The options of `start` that say what a loop does with git.

use clap::builder::TypedValueParser;
use refrain_core::git::{Checkout, CommitWhen, GitSpec, Template, Workflow, largest_file};
use refrain_engine::config::keys::Git;

use super::heading;
use super::kinds::words;
use crate::error::RequestError;

// What the loop does with git.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = heading::PLACE)]
pub struct GitArgs {
    /// What to do with its changes after each iteration [default: none]
    #[arg(long, value_name = "WORKFLOW", value_parser = workflow())]
    pub git_workflow: Option<Workflow>,
    /// The same as --git-workflow commit
    #[arg(long, visible_alias = "commit-only", conflicts_with = "git_workflow")]
    pub auto_commit: bool,
    /// The same as --git-workflow pr
    #[arg(long, conflicts_with_all = ["git_workflow", "auto_commit"])]
    pub open_pr: bool,
    /// The same as --git-workflow pr-merge
    #[arg(long, conflicts_with_all = ["git_workflow", "auto_commit", "open_pr"])]
    pub pr_and_merge: bool,
    /// The message of its commits, with {loop}, {iteration}, {max}, {summary} and {timestamp} [default: {summary}, which is the
    /// agent's summary of the iteration, else the goal]
    #[arg(long, value_name = "TEMPLATE")]
    pub commit_template: Option<Template>,
    /// Which iterations are committed if there are required gates; `each` commits on the loop's own branch [default: verified]
    #[arg(long, value_name = "WHEN", value_parser = commits(), hide_possible_values = true)]
    pub commit_when: Option<CommitWhen>,
    /// Work on a new branch, from what is checked out
    #[arg(long)]
    pub create_branch: bool,
    /// Work on the branch that is checked out, whatever is configured
    #[arg(long, conflicts_with = "create_branch")]
    pub no_create_branch: bool,
    /// The name of its new branch, with {loop} and {timestamp} [default: loop/{timestamp}-{loop}]
    #[arg(long, value_name = "TEMPLATE")]
    pub branch_template: Option<Template>,
    /// Work in a worktree of its own, on a new branch; the worktree is removed at the end if nothing is lost
    #[arg(long)]
    pub worktree: bool,
    /// Work where it is started, whatever is configured
    #[arg(long, conflicts_with = "worktree")]
    pub no_worktree: bool,
    /// Where that branch begins [default: what is checked out]
    #[arg(long, value_name = "REVISION")]
    pub base: Option<String>,
    /// Let other loops work in the same worktree at the same time; commits may then mix their changes
    #[arg(long, conflicts_with = "worktree")]
    pub share_worktree: bool,
}

fn commits() -> impl TypedValueParser<Value = CommitWhen> {
    words([
        ("verified", "Those whose work the gates verified", CommitWhen::Verified),
        ("each", "Each", CommitWhen::Each),
    ])
}

fn workflow() -> impl TypedValueParser<Value = Workflow> {
    words([
        ("none", "Nothing", Workflow::None),
        (
            "commit",
            "A commit of what it changed; never of what was changed before it, secrets, or large files",
            Workflow::Commit,
        ),
        ("push", "The same, and each is pushed; nothing is ever forced", Workflow::Push),
        (
            "pr",
            "The same, on a branch of its own with a pull request; a draft until verified, and its checks must pass too",
            Workflow::Pr,
        ),
        ("pr-merge", "The same, and merged when the checks of its last commit are green", Workflow::PrMerge),
    ])
}

impl GitArgs {
    /// What the loop does with git: what the options leave out, the configuration says. The names of its branch and its
    /// worktree are filled in at its start.
    pub fn spec(&self, config: &Git, is_shared: bool) -> Result<GitSpec, RequestError> {
        let workflow = match self.git_workflow {
            Some(workflow) => workflow,
            None if self.auto_commit => Workflow::Commit,
            None if self.open_pr => Workflow::Pr,
            None if self.pr_and_merge => Workflow::PrMerge,
            None => config.workflow.unwrap_or_default(),
        };
        let apart = self.worktree || !self.no_worktree && config.worktree.unwrap_or_default();
        // A pull request needs a branch that is not the one that it is for.
        let on_branch = self.create_branch
            || !self.no_create_branch && (workflow.requests() || config.create_branch.unwrap_or_default());
        let branch = self.branch_template.as_ref().or(config.branch_template.as_ref());
        let branch = branch.map_or_else(|| Template::BRANCH.to_owned(), ToString::to_string);
        // There is no iteration yet where a branch is made.
        if (apart || on_branch)
            && ["{iteration}", "{max}", "{summary}"].iter().any(|name| branch.contains(name))
        {
            let error = format!("a branch cannot be named {branch:?}: accepted: {{loop}} and {{timestamp}}");
            return Err(RequestError::usage(error));
        }
        let from = self.base.clone().or_else(|| config.base.clone()).unwrap_or_else(|| "HEAD".to_owned());
        let checkout = match (apart, on_branch) {
            (true, _) => Checkout::Worktree { branch, from },
            (false, true) => Checkout::Branch(branch),
            (false, false) => Checkout::AsIs,
        };
        let commit_when = self.commit_when.or(config.commit_when).unwrap_or_default();
        // Unverified commits stay here, on a branch that is the loop's.
        if commit_when == CommitWhen::Each && (checkout == Checkout::AsIs || workflow != Workflow::Commit) {
            let error = "--commit-when each needs --git-workflow commit and a branch of the loop's own";
            return Err(RequestError::usage(error).hint("add --worktree or --create-branch"));
        }
        let template = self.commit_template.as_ref().or(config.commit_template.as_ref());
        Ok(GitSpec {
            workflow,
            checkout,
            // The service finds out what is checked out.
            onto: None,
            shared: self.share_worktree || is_shared,
            // The service finds out whether there is a repository.
            candidates: false,
            before: None,
            pins: None,
            commit_template: template.cloned().unwrap_or_default(),
            commit_when,
            setup: None,
            largest_file: config.largest_file.unwrap_or_else(largest_file),
            allow_secrets: config.allow_secrets.clone().unwrap_or_default(),
        })
    }
}
