//! The number of a wave for people, its name in the history, and what it lacks. The events number waves in the order in
//! which they are completed; a task that was blocked and is done later comes in one more of those. People see the wave
//! of the graph, which stays, after the waves of earlier plans of the tag.

use crate::plan::state::{PlanState, Stage, TaskState};

impl PlanState {
    /// The number of a task's wave, from 1; none if it is not for this plan to do.
    pub fn wave_number(&self, task: usize) -> Option<u32> {
        let place = self.tasks[task].wave?;
        // A task that a changed file keeps out of the graph comes with the last wave at most.
        let level =
            self.graph.wave_of(task).unwrap_or_else(|| place.min(self.graph.waves().len().saturating_sub(1)));
        Some(self.number(level))
    }

    /// The number of a wave by its place among those of the events, from 1.
    pub fn number_of_wave(&self, number: u32) -> u32 {
        let place = number.saturating_sub(1) as usize;
        self.number(self.level(place).unwrap_or(place))
    }

    /// The number of the last wave that has a task.
    pub fn last_wave_number(&self) -> u32 {
        (0..self.tasks.len())
            .filter_map(|task| self.wave_number(task))
            .max()
            .unwrap_or(self.spec.waves_before)
    }

    /// How many waves of the tag are complete, those of earlier plans included.
    pub fn waves_completed(&self) -> u32 {
        let complete = (1..).zip(&self.waves).filter(|(_, wave)| matches!(wave.completed, Some(Some(_))));
        complete.map(|(number, _)| self.number_of_wave(number)).max().unwrap_or(self.spec.waves_before)
    }

    fn number(&self, level: usize) -> u32 {
        u32::try_from(level + 1).unwrap_or(u32::MAX).saturating_add(self.spec.waves_before)
    }

    /// The name of a wave, by its number from 1: `wave 2` after the wave of the graph that its tasks are of, the last
    /// one if they are of several, and `the rest of wave 2` if that was completed before, as far as could be.
    pub fn wave_name(&self, number: u32) -> String {
        let place = number.saturating_sub(1) as usize;
        let level = self.level(place).unwrap_or(place);
        let shown = self.number(level);
        let has_commit = |wave: &usize| matches!(self.waves[*wave].completed, Some(Some(_)));
        let mut before = (0..place.min(self.waves.len())).filter(has_commit);
        match before.any(|wave| self.level(wave) >= Some(level)) {
            true => format!("the rest of wave {shown}"),
            false => format!("wave {shown}"),
        }
    }

    /// What is said of a wave of which so many tasks landed: `complete wave 2`, or `wave 2: 1 of 3 tasks`.
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
