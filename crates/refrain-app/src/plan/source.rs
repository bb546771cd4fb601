//! The tasks that are meant: the options that every verb of `plan` takes, and the file that they come to.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::plan::{Graph, Problem};
use refrain_core::text::nearest;
use refrain_engine::tasks::{self, TaskFile, TasksError};

use crate::error::{Code, Message, RequestError};
use crate::{Context, Note};

// The tasks that are meant: a doc comment would be taken for the help of the verb.
#[derive(Debug, Default, clap::Args)]
pub struct SourceArgs {
    /// The tag of the tasks in .scud/tasks [default: the active one, or the only one]
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// The plan in Markdown, with headings `Task 1: …` or a list of `- [ ]`, or a task file of SCUD
    #[arg(long, value_name = "FILE")]
    pub plan: Option<Utf8PathBuf>,
}

pub struct Source {
    pub file: TaskFile,
    /// The shell command that proves every task, where the file names one.
    pub verification: Option<String>,
    pub graph: Graph,
    /// What is odd about the file, and wrong with the graph.
    pub problems: Vec<Problem>,
}

impl SourceArgs {
    /// As they are typed, each after a space.
    #[must_use]
    pub fn as_words(&self) -> String {
        let words =
            [("--tag", self.tag.as_deref()), ("--plan", self.plan.as_ref().map(|plan| plan.as_str()))];
        let words =
            words.into_iter().filter_map(|(name, value)| Some((name, shlex::try_quote(value?).ok()?)));
        words.map(|(name, value)| format!(" {name} {value}")).collect()
    }

    /// Where the plan is: two spellings are one file.
    pub fn path(&self, context: &Context) -> Option<Utf8PathBuf> {
        self.plan.as_ref().map(|plan| context.real(plan))
    }

    pub fn read(&self, context: &Context, note: Note<'_>) -> Result<Source, RequestError> {
        let service = context.service()?;
        let path = self.path(context);
        let file = tasks::find(service.project(), self.tag.as_deref(), path.as_deref()).map_err(|error| {
            match (&error, &self.plan) {
                // A file that was named on the command line: what was said of it cannot be taken.
                (TasksError::Disk(cause), Some(plan)) => {
                    let error = Message::from("--plan ").then(format!("{plan}: {}", cause.source));
                    let error = RequestError::usage(error);
                    match beside(&cause.path) {
                        Some(meant) => error.hint(format!("did you mean {}?", plan.with_file_name(meant))),
                        None => error.hint("accepted: a plan in Markdown, or a task file"),
                    }
                }
                _ => error.into(),
            }
        })?;
        if let (Some(plan), None) = (&self.plan, &self.tag)
            && path.as_ref() != Some(&file.path)
        {
            let meant = format!("the tasks are those of {} in {}", file.tag, file.path);
            note(format!("{meant}; {plan} is read for what it says of them"));
        }
        let tasks = file.read()?.tasks;
        if tasks.tasks.is_empty() {
            let error = format!("there are no tasks of {} in {}", file.tag, file.path);
            let next = "put some there, or name another --tag";
            return Err(RequestError::new(Code::NotFound, error).hint(next));
        }
        let (graph, found) = Graph::build(tasks.tasks);
        let problems = tasks.odd.into_iter().chain(found).collect();
        Ok(Source { file, verification: tasks.verification, graph, problems })
    }
}

/// The file beside one that is not there that was probably meant: a plan, or a task file.
fn beside(path: &Utf8Path) -> Option<String> {
    let entries = path.parent()?.read_dir_utf8().ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_owned());
    let names: Vec<_> = names
        .filter(|name| matches!(Utf8Path::new(name).extension(), Some("md" | "markdown" | "json" | "scg")))
        .collect();
    nearest(path.file_name()?, names.iter().map(String::as_str)).map(str::to_owned)
}
