//! What callers receive, with the names of seed 003 (section 6.1): what a model needs to know of a loop. It is less
//! than `status --json` prints, because every word costs the caller tokens.

use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_core::prompt::state_file::WorkStatus;
use refrain_core::spec::{AgentKind, Millis};
use refrain_core::view::plan::PlanStatus;
use refrain_core::view::{Kind, StatusWord};
use refrain_engine::{DetailView, DiscardOutcome, KeptWork, MergeKind, MergedBranch};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A loop, or a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LoopView {
    /// Its id.
    pub(crate) id: LoopId,
    /// What drives it: a runner's processes, a live session, a plan; or it is a plan.
    pub(crate) kind: Kind,
    /// The project's name in the addresses of resources.
    pub(crate) project: String,
    /// What it was asked to do, or whose tasks it works on.
    pub(crate) goal: String,
    /// The folder that its agent works in.
    pub(crate) workspace_dir: String,
    /// Its `state.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_file: Option<String>,
    /// Where it stands.
    pub(crate) status: StatusWord,
    /// Iterations that count against the cap.
    pub(crate) iteration_count: u32,
    /// The cap; null is none.
    pub(crate) max_iterations: Option<u32>,
    /// What it cost, in US dollars; null where its agent does not tell.
    pub(crate) total_cost_usd: Option<f64>,
    /// It cost more than that: an agent was cut off before it said what it cost, or never said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) at_least: bool,
    /// What it may cost; null is no limit.
    pub(crate) max_cost_usd: Option<f64>,
    /// How many minutes one iteration may take; null is no limit.
    pub(crate) max_tick_duration_minutes: Option<f64>,
    /// Who works.
    pub(crate) agent: AgentKind,
    /// With which model; null is its own choice.
    pub(crate) model: Option<String>,
    /// Whether gates proved the work; null where no gate decides.
    pub(crate) verified: Option<bool>,
    /// When it was started.
    pub(crate) started_at: Timestamp,
    /// When its last iteration was over.
    pub(crate) last_tick_at: Option<Timestamp>,
    /// When it stopped.
    pub(crate) finished_at: Option<Timestamp>,
    /// Why it stands where it stands, in a line.
    pub(crate) reason: String,
    /// What a person has to do for it to go on; null where nothing.
    pub(crate) needs: Option<String>,
    /// Why it stopped short of being done, or how its last iteration took too long; null where neither is so.
    pub(crate) last_error: Option<String>,
}

impl LoopView {
    pub(super) fn of(glance: &DetailView, project: String) -> Self {
        let status = &glance.status;
        let mut ticks = status.iterations.iter().flatten().filter(|tick| tick.charged);
        let last = ticks.next_back();
        let overran = last.and_then(|last| Some(format!("iteration {}: {}", last.n, last.overran.as_ref()?)));
        Self {
            id: status.id.clone(),
            kind: status.kind,
            project,
            goal: glance.goal.clone(),
            workspace_dir: status.worktree.clone(),
            state_file: Some(glance.state_file.to_string()),
            status: status.status,
            iteration_count: status.charged,
            max_iterations: status.max_iterations,
            total_cost_usd: status.usage.cost_usd,
            at_least: status.usage.cost_usd.is_some() && status.usage.cost_at_least,
            max_cost_usd: status.limits.max_cost.map(f64::from),
            max_tick_duration_minutes: status.limits.timeout.map(minutes),
            agent: status.agent,
            model: status.model.clone(),
            verified: status.verified,
            started_at: status.started_at,
            last_tick_at: last.and_then(|last| last.ended_at),
            finished_at: status.ended_at,
            reason: status.reason.clone(),
            needs: status.needs.clone(),
            last_error: fell_short(status.status).then(|| status.reason.clone()).or(overran),
        }
    }

    pub(super) fn of_plan(plan: &PlanStatus, project: String) -> Self {
        Self {
            id: plan.id.clone(),
            kind: plan.kind,
            project,
            goal: format!("the tasks of {}", plan.tag),
            workspace_dir: plan.project.clone(),
            state_file: None,
            status: plan.status,
            iteration_count: plan.usage.iterations_used,
            max_iterations: Some(plan.usage.iterations_granted),
            total_cost_usd: plan.usage.cost_usd,
            at_least: plan.usage.at_least,
            max_cost_usd: plan.limits.max_cost.map(f64::from),
            max_tick_duration_minutes: None,
            agent: plan.agent,
            model: plan.model.clone(),
            verified: plan.verified,
            started_at: plan.started_at,
            last_tick_at: None,
            finished_at: plan.ended_at,
            reason: plan.reason.clone(),
            needs: plan.needs.clone(),
            last_error: fell_short(plan.status).then(|| plan.reason.clone()),
        }
    }

    /// Whether nothing more happens unless a person lets it go on.
    pub(super) fn has_stopped(&self) -> bool {
        self.status.has_stopped()
    }
}

/// Whether it stopped unfinished and without a request to stop.
fn fell_short(status: StatusWord) -> bool {
    match status {
        StatusWord::Blocked
        | StatusWord::Crashed
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck
        | StatusWord::Failed => true,
        StatusWord::Running
        | StatusWord::Waiting
        | StatusWord::Paused
        | StatusWord::Moved
        | StatusWord::Completed
        | StatusWord::Cancelled
        | StatusWord::IterationCap => false,
    }
}

fn minutes(Millis(ms): Millis) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no limit is longer than a year")]
    let ms = ms as f64;
    ms / 60_000.0
}

/// What `loop_start` and `plan_run` answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StartResult {
    /// It exists, and has a runner of its own.
    pub(crate) started: bool,
    /// How it stands.
    #[serde(rename = "loop")]
    pub(crate) view: LoopView,
    /// Notes for the caller.
    pub(crate) notes: Vec<String>,
}

/// What `loop_status` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// How it stands.
    #[serde(rename = "loop")]
    pub(crate) view: LoopView,
    /// What its agent says of its work in the front matter of `state.md`; null where that cannot be read.
    pub(crate) frontmatter: Option<FrontMatter>,
    /// The first 40 lines of `state.md`: the agent's own words.
    pub(crate) state_excerpt: Option<String>,
    /// The tasks of a plan; left out of a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tasks: Option<Tasks>,
}

/// The front matter of `state.md`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FrontMatter {
    /// Whose file it is.
    pub(crate) loop_id: LoopId,
    /// in-progress, done or blocked.
    #[schemars(with = "String")]
    pub(crate) status: WorkStatus,
    /// The number of the iteration.
    pub(crate) iteration: u32,
}

/// The tasks of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Tasks {
    /// How many there are.
    pub(crate) total: usize,
    /// How many are done.
    pub(crate) done: usize,
    /// What is worked on, and the ids of its loops.
    pub(crate) current: Vec<String>,
    /// What is not done, and why.
    pub(crate) blocked: Vec<String>,
}

impl From<&PlanStatus> for Tasks {
    fn from(plan: &PlanStatus) -> Self {
        let current = plan.current.iter().map(|it| format!("{} ({}): {}", it.task, it.id_of_loop, it.title));
        let blocked = plan.blocked.iter().map(|it| format!("{}: {}: {}", it.task, it.title, it.reason));
        Self {
            total: plan.tasks_total,
            done: plan.tasks_done,
            current: current.collect(),
            blocked: blocked.collect(),
        }
    }
}

/// How far a loop is, for a waiting caller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) charged: u32,
    pub(crate) of: Option<u32>,
    pub(crate) status: StatusWord,
    pub(crate) reason: String,
}

/// What `loop_list` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// How many are listed.
    pub(crate) count: usize,
    /// Those that are not over, oldest first; or with those that are, newest first.
    pub(crate) loops: Vec<LoopView>,
    /// What could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unread: Vec<String>,
}

/// What `loop_stop` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StopResult {
    /// Whether it was asked to stop; false where it had stopped already.
    pub(crate) stop_requested: bool,
    /// Which.
    pub(crate) loop_id: LoopId,
    /// Where it stands now.
    pub(crate) status: StatusWord,
}

/// What `loop_steer` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SteerResult {
    /// The loop has heard it: the text is in the prompt of its next iteration.
    pub(crate) steered: bool,
    /// Which.
    pub(crate) loop_id: LoopId,
}

/// The result of `loop_answer`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerResult {
    /// The agent gets the text with its next attempt; a loop that had stopped continues.
    pub(crate) answered: bool,
    /// The loop.
    pub(crate) loop_id: LoopId,
}

/// What `loop_report` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Reported {
    /// The report, as `refrain report --json` prints it (docs/schema).
    pub(crate) report: Value,
}

/// What a merge did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct MergeSummary {
    pub(crate) loop_id: LoopId,
    /// The loop's branch, or `plan ID`.
    pub(crate) merged: String,
    /// The branch that has it now; null if the head is detached.
    pub(crate) into: Option<String>,
    /// The commit of that branch now.
    pub(crate) commit: String,
    /// up-to-date, fast-forward, merge (a merge commit) or squash (one commit).
    pub(crate) how: &'static str,
}

impl MergeSummary {
    pub(super) fn new(id: &LoopId, MergedBranch { name, into, head, how, .. }: MergedBranch) -> Self {
        let how = match how {
            MergeKind::UpToDate => "up-to-date",
            MergeKind::FastForward => "fast-forward",
            MergeKind::Merge => "merge",
            MergeKind::Squash => "squash",
        };
        Self { loop_id: id.clone(), merged: name, into, commit: head.to_string(), how }
    }
}

/// What was discarded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DiscardSummary {
    pub(crate) loop_id: LoopId,
    /// What is kept of its work for 30 days.
    pub(crate) kept: Vec<DiscardedWork>,
}

/// Discarded work.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DiscardedWork {
    /// The branch that was removed; null if there was none.
    pub(crate) branch: Option<String>,
    /// The reference that has the work: git branch NAME REFERENCE brings it back.
    pub(crate) reference: String,
    /// How many of its files were in no commit; the reference has them.
    pub(crate) uncommitted: usize,
}

impl DiscardSummary {
    pub(super) fn new(id: &LoopId, DiscardOutcome { kept, .. }: DiscardOutcome) -> Self {
        let kept = kept.into_iter().map(|KeptWork { branch, reference, uncommitted }| DiscardedWork {
            branch,
            reference,
            uncommitted,
        });
        Self { loop_id: id.clone(), kept: kept.collect() }
    }
}
