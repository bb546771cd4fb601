//! What follows if the loop makes no progress: its iterations as [`IterationResult`]s, the answer of `--on-stuck`, and
//! what is kept of unproven work. The rules of no progress are in [`crate::stuck`].

use super::provider_faults;
use super::state::{Attempt, LoopState, Outcome, Phase, Saved};
use crate::event::{BlockReason, ClaimSource, End};
use crate::fingerprint::{self, Fingerprint};
use crate::git::Checks;
use crate::spec::{AgentSpec, Millis, OnStuck, Until};
use crate::stuck::{IterationResult, Stuck, Verdict};
use crate::work::WorkDigest;

impl LoopState {
    /// Whether the work is another than when the iteration began; none where that is not known.
    pub fn has_changed_work(&self, work: Option<&WorkDigest>) -> Option<bool> {
        Some(self.progress.began.as_ref()? != work?)
    }

    /// Whether this iteration, the last one, left the work as it was; false if that is not known.
    pub fn has_changed_nothing(&self, iteration: u32) -> bool {
        let last = self.progress.before.as_ref().filter(|_| self.progress.last_recorded == iteration);
        last.and_then(|last| last.1.work.as_ref()).is_some_and(|(began, ended)| began == ended)
    }

    /// What the iterations so far amount to. `--exact N` is never stuck: each iteration was asked for.
    pub fn verdict(&self) -> Verdict {
        match self.spec.until {
            Until::Count => Verdict::Moving,
            Until::Complete | Until::Forever => self.progress.stuck.verdict(&self.spec.stuck),
        }
    }

    /// The agent that a stuck loop changes to, if `--on-stuck` names one and it was not used yet.
    pub fn other_agent(&self) -> Option<&AgentSpec> {
        match &self.spec.stuck.answer {
            OnStuck::Change(agent) if !self.progress.changed => Some(agent),
            OnStuck::Change(_) | OnStuck::Stop | OnStuck::Ask => None,
        }
    }

    /// Whether the end asks that the work be kept on a branch first.
    pub(super) fn is_kept_at(&self, end: End) -> bool {
        let keeps = match end {
            End::Stuck | End::Blocked { why: BlockReason::GaveUp } => true,
            End::IterationCap | End::TimedOut => self.spec.keep_failed,
            End::Completed { .. }
            | End::Cancelled
            | End::BudgetExceeded { .. }
            | End::Blocked { .. }
            | End::Paused => false,
        };
        keeps && self.progress.saved.is_none() && self.charged > self.spec.carried()
    }

    /// Records the iteration for [`Stuck`] once it is charged, proven as far as possible, and committed.
    pub(super) fn record_iteration(&mut self) {
        let is_over = matches!(self.phase, Phase::Idle { uncommitted: false, .. } | Phase::Publishing(_));
        if !is_over || self.progress.last_recorded >= self.iteration {
            return;
        }
        let Some(last) = self.attempts.iter().rev().find(|attempt| attempt.charged) else { return };
        self.progress.last_recorded = self.iteration;
        // One that had nothing to do, and says so, is not stuck.
        let is_unneeded = self.spec.until == Until::Forever && self.phase.claim().is_some();
        let ended = last.finished.as_ref().and_then(|finished| finished.work.clone());
        let failure = self.failure(last);
        let result = IterationResult {
            is_expected: failure.as_ref().is_some_and(|(_, is_expected)| *is_expected),
            failure: failure.map(|(failure, _)| failure),
            work: self.progress.began.clone().zip(ended).filter(|_| !is_unneeded),
            claimed: last.claim.is_some_and(ClaimSource::is_said),
        };
        let before = self.progress.stuck.clone();
        self.progress.stuck.record(&result);
        self.progress.before = Some(Box::new((before, result)));
        self.weigh_claim();
    }

    /// The claimed work was pushed, and these checks failed there: the iteration failed as if a gate had.
    pub(super) fn record_failed_checks(&mut self, checks: &Checks) {
        let Some((before, result)) = self.progress.before.take().map(|both| *both) else { return };
        let mut names: Vec<_> = checks.failed.iter().map(|check| check.name.as_str()).collect();
        names.sort_unstable();
        let failure = fingerprint::of("checks", &names.join("\n"));
        self.progress.stuck = before;
        self.progress.stuck.record(&IterationResult { failure: Some(failure), ..result });
    }

    /// The result of a proven claim: the end, unless the loop continues all the same.
    pub(super) fn weigh_claim(&mut self) {
        let ends = self.ends_by_claim();
        let claim = match &mut self.phase {
            Phase::Idle { claim, .. } => claim,
            Phase::Publishing(publishing) => &mut publishing.claim,
            Phase::Begun { .. } | Phase::InFlight(_) | Phase::Proving(_) | Phase::Critiquing(_) => return,
        };
        match self.spec.until {
            Until::Complete | Until::Count if ends => {}
            Until::Complete | Until::Count => *claim = None,
            Until::Forever => self.unneeded = claim.take().map_or(0, |_| self.unneeded.saturating_add(1)),
        }
        self.leave_if_published();
    }

    /// Whether a claim of the last iteration that is proven ends the loop.
    pub(super) fn ends_by_claim(&self) -> bool {
        match self.spec.until {
            Until::Complete => true,
            Until::Count => self.limits.max_iterations.is_some_and(|cap| self.charged >= cap),
            Until::Forever => false,
        }
    }

    /// Whether the requested number of iterations is done (`--exact N`), and the last one has no open claim.
    pub(super) fn is_counted(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle { claim: None, uncommitted: false });
        self.spec.until == Until::Count && is_idle && self.given_up.is_none() && self.ends_by_claim()
    }

    /// What completes it from here: a claim that stands, or the count; not the count if a person has to approve the
    /// work and was not asked or said no.
    pub(super) fn completes_by(&self) -> Option<ClaimSource> {
        if let Phase::Idle { claim: Some(claim), uncommitted: false } = self.phase {
            return Some(claim);
        }
        (self.is_counted() && !self.spec.approval).then_some(ClaimSource::Count)
    }

    /// Whether what the last of them left is still to be proven as what the loop ends with: the required gates, or a
    /// person, may have been asked about no more than a step on the way. What they refused already is not asked again.
    pub(super) fn lacks_last_proof(&self) -> bool {
        let decides = self.spec.has_hard_gates() || self.spec.approval;
        let is_objected =
            self.git.published.objection.as_ref().is_some_and(|(iteration, _)| *iteration == self.iteration);
        let proof = self.last_charged().and_then(|last| last.proof.as_ref());
        let is_refused = proof.is_some_and(|proof| {
            let failed = proof.failing(&self.spec).next().is_some();
            failed || proof.restless || !proof.candidate.touched.is_empty() || proof.is_refused()
        });
        self.is_counted() && decides && !is_objected && !is_refused
    }

    /// How long a loop waits that found nothing to do: longer each time in a row.
    pub(super) fn back_off(&self) -> Option<Millis> {
        let times = self.unneeded.checked_sub(1)?;
        Some(Millis::from(provider_faults::doubled(times)))
    }

    /// The failure of an iteration: the agent itself, the first required gate that failed, or why its claim was
    /// refused; and whether that gate failed before the first iteration too. An attempt that was stopped at a limit of
    /// the loop may have been about to do something else than the one before.
    fn failure(&self, last: &Attempt) -> Option<(Fingerprint, bool)> {
        let by_itself = last.outcome == Outcome::Failed;
        let own =
            last.finished.as_ref().filter(|_| by_itself).and_then(|finished| finished.fingerprint.clone());
        let proof = last.proof.as_ref();
        let of_gate = || {
            proof?.failing(&self.spec).find_map(|result| {
                Some((result.fingerprint.clone()?, self.failed_before(result.gate) == Some(true)))
            })
        };
        let of_touched = || {
            let touched = &proof?.candidate.touched;
            let said: Vec<_> = touched.iter().map(ToString::to_string).collect();
            (!said.is_empty()).then(|| fingerprint::of("protected", &said.join("\n")))
        };
        let of_unstable = || {
            let proof = proof.filter(|proof| proof.restless)?;
            let paths: Vec<_> = proof.changed.iter().map(ToString::to_string).collect();
            Some(fingerprint::of("unstable", &paths.join("\n")))
        };
        let of_person = || proof?.is_refused().then(|| fingerprint::of("approval", ""));
        let is_new = |failure| (failure, false);
        let refused = || of_touched().or_else(of_unstable).or_else(of_person).map(is_new);
        own.map(is_new).or_else(of_gate).or_else(refused)
    }

    /// Resets the counts after a change of agent, or a resume.
    pub(super) fn reset_stuck(&mut self) {
        self.progress.stuck = Stuck::default();
    }

    pub(super) fn change_agent(&mut self, agent: &AgentSpec) -> Result<(), &'static str> {
        // The rules of the current version are not applied: release 0.1.0 had others, and its journals are read.
        let fits = self.is_driven() && matches!(self.phase, Phase::Idle { claim: None, uncommitted: false });
        if !fits || self.other_agent() != Some(agent) {
            return Err("agent.changed");
        }
        self.spec.agent = agent.clone();
        self.progress.changed = true;
        self.reset_stuck();
        Ok(())
    }

    pub(super) fn keep(&mut self, what: &'static str, saved: Saved) -> Result<(), &'static str> {
        let fits = self.is_driven() && !self.is_busy() && !self.sweeping && self.progress.saved.is_none();
        if !fits {
            return Err(what);
        }
        self.progress.saved = Some(saved);
        Ok(())
    }
}
