//! What the tasks of a plan say together: who waits for whom, and in which wave each one is.

use std::collections::HashMap;

use super::task::{Card, TaskId};

/// The graph of a plan's tasks. Tasks are numbered by their place in the file.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    index: HashMap<TaskId, usize>,
    dependencies: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
    waves: Vec<Vec<usize>>,
    rank: Vec<u64>,
}

impl Graph {
    /// The graph of these tasks.
    #[must_use]
    pub fn build(cards: &[Card]) -> Self {
        let index: HashMap<_, _> = cards.iter().enumerate().map(|(n, card)| (card.id.clone(), n)).collect();
        let of = |card: &Card| card.dependencies.iter().filter_map(|id| index.get(id).copied()).collect();
        let dependencies: Vec<Vec<usize>> = cards.iter().map(of).collect();
        let mut dependents = vec![Vec::new(); cards.len()];
        for (task, all) in dependencies.iter().enumerate() {
            all.iter().for_each(|dependency| dependents[*dependency].push(task));
        }
        let in_run = |n: usize| cards[n].status.is_to_do();
        let mut unmet: Vec<usize> =
            dependencies.iter().map(|all| all.iter().filter(|n| in_run(**n)).count()).collect();
        let mut wave: Vec<usize> = (0..cards.len()).filter(|n| in_run(*n) && unmet[*n] == 0).collect();
        let mut waves = Vec::new();
        while !wave.is_empty() {
            let mut next = Vec::new();
            for task in &wave {
                for dependent in &dependents[*task] {
                    unmet[*dependent] -= 1;
                    if unmet[*dependent] == 0 && in_run(*dependent) {
                        next.push(*dependent);
                    }
                }
            }
            next.sort_unstable();
            waves.push(std::mem::replace(&mut wave, next));
        }
        let mut rank = vec![0; cards.len()];
        for task in waves.iter().rev().flatten() {
            let below = dependents[*task].iter().map(|n| rank[*n]).max().unwrap_or_default();
            rank[*task] = below + u64::from(cards[*task].complexity.max(1));
        }
        Self { index, dependencies, dependents, waves, rank }
    }

    /// The waves, the first first: each holds the tasks whose dependencies lie in those before it.
    #[must_use]
    pub fn waves(&self) -> &[Vec<usize>] {
        &self.waves
    }

    /// The place of a task.
    #[must_use]
    pub fn index(&self, id: &TaskId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// What a task waits for.
    #[must_use]
    pub fn dependencies(&self, task: usize) -> &[usize] {
        &self.dependencies[task]
    }

    /// Who waits for a task.
    #[must_use]
    pub fn dependents(&self, task: usize) -> &[usize] {
        &self.dependents[task]
    }

    /// How much hangs on a task: the longest chain that begins with it, by complexity.
    #[must_use]
    pub fn rank(&self, task: usize) -> u64 {
        self.rank[task]
    }
}
