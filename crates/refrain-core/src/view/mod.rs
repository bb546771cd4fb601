//! The view of a loop: the object that `status --json` prints and every surface reads (contract.md). Made from the
//! state and from what only the shell can know; never stored, never read back.

pub mod checkup;
pub mod diff;
mod explanation;
pub mod garbage;
mod group;
mod loop_parts;
pub mod metrics;
pub mod notice;
pub mod plan;
pub mod plugin;
pub mod report;
pub mod seal;
pub mod trace;
pub mod usage;
mod verification;
mod waits_for;

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::budget::CapUsage;
use crate::event::{ClaimSource, WaitKind};
use crate::ids::LoopId;
use crate::r#loop::{Attempt, LoopState, QueuedRequest};
use crate::plan::TaskRef;
use crate::signature::Remedy;
use crate::spec::{AgentKind, Limits, Millis};
use crate::text::{printable, squeeze};

pub use crate::model::status::StatusWord;
pub use explanation::{blocked, tell_task};
pub use group::Group;
pub use loop_parts::approval::{Approval, ApprovalWord};
pub use loop_parts::damage::{DamagedRow, DamagedWord};
pub use loop_parts::iteration::{Failure, Gate, Iteration};
pub use loop_parts::overrun::Overrun;
pub use loop_parts::pip::Pip;
pub use loop_parts::progress::progress;
pub use loop_parts::publication::Publication;
pub use loop_parts::remote_copy::RemoteCopy;
pub use loop_parts::sandbox::sandbox;
pub use loop_parts::saved_work::{SavedWork, with_yours};
pub use loop_parts::usage::{Usage, money, sum};
pub use verification::{Charset, Tone, Verification};
pub use waits_for::WaitsFor;

pub const SCHEMA: u32 = 1;

/// One loop, for people and scripts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The version of this shape.
    pub schema: u32,
    /// The loop's id.
    pub id: LoopId,
    /// What drives it.
    pub kind: Kind,
    /// The task of a plan that it is about; left out where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRef>,
    /// The mode that its prompt was put together from; left out where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Where it stands.
    pub status: StatusWord,
    /// Whether gates proved the work; null where no gate decides.
    pub verified: Option<bool>,
    /// Whether its end, and every approval, is signed with a key that the user trusts; null if it has not ended, or was made before
    /// signatures.
    pub signed: Option<bool>,
    /// The same in words; empty if there is nothing to say.
    #[serde(skip)]
    pub signature: String,
    /// Iterations begun.
    pub iteration: u32,
    /// The latest attempt of that iteration, from 1; 0 before the first.
    pub attempt: u32,
    /// Attempts in all.
    pub started: u32,
    /// Iterations that count against the cap.
    pub charged: u32,
    /// The cap; null is none.
    pub max_iterations: Option<u32>,
    /// Which adapter runs.
    pub agent: AgentKind,
    /// Which model it was told to use; null is its own choice.
    pub model: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The project's folder.
    pub project: String,
    /// The folder that the agent works in.
    pub worktree: String,
    /// The folder that its agent is started in: the worktree, or one in it.
    pub working_dir: String,
    /// The branch that the loop works on, where it commits or made it; null where the head is detached.
    pub branch: Option<String>,
    /// The branch that is checked out in the project (or HEAD), if it has all work of the loop's own branch: it is merged; omitted
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// The tree that was proven.
    pub tree: Option<String>,
    /// Whether the gates passed on more than `tree` has: on changes to files that were changed before the loop, or that may
    /// not be committed; left out where they did not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tree_is_partial: bool,
    /// When it was started.
    pub started_at: Timestamp,
    /// When the last event happened.
    pub updated_at: Timestamp,
    /// When it stopped; null while it has not.
    pub ended_at: Option<Timestamp>,
    /// How long it had worked when the last event happened: with a runner, less pauses and waits.
    #[serde(rename = "active_ms")]
    pub active: Millis,
    /// Why it stands where it stands, in one line.
    pub reason: String,
    /// What a person has to do for it to go on; null where nothing.
    pub needs: Option<String>,
    /// What has to happen before it continues; null if nothing has to.
    pub waits_for: Option<WaitsFor>,
    /// The agent's own question; null if it asks nothing.
    pub question: Option<String>,
    /// Requests that have had no effect yet: each can be taken back; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<QueuedRequest>,
    /// What it waits for.
    pub wait: Option<WaitView>,
    /// The text that claims the work done.
    pub completion_promise: Option<String>,
    /// The claim that ended it.
    pub claim: Option<Claim>,
    /// What it used; null where unknown.
    pub usage: Usage,
    /// The limits in force.
    pub limits: Limits,
    /// How the caps stand today that it shares with other loops; left out in lists, and where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caps: Vec<CapUsage>,
    /// The last result of each gate.
    pub gates: Vec<Gate>,
    /// When the gates ran last, if that was before the last iteration: `before the first iteration`.
    #[serde(skip)]
    pub gates_ran: Option<String>,
    /// What names gates and was left out at its start, as the user does not trust it; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// A person's answer to its claim, asked for last of all; left out if no person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What failed last, and how often in a row.
    pub last_failure: Option<Failure>,
    /// The failure branch that keeps the work of a loop that gave up, or why there is none.
    pub saved: Option<SavedWork>,
    /// The commits made in it, by Refrain or by the agent, oldest first.
    pub commits: Vec<String>,
    /// What it has outside; left out where it publishes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<Publication>,
    /// Its attempts, oldest first; left out in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Vec<Iteration>>,
    /// Who drives it, or drove it last.
    pub runner: Option<Runner>,
    /// Where the copy that this was read from comes from; left out of a loop of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrored: Option<RemoteCopy>,
}

/// How long a loop or plan has worked by now, of which that was true at its last event.
#[must_use]
pub fn active_by(now: Timestamp, status: StatusWord, (active, updated_at): (Millis, Timestamp)) -> Millis {
    let since = now.duration_since(updated_at).as_millis();
    let since = u64::try_from(since).ok().filter(|_| status == StatusWord::Running);
    Millis(active.0.saturating_add(since.unwrap_or_default()))
}

/// What drives a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A runner starts a process for every iteration.
    Process,
    /// The agent's own live session is looped.
    Session,
    /// It is a task of a plan.
    Task,
    /// It is no loop but a plan, whose tasks are loops.
    Plan,
}

/// A wait, as shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitView {
    /// What for.
    pub kind: WaitKind,
    /// Until when.
    pub until: Timestamp,
}

/// Who claimed that the work is done, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Claim {
    /// Who.
    pub source: ClaimSource,
    /// When.
    pub at: Timestamp,
}

/// Who drives a loop, as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Runner {
    /// Its process; null where a session drives it whose process is not known.
    pub pid: Option<i32>,
    /// Its machine.
    pub host: String,
    /// The session's own name, where a session drives it that has said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it lives; null where that cannot be known from here.
    pub alive: Option<bool>,
    /// Whether a signal (SIGSTOP) stopped it: it does nothing, and answers nothing, until it is continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

impl Runner {
    pub fn life(&self) -> &'static str {
        match self.alive {
            _ if self.stopped => "stopped",
            Some(true) => "alive",
            Some(false) => "gone",
            None => "unknown",
        }
    }
}

/// The command that continues a stopped runner, ready to be typed.
pub fn to_continue(pid: i32) -> String {
    format!("kill -CONT {pid}")
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.session, self.pid) {
            (Some(session), Some(pid)) => write!(f, "session {session}, pid {pid} on {}", self.host),
            (Some(session), None) => write!(f, "session {session} on {}", self.host),
            (None, Some(pid)) => write!(f, "pid {pid} on {}", self.host),
            (None, None) => write!(f, "a session on {}", self.host),
        }
    }
}

/// Facts on a loop that only the machine knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Whether its runner lives; none if that cannot be known.
    pub runner: Option<bool>,
    /// An agent that outlived its runner: its process.
    pub orphan: Option<i32>,
    pub stopped: bool,
}

/// Its runner, as the reason of one that crashed begins.
const RUNNER: &str = "its runner";

impl Alive {
    /// A loop without a runner.
    pub const NO_RUNNER: Self = Self { runner: Some(false), orphan: None, stopped: false };
    pub const DRIVEN: Self = Self { runner: Some(true), orphan: None, stopped: false };
}

/// Says of a loop, or a plan, that has not ended, that its runner is stopped, so its last step does not continue.
fn say_stopped(runner: Option<&mut Runner>, reason: &mut String, needs: &mut Option<String>) {
    let Some(runner) = runner.filter(|runner| runner.alive == Some(true)) else { return };
    runner.stopped = true;
    *reason = format!("its runner is stopped; before that: {reason}");
    *needs = runner.pid.map(to_continue);
}

/// Says of a loop, or a plan, that its runner stopped by this error of its own.
fn say_failed(error: &str, reason: &mut String, needs: &mut Option<String>) {
    if let Some(rest) = reason.strip_prefix(&format!("{RUNNER} is gone")) {
        let (error, rest) = (squeeze(&printable(error)), rest.trim_start_matches([',', ';', ' ']));
        *reason = format!("{RUNNER} stopped by an error: {error}; {rest}");
        *needs = needs.take().map(|needs| format!("remove the cause, then {needs}"));
    }
}

/// The model that the agent says it uses, or was configured to use.
fn model(state: &LoopState) -> Option<String> {
    let said = |attempt: &Attempt| attempt.finished.as_ref()?.report.as_ref()?.session.model.clone();
    state.attempts.iter().rev().find_map(said).or_else(|| state.spec.agent.model.clone())
}

fn branch(state: &LoopState) -> Option<String> {
    let base = state.git.base.as_ref().and_then(|base| base.branch.clone());
    state.spec.git.new_branch().map(str::to_owned).or(base)
}

pub fn status(state: &LoopState, alive: Alive) -> Status {
    let LoopState { lifecycle, spec, limits, .. } = state;
    let ended = lifecycle.ended;
    let word = word(state, alive.runner);
    let flight = state.in_flight();
    let claim = state.attempts.last().and_then(|last| {
        // One that the gates refused came to nothing.
        let is_refused = last.proof.as_ref().is_some_and(|proof| !proof.holds(spec));
        let source = last.claim.filter(|_| !is_refused)?;
        Some(Claim { source, at: last.ended_at })
    });
    let latest = flight.map(|flight| flight.id).or(state.attempts.last().map(|last| last.id));
    let iterations =
        state.attempts.iter().map(|attempt| Iteration::of(state, attempt)).chain(flight.map(|flight| {
            Iteration {
                n: flight.id.iteration,
                attempt: flight.id.attempt,
                charged: false,
                started_at: flight.child.started_at,
                ended_at: None,
                exit_code: None,
                signal: None,
                outcome: None,
                overran: None,
                claim: None,
                usage: Usage::default(),
                gates: Vec::new(),
                preview: None,
                summary: None,
            }
        }));
    let mut status = Status {
        schema: SCHEMA,
        id: spec.id.clone(),
        kind: match (&spec.task, &state.session) {
            (Some(_), _) => Kind::Task,
            (None, Some(_)) => Kind::Session,
            (None, None) => Kind::Process,
        },
        task: spec.task.clone(),
        mode: spec.mode.clone(),
        status: word,
        verified: spec.has_hard_gates().then(|| state.is_proven()),
        signed: state.signatures.is_signed(),
        signature: state.signatures.to_string(),
        iteration: state.iteration,
        attempt: latest.filter(|id| id.iteration == state.iteration).map_or(0, |id| id.attempt),
        started: u32::try_from(state.attempts.len() + usize::from(flight.is_some())).unwrap_or(u32::MAX),
        charged: state.charged,
        max_iterations: limits.max_iterations,
        agent: spec.agent.kind,
        model: model(state),
        command: std::iter::once(&spec.agent.program).chain(&spec.agent.args).cloned().collect(),
        project: spec.project.to_string(),
        worktree: spec.worktree.to_string(),
        working_dir: spec.working_dir.to_string(),
        branch: branch(state),
        tree: state.proven_tree().map(ToString::to_string),
        tree_is_partial: state.proven_tree().is_some() && state.is_proven_beyond_its_tree(),
        started_at: state.started_at,
        updated_at: state.updated_at,
        ended_at: ended.filter(|_| word.has_stopped()).map(|ended| ended.at),
        active: state.active(state.updated_at).into(),
        reason: squeeze(&explanation::reason(state, word, alive.orphan)),
        needs: explanation::needs(state, word),
        waits_for: waits_for::waits_for(state, word),
        question: explanation::question(state, word),
        queued: state.queued().collect(),
        wait: state.wait.map(|wait| WaitView { kind: wait.kind, until: wait.until }),
        completion_promise: spec.promise.as_ref().map(|promise| promise.text.to_string()),
        claim,
        usage: state.spent.into(),
        limits: limits.clone(),
        caps: Vec::new(),
        gates: state.gate_results().filter_map(|result| Gate::of(state, result)).collect(),
        gates_ran: explanation::gates_ran(state),
        untrusted: spec.untrusted.clone(),
        approval: Approval::of(state),
        last_failure: last_failure(state),
        saved: SavedWork::of(state),
        commits: state.git.commits.iter().map(ToString::to_string).collect(),
        publication: Publication::of(state),
        iterations: Some(iterations.collect()),
        runner: driver(state).map(|(pid, host)| Runner {
            pid,
            host: host.to_owned(),
            session: state.session.as_ref().filter(|_| state.is_in_session()).and_then(|it| it.id.clone()),
            alive: if ended.is_some() && word.has_stopped() { Some(false) } else { alive.runner },
            stopped: false,
        }),
        mirrored: None,
        merged_into: None,
    };
    if alive.stopped {
        say_stopped(status.runner.as_mut(), &mut status.reason, &mut status.needs);
    }
    status
}

/// The process that drives it, if known, and its machine: the session's, unless a runner has something to do.
fn driver(state: &LoopState) -> Option<(Option<i32>, &str)> {
    let runner = || state.runner.as_ref().map(|runner| (Some(runner.process.pid), runner.host.as_str()));
    let session = state.session.as_ref().filter(|_| state.is_in_session());
    session.map(|session| (session.process.map(|process| process.pid), session.host.as_str())).or_else(runner)
}

/// A loop that has not stopped has a runner, or it has crashed: a dead owner never shows as running.
fn word(state: &LoopState, alive: Option<bool>) -> StatusWord {
    match state.ended.map(|ended| ended.end) {
        // Its runner is running and has ended nothing.
        Some(_) if alive == Some(true) && is_forged(state) => StatusWord::Running,
        Some(_) if state.check_here().is_err() => StatusWord::Moved,
        Some(end) => StatusWord::from(end),
        None if !state.is_driven() || alive == Some(false) => StatusWord::Crashed,
        None if state.wait.is_some() => StatusWord::Waiting,
        None => StatusWord::Running,
    }
}

/// Whether it has an end, or an approval, that no key signed although its start is signed.
fn is_forged(state: &LoopState) -> bool {
    state.signatures.objection().is_some_and(|objection| objection.remedy() == Remedy::SetAside)
}

/// The last failure, and how many iterations in a row had the very same.
fn last_failure(state: &LoopState) -> Option<Failure> {
    let failing = state.proof.as_ref().and_then(|proof| proof.failing(&state.spec).next());
    let last = state.progress.stuck.last().or_else(|| failing?.fingerprint.as_ref())?;
    let of_gate = failing.filter(|failing| failing.fingerprint.as_ref() == Some(last));
    Some(Failure {
        gate: of_gate.and_then(|failing| Some(failing.spec(&state.spec)?.name.to_string())),
        fingerprint: last.to_string(),
        // A failure before the first iteration counts too, even if it never came again.
        count: state.progress.stuck.count().max(1),
    })
}

impl Status {
    /// The same without its attempts, as lists have it.
    #[must_use]
    pub fn without_iterations(self) -> Self {
        Self { iterations: None, ..self }
    }

    /// The same of a loop whose runner, if it is gone, stopped by this error.
    #[must_use]
    pub fn of_failed_runner(mut self, error: &str) -> Self {
        say_failed(error, &mut self.reason, &mut self.needs);
        self
    }

    /// Whether it is over: nothing more happens unless a person resumes it.
    pub fn has_stopped(&self) -> bool {
        self.status.has_stopped()
    }

    pub fn verification(&self) -> Verification {
        Verification::of(self.status, self.verified)
    }

    /// Whether its runner is gone while this attempt was running.
    pub fn is_interrupted(&self, attempt: &Iteration) -> bool {
        self.status == StatusWord::Crashed && attempt.ended_at.is_none()
    }

    pub fn tone(&self) -> Tone {
        Tone::of(self.status, self.verified)
    }
}
