//! Texts about what a loop did in its repository.

use refrain_core::git::{
    Base, Checkout, CommitReport, CommitResult, LeftOutReason, OmittedPath, SkipReason, Workflow, path_names,
};
use refrain_core::r#loop::{GitState, LoopState};
use refrain_core::spec::Spec;
use refrain_core::text::printable;
use refrain_core::view::Status;

use crate::render::phrase;

/// How many of the omitted files are named.
const NAMED: usize = 10;

/// What the loop will do with git; none if nothing.
pub(crate) fn intent(spec: &Spec) -> Option<String> {
    let git = &spec.git;
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
        (Workflow::Commit | Workflow::Push | Workflow::Pr | Workflow::PrMerge, place) => {
            let place = place.map(|place| format!(" {place}")).unwrap_or_default();
            let what = if spec.has_hard_gates() { "its gates pass" } else { "each iteration changed" };
            let then = match (git.workflow, &git.onto) {
                (Workflow::None | Workflow::Commit, _) => String::new(),
                (Workflow::Push, _) => ", and pushes it".to_owned(),
                (Workflow::Pr, onto) => format!(", pushes it, and opens a pull request{}", for_branch(onto)),
                (Workflow::PrMerge, onto) => {
                    format!(
                        ", pushes it, opens a pull request{}, and merges it when its checks are green",
                        for_branch(onto)
                    )
                }
            };
            Some(format!("commits what {what}{place}{then}"))
        }
    }
}

fn for_branch(onto: &Option<String>) -> String {
    onto.as_ref().map(|onto| format!(" for {onto}")).unwrap_or_default()
}

/// How many commits a loop made; empty if none.
pub(crate) fn count(status: &Status) -> String {
    let commits = u32::try_from(status.commits.len()).unwrap_or(u32::MAX);
    if commits == 0 { String::new() } else { phrase::counted(commits, "commit", "commits") }
}

/// The state of the repository before the loop.
pub(crate) fn base(base: &Base, spec: &Spec) -> Vec<String> {
    let git = &spec.git;
    let head = base.head.as_ref().map_or("no commit yet", |head| head.short());
    let place = match (&base.branch, &git.checkout) {
        (Some(branch), _) => format!("on branch {branch} at {head}"),
        (None, _) => format!("with a detached head at {head}"),
    };
    let mut lines = vec![place];
    if let Some(operation) = base.operation.filter(|_| git.workflow.commits()) {
        lines.push(format!("a {operation} is in progress: nothing is committed until it is over"));
    }
    let fate = match (git.workflow.commits(), spec.clean_checkout) {
        (true, false) => Some("not committed"),
        (true, true) => Some("neither committed nor seen by the gates"),
        (false, true) => Some("not seen by the gates"),
        (false, false) => None,
    };
    if let (Some(fate), 1..) = (fate, base.dirty.len()) {
        lines.push(match base.dirty.len() {
            1 => format!("1 file was changed before the loop: it stays yours, and is {fate}"),
            many => format!("{many} files were changed before the loop: they stay yours, and are {fate}"),
        });
    }
    lines
}

/// The result of a commit, and the files omitted from it for the first time.
pub(crate) fn settled(report: &CommitReport, git: &GitState) -> Vec<String> {
    let mut lines = Vec::new();
    // Changes made while no runner watched may come from the user or the agent.
    let who =
        if git.mixed { "the agent, or another process while the loop stood still," } else { "the agent" };
    if let Some(lost) = &report.lost {
        lines.push(format!(
            "{who} took commits out of the history (a reset, a rebase, an amended commit); git branch rescue {lost} \
             gets them back"
        ));
    }
    let by_itself = if git.mixed { "" } else { " itself" };
    match report.by_agent.as_slice() {
        [] => {}
        [one] => lines.push(format!("{who} committed {}{by_itself}", one.short())),
        many => lines.push(format!("{who} made {} commits{by_itself}", many.len())),
    }
    for exposed in report.exposed.iter().take(NAMED) {
        lines.push(match exposed.allowed {
            true => format!("{exposed}; it may be there, as was said"),
            false => format!(
                "careful: {exposed}. It stands in the history and goes wherever that is pushed: have a new one made \
                 in its place"
            ),
        });
    }
    if !report.taken.is_empty() {
        let paths: Vec<_> = report.taken.iter().take(NAMED).map(ToString::to_string).collect();
        lines.push(format!(
            "careful: a hook put into the commit what is not the loop's, and it could not be undone: {}",
            paths.join(", ")
        ));
    }
    match &report.result {
        CommitResult::Made { commit, .. } => lines.push(format!("committed {}", commit.short())),
        CommitResult::Skipped(SkipReason::Nothing) => {}
        CommitResult::Skipped(why) => lines.push(format!("not committed: {why}")),
    }
    let left_out = &git.newly_left_out;
    let named = left_out.iter().take(NAMED);
    lines.extend(named.map(|left| format!("left out of the commit: {}: {}", left.path, left.why)));
    if left_out.len() > NAMED || report.left_out_more > 0 {
        let more = left_out.len().saturating_sub(NAMED) as u64 + report.left_out_more;
        lines.push(format!("and {more} more files; refrain show --json names them"));
    }
    let is_by = |name: bool| move |left: &OmittedPath| matches!(left.why, LeftOutReason::Secret { line, .. } if line.is_none() == name);
    let (in_name, in_line) = (left_out.iter().any(is_by(true)), left_out.iter().any(is_by(false)));
    if in_name || in_line {
        let mark = match in_line {
            true => ", or commit the line yourself with a comment that says refrain:allow-secret",
            false => "",
        };
        lines.push(format!(
            "if it is no secret, name its file in allow-secrets of [git] in your configuration{mark}: it counts from \
             the next start on"
        ));
    }
    lines
}

/// The files that no commit has, and why; empty if there are none.
pub(crate) fn left_out(report: Option<&CommitReport>) -> String {
    let Some(report) = report else { return String::new() };
    let named = report.left_out.iter().take(NAMED);
    let mut words: Vec<_> = named.map(|left| format!("{}: {}", left.path, left.why)).collect();
    match report.left_out.len().saturating_sub(NAMED) as u64 + report.left_out_more {
        0 => {}
        more => words.push(format!("and {more} more")),
    }
    words.join("; ")
}

/// What was there before the loop, was seen by the gates that verified it, and is in none of its commits: without it they may fail
/// elsewhere.
pub(crate) fn beyond_commits(state: &LoopState) -> Option<String> {
    let LoopState { spec, git, .. } = state;
    let is_seen = state.is_proven() && !spec.clean_checkout;
    let base = git.base.as_ref().filter(|_| is_seen && !git.commits.is_empty())?;
    let paths: Vec<_> = base.dirty.iter().map(|it| it.path.clone()).collect();
    let whose = match spec.git.checkout.is_own_worktree() {
        true => "from [worktrees] setup",
        false => "yours, from before the loop",
    };
    let named = printable(&path_names(&paths, NAMED)).into_owned();
    (!paths.is_empty()).then(|| format!("not in its commits: {named} ({whose}); its gates saw that"))
}

/// What happened to the loop's own worktree, and the command for what is kept.
pub(crate) fn released(state: &LoopState) -> String {
    let (id, worktree) = (&state.spec.id, &state.spec.worktree);
    let Some(why) = &state.git.kept else {
        return match state.has_lost_branch() {
            true => "worktree and branch removed: the loop committed nothing".to_owned(),
            false => "worktree removed; all its work except ignored files is on the branch".to_owned(),
        };
    };
    let verb = match state.cancel {
        Some(_) => format!("refrain discard {id} removes it, and keeps its work for 30 days"),
        None => format!("refrain open {id} opens it"),
    };
    format!("its worktree is kept, {worktree}: {why}; {verb}")
}

/// The path of the worktree that a stopped loop keeps until it is resumed.
pub(crate) fn left_behind(state: &LoopState) -> Option<String> {
    let LoopState { spec, .. } = state;
    // One that was moved is not cancelled here.
    let branch = spec.git.new_branch().filter(|_| state.holds_worktree() && state.check_here().is_ok())?;
    let (worktree, id) = (&spec.worktree, &spec.id);
    Some(format!(
        "until it is resumed or cancelled, its worktree stays on branch {branch}: {worktree}; refrain cancel {id} removes it if all its work is committed"
    ))
}
