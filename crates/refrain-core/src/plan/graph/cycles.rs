//! Tasks that wait for each other, or are parts of each other, and the path of each cycle.

use std::collections::{HashMap, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::plan::{Problem, Task};

/// Removes the parent of the first task of each ring of parents, and reports the ring.
pub(crate) fn cut_parents(tasks: &[Task], parents: &mut [Option<usize>], problems: &mut Vec<Problem>) {
    // The last walk that passed here: a walk that meets itself is a ring.
    let mut seen = vec![usize::MAX; tasks.len()];
    for start in 0..tasks.len() {
        let mut at = start;
        while seen[at] == usize::MAX {
            seen[at] = start;
            let Some(parent) = parents[at] else { break };
            at = parent;
        }
        // An end of the walk has no parent; one that others walked before holds no new ring.
        if seen[at] != start || parents[at].is_none() {
            continue;
        }
        let mut ring = vec![tasks[at].id.clone()];
        let mut next = parents[at];
        while let Some(it) = next {
            ring.push(tasks[it].id.clone());
            next = parents[it].filter(|_| it != at);
        }
        parents[at] = None;
        problems.push(Problem::PartOfItself(ring));
    }
}

/// One cycle, the shortest from its first task on, for each set of tasks that wait for each other. `order` has the
/// other nodes.
pub(crate) fn find(tasks: &[Task], needs: &[Vec<usize>], order: &[usize]) -> Vec<Problem> {
    if order.len() == needs.len() {
        return Vec::new();
    }
    let mut is_ordered = vec![false; needs.len()];
    order.iter().for_each(|node| is_ordered[*node] = true);
    let mut graph = DiGraph::<usize, ()>::new();
    let left: Vec<usize> = (0..needs.len()).filter(|node| !is_ordered[*node]).collect();
    let nodes: HashMap<usize, _> = left.iter().map(|node| (*node, graph.add_node(*node))).collect();
    for node in &left {
        for to in needs[*node].iter().filter_map(|to| nodes.get(to)) {
            graph.add_edge(nodes[node], *to, ());
        }
    }
    let sets = kosaraju_scc(&graph).into_iter().filter(|set| set.len() > 1);
    let mut paths: Vec<Vec<usize>> = sets
        .filter_map(|set| {
            let set: Vec<usize> = set.into_iter().map(|node| graph[node]).collect();
            shortest(&set, needs)
        })
        .collect();
    paths.sort_unstable();
    let named = |path: Vec<usize>| {
        // A gate counts as its task: its subtasks wait for what that one waits for.
        let mut ids: Vec<_> = path.into_iter().map(|node| tasks[node % tasks.len()].id.clone()).collect();
        ids.dedup();
        Problem::Cycle(ids)
    };
    paths.into_iter().map(named).collect()
}

/// The shortest way from the first node of a set back to itself, within the set; that node is at both ends.
fn shortest(set: &[usize], needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let start = *set.iter().min()?;
    let mut from: HashMap<usize, Option<usize>> = set.iter().map(|node| (*node, None)).collect();
    let mut next = VecDeque::from([start]);
    while let Some(node) = next.pop_front() {
        for &to in &needs[node] {
            if to == start {
                let mut path: Vec<_> = std::iter::successors(Some(node), |at| from[at]).collect();
                path.reverse();
                path.push(start);
                return Some(path);
            }
            if let Some(step @ None) = from.get_mut(&to) {
                *step = Some(node);
                next.push_back(to);
            }
        }
    }
    None
}
