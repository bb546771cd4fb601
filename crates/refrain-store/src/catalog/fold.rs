//! From a loop's state to what is kept of it.

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::agent::Usage;
use refrain_core::r#loop::Outcome;
use refrain_core::spec::AgentKind;
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{self, Alive, Iteration, Kind, RemoteCopy, Status, StatusWord};
use refrain_core::{Ended, LoopId, LoopState};

use super::CatalogError;
use super::stamp::Stamp;

/// What a list says of a loop, or of a plan, and the whole status object as text for callers that need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    pub id: LoopId,
    pub kind: Kind,
    /// The plan of the loop's task, if it has one.
    pub plan: Option<LoopId>,
    pub status: StatusWord,
    /// Whether gates verified the work; none if no gate decides.
    pub verified: Option<bool>,
    pub iteration: u32,
    /// The cap; none is none.
    pub max_iterations: Option<u32>,
    pub updated_at: Timestamp,
    /// The project's folder, which thousands of loops may share.
    pub project: Arc<str>,
    /// Why it has this status, in one line.
    pub reason: String,
    /// The status object without its iterations, one line of JSON; if it was asked for.
    pub object: Option<String>,
    /// Of a loop whose journal was read for the list, as it has not stopped.
    pub iterations: Vec<Iteration>,
    /// Where the copy comes from that this is read from; none of a loop of this machine.
    pub copy: Option<RemoteCopy>,
    /// The branch that has all work of its own branch, if that was looked at; the object has it too.
    pub merged_into: Option<String>,
    /// Of the journal that it was read from, if it comes from a list of loops.
    pub stamp: Option<Stamp>,
}

impl Brief {
    /// Whether it is over: nothing more happens unless a person resumes it.
    pub fn has_stopped(&self) -> bool {
        self.status.has_stopped()
    }

    /// Notes the branch that has its work, in its object too.
    pub fn mark_merged(&mut self, into: Option<String>) {
        if let (Some(branch), Some(object)) = (&into, &mut self.object)
            && let Ok(branch) = serde_json::to_string(branch)
            && object.ends_with('}')
        {
            object.insert_str(object.len() - 1, &format!(",\"merged_into\":{branch}"));
        }
        self.merged_into = into;
    }
}

impl TryFrom<Status> for Brief {
    type Error = CatalogError;

    fn try_from(status: Status) -> Result<Self, CatalogError> {
        let status = status.without_iterations();
        let object = Some(serde_json::to_string(&status)?);
        let Status {
            id,
            kind,
            task,
            status,
            verified,
            iteration,
            max_iterations,
            updated_at,
            project,
            reason,
            mirrored: copy,
            ..
        } = status;
        let (project, plan) = (project.into(), task.map(|task| task.plan));
        Ok(Self {
            id,
            kind,
            plan,
            status,
            verified,
            iteration,
            max_iterations,
            updated_at,
            project,
            reason,
            object,
            iterations: Vec::new(),
            copy,
            merged_into: None,
            stamp: None,
        })
    }
}

impl TryFrom<PlanStatus> for Brief {
    type Error = CatalogError;

    fn try_from(status: PlanStatus) -> Result<Self, CatalogError> {
        let object = Some(serde_json::to_string(&status)?);
        let PlanStatus { id, kind, status, verified, usage, updated_at, project, reason, .. } = status;
        let (iteration, max_iterations) = (usage.iterations_used, Some(usage.iterations_granted));
        let project = project.into();
        Ok(Self {
            id,
            kind,
            plan: None,
            status,
            verified,
            iteration,
            max_iterations,
            updated_at,
            project,
            reason,
            object,
            iterations: Vec::new(),
            copy: None,
            merged_into: None,
            stamp: None,
        })
    }
}

/// The catalog's data of a stopped loop: it changes with its journal alone.
pub(super) struct Row {
    pub(super) folder: String,
    pub(super) stamp: Stamp,
    pub(super) agent: AgentKind,
    pub(super) charged: u32,
    pub(super) ended: Ended,
    pub(super) brief: Brief,
    pub(super) attempts: Vec<Spending>,
}

impl Row {
    /// None for a loop that has not stopped or was moved away, or if its end is unsigned: it may be believed later.
    pub(super) fn new(folder: String, stamp: Stamp, state: &LoopState) -> Result<Option<Self>, CatalogError> {
        let is_settled = state.signatures.objection().is_none() && state.check_here().is_ok();
        let Some(ended) = state.ended.filter(|_| is_settled) else {
            return Ok(None);
        };
        Ok(Some(Self {
            folder,
            stamp,
            agent: state.spec.agent.kind,
            charged: state.charged,
            ended,
            brief: Brief { stamp: Some(stamp), ..view::status(state, Alive::NO_RUNNER).try_into()? },
            attempts: spendings(state).collect(),
        }))
    }
}

pub(super) struct Spending {
    pub(super) at: Timestamp,
    pub(super) model: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) usage: Usage,
}

/// The usage of each agent that is over, as a worker or a judge. What could not be started used nothing, and is
/// omitted.
pub(super) fn spendings(state: &LoopState) -> impl Iterator<Item = Spending> {
    let started = state.attempts.iter().filter(|attempt| attempt.outcome != Outcome::NotStarted);
    let judged = state.judged.iter().map(|judged| Spending {
        at: judged.at,
        model: judged.model.clone(),
        pool: judged.pool.clone(),
        usage: judged.usage,
    });
    let worked = started.map(|attempt| {
        let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_deref());
        let said = report.and_then(|report| report.session.model.clone());
        let model = said.or_else(|| state.spec.agent.model.clone());
        let pool = report.and_then(|report| report.pool.clone());
        Spending { at: attempt.ended_at, model, pool, usage: attempt.usage }
    });
    worked.chain(judged)
}
