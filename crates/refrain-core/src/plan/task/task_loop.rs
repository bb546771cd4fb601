//! The loop that works on a task, in its specification.

use camino::Utf8Path;

use crate::gate::{Check, GateName, GateSpec, GateWhen};
use crate::git::{Checkout, GitSpec, Workflow};
use crate::ids::LoopId;
use crate::plan::{PlanSpec, Task, TaskRef};
use crate::promise::Promise;
use crate::spec::Spec;

/// The specification of the loop of `task`. `common` is the part that all loops of the plan share; the rest is this
/// one's own: its id, its prompt, its required gates (`verification`, shell commands), and that its work becomes
/// commits.
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
            completes: false,
            own_tests: false,
            by_default: false,
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

impl PlanSpec {
    /// The specification of the loop that works on `task` in its `round`-th round, from 1, in the worktree at `folder`;
    /// what it may take is the caller's. What a task itself says proves it decides beside the gates of the plan.
    pub fn loop_spec(&self, task: &Task, round: u32, folder: &Utf8Path, prompt: String) -> Spec {
        let each = &self.each;
        let inside = each.working_dir.strip_prefix(&each.worktree).ok().filter(|it| !it.as_str().is_empty());
        let common = Spec {
            working_dir: inside.map_or_else(|| folder.to_owned(), |inside| folder.join(inside)),
            worktree: folder.to_owned(),
            git: GitSpec { checkout: Checkout::AsIs, ..each.git.clone() },
            ..(**each).clone()
        };
        let is_there = |command: &String| {
            common.gates.iter().any(|gate| matches!(&gate.check, Check::Command(known) if known == command))
        };
        let own: Vec<_> = task.verification.iter().filter(|command| !is_there(command)).cloned().collect();
        let of = TaskRef {
            plan: self.id.clone(),
            tag: self.tag.clone(),
            id: task.id.clone(),
            title: task.title.clone(),
            round,
        };
        task_loop(common, of, prompt, &own)
    }
}
