//! What is new in this run: its number, what is left of its limits, the results of earlier runs, and which tests still
//! fail.

use std::fmt::Write;

use super::failing_tests::still_failing;
use super::parts::{charged, last_iteration, outcome};
use super::quote::QuotedLogs;
use crate::git::{CommitResult, SkipReason};
use crate::r#loop::{Attempt, LoopState, Outcome};
use crate::sandbox::Mechanism;
use crate::spec::Millis;
use crate::text::{clip, grouped, squeeze};

const MOST_RUNS: usize = 3;
/// How much is said of such a run's result, in bytes.
const LONGEST_OUTCOME: usize = 200;
const MOST_HOSTS: usize = 5;
/// How much of its agent's words is repeated, in bytes.
const LONGEST_WORDS: usize = 160;

pub(super) fn this_run(state: &LoopState, quoted: QuotedLogs<'_>) -> String {
    let number = state.iteration;
    let mut text = match state.limits.max_iterations {
        Some(cap) => format!("## Run {number} of {cap}"),
        None => format!("## Run {number} (no cap)"),
    };
    let lines =
        left(state).into_iter().chain(sandboxed(state)).chain(cut_off(state)).chain(earlier_runs(state));
    for line in lines.chain(uncommitted(state)).chain(still_failing(state, quoted)) {
        let _ = write!(text, "\n{line}");
    }
    text
}

/// The rest of money, tokens and time, as far as they are capped.
fn left(state: &LoopState) -> Option<String> {
    let (limits, spent) = (&state.limits, state.spent);
    let at_most = |is_short: bool| if is_short { "at most " } else { "" };
    let cost = spent.cost.unwrap_or_default();
    let unknown_cost = spent.at_least || (spent.cost.is_none() && !state.attempts.is_empty());
    let money = limits.max_cost.zip(state.budget());
    let money = money.map(|(cap, left)| format!("{}{left} of {cap}", at_most(unknown_cost && cost < cap)));
    let tokens = limits.max_tokens.map(|cap| {
        let left = cap.saturating_sub(spent.tokens.counted());
        format!("{}{} of {} tokens", at_most(spent.at_least && left > 0), grouped(left), grouped(cap))
    });
    let time = limits.max_duration.map(|cap| {
        let used = Millis::from(state.active(state.updated_at));
        format!("{} of {cap}", Millis(cap.0.saturating_sub(used.0)))
    });
    let left: Vec<_> = [money, tokens, time].into_iter().flatten().collect();
    let left = (!left.is_empty()).then(|| format!("Left: {}.", left.join(", ")));
    // The turns of a session are not timed.
    let timeout = limits.timeout.filter(|_| state.session.is_none());
    let timeout = timeout.map(|timeout| format!("This run is stopped after {timeout}."));
    let parts: Vec<_> = left.into_iter().chain(timeout).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What the agent has to know of its sandbox, and the hosts that it refused to the last run.
fn sandboxed(state: &LoopState) -> Vec<String> {
    let Some(sandbox) = &state.spec.sandbox else { return Vec::new() };
    let general = match sandbox.mechanism {
        Mechanism::Namespaces => {
            "You run in a sandbox: no DNS and no ssh; HTTPS works through the proxy in HTTPS_PROXY, to allowed hosts."
        }
        Mechanism::Files => {
            "You run in a sandbox: you can write the worktree and the folder in TMPDIR, and not /tmp; caches of build tools are read-only, and git cannot delete branches."
        }
    };
    let last = state.attempts.last().and_then(|attempt| attempt.finished.as_ref());
    let refused = last.map(|finished| finished.refused.as_slice()).unwrap_or_default();
    let names: Vec<&str> = refused.iter().take(MOST_HOSTS).map(|refused| refused.host.as_str()).collect();
    let refused = (!names.is_empty()).then(|| {
        let names = squeeze(&names.join(", "));
        let names = clip(&names, LONGEST_OUTCOME);
        format!("It refused these hosts to the last run: {names}. Do without them, or ask for them.")
    });
    std::iter::once(general.to_owned()).chain(refused).collect()
}

/// Says that the run before this one was cut off, and where its work is.
fn cut_off(state: &LoopState) -> Option<String> {
    let of_this_iteration = |attempt: &&Attempt| attempt.id.iteration == state.iteration;
    let mut refunded = state.attempts.iter().rev().take_while(of_this_iteration).filter(|it| !it.charged);
    let was_stopped = |last: &Attempt| {
        matches!(
            last.outcome,
            Outcome::TimeLimit | Outcome::LoopDuration | Outcome::Silence | Outcome::Budget
        )
    };
    let which = if refunded.any(may_have_worked) {
        "The previous run of this iteration"
    } else if last_iteration(state).is_some_and(was_stopped) {
        "The previous run"
    } else {
        return None;
    };
    Some(match state.spec.is_in_repository() && state.spec.working_dir.starts_with(&state.spec.worktree) {
        true => format!(
            "{which} was cut off; what it changed is in the working tree: see `git status` and `git diff` first."
        ),
        false => format!("{which} was cut off; what it changed is in the files: look at them first."),
    })
}

/// Whether an attempt that was refunded may have changed something.
fn may_have_worked(attempt: &Attempt) -> bool {
    match attempt.outcome {
        Outcome::NotStarted | Outcome::Unresponsive => false,
        // The provider failed it: at once, or in the middle of its work.
        Outcome::Limit | Outcome::Outage | Outcome::Unable => {
            let report = attempt.finished.as_ref().and_then(|finished| finished.report.as_deref());
            attempt.usage.tokens.counted() > 0 || report.is_some_and(|report| report.last_tool.is_some())
        }
        Outcome::Claimed
        | Outcome::Ended
        | Outcome::Failed
        | Outcome::TimeLimit
        | Outcome::Silence
        | Outcome::LoopDuration
        | Outcome::Cancelled
        | Outcome::Interrupted
        | Outcome::Lost
        | Outcome::OutputLost
        | Outcome::Budget => true,
    }
}

/// A line for each of the last runs: its result, and its agent's words on it.
fn earlier_runs(state: &LoopState) -> Vec<String> {
    let all: Vec<_> = charged(state).collect();
    let line = |attempt: &&Attempt| {
        let came_to = squeeze(&outcome(state, attempt));
        let came_to = clip(&came_to, LONGEST_OUTCOME);
        let mut line = format!("Run {}: {came_to}.", attempt.id.iteration);
        if let Some(said) = words(attempt) {
            // Text follows the words, so that they are never the last of their line.
            let _ = write!(line, " It said: \"{said}\"");
        }
        line
    };
    all[all.len().saturating_sub(MOST_RUNS)..].iter().map(line).collect()
}

/// The agent's words on its run, on one line.
fn words(attempt: &Attempt) -> Option<String> {
    let finished = attempt.finished.as_ref()?;
    let said = finished.summary.as_deref().unwrap_or(&finished.preview);
    let said = squeeze(said).replace('"', "'");
    (!said.is_empty()).then(|| clip(&said, LONGEST_WORDS).into_owned())
}

/// The state of the last run's changes, in a loop that commits.
fn uncommitted(state: &LoopState) -> Option<String> {
    let last = last_iteration(state).filter(|_| state.spec.git.workflow.commits())?.id.iteration;
    let report = state.git.last.as_ref();
    match report.filter(|report| report.iteration == last).map(|report| &report.result) {
        Some(CommitResult::Made { commit, .. }) => {
            Some(format!("Run {last} is committed as {}.", commit.short()))
        }
        Some(CommitResult::Skipped(SkipReason::Nothing)) => {
            Some(format!("Run {last} changed nothing that could be committed."))
        }
        // The message of a hook is quoted below.
        Some(CommitResult::Skipped(SkipReason::Hook { .. })) => Some(format!("Run {last} is not committed.")),
        Some(CommitResult::Skipped(why)) => {
            let why = squeeze(&why.to_string());
            Some(format!("Run {last} is not committed: {}.", clip(&why, LONGEST_OUTCOME)))
        }
        None => {
            let first = report.map_or(state.spec.carried(), |report| report.iteration) + 1;
            let runs = match last.saturating_sub(first) {
                0 if state.has_changed_nothing(last) => return Some(format!("Run {last} changed no file.")),
                0 => format!("run {last}"),
                1 => format!("runs {first} and {last}"),
                _ => format!("runs {first} to {last}"),
            };
            Some(format!("Not committed for you yet: what {runs} changed."))
        }
    }
}
