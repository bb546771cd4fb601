//! `refrain` alone on a terminal: what waits for the user here, what runs, or how to begin.

use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::{Tone, Verification};
use refrain_engine::{Brief, Detail, Listed};
use serde::Deserialize;

use crate::out;
use crate::render::phrase;

/// Of a status object, what a list does not have.
#[derive(Deserialize)]
struct Object {
    needs: Option<String>,
}

pub(crate) fn run(context: &Context) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let rows = service.list_with(false, Detail::Object)?;
    let loops = rows.iter().filter_map(|row| match row {
        Listed::Loop(brief) => Some(brief.as_ref()),
        Listed::Damaged(_) => None,
    });
    let (active, stopped): (Vec<&Brief>, Vec<&Brief>) = loops.partition(|brief| !brief.has_stopped());
    let waits: Vec<_> = stopped.into_iter().filter(|brief| has_no_result(brief)).collect();
    let mut text = String::new();
    for (title, briefs) in [("Waits for you", &waits), ("At work", &active)] {
        if !briefs.is_empty() {
            text.push_str(&format!("{}\n", title.bold()));
        }
        briefs.iter().for_each(|brief| text.push_str(&entry(brief)));
    }
    if text.is_empty() {
        let installed = service.installed_agents();
        text = begin(&installed.first().map_or_else(|| "claude".to_owned(), ToString::to_string));
    }
    out::print(&text);
    Ok(Code::Done.into())
}

/// Whether a stopped loop continues once the user does something.
fn has_no_result(brief: &Brief) -> bool {
    Verification::of(brief.status, brief.verified) == Verification::Pending
}

fn entry(brief: &Brief) -> String {
    let word = phrase::coloured(Tone::of(brief.status, brief.verified), brief.status.as_str());
    let flat = |text: &str| printable(text).replace('\n', " ");
    let width = out::terminal_width();
    let first = format!("  {} {word}: {}", brief.id.as_str().bold(), flat(&brief.reason));
    let object: Option<Object> = brief.object.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let needs = object.and_then(|object| object.needs).map(|needs| format!("next: {}", flat(&needs)));
    let line = |text: String| phrase::broken("", 4, &text, width) + "\n";
    line(first) + &needs.map(|needs| line(format!("    {needs}"))).unwrap_or_default()
}

fn begin(agent: &str) -> String {
    format!(
        "No loop is at work here. To begin:\n  refrain demo                                  a demo without a key\n  \
         refrain start --agent {agent} \"Fix the tests.\"\n  refrain init                                  choose agent, gates and git for this project\n"
    )
}
