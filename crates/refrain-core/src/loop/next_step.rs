//! What a loop does next. Total, deterministic, and the only place where it is decided.

use std::time::Duration;

use jiff::Timestamp;

use super::child::{self};
use super::provider_faults;
use super::state::{ChildId, Live, LoopState, Phase, Proving, Publishing};
use crate::agent::Usage;
use crate::event::{BlockReason, End, StopReason, Urgency, Wait, WaitKind};
use crate::gate::GateSpec;
use crate::git::Effect;
use crate::session::MAX_IDLE_TURNS;
use crate::spec::{Millis, OnStuck};
use crate::stuck::Verdict;

/// Refunds in a row, none of them a provider's wait, that end a loop as blocked (design.md, "A loop's life").
pub const MAX_REFUNDS: u32 = 3;

/// How many iterations in a row may be cut off before their agent said what it cost, if there is a cap on money: each
/// of them may have cost as much as the cap.
const MAX_UNTOLD: u32 = 2;
/// Iterations in a row that end with `status: blocked` in `state.md` and so end a loop: an agent that says it gets one
/// more, whose prompt says so (issue 8).
const MAX_BLOCKED: u32 = 2;
/// Instant failures in a row that end a loop as blocked (design.md, "Errors are classified").
pub const MAX_CHURN: u32 = 3;
/// An agent that fails within this time did not work, it could not.
pub const CHURN_WITHIN: Duration = Duration::from_secs(2);

/// The smallest thing a loop does next. `docs/architecture/core.md` says whether it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Make the loop's branch or worktree if it is not there yet, and record what is in the repository.
    TakeBase,
    /// Determine what the gates are to prove, and record it.
    TakeCandidate,
    Start(ChildId),
    /// Record, then do: end the child by its stop ladder.
    Stop(StopReason),
    /// Commit what this iteration changed, unless that is done already, and record the result.
    Commit {
        iteration: u32,
    },
    /// Record that this is about to be done outside.
    Intend(Effect),
    /// Do this outside, unless it is done already, and record the result.
    Publish(Effect),
    /// Record that the loop continues with its other agent.
    ChangeAgent,
    /// Keep what the loop did on a failure branch, beside the worktree, and record the result.
    SaveWork,
    /// Remove the loop's own worktree if nothing is lost by that, and record the result.
    ReleaseWorktree,
    BeginIteration {
        iteration: u32,
    },
    /// Record a wait. What follows is [`Step::Await`].
    Wait(Wait),
    /// Nothing until then, or until an event.
    Await {
        /// When to ask again at the latest.
        until: Option<Timestamp>,
    },
    Finish(End),
    /// Nothing, ever: the loop is stopped until a request arrives.
    Rest,
}

pub fn next_step(state: &LoopState, live: &Live, now: Timestamp) -> Step {
    let step = unfunded(state, live, now);
    // Nothing that costs money is begun without.
    let short = state.costs_of(&step).and_then(|agent| state.shortage(agent, live.allowance.as_ref()?));
    short.map_or(step, Step::Finish)
}

/// The same, regardless of what the shared caps leave.
fn unfunded(state: &LoopState, live: &Live, now: Timestamp) -> Step {
    if state.is_final() {
        return Step::Rest;
    }
    if let Some(child) = state.child() {
        return child::in_flight(state, child, live, now);
    }
    if state.ended.is_some() {
        return match state.cancel {
            Some(_) => finish(state, End::Cancelled),
            None => Step::Rest,
        };
    }
    match &state.phase {
        Phase::Proving(proving) => proving_next(state, proving, now),
        Phase::Publishing(publishing) => publishing_next(state, publishing, now),
        Phase::Idle { .. } | Phase::Begun { .. } | Phase::InFlight(_) | Phase::Critiquing(_) => {
            between(state, live, now)
        }
    }
}

/// Between two gates. After an attempt they are part of its iteration; before the first there is none to finish.
fn proving_next(state: &LoopState, proving: &Proving, now: Timestamp) -> Step {
    // A reviewer's provider may be waited for, for hours: that is no iteration that is about to be finished.
    let waits = state.trouble.next.is_some();
    let stops = |asked: Option<Urgency>| match proving.of {
        Some(_) => asked == Some(Urgency::Now) || waits && asked.is_some(),
        None => asked.is_some(),
    };
    let end = match proving.hindered {
        _ if stops(state.cancel) => Some(End::Cancelled),
        Some(why) => Some(End::Blocked { why }),
        None if state.git.refused.is_some() => Some(End::Blocked { why: BlockReason::Repository }),
        None if state.refunds_in_a_row >= MAX_REFUNDS => Some(End::Blocked { why: BlockReason::Refunds }),
        None if stops(state.pause) => Some(End::Paused),
        None if is_over(state, now) => Some(End::TimedOut),
        // Work already paid for can still be proven by gates that cost nothing.
        None if state.is_spent() && is_review(state, proving) => Some(End::BudgetExceeded { by: None }),
        None => None,
    };
    if let Some(end) = end {
        return match state.cancel {
            Some(_) => finish(state, End::Cancelled),
            None => unproven(state, end),
        };
    }
    if state.sweeping {
        return Step::Await { until: None };
    }
    match proving.next_gate() {
        Some((gate, run)) if proving.candidate.is_some() && !proving.to_check => {
            after(state, state.trouble.next, now, Step::Start(ChildId::Gate { gate, run }))
        }
        Some(_) | None => Step::TakeCandidate,
    }
}

/// After a commit: publishing is part of its iteration, unless it has to be waited for.
fn publishing_next(state: &LoopState, publishing: &Publishing, now: Timestamp) -> Step {
    // A cancelled loop publishes and merges nothing more.
    if state.cancel.is_some_and(|urgency| urgency == Urgency::Now || publishing.running.is_none()) {
        return finish(state, End::Cancelled);
    }
    if state.needs_person() {
        return Step::Finish(End::Blocked { why: BlockReason::Publish });
    }
    let waits = publishing.next.is_some();
    if state.pause.is_some_and(|urgency| urgency == Urgency::Now || waits) {
        return Step::Finish(End::Paused);
    }
    if publishing.running.is_none() && is_over(state, now) {
        return unproven(state, End::TimedOut);
    }
    match state.next_effect() {
        _ if state.sweeping => Step::Await { until: None },
        _ if state.git.stale => Step::TakeBase,
        Some(effect) if effect.leaves_something() && publishing.running.is_none() => {
            after(state, publishing.next, now, Step::Intend(effect))
        }
        Some(effect) => after(state, publishing.next, now, Step::Publish(effect)),
        // It is over then: applying the last event has recorded that.
        None => Step::Await { until: None },
    }
}

/// When a program that waits for its provider itself is ended.
pub(super) fn ends_sleep(live: &Live) -> Option<Timestamp> {
    provider_faults::ends_sleep(live.retrying.as_ref()?)
}

fn is_review(state: &LoopState, proving: &Proving) -> bool {
    let next = proving.next_gate().and_then(|(gate, _)| state.spec.gates.get(gate));
    next.is_some_and(GateSpec::is_review)
}

/// The first deadline, and what it is; of two at the same time the first in the list.
pub(super) fn first_of(deadlines: &[(Option<Timestamp>, StopReason)]) -> Option<(Timestamp, StopReason)> {
    deadlines.iter().filter_map(|(at, because)| Some(((*at)?, *because))).min_by_key(|(at, _)| *at)
}

/// When the loop would have begun if it had never been stopped: its time runs on while a process of its own does.
pub(super) fn began(state: &LoopState, now: Timestamp) -> Timestamp {
    let from = now.min(state.updated_at);
    from.checked_sub(state.active(from)).unwrap_or(Timestamp::MIN)
}

/// Whether the loop's own duration is over.
fn is_over(state: &LoopState, now: Timestamp) -> bool {
    state.limits.max_duration.is_some_and(|all| remaining(all, state.active(now)) == Millis(0))
}

/// Between attempts. The order is the rule: a person's request, then what is proven, then what forbids to continue.
fn between(state: &LoopState, live: &Live, now: Timestamp) -> Step {
    let phase = &state.phase;
    if let Phase::Idle { uncommitted: true, .. } = phase
        && state.cancel != Some(Urgency::Now)
        && state.pause != Some(Urgency::Now)
    {
        // What the agent left running may still write. The commit ends the iteration: any end of the loop comes after
        // it.
        return match state.sweeping {
            true => Step::Await { until: None },
            false => Step::Commit { iteration: state.iteration },
        };
    }
    if state.cancel.is_some() {
        return finish(state, End::Cancelled);
    }
    if state.lacks_last_proof() && state.git.refused.is_none() {
        return match state.sweeping {
            true => Step::Await { until: None },
            false => Step::TakeCandidate,
        };
    }
    if let Some(claim) = state.completes_by() {
        return finish(state, End::Completed { claim });
    }
    if let Phase::Begun { hindered: Some(why), .. } = phase {
        return Step::Finish(End::Blocked { why: *why });
    }
    if state.git.refused.is_some() {
        return Step::Finish(End::Blocked { why: BlockReason::Repository });
    }
    if state.refunds_in_a_row >= MAX_REFUNDS {
        return Step::Finish(End::Blocked { why: BlockReason::Refunds });
    }
    if state.blocked >= MAX_BLOCKED {
        return Step::Finish(End::Blocked { why: BlockReason::StateFile });
    }
    if state.given_up.is_some() {
        return unproven(state, End::Blocked { why: BlockReason::GaveUp });
    }
    if state.pause.is_some() {
        return Step::Finish(End::Paused);
    }
    if is_over(state, now) {
        return at_limit(state, End::TimedOut);
    }
    // Of shared money the reserved amount counts; the loop's own cap has no amount to use.
    let is_untold = state.untold.max(state.untold_judges) >= MAX_UNTOLD && state.limits.max_cost.is_some();
    if is_untold || state.cost_unknown && (state.limits.max_cost.is_some() || live.allowance.is_some()) {
        return Step::Finish(End::Blocked { why: BlockReason::CostUnknown });
    }
    if state.is_over_budget(&Usage::default()) {
        return at_limit(state, End::BudgetExceeded { by: None });
    }
    match phase {
        // Nothing is started while processes of the last attempt still run. An end is recorded all the same.
        Phase::Begun { .. } if state.sweeping => Step::Await { until: None },
        // Another loop of the account found that its provider works again.
        Phase::Begun { next, .. }
            if live.is_account_open && state.trouble.next.is_none_or(|own| own.until <= now) =>
        {
            Step::Start(ChildId::Attempt(*next))
        }
        Phase::Begun { next, .. } => {
            let account = live.account.filter(|_| !state.hurried);
            let due = [state.trouble.next, account].into_iter().flatten().max_by_key(|wait| wait.until);
            after(state, due, now, Step::Start(ChildId::Attempt(*next)))
        }
        Phase::Idle { .. }
        | Phase::InFlight(_)
        | Phase::Proving(_)
        | Phase::Publishing(_)
        | Phase::Critiquing(_) => begin(state, now),
    }
}

/// An end for good: the loop's own worktree is given back first, once no process is left that may write there.
fn finish(state: &LoopState, end: End) -> Step {
    match state.holds_worktree() {
        true if state.sweeping => Step::Await { until: None },
        true => Step::ReleaseWorktree,
        false => Step::Finish(end),
    }
}

/// An end without a proof: the loop's work is saved first, if the end asks for that and once no process is left that
/// may still write.
fn unproven(state: &LoopState, end: End) -> Step {
    match state.is_kept_at(end) {
        true if state.sweeping => Step::Await { until: None },
        true => Step::SaveWork,
        false => Step::Finish(end),
    }
}

/// The end at a limit of the loop. An agent that asks gets no other iteration to find a way itself: a person answers it.
fn at_limit(state: &LoopState, end: End) -> Step {
    match state.blocked {
        0 => unproven(state, end),
        _ => Step::Finish(End::Blocked { why: BlockReason::StateFile }),
    }
}

fn begin(state: &LoopState, now: Timestamp) -> Step {
    if state.limits.max_iterations.is_some_and(|cap| state.charged >= cap) {
        return at_limit(state, End::IterationCap);
    }
    if state.churn >= MAX_CHURN {
        return Step::Finish(End::Blocked { why: BlockReason::Churn });
    }
    if state.idle_turns >= MAX_IDLE_TURNS {
        return Step::Finish(End::Blocked { why: BlockReason::Idle });
    }
    if let Verdict::Stuck(_) = state.verdict() {
        return match (&state.spec.stuck.answer, state.other_agent()) {
            (OnStuck::Ask, _) => Step::Finish(End::Blocked { why: BlockReason::Stuck }),
            (_, Some(_)) => Step::ChangeAgent,
            (OnStuck::Stop | OnStuck::Change(_), None) => unproven(state, End::Stuck),
        };
    }
    if state.is_critique_due() {
        return match state.sweeping {
            true => Step::Await { until: None },
            false => Step::Start(ChildId::Critic { iteration: state.iteration }),
        };
    }
    if state.spec.git.needs_base() && (state.git.base.is_none() || state.git.stale) {
        return Step::TakeBase;
    }
    if !state.spec.gates.is_empty() && state.baseline.is_none() {
        return Step::TakeCandidate;
    }
    if state.missing_gate().is_some() {
        return Step::Finish(End::Blocked { why: BlockReason::GateMissing });
    }
    after(state, rest(state), now, Step::BeginIteration { iteration: state.iteration + 1 })
}

/// The step, once the wait before it is over. A wait is recorded before it begins.
fn after(state: &LoopState, due: Option<Wait>, now: Timestamp, step: Step) -> Step {
    let (since, first) = state.wait_span;
    if let Some(wait) = state.wait.filter(|wait| wait.until > now) {
        return match since.filter(|since| now < *since) {
            // The clock was ahead when it began: it begins again, and takes as long.
            Some(since) => {
                let until = now.saturating_add(wait.until.duration_since(since)).unwrap_or(now);
                Step::Wait(Wait { until, ..wait })
            }
            None => Step::Await { until: Some(wait.until) },
        };
    }
    // A wait that began again was this one.
    let is_over = |due: &Wait| due.until <= now || state.wait.is_some() && due.until <= first;
    match due.filter(|due| !is_over(due)) {
        Some(wait) => Step::Wait(wait),
        None => step,
    }
}

fn rest(state: &LoopState) -> Option<Wait> {
    let span = state.limits.pause.max(state.back_off())?;
    Some(Wait { kind: WaitKind::Pace, until: plus(state.rested_since?, span) })
}

fn remaining(all: Millis, used: Duration) -> Millis {
    Millis(all.0.saturating_sub(Millis::from(used).0))
}

pub(super) fn plus(at: Timestamp, span: Millis) -> Timestamp {
    provider_faults::plus(at, span.into())
}
