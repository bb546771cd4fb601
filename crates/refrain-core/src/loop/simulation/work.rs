//! The content of a worktree, as a number: agents add to it, keep it, or take it back, and gates write files that are
//! not work.

use crate::simulation::random::Random;
use crate::work::WorkDigest;

pub(super) struct Work {
    random: Random,
    state: u64,
    newest: u64,
    /// One in this many attempts adds nothing.
    idle: u64,
}

impl Work {
    pub(super) fn sample(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x776f_726b);
        let idle = random.pick(&[1, 2, 3, 8, 8]);
        Self { random, state: 0, newest: 0, idle }
    }

    /// The work now; now and then it cannot be known.
    pub(super) fn digest(&mut self) -> Option<WorkDigest> {
        let is_known = !self.random.once_in(20);
        is_known.then(|| format!("{:032x}", self.state).parse().expect("a digest"))
    }

    pub(super) fn attempted(&mut self) {
        match self.random.once_in(self.idle) {
            true if self.random.once_in(3) => self.state = self.random.below(self.newest + 1),
            true => {}
            false => self.changes(),
        }
    }

    /// It is another than ever before: a gate wrote, or the user worked.
    pub(super) fn changes(&mut self) {
        self.newest += 1;
        self.state = self.newest;
    }
}
