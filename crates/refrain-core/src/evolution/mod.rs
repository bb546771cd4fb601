//! What a finished loop teaches about its project's instructions for agents: the question for the agent that reflects
//! on it, what its answer may change, and whether an applied proposal was useful. A proposal is judged here and applied
//! only by a person. An answer that is odd in any way is no proposal.

mod edit;
mod judge;
mod question;
mod safety;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use edit::diff;
pub use judge::{Fault, History, judge};
pub use question::{question, read, schema};

use crate::LoopId;
use crate::event::End;
use crate::r#loop::LoopState;

/// The version of [`Proposal`]; it rises when a reader of the last one would be misled.
pub const SCHEMA: u32 = 1;

/// What an agent that reflected on a loop answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reflection {
    /// What it would change, from top to bottom; nothing where nothing is to be learnt.
    pub changes: Vec<Change>,
}

/// One change of the instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The number of the line before which it is made, from 1 on; one more than there are lines is the end.
    pub line: usize,
    /// How many lines from there on are taken away.
    pub remove: usize,
    /// The lines that stand there instead.
    pub insert: Vec<String>,
    /// Why, in a sentence.
    pub because: String,
    /// The iterations of the loop that show it.
    pub iterations: Vec<u32>,
}

/// What becomes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalState {
    /// Not decided yet.
    Open,
    /// A person took it over.
    Applied,
    /// A person did not want it.
    Dismissed,
}

/// A change of a project's instructions that passed every gate, for a person to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The version of this object.
    pub schema: u32,
    /// The loop that it was learnt from, by whose name it goes.
    pub id: LoopId,
    /// When it was made.
    pub at: Timestamp,
    /// The file, seen from the top of the worktree.
    pub file: String,
    /// The BLAKE3 hash of the file that it was made for; null where there was none.
    pub made_for: Option<String>,
    /// What it changes.
    pub changes: Vec<Change>,
    /// What became of it.
    pub standing: ProposalState,
    /// When that was decided.
    pub decided_at: Option<Timestamp>,
}

/// Of loops that ended, how many were proven done by their first iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirstPass {
    /// Those that were.
    pub first: u32,
    /// All that ended.
    pub ended: u32,
}

impl FirstPass {
    fn count(&mut self, is_first: bool) {
        self.ended += 1;
        self.first += u32::from(is_first);
    }
}

/// Whether there is something to learn from a loop that ended by itself. Tasks of a plan, which are many, and loops
/// within a loop are excluded: their owner looks after them.
pub fn is_of_use(state: &LoopState) -> bool {
    let Some(ended) = state.ended else { return false };
    let is_over = match ended.end {
        End::Completed { .. }
        | End::IterationCap
        | End::Stuck
        | End::TimedOut
        | End::BudgetExceeded { .. } => true,
        End::Blocked { why } => why.is_of_work(),
        End::Cancelled | End::Paused => false,
    };
    is_over && state.charged > state.spec.carried() && state.spec.task.is_none() && state.spec.depth == 0
}

/// Whether a loop was proven done by its first iteration; none of one that did not end, or never ran.
pub fn first_pass(state: &LoopState) -> Option<bool> {
    let is_proven =
        state.proof.as_ref().is_some_and(|proof| proof.holds(&state.spec)) && state.spec.has_hard_gates();
    let is_done = matches!(state.ended?.end, End::Completed { .. });
    is_of_use(state).then_some(is_done && is_proven && state.charged == 1)
}

/// The effect of applying a proposal at `at`: of loops with these start times, which their first iteration proved done
/// or not, those before and those after.
pub fn measured(at: Timestamp, loops: &[(Timestamp, bool)]) -> (FirstPass, FirstPass) {
    let (mut before, mut after) = (FirstPass::default(), FirstPass::default());
    for (started, is_first) in loops {
        if *started < at { &mut before } else { &mut after }.count(*is_first);
    }
    (before, after)
}
