use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use camino::Utf8Path;
use refrain_app::verbs::discard::brings_back;
use refrain_app::{Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_engine::ByKind;

use crate::values;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain open
  refrain open docs-3f9c --shell")]
pub(crate) struct Args {
    /// Which loop or plan [default: the one that was touched last]
    id: Option<LoopId>,
    /// Open a shell, and no editor
    #[arg(long)]
    shell: bool,
}

/// Opens the editor of the user, or their shell, in the folder that the loop works in.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let id = values::latest(&service, args.id.as_ref(), "refrain open")?;
    let (folder, branch) = match service.standing(&id)? {
        ByKind::Plan(plan) => (plan.project, None),
        ByKind::Loop(status) => (status.worktree, status.branch),
    };
    if !Utf8Path::new(&folder).is_dir() {
        let has_no_work =
            service.discarded(&id).is_none() && service.state(&id).is_ok_and(|it| it.has_lost_branch());
        if has_no_work {
            let text = format!(
                "{id} committed nothing, so its worktree and its branch were removed: there is nothing to open"
            );
            return Err(
                RequestError::new(Code::Refused, text).hint(format!("refrain report {id} shows what it did"))
            );
        }
        if service.state(&id).is_ok_and(|it| it.lacks_worktree()) {
            let text = format!("{id}: its worktree {folder} is not made yet: there is nothing to open");
            return Err(RequestError::new(Code::Refused, text)
                .hint(format!("refrain status {id} says how it stands, and how it continues")));
        }
        let error =
            RequestError::new(Code::Refused, format!("{id}: its worktree {folder} is not there any more"));
        return Err(match (service.discarded(&id), branch) {
            (Some(reference), branch) => error.hint(brings_back(&id, branch.as_deref(), &reference)),
            (None, Some(branch)) if service.has_branch(&branch) => {
                error.hint(format!("its work is on branch {branch}: git switch {branch}"))
            }
            (None, Some(_)) => error.hint(format!("refrain report {id} names its commits")),
            (None, None) => error,
        });
    }
    let folder = Utf8Path::new(&folder);
    let editor = if args.shell { None } else { values::editor(context)? };
    match editor {
        Some(words) => values::open(context, &words, Some("."), folder),
        None if !args.shell && !stdin().is_terminal() => {
            let error = "refrain open starts no shell without a terminal; accepted: --shell, or an editor in VISUAL or EDITOR";
            Err(RequestError::usage(error).hint(format!("{id} worked in {folder}")))
        }
        None => values::open(context, &[context.variable("SHELL").unwrap_or("sh").to_owned()], None, folder),
    }
}
