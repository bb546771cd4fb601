//! Pushes a loop's branch to its remote. Nothing is ever forced, and git never prompts: a remote with other commits
//! is a result, and so is a refusal.
//!
//! The outcome is read from the remote, never assumed: a push that was interrupted may have arrived. `publish_rebase`
//! brings the branch on top of the remote's, and `publish_refusal` interprets a refusal.

pub(crate) mod base_return;
pub(crate) mod journal_ref;
pub(crate) mod push;
pub(crate) mod rebase;
pub(crate) mod refusal;
pub(crate) mod remotes;

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use refrain_core::git::Oid;
use refrain_proc::tool::{ToolError, ToolOutput};

use crate::Cancel;
use crate::candidate::{Bounds, Rules};
use crate::error::GitError;
use crate::plumbing::commit_config::configured;
use crate::plumbing::git::{Git, said};
use crate::publish::push::{WITHOUT_PROMPTS, exposed, exposed_by_loop, exposed_name};
use crate::publish::refusal::{PushResult, Refusal, of_push, of_transport};
use crate::repository::Repository;
use crate::worktree::worktree_git::{is_over_half_made, past};

/// The time limit for asking the remote about a branch.
const LOOKING: Duration = Duration::from_secs(60);

/// How many commits from before the loop are scanned: a remote may lack a long history.
const MOST: &str = "--max-count=1000";

/// The time limit for a push or fetch, including the user's hooks.
const BRINGING: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub remote: String,
    /// The branch's name there, without `refs/heads/`.
    pub branch: String,
    /// The address of the remote, without a password in it.
    pub url: String,
}

/// A remote as configured for one run of git.
pub(crate) struct Destination {
    pub(crate) name: String,
    pub(crate) settings: Vec<(String, String)>,
    /// Whether the user's hooks run.
    pub(crate) runs_hooks: bool,
    /// Where references here follow its branches, if the user has git do that: `refs/remotes/NAME/`.
    pub(crate) tracking: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct PublishRequest<'a> {
    pub upstream: &'a Upstream,
    pub head: &'a Oid,
    /// The branch has been seen on the remote before: if it is gone now, it was deleted there.
    pub was_there: bool,
    /// The head before the loop; none if there was no commit.
    pub base: Option<&'a Oid>,
    pub bounds: Bounds<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    Pushed {
        head: Oid,
    },
    UpToDate {
        /// The remote branch's head: this commit, or a later one that was pushed on top of it.
        head: Oid,
    },
    /// The remote has commits that were missing here; they were fetched, and nothing was pushed.
    Behind {
        theirs: Oid,
    },
    Refused(Refusal),
}

impl Repository {
    /// The place to publish a branch: the pinned remote, or else the one that git would push to; none without one.
    pub fn upstream(&self, branch: &str) -> Result<Option<Upstream>, GitError> {
        let target = match self.pins() {
            Some(pins) => pins.push.clone(),
            None => configured(self, self.git(), |it| it.push_target(branch))?,
        };
        Ok(target.map(|target| Upstream {
            branch: if target.branch == branch { target.to } else { branch.to_owned() },
            remote: target.remote,
            url: target.url,
        }))
    }

    /// The remote under a name that only these settings use, so that no setting of an agent applies to it. Its
    /// address is the upstream's, even if the configuration replaces that address.
    pub(crate) fn destination(&self, upstream: &Upstream) -> Result<Destination, GitError> {
        let Upstream { remote, url, .. } = upstream;
        let prefix = format!("refs/remotes/{remote}/");
        let fetched = format!("+refs/heads/*:{prefix}*");
        let (now, tracks) = configured(self, self.git(), |it| {
            (it.push_url(remote), it.values(&format!("remote.{remote}.fetch")).contains(&fetched.as_str()))
        })?;
        // The pinned address has no password.
        let url = now.filter(|now| without_password(now) == *url).unwrap_or_else(|| url.clone());
        let name = format!("refrain-{:016x}{:016x}", random(), random());
        let settings = vec![
            (format!("remote.{name}.url"), format!("{name}:")),
            (format!("url.{url}.insteadOf"), format!("{name}:")),
            (format!("url.{url}.pushInsteadOf"), format!("{name}:")),
        ];
        Ok(Destination { name, settings, runs_hooks: true, tracking: tracks.then_some(prefix) })
    }

    /// Lets the reference that follows a branch of the remote follow it. Git would do that itself, through links of an
    /// agent: no limits hold a git that connects.
    pub(crate) fn track(&self, destination: &Destination, branch: &str, at: &Oid) {
        let Some(prefix) = &destination.tracking else { return };
        // As for git, the push or fetch was done without it.
        let name = format!("{prefix}{branch}");
        let _ = self.git().run(["update-ref", "--no-deref", "-m", "refrain", &name, at.as_str()], &[]);
    }

    /// The branch's head at the remote; none if it does not exist. Nothing is changed here.
    pub fn look_at(
        &self,
        upstream: &Upstream,
        cancel: Option<&Cancel>,
    ) -> Result<Result<Option<Oid>, Refusal>, GitError> {
        let refname = format!("refs/heads/{}", upstream.branch);
        let destination = self.destination(upstream)?;
        let args = ["ls-remote", "--refs", "--", &destination.name, &refname];
        let done = match self.talk((upstream, &destination), &args, LOOKING, cancel)? {
            Ok(done) if done.status.success() => done,
            Ok(done) => return Ok(Err(of_transport(said(&done)))),
            Err(refusal) => return Ok(Err(refusal)),
        };
        // Matched by the end of the name: other references may have the same end.
        let printed = String::from_utf8_lossy(&done.stdout);
        let mut lines = printed.lines().filter_map(|line| line.split_once('\t'));
        Ok(Ok(lines.find(|(_, name)| *name == refname).and_then(|(at, _)| at.parse().ok())))
    }

    pub fn fetch(
        &self,
        upstream: &Upstream,
        cancel: Option<&Cancel>,
    ) -> Result<Result<Option<Oid>, Refusal>, GitError> {
        let theirs = match self.look_at(upstream, cancel)? {
            Ok(Some(theirs)) => theirs,
            other => return Ok(other),
        };
        if self.has(&theirs)? {
            return Ok(Ok(Some(theirs)));
        }
        let (destination, refname) = (self.destination(upstream)?, format!("refs/heads/{}", upstream.branch));
        let words =
            ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--"];
        let args: Vec<&str> = words.into_iter().chain([destination.name.as_str(), &refname]).collect();
        // It writes no branch, but reads which branches the worktrees have checked out.
        let bring = || self.talk((upstream, &destination), &args, BRINGING, cancel);
        let is_over_half_made = |done: &Result<Result<ToolOutput, Refusal>, GitError>| matches!(done, Ok(Ok(done)) if !done.status.success() && is_over_half_made(&said(done)));
        Ok(match past(bring, is_over_half_made)? {
            Ok(done) if !done.status.success() => Err(of_transport(said(&done))),
            Ok(_) if self.has(&theirs)? => {
                self.track(&destination, &upstream.branch, &theirs);
                Ok(Some(theirs))
            }
            Ok(_) => {
                Err(Refusal::Unreachable { said: "the branch was moved while it was fetched".to_owned() })
            }
            Err(refusal) => Err(refusal),
        })
    }

    /// Pushes exactly this commit if the remote's branch is an ancestor of it or does not exist yet. It may be
    /// repeated: a commit that is already there is not pushed again. If any commit that the remote lacks contains a
    /// suspected secret, nothing is pushed, no matter who made it.
    /// Errors: [`GitError`] if git cannot be run, and [`GitError::Cancelled`]: only the next look at the remote shows
    /// what arrived.
    pub fn publish(&self, request: PublishRequest<'_>) -> Result<Push, GitError> {
        let PublishRequest { upstream, head, bounds, .. } = request;
        let theirs = match self.fetch(upstream, bounds.cancel)? {
            Ok(theirs) => theirs,
            Err(refusal) => return Ok(Push::Refused(refusal)),
        };
        match &theirs {
            None if request.was_there => return Ok(Push::Refused(Refusal::BranchDeleted)),
            None => {}
            Some(theirs) if self.is_behind(head, theirs)? => {
                return Ok(Push::UpToDate { head: theirs.clone() });
            }
            Some(theirs) if self.is_behind(theirs, head)? => {}
            Some(theirs) => return Ok(Push::Behind { theirs: theirs.clone() }),
        }
        if let Some(secret) = self.secret(request, theirs.as_ref())? {
            return Ok(Push::Refused(Refusal::Secret(secret)));
        }
        let refname = format!("refs/heads/{}", upstream.branch);
        if let Err(said) =
            self.ask_pre_push(upstream, (head.as_str(), head), (&refname, theirs.as_ref()), bounds.cancel)?
        {
            return Ok(Push::Refused(Refusal::HookDeclined { said }));
        }
        let refspec = format!("{head}:{refname}");
        let words =
            ["push", "--porcelain", "--no-progress", "--no-follow-tags", "--recurse-submodules=no", "--"];
        let destination = self.destination(upstream)?;
        let args: Vec<&str> = words.into_iter().chain([destination.name.as_str(), &refspec]).collect();
        let refusal = match self.talk((upstream, &destination), &args, BRINGING, bounds.cancel)? {
            Ok(done) => match of_push(&done, &refname) {
                PushResult::Pushed => {
                    self.track(&destination, &upstream.branch, head);
                    return Ok(Push::Pushed { head: head.clone() });
                }
                PushResult::Rejected { said } => Refusal::Unreachable { said },
                PushResult::Refused(refusal) => refusal,
            },
            Err(refusal) => refusal,
        };
        self.after(request, refusal)
    }

    /// The result of a failed push, as seen at the remote.
    fn after(&self, request: PublishRequest<'_>, refusal: Refusal) -> Result<Push, GitError> {
        let PublishRequest { upstream, head, bounds, .. } = request;
        if !matches!(refusal, Refusal::Unreachable { .. }) {
            return Ok(Push::Refused(refusal));
        }
        Ok(match self.fetch(upstream, bounds.cancel)? {
            Ok(Some(theirs)) if self.is_behind(head, &theirs)? => Push::Pushed { head: theirs },
            Ok(Some(theirs)) if !self.is_behind(&theirs, head)? => Push::Behind { theirs },
            Ok(_) | Err(_) => Push::Refused(refusal),
        })
    }

    /// A suspected secret in the commits that the remote lacks, or in the name of the branch.
    fn secret(&self, request: PublishRequest<'_>, theirs: Option<&Oid>) -> Result<Option<String>, GitError> {
        let PublishRequest { upstream, head, base, bounds, .. } = request;
        if let Some(found) = exposed_name(&upstream.branch) {
            return Ok(Some(found));
        }
        let git = self.git().until(bounds.cancel);
        let rules = bounds.rules(base);
        let not = |commits: &[&Oid]| commits.iter().map(|commit| format!("^{commit}")).collect::<Vec<_>>();
        let known: Vec<&Oid> = theirs.into_iter().collect();
        // Commits since the loop began: the remote itself is asked which it has, because the agent can change the
        // local tracking references.
        let since: Vec<&Oid> = known.iter().copied().chain(base).collect();
        let new = [vec![head.to_string()], not(&since)].concat();
        if let Some(found) = self.exposed_at(upstream, new, rules, bounds.cancel)? {
            return Ok(Some(found));
        }
        // Older commits: only the newest of them, as the remote may lack a long history.
        let Some(base) = base else { return Ok(None) };
        let tracked = format!("refs/remotes/{}/", upstream.remote);
        let tracked = git.text(["for-each-ref", "--format=^%(objectname)", &tracked], &[])?;
        let tracked = tracked.lines().map(str::to_owned).collect();
        let before = [vec![MOST.to_owned(), base.to_string()], not(&known), tracked].concat();
        exposed(git, &before, rules)
    }

    /// A suspected secret in these commits, except those that the remote claims to have.
    pub(crate) fn exposed_at(
        &self,
        upstream: &Upstream,
        mut new: Vec<String>,
        rules: Rules<'_>,
        cancel: Option<&Cancel>,
    ) -> Result<Option<String>, GitError> {
        new.extend(self.heads_at(upstream, cancel)?.iter().map(|head| format!("^{head}")));
        exposed_by_loop(self, self.git().until(cancel), &new, rules)
    }

    /// The commits of the remote's branches, as far as they exist here.
    fn heads_at(&self, upstream: &Upstream, cancel: Option<&Cancel>) -> Result<Vec<Oid>, GitError> {
        let destination = self.destination(upstream)?;
        let words = ["ls-remote", "--heads", "--refs", "--", &destination.name];
        let Ok(done) = self.talk((upstream, &destination), &words, LOOKING, cancel)? else {
            return Ok(Vec::new());
        };
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        let heads: String =
            printed.lines().filter_map(|line| line.split('\t').next()).map(|it| format!("{it}\n")).collect();
        let asked = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
        let known = Git::text(self.git().until(cancel), asked, heads.as_bytes())?;
        Ok(known.lines().filter_map(|line| line.strip_suffix(" commit")?.parse().ok()).collect())
    }

    /// Whether a commit equals the other or is its ancestor.
    pub fn is_behind(&self, commit: &Oid, other: &Oid) -> Result<bool, GitError> {
        Ok(commit == other || self.merge_base(self.git(), commit, other)?.as_ref() == Some(commit))
    }

    pub(crate) fn has(&self, commit: &Oid) -> Result<bool, GitError> {
        let done = self.git().run(["cat-file", "-e", &format!("{commit}^{{commit}}")], &[])?;
        Ok(done.status.success())
    }

    /// A git that connects needs the user's logins and runs outside of the sandbox, if the loop has one: without hooks.
    pub(crate) fn with_hooks_outside<'a>(&self, git: Git<'a>) -> Git<'a> {
        if self.is_confined() { git } else { git.with_hooks() }
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.sweeper.as_ref().is_some_and(|sweeper| sweeper.confinement.is_some())
    }

    /// Runs the hook of a push in the sandbox of the loop, before a push that does not run it. It gets what git gives it
    /// (githooks(5)). Returns what it said if it refuses.
    pub(crate) fn ask_pre_push(
        &self,
        upstream: &Upstream,
        (name, head): (&str, &Oid),
        (there, theirs): (&str, Option<&Oid>),
        cancel: Option<&Cancel>,
    ) -> Result<Result<(), String>, GitError> {
        if !self.is_confined() {
            return Ok(Ok(()));
        }
        let nothing = "0".repeat(head.as_str().len());
        let theirs = theirs.map_or(nothing.as_str(), Oid::as_str);
        let line = format!("{name} {head} {there} {theirs}\n");
        let (remote, url) = (upstream.remote.as_str(), without_password(&upstream.url));
        let words =
            ["hook", "run", "--ignore-missing", "--to-stdin=/dev/stdin", "pre-push", "--", remote, &url];
        let git = self.git().until(cancel).within(Some(BRINGING)).with_hooks();
        let done = git.run(words, line.as_bytes())?;
        Ok(if done.status.success() { Ok(()) } else { Err(said(&done)) })
    }

    /// Lets git connect to a remote without prompting.
    fn talk(
        &self,
        (upstream, destination): (&Upstream, &Destination),
        args: &[&str],
        limit: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<Result<ToolOutput, Refusal>, GitError> {
        let run = |env: &[(OsString, OsString)]| {
            let git = self.git().until(cancel).within(Some(limit)).in_env(env);
            let git = if destination.runs_hooks { self.with_hooks_outside(git) } else { git };
            let git = git.with_settings(&destination.settings);
            git.run(WITHOUT_PROMPTS.iter().chain(args).copied(), &[])
        };
        match self.known_to(&upstream.url, run) {
            Ok(done) => Ok(Ok(done)),
            Err(GitError::Tool(ToolError::TimedOut { limit, .. })) => {
                let said = format!("it did not answer within {} s", limit.as_secs());
                Ok(Err(Refusal::Unreachable { said }))
            }
            Err(other) => Err(other),
        }
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The address of a remote without the text between `://` and `@`, unless that is only a user name.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match place.rsplit_once('@') {
        Some((who, host)) if scheme != "ssh" || who.contains(':') => format!("{scheme}://{host}{path}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_leave_the_configuration() {
        for (url, shown) in [
            ("https://me:secret@host/a/b.git", "https://host/a/b.git"),
            ("https://token@host/a@b", "https://host/a@b"),
            ("https://host:8443/a", "https://host:8443/a"),
            ("ssh://git@host/a", "ssh://git@host/a"),
            ("ssh://git:secret@host/a", "ssh://host/a"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("../there", "../there"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
