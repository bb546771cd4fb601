//! The name of a wave in the history, and what it lacks. Waves are completed one after the other and numbered in that
//! order; a task that was blocked and is done later comes in one more wave, which is named after the one that it was
//! missing from.

use crate::plan::state::{PlanState, Stage, TaskState};

impl PlanState {
    /// The name of a wave, by its number from 1: `wave 2` after the wave of the graph that its tasks are of, the last
    /// one if they are of several, and `the rest of wave 2` if that was completed before, as far as could be.
    #[must_use]
    pub fn wave_name(&self, number: u32) -> String {
        let place = number.saturating_sub(1) as usize;
        let level = self.level(place).unwrap_or(place);
        let has_commit = |wave: &usize| matches!(self.waves[*wave].completed, Some(Some(_)));
        let mut before = (0..place.min(self.waves.len())).filter(has_commit);
        match before.any(|wave| self.level(wave) >= Some(level)) {
            true => format!("the rest of wave {}", level + 1),
            false => format!("wave {}", level + 1),
        }
    }

    /// What is said of a wave of which so many tasks landed: `complete wave 2`, or `wave 2: 1 of 3 tasks`.
    #[must_use]
    pub fn wave_subject(&self, number: u32, landed: usize) -> String {
        let name = self.wave_name(number);
        match self.left_out(number).count() {
            0 => format!("complete {name}"),
            left => format!("{name}: {landed} of {} tasks", landed + left),
        }
    }

    /// The last wave of the graph, from 0, that something is of what landed in a wave.
    fn level(&self, place: usize) -> Option<usize> {
        let is_its = |task: &usize| {
            let task = &self.tasks[*task];
            task.wave == Some(place) && matches!(task.stage, Stage::Landed { .. })
        };
        self.graph.waves().iter().rposition(|wave| wave.iter().any(is_its))
    }

    /// The tasks of a wave, by its number from 1, that are not done.
    pub fn left_out(&self, number: u32) -> impl Iterator<Item = &TaskState> {
        let place = number.checked_sub(1).map(|place| place as usize);
        let is_left = |task: &&TaskState| matches!(task.stage, Stage::Stopped(_) | Stage::Waiting(_));
        self.tasks.iter().filter(move |task| task.wave == place).filter(is_left)
    }
}
