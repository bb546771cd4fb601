//! What is asked of the machines of a fleet: to work on a loop, and what any machine can be asked for one.

use refrain_core::git::{CommitWhen, Workflow};
use refrain_core::plan::PlanSpec;
use refrain_core::{LoopId, Spec};
use refrain_engine::{EngineError, Service};
use serde::{Deserialize, Serialize};

use super::check_remote;
use crate::RequestError;
use crate::resolve::StartLoop;
use crate::verbs::resume::Resume;

/// A request to a loop on the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetRequest {
    Pause { now: bool },
    Cancel { now: bool },
    Steer { text: String },
    Answer { text: String },
    Approve { tree: Option<String> },
    Resume(Resume),
}

impl FleetRequest {
    /// Whether it needs a machine for a loop that has stopped.
    pub fn wakes(&self) -> bool {
        match self {
            Self::Pause { .. } | Self::Steer { .. } => false,
            Self::Cancel { .. } | Self::Answer { .. } | Self::Approve { .. } | Self::Resume(_) => true,
        }
    }

    /// Whether it is for the runner of a loop that is driven. The others wait until the loop has stopped.
    pub fn is_for_runner(&self) -> bool {
        match self {
            Self::Pause { .. } | Self::Cancel { .. } | Self::Steer { .. } | Self::Answer { .. } => true,
            Self::Resume(resume) => resume.now,
            Self::Approve { .. } => false,
        }
    }

    /// What only the git remote may have of it.
    pub fn take_text(&mut self) -> Option<String> {
        match self {
            Self::Steer { text } | Self::Answer { text } => Some(std::mem::take(text)),
            Self::Pause { .. } | Self::Cancel { .. } | Self::Approve { .. } | Self::Resume(_) => None,
        }
    }

    pub fn put_text(&mut self, found: String) {
        if let Self::Steer { text } | Self::Answer { text } = self {
            *text = found;
        }
    }
}

/// A loop that machines hand to each other has a worktree of its own and commits each iteration: what no commit has is lost
/// with a machine.
pub fn adapt(request: &mut StartLoop) -> Result<(), RequestError> {
    let git = &mut request.options.git;
    let refused = |option, why| Err(RequestError::usage(format!("{option}: {why} on a fleet; leave it out")));
    if git.no_worktree {
        return refused("--no-worktree", "a loop has a worktree of its own");
    }
    if matches!(git.git_workflow, Some(Workflow::None)) {
        return refused("--git-workflow none", "what no commit has is lost with a machine");
    }
    git.worktree = true;
    let is_said = git.git_workflow.is_some() || git.auto_commit || git.open_pr || git.pr_and_merge;
    git.auto_commit |= !is_said;
    git.commit_when = Some(CommitWhen::Each);
    Ok(())
}

/// Refuses a loop that other machines cannot have.
pub fn check(spec: &Spec, remote: &str) -> Result<(), RequestError> {
    check_values(spec, remote)?;
    if spec.git.workflow == Workflow::None {
        return Err(RequestError::usage("a loop on a fleet commits: accepted inside a git repository"));
    }
    Ok(())
}

/// Refuses a plan whose tasks other machines cannot have.
pub fn check_plan(spec: &PlanSpec, remote: &str) -> Result<(), RequestError> {
    check_values(&spec.each, remote)
}

fn check_values(spec: &Spec, remote: &str) -> Result<(), RequestError> {
    check_remote("[fleet] state", remote)?;
    let of_agents = spec.agents().find_map(|agent| agent.env.keys().next());
    let mut of_gates = spec.gate_env.variables.iter();
    let of_gates = of_gates.find_map(|(name, value)| value.as_ref().map(|_| name));
    if let Some(name) = of_agents.or(of_gates) {
        let error = format!("--env {name}: a fleet gets no values; accepted: variables of the workers' own");
        return Err(RequestError::usage(error).hint(format!("set {name} in the environment of each worker")));
    }
    Ok(())
}

/// The remote that has the loop, if it left this machine.
pub fn remote_of(service: &Service, id: &LoopId) -> Option<String> {
    let state = service.state(id).ok()?;
    Some(state.tenure.departure?.to)
}

/// Whether that is because the loop has ended for good.
pub fn is_over(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused { why: refrain_core::Refusal::Final(_), .. })
}
