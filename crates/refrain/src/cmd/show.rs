//! `refrain show`.

use std::process::ExitCode;

use refrain_core::text::printable;
use refrain_core::{LoopId, Record};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::telling::clock;
use crate::{out, phrase, values};

/// Show a loop's journal, readable
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one, where it is left out
    id: Option<LoopId>,
    /// Print an array of the events
    #[arg(long)]
    json: bool,
}

/// Prints one line an event: its number, its time, its name, what it says.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let service = context.service()?;
    let id = values::only_loop(&service, args.id.as_ref(), "refrain show", |_| true)?;
    let redacted = |record: Record| Record { event: record.event.redacted(), ..record };
    let records: Vec<Record> = service.events(&id)?.into_iter().map(redacted).collect();
    if args.json {
        out::print_json(&records)?;
    } else {
        let width = out::terminal_width();
        for record in &records {
            let line = line(record).map_err(|error| CliError::new(Code::Failed, error.to_string()))?;
            let line = match width {
                Some(width) => phrase::broken("", 7, &line, width),
                None => line,
            };
            if !out::print_raw(format!("{line}\n").as_bytes()) {
                break;
            }
        }
    }
    Ok(Code::Done.into())
}

fn line(record: &Record) -> serde_json::Result<String> {
    let mut event = serde_json::to_value(&record.event)?;
    // As in the schemas: whether maps keep their order depends on what else is built in.
    event.sort_all_objects();
    let name = event["type"].as_str().unwrap_or_default();
    let mut facts = Vec::new();
    flatten("", &event["data"], &mut facts);
    let line = format!("{:>5}  {}  {name:<22} {}", record.seq, clock(record.at), facts.join(" "));
    Ok(printable(line.trim_end()).replace('\n', " "))
}

/// `key=value`, nested keys joined by dots.
fn flatten(prefix: &str, value: &serde_json::Value, facts: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, facts);
            }
        }
        serde_json::Value::Null => {}
        value => facts.push(if prefix.is_empty() { value.to_string() } else { format!("{prefix}={value}") }),
    }
}
