//! Read requests: the status of a loop, the list of loops, and reports.

use std::cmp::Reverse;

use refrain_core::LoopId;
use refrain_core::text::cut;
use refrain_core::view::StatusWord;
use refrain_engine::{Brief, ByKind, ListEntry, PlanReport, Service};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::FrontMatter;
use super::{
    List, Listing, LoopAddress, LoopParams, LoopView, Progress, Refusal, Reported, RequestHandler, Status,
};

/// How much of `state.md` is shown (seed 003).
const EXCERPT: usize = 40;
/// The longest line, in characters: the caller pays for every token.
const LONGEST_LINE: usize = 400;
/// How many ended loops are listed (seed 003).
const MOST_LISTED: usize = 50;
/// How much of a goal a list shows, in characters.
const SHORT_GOAL: usize = 200;

impl RequestHandler {
    pub(crate) fn status(&self, which: &LoopParams) -> Result<Status, Refusal> {
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        let project = name(&service);
        let glance = match service.find(&id)? {
            ByKind::Loop(_) => service.glance(&id)?,
            ByKind::Plan(_) => {
                let plan = service.plan_status(&id)?;
                let view = LoopView::of_plan(&plan, project);
                let tasks = Some((&plan).into());
                return Ok(Status { view, frontmatter: None, state_excerpt: None, tasks });
            }
        };
        let iteration = glance.status.iteration;
        Ok(Status {
            view: LoopView::of(&glance, project),
            frontmatter: glance.says.map(|status| FrontMatter { loop_id: id, status, iteration }),
            state_excerpt: glance.notes.as_deref().map(excerpt),
            tasks: None,
        })
    }

    pub(crate) fn progress(&self, which: &LoopParams) -> Result<Progress, Refusal> {
        let LoopView { iteration_count, max_iterations, status, reason, .. } = self.status(which)?.view;
        Ok(Progress { charged: iteration_count, of: max_iterations, status, reason })
    }

    /// The loops and plans that are not over, oldest first; or all, the last first.
    pub(crate) fn list(&self, asked: &List) -> Result<Listing, Refusal> {
        let services = match &asked.workspace {
            Some(workspace) => vec![self.service(&self.folder(Some(workspace))?)?],
            None => self.services(),
        };
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        for service in &services {
            for row in service.list()? {
                match row {
                    ListEntry::Loop(brief)
                        if (asked.include_finished || is_open(&brief)) && self.sees(service, &brief.id) =>
                    {
                        found.push((service, brief));
                    }
                    ListEntry::Loop(_) => {}
                    ListEntry::Damaged(damaged) => unread.push(format!("{}: {}", damaged.id, damaged.reason)),
                }
            }
        }
        found.sort_by_key(|(_, brief)| Reverse(brief.updated_at));
        found.truncate(if asked.include_finished { MOST_LISTED } else { usize::MAX });
        let mut loops = Vec::new();
        for (service, brief) in found {
            match view(service, &brief) {
                Ok(view) => loops.push(view),
                // It went away in between, or was damaged.
                Err(refusal) => unread.push(format!("{}: {refusal}", brief.id)),
            }
        }
        if !asked.include_finished {
            loops.sort_by_key(|view| view.started_at);
        }
        Ok(Listing { count: loops.len(), loops, unread })
    }

    /// What was asked and claimed, and what proved it; secrets are omitted.
    pub(crate) fn report(&self, which: &LoopParams) -> Result<Reported, Refusal> {
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        Ok(Reported { report: report(&service, &id)? })
    }

    /// The same of a loop that is named by its project and id.
    pub(crate) fn report_of(&self, place: &LoopAddress) -> Result<Value, Refusal> {
        let (service, id) = self.open_place(place)?;
        report(&service, &id)
    }
}

fn report(service: &Service, id: &LoopId) -> Result<Value, Refusal> {
    match service.report(id)? {
        ByKind::Loop(report) => object(&report),
        ByKind::Plan(PlanReport { status, rounds }) => {
            let loops: Vec<_> = rounds.iter().map(|(_, report)| report).collect();
            Ok(json!({"schema": 1, "plan": object(&status)?, "loops": object(&loops)?}))
        }
    }
}

/// A loop, or a plan, as a list shows it.
fn view(service: &Service, brief: &Brief) -> Result<LoopView, Refusal> {
    let view = match service.find(&brief.id)? {
        ByKind::Loop(_) => LoopView::of(&service.glance(&brief.id)?, name(service)),
        ByKind::Plan(_) => LoopView::of_plan(&service.plan_status(&brief.id)?, name(service)),
    };
    Ok(LoopView { goal: cut(&view.goal, SHORT_GOAL).into_owned(), ..view })
}

/// The project's name in the addresses of resources.
pub(crate) fn name(service: &Service) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    service.project().own_name().chars().map(plain).collect()
}

/// Whether it may still get on, by itself or once a person has done something.
fn is_open(brief: &Brief) -> bool {
    matches!(brief.status, StatusWord::Paused | StatusWord::Blocked) || !brief.has_stopped()
}

fn excerpt(notes: &str) -> String {
    let lines: Vec<_> = notes.lines().take(EXCERPT).map(|line| cut(line, LONGEST_LINE)).collect();
    lines.join("\n")
}

fn object(value: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|error| Refusal::new(error.to_string()))
}
