//! The prompts of task agents besides their task: the options of every verb of `plan` that has to do with it.

use camino::Utf8PathBuf;
use refrain_core::plan::BriefSpec;
use refrain_core::plan::brief::{MAX_TOKENS, SpecTemplate, SpecTemplateError};
use refrain_engine::read_told;

use super::source::SourceArgs;
use crate::Context;
use crate::error::RequestError;
use crate::options::values;

// What agents are told besides their task.
#[derive(Debug, clap::Args)]
pub struct SpecArgs {
    /// A file that is part of the prompt of every task; may be repeated
    #[arg(long, value_name = "FILE")]
    pub spec_file: Vec<Utf8PathBuf>,
    /// Warn if a specification has more tokens; nothing is cut
    #[arg(long, value_name = "N", default_value_t = MAX_TOKENS, allow_negative_numbers = true, value_parser = values::tokens)]
    pub max_spec_tokens: u64,
    /// A template of the specification, with {task}, {plan}, {custom} and {verification}
    #[arg(long, value_name = "FILE")]
    pub spec_template: Option<Utf8PathBuf>,
    /// The required gate of each task that names no command of its own
    #[arg(long, value_name = "CMD")]
    pub verify: Option<String>,
}

impl Default for SpecArgs {
    fn default() -> Self {
        Self { spec_file: Vec::new(), max_spec_tokens: MAX_TOKENS, spec_template: None, verify: None }
    }
}

impl SpecArgs {
    /// The same, as a plan keeps it: where the files are, as they are read anew for each task.
    pub fn brief(&self, context: &Context, plan: &SourceArgs) -> Result<BriefSpec, RequestError> {
        if self.verify.as_ref().is_some_and(|command| command.trim().is_empty()) {
            return Err(RequestError::usage("--verify is empty; accepted: a shell command"));
        }
        Ok(BriefSpec {
            document: plan.path(context).filter(is_document),
            files: self.spec_file.iter().map(|path| context.real(path)).collect(),
            max_tokens: self.max_spec_tokens,
            template: self.template(context)?,
        })
    }

    fn template(&self, context: &Context) -> Result<Option<SpecTemplate>, RequestError> {
        let template = self.spec_template.as_ref().map(|path| {
            let refused = |why: String| RequestError::usage(format!("--spec-template {path}: {why}"));
            let template = read_told(&context.real(path)).map_err(|error| {
                refused(format!("{}; accepted: a readable file of UTF-8 text", error.source))
            })?;
            template.parse().map_err(|error: SpecTemplateError| refused(error.to_string()))
        });
        template.transpose()
    }
}

/// A task file in one of SCUD's shapes is data, not a readable plan.
fn is_document(path: &Utf8PathBuf) -> bool {
    !matches!(path.extension(), Some("json" | "scg"))
}
