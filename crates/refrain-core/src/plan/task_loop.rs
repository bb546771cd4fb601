//! The loop that works on a task, as its specification says it.

use super::TaskRef;
use crate::gate::{Check, GateName, GateSpec, GateWhen};
use crate::git::{GitSpec, Workflow};
use crate::ids::LoopId;
use crate::promise::Promise;
use crate::spec::Spec;

/// The specification of the loop that is about `task`. `common` is what all loops of the plan have in common; the rest is
/// this one's own: its id, its prompt, what proves it (`verification`, shell commands, which decide), and that its work
/// becomes commits.
#[must_use]
pub fn task_loop(common: Spec, task: TaskRef, prompt: String, verification: &[String]) -> Spec {
    let mut names: Vec<_> = common.gates.iter().map(|gate| gate.name.clone()).collect();
    let proof = verification.iter().map(|command| {
        let name = GateName::of_command(command).apart_from(&names);
        names.push(name.clone());
        GateSpec {
            name,
            check: Check::Command(command.clone()),
            hard: true,
            timeout: GateSpec::TIMEOUT,
            retries: 0,
            when: GateWhen::Iteration,
        }
    });
    let mut gates: Vec<_> = proof.collect();
    gates.extend(common.gates);
    Spec {
        id: LoopId::of_task(&task.plan, &task.id, task.round),
        task: Some(task),
        prompt,
        promise: Some(Promise::of_task()),
        git: GitSpec { workflow: Workflow::Commit, ..common.git },
        gates,
        ..common
    }
}
