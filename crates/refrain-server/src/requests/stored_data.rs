//! Reads stored data of a loop, without secrets: its `state.md`, its journal, its export; verifies the journal; and
//! sums the usage of all loops.

use std::fmt;

use jiff::tz::TimeZone;
use refrain_core::mirror::Mirror;
use refrain_core::view::report::Verdict;
use refrain_core::view::usage::{GroupBy, Report, Since};
use refrain_core::{LoopId, Record};
use refrain_engine::{ByKind, Changes, Screen, UsageScope, now};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address::{Address, Part};
use super::{LoopAddress, LoopParams, LoopView, Refusal, RequestHandler};

/// What `refrain verify --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VerifyResult {
    /// Of a loop.
    Loop(Box<Verdict>),
    /// Of a plan: its own, then those of its loops.
    Plan(Vec<Verdict>),
}

/// A round of a task, which is a loop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Round {
    /// Which task.
    pub(crate) task: String,
    /// Which of its rounds, from 1.
    pub(crate) round: u32,
    /// The loop.
    #[serde(rename = "loop")]
    pub(crate) id: LoopId,
}

/// What usage is added up of.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UsageOf {
    /// Only what ended since then: a date as 2026-11-01, or how long ago, as 7d or 12h.
    pub(crate) since: Option<String>,
    /// What to add up by: day (the default), project, agent, model or pool.
    pub(crate) by: Option<String>,
    /// Of one project, by its name [default: of all that are open].
    pub(crate) project: Option<String>,
}

/// How much of a journal is read at once, in bytes; of a larger event only the name is returned.
const LARGEST: usize = 1 << 20;

impl RequestHandler {
    pub(crate) fn read(&self, address: &Address) -> Result<String, Refusal> {
        let (service, id) = self.at(&address.project, address.id.clone())?;
        match address.part {
            Part::State => {
                let gone = || Refusal::new(format!("{id} has no state.md"));
                service.glance(&id)?.notes.ok_or_else(gone)
            }
            Part::Journal { from, limit } => {
                let screen = service.screen(&id)?;
                Ok(page(service.redacted_events(&id)?, &screen, from, limit))
            }
        }
    }

    /// A loop as another system has it, or as `status --json` does.
    pub(crate) fn export(&self, place: &LoopAddress, format: Option<&str>) -> Result<String, Refusal> {
        let to = match format.unwrap_or("json") {
            "json" => None,
            "synthex" => Some(Mirror::Synthex),
            "descartes" => Some(Mirror::Descartes),
            "ralph" => Some(Mirror::Ralph),
            "randroid" => Some(Mirror::Randroid),
            other => {
                let accepted = "accepted: json, synthex, descartes, ralph and randroid";
                return Err(Refusal::new(format!("format {other}: {accepted}")));
            }
        };
        let (service, id) = self.open_place(place)?;
        Ok(service.export(&id, to)?)
    }

    /// Verifies its journal, and the logs, trees and commits that the journal names; of a plan each loop's too.
    pub(crate) fn verify(&self, place: &LoopAddress) -> Result<VerifyResult, Refusal> {
        let (service, id) = self.open_place(place)?;
        Ok(match service.verify(&id, None)? {
            ByKind::Loop(verdict) => VerifyResult::Loop(Box::new(verdict)),
            ByKind::Plan(verdicts) => VerifyResult::Plan(verdicts),
        })
    }

    /// The rounds of a plan's tasks, the first first.
    pub(crate) fn rounds(&self, place: &LoopAddress) -> Result<Vec<Round>, Refusal> {
        let (service, id) = self.open_place(place)?;
        let rounds = service.plan_rounds(&id)?.into_iter();
        Ok(rounds.map(|it| Round { task: it.task.to_string(), round: it.round, id: it.id }).collect())
    }

    /// The usage of loops: of one project, or of all that are open.
    pub(crate) fn usage(&self, asked: &UsageOf) -> Result<Report, Refusal> {
        let wanted = asked.by.as_deref().unwrap_or(GroupBy::Day.as_str());
        let by = GroupBy::ALL.into_iter().find(|by| by.as_str() == wanted).ok_or_else(|| {
            let accepted = GroupBy::ALL.map(GroupBy::as_str).join(", ");
            Refusal::new(format!("by {wanted}: accepted: {accepted}"))
        })?;
        let zone = TimeZone::system();
        let since = asked.since.as_deref().map(|since| {
            let refused = |why: &dyn fmt::Display| Refusal::new(format!("since {since}: {why}"));
            let said: Since = since.parse().map_err(|why| refused(&why))?;
            said.moment(&now().to_zoned(zone.clone())).map_err(|why| refused(&why))
        });
        let since = since.transpose()?;
        let service = self.named(asked.project.as_deref())?;
        let open: Vec<_> = self.services().into_iter().filter(|it| self.is_whole(it)).collect();
        let of = match (&asked.project, self.everywhere) {
            (Some(_), _) => UsageScope::Project,
            (None, true) => UsageScope::All,
            (None, false) => UsageScope::Of(&open),
        };
        Ok(service.used(of, since, by, &zone, false)?.report)
    }

    pub(crate) fn changes_at(&self, address: &Address) -> Result<Changes, Refusal> {
        let (service, id) = self.at(&address.project, address.id.clone())?;
        Ok(service.changes(&id)?)
    }

    /// A subscription to the progress of a loop or a plan.
    pub(crate) fn changes(&self, which: &LoopParams) -> Result<Changes, Refusal> {
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        Ok(service.changes(&id)?)
    }
}

pub(crate) fn addresses(view: &LoopView) -> Vec<Address> {
    let at = |part| Address { project: view.project.clone(), id: view.id.clone(), part };
    view.state_file.iter().map(|_| at(Part::State)).chain([at(Part::TAIL)]).collect()
}

/// Some of these events, one line each: from that number on, or the last.
fn page<E: Serialize>(records: Vec<Record<E>>, screen: &Screen, from: Option<u64>, limit: usize) -> String {
    let skipped = match from {
        Some(from) => records.iter().take_while(|record| record.seq < from).count(),
        None => records.len().saturating_sub(limit),
    };
    let mut text = String::new();
    for record in records.into_iter().skip(skipped).take(limit) {
        let line = line(record, screen);
        if !text.is_empty() && text.len() + line.len() > LARGEST {
            break;
        }
        text += &line;
        text.push('\n');
    }
    text
}

fn line<E: Serialize>(record: Record<E>, screen: &Screen) -> String {
    let (seq, at) = (record.seq, record.at);
    let screened = serde_json::to_value(&record).map(|mut value| {
        clean(&mut value, screen);
        value.to_string()
    });
    match screened {
        Ok(line) if line.len() <= LARGEST => line,
        Ok(line) => json!({"seq": seq, "at": at, "left_out": format!("{} bytes", line.len())}).to_string(),
        Err(error) => json!({"seq": seq, "at": at, "left_out": error.to_string()}).to_string(),
    }
}

/// Takes secrets out of every text in it.
fn clean(value: &mut Value, screen: &Screen) {
    match value {
        Value::String(text) => *text = screen.clean(text),
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, screen)),
        Value::Object(fields) => fields.values_mut().for_each(|field| clean(field, screen)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
