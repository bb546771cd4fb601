//! Pushes the branch of work that was given up. Git never prompts, nothing is forced, and no secret that the agent
//! committed is pushed.

use std::ffi::OsString;
use std::time::Duration;

use refrain_core::event::PushReport;
use refrain_core::git::Oid;
use refrain_proc::tool::{ToolError, ToolOutput};

use crate::candidate::{Bounds, Rules};
use crate::commit::history::{screen_commits, screen_messages, unscreened};
use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::{Git, said};
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::publish::Upstream;
use crate::publish::refusal::{Refusal, of_transport};
use crate::repository::Repository;
use refrain_forge::Token;
use refrain_secrets as secrets;

const LONGEST: Duration = Duration::from_secs(60);

/// Options that keep git from asking for a password, besides [`Repository::env_of_push`].
pub(crate) const WITHOUT_PROMPTS: &[&str] = &["-c", "core.askPass=", "-c", "credential.interactive=false"];

/// The branch to push, and the rules for scanning it first.
#[derive(Clone, Copy, Debug)]
pub struct PushRequest<'a> {
    /// The branch, without `refs/heads/`. Its last commit was scanned when it was made.
    pub branch: &'a str,
    /// The head before the loop: later commits are the loop's and the agent's. None if there was no commit.
    pub since: Option<&'a Oid>,
    pub bounds: Bounds<'a>,
}

impl Repository {
    /// Pushes a branch to the pinned remote, which is that of the checked-out branch; none without a remote. The time
    /// limit is a minute. If the agent committed a suspected secret, nothing is pushed: it is still only local, and
    /// the user can handle it.
    pub fn push_branch(&self, request: PushRequest<'_>) -> Result<Option<PushReport>, GitError> {
        let checked_out = self.current_branch()?.unwrap_or_default();
        let Some(upstream) = self.upstream(&checked_out)? else { return Ok(None) };
        let error = match self.try_push(&upstream, request) {
            Ok(error) => error,
            Err(GitError::Cancelled) => return Err(GitError::Cancelled),
            Err(GitError::Tool(ToolError::TimedOut { limit, .. })) => {
                Some(format!("it took longer than {} s", limit.as_secs()))
            }
            Err(other) => Some(other.to_string()),
        };
        Ok(Some(PushReport { remote: upstream.remote, error }))
    }

    /// Why it is not pushed; none if it is.
    fn try_push(&self, upstream: &Upstream, request: PushRequest<'_>) -> Result<Option<String>, GitError> {
        let remote = &upstream.remote;
        let refname = format!("refs/heads/{}", request.branch);
        let PushRequest { since, bounds, .. } = request;
        let new =
            [format!("{refname}^@")].into_iter().chain(since.map(|since| format!("^{since}"))).collect();
        let rules = bounds.rules(since);
        let found = match exposed_name(request.branch) {
            Some(found) => Some(found),
            None => self.exposed_at(upstream, new, rules, bounds.cancel)?,
        };
        if let Some(secret) = found {
            let next = format!("look at it, and git push {remote} {} once it may be seen", request.branch);
            return Ok(Some(format!("{secret}; {next}")));
        }
        let head = self.branch_head(request.branch)?;
        if self.is_confined()
            && let Some(head) = &head
        {
            let asked = self.ask_pre_push(upstream, (&refname, head), (&refname, None), bounds.cancel)?;
            if let Err(said) = asked {
                return Ok(Some(format!("a hook declined the push: {said}")));
            }
        }
        let destination = self.destination(upstream)?;
        let push = [
            "push",
            "--quiet",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--",
            &destination.name,
            &format!("{refname}:{refname}"),
        ];
        let done = self.known_to(&upstream.url, |env| {
            let pushing = self.git().until(bounds.cancel).within(Some(LONGEST)).in_env(env);
            let pushing = self.with_hooks_outside(pushing).with_settings(&destination.settings);
            pushing.run(WITHOUT_PROMPTS.iter().copied().chain(push), &[])
        })?;
        if !done.status.success() {
            return Ok(Some(said(&done)));
        }
        if let Some(head) = head {
            self.track(&destination, request.branch, &head);
        }
        Ok(None)
    }

    /// Lets git connect to the remote at `url` with the user's own login, or else with the token.
    pub(crate) fn known_to(
        &self,
        url: &str,
        run: impl Fn(&[(OsString, OsString)]) -> Result<ToolOutput, GitError>,
    ) -> Result<ToolOutput, GitError> {
        let env = self.env_of_push(self.git())?;
        let done = run(&env)?;
        // Forges report a repository without access as missing.
        let is_stranger = !done.status.success()
            && matches!(of_transport(said(&done)), Refusal::NoPermission { .. } | Refusal::NoRemote { .. });
        let known: Vec<_> = env.iter().chain(self.token()).cloned().collect();
        match is_stranger.then(|| Token::for_git(url, &env, &known)).flatten() {
            Some(env) => run(&env),
            None => Ok(done),
        }
    }

    /// An environment in which nothing prompts: a prompt would wait for ever.
    fn env_of_push(&self, git: Git<'_>) -> Result<Vec<(OsString, OsString)>, GitError> {
        const ASKING: [&str; 3] = ["GIT_ASKPASS", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE"];
        let mut env: Vec<_> = self.env().to_vec();
        env.retain(|(name, _)| !ASKING.iter().any(|asking| name == asking));
        env.push(("GCM_INTERACTIVE".into(), "never".into()));
        let variable =
            |wanted: &str| env.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let command = match variable("GIT_SSH_COMMAND").map(|value| value.to_str().unwrap_or_default()) {
            Some(command) => command.to_owned(),
            None => match configured(self, git, |it| it.ssh_command(self.pins()))?? {
                nothing if nothing.is_empty() && variable("GIT_SSH").is_none() => "ssh".to_owned(),
                command => command,
            },
        };
        // A user who has configured another program than ssh has given it the right options.
        if is_ssh(&command) {
            env.push(("GIT_SSH_COMMAND".into(), format!("{command} -o BatchMode=yes").into()));
        }
        Ok(env)
    }
}

/// Whether the program of a command is OpenSSH, judging by its name.
fn is_ssh(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    program.trim_matches(['"', '\'']).rsplit('/').next() == Some("ssh")
}

/// A suspected secret in content that would be published for the first time, as text: in the files, paths, headers
/// and messages of commits, given as arguments of `git rev-list`. None if nothing is found, or all of it is allowed.
pub(crate) fn exposed(git: Git<'_>, new: &[String], rules: Rules<'_>) -> Result<Option<String>, GitError> {
    exposed_in(git, &commits(git, new)?, rules)
}

/// The same for a loop's own commits, none of which may have a file too large to be scanned. What is scanned is what their
/// names say: another agent could show the scan other content than the push.
pub(crate) fn exposed_by_loop(
    repository: &Repository,
    git: Git<'_>,
    new: &[String],
    rules: Rules<'_>,
) -> Result<Option<String>, GitError> {
    let commits = commits(git, new)?;
    if commits.is_empty() {
        return Ok(None);
    }
    let objects = VerifiedObjects::changes(repository, git, &commits, rules.base)?;
    let git = objects.apply(git).without_fetching();
    match exposed_in(git, &commits, rules)? {
        None => unscreened(git, &commits, rules),
        found => Ok(found),
    }
}

fn exposed_in(git: Git<'_>, commits: &[Oid], rules: Rules<'_>) -> Result<Option<String>, GitError> {
    if let Some(found) = screen_commits(git, commits, rules)?.into_iter().find(|found| !found.allowed) {
        return Ok(Some(found.to_string()));
    }
    screen_messages(git, commits)
}

/// These commits, the oldest first.
fn commits(git: Git<'_>, new: &[String]) -> Result<Vec<Oid>, GitError> {
    // The list may exceed the limit for arguments.
    let (how, new): (Vec<&str>, Vec<&str>) =
        new.iter().map(String::as_str).partition(|it| it.starts_with("--"));
    let words = ["rev-list", "--reverse", "--stdin"].into_iter().chain(how);
    let printed = Git::text(git, words, new.join("\n").as_bytes())?;
    Ok(printed.lines().filter_map(|line| line.parse().ok()).collect())
}

pub(crate) fn exposed_name(branch: &str) -> Option<String> {
    secrets::screen_name(branch.as_bytes())
        .map(|what| format!("the name of the branch: it looks like {what}"))
}
