//! Resolves the ids that tasks name; reports the unknown ones.

use std::collections::{HashMap, HashSet};

use crate::plan::{Problem, Task, TaskId};
use crate::text::nearest;

/// For how many unknown names the nearest known one is suggested: comparing each with all would not be linear.
const GUESSED: usize = 20;

/// For each node the nodes that its edges lead to, ascending, each once.
pub(crate) type Edges = Vec<Vec<usize>>;

pub(crate) fn edges(nodes: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Edges {
    let mut edges = vec![Vec::new(); nodes];
    pairs.into_iter().for_each(|(from, to)| edges[from].push(to));
    for to in &mut edges {
        to.sort_unstable();
        to.dedup();
    }
    edges
}

pub(crate) fn index(tasks: &[Task], problems: &mut Vec<Problem>) -> HashMap<TaskId, usize> {
    let mut index = HashMap::with_capacity(tasks.len());
    let mut told = HashSet::new();
    for (at, task) in tasks.iter().enumerate() {
        if *index.entry(task.id.clone()).or_insert(at) != at && told.insert(&task.id) {
            problems.push(Problem::Duplicate(task.id.clone()));
        }
    }
    index
}

/// The task that was probably meant by a name, for the first few of them.
fn guess(tasks: &[Task], named: &TaskId, problems: &[Problem]) -> Option<TaskId> {
    if problems.len() >= GUESSED {
        return None;
    }
    let near = nearest(named.as_str(), tasks.iter().map(|task| task.id.as_str()))?;
    near.parse().ok()
}

pub(crate) fn parents(
    tasks: &[Task],
    index: &HashMap<TaskId, usize>,
    problems: &mut Vec<Problem>,
) -> Vec<Option<usize>> {
    let mut parents = Vec::with_capacity(tasks.len());
    for task in tasks {
        let parent = task.parent.as_ref().and_then(|named| {
            let found = index.get(named).copied();
            if found.is_none() {
                let nearest = guess(tasks, named, problems);
                let (task, named) = (task.id.clone(), named.clone());
                problems.push(Problem::Unknown { task, named, as_parent: true, nearest });
            }
            found
        });
        parents.push(parent);
    }
    parents
}

/// What each task, and after all tasks each gate, depends on.
pub(crate) fn needs(
    tasks: &[Task],
    index: &HashMap<TaskId, usize>,
    parents: &[Option<usize>],
    problems: &mut Vec<Problem>,
) -> Edges {
    let count = tasks.len();
    let mut pairs = Vec::with_capacity(2 * count);
    for (at, task) in tasks.iter().enumerate() {
        if let Some(parent) = parents[at] {
            // It comes after its parent's gate, and so does its own gate; the parent is done after it.
            pairs.extend([(at, count + parent), (count + at, count + parent), (parent, at)]);
        }
        for named in &task.dependencies {
            match index.get(named) {
                Some(&on) if on == at => problems.push(Problem::OnItself(task.id.clone())),
                Some(&on) => {
                    pairs.push((at, on));
                    // Its own parts are no reason for its parts to wait.
                    if !is_part_of(on, at, parents) {
                        pairs.push((count + at, on));
                    }
                }
                None => {
                    let nearest = guess(tasks, named, problems);
                    let (task, named) = (task.id.clone(), named.clone());
                    problems.push(Problem::Unknown { task, named, as_parent: false, nearest });
                }
            }
        }
    }
    edges(2 * count, pairs)
}

fn is_part_of(part: usize, whole: usize, parents: &[Option<usize>]) -> bool {
    std::iter::successors(parents[part], |above| parents[*above]).any(|above| above == whole)
}
