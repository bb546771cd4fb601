//! The page of all loops: what needs you, what runs, what has stopped.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use refrain_core::text::{grouped, printable};
use refrain_core::view::{Group, Kind, progress};
use refrain_engine::BlockedFact;

use super::figures::{Meter, Moment, money};
use super::frame::{Frame, PageQuery, page, shown};
use super::overall::links::{Pill, address, project_pills};
use super::parts::{GateChip, Label, Need, NeedFacts, Strip, TaskNeed, agent_name};
use crate::http::app_state::AppState;
use crate::requests::{Entry, LIST_PAGE, Overview, OverviewFilter, RequestHandler};

#[derive(Template)]
#[template(path = "list.html")]
struct Page {
    frame: Frame,
    counters: Vec<Counter>,
    /// Chips that filter by project, if there are several.
    projects: Vec<Pill>,
    project: String,
    needs_you: u64,
    text: String,
    show: &'static str,
    is_filtered: bool,
    needs: Vec<Row>,
    running: Vec<Row>,
    rest: Vec<Row>,
    /// The pages before and after this one, and which this is.
    previous: Option<String>,
    next: Option<String>,
    place: String,
    unread: Vec<String>,
}

/// A number that filters.
struct Counter {
    name: &'static str,
    class: &'static str,
    href: String,
    count: String,
    is_chosen: bool,
}

/// A loop or plan.
struct Row {
    id: String,
    href: String,
    status: Label,
    goal: String,
    folder: String,
    agent: String,
    progress: String,
    strip: Strip,
    gates: Vec<GateChip>,
    cost: Option<Meter>,
    at: Moment,
    reason: String,
    need: Option<Need>,
}

pub(super) async fn show(State(state): State<Arc<AppState>>, asked: PageQuery) -> Response {
    framed(&state, &asked, Frame::of_all(&state).after(&asked)).await
}

/// The page of all loops in this frame.
pub(super) async fn framed(state: &Arc<AppState>, asked: &PageQuery, frame: Frame) -> Response {
    let frame = frame.in_section("loops");
    let of = |name: &str| asked.get(name).map(|text| text.trim().to_owned()).unwrap_or_default();
    let (show, text, project) = (of("show"), of("text"), of("project"));
    let group = Group::ALL.into_iter().find(|group| group.as_str() == show);
    let at = asked.get("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(1).max(1);
    let named = Some(project.clone()).filter(|name| !name.is_empty());
    let shown_loops = OverviewFilter { group, project: named.clone(), text: text.clone(), page: at - 1 };
    let kept = (show, text.clone());
    let look = move |handler: &RequestHandler| {
        let link =
            |project: &str| address("/", &[("show", &kept.0), ("text", &kept.1), ("project", project)]);
        let mut found = handler.overview(&shown_loops)?;
        let projects = std::mem::take(&mut found.projects);
        Ok((found, project_pills(projects, named.as_deref(), Some("All projects"), link)))
    };
    let found = state.run_blocking(look).await;
    shown(state, found, |(found, projects)| {
        page(&Page { projects, ..Page::of(frame, found, group, (text, project), at) })
    })
}

impl Page {
    fn of(
        frame: Frame,
        found: Overview,
        group: Option<Group>,
        (text, project): (String, String),
        at: usize,
    ) -> Self {
        let Overview { counts, today, entries, more, unread, projects: _ } = found;
        let counters = Group::ALL.into_iter().zip(counts).map(|(it, count)| {
            let is_chosen = group == Some(it);
            let show = if is_chosen { "" } else { it.as_str() };
            let href = address("/", &[("show", show), ("text", &text), ("project", &project)]);
            Counter { name: name(it), class: it.as_str(), href, count: grouped(count as u64), is_chosen }
        });
        let today = today.map_or_else(|| "$0.00".to_owned(), |(cost, more)| money(Some(cost), more));
        let today =
            Counter { name: "today", class: "money", href: String::new(), count: today, is_chosen: false };
        let show = group.map_or("", Group::as_str);
        let link = |page: usize| {
            let page = if page > 1 { page.to_string() } else { String::new() };
            address("/", &[("show", show), ("text", &text), ("project", &project), ("page", &page)])
        };
        let next = (more > 0).then(|| link(at + 1));
        let pages = at + more.div_ceil(LIST_PAGE);
        let place = if text.is_empty() {
            format!("Page {} of {}", grouped(at as u64), grouped(pages as u64))
        } else {
            format!("Page {}", grouped(at as u64))
        };
        let previous = (at > 1).then(|| link(at - 1));
        let (mut needs, mut running, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry.group {
                Group::NeedsYou => needs.push(row(entry)),
                Group::Running => running.push(row(entry)),
                Group::Verified | Group::Unverified | Group::Stopped => rest.push(row(entry)),
            }
        }
        let needs_you = counts[Group::NeedsYou as usize];
        let icon = match (needs_you, counts[Group::Running as usize]) {
            (0, 0) => "idle",
            (0, _) => "running",
            (_, _) => "needs-you",
        };
        Self {
            frame: Frame { icon, ..frame },
            counters: counters.chain([today]).collect(),
            needs_you: needs_you as u64,
            is_filtered: group.is_some() || !text.is_empty() || !project.is_empty(),
            projects: Vec::new(),
            text,
            project,
            show,
            needs,
            running,
            rest,
            previous,
            next,
            place,
            unread,
        }
    }
}

fn name(group: Group) -> &'static str {
    match group {
        Group::NeedsYou => "needs you",
        Group::Running | Group::Verified | Group::Unverified | Group::Stopped => group.as_str(),
    }
}

fn row(entry: Entry) -> Row {
    let goal = entry.shown_goal();
    let Entry { group, project, folder, goal: _, brief, facts, iterations } = entry;
    let is_plan = brief.kind == Kind::Plan;
    let (id, href) = (brief.id.to_string(), format!("/p/{project}/{}", brief.id));
    let reason = printable(&brief.reason).into_owned();
    let awaited = facts.approval.as_ref().filter(|approval| approval.state == "awaited");
    let task = |it: &BlockedFact| {
        TaskNeed::of((&href, "/"), (&it.task, &it.title), (it.question.as_deref(), &it.reason))
    };
    let need = (group == Group::NeedsYou).then(|| {
        let facts = NeedFacts {
            status: brief.status,
            is_plan,
            waits_for: facts.waits_for.as_deref(),
            question: facts.question.as_deref(),
            reason: &reason,
            needs: facts.needs.as_deref(),
            agent: &facts.agent,
            tree: awaited.and_then(|approval| approval.tree.as_deref()),
            tasks: facts.blocked.iter().map(task).collect(),
        };
        Need::of(href.clone(), id.clone(), "/", facts)
    });
    Row {
        id,
        status: Label::of(brief.status, brief.verified),
        goal,
        folder,
        agent: facts.model.clone().unwrap_or_else(|| agent_name(&facts.agent).to_owned()),
        progress: match is_plan {
            true => format!("{}/{} tasks", facts.tasks_done, facts.tasks_total),
            false => progress(brief.iteration, brief.max_iterations),
        },
        strip: Strip::of(&iterations, !brief.status.has_stopped()),
        gates: GateChip::row_of(facts.gates.iter().map(|gate| (gate.name.as_str(), gate.hard, gate.passed))),
        cost: Meter::of(facts.usage.cost_usd, facts.usage.is_more(brief.kind), facts.limits.max_cost_usd),
        at: Moment(brief.updated_at),
        reason,
        need,
        href,
    }
}
