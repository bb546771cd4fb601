//! The answer to a session's hook. The core decides; the facts for it are collected here.

use std::time::{Duration, Instant};

use refrain_agents::hook::{HookInput, Tail, look};
use refrain_core::LoopState;
use refrain_core::agent::{self, AgentReport, Scope};
use refrain_core::session::{LoopOwner, SessionLoop, Stop, TurnDecision, by_turn, reminder};
use refrain_core::spec::AgentKind;
use refrain_core::view::{self, Alive};
use refrain_store::project::sessions;

use super::{Activity, Turn, TurnReport, wait_for_change};
use crate::{EngineError, Service};

/// How long a hook waits for a proof: half of what its harness gives it, which the plugins set to 60 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a transcript is looked into when the hook's input has no message: it may not be written yet.
const LOOKS: u32 = 5;

/// How long each of these looks is waited for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

impl Service {
    /// Answers a session that ends its turn: one that a loop started itself if `is_inside`. Any irregularity lets the
    /// session go.
    pub fn at_stop(&self, agent: AgentKind, told: &HookInput, is_inside: bool) -> TurnDecision {
        let mut stop = Stop {
            is_own: told.is_stop(),
            is_inside,
            has_background: told.has_background,
            asks: false,
            has_spoken: true,
        };
        if !stop.ends_a_turn() {
            return TurnDecision::LetGo;
        }
        // Most sessions have no loop: their transcripts are none of ours.
        let mut loops = self.loops_of_session(agent, &told.session).unwrap_or_default();
        if loops.is_empty() {
            return TurnDecision::LetGo;
        }
        let tail = tail(agent, told);
        let message = told.last_message(tail.as_ref().map(|tail| tail.message.as_deref()));
        (stop.asks, stop.has_spoken) = (tail.as_ref().is_some_and(|tail| tail.asks), message.is_some());
        if !stop.ends_a_turn() {
            return TurnDecision::LetGo;
        }
        let activity = match &tail {
            Some(tail) if !tail.has_worked => Activity::Idle,
            None if told.transcript.is_some() => Activity::Unread,
            Some(_) | None => Activity::Worked,
        };
        let report = tail.and_then(report);
        let said = TurnReport { message: message.unwrap_or_default(), claims: false, activity, report };
        by_turn(&mut loops);
        let said = std::iter::once(Some(&said)).chain(std::iter::repeat(None));
        let until = Instant::now() + PATIENCE;
        let left = || until.saturating_duration_since(Instant::now());
        let mut ended = Vec::new();
        for (state, said) in loops.iter().zip(said) {
            match self.answer(state, said, left()) {
                TurnDecision::GoOn(reason) => return TurnDecision::GoOn(reason),
                TurnDecision::Ended(text) => ended.push(text),
                TurnDecision::LetGo => {}
            }
        }
        if ended.is_empty() { TurnDecision::LetGo } else { TurnDecision::Ended(ended.join("\n")) }
    }

    fn answer(&self, state: &LoopState, said: Option<&TurnReport>, patience: Duration) -> TurnDecision {
        let turn = self.turn(state, said, patience);
        let stands = match &turn {
            Ok(Turn::Next { marker, prompt }) => SessionLoop::Next { marker, prompt },
            Ok(Turn::Under(state)) => SessionLoop::Under(state),
            Ok(Turn::Proving) => SessionLoop::Proving,
            Ok(Turn::Resting { .. }) => SessionLoop::Resting,
            Ok(Turn::Stopped(state)) => {
                let status = view::status(state, Alive::NO_RUNNER);
                let stands = SessionLoop::Stopped {
                    status: status.status.as_str(),
                    reason: &status.reason,
                    needs: status.needs.as_deref(),
                };
                return TurnDecision::of(&state.spec.id, stands);
            }
            Err(_) => SessionLoop::Unknown,
        };
        TurnDecision::of(&state.spec.id, stands)
    }

    /// The context for a session that starts, continues, or was compacted: which loops it drives. None if there are
    /// none, or a loop started it itself.
    pub fn at_start(&self, agent: AgentKind, told: &HookInput, is_inside: bool) -> Option<String> {
        if is_inside {
            return None;
        }
        let mut loops = self.loops_of_session(agent, &told.session).ok()?;
        by_turn(&mut loops);
        let lines: Vec<_> = loops.iter().map(reminder).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The loops that this session drives; one that no session was named for yet is bound to it, if it was begun in the
    /// same process.
    fn loops_of_session(&self, agent: AgentKind, session: &str) -> Result<Vec<LoopState>, EngineError> {
        let noted = sessions::of(self.project(), session)?;
        if noted.is_empty() {
            return Ok(Vec::new());
        }
        let here = self.session_here(agent, Some(session));
        let mut found = Vec::new();
        for id in noted {
            // One that cannot be read hides no other.
            let Ok(state) = self.state(&id) else { continue };
            match LoopOwner::of(&state, session, here.process) {
                LoopOwner::NoSession => sessions::forget(self.project(), &id),
                LoopOwner::Other => {}
                LoopOwner::Own => found.push(state),
                LoopOwner::Unbound if self.bind(&id, &here).unwrap_or_default() => found.push(state),
                LoopOwner::Unbound => {}
            }
        }
        Ok(found)
    }
}

/// What a turn used, as its transcript says.
fn report(tail: Tail) -> Option<AgentReport> {
    let tokens = Some((Scope::Attempt, tail.tokens?));
    let cost = tail.cost.map(|cost| (Scope::Attempt, cost));
    let session = agent::Session { model: tail.model, ..agent::Session::default() };
    Some(AgentReport { session, tokens, cost, is_final: true, ..AgentReport::default() })
}

/// What the transcript says, where it is one that is known. The message may come a moment after the hook is called.
fn tail(agent: AgentKind, told: &HookInput) -> Option<Tail> {
    if told.turn.is_some() {
        return told.turn.clone();
    }
    let path = told.transcript.as_ref()?;
    let mut tail = look(agent, path);
    for _ in 1..LOOKS {
        if told.message.is_some() || tail.as_ref().is_some_and(|tail| tail.message.is_some()) {
            break;
        }
        wait_for_change(path, BETWEEN_LOOKS);
        tail = look(agent, path);
    }
    tail
}
