//! Merging the branch of a loop into what is checked out here.

use refrain_core::LoopId;
use refrain_engine::{MergeOptions, MergedBranch, NotMerged, Service};

use crate::error::{Code, Message};
use crate::{Action, Context, RequestError};

/// Merges the branch of the loop.
pub async fn merge(
    context: &Context,
    service: &Service,
    id: &LoopId,
    options: MergeOptions,
) -> Result<MergedBranch, RequestError> {
    context.check_on(Action::Merge, service, id)?;
    service.merge(id, options).await?.map_err(|refusal| refused(id, refusal))
}

fn refused(id: &LoopId, refusal: NotMerged) -> RequestError {
    let error = |text: String| RequestError::new(Code::Refused, text);
    match refusal {
        NotMerged::Running => {
            error(format!("{id} has not stopped")).hint(format!("refrain watch {id} shows it"))
        }
        NotMerged::NoBranch { worked_on } => {
            let place =
                worked_on.map_or_else(|| "your folder".to_owned(), |branch| format!("branch {branch}"));
            error(format!("{id} has no branch of its own: it worked on {place}, which has its work already"))
                .hint(format!(
                    "refrain diff {id} shows it; start loops with --worktree to merge their work yourself"
                ))
        }
        NotMerged::BranchGone(branch) => error(format!("branch {branch} of {id} is gone"))
            .hint(Message::from("git reflog may still name it")),
        NotMerged::Uncommitted { worktree, files } => {
            let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
            error(format!("{id} has {files} that no commit has, in {worktree}"))
                .hint(format!("commit or remove them there, then refrain merge {id} --unverified"))
        }
        NotMerged::CheckedOut(branch) => error(format!("branch {branch} of {id} is checked out here"))
            .hint("git switch BRANCH, then merge again: the work goes into the branch that is checked out"),
        NotMerged::Unverified { has_moved } => {
            let why = if has_moved {
                "its branch was changed after it was verified"
            } else {
                "no gate verified it"
            };
            error(format!("{id} is unverified: {why}")).hint(format!(
                "refrain diff {id} shows the work; refrain merge {id} --unverified merges it all the same"
            ))
        }
        NotMerged::Conflicts { branch, paths } => {
            let first: Vec<_> = paths.iter().take(5).map(ToString::to_string).collect();
            let more = paths.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("{branch} conflicts in {}{more}; nothing was changed", first.join(", "));
            RequestError::new(Code::Failed, text).hint(Message::from("a loop resolves them: ").then(format!(
                "refrain start --worktree --git-workflow commit \"Merge branch {branch} and resolve the conflicts.\""
            )))
        }
        NotMerged::GateFailed { gate, log } => RequestError::new(
            Code::Failed,
            format!("gate {gate} fails on the merged work; nothing was changed"),
        )
        .hint(format!("{log} has what it printed")),
        NotMerged::Refused(why) => error(format!("{id} was not merged: {why}")),
    }
}
