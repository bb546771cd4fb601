//! `refrain plan run --dry-run`: what would run, and how long each agent's prompt would be, without starting anything.

use std::process::ExitCode;

use refrain_app::plan::PreparedPlan;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::plan::TaskId;
use refrain_core::plan::brief::tokens::tokens;
use refrain_core::plan::view::{PlanCheck, Waves};
use refrain_core::text::grouped;
use refrain_engine::Texts;
use schemars::JsonSchema;
use serde::Serialize;

use super::waves;
use crate::out;
use crate::plan::narrator;

/// What `plan run --dry-run --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rehearsal {
    /// The version of this shape.
    schema: u32,
    /// The waves, done by so many agents at a time.
    waves: Waves,
    /// What would be told of each task.
    told: Vec<TaskPreview>,
    /// What is odd about the tasks.
    problems: PlanCheck,
    /// What would decide about each task, and about what has landed.
    gates: Vec<String>,
    /// The defaults that were chosen, and what chose each.
    notes: Vec<String>,
}

/// What would be told of a task.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskPreview {
    /// The task.
    task: TaskId,
    /// How long its specification is, in tokens.
    tokens: u64,
}

/// Prints it; refuses what a run would refuse.
pub(super) fn show(
    context: &Context,
    prepared: &PreparedPlan,
    texts: &Texts<'_>,
    name: Option<&LoopId>,
    json: bool,
) -> Result<ExitCode, RequestError> {
    let PreparedPlan { service, source, spec, notes, .. } = prepared;
    service.admit_plan(&mut spec.clone(), name)?;
    let (file, tag) = (source.file.path.as_str(), source.file.tag.as_str());
    let jobs = usize::try_from(spec.jobs).ok();
    let rehearsal = Rehearsal {
        schema: 1,
        waves: Waves::of(file, tag, &source.graph, jobs),
        told: prepared.to_do().map(|at| told(prepared, texts, at)).collect(),
        problems: PlanCheck::of(file, tag, &source.graph, &source.problems),
        gates: spec.each.gates.iter().map(|gate| gate.check.to_string()).collect(),
        notes: notes.clone(),
    };
    if json {
        out::print_json(&rehearsal)?;
        prepared.check_trust(context)?;
        return Ok(Code::Done.into());
    }
    let mut text = narrator::header(spec, &spec.limits, out::terminal_width());
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
    let notes = notes.iter().cloned().chain(prepared.over_budget(texts));
    notes.for_each(|note| out::tell_line("", &format!("note: {note}")));
    prepared.check_trust(context)?;
    let end = match prepared.done_tasks() {
        Some(tasks) => format!("{tasks} done, so without --dry-run nothing is begun either"),
        None => "nothing was started; the same command without --dry-run starts it".to_owned(),
    };
    out::tell_line("", &end);
    Ok(Code::Done.into())
}

fn told(prepared: &PreparedPlan, texts: &Texts<'_>, at: usize) -> TaskPreview {
    let graph = &prepared.source.graph;
    TaskPreview { task: graph.tasks()[at].id.clone(), tokens: tokens(texts.brief(graph, at).text()) }
}
