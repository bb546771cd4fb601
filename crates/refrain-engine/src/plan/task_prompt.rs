//! The prompt of a task's agent: its task file, its plan's document and all files named besides are read here; how they
//! are put together is the core's.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopState;
use refrain_core::gate::Check;
use refrain_core::plan::brief::{self, Again, Brief, FailedCommand, PlanDocument, Sources, SpecFile};
use refrain_core::plan::{Graph, PlanSpec, Return, TaskId};
use refrain_core::prompt::context;
use refrain_core::view::{self, Alive};
use refrain_git::Repository;
use refrain_store::{DiskError, journal};

use super::round::{Begin, Round};
use crate::EngineError;
use crate::child::quotes;

/// How much of both sides of a conflict is in the prompt, in bytes.
const SIDES: usize = 16 << 10;

/// No file in a prompt is longer, in bytes: no agent takes more (agent-clis.md, trap 1).
const LONGEST: u64 = 10 << 20;

/// The files in the prompts of a plan's agents: its document, and those that were named besides.
#[derive(Debug)]
pub struct Texts<'a> {
    spec: &'a PlanSpec,
    document: Option<PlanDocument>,
    files: Vec<SpecFile>,
    /// The commands that prove every task, where the loop's own section does not name them.
    verification: Option<Vec<String>>,
}

impl<'a> Texts<'a> {
    pub fn read(spec: &'a PlanSpec) -> Result<Self, DiskError> {
        let document = spec.brief.document.as_deref().map(read_told).transpose()?;
        let document = document.map(|text| match spec.brief.document.as_ref() == Some(&spec.tasks) {
            true => PlanDocument::of_task_file(&text),
            false => PlanDocument::read(text),
        });
        let file = |path: &Utf8PathBuf| {
            let name = path.file_name().unwrap_or(path.as_str()).to_owned();
            Ok(SpecFile { name, text: read_told(path)? })
        };
        let files = spec.brief.files.iter().map(file).collect::<Result<_, DiskError>>()?;
        // The loop's own section names its gates: they are named once, unless a template asks for it.
        let is_told = spec.each.iteration_context && spec.brief.template.is_none();
        let verification = (!is_told).then(|| commands(spec));
        Ok(Self { spec, document, files, verification })
    }

    /// The specification of that task in the graph.
    pub fn brief(&self, graph: &Graph, at: usize) -> Brief {
        let sources = Sources {
            plan: self.document.as_ref(),
            files: &self.files,
            verification: self.verification.as_deref(),
            template: self.spec.brief.template.as_ref(),
        };
        Brief::of(graph, at, sources)
    }

    /// The first prompt of that task's agent, to the byte; after an earlier round, with what happened in that.
    pub fn prompt(&self, graph: &Graph, at: usize, again: &[Again]) -> String {
        brief::prompt(&graph.tasks()[at], &self.spec.tag, &self.brief(graph, at), again)
    }
}

/// The text of a file that agents are given, or that is the template for it. Its path has no links: one that is there
/// later was made by an agent, and may lead to what no agent may read.
/// Errors: [`DiskError`] if it is no readable file of UTF-8 text, or longer than an agent takes.
pub fn read_told(path: &Utf8Path) -> Result<String, DiskError> {
    let refused = |source| DiskError { action: "read", path: path.to_owned(), source };
    let bytes = refrain_files::read(path, LONGEST).map_err(refused)?;
    String::from_utf8(bytes).map_err(|error| refused(io::Error::new(io::ErrorKind::InvalidData, error)))
}

pub(super) fn prompt(
    round: &Round,
    graph: &Graph,
    task: &TaskId,
    (repository, begin): (&Repository, &Begin),
) -> Result<String, EngineError> {
    let at = graph.index(task).ok_or_else(|| EngineError::TaskGone(task.clone()))?;
    let texts = Texts::read(&round.spec)?;
    Ok(texts.prompt(graph, at, &again(round, repository, begin)?))
}

fn commands(spec: &PlanSpec) -> Vec<String> {
    let gates = spec.each.gates.iter().filter(|gate| gate.hard);
    gates
        .filter_map(|gate| match &gate.check {
            Check::Command(command) => Some(command.clone()),
            Check::Review(_) => None,
        })
        .collect()
}

fn again(round: &Round, repository: &Repository, begin: &Begin) -> Result<Vec<Again>, EngineError> {
    let mut sections = Vec::new();
    if let Some(Return::Resumed(_) | Return::Tuned(_)) = &round.task.again {
        sections.extend(tried(round));
    }
    if !begin.conflicts.is_empty()
        && let Some((work, base)) = &round.task.before
    {
        let both = (&round.running.onto, work);
        let (theirs, ours) = repository.both_sides(base, both, &begin.conflicts, SIDES)?;
        let files = begin.conflicts.iter().map(ToString::to_string).collect();
        sections.push(Again::Conflict { files, ours, theirs });
        return Ok(sections);
    }
    sections.extend(match &round.task.again {
        Some(Return::Failed(failed)) => {
            let gate = round.spec.each.gates.iter().find(|gate| gate.name == failed.gate);
            let command = gate.and_then(|gate| match &gate.check {
                Check::Command(command) => Some(command.clone()),
                Check::Review(_) => None,
            });
            let log = round.plan_dir.0.join(&failed.log);
            let output = quotes::end_of(&log, context::EXCERPT).unwrap_or_default();
            let command = command.unwrap_or_else(|| failed.gate.to_string());
            Some(Again::Refused(FailedCommand { command, output }))
        }
        Some(Return::Tuned(text)) => Some(Again::Refined { text: text.clone() }),
        Some(Return::Conflict(_) | Return::Resumed(_)) | None => None,
    });
    Ok(sections)
}

/// How the round before this one ended; none if there was none.
fn tried(round: &Round) -> Option<Again> {
    let before = round.running.round.checked_sub(1).filter(|round| *round > 0)?;
    let dir = round.service.known_dir(&round.spec.loop_of(&round.task.card.id, before));
    let state: LoopState = journal::read(&dir).ok()?.state;
    let reason = match &round.task.again {
        Some(Return::Resumed(reason)) => reason.clone(),
        Some(Return::Tuned(_) | Return::Conflict(_) | Return::Failed(_)) | None => {
            view::status(&state, Alive::NO_RUNNER).reason
        }
    };
    let failed = state.gate_results().filter_map(|result| {
        let gate = state.spec.gates.get(result.gate).filter(|gate| gate.hard && !result.passed())?;
        let command = match &gate.check {
            Check::Command(command) => command.clone(),
            Check::Review(_) => gate.name.to_string(),
        };
        let log = dir.attempt(result.of).gate(&gate.name, result.run);
        Some(FailedCommand { command, output: quotes::end_of(&log, context::EXCERPT).unwrap_or_default() })
    });
    let failed = failed.collect();
    let has_work = round.task.before.as_ref().is_some_and(|(work, base)| work != base);
    Some(Again::Tried { reason, failed, has_work })
}
