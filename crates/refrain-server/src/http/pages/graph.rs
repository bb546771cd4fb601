//! The tasks of a plan as a picture: a column for each wave, a line for each dependency.

use refrain_core::plan::TaskId;
use refrain_core::text::cut;
use refrain_core::view::plan::TaskView;

/// The picture.
pub(super) struct Graph {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// That one task waits for another.
pub(super) struct Edge {
    /// The line, as SVG draws it.
    pub(super) path: String,
    pub(super) is_critical: bool,
}

/// A task.
pub(super) struct Node {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) text_x: usize,
    pub(super) text_y: usize,
    pub(super) name: String,
    pub(super) says: String,
    pub(super) status: &'static str,
    pub(super) is_critical: bool,
}

const COLUMN: usize = 200;
const LINE: usize = 40;
const WIDTH: usize = 150;

/// Draws these tasks and the critical path.
pub(super) fn graph(tasks: &[TaskView], critical: &[TaskId]) -> Graph {
    let mut heights = Vec::<usize>::new();
    let mut nodes = Vec::new();
    let placed: Vec<_> = tasks.iter().filter_map(|task| Some((task, task.wave?))).collect();
    let first = placed.iter().map(|(_, wave)| *wave).min().unwrap_or_default();
    for (task, wave) in &placed {
        let column = usize::try_from(wave.saturating_sub(first)).unwrap_or(0);
        heights.resize(heights.len().max(column + 1), 0);
        let (x, y) = (column * COLUMN + 8, heights[column] * LINE + 8);
        heights[column] += 1;
        let name = cut(&format!("{} {}", task.id, task.title), 21).into_owned();
        let says = format!("{} {}: {}", task.id, task.title, task.status.as_str());
        let is_critical = critical.contains(&task.id);
        let status = task.status.as_str();
        nodes.push(Node { x, y, text_x: x + 6, text_y: y + 18, name, says, status, is_critical });
    }
    let place = |id| placed.iter().position(|(task, _)| task.id == id).and_then(|place| nodes.get(place));
    let mut edges = Vec::new();
    for (at, (task, _)) in placed.iter().enumerate() {
        for dependency in &task.dependencies {
            if let (Some(from), Some(to)) = (place(dependency.clone()), nodes.get(at)) {
                let (x, y, to_x, to_y) = (from.x + WIDTH, from.y + 14, to.x, to.y + 14);
                // It leaves and arrives horizontally, so that crossing lines can be told apart.
                let path =
                    format!("M{x} {y}C{} {y} {} {to_y} {to_x} {to_y}", x + 30, to_x.saturating_sub(30));
                let is_critical =
                    critical.windows(2).any(|pair| pair[0] == *dependency && pair[1] == task.id);
                edges.push(Edge { path, is_critical });
            }
        }
    }
    let height = heights.iter().max().copied().unwrap_or(0) * LINE + 16;
    Graph { width: heights.len() * COLUMN, height, nodes, edges }
}
