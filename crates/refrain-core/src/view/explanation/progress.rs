//! What a loop that has not ended does, or waits for.

use super::statement::told;
use crate::event::WaitKind;
use crate::r#loop::{LoopState, Phase, Proving};
use crate::session::Session;
use crate::view::loop_parts::publication;

pub(super) fn why(state: &LoopState) -> String {
    match (state.wait, state.in_flight()) {
        (Some(wait), _) => match wait.kind {
            WaitKind::Pace if state.unneeded > 0 => "found nothing to do, and looks again later".to_owned(),
            WaitKind::Pace => "rests before the next iteration".to_owned(),
            // It also waits for the account's sake, without a fault of its own.
            WaitKind::Limit if state.provider_wait().is_none() => {
                "waits for the limit of its account to be reset".to_owned()
            }
            WaitKind::Limit => told("waits for the provider's limit to be reset", state),
            WaitKind::Outage => told("waits for the provider to work again", state),
            WaitKind::Checks => publication::checks(state),
            WaitKind::Remote => publication::remote(state),
        },
        (None, Some(flight)) if state.is_in_session() => {
            let session = state.session.as_ref().and_then(Session::short);
            let session = session.map_or_else(|| "its session".to_owned(), |id| format!("session {id}"));
            format!("{session} works on attempt {}", flight.id)
        }
        (None, Some(flight)) if flight.child.stopping.is_some() => {
            format!("attempt {} is ending", flight.id)
        }
        (None, Some(flight)) => format!("attempt {} is running", flight.id),
        (None, None) if state.sweeping => "what the agent left running is being ended".to_owned(),
        (None, None) if let Some(proving) = state.proving() => gates(state, proving),
        (None, None) if let Some(publishing) = state.publishing() => publication::doing(state, publishing),
        (None, None) if matches!(state.phase, Phase::Idle { uncommitted: true, .. }) => {
            format!("iteration {} is being committed", state.iteration)
        }
        (None, None) if state.iteration == 0 => "before the first iteration".to_owned(),
        (None, None) => "between two iterations".to_owned(),
    }
}

fn gates(state: &LoopState, proving: &Proving) -> String {
    let about = match proving.of {
        Some(id) => format!("after attempt {id}"),
        None => "before the first iteration".to_owned(),
    };
    let running = proving.running.as_ref();
    match running.and_then(|running| Some((running, state.spec.gates.get(running.gate)?))) {
        Some((running, gate)) if running.child.stopping.is_some() => format!("gate {} is ending", gate.name),
        Some((_, gate)) => format!("gate {} is running {about}", gate.name),
        None => format!("the gates are asked {about}"),
    }
}
