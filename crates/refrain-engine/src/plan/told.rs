//! What the agent of a task is told: its task file, its plan's document and whatever else was named are read here; how they
//! are put together is the core's.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::gate::Check;
use refrain_core::plan::brief::{self, Again, Brief, PlanDocument, Sources, SpecFile};
use refrain_core::plan::{Graph, PlanSpec, Return, Task, TaskId};
use refrain_git::Repository;
use refrain_store::DiskError;

use super::round::{Begin, Round};
use crate::{EngineError, executor};

/// How much of both sides of a conflict is told, in bytes.
const SIDES: usize = 16 << 10;

/// The specification of the task that stands there in the graph.
fn specify(spec: &PlanSpec, graph: &Graph, at: usize) -> Result<Brief, DiskError> {
    let document = spec.brief.document.as_deref().map(read).transpose()?;
    let document = document.map(|text| match spec.brief.document.as_ref() == Some(&spec.tasks) {
        true => PlanDocument::of_task_file(&text, graph.tasks()),
        false => PlanDocument::read(text),
    });
    let file = |path: &Utf8PathBuf| {
        let name = path.file_name().unwrap_or(path.as_str()).to_owned();
        Ok(SpecFile { name, text: read(path)? })
    };
    let files: Vec<_> = spec.brief.files.iter().map(file).collect::<Result<_, DiskError>>()?;
    let sources = Sources {
        plan: document.as_ref(),
        files: &files,
        verification: &commands(spec),
        template: spec.brief.template.as_ref(),
    };
    Ok(Brief::of(graph, at, sources))
}

fn read(path: &Utf8Path) -> Result<String, DiskError> {
    fs::read_to_string(path).map_err(|source| DiskError { action: "read", path: path.to_owned(), source })
}

/// The prompt of a round's loop.
pub(super) fn prompt(
    round: &Round,
    graph: &Graph,
    task: &TaskId,
    (repository, begin): (&Repository, &Begin),
) -> Result<String, EngineError> {
    let spec = &round.spec;
    let at = graph.index(task).ok_or_else(|| EngineError::TaskGone(task.clone()))?;
    let brief = specify(spec, graph, at)?;
    let again = again(round, repository, begin)?;
    let task: &Task = &graph.tasks()[at];
    Ok(brief::prompt(task, &spec.tag, &brief, again.as_ref()))
}

/// The commands that prove every task.
fn commands(spec: &PlanSpec) -> Vec<String> {
    let gates = spec.each.gates.iter().filter(|gate| gate.hard);
    gates
        .filter_map(|gate| match &gate.check {
            Check::Command(command) => Some(command.clone()),
            Check::Review(_) => None,
        })
        .collect()
}

/// What happened before.
fn again(round: &Round, repository: &Repository, begin: &Begin) -> Result<Option<Again>, EngineError> {
    if !begin.conflicts.is_empty()
        && let Some((work, base)) = &round.task.before
    {
        let both = (&round.running.onto, work);
        let (theirs, ours) = repository.both_sides(base, both, &begin.conflicts, SIDES)?;
        let files = begin.conflicts.iter().map(ToString::to_string).collect();
        return Ok(Some(Again::Conflict { files, ours, theirs }));
    }
    Ok(match &round.task.again {
        Some(Return::Failed(failed)) => {
            let gate = round.spec.each.gates.iter().find(|gate| gate.name == failed.gate);
            let command = gate.and_then(|gate| match &gate.check {
                Check::Command(command) => Some(command.clone()),
                Check::Review(_) => None,
            });
            let output = executor::end_of(&round.plan_dir.0.join(&failed.log)).unwrap_or_default();
            Some(Again::Refused { command: command.unwrap_or_else(|| failed.gate.to_string()), output })
        }
        Some(Return::Tuned(text)) => Some(Again::Refined { text: text.clone() }),
        Some(Return::Conflict(_) | Return::Resumed) | None => None,
    })
}
