//! The form of a new loop: its goal, its agent, the gates that the project offers, and where it works.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use refrain_engine::StartOffer;

use crate::input::{Input, InputOutcome};
use crate::program::NewLoop;

/// Where a loop can work, as `place` of the request.
const PLACES: [&str; 3] = ["worktree", "branch", "folder"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopForm {
    /// The folder of its project.
    pub(crate) project: Arc<str>,
    pub(crate) goal: Input,
    pub(crate) agents: Vec<String>,
    pub(crate) agent: usize,
    /// Gates as `NAME=CMD`, and whether they are taken.
    pub(crate) gates: Vec<(String, bool)>,
    pub(crate) places: &'static [&'static str],
    pub(crate) place: usize,
    pub(crate) row: FormRow,
}

/// The row that has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormRow {
    Goal,
    Agent,
    Gate(usize),
    Place,
}

impl LoopForm {
    pub(crate) fn new(project: Arc<str>, offer: StartOffer) -> Self {
        // Without a repository there is neither a worktree nor a branch.
        let places = if offer.is_repository { &PLACES[..] } else { &PLACES[2..] };
        Self {
            project,
            goal: Input::default(),
            agents: offer.agents,
            agent: 0,
            gates: offer.gates,
            places,
            place: 0,
            row: FormRow::Goal,
        }
    }

    pub(crate) fn rows(&self) -> Vec<FormRow> {
        let gates = (0..self.gates.len()).map(FormRow::Gate);
        [FormRow::Goal, FormRow::Agent].into_iter().chain(gates).chain([FormRow::Place]).collect()
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> InputOutcome {
        let step = match key.code {
            KeyCode::Enter => return InputOutcome::Submit,
            KeyCode::Esc => return InputOutcome::Cancel,
            KeyCode::Tab | KeyCode::Down => Some(1),
            KeyCode::BackTab | KeyCode::Up => Some(-1),
            _ => None,
        };
        if let Some(step) = step {
            let rows = self.rows();
            let at = rows.iter().position(|row| *row == self.row).unwrap_or_default();
            self.row = rows[at.saturating_add_signed(step).min(rows.len() - 1)];
            return InputOutcome::Continue;
        }
        let turn = |at: usize, count: usize| match key.code {
            KeyCode::Right | KeyCode::Char(' ') if count > 0 => (at + 1) % count,
            KeyCode::Left if count > 0 => (at + count - 1) % count,
            _ => at,
        };
        match self.row {
            FormRow::Goal => return self.goal.key(key),
            FormRow::Agent => self.agent = turn(self.agent, self.agents.len()),
            FormRow::Place => self.place = turn(self.place, self.places.len()),
            FormRow::Gate(at) => {
                if let (KeyCode::Char(' '), Some((_, is_taken))) = (key.code, self.gates.get_mut(at)) {
                    *is_taken = !*is_taken;
                }
            }
        }
        InputOutcome::Continue
    }

    /// The loop that is asked for, or what is missing.
    pub(crate) fn request(&self) -> Result<NewLoop, String> {
        let goal = self.goal.text();
        if goal.trim().is_empty() {
            return Err("a loop needs a goal".to_owned());
        }
        let agent = self.agents.get(self.agent).cloned();
        let agent = agent.ok_or("no agent is in PATH; refrain start --command runs any program")?;
        let gates = self.gates.iter().filter(|(_, is_taken)| *is_taken).map(|(gate, _)| gate.clone());
        let place = self.places.get(self.place).copied().unwrap_or("folder");
        Ok(NewLoop { goal, agent, gates: gates.collect(), place })
    }
}
