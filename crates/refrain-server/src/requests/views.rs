//! Views of one loop or plan, named by its project and id, and of all of them in a list.

use refrain_app::differences::diff;
use refrain_core::fingerprint::failing_tests;
use refrain_core::gate::GateName;
use refrain_core::view::{Gate, Iteration, Status as LoopStatus, sandbox};
use refrain_core::{AttemptId, LoopId};
use refrain_engine::{Brief, ChangeSize, Detail, Differences, ListEntry, LogKind, OwnBranch, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::address::{Address, Part};
use super::status::name;
use super::{Refusal, RefusalKind, RequestHandler, ToolDiff};

/// The statuses by which a list can be filtered.
pub(crate) const STATUSES: [&str; 12] = [
    "running",
    "waiting",
    "paused",
    "blocked",
    "crashed",
    "completed",
    "cancelled",
    "iteration-cap",
    "budget-exceeded",
    "timed-out",
    "stuck",
    "failed",
];
/// The default and the largest number of listed loops.
const LISTED: usize = 200;
const MOST_LISTED: usize = 2_000;
/// The default and the largest part of a log per read, in bytes.
const PART: u64 = 64 << 10;
const MOST_PART: u64 = 1 << 20;
/// How many iterations are read for their failing tests, and how much of each gate's output, in bytes.
const MOST_FAILURES: usize = 100;
const FAILURE_END: u64 = 64 << 10;

/// A loop, or a plan, by name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct LoopAddress {
    /// The project's name, as the list of projects has it.
    pub(crate) project: String,
    /// The loop's, or the plan's, id.
    pub(crate) id: String,
}

impl LoopAddress {
    pub(crate) fn path(&self) -> String {
        format!("/p/{}/{}", self.project, self.id)
    }
}

/// A project.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ProjectView {
    /// Its name in addresses.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: String,
}

/// Which loops are listed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// Those of one project, by its name.
    pub(crate) project: Option<String>,
    /// Those of these statuses, with commas between them.
    pub(crate) status: Option<String>,
    /// Those whose id, project or reason holds this.
    pub(crate) text: Option<String>,
    /// How many at most, last touched first, at most 2000 [default: 200].
    pub(crate) limit: Option<usize>,
}

/// What is listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SearchPage {
    /// The loops and plans, last touched first.
    pub(crate) loops: Vec<Row>,
    /// How many more there are.
    pub(crate) more: usize,
    /// What could not be read, and why.
    pub(crate) unread: Vec<String>,
}

/// A row of a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// The project's name.
    pub(crate) project: String,
    /// How it stands: a row of `refrain list --json`.
    #[serde(rename = "loop")]
    #[schemars(with = "serde_json::Value")]
    pub(crate) object: Box<RawValue>,
}

/// A part of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LogPart {
    /// The first byte of it.
    pub(crate) from: u64,
    /// Where the next part begins.
    pub(crate) next: u64,
    /// How many bytes there are now.
    pub(crate) total: u64,
    /// The text, less secrets and control characters.
    pub(crate) text: String,
}

/// What a loop has changed so far.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// What is shown, and against what; where nothing can be shown, why.
    pub(crate) note: String,
    /// Whether anything can be shown.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) is_shown: bool,
    /// The files, with how many lines.
    pub(crate) stat: String,
    /// The differences, cut in the middle where they are long.
    pub(crate) diff: String,
}

impl ProjectView {
    pub(crate) fn of(service: &Service) -> Self {
        Self { name: name(service), folder: service.project().root.to_string() }
    }
}

/// Where the work of a loop is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkPlace {
    /// It has stopped, and its own branch has work that is not merged yet. If that cannot be found out, the merge says why.
    pub(crate) can_merge: bool,
    pub(crate) is_discarded: bool,
    pub(crate) is_archived: bool,
}

impl RequestHandler {
    pub(crate) fn projects(&self) -> Vec<ProjectView> {
        self.services().iter().map(ProjectView::of).collect()
    }

    /// Loops and plans, last touched first.
    pub(crate) fn find(&self, filter: &Filter) -> Result<SearchPage, Refusal> {
        let limit = filter.limit.unwrap_or(LISTED);
        if limit > MOST_LISTED {
            return Err(Refusal::new(format!("limit {limit}: accepted: numbers up to {MOST_LISTED}")));
        }
        let statuses = filter.status.iter().flat_map(|all| all.split(',')).map(str::trim);
        let statuses: Vec<_> = statuses.filter(|word| !word.is_empty()).collect();
        if let Some(unknown) = statuses.iter().find(|word| !STATUSES.contains(word)) {
            let accepted = STATUSES.join(", ");
            return Err(Refusal::new(format!("status {unknown}: accepted: {accepted}")));
        }
        let text = filter.text.as_deref().unwrap_or_default().to_lowercase();
        let is_wanted = |brief: &Brief| {
            let shown = || format!("{} {} {}", brief.id, brief.project, brief.reason).to_lowercase();
            (statuses.is_empty() || statuses.contains(&brief.status.as_str()))
                && (text.is_empty() || shown().contains(&text))
        };
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        let mut services = self.services();
        services.retain(|service| filter.project.as_ref().is_none_or(|wanted| *wanted == name(service)));
        for (service, rows) in services.iter().zip(Service::list_each(&services, Detail::Object)?) {
            let (project, is_whole) = (name(service), self.is_whole(service));
            let is_seen = |brief: &Brief| is_whole || self.sees(service, &brief.id);
            for row in rows {
                match row {
                    ListEntry::Loop(brief) if is_wanted(&brief) && is_seen(&brief) => {
                        found.push((project.clone(), brief))
                    }
                    ListEntry::Loop(_) => {}
                    ListEntry::Damaged(damaged) => unread.push(format!("{}: {}", damaged.id, damaged.reason)),
                }
            }
        }
        found.sort_by_key(|(_, brief)| std::cmp::Reverse(brief.updated_at));
        let more = found.len().saturating_sub(limit);
        let row = |(project, mut brief): (String, Box<Brief>)| {
            let object = RawValue::from_string(brief.object.take()?).ok()?;
            Some(Row { project, object })
        };
        Ok(SearchPage { loops: found.into_iter().take(limit).filter_map(row).collect(), more, unread })
    }

    /// A page of its journal, one JSON object a line.
    pub(crate) fn journal(
        &self,
        place: &LoopAddress,
        from: Option<u64>,
        limit: Option<usize>,
    ) -> Result<String, Refusal> {
        let (service, id) = self.open_place(place)?;
        let limit = limit.unwrap_or(100);
        if !(1..=1_000).contains(&limit) {
            return Err(Refusal::new(format!("limit {limit}: accepted: numbers from 1 to 1000")));
        }
        self.read(&Address { project: name(&service), id, part: Part::Journal { from, limit } })
    }

    /// Its `state.md`.
    pub(crate) fn notes(&self, place: &LoopAddress) -> Result<String, Refusal> {
        let (service, id) = self.open_place(place)?;
        self.read(&Address { project: name(&service), id, part: Part::State })
    }

    pub(crate) fn goal(&self, place: &LoopAddress) -> Result<String, Refusal> {
        let (service, id) = self.open_place(place)?;
        Ok(service.goal(&id)?.to_string())
    }

    pub(crate) fn told(&self, place: &LoopAddress, attempt: &str) -> Result<String, Refusal> {
        let (service, id) = self.open_place(place)?;
        let gone =
            || Refusal::of(RefusalKind::NotFound, format!("{id} has no prompt of iteration {attempt}"));
        service.told(&id, of_attempt(attempt)?)?.ok_or_else(gone)
    }

    /// A part of a log: `output`, `errors`, `critique`, or `gate:NAME` or `gate:NAME:RUN`.
    pub(crate) fn log(
        &self,
        place: &LoopAddress,
        (attempt, which): (&str, &str),
        from: Option<u64>,
        limit: Option<u64>,
    ) -> Result<LogPart, Refusal> {
        let (service, id) = self.open_place(place)?;
        let (of, kept) = (of_attempt(attempt)?, kept(which)?);
        let part = service.printed(&id, (of, &kept), from, within(limit)?)?;
        let gone =
            || Refusal::of(RefusalKind::NotFound, format!("{id} has no {which} of iteration {attempt}"));
        let part = part.ok_or_else(gone)?;
        Ok(LogPart { from: part.from, next: part.next, total: part.total, text: part.text })
    }

    /// How many tests failed after each of the latest iterations with gates: by the output of their required gates, as
    /// far as it says that.
    pub(crate) fn failing_tests(
        &self,
        place: &LoopAddress,
        status: &LoopStatus,
    ) -> Result<Vec<(String, Option<u64>)>, Refusal> {
        let (service, id) = self.open_place(place)?;
        let all: Vec<_> = status.iterations.iter().flatten().filter(|it| !it.gates.is_empty()).collect();
        let count = |gate: &Gate| {
            if gate.passed {
                return Some(0);
            }
            let of = (gate.ran.0, &LogKind::Gate(gate.name.parse().ok()?, gate.ran.1));
            let part = service.printed(&id, of, None, FAILURE_END).ok()??;
            Some(failing_tests(&part.text).count()).filter(|count| *count > 0)
        };
        let of_iteration = |it: &&Iteration| {
            let failed = it.gates.iter().any(|gate| gate.hard && !gate.passed);
            let sum = it.gates.iter().filter(|gate| gate.hard).filter_map(count).sum();
            (it.id().to_string(), Some(sum).filter(|sum| *sum > 0 || !failed))
        };
        Ok(all[all.len().saturating_sub(MOST_FAILURES)..].iter().map(of_iteration).collect())
    }

    /// Where the work of a loop is.
    pub(crate) fn work_place(&self, place: &LoopAddress, status: &LoopStatus) -> Result<WorkPlace, Refusal> {
        let (service, id) = self.open_place(place)?;
        let is_archived = service.locate(&id)?.archived;
        if !status.has_stopped() {
            return Ok(WorkPlace { is_archived, ..WorkPlace::default() });
        }
        let branch = service.branch_state(&id);
        Ok(WorkPlace {
            can_merge: status.merged_into.is_none()
                && branch.as_ref().map_or(true, |branch| *branch == Some(OwnBranch::Open)),
            is_discarded: matches!(branch, Ok(Some(OwnBranch::Discarded(_)))),
            is_archived,
        })
    }

    /// The sandbox of a loop in words; empty if it has none.
    pub(crate) fn sandbox(&self, place: &LoopAddress) -> Result<String, Refusal> {
        let (service, id) = self.open_place(place)?;
        Ok(sandbox(&service.spec_of(&id)?))
    }

    /// How much a loop has changed, as far as that is on record.
    pub(crate) fn change_size(&self, place: &LoopAddress) -> Result<Option<ChangeSize>, Refusal> {
        let (service, id) = self.open_place(place)?;
        Ok(service.recorded_change_size(&id)?)
    }

    /// The changes of a loop so far, or of one iteration.
    pub(crate) fn difference(
        &self,
        place: &LoopAddress,
        iteration: Option<u32>,
    ) -> Result<Difference, Refusal> {
        Difference::of(&self.open_place(place)?, iteration)
    }

    /// The same for a tool.
    pub(crate) fn difference_of_loop(&self, asked: &ToolDiff) -> Result<Difference, Refusal> {
        let found = self.of_loop(&asked.loop_id, asked.workspace.as_deref())?;
        let difference = Difference::of(&found, asked.iteration)?;
        Ok(if asked.stat { Difference { diff: String::new(), ..difference } } else { difference })
    }
}

impl Difference {
    fn of((service, id): &(Service, LoopId), iteration: Option<u32>) -> Result<Self, Refusal> {
        let Differences { note, is_shown, stat, diff } = diff(service, id, iteration)?;
        Ok(Self { note, is_shown, stat, diff })
    }
}

/// An attempt as people write it: `3`, or `3.2`.
pub(super) fn of_attempt(text: &str) -> Result<AttemptId, Refusal> {
    let (iteration, attempt) = text.split_once('.').unwrap_or((text, "1"));
    let parsed = iteration.parse().ok().zip(attempt.parse().ok().filter(|n| *n > 0));
    let refused = || Refusal::new(format!("{text}: accepted: iterations, as 3, or attempts of them, as 3.2"));
    parsed.map(|(iteration, attempt)| AttemptId { iteration, attempt }).ok_or_else(refused)
}

fn kept(which: &str) -> Result<LogKind, Refusal> {
    let refused =
        || Refusal::new(format!("{which}: accepted: output, errors, critique, gate:NAME and gate:NAME:RUN"));
    match which {
        "output" => Ok(LogKind::Output),
        "errors" => Ok(LogKind::Errors),
        "critique" => Ok(LogKind::Critique),
        gate => {
            let (name, run) = gate
                .strip_prefix("gate:")
                .map(|it| it.split_once(':').unwrap_or((it, "1")))
                .ok_or_else(refused)?;
            let name: GateName = name.parse().map_err(|_| refused())?;
            Ok(LogKind::Gate(name, run.parse().map_err(|_| refused())?))
        }
    }
}

pub(super) fn within(limit: Option<u64>) -> Result<u64, Refusal> {
    match limit.unwrap_or(PART) {
        limit @ 1..=MOST_PART => Ok(limit),
        limit => Err(Refusal::new(format!("limit {limit}: accepted: 1 to {MOST_PART} bytes"))),
    }
}
