//! GitHub's side of the API: routing, and answers with the fields that Refrain reads and a few more.

use serde_json::{Value, json};

use super::reply::Reply;
use super::server::{decoded, page, queried};
use super::world::{Pull, World};
use crate::model::http::Incoming;

/// The path after the project, in parts.
fn parts(incoming: &Incoming) -> Vec<&str> {
    match incoming.path.strip_prefix("/repos/owner/project") {
        Some(rest) => rest.split('/').filter(|part| !part.is_empty()).collect(),
        None => vec!["nowhere"],
    }
}

/// The name by which a question is counted.
pub(super) fn name(incoming: &Incoming) -> &'static str {
    if incoming.path == "/graphql" {
        let query = incoming.json()["query"].as_str().unwrap_or_default().to_owned();
        return match query.as_str() {
            query if query.contains("convertPullRequestToDraft") => "draft",
            query if query.starts_with("mutation") => "ready",
            query if query.contains("viewer") => "login",
            _ => "mergeable",
        };
    }
    if incoming.path == "/" {
        return "login";
    }
    match (incoming.method.as_str(), parts(incoming).as_slice()) {
        ("GET", []) => "project",
        ("GET", ["pulls"]) => "find",
        ("POST", ["pulls"]) => "open",
        ("GET", ["pulls", _]) => "get",
        ("PATCH", ["pulls", _]) => "edit",
        ("PUT", ["pulls", _, "merge"]) => "merge",
        ("GET", ["commits", _, "check-runs"]) => "checks",
        ("GET", ["commits", _, "status"]) => "statuses",
        ("GET", ["commits", _, "check-suites"]) => "suites",
        ("GET", ["branches", ..]) => "protection",
        ("GET", ["rules", "branches", ..]) => "rules",
        ("GET", ["actions", "workflows"]) => "workflows",
        ("GET", ["actions", "jobs", _, "logs"]) => "log",
        ("GET", ["git", "ref", "heads", ..]) => "branch",
        ("DELETE", ["git", "refs", "heads", ..]) => "delete-branch",
        _ => "nowhere",
    }
}

pub(super) fn reply(world: &mut World, name: &str, incoming: &Incoming) -> Reply {
    let parts = parts(incoming);
    let branch = |from: usize| parts[from..].iter().map(|part| decoded(part)).collect::<Vec<_>>().join("/");
    let body = incoming.json();
    let number = parts.get(1).and_then(|part| part.parse().ok()).unwrap_or_default();
    let is_change = matches!(name, "open" | "edit" | "merge" | "ready" | "draft" | "delete-branch");
    if world.may_only_look && is_change {
        return Reply::no(403, "Resource not accessible by personal access token");
    }
    match name {
        // The request of `gh auth status`.
        "login" => Reply::json(&json!({ "data": { "viewer": { "login": "somebody" } } }))
            .with("X-Oauth-Scopes", "repo, read:org"),
        "project" => Reply::json(&json!({
            "full_name": "owner/project", "default_branch": "main", "permissions": { "push": !world.may_only_look, "admin": false },
        })),
        "find" => {
            let head = queried(incoming, "head").unwrap_or_default();
            let pulls = world.of_branch(head.trim_start_matches("owner:"));
            Reply::json(&pulls.iter().map(of_pull).collect())
        }
        "open" => open(world, &body),
        "get" => world.pull(number).map_or_else(not_found, |pull| Reply::json(&of_pull(&pull))),
        "edit" => {
            world.change_pull(number, |pull| edit(pull, &body["title"], &body["body"]));
            world.pull(number).map_or_else(not_found, |pull| Reply::json(&of_pull(&pull)))
        }
        "merge" => merge(world, number, &body),
        "ready" => {
            let id = body["variables"]["id"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse().ok());
            world.change_pull(id.unwrap_or_default(), |pull| pull.draft = false);
            Reply::json(
                &json!({ "data": { "markPullRequestReadyForReview": { "pullRequest": { "isDraft": false } } } }),
            )
        }
        "draft" => {
            let id = body["variables"]["id"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse().ok());
            world.change_pull(id.unwrap_or_default(), |pull| pull.draft = true);
            Reply::json(
                &json!({ "data": { "convertPullRequestToDraft": { "pullRequest": { "isDraft": true } } } }),
            )
        }
        "mergeable" => mergeable(world, body["variables"]["number"].as_u64().unwrap_or_default()),
        "checks" => {
            let look = world.look(parts[1], true);
            let runs: Vec<Value> = look.iter().enumerate().filter_map(of_run).collect();
            Reply::json(&json!({ "total_count": runs.len(), "check_runs": page(incoming, &runs) }))
        }
        "statuses" => {
            let look = world.look(parts[1], false);
            let statuses: Vec<Value> = look.iter().filter_map(of_status).collect();
            Reply::json(
                &json!({ "state": "pending", "total_count": statuses.len(), "statuses": page(incoming, &statuses) }),
            )
        }
        "suites" => suites(world, parts[1]),
        "protection" => match world.repository.head(&branch(1)) {
            Some(head) => Reply::json(&json!({
                "name": branch(1), "commit": { "sha": head }, "protected": !world.required.is_empty(),
                "protection": { "enabled": true, "required_status_checks": { "contexts": world.required } },
            })),
            None => not_found(),
        },
        "rules" => Reply::json(&json!([{ "type": "deletion" }])),
        "workflows" => {
            let workflow = |name: &String| json!({ "id": 1, "name": name, "state": "active" });
            let workflows: Vec<Value> = world.workflows.iter().map(workflow).collect();
            Reply::json(&json!({ "total_count": workflows.len(), "workflows": workflows }))
        }
        "log" => Reply::text(&world.log),
        "branch" => match world.repository.head(&branch(3)) {
            Some(head) => {
                Reply::json(&json!({ "ref": branch(3), "object": { "sha": head, "type": "commit" } }))
            }
            None => not_found(),
        },
        "delete-branch" => match world.repository.head(&branch(3)) {
            Some(_) => {
                world.delete(&branch(3));
                Reply::nothing()
            }
            None => Reply::no(422, "Reference does not exist"),
        },
        _ => not_found(),
    }
}

fn not_found() -> Reply {
    Reply::no(404, "Not Found")
}

fn open(world: &mut World, body: &Value) -> Reply {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let draft = body["draft"] == true;
    let refused = |message: &str| {
        Reply::with_status(
            422,
            &json!({ "message": "Validation Failed", "errors": [{ "message": message }] }),
        )
    };
    if draft && !world.has_drafts {
        return Reply::no(422, "Draft pull requests are not supported in this repository.");
    }
    let pull = Pull {
        number: 0,
        branch: text("head"),
        base: text("base"),
        title: text("title"),
        body: text("body"),
        draft,
        state: "open",
        head: String::new(),
        merged_as: None,
    };
    match world.open(pull) {
        Some(Ok(pull)) => Reply::with_status(201, &of_pull(&pull)),
        Some(Err(())) => refused(&format!("A pull request already exists for owner:{}.", text("head"))),
        None => refused(&format!("No commits between {} and {}", text("base"), text("head"))),
    }
}

pub(super) fn edit(pull: &mut Pull, title: &Value, body: &Value) {
    if let Some(title) = title.as_str() {
        pull.title = title.to_owned();
    }
    if let Some(body) = body.as_str() {
        pull.body = body.to_owned();
    }
}

fn merge(world: &mut World, number: u64, body: &Value) -> Reply {
    let Some(pull) = world.pull(number) else { return not_found() };
    if pull.state != "open" {
        return Reply::no(405, "Pull Request is not mergeable");
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return Reply::no(409, "Head branch was modified. Review and try the merge again.");
    }
    if let Some(said) = world.refuses_merge.take() {
        return Reply::no(405, said);
    }
    if let Some((_, said)) = world.hindrance(&pull) {
        return Reply::no(405, &said);
    }
    match world.merge(&pull, body["merge_method"] == "squash") {
        Some(commit) => Reply::json(
            &json!({ "sha": commit, "merged": true, "message": "Pull Request successfully merged" }),
        ),
        None => Reply::no(405, "Pull Request is not mergeable"),
    }
}

fn mergeable(world: &mut World, number: u64) -> Reply {
    let Some(pull) = world.pull(number) else {
        let error = json!({ "type": "NOT_FOUND", "message": "Could not resolve to a PullRequest" });
        return Reply::json(&json!({ "data": { "repository": null }, "errors": [error] }));
    };
    let state = world.hindrance(&pull).map_or("CLEAN", |(state, _)| state);
    let found = json!({
        "state": pull.state.to_uppercase(), "isDraft": pull.draft, "reviewDecision": world.review,
        "mergeable": if state == "DIRTY" { "CONFLICTING" } else { "MERGEABLE" }, "mergeStateStatus": state,
    });
    Reply::json(&json!({ "data": { "repository": { "pullRequest": found } } }))
}

/// The suite of the project's own workflows, once one has begun, and that of another app, which never begins.
fn suites(world: &mut World, head: &str) -> Reply {
    let look = world.look(head, false);
    let mut suites = vec![json!({ "id": 1, "status": "queued", "app": { "slug": "some-app" } })];
    if !look.is_empty() {
        let is_open = |(_, state): &(String, &str)| matches!(*state, "queued" | "in_progress" | "waiting");
        let status = if look.iter().any(is_open) { "in_progress" } else { "completed" };
        suites.push(json!({ "id": 2, "status": status, "app": { "slug": "github-actions" } }));
    }
    Reply::json(&json!({ "total_count": suites.len(), "check_suites": suites }))
}

fn of_run((at, (name, state)): (usize, &(String, &'static str))) -> Option<Value> {
    if name.starts_with("status/") {
        return None;
    }
    let is_open = matches!(*state, "queued" | "in_progress" | "waiting");
    let (status, conclusion) = if is_open { (*state, Value::Null) } else { ("completed", (*state).into()) };
    Some(json!({
        "id": at + 1, "name": name, "status": status, "conclusion": conclusion, "html_url": format!("https://github.com/job/{at}"),
        "app": { "slug": "github-actions" }, "output": { "title": null, "summary": "what it says" }, "check_suite": { "id": 2 },
    }))
}

fn of_status((name, state): &(String, &'static str)) -> Option<Value> {
    name.starts_with("status/").then(|| {
        let state = match *state {
            "queued" | "in_progress" => "pending",
            other => other,
        };
        json!({ "context": name, "state": state, "target_url": null, "description": "what it says" })
    })
}

fn of_pull(pull: &Pull) -> Value {
    json!({
        "number": pull.number, "node_id": format!("PR_{}", pull.number), "title": pull.title, "body": pull.body,
        "html_url": format!("https://github.com/owner/project/pull/{}", pull.number), "draft": pull.draft,
        "state": if pull.state == "open" { "open" } else { "closed" },
        "merged_at": pull.merged_as.as_ref().map(|_| "2026-01-01T00:00:00Z"), "merge_commit_sha": pull.merged_as,
        "head": { "ref": pull.branch, "sha": pull.head }, "base": { "ref": pull.base, "sha": pull.head },
    })
}
