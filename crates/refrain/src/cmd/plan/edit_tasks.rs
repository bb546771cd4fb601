//! `refrain plan add`, `retry` and `block`: changes of the tasks of a plan, in its task file.

use std::process::ExitCode;

use refrain_app::plan::edit_tasks::{AddTask, add_task, edit_task};
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::plan::{TaskEdit, TaskId};
use refrain_core::view::StatusWord;
use refrain_core::view::plan::PlanStatus;
use refrain_engine::Service;

use super::selection;
use crate::out;

/// Which plan.
#[derive(Debug, clap::Args)]
struct PlanArgs {
    /// The plan [default: the only one that can continue]
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    /// The tag of its tasks
    #[arg(long, value_name = "TAG", conflicts_with = "name")]
    tag: Option<String>,
}

/// Add a task to a plan, at the end of its task file
///
/// A running plan takes the task up by itself; a stopped one when it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan add \"Document the new option\" --after 2 --after 3
  refrain plan add \"Mend the parser\" --text \"Lists of lists are refused.\" --tag web")]
pub(crate) struct AddArgs {
    /// What is to be done, in a line
    title: String,
    /// The rest, for its agent
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// A task that has to be done first
    #[arg(long, value_name = "TASK")]
    after: Vec<TaskId>,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Try a task again that was given up or blocked
///
/// A running plan tries it again by itself; a stopped one when it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan retry 3
  refrain plan retry 2.1 --tag web")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    which: TaskArgs,
}

/// Block a task that has not started
///
/// Tasks that depend on it wait. `refrain plan retry` undoes this.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain plan block 3
  refrain plan block 2.1 --tag web")]
pub(crate) struct BlockArgs {
    #[command(flatten)]
    which: TaskArgs,
}

#[derive(Debug, clap::Args)]
struct TaskArgs {
    /// Which task
    task: TaskId,
    #[command(flatten)]
    plan: PlanArgs,
}

impl PlanArgs {
    fn only(&self, service: &Service, verb: &str) -> Result<LoopId, RequestError> {
        let can_continue =
            |plan: &PlanStatus| !matches!(plan.status, StatusWord::Completed | StatusWord::Cancelled);
        let verb = (verb, "all plans here are over");
        selection::only(service, (self.name.as_ref(), self.tag.as_deref()), verb, can_continue)
    }
}

pub(crate) fn add(context: &Context, args: AddArgs) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = args.plan.only(&service, "refrain plan add")?;
    let task = AddTask { title: args.title, text: args.text, after: args.after };
    let added = add_task(context, &service, &id, &task)?;
    report(&service, &id, &format!("task {added} was added"))
}

pub(crate) fn retry(context: &Context, args: &RetryArgs) -> Result<ExitCode, RequestError> {
    edit(context, &args.which, (TaskEdit::Retry, "refrain plan retry", "is to be tried again"))
}

pub(crate) fn block(context: &Context, args: &BlockArgs) -> Result<ExitCode, RequestError> {
    edit(
        context,
        &args.which,
        (TaskEdit::Block, "refrain plan block", "is blocked: the plan does not start it"),
    )
}

fn edit(
    context: &Context,
    TaskArgs { task, plan }: &TaskArgs,
    (edit, verb, result): (TaskEdit, &str, &str),
) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = plan.only(&service, verb)?;
    edit_task(context, &service, &id, (task, edit))?;
    report(&service, &id, &format!("task {task} {result}"))
}

fn report(service: &Service, id: &LoopId, result: &str) -> Result<ExitCode, RequestError> {
    let next = match service.is_plan_driven(id)? {
        true => format!("{id} takes it from the task file"),
        false => format!("refrain plan resume {id} continues"),
    };
    out::print(&format!("{result}; {next}\n"));
    Ok(Code::Done.into())
}
