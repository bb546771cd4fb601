//! GitLab, by `glab api`. Other fields are ignored.

mod checks;

use refrain_core::git::Oid;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::checks::Checks;
use crate::error::Trouble;
use crate::kind::{Host, PullRequestContent};
use crate::mergeability::{MergeBlocker, Mergeable};
use crate::place::encoded;
use crate::pull_request::{Project, PullRequest, State};

/// The title prefix that makes a merge request a draft in GitLab.
const DRAFT: &str = "Draft: ";

#[derive(Debug)]
pub(super) struct GitLab {
    pub(super) api: Api,
    path: String,
}

#[derive(Debug, Deserialize)]
struct ProjectInfo {
    default_branch: Option<String>,
    #[serde(default)]
    permissions: Value,
}

#[derive(Debug, Deserialize)]
struct Request {
    iid: u64,
    web_url: String,
    state: String,
    #[serde(default)]
    draft: bool,
    title: String,
    description: Option<String>,
    sha: Oid,
    source_branch: String,
    target_branch: String,
    merge_commit_sha: Option<Oid>,
    squash_commit_sha: Option<Oid>,
    detailed_merge_status: Option<String>,
}

impl From<Request> for PullRequest {
    fn from(request: Request) -> Self {
        let state = match request.state.as_str() {
            "merged" => State::Merged,
            "opened" | "locked" => State::Open,
            _ => State::Closed,
        };
        let merged_as = request.merge_commit_sha.or(request.squash_commit_sha);
        Self {
            number: request.iid,
            url: request.web_url,
            state,
            draft: request.draft,
            title: request.title,
            body: request.description.unwrap_or_default(),
            head: request.sha,
            branch: request.source_branch,
            base: request.target_branch,
            merged_as: merged_as.filter(|_| state == State::Merged),
        }
    }
}

impl GitLab {
    pub(super) fn new(api: Api, path: &str) -> Self {
        Self { api, path: encoded(path) }
    }

    pub(super) fn at(&self, rest: &str) -> String {
        format!("projects/{}/{rest}", self.path)
    }

    fn request(&self, number: u64) -> Result<Request, Trouble> {
        self.api.get(&self.at(&format!("merge_requests/{number}")))
    }
}

impl Host for GitLab {
    fn project(&self) -> Result<Project, Trouble> {
        /// The access level that may push: GitLab's developer.
        const DEVELOPER: u64 = 30;
        let found: ProjectInfo = self.api.get(&format!("projects/{}", self.path))?;
        let levels =
            ["project_access", "group_access"].map(|it| found.permissions[it]["access_level"].as_u64());
        // If both are missing, the right has another source, as for an administrator.
        let may_push = levels.into_iter().flatten().max().map(|level| level >= DEVELOPER);
        Ok(Project { default_branch: found.default_branch.unwrap_or_else(|| "main".to_owned()), may_push })
    }

    fn of_branch(&self, branch: &str) -> Result<Vec<PullRequest>, Trouble> {
        let query = "state=all&order_by=created_at&sort=desc&per_page=30";
        let endpoint = self.at(&format!("merge_requests?source_branch={}&{query}", encoded(branch)));
        let found: Vec<Request> = self.api.get(&endpoint)?;
        Ok(found.into_iter().map(PullRequest::from).filter(|request| request.branch == branch).collect())
    }

    fn get(&self, number: u64) -> Result<PullRequest, Trouble> {
        self.request(number).map(PullRequest::from)
    }

    fn create(&self, opening: PullRequestContent<'_>) -> Result<PullRequest, Trouble> {
        let PullRequestContent { branch, base, title, body, draft } = opening;
        let title = if draft { format!("{DRAFT}{title}") } else { title.to_owned() };
        let body =
            json!({ "source_branch": branch, "target_branch": base, "title": title, "description": body });
        self.api.send::<Request>(&Method::POST, &self.at("merge_requests"), &body).map(PullRequest::from)
    }

    fn edit(&self, number: u64, title: Option<&str>, body: &str) -> Result<(), Trouble> {
        let mut fields = json!({ "description": body });
        if let Some(title) = title {
            // A new title must not remove the draft prefix.
            let draft = if self.request(number)?.draft { DRAFT } else { "" };
            fields["title"] = format!("{draft}{title}").into();
        }
        self.api.ask(&Method::PUT, &self.at(&format!("merge_requests/{number}")), Some(&fields)).map(drop)
    }

    fn ready(&self, of: &PullRequest) -> Result<(), Trouble> {
        let mut title = of.title.as_str();
        while let Some(rest) =
            ["Draft:", "draft:", "[Draft]", "(Draft)"].iter().find_map(|it| title.strip_prefix(it))
        {
            title = rest.trim_start();
        }
        let endpoint = self.at(&format!("merge_requests/{}", of.number));
        self.api.ask(&Method::PUT, &endpoint, Some(&json!({ "title": title }))).map(drop)
    }

    fn draft(&self, of: &PullRequest) -> Result<(), Trouble> {
        let endpoint = self.at(&format!("merge_requests/{}", of.number));
        let title = format!("{DRAFT}{}", of.title);
        self.api.ask(&Method::PUT, &endpoint, Some(&json!({ "title": title }))).map(drop)
    }

    fn checks(&self, head: &Oid, _: &str) -> Result<Checks, Trouble> {
        self.all_checks(head)
    }

    fn log(&self, job: u64) -> Result<Vec<u8>, Trouble> {
        Ok(self.api.ask(&Method::GET, &self.at(&format!("jobs/{job}/trace")), None)?.body)
    }

    fn mergeable(&self, number: u64) -> Result<Mergeable, Trouble> {
        let request = self.request(number)?;
        Ok(of_status(&request.state, request.detailed_merge_status.as_deref()))
    }

    fn merge(&self, number: u64, head: &Oid, squash: bool) -> Result<Option<Oid>, Trouble> {
        let endpoint = self.at(&format!("merge_requests/{number}/merge"));
        let body = json!({ "sha": head, "squash": squash });
        let now = PullRequest::from(self.api.send::<Request>(&Method::PUT, &endpoint, &body)?);
        match now.state {
            State::Merged => Ok(now.merged_as),
            State::Open | State::Closed => {
                Err(Trouble::Refused { status: 200, said: "it is not merged yet".to_owned() })
            }
        }
    }

    fn branch(&self, name: &str) -> Result<Option<Oid>, Trouble> {
        self.api.look(&self.at(&format!("repository/branches/{}", encoded(name))), "/commit/id")
    }

    fn delete_branch(&self, name: &str) -> Result<(), Trouble> {
        let endpoint = self.at(&format!("repository/branches/{}", encoded(name)));
        self.api.ask(&Method::DELETE, &endpoint, None).map(drop)
    }
}

/// The meaning of GitLab's `detailed_merge_status`; an unknown value is reported as it is.
fn of_status(state: &str, status: Option<&str>) -> Mergeable {
    let why = match (state, status.unwrap_or("unchecked")) {
        ("closed" | "merged", _) | (_, "not_open") => MergeBlocker::Closed,
        (_, "mergeable") => return Mergeable::Yes,
        (_, "checking" | "unchecked" | "preparing" | "approvals_syncing") => return Mergeable::NotKnownYet,
        (_, "conflict" | "broken_status") => MergeBlocker::Conflicts,
        (_, "need_rebase") => MergeBlocker::Behind,
        (_, "draft_status") => MergeBlocker::Draft,
        (_, "not_approved") => MergeBlocker::ReviewMissing,
        (_, "requested_changes") => MergeBlocker::ChangesRequested,
        (_, "ci_must_pass" | "ci_still_running" | "status_checks_must_pass") => MergeBlocker::ChecksMissing,
        (_, other) => MergeBlocker::Rule(refrain_core::text::printable(other).into_owned()),
    };
    Mergeable::No(vec![why])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_merge_status_of_gitlab_is_mapped() {
        let no = |why: MergeBlocker| Mergeable::No(vec![why]);
        for (status, expected) in [
            ("mergeable", Mergeable::Yes),
            ("checking", Mergeable::NotKnownYet),
            ("conflict", no(MergeBlocker::Conflicts)),
            ("need_rebase", no(MergeBlocker::Behind)),
            ("not_approved", no(MergeBlocker::ReviewMissing)),
            ("requested_changes", no(MergeBlocker::ChangesRequested)),
            ("ci_must_pass", no(MergeBlocker::ChecksMissing)),
            ("draft_status", no(MergeBlocker::Draft)),
            ("discussions_not_resolved", no(MergeBlocker::Rule("discussions_not_resolved".to_owned()))),
        ] {
            assert_eq!(of_status("opened", Some(status)), expected, "{status}");
        }
        assert_eq!(of_status("merged", Some("not_open")), no(MergeBlocker::Closed));
    }
}
