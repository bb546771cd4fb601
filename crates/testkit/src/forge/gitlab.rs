//! GitLab's side of the API. The world is stored in GitHub's terms and translated here.

use serde_json::{Value, json};

use super::github::edit;
use super::reply::Reply;
use super::server::{decoded, page, queried};
use super::world::{Pull, World};
use crate::model::http::Incoming;

const DRAFT: &str = "Draft: ";

/// The path after the project, in parts.
fn parts(incoming: &Incoming) -> Vec<&str> {
    match incoming.path.strip_prefix("/projects/owner%2Fproject") {
        Some(rest) => rest.split('/').filter(|part| !part.is_empty()).collect(),
        None => vec!["nowhere"],
    }
}

/// The name by which a question is counted.
pub(super) fn name(incoming: &Incoming) -> &'static str {
    match (incoming.method.as_str(), parts(incoming).as_slice()) {
        ("GET", []) => "project",
        ("GET", ["merge_requests"]) => "find",
        ("POST", ["merge_requests"]) => "open",
        ("GET", ["merge_requests", _]) => "get",
        ("PUT", ["merge_requests", _]) => "edit",
        ("PUT", ["merge_requests", _, "merge"]) => "merge",
        ("GET", ["pipelines"]) => "checks",
        ("GET", ["pipelines", _, "jobs"]) => "jobs",
        ("GET", ["repository", "commits", _, "statuses"]) => "statuses",
        ("GET", ["repository", "files", _]) => "file",
        ("GET", ["jobs", _, "trace"]) => "log",
        ("GET", ["repository", "branches", _]) => "branch",
        ("DELETE", ["repository", "branches", _]) => "delete-branch",
        _ => "nowhere",
    }
}

pub(super) fn reply(world: &mut World, name: &str, incoming: &Incoming) -> Reply {
    let parts = parts(incoming);
    let body = incoming.json();
    let number = parts.get(1).and_then(|part| part.parse().ok()).unwrap_or_default();
    let branch = parts.get(2).map(|part| decoded(part)).unwrap_or_default();
    if world.may_only_look && matches!(name, "open" | "edit" | "merge" | "delete-branch") {
        return Reply::no(403, "403 Forbidden");
    }
    match name {
        "project" => Reply::json(&json!({
            "path_with_namespace": "owner/project", "default_branch": "main", "builds_access_level": "enabled", "ci_config_path": "",
            "permissions": { "project_access": { "access_level": if world.may_only_look { 20 } else { 40 } }, "group_access": null },
        })),
        "find" => {
            let requests = world.of_branch(&queried(incoming, "source_branch").unwrap_or_default());
            let requests = requests.iter().map(|pull| of_request(world, pull)).collect();
            Reply::json(&requests)
        }
        "open" => open(world, &body),
        "get" => show(world, number),
        "edit" => {
            world.change_pull(number, |pull| {
                edit(pull, &body["title"], &body["description"]);
                pull.draft = pull.title.starts_with(DRAFT);
            });
            show(world, number)
        }
        "merge" => merge(world, number, &body),
        // One pipeline for each commit.
        "checks" => {
            let head = queried(incoming, "sha").unwrap_or_default();
            let look = world.look(&head, true);
            world.pipeline = head;
            let is_open = |(_, state): &(String, &str)| matches!(*state, "queued" | "in_progress");
            let status = if look.iter().any(is_open) { "running" } else { "success" };
            let newest = json!({ "id": 1, "status": status, "ref": "main", "source": "push" });
            // A superseded pipeline that another user started; it must not count.
            let oldest = json!({ "id": 0, "status": "running", "ref": "main", "source": "push" });
            Reply::json(&if look.is_empty() { json!([]) } else { json!([newest, oldest]) })
        }
        "jobs" => {
            let look = world.look(&world.pipeline.clone(), false);
            let jobs: Vec<Value> = look.iter().enumerate().filter_map(of_job).collect();
            Reply::json(&page(incoming, &jobs).into())
        }
        "statuses" => {
            let look = world.look(parts[2], false);
            let statuses: Vec<Value> = look.iter().map(of_status).collect();
            Reply::json(&page(incoming, &statuses).into())
        }
        "file" => {
            let commit = queried(incoming, "ref").unwrap_or_default();
            match world.repository.has(&commit, &branch) {
                true => Reply::json(&json!({ "file_path": branch })),
                false => Reply::no(404, "404 File Not Found"),
            }
        }
        "log" => Reply::text(&world.log),
        "branch" => match world.repository.head(&branch) {
            Some(head) => Reply::json(&json!({ "name": branch, "commit": { "id": head } })),
            None => Reply::no(404, "404 Branch Not Found"),
        },
        "delete-branch" => match world.repository.head(&branch) {
            Some(_) => {
                world.delete(&branch);
                Reply::nothing()
            }
            None => Reply::no(404, "404 Branch Not Found"),
        },
        _ => Reply::no(404, "404 Not Found"),
    }
}

fn show(world: &mut World, number: u64) -> Reply {
    match world.pull(number) {
        Some(pull) => Reply::json(&of_request(world, &pull)),
        None => Reply::no(404, "404 Not Found"),
    }
}

fn open(world: &mut World, body: &Value) -> Reply {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let pull = Pull {
        number: 0,
        branch: text("source_branch"),
        base: text("target_branch"),
        title: text("title"),
        body: text("description"),
        draft: text("title").starts_with(DRAFT),
        state: "open",
        head: String::new(),
        merged_as: None,
    };
    let exists = "Another open merge request already exists for this source branch: !1";
    match world.open(pull) {
        Some(Ok(pull)) => Reply::with_status(201, &of_request(world, &pull)),
        Some(Err(())) => Reply::with_status(409, &json!({ "message": [exists] })),
        None => Reply::with_status(400, &json!({ "message": { "source_branch": ["does not exist"] } })),
    }
}

fn merge(world: &mut World, number: u64, body: &Value) -> Reply {
    let Some(pull) = world.pull(number) else { return Reply::no(404, "404 Not Found") };
    if pull.state != "open" {
        return Reply::no(405, "405 Method Not Allowed");
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return Reply::no(409, "SHA does not match HEAD of source branch");
    }
    if let Some(said) = world.refuses_merge.take() {
        return Reply::no(405, said);
    }
    if world.hindrance(&pull).is_some() {
        return Reply::no(405, "405 Method Not Allowed");
    }
    match world.merge(&pull, body["squash"] == true) {
        Some(_) => show(world, number),
        None => Reply::no(422, "Branch cannot be merged"),
    }
}

fn of_request(world: &mut World, pull: &Pull) -> Value {
    let state = match pull.state {
        "open" => "opened",
        other => other,
    };
    let status = match world.hindrance(pull).map(|(state, _)| state) {
        None => "mergeable",
        Some("DRAFT") => "draft_status",
        Some("DIRTY") => "conflict",
        Some("BEHIND") => "need_rebase",
        Some(_) if world.review.is_some() => "not_approved",
        Some(_) => "ci_must_pass",
    };
    json!({
        "iid": pull.number, "id": 1000 + pull.number, "title": pull.title, "description": pull.body, "draft": pull.draft,
        "web_url": format!("https://gitlab.com/owner/project/-/merge_requests/{}", pull.number), "state": state, "sha": pull.head,
        "source_branch": pull.branch, "target_branch": pull.base, "merge_commit_sha": null, "squash_commit_sha": pull.merged_as,
        "detailed_merge_status": if state == "opened" { status } else { "not_open" },
    })
}

fn word(state: &str) -> &str {
    match state {
        "queued" => "pending",
        "in_progress" => "running",
        "failure" => "failed",
        "cancelled" => "canceled",
        "action_required" => "manual",
        other => other,
    }
}

fn of_job((at, (name, state)): (usize, &(String, &'static str))) -> Option<Value> {
    (!name.starts_with("status/")).then(|| {
        json!({
            "id": at + 1, "name": name, "status": word(state), "allow_failure": false, "failure_reason": "script_failure",
            "web_url": format!("https://gitlab.com/job/{at}"),
        })
    })
}

fn of_status((name, state): &(String, &'static str)) -> Value {
    json!({ "name": name, "status": word(state), "allow_failure": false, "target_url": null, "description": "what it says" })
}
