//! What was seen over all seeds. A simulation that never reaches a corner proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

use crate::event::{Blocked, ClaimSource, End};
use crate::stuck::Pattern;

#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(&'static str, &'static str), u64>);

/// Of 10,000 seeds at least so many must show this.
pub(super) const COVERED: &[(&str, &str, u64)] = &[
    ("end", "completed: promise", 500),
    ("end", "completed: state file", 200),
    ("end", "completed: exit code", 200),
    ("end", "completed: gates", 40),
    ("end", "completed: result", 50),
    ("end", "completed: success command, whatever the agent said", 50),
    ("end", "blocked: gate missing", 30),
    ("end", "completed: count", 100),
    ("end", "blocked: gave up", 50),
    ("end", "blocked: state file", 50),
    ("end", "cancelled", 500),
    ("end", "iteration cap", 500),
    ("end", "timed out", 200),
    ("end", "paused", 200),
    ("end", "blocked: refunds", 150),
    ("end", "blocked: churn", 100),
    ("end", "blocked: agent missing", 200),
    ("end", "blocked: output lost", 100),
    ("end", "blocked: needs a person", 100),
    ("end", "blocked: provider", 30),
    ("end", "budget exceeded", 100),
    ("crash behind", "loop.started", 100),
    ("crash behind", "runner.started", 100),
    ("crash behind", "iteration.begun", 100),
    ("crash behind", "attempt.started", 100),
    ("crash behind", "attempt.spawned", 100),
    ("crash behind", "attempt.spawn-failed", 30),
    ("crash behind", "attempt.stop-requested", 100),
    ("crash behind", "attempt.finished", 100),
    ("crash behind", "attempt.swept", 50),
    ("crash behind", "asked", 100),
    ("crash behind", "wait.started", 50),
    ("crash behind", "loop.ended", 100),
    ("crash behind", "loop.resumed", 100),
    ("crash behind", "journal.torn", 20),
    ("disk", "power lost", 1_000),
    ("disk", "unsynced records lost", 200),
    ("disk", "a torn line", 200),
    ("disk", "an iteration vanished before its agent", 20),
    ("request", "answered", 500),
    ("request", "seen again after a crash", 20),
    ("request", "refused", 50),
    ("request", "by an asker, with no runner alive", 100),
    ("agent", "started", 10_000),
    ("agent", "stopped: cancel", 100),
    ("agent", "stopped: interrupt", 100),
    ("agent", "stopped: time limit", 200),
    ("agent", "stopped: silence", 200),
    ("agent", "stopped: loop duration", 100),
    ("agent", "stopped: output lost", 100),
    ("agent", "stopped: budget", 50),
    ("agent", "stopped: sleeps until its provider works", 150),
    ("agent", "met a limit or an outage", 500),
    ("agent", "left somebody behind", 500),
    ("loop", "ended while being swept", 50),
    ("agent", "claimed, but was stopped", 50),
    ("loop", "resumed", 1_000),
    ("loop", "granted more after a crash", 200),
    ("loop", "let go on before its pause", 10),
    ("loop", "recovered in flight", 500),
    ("loop", "steered", 200),
    ("git", "base taken", 2_000),
    ("git", "commit settled", 2_000),
    ("git", "stopped before its commit", 10),
    ("git", "worktree released", 500),
    ("git", "a hook changed what is committed", 200),
    ("crash behind", "candidate.taken", 100),
    ("crash behind", "gate.started", 100),
    ("crash behind", "gate.spawn-failed", 20),
    ("crash behind", "gate.stop-requested", 20),
    ("crash behind", "gate.finished", 100),
    ("gate", "candidate taken", 2_000),
    ("gate", "candidate settles it", 1_000),
    ("gate", "started", 5_000),
    ("gate", "could not start", 100),
    ("gate", "passed", 1_000),
    ("gate", "failed", 1_000),
    ("gate", "failed: time limit", 100),
    ("gate", "failed: no test", 100),
    ("gate", "flaky", 100),
    ("gate", "lost with its runner", 100),
    ("gate", "never came to rest", 20),
    ("gate", "stopped: time limit", 200),
    ("gate", "stopped: loop duration", 20),
    ("gate", "stopped: cancel", 20),
    ("gate", "stopped: interrupt", 20),
    ("gate", "refused a claim", 200),
    ("gate", "a reviewer", 500),
    ("gate", "failed: reviewer", 100),
    ("gate", "failed: no verdict", 50),
    ("gate", "passed over what was touched", 200),
    ("critic", "or a reviewer lost with its runner", 50),
    ("end", "stuck", 30),
    ("end", "blocked: stuck", 10),
    ("stuck", "told to do something else", 500),
    ("stuck", "another agent goes on", 20),
    ("stuck", "work is kept", 300),
    ("stuck", "the work stays the same", 100),
    ("stuck", "claims are refused", 8),
    ("stuck", "a failure is new", 5),
    ("crash behind", "critique.started", 50),
    ("crash behind", "critique.finished", 50),
    ("crash behind", "work.saved", 20),
    ("critic", "started", 1_000),
    ("critic", "could not start", 50),
    ("critic", "heard", 200),
    ("critic", "stopped: time limit", 100),
    ("critic", "stopped for another's sake", 50),
    ("outside", "pushed", 500),
    ("outside", "opened", 200),
    ("outside", "made ready", 100),
    ("outside", "looked at: green", 50),
    ("outside", "looked at: red", 50),
    ("outside", "looked at: pending", 100),
    ("outside", "looked at: not started", 50),
    ("outside", "merged", 20),
    ("outside", "returned", 20),
    ("outside", "found done", 1),
    ("outside", "put off", 100),
    ("outside", "refused", 100),
    ("outside", "rebased", 200),
    ("outside", "in conflict", 50),
    ("end", "blocked: approval", 80),
    ("approval", "given", 50),
    ("approval", "not given", 30),
    ("approval", "given to what is another by now", 8),
    ("crash behind", "publish.started", 50),
    ("crash behind", "publish.settled", 50),
    ("end", "blocked: publish", 30),
    ("clock", "set back", 200),
    ("clock", "set forward", 200),
];

impl Tally {
    pub(crate) fn add(&mut self, group: &'static str, what: &'static str) {
        *self.0.entry((group, what)).or_default() += 1;
    }

    pub(crate) fn count(&self, group: &'static str, what: &'static str) -> u64 {
        self.0.get(&(group, what)).copied().unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    /// Fewer seeds, asked for by hand, prove less.
    pub(crate) fn assert_covers(&self, covered: &[(&'static str, &'static str, u64)], seeds: u64) {
        for (group, what, least) in covered {
            let (count, least) = (self.count(group, what), least * seeds.min(10_000) / 10_000);
            assert!(count >= least, "too few cases of {group} {what}: {count}, not {least}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|((group, what), count)| writeln!(f, "{count:>8}  {group} {what}"))
    }
}

pub(super) fn pattern_name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::SameWork => "the work stays the same",
        Pattern::RefusedClaim => "claims are refused",
        Pattern::NewFailure => "a failure is new",
        Pattern::OldFailure => "a failure is old",
    }
}

pub(super) fn end_name(end: End) -> &'static str {
    match end {
        End::Completed { claim: ClaimSource::Promise } => "completed: promise",
        End::Completed { claim: ClaimSource::StateFile } => "completed: state file",
        End::Completed { claim: ClaimSource::ExitCode } => "completed: exit code",
        End::Completed { claim: ClaimSource::Gates } => "completed: gates",
        End::Completed { claim: ClaimSource::Result } => "completed: result",
        End::Completed { claim: ClaimSource::Count } => "completed: count",
        End::Cancelled => "cancelled",
        End::IterationCap => "iteration cap",
        End::Stuck => "stuck",
        End::Blocked { why: Blocked::Stuck } => "blocked: stuck",
        End::Blocked { why: Blocked::GaveUp } => "blocked: gave up",
        End::Blocked { why: Blocked::StateFile } => "blocked: state file",
        End::Blocked { why: Blocked::Approval } => "blocked: approval",
        End::TimedOut => "timed out",
        End::Paused => "paused",
        End::Blocked { why: Blocked::Refunds } => "blocked: refunds",
        End::Blocked { why: Blocked::Churn } => "blocked: churn",
        End::Blocked { why: Blocked::AgentMissing } => "blocked: agent missing",
        End::Blocked { why: Blocked::GateMissing } => "blocked: gate missing",
        End::Blocked { why: Blocked::OutputLost } => "blocked: output lost",
        End::Blocked { why: Blocked::Publish } => "blocked: publish",
        End::Blocked { why: Blocked::Limit | Blocked::Outage } => "blocked: provider",
        End::Blocked {
            why:
                Blocked::Login
                | Blocked::Forbidden
                | Blocked::Credit
                | Blocked::Model
                | Blocked::Setup
                | Blocked::Session
                | Blocked::CostUnknown
                | Blocked::Repository
                | Blocked::Idle,
        } => "blocked: needs a person",
        End::BudgetExceeded { .. } => "budget exceeded",
    }
}
