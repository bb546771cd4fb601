//! Texts about what a loop did outside its repository.

use refrain_core::git::{Checks, ChecksVerdict, Effect, PublishReport, PublishResult};
use refrain_core::r#loop::LoopState;

use crate::render::phrase;

/// How many things that are in the way are named one by one.
const NAMED: usize = 10;

pub(crate) fn started(effect: Effect) -> Option<String> {
    match effect {
        // It may take its time.
        Effect::Push => Some("pushing".to_owned()),
        Effect::Merge => Some("merging".to_owned()),
        Effect::Open | Effect::Ready | Effect::Look | Effect::Return => None,
    }
}

pub(crate) fn settled(report: &PublishReport, state: &LoopState) -> Vec<String> {
    let claims = state.publishing().is_some_and(|publishing| publishing.claim.is_some());
    // Without a claim that waits for it, the next iteration tries again.
    let then = if claims { "" } else { "; it is tried again after the next iteration" };
    match &report.result {
        PublishResult::Pushed { remote, branch } => vec![format!("pushed to {remote}/{branch}")],
        PublishResult::Rebased { commits, .. } => {
            let many = u32::try_from(commits.len()).unwrap_or(u32::MAX);
            let commits = phrase::counted(many, "commit", "commits");
            vec![format!("the remote had more: {commits} of the loop's lie on top of that now")]
        }
        PublishResult::Conflict { theirs, paths } => {
            let mut lines = vec![format!(
                "the remote has what does not go together with the work ({}); the agent is informed",
                theirs.short()
            )];
            lines.extend(paths.iter().take(NAMED).map(ToString::to_string));
            lines
        }
        PublishResult::Requested(request) => vec![match report.effect {
            Effect::Ready if state.spec.has_hard_gates() => {
                format!("{} says what is proven, and is a draft no more", request.url)
            }
            Effect::Ready => format!("{} says that no gate checks it, and is a draft no more", request.url),
            Effect::Open | Effect::Push | Effect::Look | Effect::Merge | Effect::Return => {
                format!("opened {} as a draft", request.url)
            }
        }],
        PublishResult::Checked(_) if !state.git.published.is_news => Vec::new(),
        PublishResult::Checked(checks) => checked(checks),
        PublishResult::Merged { commit: Some(commit) } => vec![format!("merged as {}", commit.short())],
        PublishResult::Merged { commit: None } => vec!["merged".to_owned()],
        PublishResult::Returned { kept: None } => vec!["back on the base; its branch is gone".to_owned()],
        PublishResult::Returned { kept: Some(why) } => vec![format!("its branch is kept: {why}")],
        PublishResult::Later { said, .. } => vec![format!("could not {} now: {said}{then}", report.effect)],
        PublishResult::Refused { said, .. } => vec![format!("could not {}: {said}{then}", report.effect)],
    }
}

fn checked(checks: &Checks) -> Vec<String> {
    let Checks { verdict, total, over, failed, .. } = checks;
    match verdict {
        ChecksVerdict::Green => vec![format!("{} green", phrase::counted(*total, "check is", "checks are"))],
        ChecksVerdict::None => vec!["no checks are configured".to_owned()],
        ChecksVerdict::NotStarted => vec!["no check has begun yet".to_owned()],
        ChecksVerdict::Pending => vec![format!("{over} of {total} checks are over")],
        ChecksVerdict::Red => {
            let mut lines = vec!["the claim is refused, as these checks failed:".to_owned()];
            let named = failed.iter().take(NAMED);
            lines.extend(named.map(|check| match &check.url {
                Some(url) => format!("{} ({url})", check.name),
                None => check.name.clone(),
            }));
            lines
        }
    }
}
