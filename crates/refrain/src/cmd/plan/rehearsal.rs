//! `refrain plan run --dry-run`: what would be done, and at which length each agent would be told, with nothing begun.

use std::process::ExitCode;

use refrain_core::LoopId;
use refrain_core::plan::TaskId;
use refrain_core::plan::view::{Checked, Waves};
use refrain_core::text::grouped;
use refrain_engine::Texts;
use schemars::JsonSchema;
use serde::Serialize;

use super::prepare::Prepared;
use super::waves;
use crate::error::{CliError, Code};
use crate::out;
use crate::plan::telling;

/// What `plan run --dry-run --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rehearsal {
    /// The version of this shape.
    schema: u32,
    /// The waves, done by so many agents at a time.
    waves: Waves,
    /// What would be told of each task.
    told: Vec<Told>,
    /// What is odd about the tasks.
    problems: Checked,
    /// What would decide about each task, and about what has landed.
    gates: Vec<String>,
    /// What was chosen where nobody said, and by whom.
    notes: Vec<String>,
}

/// What would be told of a task.
#[derive(Debug, Serialize, JsonSchema)]
struct Told {
    /// The task.
    task: TaskId,
    /// How long its specification is, in tokens.
    tokens: u64,
}

/// How many specifications that are too long are named one by one.
const NAMED: usize = 5;

/// Says it, unless a run would be refused.
pub(super) fn show(
    prepared: &Prepared,
    texts: &Texts<'_>,
    name: Option<&LoopId>,
    json: bool,
) -> Result<ExitCode, CliError> {
    let Prepared { service, source, spec, notes, .. } = prepared;
    service.admit_plan(&mut spec.clone(), name)?;
    let (file, tag) = (source.file.path.as_str(), source.file.tag.as_str());
    let jobs = usize::try_from(spec.jobs).ok();
    let rehearsal = Rehearsal {
        schema: 1,
        waves: Waves::of(file, tag, &source.graph, jobs),
        told: to_do(prepared).map(|at| told(prepared, texts, at)).collect(),
        problems: Checked::of(file, tag, &source.graph, &source.problems),
        gates: spec.each.gates.iter().map(|gate| gate.check.to_string()).collect(),
        notes: notes.clone(),
    };
    if json {
        out::print_json(&rehearsal)?;
        return Ok(Code::Done.into());
    }
    let mut text = telling::header(spec, &spec.limits, out::terminal_width());
    text.push_str(&waves::text(&rehearsal.waves));
    let all: u64 = rehearsal.told.iter().map(|told| told.tokens).sum();
    if let Some(longest) = rehearsal.told.iter().max_by_key(|told| told.tokens) {
        text.push_str(&format!(
            "Specifications have {} tokens in all, the longest (task {}) {}\n",
            grouped(all),
            longest.task,
            grouped(longest.tokens)
        ));
    }
    out::print(&text);
    let notes = notes.iter().cloned().chain(over_budget(prepared, texts));
    notes.for_each(|note| out::tell_line("", &format!("note: {note}")));
    out::tell_line("", "nothing was begun; without --dry-run it is");
    Ok(Code::Done.into())
}

/// The tasks that a run would take on.
fn to_do(prepared: &Prepared) -> impl Iterator<Item = usize> {
    prepared.source.graph.waves().iter().flatten().copied()
}

fn told(prepared: &Prepared, texts: &Texts<'_>, at: usize) -> Told {
    let graph = &prepared.source.graph;
    Told { task: graph.tasks()[at].id.clone(), tokens: texts.brief(graph, at).size().tokens }
}

/// Specifications that are longer than they may be.
pub(super) fn over_budget(prepared: &Prepared, texts: &Texts<'_>) -> Vec<String> {
    let graph = &prepared.source.graph;
    let warning = |at: usize| {
        let brief = texts.brief(graph, at);
        Some(brief.over_budget(&graph.tasks()[at].id, prepared.spec.brief.max_tokens)?.to_string())
    };
    let mut warnings: Vec<String> = to_do(prepared).filter_map(warning).collect();
    let more = warnings.len().saturating_sub(NAMED);
    warnings.truncate(NAMED);
    if more > 0 {
        warnings.push(format!("{more} more specifications are too long"));
    }
    warnings
}
