//! GitHub, by `gh api` or a token: REST, and GraphQL for fields that REST lacks. Other fields are ignored.

mod checks;

use refrain_core::git::Oid;
use refrain_core::text::printable;
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Api, part};
use crate::checks::Checks;
use crate::error::{RetryTime, SECONDARY, Trouble};
use crate::kind::{Host, PullRequestContent};
use crate::mergeability::{MergeBlocker, Mergeable};
use crate::place::encoded;
use crate::pull_request::{Project, PullRequest, State};

#[derive(Debug)]
pub(super) struct GitHub {
    pub(super) api: Api,
    /// `owner/name`.
    pub(super) path: String,
}

#[derive(Debug, Deserialize)]
struct Repo {
    default_branch: String,
    #[serde(default)]
    permissions: Value,
}

#[derive(Debug, Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    #[serde(default)]
    draft: bool,
    title: String,
    body: Option<String>,
    merged_at: Option<String>,
    merge_commit_sha: Option<Oid>,
    node_id: Option<String>,
    head: Side,
    base: Side,
}

#[derive(Debug, Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    name: String,
    sha: Oid,
}

#[derive(Debug, Deserialize)]
struct MergeAnswer {
    sha: Option<Oid>,
}

#[derive(Debug, Deserialize)]
struct Reply {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    errors: Vec<ReplyError>,
}

#[derive(Debug, Deserialize)]
struct ReplyError {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Merge {
    state: String,
    is_draft: bool,
    mergeable: String,
    merge_state_status: String,
    review_decision: Option<String>,
}

impl From<Pull> for PullRequest {
    fn from(pull: Pull) -> Self {
        let state = match (pull.state.as_str(), &pull.merged_at) {
            (_, Some(_)) => State::Merged,
            ("open", None) => State::Open,
            _ => State::Closed,
        };
        Self {
            number: pull.number,
            url: pull.html_url,
            state,
            draft: pull.draft,
            title: pull.title,
            body: pull.body.unwrap_or_default(),
            head: pull.head.sha,
            branch: pull.head.name,
            base: pull.base.name,
            // Before the merge it is GitHub's test merge commit.
            merged_as: pull.merge_commit_sha.filter(|_| state == State::Merged),
        }
    }
}

impl GitHub {
    pub(super) fn at(&self, rest: &str) -> String {
        format!("repos/{}/{rest}", self.path)
    }

    fn graphql<T: DeserializeOwned>(&self, query: &str, variables: &Value, at: &str) -> Result<T, Trouble> {
        let body = json!({ "query": query, "variables": variables });
        let reply: Reply = self.api.send(&Method::POST, "graphql", &body)?;
        let Some(first) = reply.errors.first() else {
            return part("graphql", reply.data, at);
        };
        let said = reply.errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ");
        let said = printable(&said).into_owned();
        Err(match first.kind.as_deref() {
            Some("NOT_FOUND") => Trouble::NotFound { said },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => Trouble::NoPermission { said },
            Some("RATE_LIMITED" | "RATE_LIMIT") => {
                Trouble::RateLimited { until: RetryTime::After(SECONDARY), said }
            }
            Some(_) | None => Trouble::Refused { status: 200, said },
        })
    }

    fn pull(&self, number: u64) -> Result<Pull, Trouble> {
        self.api.get(&self.at(&format!("pulls/{number}")))
    }
}

impl Host for GitHub {
    fn project(&self) -> Result<Project, Trouble> {
        let repo: Repo = self.api.get(&format!("repos/{}", self.path))?;
        Ok(Project { default_branch: repo.default_branch, may_push: repo.permissions["push"].as_bool() })
    }

    fn of_branch(&self, branch: &str) -> Result<Vec<PullRequest>, Trouble> {
        let owner = self.path.split('/').next().unwrap_or_default();
        let head = encoded(&format!("{owner}:{branch}"));
        let query = format!("pulls?head={head}&state=all&sort=created&direction=desc&per_page=30");
        let found: Vec<Pull> = self.api.get(&self.at(&query))?;
        // GitHub ignores a `head` filter that it does not understand.
        Ok(found.into_iter().map(PullRequest::from).filter(|pull| pull.branch == branch).collect())
    }

    fn get(&self, number: u64) -> Result<PullRequest, Trouble> {
        self.pull(number).map(PullRequest::from)
    }

    fn create(&self, opening: PullRequestContent<'_>) -> Result<PullRequest, Trouble> {
        let PullRequestContent { branch, base, title, body, draft } = opening;
        let body = json!({ "head": branch, "base": base, "title": title, "body": body, "draft": draft });
        self.api.send::<Pull>(&Method::POST, &self.at("pulls"), &body).map(PullRequest::from)
    }

    fn edit(&self, number: u64, title: Option<&str>, body: &str) -> Result<(), Trouble> {
        let mut fields = json!({ "body": body });
        if let Some(title) = title {
            fields["title"] = title.into();
        }
        self.api.ask(&Method::PATCH, &self.at(&format!("pulls/{number}")), Some(&fields)).map(drop)
    }

    fn ready(&self, of: &PullRequest) -> Result<(), Trouble> {
        const READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
                             { pullRequest { isDraft } } }";
        let id = self.pull(of.number)?.node_id;
        self.graphql::<Value>(READY, &json!({ "id": id }), "").map(drop)
    }

    fn draft(&self, of: &PullRequest) -> Result<(), Trouble> {
        const DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
                             { pullRequest { isDraft } } }";
        let id = self.pull(of.number)?.node_id;
        self.graphql::<Value>(DRAFT, &json!({ "id": id }), "").map(drop)
    }

    fn checks(&self, head: &Oid, base: &str) -> Result<Checks, Trouble> {
        self.all_checks(head, base)
    }

    fn log(&self, job: u64) -> Result<Vec<u8>, Trouble> {
        Ok(self.api.ask(&Method::GET, &self.at(&format!("actions/jobs/{job}/logs")), None)?.body)
    }

    fn mergeable(&self, number: u64) -> Result<Mergeable, Trouble> {
        const MERGE: &str = "query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) \
                             { pullRequest(number: $number) { state isDraft mergeable mergeStateStatus reviewDecision } } }";
        let (owner, name) = self.path.split_once('/').unwrap_or_default();
        let variables = json!({ "owner": owner, "name": name, "number": number });
        self.graphql(MERGE, &variables, "/repository/pullRequest").map(|found| of_merge(&found))
    }

    fn merge(&self, number: u64, head: &Oid, squash: bool) -> Result<Option<Oid>, Trouble> {
        let method = if squash { "squash" } else { "merge" };
        let body = json!({ "sha": head, "merge_method": method });
        let endpoint = self.at(&format!("pulls/{number}/merge"));
        Ok(self.api.send::<MergeAnswer>(&Method::PUT, &endpoint, &body)?.sha)
    }

    fn branch(&self, name: &str) -> Result<Option<Oid>, Trouble> {
        self.api.look(&self.at(&format!("git/ref/heads/{}", path(name))), "/object/sha")
    }

    fn delete_branch(&self, name: &str) -> Result<(), Trouble> {
        let endpoint = self.at(&format!("git/refs/heads/{}", path(name)));
        self.api.ask(&Method::DELETE, &endpoint, None).map(drop)
    }
}

/// The name of a branch in a path, with its slashes unencoded.
pub(super) fn path(name: &str) -> String {
    name.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

/// The meaning of GitHub's merge states. `BLOCKED` has many causes: more specific fields come first.
fn of_merge(merge: &Merge) -> Mergeable {
    let status = merge.merge_state_status.as_str();
    let review = merge.review_decision.as_deref();
    let mut why: Vec<MergeBlocker> = [
        (merge.state != "OPEN", MergeBlocker::Closed),
        (merge.is_draft || status == "DRAFT", MergeBlocker::Draft),
        (merge.mergeable == "CONFLICTING" || status == "DIRTY", MergeBlocker::Conflicts),
        (status == "BEHIND", MergeBlocker::Behind),
        (review == Some("REVIEW_REQUIRED"), MergeBlocker::ReviewMissing),
        (review == Some("CHANGES_REQUESTED"), MergeBlocker::ChangesRequested),
    ]
    .into_iter()
    .filter_map(|(is_so, hindrance)| is_so.then_some(hindrance))
    .collect();
    if why.is_empty() && status == "BLOCKED" {
        why.push(MergeBlocker::Rule("what protects the base branch is not fulfilled".to_owned()));
    }
    match why.is_empty() {
        true if merge.mergeable == "UNKNOWN" || status == "UNKNOWN" => Mergeable::NotKnownYet,
        true => Mergeable::Yes,
        false => Mergeable::No(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_merge_state_of_github_is_mapped() {
        let no = |why: &[MergeBlocker]| Mergeable::No(why.to_vec());
        let rule = MergeBlocker::Rule("what protects the base branch is not fulfilled".to_owned());
        for (draft, mergeable, status, review, expected) in [
            (false, "MERGEABLE", "CLEAN", None, Mergeable::Yes),
            (false, "MERGEABLE", "UNSTABLE", Some("APPROVED"), Mergeable::Yes),
            (false, "MERGEABLE", "HAS_HOOKS", None, Mergeable::Yes),
            (false, "UNKNOWN", "UNKNOWN", None, Mergeable::NotKnownYet),
            (false, "CONFLICTING", "DIRTY", None, no(&[MergeBlocker::Conflicts])),
            (false, "MERGEABLE", "BEHIND", None, no(&[MergeBlocker::Behind])),
            (false, "MERGEABLE", "BLOCKED", Some("REVIEW_REQUIRED"), no(&[MergeBlocker::ReviewMissing])),
            (false, "MERGEABLE", "BLOCKED", Some("CHANGES_REQUESTED"), no(&[MergeBlocker::ChangesRequested])),
            (false, "MERGEABLE", "BLOCKED", Some("APPROVED"), no(&[rule])),
            (true, "MERGEABLE", "DRAFT", None, no(&[MergeBlocker::Draft])),
        ] {
            let merge = Merge {
                state: "OPEN".to_owned(),
                is_draft: draft,
                mergeable: mergeable.to_owned(),
                merge_state_status: status.to_owned(),
                review_decision: review.map(str::to_owned),
            };
            assert_eq!(of_merge(&merge), expected, "{status}");
        }
    }

    #[test]
    fn a_pull_request_is_read_whatever_else_it_says() {
        let sha = "a".repeat(40);
        let text = json!({
            "number": 7, "html_url": "https://github.com/o/r/pull/7", "state": "closed", "title": "T", "user": {"login": "x"},
            "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": "b".repeat(40),
            "head": {"ref": "refrain/x", "sha": sha, "label": "o:refrain/x"}, "base": {"ref": "main", "sha": sha},
        });
        let pull = PullRequest::from(serde_json::from_value::<Pull>(text).unwrap());
        assert_eq!(
            (pull.state, pull.draft, pull.merged_as.unwrap().as_str()),
            (State::Merged, false, &*"b".repeat(40))
        );
    }
}
