//! People: what they do while a plan runs, and with one that has stopped.

use crate::event::{Ask, Urgency};
use crate::simulation::Schedule;
use crate::simulation::random::Random;

#[derive(Clone, Debug)]
pub(super) enum Act {
    Ask(Ask),
    Edit,
    /// One of the tasks that wait for that.
    Tune,
    Commit,
}

#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) acts: Schedule<Act>,
    /// How often they come back to a stopped plan.
    pub(super) patience: u64,
    /// When their own uncommitted work blocks a handover.
    pub(super) dirty: Option<(u64, u64)>,
}

impl Person {
    pub(super) fn sample(random: &mut Random) -> Self {
        let mut plan = Vec::new();
        for _ in 0..random.pick(&[0, 0, 1, 2, 3, 6]) {
            let act = match random.below(16) {
                0 => Act::Ask(Ask::Pause(Urgency::AfterIteration)),
                1 => Act::Ask(Ask::Pause(Urgency::Now)),
                2 => Act::Ask(Ask::Cancel(random.pick(&[Urgency::AfterIteration, Urgency::Now]))),
                3 | 4 => Act::Tune,
                5 | 6 => Act::Commit,
                _ => Act::Edit,
            };
            let within = random.pick(&[1_000, 60_000, 600_000]);
            plan.push((random.below(within), act));
        }
        let dirty = random.once_in(3).then(|| (random.below(100_000), random.between(100_000, 900_000)));
        Self { acts: Schedule::new(plan), patience: random.below(4), dirty }
    }

    pub(super) fn is_in_the_way(&self, now: u64) -> bool {
        self.dirty.is_some_and(|(from, to)| (from..to).contains(&now))
    }
}
