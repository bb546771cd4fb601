//! Which requests a plan accepts in its present state.

use super::event::{PlanEnd, PlanEvent};
use super::file::Change;
use super::next_step::PlanLive;
use super::spec::PlanLimits;
use super::state::{PlanState, Stage};
use super::task::{TaskId, TaskStatus};
use crate::agent::Usd;
use crate::event::{Ask, Urgency};
use crate::machine::Refusal;
use crate::spec::Millis;

/// What `plan resume` grants: totals, not additions; a total that is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanGrant {
    pub per_task: Option<u32>,
    /// Iterations that all of them may take together.
    pub total: Option<u32>,
    pub max_cost: Option<Usd>,
    pub max_duration: Option<Millis>,
}

/// A change of a task in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEdit {
    /// It is to be done, after it was tried in vain or left out.
    Retry,
    /// It is not to be done.
    Block,
}

/// Why a task cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    #[error("there is no task {0}")]
    NoTask(TaskId),
    #[error("task {0} {1}")]
    Unfit(TaskId, &'static str),
}

impl PlanState {
    /// The change of the task file that retries or blocks a task; the plan obeys the file.
    pub fn edit(&self, id: &TaskId, edit: TaskEdit) -> Result<Change, TaskRefusal> {
        let task = self.task(id).ok_or_else(|| TaskRefusal::NoTask(id.clone()))?;
        use TaskStatus::{AwaitingTune, Blocked, Cancelled, Deferred, Failed};
        let is_left_out = matches!(task.card.status, Blocked | Failed | AwaitingTune | Deferred | Cancelled);
        let status = match (edit, &task.stage) {
            (TaskEdit::Retry, Stage::Stopped(_)) => Ok(TaskStatus::Pending),
            (TaskEdit::Retry, Stage::Out) if is_left_out => Ok(TaskStatus::Pending),
            (TaskEdit::Block, Stage::Waiting(_)) => Ok(TaskStatus::Blocked),
            (TaskEdit::Retry, Stage::Waiting(_)) => Err("is pending already"),
            (TaskEdit::Block, Stage::Stopped(_)) => Err("has stopped already"),
            (TaskEdit::Block, Stage::Out) if is_left_out => Err("is blocked or cancelled already"),
            (_, Stage::Out) => Err("is done, or done in parts"),
            (_, Stage::Landed { .. }) => Err("has landed"),
            (_, Stage::Proven { .. }) => Err("is done, and about to land"),
            (_, Stage::Running(_)) => Err("has begun; refrain cancel LOOP with the id of its loop ends it"),
        };
        let status = status.map_err(|why| TaskRefusal::Unfit(id.clone(), why))?;
        Ok(Change { task: id.clone(), from: self.status_of(task), status, note: None })
    }

    pub fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.lifecycle.admits(ask)?;
        match ask {
            Ask::Cancel(_) | Ask::Pause(_) => Ok(()),
            Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_) => Err(Refusal::NotALoop),
        }
    }

    /// Whether the loops, which were asked to stop at once, are asked again: each then kills what it is stopping.
    pub fn is_told_again(&self, live: &PlanLive, ask: &Ask) -> bool {
        live.told == Some(Urgency::Now) && matches!(ask, Ask::Pause(Urgency::Now) | Ask::Cancel(Urgency::Now))
    }

    /// The event that resumes the plan under new totals. None is needed for one whose runner died, unless it gets more.
    pub fn resume(&self, grant: &PlanGrant) -> Result<Option<PlanEvent>, Refusal> {
        // Why a runner that died was about to stop may be mended by now.
        if !self.may_resume(*grant != PlanGrant::default() || self.hindered.is_some())? {
            return Ok(None);
        }
        let end = self.ended.map(|ended| ended.end);
        let PlanLimits { per_task, total, max_cost, max_duration } = self.limits.clone();
        let limits = PlanLimits {
            per_task: grant.per_task.unwrap_or(per_task),
            total: grant.total.unwrap_or(total),
            max_cost: grant.max_cost.or(max_cost),
            max_duration: grant.max_duration.or(max_duration),
        };
        let refuse = |used: String, flag: String| Err(Refusal::NothingGranted { used, flag });
        if end == Some(PlanEnd::IterationCap) && limits.total <= self.used {
            let more = self.used.saturating_add(PlanLimits::TOTAL);
            return refuse(
                format!("{} iterations are used up", self.used),
                format!("--max-total-iterations {more}"),
            );
        }
        let spent = self.counted();
        if end == Some(PlanEnd::BudgetExceeded)
            && self.shared_cap().is_none()
            && let Some(cap) = limits.max_cost.filter(|cap| *cap <= spent || max_cost == Some(*cap))
        {
            let enough = f64::from(Usd(spent.0.max(cap.0).saturating_mul(2))).max(0.01);
            return refuse(
                format!("{spent} of {cap}{} are used", self.assumed.assumed_part()),
                format!("--max-cost {enough:.2}"),
            );
        }
        if let Some((used, flag)) = self.more_time(limits.max_duration) {
            return refuse(used, flag);
        }
        Ok(Some(PlanEvent::Resumed { limits }))
    }
}
