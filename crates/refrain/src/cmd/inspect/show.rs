use std::process::ExitCode;

use refrain_app::{Code, Context, RequestError};
use refrain_core::Record;
use refrain_core::event::Event;
use refrain_core::plan::PlanEvent;
use refrain_core::text::printable;
use refrain_core::view::sandbox;
use refrain_engine::ByKind;
use serde::Serialize;
use serde_json::Value;

use super::selection::Selection;
use crate::out;
use crate::render::event_text::clock;
use crate::render::phrase;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain show docs-3f9c
  refrain show docs-3f9c --json")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Print an array of the events
    #[arg(long)]
    json: bool,
}

/// Prints each event: its number, time, name and facts in a line; its lists below.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let (service, id) = args.selection.open(context, "refrain show")?;
    let records = service.redacted_events(&id)?;
    if args.json {
        out::print_json(&records)?;
    } else {
        let width = out::terminal_width();
        for record in &records {
            let mut text =
                lines(record, width).map_err(|error| RequestError::new(Code::Failed, error.to_string()))?;
            text.push_str(&policy(&record.event, width));
            if !out::print_raw(text.as_bytes()) {
                break;
            }
        }
    }
    Ok(Code::Done.into())
}

/// The column where an event's list begins and where its wrapped line continues.
const INDENT: usize = 7;

/// The sandbox of a loop, or of a plan's loops, in a sentence below its first event; empty if there is none.
fn policy(event: &ByKind<Event, PlanEvent>, width: Option<usize>) -> String {
    let spec = match event {
        ByKind::Loop(Event::LoopStarted(started)) => &started.spec,
        ByKind::Plan(PlanEvent::Started(started)) => &*started.spec.each,
        ByKind::Loop(_) | ByKind::Plan(_) => return String::new(),
    };
    match printable(&sandbox(spec)).replace('\n', " ") {
        none if none.is_empty() => none,
        text => phrase::broken(&" ".repeat(INDENT), INDENT + 2, &text, width) + "\n",
    }
}

fn lines<E: Serialize>(record: &Record<E>, width: Option<usize>) -> serde_json::Result<String> {
    let mut event = serde_json::to_value(&record.event)?;
    // As in the schemas: the order of maps depends on features of other crates.
    event.sort_all_objects();
    let name = event["type"].as_str().unwrap_or_default();
    let mut facts = Facts::default();
    facts.take("", &event["data"]);
    let own = format!("{:>5}  {}  {name:<22} {}", record.seq, clock(record.at), facts.own.join(" "));
    let begin = " ".repeat(INDENT);
    let listed = facts.listed.iter().map(|fact| (begin.as_str(), INDENT + 2, fact.as_str()));
    let lines = [("", INDENT, own.trim_end())].into_iter().chain(listed);
    let shown = lines.map(|(begin, column, text)| {
        let text = printable(text).replace('\n', " ");
        phrase::broken(begin, column, &text, width) + "\n"
    });
    Ok(shown.collect())
}

/// The facts of an event: `key=value`, nested keys joined by dots.
#[derive(Default)]
struct Facts {
    own: Vec<String>,
    /// Lists of objects, a line each: `left_out[2] path="…" why="…"`.
    listed: Vec<String>,
}

impl Facts {
    fn take(&mut self, prefix: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    self.take(&key, value);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (n, item) in items.iter().enumerate() {
                    let mut inner = Self::default();
                    inner.take("", item);
                    self.listed.push(format!("{prefix}[{n}] {}", inner.own.join(" ")));
                    self.listed.extend(inner.listed);
                }
            }
            Value::Null => {}
            value if prefix.is_empty() => self.own.push(value.to_string()),
            value => self.own.push(format!("{prefix}={value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn list_items_of_an_event_are_shown_on_their_own_lines() {
        let left_out = |path: &str| json!({"path": path, "why": {"secret": {"line": 3, "what": "a key"}}});
        let record = json!({"seq": 12, "at": "2026-11-21T10:00:00Z", "event": {"type": "commit.settled", "data": {
            "iteration": 1, "by_agent": [], "left_out": [left_out("a b.env"), left_out("c\u{1b}[2J.env")],
            "result": {"made": {"commit": "1".repeat(40), "tree": "2".repeat(40)}}
        }}});
        let text = lines(&serde_json::from_value::<Record>(record).unwrap(), None).unwrap();
        let text: Vec<_> = text.lines().collect();
        assert_eq!(text.len(), 3, "{text:#?}");
        assert!(text[0].contains("commit.settled") && text[0].ends_with("222\""), "{text:#?}");
        assert!(text[1].starts_with(r#"       left_out[0] path="a b.env" why"#), "{text:#?}");
        assert!(text[2].starts_with("       left_out[1] ") && !text[2].contains('\u{1b}'), "{text:#?}");
    }
}
