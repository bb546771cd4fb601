//! What is shown of a plan before it runs: the objects that `plan check --json` and `plan waves --json` print.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Graph, Problem, TaskId, TaskReadiness, TaskStatus};
use crate::serde_default::is_default;

const SCHEMA: u32 = 1;

/// What is wrong with a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanCheck {
    /// The version of this shape.
    pub schema: u32,
    /// The task file.
    pub file: String,
    /// The tag.
    pub tag: String,
    /// How many tasks there are.
    pub tasks: usize,
    /// How many of them are to be done.
    pub to_do: usize,
    /// In how many waves.
    pub waves: usize,
    /// Whether it can be run: no problem is an error.
    pub ok: bool,
    /// What is wrong, errors first.
    pub problems: Vec<PlanProblem>,
}

/// One thing that is wrong, or odd.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanProblem {
    /// What kind of problem.
    pub kind: &'static str,
    /// Whether the plan cannot be run as it is.
    pub error: bool,
    /// The tasks that it is about.
    pub tasks: Vec<TaskId>,
    /// The same in words.
    pub text: String,
}

impl PlanCheck {
    pub fn of(file: &str, tag: &str, graph: &Graph, problems: &[Problem]) -> Self {
        let mut problems: Vec<_> = problems.iter().map(PlanProblem::of).collect();
        problems.sort_by_key(|problem| !problem.error);
        Self {
            schema: SCHEMA,
            file: file.to_owned(),
            tag: tag.to_owned(),
            tasks: graph.tasks().len(),
            to_do: graph.to_do(),
            waves: graph.waves().iter().filter(|wave| !wave.is_empty()).count(),
            ok: problems.iter().all(|problem| !problem.error),
            problems,
        }
    }

    /// The same of a plan that cannot begin in this project as it is now.
    pub fn that_cannot_begin(mut self, why: &str) -> Self {
        let text = format!("it cannot begin here: {why}");
        self.problems
            .insert(0, PlanProblem { kind: PlanProblem::CANNOT_BEGIN, error: true, tasks: Vec::new(), text });
        Self { ok: false, ..self }
    }
}

impl PlanProblem {
    /// The kind of what is wrong with the place and not with the tasks.
    pub const CANNOT_BEGIN: &'static str = "cannot-begin";

    fn of(problem: &Problem) -> Self {
        let (kind, tasks) = (problem.kind(), problem.tasks().to_vec());
        Self { kind, error: problem.is_error(), tasks, text: problem.to_string() }
    }
}

/// The waves of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Waves {
    /// The version of this shape.
    pub schema: u32,
    /// The task file.
    pub file: String,
    /// The tag.
    pub tag: String,
    /// How many tasks are to be done.
    pub tasks: usize,
    /// How many at a time; null where there is no bound.
    pub jobs: Option<usize>,
    /// How many of them cannot begin, as they wait for a task that will not be done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waiting: usize,
    /// How many rounds the others take: a wave of more tasks than that takes several.
    pub rounds: usize,
    /// How much faster that is than one task after another, were they all equally long.
    pub speed_up: f64,
    /// The waves, the first one first.
    pub waves: Vec<Wave>,
}

/// Tasks that can be done side by side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Wave {
    /// Its number, from 1.
    pub wave: usize,
    /// Its tasks, in the order of their file.
    pub tasks: Vec<InWave>,
}

/// A task in a wave.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InWave {
    /// Its id.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// How hard it is.
    pub complexity: u32,
    /// What has to be done first, and is not yet: inherited from its parent too, and its own subtasks.
    pub depends_on: Vec<TaskId>,
    /// The task that keeps it from beginning because it will not be done; null if there is none.
    pub waits_on: Option<TaskId>,
}

impl Waves {
    /// The waves of a plan, done by at most `jobs` at a time.
    pub fn of(file: &str, tag: &str, graph: &Graph, jobs: Option<usize>) -> Self {
        let tasks = graph.waves().iter().map(Vec::len).sum();
        let can_begin =
            |wave: &Vec<usize>| wave.iter().filter(|task| graph.waits_on(**task).is_none()).count();
        let begun: Vec<usize> = graph.waves().iter().map(can_begin).collect();
        let in_rounds = |wave: &usize| jobs.map_or(1, |jobs| wave.div_ceil(jobs.max(1))).min(*wave);
        let (able, rounds) = (begun.iter().sum(), begun.iter().map(in_rounds).sum());
        let shown = |(number, tasks): (usize, &Vec<usize>)| Wave {
            wave: number,
            tasks: tasks.iter().map(|task| InWave::of(graph, *task)).collect(),
        };
        Self {
            schema: SCHEMA,
            file: file.to_owned(),
            tag: tag.to_owned(),
            tasks,
            jobs,
            waiting: tasks - able,
            rounds,
            speed_up: speed_up(able, rounds),
            waves: (1..).zip(graph.waves()).filter(|(_, tasks)| !tasks.is_empty()).map(shown).collect(),
        }
    }
}

/// To one place: the estimate is no finer.
#[expect(clippy::cast_precision_loss, reason = "a file of tasks is read before that many fit in it")]
fn speed_up(tasks: usize, rounds: usize) -> f64 {
    if rounds == 0 { 1.0 } else { (10.0 * tasks as f64 / rounds as f64).round() / 10.0 }
}

impl InWave {
    fn of(graph: &Graph, at: usize) -> Self {
        let task = &graph.tasks()[at];
        let name = |at: usize| graph.tasks()[at].id.clone();
        let open = graph.dependencies(at).into_iter().filter(|on| graph.standing(*on) != TaskReadiness::Done);
        Self {
            id: task.id.clone(),
            title: task.title.clone(),
            status: task.status,
            complexity: task.complexity,
            depends_on: open.map(name).collect(),
            waits_on: graph.waits_on(at).map(name),
        }
    }
}
