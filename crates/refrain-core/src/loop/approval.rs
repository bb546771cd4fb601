//! The last gate of a claim, if asked for: a person. While they decide no agent runs, and nothing that the last
//! iteration claims is committed. What they approve is checked once more, because the work may have changed meanwhile.

use jiff::Timestamp;

use super::state::{Approval, Candidate, LoopState, Phase, Proof};
use crate::event::{ApprovedTree, BlockReason, End};
use crate::ids::AttemptId;

impl LoopState {
    /// What a person is asked to approve; none if they are not asked.
    pub fn awaits_approval(&self) -> Option<ApprovedTree> {
        let is_asked =
            self.ended.is_some_and(|ended| ended.end == End::Blocked { why: BlockReason::Approval });
        let proving = self.proving().filter(|it| is_asked && it.hindered == Some(BlockReason::Approval))?;
        Some(ApprovedTree { attempt: proving.of?, tree: proving.candidate.as_ref()?.tree.clone() })
    }

    /// Whether a claim that is proven waits for a person: one that ends nothing does not.
    pub(super) fn needs_approval(&self) -> bool {
        self.spec.approval && self.ends_by_claim()
    }

    /// What a person said of this candidate already, after this attempt or elsewhere.
    pub(super) fn approval_of(&self, of: AttemptId, candidate: &Candidate) -> Option<Approval> {
        let (approved, at) = self.approved.as_ref()?;
        let is_shown = candidate.tree.is_some() && !candidate.partial;
        let is_same = approved.tree == candidate.tree && (is_shown || approved.attempt == of);
        is_same.then_some(Approval::Given(*at))
    }

    /// All else holds: a person is asked.
    pub(super) fn await_approval(&mut self, of: AttemptId, proof: Proof) {
        let proof = Proof { approval: Some(Approval::Awaited), ..proof };
        if let Phase::Proving(proving) = &mut self.phase {
            proving.candidate = Some(proof.candidate.clone());
            proving.results.clone_from(&proof.results);
            proving.hindered = Some(BlockReason::Approval);
        }
        self.keep_proof(of, proof);
    }

    /// A person resumes the loop: if it waited for their approval they give it, or do not.
    pub(super) fn hear_of_approval(&mut self, approved: Option<&ApprovedTree>, at: Timestamp) {
        let Some(ApprovedTree { attempt, .. }) = self.awaits_approval() else { return };
        let Some(mut proof) = self.proof.take() else { return };
        self.approved = approved.map(|approved| (approved.clone(), at));
        match (&self.approved, &mut self.phase) {
            (Some(_), Phase::Proving(proving)) => {
                proof.approval = Some(Approval::Given(at));
                proving.hindered = None;
                match &proving.candidate {
                    Some(shown) if shown.is_same(shown) => proving.to_check = true,
                    // Whether it has changed is unknown: the gates are asked once more.
                    Some(_) | None => {
                        proving.candidate = None;
                        proving.results.clear();
                    }
                }
                self.rounds = 0;
            }
            (Some(_) | None, phase) => {
                proof.approval = Some(Approval::Refused(at));
                *phase = Phase::Idle { claim: None, uncommitted: false };
            }
        }
        self.keep_proof(attempt, proof);
        self.record_iteration();
    }

    /// Keeps the last answers of the gates, and of a person, and the candidate.
    pub(super) fn keep_proof(&mut self, of: AttemptId, proof: Proof) {
        if let Some(attempt) = self.attempts.iter_mut().rev().find(|attempt| attempt.id == of) {
            attempt.proof = Some(proof.clone());
        }
        self.proof = Some(proof);
    }
}
