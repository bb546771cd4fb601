//! What agents of tasks are told besides their task: the options of every verb of `plan` that has to do with it, and the files
//! that they come to.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::plan::BriefSpec;
use refrain_core::plan::brief::{MAX_TOKENS, PlanDocument, Sources, SpecFile, SpecTemplate};
use refrain_core::plan::file::Shape;

use super::source::{Source, SourceArgs};
use crate::cli::Context;
use crate::error::CliError;

/// No file that is told is longer, in bytes: no agent takes more (agent-clis.md, trap 1).
const LONGEST: u64 = 10 << 20;

/// What agents are told besides their task.
#[derive(Debug, clap::Args)]
pub(crate) struct SpecArgs {
    /// A file that the agent of every task is told as it is; may be said again
    #[arg(long, value_name = "FILE")]
    spec_file: Vec<Utf8PathBuf>,
    /// How many tokens a specification may have before it is warned of; nothing is ever cut
    #[arg(long, value_name = "N", default_value_t = MAX_TOKENS)]
    pub(crate) max_spec_tokens: u64,
    /// A file with {task}, {plan}, {custom} and {verification} where the parts of a specification are to stand
    #[arg(long, value_name = "FILE")]
    spec_template: Option<Utf8PathBuf>,
    /// The shell command that proves a task done that names none of its own
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Option<String>,
}

/// What stands in the files.
pub(crate) struct SpecTexts {
    plan: Option<PlanDocument>,
    files: Vec<SpecFile>,
    /// The shell commands that prove every task which names none of its own.
    pub(crate) verification: Vec<String>,
    template: Option<SpecTemplate>,
}

impl SpecArgs {
    /// The same, as a plan keeps it: where the files are, as they are read anew for each task.
    pub(crate) fn brief(&self, context: &Context, plan: &SourceArgs) -> Result<BriefSpec, CliError> {
        let document = plan.plan.as_ref().filter(is_document);
        Ok(BriefSpec {
            document: document.map(|path| context.dir.join(path)),
            files: self.spec_file.iter().map(|path| context.dir.join(path)).collect(),
            max_tokens: self.max_spec_tokens,
            template: self.template(context)?,
        })
    }

    fn template(&self, context: &Context) -> Result<Option<SpecTemplate>, CliError> {
        let template = self.spec_template.as_ref().map(|path| {
            let template = text(context, "--spec-template", path)?;
            template.parse().map_err(|error| CliError::usage(format!("--spec-template {path}: {error}")))
        });
        template.transpose()
    }

    /// Reads the files; `plan` says which the plan is, `source` what it came to.
    pub(crate) fn read(
        &self,
        context: &Context,
        plan: &SourceArgs,
        source: &Source,
    ) -> Result<SpecTexts, CliError> {
        if self.verify.as_ref().is_some_and(|command| command.trim().is_empty()) {
            return Err(CliError::usage("--verify is empty; accepted is a shell command"));
        }
        let plan = plan.plan.as_ref().filter(is_document);
        let plan =
            plan.map(|path| text(context, "--plan", path)).transpose()?.map(|plan| match source.file.shape {
                Shape::Markdown => PlanDocument::of_task_file(&plan, source.graph.tasks()),
                Shape::TagJson | Shape::TagsJson | Shape::Scg => PlanDocument::read(plan),
            });
        let file = |path: &Utf8PathBuf| {
            let name = path.file_name().unwrap_or(path.as_str()).to_owned();
            Ok::<_, CliError>(SpecFile { name, text: text(context, "--spec-file", path)? })
        };
        Ok(SpecTexts {
            plan,
            files: self.spec_file.iter().map(file).collect::<Result<_, _>>()?,
            verification: self.verify.iter().chain(&source.verification).take(1).cloned().collect(),
            template: self.template(context)?,
        })
    }
}

impl SpecTexts {
    /// What a specification is made of.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            plan: self.plan.as_ref(),
            files: &self.files,
            verification: &self.verification,
            template: self.template.as_ref(),
        }
    }
}

/// A task file in one of SCUD's shapes is no plan that anybody could read.
fn is_document(path: &&Utf8PathBuf) -> bool {
    !matches!(path.extension(), Some("json" | "scg"))
}

/// The text of a file that was named on the command line.
fn text(context: &Context, flag: &str, path: &Utf8Path) -> Result<String, CliError> {
    let refused = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("{flag} {path}: {why}; accepted is a readable file of UTF-8 text"))
    };
    let whole = context.dir.join(path);
    let meta = fs::metadata(&whole).map_err(|error| refused(&error))?;
    // What is no file may never end.
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(refused(&format!("it is no file of at most {LONGEST} bytes")));
    }
    fs::read_to_string(&whole).map_err(|error| refused(&error))
}
