//! What the dependencies of all tasks together say: what may be done when, what waits on what, and what is wrong.
//!
//! A task has two nodes: itself, and its *gate*, through which its subtasks inherit what it depends on (SCUD,
//! recursively). A task comes after its own dependencies, its subtasks, and the gate of its parent; a gate comes after
//! the dependencies of its task, and the gate of that one's parent. So inheriting costs one edge a subtask, and all is
//! done in linear time.

pub(crate) mod cycles;
pub(crate) mod links;
pub(crate) mod wave;

use std::collections::{HashMap, VecDeque};

use super::graph::links::{Edges, edges, index, needs, parents};
use super::readiness::standings;
use super::{Problem, Task, TaskId, TaskReadiness, TaskStatus};

/// The tasks of a plan, by the order of their file, and what follows from their dependencies.
#[derive(Clone, Debug)]
pub struct Graph {
    tasks: Vec<Task>,
    index: HashMap<TaskId, usize>,
    parents: Vec<Option<usize>>,
    standing: Vec<TaskReadiness>,
    /// By node: what it comes after.
    needs: Edges,
    /// By node: what comes after it.
    needed_by: Edges,
    waves: Vec<Vec<usize>>,
    /// The wave of each task to do, and the one in which a stopped task would be.
    levels: Vec<Option<usize>>,
    ranks: Vec<u64>,
    waits_on: Vec<Option<usize>>,
}

impl Graph {
    /// The graph of these tasks, and all that is wrong with it. If a problem is an error, tasks that it concerns may be
    /// in no wave.
    pub fn build(tasks: Vec<Task>) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let index = index(&tasks, &mut problems);
        let mut parents = parents(&tasks, &index, &mut problems);
        cycles::cut_parents(&tasks, &mut parents, &mut problems);
        let needs = needs(&tasks, &index, &parents, &mut problems);
        let reversed = |(from, on): (usize, &Vec<usize>)| on.iter().map(|on| (*on, from)).collect::<Vec<_>>();
        let needed_by = edges(needs.len(), needs.iter().enumerate().flat_map(reversed));
        let order = order(&needs, &needed_by);
        problems.extend(cycles::find(&tasks, &needs, &order));
        let standing = standings(&tasks, &parents);
        let mut graph = Self {
            index,
            parents,
            standing,
            needed_by,
            needs,
            waves: Vec::new(),
            levels: vec![None; tasks.len()],
            ranks: Vec::new(),
            waits_on: Vec::new(),
            tasks,
        };
        graph.level(&order);
        graph.rank_all(&order);
        problems.extend(graph.oddities());
        (graph, problems)
    }

    /// The tasks, in the order of their file.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The place of a task in [`Self::tasks`]. Of several with this id, the first.
    pub fn index(&self, id: &TaskId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The waves of the tasks to do: each holds tasks whose dependencies are done or in waves before it. Within a wave
    /// they have the order of the file. A wave may be empty: stopped tasks keep those that wait for them in later ones.
    pub fn waves(&self) -> &[Vec<usize>] {
        &self.waves
    }

    pub fn to_do(&self) -> usize {
        self.standing.iter().filter(|standing| **standing == TaskReadiness::ToDo).count()
    }

    /// The wave of a task to do.
    pub fn wave_of(&self, task: usize) -> Option<usize> {
        self.levels[task].filter(|_| self.standing[task] == TaskReadiness::ToDo)
    }

    /// The same, and of a stopped task the wave in which it would be.
    pub fn level_of(&self, task: usize) -> Option<usize> {
        self.levels[task]
    }

    pub fn standing(&self, task: usize) -> TaskReadiness {
        self.standing[task]
    }

    pub fn parent(&self, task: usize) -> Option<usize> {
        self.parents[task]
    }

    /// The tasks that have to be done before it may begin: its own dependencies, those of the tasks that it is a part
    /// of, and its subtasks. One that is done in parts is not among them, its subtasks are.
    pub fn dependencies(&self, task: usize) -> Vec<usize> {
        let (mut found, mut left) = (Vec::new(), vec![task]);
        // Tasks that wait for each other are refused later; here the walk must still end.
        let mut seen = vec![false; self.needs.len()];
        while let Some(from) = left.pop() {
            if std::mem::replace(&mut seen[from], true) {
                continue;
            }
            // If a task is done in parts, only the parts count: what it depends on itself, they depend on too.
            let only_parts = from != task && self.task_of(from).is_some();
            for &node in &self.needs[from] {
                let is_part = node < self.tasks.len() && self.parents[node] == Some(from);
                match self.task_of(node) {
                    _ if only_parts && !is_part => {}
                    Some(it) if is_part && self.tasks[it].status == TaskStatus::Cancelled => {}
                    Some(it) if self.standing[it] != TaskReadiness::InParts => found.push(it),
                    Some(_) | None => left.push(node),
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The tasks that may begin only once it is done: those whose [`Self::dependencies`] it is among.
    pub fn dependents(&self, task: usize) -> Vec<usize> {
        let (mut found, mut left) = (Vec::new(), vec![task]);
        // Tasks that wait for each other are refused later; here the walk must still end.
        let mut seen = vec![false; self.needs.len()];
        while let Some(from) = left.pop() {
            if std::mem::replace(&mut seen[from], true) {
                continue;
            }
            for &node in &self.needed_by[from] {
                match self.task_of(node) {
                    None => left.push(node),
                    Some(it) if self.standing[it] != TaskReadiness::InParts => found.push(it),
                    // A task that waits for the whole waits for its parts; the gate passes on what the whole waits for.
                    Some(it) if from < self.tasks.len() && self.parents[from] == Some(it) => left.push(it),
                    Some(_) => {}
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How much there is to do from its begin to the end of the longest chain after it, counted by complexity, at least
    /// 1 for each task: the highest rank is best begun first.
    pub fn rank(&self, task: usize) -> u64 {
        self.ranks[task]
    }

    /// The task that keeps it from beginning because it will not be done, directly or through others.
    pub fn waits_on(&self, task: usize) -> Option<usize> {
        self.waits_on[task]
    }

    /// The tasks to do that nothing would prove done if the plan has no verification of its own.
    pub fn unverified(&self) -> Option<Problem> {
        let lacks = |(task, standing): &(&Task, &TaskReadiness)| {
            **standing == TaskReadiness::ToDo && task.verification.is_none()
        };
        let lacking: Vec<_> =
            self.tasks.iter().zip(&self.standing).filter(lacks).map(|(task, _)| task.id.clone()).collect();
        (!lacking.is_empty()).then_some(Problem::Unverified(lacking))
    }

    /// The task of a node, if it is not a gate.
    fn task_of(&self, node: usize) -> Option<usize> {
        (node < self.tasks.len()).then_some(node)
    }

    fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        let is_child = move |node: &usize| *node < self.tasks.len() && self.parents[*node] == Some(parent);
        self.needs[parent].iter().copied().filter(is_child)
    }

    /// Puts every task to do in its wave, and finds the tasks that wait for stopped ones.
    fn level(&mut self, order: &[usize]) {
        let count = self.tasks.len();
        // By node: the wave that begins once all that it depends on is done.
        let mut begin = vec![0; 2 * count];
        let mut waits: Vec<Option<usize>> = vec![None; 2 * count];
        for &node in order {
            let own = self.task_of(node);
            for &need in &self.needs[node] {
                let (end, stopped) = match self.task_of(need).map(|it| (it, self.standing[it])) {
                    None | Some((_, TaskReadiness::InParts)) => (begin[need], waits[need]),
                    Some((_, TaskReadiness::ToDo)) => (begin[need] + 1, waits[need]),
                    Some((_, TaskReadiness::Done)) => (0, None),
                    // A part that was given up is no reason to wait for the whole.
                    Some((it, TaskReadiness::Stopped)) if own.is_some() && self.parents[it] == own => {
                        let is_given_up = self.tasks[it].status == TaskStatus::Cancelled;
                        (0, (!is_given_up).then_some(it))
                    }
                    Some((it, TaskReadiness::Stopped)) => (begin[need] + 1, Some(it)),
                };
                begin[node] = begin[node].max(end);
                waits[node] = waits[node].or(stopped);
            }
            let is_placed = |standing| matches!(standing, TaskReadiness::ToDo | TaskReadiness::Stopped);
            if let Some(task) = own.filter(|task| is_placed(self.standing[*task])) {
                self.levels[task] = Some(begin[task]);
            }
        }
        waits.truncate(count);
        self.waits_on = waits;
        for task in 0..count {
            if let Some(wave) = self.wave_of(task) {
                self.waves.resize_with(self.waves.len().max(wave + 1), Vec::new);
                self.waves[wave].push(task);
            }
        }
    }

    fn rank_all(&mut self, order: &[usize]) {
        let count = self.tasks.len();
        let mut ranks = vec![0_u64; 2 * count];
        for &node in order.iter().rev() {
            let behind = self.needed_by[node].iter().map(|&by| ranks[by]).max().unwrap_or_default();
            ranks[node] = match self.task_of(node).map(|task| (task, self.standing[task])) {
                Some((task, TaskReadiness::ToDo)) => behind + u64::from(self.tasks[task].complexity.max(1)),
                None | Some((_, TaskReadiness::InParts)) => behind,
                // What depends on it does not wait for it, or waits for ever.
                Some((_, TaskReadiness::Done | TaskReadiness::Stopped)) => 0,
            };
        }
        ranks.truncate(count);
        self.ranks = ranks;
    }

    /// Oddities that do not keep the plan from running.
    fn oddities(&self) -> Vec<Problem> {
        const FIBONACCI: [u32; 11] = [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
        let mut problems = Vec::new();
        for (at, task) in self.tasks.iter().enumerate() {
            if !FIBONACCI.contains(&task.complexity) {
                problems.push(Problem::Complexity { task: task.id.clone(), complexity: task.complexity });
            }
            if task.status == TaskStatus::Expanded && self.children(at).next().is_none() {
                problems.push(Problem::NothingInItsPlace(task.id.clone()));
            }
            if !matches!(self.standing[at], TaskReadiness::ToDo | TaskReadiness::InParts) {
                continue;
            }
            for on in self.needs[at].iter().filter_map(|node| self.task_of(*node)) {
                let is_given_up =
                    self.parents[on] == Some(at) && self.tasks[on].status == TaskStatus::Cancelled;
                if self.standing[on] == TaskReadiness::Stopped && !is_given_up {
                    let (task, on) = (task.id.clone(), &self.tasks[on]);
                    problems.push(Problem::WaitsOn { task, on: on.id.clone(), status: on.status });
                }
            }
        }
        problems
    }
}

/// Every node after all that it needs. Those of a cycle, and those after them, are omitted.
fn order(needs: &[Vec<usize>], needed_by: &[Vec<usize>]) -> Vec<usize> {
    let mut open: Vec<usize> = (0..needs.len()).map(|node| needs[node].len()).collect();
    let mut ready: VecDeque<usize> = (0..needs.len()).filter(|node| open[*node] == 0).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(node) = ready.pop_front() {
        order.push(node);
        for &by in &needed_by[node] {
            open[by] -= 1;
            if open[by] == 0 {
                ready.push_back(by);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests;
