//! Whose tasks are meant: the options that every verb of `plan` takes, and the file that they come to.

use camino::Utf8PathBuf;
use refrain_core::plan::{Graph, Problem};
use refrain_engine::tasks::{self, TaskFile, TasksError};

use crate::cli::Context;
use crate::error::CliError;

/// Whose tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// The tag of the tasks in .scud/tasks; the active one, or the only one, where it is left out
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// The plan, in Markdown: its headings `Task 1: …`, or its list of `- [ ]`, are the tasks where no tag is given. A file of
    /// tasks in one of SCUD's shapes will do too
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<Utf8PathBuf>,
}

/// A task file, and what it says.
pub(crate) struct Source {
    pub(crate) file: TaskFile,
    /// The shell command that proves every task, where the file names one.
    pub(crate) verification: Option<String>,
    pub(crate) graph: Graph,
    /// What is odd about the file, and wrong with the graph.
    pub(crate) problems: Vec<Problem>,
}

impl SourceArgs {
    /// Finds the file and reads it.
    pub(crate) fn read(&self, context: &Context) -> Result<Source, CliError> {
        let service = context.service()?;
        let path = self.plan.as_ref().map(|path| context.dir.join(path));
        let file = tasks::find(service.project(), self.tag.as_deref(), path.as_deref()).map_err(|error| {
            match (&error, &self.plan) {
                // A file that was named on the command line: what was said of it cannot be taken.
                (TasksError::Disk(cause), Some(plan)) => {
                    CliError::usage(format!("--plan {plan}: {}", cause.source))
                }
                _ => error.into(),
            }
        })?;
        let tasks = file.read()?.tasks;
        let (graph, found) = Graph::build(tasks.tasks);
        let problems = tasks.odd.into_iter().chain(found).collect();
        Ok(Source { file, verification: tasks.verification, graph, problems })
    }
}
