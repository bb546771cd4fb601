//! How candidates and gates change the state: a gate's result, when the gates are asked once more, and what follows
//! from all of it.

use std::mem;

use jiff::Timestamp;

use super::super::proof::MAX_ROUNDS;
use super::super::provider_faults::{Reaction, Trouble, answer};
use super::super::state::{
    Attempt, Candidate, Child, GateFailure, GateResult, LoopState, Outcome, Phase, Proof, Proving,
    RunningGate,
};
use super::attempt::says_blocked;
use crate::agent::{Fault, Usage};
use crate::event::{BlockReason, ClaimSource, Exit, GateFinished, StopReason, WaitKind};
use crate::fingerprint;
use crate::gate::{GateName, GateSpec, Verdict};
use crate::git::{CommitReport, CommitResult, Oid, RepoPath};
use crate::ids::AttemptId;
use crate::spec::{Millis, Until};

/// What a gate's end says about the candidate.
enum Word {
    /// It passed, or it did not.
    Said(Option<GateFailure>),
    /// Nothing, as it was stopped for another reason.
    None,
    /// Nothing, as its end was not seen.
    Lost,
    /// Nothing, as an agent's provider failed it, or it needs a person: no more than an attempt in that state is it the
    /// work's fault.
    Unable,
    /// Unknown, as not all that it printed was kept.
    Unkept,
}

impl Word {
    /// In format 1 a reviewer that was stopped at its time limit failed, regardless of its provider's state.
    fn of(finished: &GateFinished, stopping: Option<StopReason>, format: u32) -> Self {
        match (stopping, finished.exit) {
            _ if finished.output_error.is_some() => Self::Unkept,
            (_, Exit::Lost) => Self::Lost,
            (Some(StopReason::TimeLimit), _) if format > 1 && trouble(finished).is_some() => Self::Unable,
            (Some(StopReason::TimeLimit), _) => Self::Said(Some(GateFailure::TimeLimit)),
            (
                Some(
                    StopReason::Cancel
                    | StopReason::Interrupt
                    | StopReason::LoopDuration
                    | StopReason::OutputLost
                    | StopReason::Silence
                    | StopReason::Budget,
                ),
                _,
            ) => Self::None,
            (Some(StopReason::ProviderWait), _) if lacks_verdict(finished) => Self::Unable,
            (None, _) if trouble(finished).is_some() => Self::Unable,
            (None | Some(StopReason::ProviderWait), _) if let Some(reviewed) = &finished.review => {
                Self::Said(Self::of_review(&reviewed.verdict))
            }
            (None | Some(StopReason::ProviderWait), Exit::Code(0)) => {
                Self::Said(finished.no_test.clone().map(GateFailure::NoTest))
            }
            (
                None | Some(StopReason::ProviderWait),
                exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::Unseen),
            ) => Self::Said(Some(GateFailure::Exit(exit))),
        }
    }
}

/// Whether an agent that reviews came to no verdict.
fn lacks_verdict(finished: &GateFinished) -> bool {
    finished.review.as_ref().is_some_and(|it| matches!(it.verdict, Verdict::Missing { .. }))
}

/// What kept an agent that reviews from its verdict, if that was not the work.
fn trouble(finished: &GateFinished) -> Option<(Reaction, &Fault)> {
    let reviewed = finished.review.as_ref().filter(|_| lacks_verdict(finished))?;
    let fault = reviewed.report.as_ref()?.fault.as_ref()?;
    let answer = answer(fault.kind);
    matches!(answer, Reaction::Wait(_) | Reaction::Person(_)).then_some((answer, fault))
}

impl Word {
    fn of_review(verdict: &Verdict) -> Option<GateFailure> {
        match verdict {
            Verdict::Pass => None,
            Verdict::Fail { findings } => Some(GateFailure::Review(findings.clone())),
            Verdict::Missing { why } => Some(GateFailure::NoVerdict(why.clone())),
        }
    }
}

impl LoopState {
    /// The phase after a charged attempt. The work of an agent that gave up is not proven.
    pub(super) fn behind(&mut self, of: AttemptId, claim: Option<ClaimSource>) -> Phase {
        self.rounds = 1;
        let proving = Proving::new(Some(of), claim, &self.spec.gates);
        let has_what_to_prove = !proving.asked.is_empty()
            || !self.spec.protect.is_empty()
            || self.spec.hears_results()
            || self.spec.approval && claim.is_some();
        if has_what_to_prove && self.given_up.is_none() {
            return Phase::Proving(Box::new(proving));
        }
        // What no gate has seen is not committed if a gate, or a protection, decides.
        let decides = self.spec.has_hard_gates() || !self.spec.protect.is_empty();
        let uncommitted = self.spec.git.workflow.commits() && (!decides || self.spec.git.commits_each());
        Phase::Idle { claim, uncommitted }
    }

    pub(super) fn lacks_baseline(&self) -> bool {
        !self.spec.gates.is_empty() && self.baseline.is_none()
    }

    pub(super) fn take_candidate(
        &mut self,
        candidate: Candidate,
        changed: &[RepoPath],
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let proving = self.proving_to("candidate.taken")?;
        if mem::take(&mut proving.to_check) {
            proving.changed = changed.to_vec();
            match &mut proving.candidate {
                Some(proven) if proven.tree == candidate.tree => {
                    // What was touched when the gates ran, they ran with.
                    if proven.touched.is_empty() {
                        proven.touched.clone_from(&candidate.touched);
                    }
                    self.conclude(false, at);
                }
                Some(_) | None => self.prove_again(candidate, at),
            }
            return Ok(());
        }
        self.hear_result(&candidate);
        let Phase::Proving(proving) = &mut self.phase else { return Err("candidate.taken") };
        let completes = proving.of.is_some() && self.spec.completes_by_gate();
        let claims = proving.claim.is_some() || completes;
        proving.candidate = Some(candidate.clone());
        // A claim on a candidate that failed is checked again, because files that git ignores may have changed. So is a
        // candidate that would complete the loop.
        let fits = |last: &&Proof| {
            !last.restless && last.candidate.is_same(&candidate) && (!claims || last.holds(&self.spec))
        };
        if completes && self.proof.as_ref().filter(fits).is_some() {
            proving.claim_by_gates(&self.spec.gates);
        }
        let asked = proving.asked.clone();
        let results = |last: &Proof| {
            // A reviewer was not asked if something else refused it.
            let is_spared = |gate: &usize| self.spec.gates.get(*gate).is_some_and(GateSpec::is_review);
            let refused = last.failing(&self.spec).next().is_some();
            let of = |gate: &usize| match last.of_gate(*gate) {
                None if refused && is_spared(gate) => None,
                result => Some(result.cloned()),
            };
            asked.iter().filter_map(of).collect()
        };
        let kept: Option<Vec<_>> = self.proof.as_ref().filter(fits).and_then(results);
        if let (Some(kept), Phase::Proving(proving)) = (kept, &mut self.phase) {
            proving.results = kept;
            self.conclude(false, at);
        } else if asked.is_empty() {
            self.conclude(false, at);
        }
        Ok(())
    }

    /// Treats work as a claim if the agent ended well without a word and changed something, when such claims count.
    fn hear_result(&mut self, candidate: &Candidate) {
        let is_same = self.proof.as_ref().is_some_and(|last| last.candidate.is_same(candidate));
        let Phase::Proving(proving) = &mut self.phase else { return };
        if proving.claim.is_some() {
            return;
        }
        let last = self.attempts.iter_mut().rev().find(|attempt| Some(attempt.id) == proving.of);
        // Once the gates have spoken, a change is not the agent's: it was rebased onto the work of others.
        let says_nothing = |last: &&mut Attempt| {
            last.outcome == Outcome::Ended && last.proof.is_none() && !says_blocked(last.finished.as_deref())
        };
        let silent = last.filter(says_nothing);
        if let (Some(silent), true, false) = (silent, self.spec.hears_results(), is_same) {
            (silent.outcome, silent.claim) = (Outcome::Claimed, Some(ClaimSource::Result));
            **proving = Proving::new(proving.of, silent.claim, &self.spec.gates);
        }
    }

    pub(super) fn refuse_candidate(&mut self, error: &str, bad_work: bool) -> Result<(), &'static str> {
        self.proving_to("candidate.refused")?;
        (self.git.refused, self.git.bad_work) = (Some(error.to_owned()), bad_work);
        Ok(())
    }

    /// The proof whose candidate is to be taken; the one before the first iteration begins with that.
    fn proving_to(&mut self, what: &'static str) -> Result<&mut Proving, &'static str> {
        let fits = self.is_driven()
            && !self.sweeping
            && self.git.refused.is_none()
            && (self.git.base.is_some() || !self.spec.git.needs_base());
        let begins = matches!(self.phase, Phase::Idle { claim: None, uncommitted: false })
            && self.iteration == self.spec.carried()
            && self.lacks_baseline();
        if fits && self.lacks_last_proof() {
            self.prove_count();
        }
        if fits && begins {
            self.rounds = 1;
            let mut before = Proving::new(None, None, &self.spec.gates);
            if self.spec.task.is_some() {
                // The tree that a task begins at has landed, and was verified by that.
                before.asked.clear();
            }
            self.phase = Phase::Proving(Box::new(before));
        }
        let Phase::Proving(proving) = &mut self.phase else { return Err(what) };
        let fits = fits && (proving.candidate.is_none() || proving.to_check);
        if fits { Ok(proving) } else { Err(what) }
    }

    /// The work of the last iteration of a loop that ends by its count is proven as if it were claimed.
    fn prove_count(&mut self) {
        let Some(last) = self.last_charged() else { return };
        let mut proving = Proving::new(Some(last.id), Some(ClaimSource::Count), &self.spec.gates);
        for result in last.proof.iter().flat_map(|proof| &proof.results).filter(|result| result.of == last.id)
        {
            if let Some(runs) = proving.runs.get_mut(result.gate) {
                *runs = result.run;
            }
        }
        self.rounds = 1;
        self.phase = Phase::Proving(Box::new(proving));
    }

    /// The candidate is not what the gates were asked about any more.
    fn prove_again(&mut self, candidate: Candidate, at: Timestamp) {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return self.conclude(true, at);
        }
        if let Phase::Proving(proving) = &mut self.phase {
            proving.results.clear();
            proving.failed = 0;
            proving.candidate = Some(candidate);
            if proving.asked.is_empty() {
                self.conclude(false, at);
            }
        }
    }

    pub(super) fn start_gate(
        &mut self,
        gate: &GateName,
        run: u32,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let may = self.is_driven() && !self.sweeping;
        let Phase::Proving(proving) = &mut self.phase else { return Err("gate.started") };
        let is_next = proving.next_gate().filter(|(place, next)| {
            *next == run && self.spec.gates.get(*place).is_some_and(|spec| spec.name == *gate)
        });
        let is_free = proving.running.is_none() && proving.candidate.is_some() && !proving.to_check;
        let Some((place, _)) = is_next.filter(|_| may && is_free) else { return Err("gate.started") };
        if let Some(runs) = proving.runs.get_mut(place) {
            *runs = run;
        }
        self.wait = None;
        self.trouble.next = None;
        self.hurried = false;
        let Phase::Proving(proving) = &mut self.phase else { return Err("gate.started") };
        proving.running = Some(RunningGate { gate: place, run, child: Child::new(at) });
        Ok(())
    }

    /// The gate in flight, if the event `what` fits it.
    pub(super) fn gate_to(
        &mut self,
        what: &'static str,
        fits: impl FnOnce(&RunningGate) -> bool,
    ) -> Result<&mut RunningGate, &'static str> {
        let Phase::Proving(proving) = &mut self.phase else { return Err(what) };
        proving.running.as_mut().filter(|running| fits(running)).ok_or(what)
    }

    pub(super) fn fail_gate(&mut self, error: &str, at: Timestamp) -> Result<(), &'static str> {
        let running = self.gate_to("gate.spawn-failed", |_| true)?.clone();
        self.refunds_in_a_row = 0;
        let failure = GateFailure::NotStarted(error.to_owned());
        self.settle_gate(&running, Some(failure), (None, Usage::default()), at);
        Ok(())
    }

    pub(super) fn finish_gate(&mut self, finished: &GateFinished, at: Timestamp) -> Result<(), &'static str> {
        let named = self.running_gate().and_then(|running| self.spec.gates.get(running.gate));
        let fits = named.is_some_and(|gate| gate.name == finished.gate);
        let running = self.gate_to("gate.finished", |_| fits)?.clone();
        self.sweeping = finished.left;
        let usage = self.reviewed(&running, finished);
        match Word::of(finished, running.child.stopping, self.format) {
            Word::Unkept => self.forget_gate(Some(BlockReason::OutputLost)),
            Word::None => self.forget_gate(None),
            Word::Lost => {
                self.refunds_in_a_row += 1;
                self.forget_gate(None);
            }
            Word::Unable => {
                let of = self.proving().map(Proving::folder);
                self.trouble.said = trouble(finished).map(|(_, fault)| fault.message.clone());
                let hindered = match trouble(finished) {
                    Some((Reaction::Person(why), _)) => Some(why),
                    Some((Reaction::Wait(kind), fault)) => {
                        of.and_then(|of| self.meet((kind, fault.until), of, at))
                    }
                    // It was stopped as it slept until its provider works again.
                    Some((Reaction::Budget | Reaction::Charge, _)) | None => {
                        of.and_then(|of| self.meet((WaitKind::Outage, None), of, at))
                    }
                };
                self.forget_gate(hindered);
            }
            Word::Said(failure) => {
                self.refunds_in_a_row = 0;
                self.trouble = Trouble::default();
                self.settle_gate(&running, failure, (Some(finished), usage), at);
            }
        }
        Ok(())
    }

    /// What an agent that reviews used is spent, regardless of its verdict.
    fn reviewed(&mut self, running: &RunningGate, finished: &GateFinished) -> Usage {
        let reviewer = self.spec.gates.get(running.gate).and_then(GateSpec::reviewer).cloned();
        let Some(reviewer) = reviewer else { return Usage::default() };
        let report = finished.review.as_ref().and_then(|reviewed| reviewed.report.as_deref());
        self.spend(&reviewer, report)
    }

    /// The gate in flight came to nothing.
    fn forget_gate(&mut self, hindered: Option<BlockReason>) {
        if let Phase::Proving(proving) = &mut self.phase {
            proving.running = None;
            proving.hindered = hindered;
        }
    }

    pub(super) fn lose_gate(&mut self) {
        if self.running_gate().is_some() {
            self.refunds_in_a_row += 1;
            self.forget_gate(None);
        }
    }

    fn settle_gate(
        &mut self,
        running: &RunningGate,
        failure: Option<GateFailure>,
        (finished, usage): (Option<&GateFinished>, Usage),
        at: Timestamp,
    ) {
        let retries = self.spec.gates.get(running.gate).map_or(0, |gate| gate.retries);
        // A proof after a rebase completes no loop of `--exact N` before its last iteration.
        let is_again = self.progress.last_recorded >= self.iteration;
        let may_complete = self.spec.until != Until::Count || self.ends_by_claim() || !is_again;
        let Phase::Proving(proving) = &mut self.phase else { return };
        let is_held_to_its_tree = self.spec.is_held_to_its_tree(proving.claim.is_some());
        proving.running = None;
        if failure.is_some() && proving.failed < retries {
            proving.failed += 1;
            return;
        }
        let is_same =
            |last: &&Proof| proving.candidate.as_ref().is_some_and(|it| it.is_same(&last.candidate));
        let before = self.proof.as_ref().filter(is_same).and_then(|last| last.of_gate(running.gate));
        let failed_before = mem::take(&mut proving.failed) > 0 || before.is_some_and(|last| !last.passed());
        let gate = self.spec.gates.get(running.gate);
        let fingerprint = failure.as_ref().and_then(|failure| {
            let said = finished.and_then(|finished| finished.fingerprint.clone());
            said.or_else(|| Some(fingerprint::of(gate?.name.as_str(), &failure.to_string())))
        });
        proving.results.push(GateResult {
            gate: running.gate,
            of: proving.folder(),
            run: running.run,
            flaky: failure.is_none() && failed_before,
            failure,
            exit: finished.map(|finished| finished.exit),
            duration: finished.map_or(Millis(0), |finished| finished.duration),
            preview: finished.map(|finished| finished.preview.clone()).unwrap_or_default(),
            summaries: finished.map_or(0, |finished| finished.summaries),
            fingerprint,
            log: finished.and_then(|finished| finished.log.clone()),
            usage,
        });
        if gate.is_some_and(|gate| gate.hard) && proving.results.last().is_some_and(|last| !last.passed()) {
            // The claim is refused anyway: do not pay a reviewer to say so again.
            let answered = proving.results.len();
            let is_left = |(at, place): (usize, usize)| {
                let review = self.spec.gates.get(place).is_some_and(GateSpec::is_review);
                (at < answered || !review).then_some(place)
            };
            proving.asked = proving.asked.iter().copied().enumerate().filter_map(is_left).collect();
        }
        if proving.results.len() < proving.asked.len() {
            return;
        }
        let holds =
            |result: &GateResult| result.passed() || result.spec(&self.spec).is_some_and(|gate| !gate.hard);
        if may_complete
            && proving.of.is_some()
            && self.spec.completes_by_gate()
            && proving.results.iter().all(holds)
        {
            proving.claim_by_gates(&self.spec.gates);
            if proving.results.len() < proving.asked.len() {
                return;
            }
        }
        // A proof names its tree: the gates may have changed what they were asked about.
        let decides = proving.claim.is_some() || self.spec.git.workflow.commits();
        let mut hard = self.spec.gates.iter().enumerate().filter(|(_, gate)| gate.hard);
        let has_passed = |(place, _)| {
            proving.results.iter().any(|result: &GateResult| result.gate == place && result.passed())
        };
        proving.to_check = proving.of.is_some()
            && decides
            && is_held_to_its_tree
            && proving.candidate.as_ref().is_some_and(|candidate| candidate.tree.is_some())
            && hard.all(has_passed);
        if !proving.to_check {
            self.conclude(false, at);
        }
    }

    fn conclude(&mut self, restless: bool, at: Timestamp) {
        let Phase::Proving(proving) = &mut self.phase else { return };
        let Some(candidate) = proving.candidate.take() else { return };
        let (of, claim) = (proving.of, proving.claim);
        let (results, changed) = (mem::take(&mut proving.results), mem::take(&mut proving.changed));
        let mut proof = Proof { candidate, results, restless, changed, approval: None };
        let holds = proof.holds(&self.spec);
        let claim = claim.filter(|_| holds);
        // If the agent did not claim, the gates do; a count is no claim.
        let made = claim.filter(|claim| *claim != ClaimSource::Count);
        if let Some(last) = self.attempts.iter_mut().rev().find(|attempt| Some(attempt.id) == of) {
            last.claim = last.claim.or(made);
        }
        if let Some(id) = of.filter(|_| claim.is_some() && self.needs_approval()) {
            proof.approval = self.approval_of(id, &proof.candidate);
            if proof.approval.is_none() {
                return self.await_approval(id, proof);
            }
        }
        match of {
            None => {
                let proof = self.settle_default_gates(proof);
                self.baseline = Some(proof.clone());
                self.phase = Phase::Idle { claim: None, uncommitted: false };
                self.proof = Some(proof);
            }
            Some(id) => {
                let commits = self.spec.git.workflow.commits();
                let uncommitted = commits
                    && (holds || self.spec.git.commits_each())
                    && (proof.candidate.tree.is_none() || self.committed() != proof.candidate.tree.as_ref());
                self.phase = match uncommitted || !holds {
                    true => Phase::Idle { claim, uncommitted },
                    false => self.settled(claim),
                };
                self.rested_since = Some(at);
                self.keep_proof(id, proof);
                self.record_iteration();
            }
        }
    }

    fn committed(&self) -> Option<&Oid> {
        if let Some((iteration, tree)) = &self.git.published.rebased
            && *iteration == self.iteration
        {
            return Some(tree);
        }
        match self.git.last.as_ref().filter(|report| report.iteration == self.iteration).map(|it| &it.result)
        {
            Some(CommitResult::Made { tree, .. }) => Some(tree),
            Some(CommitResult::Skipped(_)) | None => None,
        }
    }

    /// Whether the tree of a commit that a claim rests on, or that is to be published, is not the proven one, as a hook
    /// changed it: then it is proven again before that.
    pub(super) fn is_another(&mut self, report: &CommitReport) -> bool {
        let Phase::Idle { claim, .. } = self.phase else { return false };
        if claim.is_none() && !self.spec.git.workflow.publishes() {
            return false;
        }
        let CommitResult::Made { tree, .. } = &report.result else { return false };
        let Some(proof) = self.proof.as_mut().filter(|_| self.spec.is_held_to_its_tree(claim.is_some()))
        else {
            return false;
        };
        let Some(last) = self.attempts.iter_mut().rev().find(|attempt| attempt.charged) else { return false };
        if proof.candidate.tree.as_ref().is_none_or(|proven| proven == tree) {
            return false;
        }
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            proof.restless = true;
            last.proof = Some(proof.clone());
            self.phase = Phase::Idle { claim: None, uncommitted: false };
            return true;
        }
        let proving = Proving::new(Some(last.id), claim, &self.spec.gates);
        self.phase = Phase::Proving(Box::new(proving));
        true
    }

    /// The gates are asked once more, because the loop's commits are now on top of others' work.
    pub(in crate::r#loop) fn prove_rebased(&mut self, claim: Option<ClaimSource>) {
        let Some(last) = self.last_charged().map(|last| last.id) else { return };
        self.rounds = 1;
        let proving = Proving::new(Some(last), claim, &self.spec.gates);
        self.phase = Phase::Proving(Box::new(proving));
    }
}
