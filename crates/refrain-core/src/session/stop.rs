//! What a session's hook answers: whether a stop ends a turn, which of the session's loops gets the message, and what
//! it says. In any doubt the session may stop.

use super::Session;
use crate::event::Process;
use crate::ids::{AttemptId, LoopId};
use crate::r#loop::LoopState;
use crate::prompt;
use crate::text::printable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// It is the session's own, and not that of an agent below it.
    pub is_own: bool,
    /// A loop started the session itself, and decides about it.
    pub is_inside: bool,
    /// Something that it started works on, and will wake it.
    pub has_background: bool,
    /// It asks the person something, and has no answer.
    pub asks: bool,
    pub has_spoken: bool,
}

impl Stop {
    /// Whether a turn is over with it; if not, the session may stop, and nothing is counted.
    pub fn ends_a_turn(self) -> bool {
        let Self { is_own, is_inside, has_background, asks, has_spoken } = self;
        is_own && has_spoken && !(is_inside || has_background || asks)
    }
}

/// The owner of a loop that is noted as one of a session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopOwner {
    Own,
    /// This session's, which has no name yet: the loop is bound to it.
    Unbound,
    Other,
    /// No session's any more: the note is to be forgotten.
    NoSession,
}

impl LoopOwner {
    /// Looks at a loop for the session of this name, in this process.
    pub fn of(state: &LoopState, session: &str, process: Option<Process>) -> Self {
        match &state.session {
            None => Self::NoSession,
            Some(_) if state.ended.is_some() => Self::NoSession,
            Some(bound) if !bound.is(session, process) => Self::Other,
            Some(Session { id: None, .. }) => Self::Unbound,
            Some(Session { id: Some(_), .. }) => Self::Own,
        }
    }
}

/// Puts the loop first that the session worked on, which is the one whose turn began last. Only that loop gets the
/// message. A loop that began another within its turn continues with that turn once the other has stopped; one without
/// a turn yet comes last.
pub fn by_turn(loops: &mut [LoopState]) {
    let began = |state: &LoopState| {
        let under_way = state.in_flight().map(|flight| flight.child.started_at);
        under_way.or_else(|| state.attempts.last().map(|last| last.started_at))
    };
    loops.sort_by(|a, b| began(b).cmp(&began(a)).then_with(|| a.spec.id.cmp(&b.spec.id)));
}

/// Whether the message ends the turn that is under way: the one that was seen when it was sent. If two report the same
/// at once, one counts.
pub fn is_heard(state: &LoopState, seen: Option<AttemptId>) -> bool {
    seen.is_some() && state.in_flight().map(|flight| flight.id) == seen
}

/// The answer to a session that ends its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnDecision {
    LetGo,
    /// It may stop, and the user is shown how its loop ended.
    Ended(String),
    GoOn(String),
}

/// How one of its loops stands when a session ends its turn.
#[derive(Clone, Copy, Debug)]
pub enum SessionLoop<'a> {
    Next {
        marker: &'a str,
        prompt: &'a str,
    },
    /// A turn of it is under way.
    Under(&'a LoopState),
    /// The work is still being proven.
    Proving,
    /// There was nothing to do, and it looks again later.
    Resting,
    Stopped {
        status: &'a str,
        reason: &'a str,
        /// What is to be done for it to go on.
        needs: Option<&'a str>,
    },
    Unknown,
}

impl TurnDecision {
    /// The answer to the session for this loop. The first of its loops that continues the session decides.
    pub fn of(id: &LoopId, stands: SessionLoop<'_>) -> Self {
        match stands {
            SessionLoop::Next { marker, prompt } => Self::GoOn(format!("{marker}\n\n{prompt}")),
            SessionLoop::Under(state) => Self::GoOn(format!(
                "{} This turn of the loop is not over. Continue with it: its task and your notes are in {}.",
                prompt::marker(state, state.iteration),
                state.spec.state_file()
            )),
            SessionLoop::Proving => Self::GoOn(format!(
                "The gates of loop {id} check your work, which takes a while. Change nothing meanwhile. Run this command now; \
                 it waits, then says what to do: refrain tick hold {id}"
            )),
            SessionLoop::Resting => Self::GoOn(format!(
                "You found nothing to do for loop {id}. Run this command now; it waits, then says what to do: refrain tick hold {id}"
            )),
            SessionLoop::Stopped { status, reason, needs } => {
                let next = needs.map(|needs| format!(". Next: {needs}")).unwrap_or_default();
                Self::Ended(printable(&format!("Loop {id}: {status}: {reason}{next}")).replace('\n', " "))
            }
            SessionLoop::Unknown => Self::LetGo,
        }
    }
}

/// The reminder for a session of a loop that it may have forgotten.
pub fn reminder(state: &LoopState) -> String {
    let (marker, id) = (prompt::marker(state, state.iteration), &state.spec.id);
    format!(
        "{marker} This session drives this loop. Its task and your notes are in {}. Continue with it; when you end your turn, \
         you are told what comes next. `refrain status {id}` shows its status.",
        state.spec.state_file()
    )
}
