use refrain_core::event::End;
use refrain_core::prompt::state_file::{self, WorkStatus};
use refrain_core::{LoopState, Spec};
use refrain_files::read_text;
use refrain_store::project::worktree;
use refrain_store::{LoopDir, write_nofollow};

/// What the agent noted, from its worktree or, if that was given back, as it was kept. A link that the agent put in its
/// place would show any file of the person's, and is not followed.
pub(crate) fn noted(spec: &Spec, dir: &LoopDir) -> Option<String> {
    match in_worktree(spec) {
        Some(own) => worktree::notes(&own),
        None => read_text(&dir.state_file()).ok(),
    }
}

/// The loop with its worktree as it really is, where the notes there are a file of that worktree.
fn in_worktree(spec: &Spec) -> Option<Spec> {
    let own = Spec { worktree: spec.worktree.canonicalize_utf8().ok()?, ..spec.clone() };
    own.state_file().canonicalize_utf8().is_ok_and(|path| path == own.state_file()).then_some(own)
}

/// Sets the front matter of the agent's notes of a completed loop to what the loop says, whatever the agent claimed.
/// The notes are the agent's, so nothing depends on it: if they cannot be written they stay.
pub(crate) fn close_notes(state: &LoopState, dir: &LoopDir) {
    if !is_completed(state) {
        return;
    }
    let path = in_worktree(&state.spec).map_or_else(|| dir.state_file(), |own| own.state_file());
    let text = noted(&state.spec, dir).unwrap_or_default();
    let says = state_file::status(&text, &state.spec.id);
    if says == Some(WorkStatus::InProgress)
        && let Some(text) = state_file::with_status(&text, WorkStatus::Done)
    {
        let _ = write_nofollow(&path, text.as_bytes());
    }
}

pub(crate) fn is_completed(state: &LoopState) -> bool {
    matches!(state.ended.map(|ended| ended.end), Some(End::Completed { .. }))
}
