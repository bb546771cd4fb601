//! The tasks of a task file that a plan takes, or why it refuses them. Why a file cannot be read at all is
//! refrain-store's to report.

use crate::plan::graph::Graph;
use crate::plan::task::Card;
use crate::plan::{PlanEvent, Problem, Task};

impl PlanEvent {
    /// Takes these tasks, or says why that cannot be: the first error of all, and how many more there are. `refrain
    /// plan check` names them.
    pub fn of_tasks(tasks: &[Task]) -> Self {
        let cards: Vec<_> = tasks.iter().map(Card::from).collect();
        let (_, problems) = Graph::build(cards.iter().map(Card::task).collect());
        let mut errors = problems.iter().filter(|problem| problem.is_error());
        match (errors.next(), errors.count()) {
            (None, _) => Self::TasksTaken { tasks: cards },
            (Some(first), more) => Self::TasksRefused { error: said(first, more) },
        }
    }
}

fn said(first: &Problem, more: usize) -> String {
    match more {
        0 => first.to_string(),
        _ => format!("{first}; and {more} more, see refrain plan check"),
    }
}
