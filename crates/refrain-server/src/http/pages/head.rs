//! The head of the page of a loop or a plan: its status, its limits, what can be done with it, and its tabs.

use askama::Template;
use refrain_core::git::PullRequest;
use refrain_core::r#loop::{QueuedEffect, QueuedRequest};
use refrain_core::text::{clip, squeeze};
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{ApprovalWord, Group, Status, StatusWord, WaitsFor, progress};
use refrain_engine::ChangeSize;

use super::figures::{Meter, Moment, clock};
use super::parts::{GateChip, Label, Need, NeedFacts, Strip, agent_name, sentence};
use crate::requests::WorkPlace;

/// How much of a goal the head shows, in bytes.
const SHORT_GOAL: usize = 400;

#[derive(Template)]
#[template(path = "head.html")]
pub(super) struct Head {
    pub(super) base: String,
    pub(super) id: String,
    pub(super) icon: &'static str,
    status: Label,
    goal: String,
    reason: String,
    at: Moment,
    /// The plan of a task, and the task in words.
    task: Option<(String, String)>,
    folder: String,
    facts: Vec<(&'static str, String)>,
    /// The number of its pull request, and its address, if that is one to follow.
    request: Option<(String, String)>,
    strip: Strip,
    progress: (&'static str, String, Option<(u64, u64)>),
    cost: Option<Meter>,
    pub(super) gates: Vec<GateChip>,
    primary: Option<Act>,
    acts: Vec<Act>,
    need: Option<Need>,
    queued: Vec<QueuedRequest>,
    notice: &'static str,
    tabs: Vec<Tab>,
}

/// Something that can be done with a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Act {
    verb: &'static str,
    label: &'static str,
    /// It has a page of its own, which asks for details or to confirm.
    asks: bool,
    is_danger: bool,
}

impl Act {
    const fn new(verb: &'static str, label: &'static str) -> Self {
        Self { verb, label, asks: false, is_danger: false }
    }

    const fn asking(verb: &'static str, label: &'static str) -> Self {
        Self { asks: true, ..Self::new(verb, label) }
    }

    const fn danger(verb: &'static str, label: &'static str) -> Self {
        Self { is_danger: true, ..Self::asking(verb, label) }
    }
}

/// A part of the loop with a page of its own.
struct Tab {
    name: &'static str,
    path: &'static str,
    is_shown: bool,
    size: Option<ChangeSize>,
}

/// The path of the changes.
const CHANGES: &str = "/diff";
/// The pages of a loop: their paths and names.
const TABS: [(&str, &str); 5] = [
    ("", "Activity"),
    (CHANGES, "Changes"),
    ("/gates", "Gates"),
    ("/prompt", "Prompt"),
    ("/report", "Report"),
];

impl Head {
    /// Of a loop; `tab` is the path of the page.
    pub(super) fn of(base: &str, status: &Status, goal: &str, work: &WorkPlace, tab: &str) -> Self {
        let group = Group::of(status.status, status.verified, status.waits_for == Some(WaitsFor::Answer));
        let awaited = status.approval.as_ref().filter(|it| it.state == ApprovalWord::Awaited);
        let need = (group == Group::NeedsYou).then(|| {
            let agent = status.agent.to_string();
            let facts = NeedFacts {
                status: status.status,
                is_plan: false,
                waits_for: status.waits_for.map(WaitsFor::as_str),
                question: status.question.as_deref(),
                reason: &status.reason,
                needs: status.needs.as_deref(),
                agent: &agent,
                tree: awaited.and_then(|it| it.tree.as_deref()),
                tasks: Vec::new(),
            };
            Need::of(base.to_owned(), status.id.to_string(), "", facts)
        });
        let merged_into = status.merged_into.as_ref();
        let can_merge = work.can_merge && awaited.is_none();
        let (mut primary, acts) = acts(status.status, need.is_some(), can_merge, !work.is_archived);
        // It is asked for already, and listed with the button that takes it back.
        if status.queued.iter().any(|queued| queued.effect == QueuedEffect::Pause) {
            primary = None;
        }
        let model = status.model.as_deref().map(|model| format!(" · {model}")).unwrap_or_default();
        let mut facts = vec![("Agent", format!("{}{model}", agent_name(&status.agent.to_string())))];
        let merged = match merged_into {
            Some(into) => format!(", merged into {into}"),
            None if work.is_discarded => ", discarded".to_owned(),
            None => String::new(),
        };
        facts.extend(status.branch.as_ref().map(|branch| ("Branch", format!("{branch}{merged}"))));
        facts.extend(work.is_archived.then(|| ("Archived", "yes".to_owned())));
        if status.status == StatusWord::Moved {
            facts.extend(status.needs.clone().map(|needs| ("To continue", needs)));
        }
        facts.extend(status.mode.clone().map(|mode| ("Mode", mode)));
        if let Some(wait) = &status.wait {
            facts.push(("Waits until", clock(wait.until)));
        }
        let usage = &status.usage;
        let cap = status.limits.max_cost.map(f64::from);
        Self {
            base: base.to_owned(),
            id: status.id.to_string(),
            icon: Label::icon(group),
            status: Label::of(status.status, status.verified),
            goal: clip(&squeeze(goal.trim_start_matches(['#', ' '])), SHORT_GOAL).into_owned(),
            reason: sentence(&status.reason),
            at: Moment(status.updated_at),
            task: status.task.as_ref().map(|it| (it.plan.to_string(), format!("{} {}", it.id, it.title))),
            folder: folder(&status.project),
            facts,
            request: status.publication.as_ref().and_then(|it| it.pull_request.as_ref()).map(pull_request),
            strip: Strip::of(status.iterations.as_deref().unwrap_or_default(), !status.has_stopped()),
            progress: (
                "Iterations",
                status.progress(),
                status.max_iterations.map(|cap| (status.iteration.into(), cap.into())),
            ),
            cost: Meter::of(usage.cost_usd, usage.cost_at_least, cap),
            gates: status.gates.iter().map(|it| GateChip::of(&it.name, it.hard, it.passed)).collect(),
            primary,
            acts,
            need,
            queued: status.queued.clone(),
            notice: "",
            tabs: TABS
                .into_iter()
                .map(|(path, name)| Tab { name, path, is_shown: path == tab, size: None })
                .collect(),
        }
    }

    /// What the title of the page begins with.
    pub(super) fn mark(&self) -> &'static str {
        match self.icon {
            "needs-you" => "(!) ",
            "running" => "● ",
            "verified" => "✔ ",
            _ => "",
        }
    }

    /// The same with how much the loop has changed.
    pub(super) fn with_size(mut self, size: Option<ChangeSize>) -> Self {
        if let Some(tab) = self.tabs.iter_mut().find(|tab| tab.path == CHANGES) {
            tab.size = size.filter(|size| size.files > 0);
        }
        self
    }

    /// The same with a notice of what the last form did.
    pub(super) fn noticed(self, notice: &'static str) -> Self {
        Self { notice, ..self }
    }

    pub(super) fn of_plan(base: &str, status: &PlanStatus) -> Self {
        let group = Group::of(status.status, status.verified, false);
        let need = (group == Group::NeedsYou && status.status == StatusWord::Crashed).then(|| {
            let facts = NeedFacts {
                status: status.status,
                is_plan: true,
                waits_for: None,
                question: None,
                reason: &status.reason,
                needs: status.needs.as_deref(),
                agent: "",
                tree: None,
                tasks: Vec::new(),
            };
            Need::of(base.to_owned(), status.id.to_string(), "", facts)
        });
        let (primary, acts) = acts(status.status, need.is_some(), status.behind.is_some(), false);
        let usage = &status.usage;
        let model = status.model.as_deref().map(|model| format!(" · {model}")).unwrap_or_default();
        let mut facts = vec![
            ("Agent", format!("{}{model}", agent_name(&status.agent.to_string()))),
            ("Tasks at a time", status.jobs.to_string()),
            ("Iterations", progress(usage.iterations_used, Some(usage.iterations_granted))),
        ];
        if !status.verification.is_empty() {
            facts.push(("Verified by", status.verification.join("; ")));
        }
        if let Some(estimate) = status.estimate.as_ref().filter(|estimate| estimate.left_ms.0 > 0) {
            facts.push(("Time left", estimate.left_ms.to_string()));
        }
        Self {
            base: base.to_owned(),
            id: status.id.to_string(),
            icon: Label::icon(group),
            status: Label::of(status.status, status.verified),
            goal: format!("the tasks of {}", status.tag),
            reason: sentence(&status.reason),
            at: Moment(status.updated_at),
            task: None,
            folder: folder(&status.project),
            facts,
            request: None,
            strip: Strip::of(&[], false),
            progress: (
                "Tasks",
                format!("{}/{}", status.tasks_done, status.tasks_total),
                Some((status.tasks_done as u64, status.tasks_total as u64)),
            ),
            cost: Meter::of(usage.cost_usd, usage.at_least, status.limits.max_cost.map(f64::from)),
            gates: Vec::new(),
            primary,
            acts,
            need,
            queued: Vec::new(),
            notice: "",
            tabs: Vec::new(),
        }
    }
}

/// The forge says the address: only one of the web is followed.
fn pull_request(request: &PullRequest) -> (String, String) {
    let url = Some(&request.url).filter(|url| url.starts_with("https://"));
    (format!("#{}", request.number), url.cloned().unwrap_or_default())
}

fn folder(project: &str) -> String {
    project.rsplit('/').next().unwrap_or(project).to_owned()
}

/// The action that is most likely meant, and the others. If it needs you, its form comes first.
fn acts(status: StatusWord, needs_you: bool, can_merge: bool, can_archive: bool) -> (Option<Act>, Vec<Act>) {
    let cancel = Act::danger("cancel", "Cancel…");
    let (primary, mut acts) = match status {
        StatusWord::Running | StatusWord::Waiting => {
            (Some(Act::new("pause", "Pause")), vec![Act::asking("pause", "Pause at once…"), cancel])
        }
        StatusWord::Completed if can_merge => (Some(Act::asking("merge", "Merge…")), Vec::new()),
        StatusWord::Completed | StatusWord::Cancelled | StatusWord::Moved => (None, Vec::new()),
        StatusWord::Paused | StatusWord::Crashed => {
            (Some(Act::new("resume", "Continue")), vec![Act::asking("resume", "Continue with more…"), cancel])
        }
        StatusWord::Blocked
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck
        | StatusWord::Failed => (Some(Act::asking("resume", "Continue…")), vec![cancel]),
    };
    if status.has_stopped() && !matches!(status, StatusWord::Crashed | StatusWord::Moved) {
        if can_merge && status != StatusWord::Completed {
            acts.push(Act::asking("merge", "Merge…"));
        }
        acts.extend(can_archive.then_some(Act::new("archive", "Archive")));
        acts.push(Act::danger("discard", "Discard…"));
    }
    match primary {
        Some(primary) if needs_you => {
            acts.insert(0, primary);
            (None, acts)
        }
        primary => (primary, acts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_that_cannot_be_undone_ask_first() {
        let verbs = |(primary, acts): (Option<Act>, Vec<Act>)| {
            let all: Vec<_> = acts.iter().map(|act| (act.verb, act.asks)).collect();
            (primary.map(|act| act.verb), all)
        };
        assert_eq!(
            verbs(acts(StatusWord::Running, false, true, true)),
            (Some("pause"), vec![("pause", true), ("cancel", true)])
        );
        assert_eq!(
            verbs(acts(StatusWord::Completed, false, true, true)),
            (Some("merge"), vec![("archive", false), ("discard", true)])
        );
        assert_eq!(verbs(acts(StatusWord::Completed, false, false, false)), (None, vec![("discard", true)]));
        assert_eq!(
            verbs(acts(StatusWord::Blocked, true, false, true)),
            (None, vec![("resume", true), ("cancel", true), ("archive", false), ("discard", true)])
        );
    }
}
