//! What is published after an iteration that is charged, proven as far as possible, and committed: which effect comes
//! next, what is waited for, and when a person is needed. This is the one place that decides it; the effects are in
//! [`crate::git::Effect`].
//!
//! After an iteration without a claim, an effect that fails now is tried again after the next. After a claim, the loop
//! is completed only when all effects are done: it waits for what passes by itself, and parks if a person is needed.

use std::time::Duration;

use jiff::Timestamp;

use super::provider_faults::{OUTAGE_BOUND, doubled, plus};
use super::state::{LoopState, Objection, Phase, Publishing};
use crate::event::{ClaimSource, Wait, WaitKind};
use crate::git::{
    Checks, ChecksVerdict, CommitResult, Conflict, Effect, Oid, PublishReport, PublishResult, Refusal,
    SkipReason, Workflow,
};
use crate::spec::Millis;

/// The longest time between two looks at checks.
const LONGEST_LOOK: Duration = Duration::from_secs(60);
/// How long checks that should be there may take to begin: a forge's queue is made in seconds, not in minutes.
const CHECKS_BEGIN_WITHIN: Duration = Duration::from_secs(600);
/// How often the remote may have gained something in a row between a look and a push.
const MAX_REBASES: u32 = 5;
/// How often in a row the agent is given a conflict with the remote, before a person is.
pub const MAX_CONFLICTS: u32 = 2;

impl LoopState {
    pub fn publishing(&self) -> Option<&Publishing> {
        let Phase::Publishing(publishing) = &self.phase else { return None };
        Some(publishing)
    }

    pub fn next_effect(&self) -> Option<Effect> {
        self.publishing().and_then(|publishing| self.effect(publishing.claim.is_some()))
    }

    /// The next effect outside; none if all is done that can be done after this iteration.
    fn effect(&self, claims: bool) -> Option<Effect> {
        let (workflow, done) = (self.spec.git.workflow, &self.git.published);
        let head = Some(self.git.head.as_ref()?);
        if !workflow.publishes() || done.returned.is_some() {
            return None;
        }
        if done.merged.is_some() {
            return Some(Effect::Return);
        }
        // It has no commit of its own yet.
        if self.git.began.as_ref() == head {
            return None;
        }
        let is_green = |checks: &Checks| {
            matches!(checks.verdict, ChecksVerdict::Green | ChecksVerdict::None)
                && done.checked.as_ref() == head
        };
        match workflow {
            _ if done.pushed.as_ref() != head => Some(Effect::Push),
            Workflow::Pr | Workflow::PrMerge if done.request.is_none() => Some(Effect::Open),
            Workflow::Pr | Workflow::PrMerge if claims => match &done.checks {
                _ if done.ready.as_ref() != head => Some(Effect::Ready),
                Some(checks) if is_green(checks) => (workflow == Workflow::PrMerge).then_some(Effect::Merge),
                Some(_) | None => Some(Effect::Look),
            },
            Workflow::Pr | Workflow::PrMerge | Workflow::Push | Workflow::None | Workflow::Commit => None,
        }
    }

    /// The phase after an iteration that is charged, proven as far as possible, and committed.
    pub(super) fn settled(&mut self, claim: Option<ClaimSource>) -> Phase {
        // The claimed work is not what would be published.
        let skipped = self.uncommitted().filter(|_| claim.is_some()).map(ToString::to_string);
        self.git.published.refused = skipped.map(|skipped| (Refusal::Uncommitted, skipped));
        if !self.needs_person() && self.effect(claim.is_some()).is_none() {
            return Phase::Idle { claim, uncommitted: false };
        }
        Phase::Publishing(Box::new(Publishing { claim, ..Publishing::default() }))
    }

    /// Why the work to publish is not all committed.
    fn uncommitted(&self) -> Option<&SkipReason> {
        let last = self.git.last.as_ref().filter(|_| self.spec.git.workflow.publishes())?;
        match &last.result {
            CommitResult::Skipped(why) if *why != SkipReason::Nothing => Some(why),
            CommitResult::Skipped(_) | CommitResult::Made { .. } => None,
        }
    }

    pub(super) fn start_publishing(&mut self, effect: Effect) -> Result<(), &'static str> {
        const WHAT: &str = "publish.started";
        let is_next = self.is_next(effect) && effect.leaves_something();
        if !is_next || self.sweeping || !self.is_driven() {
            return Err(WHAT);
        }
        let Phase::Publishing(publishing) = &mut self.phase else { return Err(WHAT) };
        if publishing.running.is_some() {
            return Err(WHAT);
        }
        self.wait = None;
        publishing.running = Some(effect);
        publishing.next = None;
        Ok(())
    }

    /// Whether this effect can be done now, or was begun.
    fn is_next(&self, effect: Effect) -> bool {
        !self.needs_person() && self.next_effect() == Some(effect)
    }

    pub(super) fn settle_publishing(
        &mut self,
        report: &PublishReport,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        const WHAT: &str = "publish.settled";
        let begun = Some(report.effect).filter(|effect| effect.leaves_something());
        let fits = self.is_next(report.effect)
            && self.publishing().is_some_and(|publishing| publishing.running == begun);
        if !fits || !report.fits() || !self.is_driven() {
            return Err(WHAT);
        }
        self.wait = None;
        let Phase::Publishing(publishing) = &mut self.phase else { return Err(WHAT) };
        publishing.running = None;
        publishing.next = None;
        let claim = publishing.claim;
        let done = &mut self.git.published;
        (done.refused, done.later) = (None, None);
        match &report.result {
            PublishResult::Pushed { remote, branch } => {
                done.pushed.clone_from(&self.git.head);
                done.place = Some((remote.clone(), branch.clone()));
                (done.rebases, done.conflicts) = (0, 0);
                done.commits = self.git.commits.len();
            }
            PublishResult::Rebased { head, tree, commits } => {
                self.lie_on_theirs(head, tree, commits, (claim, at));
                return Ok(());
            }
            PublishResult::Conflict { theirs, paths } => {
                self.meet_conflict(theirs, paths, at);
                return Ok(());
            }
            PublishResult::Requested(request) => {
                done.request = Some(request.clone());
                if report.effect == Effect::Ready {
                    done.ready.clone_from(&self.git.head);
                }
            }
            PublishResult::Checked(checks) => {
                self.hear_checks(checks, at);
                return Ok(());
            }
            PublishResult::Merged { commit } => done.merged = Some(commit.clone()),
            PublishResult::Returned { kept } => done.returned = Some(kept.clone()),
            PublishResult::Later { said, until } => {
                self.put_off(said.clone(), *until, at);
                return Ok(());
            }
            PublishResult::Refused { why, said } => {
                self.need_person(*why, said.clone());
                return Ok(());
            }
        }
        self.go_on();
        Ok(())
    }

    /// The loop's commits are on top of the remote's, and no gate has seen both together.
    fn lie_on_theirs(
        &mut self,
        head: &Oid,
        tree: &Oid,
        commits: &[Oid],
        (claim, at): (Option<ClaimSource>, Timestamp),
    ) {
        let done = &mut self.git.published;
        done.rebases += 1;
        done.rebased = Some((self.iteration, tree.clone()));
        let is_restless = done.rebases > MAX_REBASES;
        self.git.commits.truncate(done.commits);
        self.git.commits.extend_from_slice(commits);
        self.git.head = Some(head.clone());
        let is_to_be_proven = self.has_to_be_proven_again();
        if is_restless {
            self.git.published.rebases = 0;
            let said = "the remote gains commits faster than it can be pushed to".to_owned();
            match is_to_be_proven {
                // Another wait would not end with a proof, nor would the gates be any faster.
                true => self.need_person(Refusal::Patience, said),
                false => self.put_off(said, None, at),
            }
        } else if is_to_be_proven {
            self.prove_rebased(claim);
        }
    }

    /// The remote has diverged: the next prompts say so, a few times.
    fn meet_conflict(&mut self, theirs: &Oid, paths: &[Conflict], at: Timestamp) {
        self.git.published.conflicts += 1;
        if self.git.published.conflicts > MAX_CONFLICTS {
            let named: Vec<_> = paths.iter().map(ToString::to_string).collect();
            let said = format!("the remote's {} and the loop's work: {}", theirs.short(), named.join("; "));
            self.need_person(Refusal::Conflict, said);
        } else {
            self.object(Objection::Conflict { theirs: theirs.clone(), paths: paths.to_vec() }, at);
        }
    }

    fn hear_checks(&mut self, checks: &Checks, at: Timestamp) {
        let done = &mut self.git.published;
        done.is_news = done.checks.as_ref() != Some(checks);
        done.checks = Some(checks.clone());
        done.checked.clone_from(&self.git.head);
        match checks.verdict {
            ChecksVerdict::Red => {
                self.record_failed_checks(checks);
                self.object(Objection::Checks(checks.clone()), at);
            }
            ChecksVerdict::Pending | ChecksVerdict::NotStarted => self.look_again(checks.verdict, at),
            ChecksVerdict::None
                if self.spec.git.workflow == Workflow::PrMerge
                    && (!self.spec.has_hard_gates() || self.lacks_tests()) =>
            {
                let said = "no gate here and no check there has proven it";
                self.need_person(Refusal::Unproven, said.to_owned());
            }
            ChecksVerdict::Green | ChecksVerdict::None => self.go_on(),
        }
    }

    /// The effect is done: the next, or none.
    fn go_on(&mut self) {
        if let Phase::Publishing(publishing) = &mut self.phase {
            publishing.waited = None;
        }
        self.leave_if_published();
    }

    /// Leaves the phase if no effect is left after this iteration.
    pub(super) fn leave_if_published(&mut self) {
        if let Phase::Publishing(publishing) = &self.phase
            && !self.needs_person()
            && self.next_effect().is_none()
        {
            self.phase = Phase::Idle { claim: publishing.claim, uncommitted: false };
        }
    }

    /// The claim is rejected: the next prompt says why.
    fn object(&mut self, objection: Objection, at: Timestamp) {
        self.git.published.objection = Some((self.iteration, objection));
        self.phase = Phase::Idle { claim: None, uncommitted: false };
        self.rested_since = Some(at);
    }

    /// Whether gates decide about what is to be published. They are not asked about the work of an agent that gave up,
    /// nor about what is merged already.
    fn has_to_be_proven_again(&self) -> bool {
        self.spec.proves() && self.given_up.is_none() && self.git.published.merged.is_none()
    }

    /// Whether the work of the last iteration was on top of what others pushed when its gates checked it last.
    pub fn lay_on_theirs(&self) -> bool {
        self.git.published.rebased.as_ref().is_some_and(|(iteration, _)| iteration + 1 == self.iteration)
    }

    /// Whether the loop's commits are on top of work that others did since its gates ran.
    fn is_unseen(&self) -> bool {
        let seen = self.proof.as_ref().and_then(|proof| proof.candidate.tree.as_ref());
        self.git.published.rebased.as_ref().is_some_and(|(_, tree)| Some(tree) != seen)
    }

    /// A person may have worked while it was stopped, or the remote gained something last that no gate has seen: then
    /// what is to be published is proven anew.
    pub(super) fn publish_from_here(&mut self, moved: bool) {
        let Some(claim) = self.publishing().map(|publishing| publishing.claim) else { return };
        match (moved || self.is_unseen()) && self.has_to_be_proven_again() {
            true => self.prove_rebased(claim),
            false => self.go_on(),
        }
    }

    /// A claim waits for it; the next iteration does not.
    fn put_off(&mut self, said: String, until: Option<Timestamp>, at: Timestamp) {
        self.git.published.later = Some(said.clone());
        let Phase::Publishing(publishing) = &mut self.phase else { return };
        if publishing.claim.is_none() {
            self.phase = Phase::Idle { claim: None, uncommitted: false };
            return;
        }
        let bound = self.limits.retry_for.unwrap_or(OUTAGE_BOUND);
        let times = publishing.waited.map_or(0, |(_, times)| times);
        let until = plus(at, doubled(times)).max(until.unwrap_or(at));
        if !publishing.wait(WaitKind::Remote, until, at, bound) {
            self.need_person(Refusal::Patience, said);
        }
    }

    /// The checks are not over.
    fn look_again(&mut self, verdict: ChecksVerdict, at: Timestamp) {
        let Phase::Publishing(publishing) = &mut self.phase else { return };
        let (bound, why, said) = match verdict {
            ChecksVerdict::NotStarted => {
                let said = "checks are configured, or it cannot be told whether they are, and none has begun";
                (CHECKS_BEGIN_WITHIN.into(), Refusal::NoChecks, said)
            }
            ChecksVerdict::Green | ChecksVerdict::Red | ChecksVerdict::Pending | ChecksVerdict::None => {
                let bound = self.limits.retry_for.unwrap_or(OUTAGE_BOUND);
                (bound, Refusal::Patience, "its checks are not over")
            }
        };
        let times = publishing.waited.map_or(0, |(_, times)| times);
        let until = plus(at, doubled(times).min(LONGEST_LOOK));
        if !publishing.wait(WaitKind::Checks, until, at, bound) {
            self.need_person(why, said.to_owned());
        }
    }

    /// Whether the next effect waits for a person: any other refused effect is tried again after the next iteration.
    pub(super) fn needs_person(&self) -> bool {
        self.git.published.refused.is_some()
    }

    /// A claim parks; without one the next iteration tries again.
    fn need_person(&mut self, why: Refusal, said: String) {
        self.git.published.refused = Some((why, said));
        let claims = self.publishing().is_some_and(|publishing| publishing.claim.is_some());
        // An agent that knew of the conflict and left it will not do better.
        if !claims && why != Refusal::Conflict {
            self.phase = Phase::Idle { claim: None, uncommitted: false };
        }
    }

    /// A person resumes it: all is tried again.
    pub(super) fn publish_again(&mut self) {
        let done = &mut self.git.published;
        (done.conflicts, done.rebases, done.later) = (0, 0, None);
        let refused = done.refused.take();
        if let Phase::Publishing(publishing) = &mut self.phase {
            let claim = publishing.claim;
            self.phase = match refused {
                Some((Refusal::Uncommitted, _)) => Phase::Idle { claim, uncommitted: true },
                Some(_) | None => Phase::Publishing(Box::new(Publishing { claim, ..Publishing::default() })),
            };
        }
    }
}

impl Publishing {
    /// One more wait; none if it would be too long in a row.
    fn wait(&mut self, kind: WaitKind, until: Timestamp, at: Timestamp, bound: Millis) -> bool {
        let (since, times) = self.waited.unwrap_or((at, 0));
        self.waited = Some((since, times + 1));
        let fits = until <= plus(since, bound.into());
        self.next = fits.then_some(Wait { kind, until });
        fits
    }
}

impl PublishReport {
    /// Whether this result is possible for this effect.
    fn fits(&self) -> bool {
        match &self.result {
            PublishResult::Pushed { .. } | PublishResult::Rebased { .. } => self.effect == Effect::Push,
            // A merge finds out that the base has moved.
            PublishResult::Conflict { .. } => matches!(self.effect, Effect::Push | Effect::Merge),
            PublishResult::Requested(_) => matches!(self.effect, Effect::Open | Effect::Ready),
            PublishResult::Checked(_) => self.effect == Effect::Look,
            // A look can find that another user merged it.
            PublishResult::Merged { .. } => matches!(self.effect, Effect::Merge | Effect::Look),
            PublishResult::Returned { .. } => self.effect == Effect::Return,
            PublishResult::Later { .. } | PublishResult::Refused { .. } => true,
        }
    }
}
