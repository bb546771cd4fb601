//! Reading a loop's `state.md` and its journal, as far as they may leave the machine.

use refrain_core::plan::PlanEvent;
use refrain_core::{Event, LoopId, Record};
use refrain_engine::{Changes, Screen, Service};
use serde::Serialize;
use serde_json::{Value, json};

use super::address::{Address, Part};
use super::seeing::name;
use super::{Desk, LoopView, Refusal, RefusalKind, Which};

/// How much of a journal is read at once, in bytes; an event that is larger is named, and left out.
const LARGEST: usize = 1 << 20;

impl Desk {
    /// What stands at an address.
    pub(crate) fn read(&self, address: &Address) -> Result<String, Refusal> {
        let (service, id) = self.at(address)?;
        match address.part {
            Part::State if service.has_plan(&id) => {
                Err(Refusal::new(format!("{id} is a plan, which has no state.md")))
            }
            Part::State => {
                let gone = || Refusal::new(format!("{id} has no state.md"));
                service.glance(&id)?.notes.ok_or_else(gone)
            }
            Part::Journal { from, limit } => {
                let screen = service.screen(&id)?;
                Ok(match service.has_plan(&id) {
                    true => page(service.plan_events(&id)?, (PlanEvent::redacted, &screen), from, limit),
                    false => page(service.events(&id)?, (Event::redacted, &screen), from, limit),
                })
            }
        }
    }

    /// Says when something at an address changes.
    pub(crate) fn changes_at(&self, address: &Address) -> Result<Changes, Refusal> {
        let (service, id) = self.at(address)?;
        Ok(service.changes(&id)?)
    }

    /// Says when a loop, or a plan, gets on.
    pub(crate) fn changes(&self, which: &Which) -> Result<Changes, Refusal> {
        let (service, id) = self.of_loop(&which.loop_id, which.workspace.as_deref())?;
        Ok(service.changes(&id)?)
    }

    pub(super) fn at(&self, address: &Address) -> Result<(Service, LoopId), Refusal> {
        let mut services = self.services().into_iter();
        let service = services.find(|service| name(service).eq_ignore_ascii_case(&address.project));
        let nothing = |what: String| Refusal::of(RefusalKind::NotFound, format!("there is no {what}"));
        let service = service.ok_or_else(|| nothing(format!("project {} here", address.project)))?;
        match self.sees(&service, &address.id) {
            true => Ok((service, address.id.clone())),
            false => Err(nothing(format!("loop {} in {}", address.id, address.project))),
        }
    }
}

/// Where a loop that is listed can be read.
pub(crate) fn addresses(view: &LoopView) -> Vec<Address> {
    let at = |part| Address { project: view.project.clone(), id: view.id.clone(), part };
    view.state_file.iter().map(|_| at(Part::State)).chain([at(Part::TAIL)]).collect()
}

/// Some of these events, one line each: from that number on, or the last.
fn page<E: Serialize>(
    records: Vec<Record<E>>,
    (redacted, screen): (impl Fn(E) -> E, &Screen),
    from: Option<u64>,
    limit: usize,
) -> String {
    let skipped = match from {
        Some(from) => records.iter().take_while(|record| record.seq < from).count(),
        None => records.len().saturating_sub(limit),
    };
    let mut text = String::new();
    for record in records.into_iter().skip(skipped).take(limit) {
        let line = line(Record { event: redacted(record.event), ..record }, screen);
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
