//! The view of a loop's publication: its branch at a remote, its pull request, the checks; as an object and in words.

use schemars::JsonSchema;
use serde::Serialize;

use crate::git::{Checks, ChecksVerdict, Effect, PullRequest, Refusal};
use crate::r#loop::{LoopState, Publishing};
use crate::text::{printable, squeeze};

/// What a loop has outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Publication {
    /// The remote's name; null before the first push.
    pub remote: Option<String>,
    /// The branch there.
    pub branch: Option<String>,
    /// The newest of the loop's commits that is there.
    pub pushed: Option<String>,
    /// Its pull request.
    pub pull_request: Option<PullRequest>,
    /// What the checks said last.
    pub checks: Option<Checks>,
    /// Whether it is merged.
    pub merged: bool,
    /// The commit on the base; null where it is not merged, or the forge does not say.
    pub merge_commit: Option<String>,
    /// What keeps the next effect from being done, in one line; null where nothing does.
    pub hindered: Option<String>,
}

impl Publication {
    /// The publication of this loop; none if it publishes nothing.
    pub(crate) fn of(state: &LoopState) -> Option<Self> {
        let done = &state.git.published;
        let (remote, branch) = done.place.clone().unzip();
        state.spec.git.workflow.publishes().then(|| Self {
            remote,
            branch,
            pushed: done.pushed.as_ref().map(ToString::to_string),
            pull_request: done.request.clone(),
            checks: done.checks.clone(),
            merged: done.merged.is_some(),
            merge_commit: done.merged.as_ref().and_then(|it| it.as_ref().map(ToString::to_string)),
            hindered: hindrance(state),
        })
    }
}

fn hindrance(state: &LoopState) -> Option<String> {
    let done = &state.git.published;
    let said = done.refused.as_ref().map(|(_, said)| said).or(done.later.as_ref())?;
    Some(squeeze(&printable(said)))
}

/// The effect in progress outside, or the wait for one.
pub(crate) fn doing(state: &LoopState, publishing: &Publishing) -> String {
    match publishing.running.or_else(|| state.next_effect()) {
        Some(Effect::Push) => "its branch is being pushed".to_owned(),
        Some(Effect::Open) => "its pull request is being opened".to_owned(),
        Some(Effect::Ready) => format!("{} is being made ready", request(state)),
        Some(Effect::Look) => checks(state),
        Some(Effect::Merge) => format!("{} is being merged", request(state)),
        Some(Effect::Return) => "it goes back to the base".to_owned(),
        None => "between two iterations".to_owned(),
    }
}

pub(crate) fn checks(state: &LoopState) -> String {
    let of = request(state);
    match &state.git.published.checks {
        Some(Checks { verdict: ChecksVerdict::NotStarted, .. }) => {
            format!("waits for the checks of {of} to begin")
        }
        Some(Checks { over, total, .. }) if *total > 0 => {
            format!("waits for the checks of {of}: {over} of {total} are over")
        }
        Some(_) | None => format!("waits for the checks of {of}"),
    }
}

fn request(state: &LoopState) -> String {
    match &state.git.published.request {
        Some(request) => format!("pull request {}", request.number),
        None => "its pull request".to_owned(),
    }
}

/// What it waits for, if its remote failed it.
pub(crate) fn remote(state: &LoopState) -> String {
    match hindrance(state) {
        Some(said) => format!("waits for its remote: {said}"),
        None => "waits for its remote".to_owned(),
    }
}

pub(crate) fn blocked(state: &LoopState) -> String {
    let proven = if state.is_proven() { "it is proven, but" } else { "it is done, but" };
    let claims = state.publishing().is_some_and(|publishing| publishing.claim.is_some());
    let but = if claims { proven } else { "its work" };
    match hindrance(state) {
        Some(said) => format!("{but} cannot be published: {said}"),
        None => format!("{but} cannot be published"),
    }
}

pub(crate) fn cure(state: &LoopState) -> &'static str {
    state.git.published.refused.as_ref().map_or(Refusal::Other, |(why, _)| *why).cure()
}

/// Where the work of a stopped loop is, to be said after the reason.
pub(crate) fn whereabouts(state: &LoopState) -> Option<String> {
    let done = &state.git.published;
    state.ended.filter(|_| state.spec.git.workflow.publishes())?;
    let mut said = match (&done.request, &done.merged) {
        (Some(request), Some(_)) => format!("merged as {}", request.url),
        (Some(request), None) => request.url.clone(),
        (None, _) => {
            let (remote, branch) = done.place.as_ref()?;
            format!("pushed to {remote}/{branch}")
        }
    };
    if let Some(Some(kept)) = &done.returned {
        said.push_str(&format!("; its branch is kept: {}", squeeze(&printable(kept))));
    }
    if done.merged.is_none() && done.pushed != state.git.head {
        said.push_str("; its last commits are not there");
    }
    Some(squeeze(&printable(&said)))
}
