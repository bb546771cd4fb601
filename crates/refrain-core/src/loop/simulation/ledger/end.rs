use super::{Last, Ledger};
use crate::event::{BlockReason, ClaimSource, End, Urgency};
use crate::git::Oid;
use crate::spec::{Millis, OnStuck, Until};

impl Ledger {
    pub(super) fn end(&mut self, end: End) {
        assert!(self.flight.is_none() && self.gate.is_none(), "it ends before its attempt");
        assert!(self.critic.is_none(), "it ends before its critic");
        let at_once = [self.cancelled, self.paused].contains(&Some(Urgency::Now));
        // Gates can hold a commit back, or be held up themselves.
        let is_claimed = matches!(end, End::Completed { claim } if claim != ClaimSource::Count);
        let held_back = self.proves() && !is_claimed;
        assert!(!self.uncommitted || at_once || held_back, "it ends before its commit");
        if matches!(end, End::Completed { .. } | End::Cancelled) && self.has_base {
            let apart = self.spec.git.checkout.is_own_worktree();
            assert_eq!(self.released, apart, "it ends before its worktree is given back");
        }
        if self.cancelled.is_some() {
            assert_eq!(end, End::Cancelled, "a cancel was undone");
        } else {
            assert_eq!(self.ended, None, "it ends twice");
        }
        match end {
            End::Completed { claim: ClaimSource::Count } => {
                assert!(self.is_counted(), "not as many iterations as were asked for");
                // A claim of the last iteration without an objection is what completes it.
                let may = self.may_be_refused() || self.outside.objected;
                assert!(!self.claims() || may, "a claim did not count");
                self.assert_approved();
            }
            End::Completed { claim } => {
                let made = match self.last {
                    // A claim that others' commits came over is proven again, and may be the gates' then.
                    _ if claim == ClaimSource::Gates && self.is_completed_by_gates() => claim,
                    Some(Last::Charged { claim: Some(made) }) => made,
                    _ => panic!("no agent claimed"),
                };
                assert_eq!(claim, made);
                assert!(self.ends_by_claim(), "a claim ended it that ends nothing");
                self.assert_proven();
                self.assert_approved();
                let differs = |tree: &Oid| self.tree.as_ref().is_some_and(|proven| proven != tree);
                let differs = (self.has_hard_gates() || self.spec.approval)
                    && self.committed.as_ref().is_some_and(differs);
                assert!(!differs, "what is committed is not proven");
                self.outside.end(end, self.spec.git.workflow);
            }
            End::Cancelled => assert!(self.cancelled.is_some(), "cancelled without a request"),
            End::IterationCap => {
                assert_eq!(self.blocked, 0, "its question is not shown");
                assert_eq!(Some(self.charged), self.limits.max_iterations);
                assert!(self.spec.until != Until::Count || self.spec.approval, "it did what was asked for");
                assert!(self.kept || !self.spec.keep_failed || self.charged == 0, "its work is lost");
            }
            End::Stuck => {
                assert!(self.kept, "its work is lost");
                self.progress.assert_stuck(&self.spec, &self.failures());
                assert!(!matches!(self.spec.stuck.answer, OnStuck::Ask), "no person asked");
            }
            End::Blocked { why: BlockReason::Stuck } => {
                assert!(matches!(self.spec.stuck.answer, OnStuck::Ask), "the loop does not ask");
                self.progress.assert_stuck(&self.spec, &self.failures());
            }
            End::Blocked { why: BlockReason::GaveUp } => {
                assert!(self.gave_up && self.kept, "the agent did not give up")
            }
            End::Blocked { why: BlockReason::Approval } => {
                let is_claimed = self.claims() || self.is_counted();
                assert!(self.spec.approval && is_claimed && self.ends_by_claim(), "no approval is needed");
                self.assert_proven();
                let is_given = self.approval.is_given(self.tree.as_ref(), self.iteration);
                assert!(!is_given, "they said so already");
            }
            End::Blocked { why: BlockReason::StateFile } => {
                let is_over = |all: Millis| self.active >= all.into();
                let is_last = self.limits.max_iterations == Some(self.charged)
                    || self.limits.max_duration.is_some_and(is_over)
                    || self.limits.max_tokens.is_some_and(|cap| self.tokens >= cap);
                assert!(self.blocked >= if is_last { 1 } else { 2 }, "it had no second try")
            }
            End::TimedOut => {
                assert!(self.active >= self.limits.max_duration.expect("a limit").into());
                assert!(self.kept || !self.spec.keep_failed || self.charged == 0, "its work is lost");
            }
            End::Blocked { why: BlockReason::Refunds } => assert_eq!(self.refunds, 3),
            End::Blocked { why: BlockReason::Publish } => assert!(self.spec.git.workflow.publishes()),
            End::Blocked { why: BlockReason::Churn } => assert_eq!(self.instant_failures, 3),
            End::Blocked { why: BlockReason::AgentMissing } => {
                assert!(matches!(self.last, Some(Last::CouldNotStart)));
            }
            End::Blocked { why: BlockReason::GateMissing } => {
                let begins = self.iteration == 0 && self.charged == 0 && self.tokens == 0;
                assert!(begins && self.spec.gates_must_run && !self.missing.is_none(), "no gate is missing");
            }
            End::BudgetExceeded { .. } => assert!(self.tokens >= self.limits.max_tokens.expect("a cap")),
            End::Blocked { why: BlockReason::Limit | BlockReason::Outage } => {
                assert!(matches!(self.last, Some(Last::Provider)));
            }
            End::Blocked { why: BlockReason::Login } => {
                assert!(matches!(self.last, Some(Last::NeedsAPerson)))
            }
            End::Blocked {
                why:
                    BlockReason::Credit
                    | BlockReason::Forbidden
                    | BlockReason::Model
                    | BlockReason::Setup
                    | BlockReason::Session
                    | BlockReason::CostUnknown
                    | BlockReason::Repository
                    | BlockReason::Idle,
            } => panic!("no agent here needs that"),
            End::Blocked { why: BlockReason::OutputLost } => {
                assert!(matches!(self.last, Some(Last::DiskFull)))
            }
            End::Paused => assert!(self.paused.is_some(), "paused without a request"),
        }
        (self.ended, self.waiting) = (Some(end), false);
    }
}
