//! What must hold of a loop's effects outside, from the words of the issue: only committed work is pushed, only
//! claimed, proven and green work is merged, with exactly that head, and an intent comes before every effect.

use crate::event::End;
use crate::git::{ChecksVerdict, Effect, Oid, PublishReport, PublishResult, Workflow};

#[derive(Debug, Default)]
pub(super) struct ForgeLedger {
    began: Option<Oid>,
    head: Option<Oid>,
    intent: Option<Effect>,
    pushed: Option<Oid>,
    open: bool,
    ready: Option<Oid>,
    green: Option<Oid>,
    merged: bool,
    pub(super) objected: bool,
    pub(super) waits: bool,
}

impl ForgeLedger {
    pub(super) fn base(&mut self, head: Option<&Oid>) {
        self.head = head.cloned();
        self.began = self.began.take().or_else(|| head.cloned());
    }

    pub(super) fn commit(&mut self, head: Option<&Oid>) {
        self.head = head.cloned();
        self.objected = false;
    }

    /// Its runner is gone, or it is stopped: the result of an intent is unknown.
    pub(super) fn forget(&mut self) {
        (self.intent, self.waits) = (None, false);
    }

    pub(super) fn intend(&mut self, effect: Effect, workflow: Workflow, claims: bool) {
        assert!(workflow.publishes(), "no person asked for that");
        assert_eq!(self.intent.replace(effect), None, "two effects at a time");
        self.waits = false;
        let is_there = |what: &Option<Oid>| *what == self.head;
        match effect {
            Effect::Push => assert!(!self.merged, "it is merged"),
            Effect::Open => assert!(is_there(&self.pushed) && !self.open, "opened twice, or with nothing"),
            Effect::Ready => assert!(self.open && claims && is_there(&self.pushed)),
            Effect::Look => panic!("that leaves nothing"),
            Effect::Merge => {
                assert!(workflow == Workflow::PrMerge && claims && !self.merged, "no person asked for that");
                assert!(
                    is_there(&self.pushed) && is_there(&self.ready) && is_there(&self.green),
                    "another head"
                );
            }
            Effect::Return => assert!(self.merged, "its branch is still needed"),
        }
    }

    pub(super) fn settle(&mut self, report: &PublishReport) {
        let intended = (report.effect != Effect::Look).then_some(report.effect);
        assert_eq!(self.intent.take(), intended, "without an intent");
        self.waits = false;
        match &report.result {
            PublishResult::Pushed { .. } => self.pushed.clone_from(&self.head),
            PublishResult::Rebased { head, .. } => self.head = Some(head.clone()),
            PublishResult::Requested(_) => {
                self.open = true;
                if report.effect == Effect::Ready {
                    self.ready.clone_from(&self.head);
                }
            }
            PublishResult::Checked(checks) => match checks.verdict {
                ChecksVerdict::Green | ChecksVerdict::None => self.green.clone_from(&self.head),
                ChecksVerdict::Red => self.objected = true,
                ChecksVerdict::Pending | ChecksVerdict::NotStarted => self.waits = true,
            },
            PublishResult::Merged { .. } => self.merged = true,
            PublishResult::Conflict { .. } => self.objected = true,
            PublishResult::Later { .. } => self.waits = true,
            PublishResult::Returned { .. } | PublishResult::Refused { .. } => {}
        }
    }

    pub(super) fn end(&self, end: End, workflow: Workflow) {
        if !matches!(end, End::Completed { .. }) || self.head == self.began {
            return;
        }
        if self.merged {
            // Work of a person since then is theirs.
            return assert_eq!(workflow, Workflow::PrMerge);
        }
        if workflow.publishes() {
            assert_eq!(self.pushed, self.head, "it is completed, and not all is pushed");
        }
        if workflow.requests() {
            assert!(self.ready == self.head && self.green == self.head, "it is completed without its checks");
        }
        assert_ne!(workflow, Workflow::PrMerge, "it is completed, and not merged");
    }
}
