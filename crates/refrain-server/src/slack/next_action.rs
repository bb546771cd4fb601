//! The next message Slack needs of a loop, from the loop's status and what was sent. Pure: a process that continues
//! after a crash or an outage comes to the same result.

use refrain_core::view::StatusWord;
use refrain_engine::{Delivery, Talk};

use super::render::{LoopSummary, MessageView, Notes};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NextAction {
    Post(String),
    Edit(MessageView),
    React {
        remove: Vec<String>,
        add: &'static str,
    },
    /// Post the agent's notes in the thread.
    Reply(Notes),
}

/// The next deed; none if all is sent.
pub(super) fn next(talk: &Talk, seen: &LoopSummary) -> Option<NextAction> {
    if talk.only_ends && talk.message == Delivery::Not && !seen.status.has_stopped() {
        return None;
    }
    let view = seen.view(talk.stop.as_ref());
    match &talk.message {
        // A loop that is reported only at its end has no first message.
        Delivery::Not | Delivery::Intended if talk.only_ends => return Some(NextAction::Post(view.text)),
        Delivery::Not | Delivery::Intended => return Some(NextAction::Post(seen.first_words())),
        Delivery::At(_) => {}
        Delivery::Refused => return None,
    }
    if talk.shown.as_deref() != Some(view.mark().as_str()) {
        return Some(NextAction::Edit(view));
    }
    if talk.reaction.as_deref() != Some(seen.reaction()) {
        let remove = seen.old_reactions(talk.reaction.as_deref()).into_iter().map(str::to_owned).collect();
        return Some(NextAction::React { remove, add: seen.reaction() });
    }
    // The user who paused a loop resumes it, and reads the notes then.
    let ended = seen.ended.filter(|_| seen.status != StatusWord::Paused)?;
    let is_told = matches!(talk.reply, Some((of, Delivery::At(_) | Delivery::Refused)) if of == ended);
    if is_told { None } else { seen.state().map(NextAction::Reply) }
}

/// Whether nothing more is to be sent until something happens to the loop.
pub(super) fn is_settled(talk: &Talk, seen: &LoopSummary) -> bool {
    seen.status.has_stopped() && next(talk, seen).is_none()
}

/// The message that gets the reactions: the requesting one, else its own.
pub(super) fn reacted(talk: &Talk) -> Option<&str> {
    talk.trigger.as_deref().or_else(|| own(talk))
}

/// The thread for its notes: the one of the request, else its own message's.
pub(super) fn thread(talk: &Talk) -> Option<&str> {
    talk.thread.as_deref().or_else(|| own(talk))
}

fn own(talk: &Talk) -> Option<&str> {
    match &talk.message {
        Delivery::At(ts) => Some(ts),
        Delivery::Not | Delivery::Intended | Delivery::Refused => None,
    }
}
