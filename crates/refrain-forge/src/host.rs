//! A forge as the rest of the program sees it. Each action happens once: its result is looked up first, and again if
//! an answer was lost. After [`Trouble::Unreachable`] the caller may make the same request again.

use std::ffi::OsString;

use camino::Utf8Path;
use refrain_core::git::Oid;
use refrain_core::text::{clip, cut_middle};

use crate::api::Api;
use crate::api::client::Client;
use crate::api::program::Program;
use crate::checks::{Check, Checks};
use crate::error::Trouble;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::kind::{Host, PullRequestContent};
use crate::mergeability::{MergeBlocker, MergeOutcome, Mergeable};
use crate::place::RepositoryAddress;
use crate::pull_request::{Project, PullRequest, State};
use crate::token::{Token, is_githubs};
use refrain_proc::tool::Cancel;

/// The longest title, in bytes: both forges allow a little more.
const TITLE: usize = 240;

/// The longest description of a pull request, in bytes: GitHub allows 65,536 characters.
const BODY: usize = 60 << 10;

/// The forge of a remote, and its project.
#[derive(Debug)]
pub struct Forge {
    place: RepositoryAddress,
    host: Box<dyn Host>,
}

impl Forge {
    /// The forge of a remote's address: GitHub at github.com and wherever `gh` has a login or there is a token;
    /// GitLab at gitlab.com and wherever `glab` has a login. None elsewhere, where a branch can only be pushed. The
    /// programs are not taken from `folders`, which an agent writes; GitHub is asked with a token if `gh` has no login.
    pub fn of(
        url: &str,
        folders: &[&Utf8Path],
        env: &[(OsString, OsString)],
        cancel: Option<&Cancel>,
    ) -> Result<Option<Self>, Trouble> {
        let Some(place) = RepositoryAddress::of(url) else { return Ok(None) };
        let program = |name| Program::new(name, &place.host, folders, env, cancel);
        let token = Token::of(&place.host, env);
        let is_github = is_githubs(&place.host);
        // If there is no alternative, the program is not asked twice.
        let asks_gh = match &token {
            None if is_github => true,
            None if place.host == "gitlab.com" => false,
            None | Some(_) => program("gh").is_logged_in()?,
        };
        let api = match token {
            _ if asks_gh => Some(Api::Program(program("gh"))),
            Some(token) => Some(Api::Client(Client::new(&place.host, token, env, cancel))),
            None => None,
        };
        let host: Box<dyn Host> = match api {
            // A name on GitHub has an owner and no groups.
            Some(_) if place.path.split('/').count() != 2 => return Ok(None),
            Some(api) => Box::new(GitHub { api, path: place.path.clone() }),
            None if place.host == "gitlab.com" || program("glab").is_logged_in()? => {
                Box::new(GitLab::new(Api::Program(program("glab")), &place.path))
            }
            None => return Ok(None),
        };
        Ok(Some(Self { place, host }))
    }

    pub fn place(&self) -> &RepositoryAddress {
        &self.place
    }

    /// The project: also an early test whether the forge can be reached.
    pub fn project(&self) -> Result<Project, Trouble> {
        self.host.project()
    }

    /// The pull request of a branch: the open one, else the newest.
    pub fn find(&self, branch: &str) -> Result<Option<PullRequest>, Trouble> {
        let mut found = self.host.of_branch(branch)?;
        let open = found.iter().position(|request| request.state == State::Open);
        Ok(match open {
            Some(at) => Some(found.swap_remove(at)),
            None => found.into_iter().next(),
        })
    }

    /// Opens a pull request, or returns the one of this branch that is already open. Long texts are cut. In a project
    /// without drafts it is not opened as a draft, as its `draft` field shows.
    /// Errors: [`Trouble`]; the request may be open all the same, unless it was refused: the next call finds it.
    pub fn open(&self, opening: PullRequestContent<'_>) -> Result<PullRequest, Trouble> {
        let open = |forge: &Self| {
            let found = forge.find(opening.branch)?;
            // One for another base was not opened by this loop.
            Ok::<_, Trouble>(found.filter(|found| found.state == State::Open && found.base == opening.base))
        };
        if let Some(found) = open(self)? {
            return Ok(found);
        }
        let (title, body) = (clip(opening.title, TITLE), clip(opening.body, BODY));
        let opening = PullRequestContent { title: &title, body: &body, ..opening };
        let error = match self.host.create(opening) {
            Err(Trouble::Refused { said, .. }) if opening.draft && said.to_lowercase().contains("draft") => {
                match self.host.create(PullRequestContent { draft: false, ..opening }) {
                    Ok(made) => return Ok(made),
                    Err(error) => error,
                }
            }
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        // Another process was faster, or it was opened and the answer was lost.
        if matches!(error, Trouble::Refused { .. } | Trouble::Unreachable { .. })
            && let Ok(Some(found)) = open(self)
        {
            return Ok(found);
        }
        Err(error)
    }

    /// Replaces the description of a pull request, and its title if one is given. It may be repeated.
    pub fn describe(&self, number: u64, title: Option<&str>, body: &str) -> Result<(), Trouble> {
        let title = title.map(|title| clip(title, TITLE));
        self.host.edit(number, title.as_deref(), &clip(body, BODY))
    }

    /// Marks a draft as ready for review. It may be repeated.
    pub fn ready(&self, number: u64) -> Result<(), Trouble> {
        let request = self.host.get(number)?;
        if request.draft { self.host.ready(&request) } else { Ok(()) }
    }

    /// Makes a pull request a draft unless it is one. It may be repeated.
    /// Errors: [`Trouble`], also if the project has no drafts.
    pub fn draft(&self, request: &PullRequest) -> Result<(), Trouble> {
        if request.draft { Ok(()) } else { self.host.draft(request) }
    }

    pub fn get(&self, number: u64) -> Result<PullRequest, Trouble> {
        self.host.get(number)
    }

    /// The checks of a commit to be merged into `base`.
    pub fn checks(&self, head: &Oid, base: &str) -> Result<Checks, Trouble> {
        self.host.checks(head, base)
    }

    /// The output of a failed check: the end of its log, up to `most` bytes, with the last error in it, or its own
    /// summary if the forge has no log of it.
    /// Errors: [`Trouble`]; a log that is gone, or far too long, is no error.
    pub fn failing_log(&self, check: &Check, most: usize) -> Result<String, Trouble> {
        let log = match check.job.map(|job| self.host.log(job)) {
            Some(Ok(log)) => log_end(&log, most),
            Some(Err(Trouble::NotFound { .. } | Trouble::NoPermission { .. } | Trouble::Refused { .. }))
            | None => String::new(),
            Some(Err(other)) => return Err(other),
        };
        Ok(if log.is_empty() { cut_middle(&check.summary, most).into_owned() } else { log })
    }

    pub fn mergeable(&self, number: u64) -> Result<Mergeable, Trouble> {
        self.host.mergeable(number)
    }

    /// Merges a pull request at exactly this commit, as one commit if it is to be squashed, and deletes its branch
    /// unless the branch has moved meanwhile. It may be repeated: an earlier merge is found.
    /// Errors: [`Trouble`]; it may be merged all the same, unless that was refused: the next call finds out.
    pub fn merge(
        &self,
        number: u64,
        head: &Oid,
        squash: bool,
        delete_branch: bool,
    ) -> Result<MergeOutcome, Trouble> {
        let before = self.host.get(number)?;
        let merged = match settled(&before, head) {
            Some(merged) => merged,
            None => self.merge_now(number, head, squash)?,
        };
        match merged {
            MergeOutcome::Done { commit, .. } => {
                let branch_deleted = delete_branch && self.delete_branch(&before.branch, head)?;
                Ok(MergeOutcome::Done { commit, branch_deleted })
            }
            other => Ok(other),
        }
    }

    fn merge_now(&self, number: u64, head: &Oid, squash: bool) -> Result<MergeOutcome, Trouble> {
        let error = match self.host.merge(number, head, squash) {
            Ok(commit) => return Ok(MergeOutcome::Done { commit, branch_deleted: false }),
            Err(error) => error,
        };
        if !matches!(error, Trouble::Refused { .. } | Trouble::Unreachable { .. }) {
            return Err(error);
        }
        // The pull request itself shows the result, regardless of the error.
        let Ok(now) = self.host.get(number) else { return Err(error) };
        match (settled(&now, head), error) {
            (Some(merged), _) => Ok(merged),
            (None, Trouble::Refused { said, .. }) => Ok(match self.host.mergeable(number)? {
                Mergeable::No(why) => MergeOutcome::NotMergeable { why, said },
                // For example, a project that does not allow squashing.
                Mergeable::Yes | Mergeable::NotKnownYet if said.contains("not allowed") => {
                    MergeOutcome::NotMergeable { why: vec![MergeBlocker::Rule(said.clone())], said }
                }
                Mergeable::Yes | Mergeable::NotKnownYet => MergeOutcome::NotYet { said },
            }),
            (None, error) => Err(error),
        }
    }

    /// Deletes a branch that is still at this commit; returns whether it is gone. It may be repeated.
    /// Errors: [`Trouble`]; not if the forge denies it.
    pub fn delete_branch(&self, branch: &str, at: &Oid) -> Result<bool, Trouble> {
        match self.host.branch(branch)? {
            None => return Ok(true),
            Some(now) if now != *at => return Ok(false),
            Some(_) => {}
        }
        match self.host.delete_branch(branch) {
            Ok(()) | Err(Trouble::NotFound { .. }) => Ok(true),
            Err(Trouble::Refused { .. } | Trouble::NoPermission { .. }) => {
                Ok(self.host.branch(branch)?.is_none())
            }
            Err(other) => Err(other),
        }
    }
}

/// The result if merging is unnecessary or not possible; none if it should be merged.
fn settled(request: &PullRequest, head: &Oid) -> Option<MergeOutcome> {
    match request.state {
        _ if request.head != *head => Some(MergeOutcome::HeadMoved { head: request.head.clone() }),
        State::Merged => {
            Some(MergeOutcome::Done { commit: request.merged_as.clone(), branch_deleted: false })
        }
        State::Closed => Some(MergeOutcome::NotMergeable {
            why: vec![MergeBlocker::Closed],
            said: MergeBlocker::Closed.to_string(),
        }),
        State::Open => None,
    }
}

/// The end of a log, up to `most` bytes, without colours, timestamps and anything after the last marked error, where
/// the runner only cleans up.
fn log_end(log: &[u8], most: usize) -> String {
    const ERROR: &str = "##[error]";
    let text = anstream::adapter::strip_str(&String::from_utf8_lossy(log)).to_string();
    let lines: Vec<&str> = text.lines().map(|line| without_time(line.trim_end())).collect();
    let last = lines.iter().rposition(|line| line.starts_with(ERROR)).map_or(lines.len(), |at| at + 1);
    let mut left = most;
    let fits = |line: &&&str| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    };
    let kept = lines[..last].iter().rev().take_while(fits).count();
    lines[last - kept..last].join("\n").trim().to_owned()
}

/// A line without a time like `2026-01-02T03:04:05.6789012Z` before it.
fn without_time(line: &str) -> &str {
    let line = line.trim_start_matches('\u{feff}');
    match line.split_once(' ') {
        Some((time, rest)) if is_time(time) => rest,
        None if is_time(line) => "",
        _ => line,
    }
}

fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    let has = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    bytes.len() >= 20 && has(4, b'-') && has(10, b'T') && has(13, b':') && word.ends_with('Z')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_ends_with_the_error() {
        let log = "\u{feff}2026-01-02T03:04:05.1234567Z ##[group]Run tests\n2026-01-02T03:04:06.1234567Z test a … FAILED\r\n2026-01-02T03:04:06.1234567Z \n2026-01-02T03:04:07.1234567Z ##[error]Process completed with exit code 101.\n2026-01-02T03:04:08.1234567Z Post job cleanup.\n";
        let end = "test a … FAILED\n\n##[error]Process completed with exit code 101.";
        assert_eq!(log_end(log.as_bytes(), 1 << 10), format!("##[group]Run tests\n{end}"));
        assert_eq!(log_end(log.as_bytes(), 66), end);
        assert_eq!(log_end(b"\x1b[31mred\x1b[0m\x1b[0K\n", 12), "red");
        assert_eq!(log_end(b"plain\nlast line\n", 12), "last line");
        assert_eq!(log_end(b"", 12), "");
    }
}
