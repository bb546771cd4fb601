//! `refrain` alone on a terminal: what waits for the user here, what runs, what ended last, or how to begin.

use std::cmp::Reverse;
use std::process::ExitCode;

use owo_colors::OwoColorize;
use refrain_app::{Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::{StatusWord, Tone, Verification};
use refrain_engine::{Brief, Detail, ListEntry, OwnBranch, Service};
use serde::Deserialize;

use crate::out;
use crate::render::phrase;

/// How many loops that ended are shown.
const ENDED_LAST: usize = 3;

/// Of a status object, what a list does not have.
#[derive(Deserialize)]
struct Object {
    needs: Option<String>,
}

pub(crate) fn run(context: &Context) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let rows = service.list_with(false, Detail::Object)?;
    let loops = rows.iter().filter_map(|row| match row {
        ListEntry::Loop(brief) => Some(brief.as_ref()),
        ListEntry::Damaged(_) => None,
    });
    let (active, stopped): (Vec<&Brief>, Vec<&Brief>) = loops.partition(|brief| !brief.has_stopped());
    let (waits, mut ended): (Vec<_>, Vec<_>) = stopped.into_iter().partition(|brief| has_no_result(brief));
    ended.retain(|brief| brief.plan.is_none() && brief.status != StatusWord::Cancelled);
    ended.sort_by_key(|brief| Reverse(brief.updated_at));
    let more = ended.len().saturating_sub(ENDED_LAST);
    ended.truncate(ENDED_LAST);
    let mut text = String::new();
    for (title, briefs) in [("Waits for you", &waits), ("At work", &active), ("Ended last", &ended)] {
        if !briefs.is_empty() {
            text.push_str(&format!("{}\n", title.bold()));
        }
        briefs.iter().for_each(|brief| text.push_str(&entry(&service, brief)));
    }
    if more > 0 {
        text.push_str(&format!("  {more} more: refrain list\n"));
    }
    if text.is_empty() {
        let installed = service.installed_agents();
        text = begin(&installed.first().map_or_else(|| "claude".to_owned(), ToString::to_string));
    }
    out::print(&text);
    Ok(Code::Done.into())
}

/// Whether a stopped loop continues here once the user does something.
fn has_no_result(brief: &Brief) -> bool {
    brief.status != StatusWord::Moved
        && Verification::of(brief.status, brief.verified) == Verification::Pending
}

fn entry(service: &Service, brief: &Brief) -> String {
    let verification = Verification::of(brief.status, brief.verified);
    let word =
        phrase::coloured(Tone::of(brief.status, brief.verified), phrase::outcome(verification, brief.status));
    let flat = |text: &str| printable(text).replace('\n', " ");
    let width = out::terminal_width();
    let first = format!("  {} {word}: {}", brief.id.as_str().bold(), flat(&brief.reason));
    let object: Option<Object> = brief.object.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let needs = object.and_then(|object| object.needs).map(|needs| flat(&needs));
    let result = || (brief.status == StatusWord::Completed).then(|| result(service, brief));
    let needs = needs.map(|next| format!("next: {next}")).or_else(result);
    let line = |text: String| phrase::broken("", 4, &text, width) + "\n";
    line(first) + &needs.map(|needs| line(format!("    {needs}"))).unwrap_or_default()
}

/// What to do with the work of a completed loop, or what has become of it.
fn result(service: &Service, brief: &Brief) -> String {
    match service.branch_state(&brief.id).ok().flatten() {
        Some(OwnBranch::Merged { into, .. }) => {
            format!("merged into {}", into.as_deref().map_or("the detached head".into(), printable))
        }
        Some(OwnBranch::Gone) => format!("its branch is gone; next: refrain report {}", brief.id),
        Some(OwnBranch::Landed(plan)) => format!("landed with plan {plan}"),
        None | Some(OwnBranch::Open | OwnBranch::Empty | OwnBranch::Discarded(_)) => {
            format!("next: refrain diff {}", brief.id)
        }
    }
}

fn begin(agent: &str) -> String {
    const COLUMN: usize = 48;
    let start = format!("refrain start --agent {agent} \"Fix the tests.\"");
    let rows = [
        ("refrain demo", "a demo without a key"),
        (&start, ""),
        ("refrain init", "choose agent, gates and git for this project"),
        ("refrain list --all-projects", "loops of other projects"),
    ];
    let row = |(command, what): (&str, &str)| {
        let text = phrase::broken(&format!("  {command:<45} "), COLUMN, what, out::terminal_width());
        format!("{}\n", text.trim_end())
    };
    format!("No loop is at work here. To begin:\n{}", rows.map(row).concat())
}
