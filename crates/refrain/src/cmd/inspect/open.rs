//! `refrain open`.

use std::ffi::OsStr;
use std::process::ExitCode;

use camino::Utf8Path;
use refrain_app::verbs::discard::brings_back;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::{ByKind, chain, tool};

use crate::values;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which loop or plan [default: the one that was touched last]
    id: Option<LoopId>,
    /// Open a shell, and no editor
    #[arg(long)]
    shell: bool,
}

const EXAMPLES: &str = "Examples:
  refrain open
  refrain open docs-3f9c --shell";

/// Opens the editor of the user, or their shell, in the folder that the loop works in.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::latest(&service, args.id.as_ref(), "refrain open")?;
    let (folder, branch) = match service.standing(&id)? {
        ByKind::Plan(plan) => (plan.project, None),
        ByKind::Loop(status) => (status.worktree, status.branch),
    };
    if !Utf8Path::new(&folder).is_dir() {
        let error =
            RequestError::new(Code::Failed, format!("{id}: its worktree {folder} is not there any more"));
        return Err(match (service.discarded(&id), branch) {
            (Some(reference), branch) => error.hint(brings_back(&id, branch.as_deref(), &reference)),
            (None, Some(branch)) => {
                error.hint(format!("its work is on branch {branch}: git switch {branch}"))
            }
            (None, None) => error,
        });
    }
    let editor = context.variable("VISUAL").or_else(|| context.variable("EDITOR")).filter(|_| !args.shell);
    let words = match editor {
        Some(editor) => shlex::split(editor)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| RequestError::usage(format!("EDITOR: {editor:?} is no command line")))?,
        None => vec![context.variable("SHELL").unwrap_or("sh").to_owned()],
    };
    let (program, options) = words.split_first().ok_or_else(|| RequestError::usage("EDITOR is empty"))?;
    let arguments: Vec<&OsStr> =
        options.iter().map(OsStr::new).chain(editor.map(|_| OsStr::new("."))).collect();
    match tool::at_terminal(program, &arguments, Utf8Path::new(&folder).as_std_path()) {
        Ok(true) => Ok(Code::Done.into()),
        Ok(false) => Ok(Code::Failed.into()),
        Err(error) => Err(RequestError::new(Code::Failed, chain(&error))
            .hint("VISUAL, EDITOR and SHELL name the program that is started")),
    }
}
