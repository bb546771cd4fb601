//! What is outside the loop's repository: a remote that others push to, and a forge with random answers.

use super::world::World;
use crate::event::Event;
use crate::git::{
    Base, ChecksVerdict, Conflict, ConflictKind, Effect, PublishResult, Refusal, RepoPath, Workflow,
};
use crate::r#loop::tests::journal::{checked, oid, published, well};
use crate::simulation::random::Random;
use crate::simulation::tally::Tally;
use crate::spec::Spec;

/// What is really there, regardless of what the loop knows.
#[derive(Debug, Default)]
pub(super) struct ForgeState {
    requests: u32,
    merges: u32,
    rebases: u32,
}

/// Drawn from separate numbers, so that all other draws stay the same.
pub(super) fn sample_workflow(seed: u64, spec: &mut Spec) {
    if spec.git.workflow == Workflow::Commit {
        let workflows = [Workflow::Commit, Workflow::Push, Workflow::Pr, Workflow::PrMerge];
        spec.git.workflow = Random::new(seed ^ 0x7075_6273).pick(&workflows);
    }
}

impl World {
    /// What is in the repository: now and then another person worked while the loop was stopped.
    pub(super) fn base(&mut self) -> Event {
        let worked = self.state.spec.git.workflow.publishes() && self.random.once_in(4);
        let head = match &self.state.git.head {
            Some(_) if worked => oid(4_000_000 + self.tree),
            Some(head) => head.clone(),
            None => oid(0),
        };
        let base = Base { head: Some(head), branch: Some("main".into()), ..Base::default() };
        Event::BaseTaken(Box::new(base))
    }

    /// The result of an effect. An effect done before a crash is found, and not repeated.
    pub(super) fn publish(&mut self, effect: Effect, tally: &mut Tally) -> Event {
        let said = || "so it was".to_owned();
        let (name, result) = match (self.random.below(16), effect) {
            (0, _) => ("put off", PublishResult::Later { said: said(), until: None }),
            (1, _) => ("refused", PublishResult::Refused { why: Refusal::Permission, said: said() }),
            (2..5, Effect::Push) => {
                self.outside.rebases += 1;
                self.tree += 1;
                let head = oid(2_000_000 + self.outside.rebases);
                (
                    "rebased",
                    PublishResult::Rebased { commits: vec![head.clone()], head, tree: oid(self.tree) },
                )
            }
            (5, Effect::Push | Effect::Merge) => {
                let conflict = Conflict { path: RepoPath::from_bytes(b"a"), kind: ConflictKind::Content };
                ("in conflict", PublishResult::Conflict { theirs: oid(3_000_000), paths: vec![conflict] })
            }
            (2..4, Effect::Look) => ("looked at: red", checked(ChecksVerdict::Red)),
            (4..9, Effect::Look) => ("looked at: pending", checked(ChecksVerdict::Pending)),
            (9..11, Effect::Look) => ("looked at: not started", checked(ChecksVerdict::NotStarted)),
            (_, effect) => {
                match effect {
                    Effect::Open if self.outside.requests == 0 => self.outside.requests = 1,
                    Effect::Merge if self.outside.merges == 0 => self.outside.merges = 1,
                    Effect::Open | Effect::Merge => tally.add("outside", "found done"),
                    Effect::Push | Effect::Ready | Effect::Look | Effect::Return => {}
                }
                let name = match effect {
                    Effect::Push => "pushed",
                    Effect::Open => "opened",
                    Effect::Ready => "made ready",
                    Effect::Look => "looked at: green",
                    Effect::Merge => "merged",
                    Effect::Return => "returned",
                };
                (name, well(effect))
            }
        };
        tally.add("outside", name);
        published(effect, result)
    }
}
