//! What a loop did in its repository, in words for people.

use refrain_core::git::{Base, Checkout, CommitReport, CommitResult, GitSpec, LeftOut, Skipped, Workflow};
use refrain_core::view::Status;

use crate::phrase;

/// How many files that are left out are named one by one.
const NAMED: usize = 10;

/// What the loop will do with git; none where it does nothing.
pub(crate) fn intent(git: &GitSpec) -> Option<String> {
    let place = match &git.checkout {
        Checkout::AsIs => None,
        Checkout::Branch(branch) => Some(format!("on the new branch {branch}")),
        Checkout::Worktree { branch, .. } => {
            Some(format!("in a worktree of its own, on the new branch {branch}"))
        }
    };
    match (git.workflow, place) {
        (Workflow::None, None) => None,
        (Workflow::None, Some(place)) => Some(format!("{place}; nothing is committed")),
        (Workflow::Commit, place) => {
            let place = place.map(|place| format!(" {place}")).unwrap_or_default();
            Some(format!("commits what each iteration changed{place}"))
        }
    }
}

/// How a loop stands in its repository; nothing where it has to do with none.
pub(crate) fn summary(status: &Status) -> String {
    let place = status.branch.as_ref().map(|branch| format!("branch {branch}"));
    let commits = u32::try_from(status.commits.len()).unwrap_or(u32::MAX);
    let commits = (commits > 0).then(|| phrase::counted(commits, "commit", "commits"));
    place.into_iter().chain(commits).collect::<Vec<_>>().join(", ")
}

/// What was there before the loop.
pub(crate) fn base(base: &Base, git: &GitSpec) -> Vec<String> {
    let head = base.head.as_ref().map_or("no commit yet", |head| head.short());
    let place = match (&base.branch, &git.checkout) {
        (Some(branch), _) => format!("on branch {branch} at {head}"),
        (None, _) => format!("with a detached head at {head}"),
    };
    let mut lines = vec![place];
    if git.workflow != Workflow::None && !base.dirty.is_empty() {
        lines.push(match base.dirty.len() {
            1 => "1 file was changed before the loop: it stays yours, and is not committed".to_owned(),
            many => {
                format!("{many} files were changed before the loop: they stay yours, and are not committed")
            }
        });
    }
    lines
}

/// What came of a commit, and what was left out of it for the first time.
pub(crate) fn settled(report: &CommitReport, left_out: &[LeftOut]) -> Vec<String> {
    let mut lines = Vec::new();
    if report.rewritten {
        lines.push("the agent took commits out of the history (a reset or a rebase)".to_owned());
    }
    match report.by_agent.as_slice() {
        [] => {}
        [one] => lines.push(format!("the agent committed {} itself", one.short())),
        many => lines.push(format!("the agent made {} commits itself", many.len())),
    }
    match &report.result {
        CommitResult::Made { commit, .. } => lines.push(format!("committed {}", commit.short())),
        CommitResult::Skipped(Skipped::Nothing) => {}
        CommitResult::Skipped(why) => lines.push(format!("not committed: {why}")),
    }
    let named = left_out.iter().take(NAMED);
    lines.extend(named.map(|left| format!("left out of the commit: {}: {}", left.path, left.why)));
    if left_out.len() > NAMED || report.left_out_more > 0 {
        let more = left_out.len().saturating_sub(NAMED) as u64 + report.left_out_more;
        lines.push(format!("and {more} more files; refrain show --json names them"));
    }
    lines
}

/// What became of the loop's own worktree.
pub(crate) fn released(kept: Option<&str>, worktree: &str) -> String {
    match kept {
        None => "its worktree is removed; all but what git ignores is on its branch".to_owned(),
        Some(why) => format!("its worktree is kept, {worktree}: {why}"),
    }
}
