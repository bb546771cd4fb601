//! The number of a wave for people, its name in the history, and what it lacks. Waves have three numberings: a
//! [`WaveNumber`] in the events, a [`Level`] in the graph, and the number that people see: the level, after the waves of
//! earlier plans of the tag. A task that was blocked and is done later is in one more wave of the events, and in the same
//! level.

use crate::plan::WaveNumber;
use crate::plan::state::{PlanState, Stage, TaskState};

/// A wave of the graph, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Level(usize);

impl PlanState {
    /// The number that people see of a task's wave, from 1; none if it is not for this plan to do. One that its file took
    /// off the plan, though it is not done, has the wave in which it would be.
    pub fn wave_number(&self, task: usize) -> Option<u32> {
        if self.tasks[task].is_not_tried() {
            return self.graph.level_of(task).map(|level| self.shown(Level(level)));
        }
        let place = self.tasks[task].wave?;
        // A task that a changed file keeps out of the graph comes with the last wave at most.
        let level =
            self.graph.wave_of(task).unwrap_or_else(|| place.min(self.graph.waves().len().saturating_sub(1)));
        Some(self.shown(Level(level)))
    }

    /// The number that people see of a wave, from 1.
    pub fn shown_wave(&self, number: WaveNumber) -> u32 {
        self.shown(self.level_of(number))
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
        let complete = (0..).zip(&self.waves).filter(|(_, wave)| matches!(wave.completed, Some(Some(_))));
        let shown = complete.map(|(place, _)| self.shown_wave(WaveNumber::of_place(place)));
        shown.max().unwrap_or(self.spec.waves_before)
    }

    fn shown(&self, Level(level): Level) -> u32 {
        u32::try_from(level + 1).unwrap_or(u32::MAX).saturating_add(self.spec.waves_before)
    }

    /// The name of a wave: `wave 2` after the wave of the graph that its tasks are of, the last one if they are of
    /// several, and `the rest of wave 2` if that was completed before, as far as could be.
    pub fn wave_name(&self, number: WaveNumber) -> String {
        let level = self.level_of(number);
        let shown = self.shown(level);
        let has_commit = |wave: &usize| matches!(self.waves[*wave].completed, Some(Some(_)));
        let place = number.place().unwrap_or_default();
        let mut before = (0..place.min(self.waves.len())).filter(has_commit);
        match before.any(|wave| self.level(wave) >= Some(level)) {
            true => format!("the rest of wave {shown}"),
            false => format!("wave {shown}"),
        }
    }

    /// What is said of a wave of which so many tasks landed: `complete wave 2`, or `wave 2: 1 of 3 tasks`.
    pub fn wave_subject(&self, number: WaveNumber, landed: usize) -> String {
        let name = self.wave_name(number);
        match self.left_out(number).count() {
            0 => format!("complete {name}"),
            left => format!("{name}: {landed} of {} tasks", landed + left),
        }
    }

    fn level_of(&self, number: WaveNumber) -> Level {
        let place = number.place().unwrap_or_default();
        self.level(place).unwrap_or(Level(place))
    }

    /// The last wave of the graph that something is of what landed in the wave at this place.
    fn level(&self, place: usize) -> Option<Level> {
        let is_its = |task: &usize| {
            let task = &self.tasks[*task];
            task.wave == Some(place) && matches!(task.stage, Stage::Landed { .. })
        };
        self.graph.waves().iter().rposition(|wave| wave.iter().any(is_its)).map(Level)
    }

    /// The tasks of a wave that are not done.
    pub fn left_out(&self, number: WaveNumber) -> impl Iterator<Item = &TaskState> {
        let place = number.place();
        let is_left = |task: &&TaskState| matches!(task.stage, Stage::Stopped(_) | Stage::Waiting(_));
        self.tasks.iter().filter(move |task| task.wave == place).filter(is_left)
    }
}
