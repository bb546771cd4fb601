//! Changes of the tasks of a plan: in its task file, which the plan obeys.

use refrain_core::plan::file::NewTask;
use refrain_core::plan::{TaskEdit, TaskId, TaskRefusal};
use refrain_core::{LoopId, MachineEnd};
use refrain_engine::Service;
use schemars::JsonSchema;
use serde::Deserialize;

use super::tune::LONGEST;
use crate::error::Code;
use crate::verbs::resume::another_plan;
use crate::{Action, Context, RequestError};

/// The longest title of a task, in characters.
pub const LONGEST_TITLE: usize = 200;

/// A task to add to a plan.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    /// What is to be done, in a line.
    #[schemars(length(min = 1, max = LONGEST_TITLE))]
    pub title: String,
    /// The rest, for its agent.
    #[serde(default)]
    #[schemars(length(max = LONGEST))]
    pub text: Option<String>,
    /// The tasks that have to be done first.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub after: Vec<TaskId>,
}

/// A task of a plan.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedTask {
    /// Which task.
    #[schemars(with = "String")]
    pub task: TaskId,
}

impl AddTask {
    /// Refuses what no task file can hold.
    pub fn check(&self) -> Result<(), RequestError> {
        let title = self.title.trim();
        if title.is_empty() || title.chars().count() > LONGEST_TITLE || title.contains(char::is_control) {
            let accepted = format!("1 to {LONGEST_TITLE} characters in one line");
            return Err(RequestError::usage(format!("the title of the task; accepted: {accepted}")));
        }
        let text = self.text.as_deref().unwrap_or_default();
        if text.chars().count() > LONGEST || text.contains('\0') {
            let accepted = format!("at most {LONGEST} characters, and no NUL");
            return Err(RequestError::usage(format!("the text of the task; accepted: {accepted}")));
        }
        Ok(())
    }
}

/// Adds a task to the file of the plan, and returns its id.
pub fn add_task(
    context: &Context,
    service: &Service,
    id: &LoopId,
    task: &AddTask,
) -> Result<TaskId, RequestError> {
    context.check_on(Action::EditTasks, service, id)?;
    task.check()?;
    check_open(service, id)?;
    let text = task.text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let task = NewTask { title: task.title.trim().to_owned(), text, dependencies: task.after.clone() };
    Ok(service.add_task(id, &task)?)
}

/// Has a task tried again, or leaves it out.
pub fn edit_task(
    context: &Context,
    service: &Service,
    id: &LoopId,
    (task, edit): (&TaskId, TaskEdit),
) -> Result<(), RequestError> {
    context.check_on(Action::EditTasks, service, id)?;
    check_open(service, id)?;
    let state = service.plan(id)?;
    let change = state.edit(task, edit).map_err(|why| match why {
        TaskRefusal::NoTask(_) => {
            let known: Vec<_> = state.tasks.iter().map(|task| task.card.id.as_str()).collect();
            RequestError::new(Code::NotFound, format!("{why} in {id}; there are: {}", known.join(", ")))
        }
        TaskRefusal::Unfit(..) => RequestError::new(Code::Refused, why.to_string()),
    })?;
    match service.set_task(id, change)? {
        true => Ok(()),
        false => {
            let error = format!("task {task} has another status in its file by now, which stays");
            Err(RequestError::new(Code::Refused, error).hint(format!("look with refrain plan status {id}")))
        }
    }
}

/// Refuses a plan that can do nothing more.
pub fn check_open(service: &Service, id: &LoopId) -> Result<(), RequestError> {
    let state = service.plan(id)?;
    let Some(ended) = state.ended.filter(|_| state.is_final()) else { return Ok(()) };
    let error = format!("the tasks of plan {id} cannot be changed: it is {}", ended.end.name());
    Err(RequestError::new(Code::Refused, error).hint(another_plan(service, id)))
}
