//! The last lines of a loop that has ended: how, with what, and at most three commands to type next.

use owo_colors::OwoColorize;
use refrain_core::event::End;
use refrain_core::r#loop::{Attempt, LoopState};
use refrain_core::spec::Millis;
use refrain_core::text::printable;
use refrain_core::view::{self, Alive, Status, Verification};
use refrain_engine::ChangeSize;

use crate::render::{commits, phrase};

/// What the journal of an ended loop does not say.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndFacts {
    pub(crate) size: Option<ChangeSize>,
    /// Whether `diff` shows any.
    pub(crate) has_changes: bool,
    /// The `.git` of its project was deleted: no verb finds its journal.
    pub(crate) is_gone: bool,
    /// The branch that has all work of its own branch.
    pub(crate) merged_into: Option<String>,
}

pub(super) fn end_card(
    state: &LoopState,
    EndFacts { size, has_changes, is_gone, merged_into }: &EndFacts,
) -> String {
    let (status, size) = (view::status(state, Alive::NO_RUNNER), *size);
    let word = phrase::coloured(status.tone(), phrase::outcome(status.verification(), status.status));
    let took = Millis::from(state.active(state.updated_at));
    let used = phrase::after(&phrase::used(&status.usage));
    let mut text =
        format!("{word} after {} in {took}{used}: {}\n", phrase::iterations(status.charged), status.reason);
    let has_own_branch = state.spec.git.new_branch().is_some();
    let branch = status.branch.as_ref().filter(|_| has_own_branch || !status.commits.is_empty());
    let branch = branch.filter(|_| !state.has_lost_branch());
    let merged = merged_into.as_ref().map(|into| format!(" (merged into {})", printable(into)));
    let merged = merged.unwrap_or_default();
    let parts = branch.map(|branch| format!("branch {}{merged}", printable(branch)));
    let parts: Vec<_> = parts.into_iter().chain(size.map(|size| changed(size, state))).collect();
    if !parts.is_empty() {
        text.push_str(&format!("  {}\n", parts.join(", ")));
    }
    text.push_str(&summaries(state));
    let next = match &status.needs {
        _ if *is_gone => {
            "git init, as the .git of its project was deleted, and no verb finds the loop without it"
                .to_owned()
        }
        Some(needs) => needs.clone(),
        None => {
            // Its branch has nothing to merge if all that changed was left out of the commit.
            let is_empty = state.git.last.is_some() && state.git.commits.is_empty();
            next_commands(state, &status, *has_changes, merged_into.is_some() || is_empty)
        }
    };
    text.push_str(&format!("  {} {next}\n", "next:".dimmed()));
    let late = is_paused_too_late(state)
        .then(|| "the pause came too late: the loop ended in that iteration".to_owned());
    for words in late.into_iter().chain(commits::left_behind(state)).chain(commits::beyond_commits(state)) {
        text.push_str(&format!("  {} {words}\n", "note".dimmed()));
    }
    text
}

/// Whether it ended otherwise in the iteration that a pause was to come after.
fn is_paused_too_late(state: &LoopState) -> bool {
    let is_other = |end: End| !matches!(end, End::Paused | End::Cancelled);
    state.pause.is_some() && state.ended.is_some_and(|ended| is_other(ended.end))
}

/// How much changed. Of files that had changes before the loop, the lines may be the user's.
fn changed(ChangeSize { files, added, removed, mixed }: ChangeSize, state: &LoopState) -> String {
    let mixed = (mixed > 0)
        .then(|| phrase::counted(mixed, "file that had changes before", "files that had changes before"));
    match (files, mixed) {
        (0, None) if has_changes_beyond_commits(state) => {
            "only files changed that are not committed".to_owned()
        }
        (0, None) => "no file changed".to_owned(),
        (0, Some(mixed)) => format!("changed {mixed}"),
        (files, mixed) => {
            let more = mixed.map(|mixed| format!(", and {mixed}")).unwrap_or_default();
            format!("{}, +{added} -{removed}{more}", phrase::counted(files, "file", "files"))
        }
    }
}

/// Whether files changed that no commit can have: it may be a secret, or the user's own from before.
fn has_changes_beyond_commits(state: &LoopState) -> bool {
    let left_out = state.git.last.as_ref().is_some_and(|last| !last.left_out.is_empty());
    left_out || state.is_proven_beyond_its_tree()
}

/// The command that merges its branch. `--create-branch` leaves that checked out, and a branch is not merged into itself.
fn how_to_merge(state: &LoopState) -> String {
    let (git, id) = (&state.spec.git, &state.spec.id);
    if git.checkout.is_own_worktree() {
        return format!("refrain merge {id}");
    }
    let onto = git.onto.as_deref().and_then(|onto| shlex::try_quote(onto).ok());
    format!("git switch {} && refrain merge {id}", onto.unwrap_or("-".into()))
}

/// At most three commands for what a person does with an ended loop that needs nothing.
pub(crate) fn next_commands(
    state: &LoopState,
    status: &Status,
    has_changes: bool,
    is_merged: bool,
) -> String {
    let (id, merge) = (&status.id, how_to_merge(state));
    let can_merge = state.spec.git.new_branch().is_some() && state.git.kept.is_none() && !is_merged;
    let mut next = match (has_changes && can_merge, status.verification()) {
        (true, Verification::Verified) => {
            vec![format!("refrain diff {id}"), merge, format!("refrain report {id}")]
        }
        (true, Verification::Unverified) => {
            vec![
                format!("refrain diff {id}"),
                format!("{merge} --unverified"),
                format!("refrain discard {id}"),
            ]
        }
        (true, Verification::No | Verification::Pending) => {
            vec![format!("refrain diff {id}"), format!("refrain discard {id}"), format!("refrain logs {id}")]
        }
        (false, _) if has_changes => {
            vec![format!("refrain diff {id}"), format!("refrain report {id}"), format!("refrain logs {id}")]
        }
        (false, _) => vec![format!("refrain report {id}"), format!("refrain logs {id}")],
    };
    if !status.untrusted.is_empty() {
        next.insert(0, "refrain trust".to_owned());
    }
    next.truncate(3);
    next.join(", ")
}

/// How many summaries are shown.
const SHOWN: usize = 20;

/// The agent's summaries of its iterations, a line each; empty if there are none.
fn summaries(state: &LoopState) -> String {
    let line = |attempt: &Attempt| {
        let summary = attempt.finished.as_ref()?.summary.as_deref()?;
        Some(format!("  {:<4} {}\n", attempt.id.to_string().dimmed(), printable(summary)))
    };
    let lines: Vec<_> = state.attempts.iter().filter_map(line).collect();
    let earlier = lines.len().saturating_sub(SHOWN);
    let more = match earlier {
        0 => String::new(),
        more => format!("  {} {more} earlier: refrain report {}\n", "...".dimmed(), state.spec.id),
    };
    more + &lines[earlier..].concat()
}
