//! The child process of a loop: an attempt, a gate or a critic, one at a time. They differ in their limits and in the
//! names of their events; all else is the same for each.

use jiff::Timestamp;

use super::next_step::{Step, began, ends_sleep, first_of, plus};
use super::state::{Child, ChildId, Live, LoopState, Phase};
use crate::event::{Event, StopReason, Urgency};
use crate::spec::{AgentSpec, Millis};

struct Bounds {
    /// When its time limits begin to count; none before there is a process, which nothing can stop.
    since: Option<Timestamp>,
    time: Option<Millis>,
    silence: Option<Millis>,
    /// How urgent a cancel or a pause must be.
    yields_to: Urgency,
}

impl LoopState {
    pub fn child(&self) -> Option<(ChildId, &Child)> {
        match &self.phase {
            Phase::InFlight(flight) => Some((ChildId::Attempt(flight.id), &flight.child)),
            Phase::Proving(proving) => {
                let running = proving.running.as_ref()?;
                Some((ChildId::Gate { gate: running.gate, run: running.run }, &running.child))
            }
            Phase::Critiquing(critiquing) => {
                Some((ChildId::Critic { iteration: critiquing.iteration }, &critiquing.child))
            }
            Phase::Idle { .. } | Phase::Begun { .. } | Phase::Publishing(_) => None,
        }
    }

    /// The agent that a child is; none of a command.
    pub fn agent_of(&self, child: ChildId) -> Option<&AgentSpec> {
        match child {
            ChildId::Attempt(_) => Some(&self.spec.agent),
            ChildId::Gate { gate, .. } => self.spec.gates.get(gate)?.reviewer(),
            ChildId::Critic { .. } => self.spec.critique.as_ref().map(|critique| &critique.critic),
        }
    }

    /// The record that a child is started; none of a gate that there is not.
    pub fn started(&self, child: ChildId) -> Option<Event> {
        Some(match child {
            ChildId::Attempt(id) => Event::AttemptStarted(id),
            ChildId::Gate { gate, run } => {
                Event::GateStarted { gate: self.spec.gates.get(gate)?.name.clone(), run }
            }
            ChildId::Critic { iteration } => Event::CritiqueStarted { iteration },
        })
    }

    pub(super) fn kill_child(&mut self) {
        let child = match &mut self.phase {
            Phase::InFlight(flight) => Some(&mut flight.child),
            Phase::Proving(proving) => proving.running.as_mut().map(|running| &mut running.child),
            Phase::Critiquing(critiquing) => Some(&mut critiquing.child),
            Phase::Idle { .. } | Phase::Begun { .. } | Phase::Publishing(_) => None,
        };
        child.into_iter().for_each(|child| child.killed = true);
    }

    /// The record that the child in flight is to end.
    pub fn stop_requested(&self, because: StopReason) -> Option<Event> {
        Some(match self.child()?.0 {
            ChildId::Attempt(_) => Event::AttemptStopRequested { because },
            ChildId::Gate { .. } => Event::GateStopRequested { because },
            ChildId::Critic { .. } => Event::CritiqueStopRequested { because },
        })
    }

    /// The record that the child in flight could not be started.
    pub fn spawn_failed(&self, error: String) -> Option<Event> {
        Some(match self.child()?.0 {
            ChildId::Attempt(_) => Event::AttemptSpawnFailed { error },
            ChildId::Gate { .. } => Event::GateSpawnFailed { error },
            ChildId::Critic { .. } => Event::CritiqueFailed { error },
        })
    }

    fn bounds(&self, id: ChildId, child: &Child) -> Bounds {
        let since = Some(child.started_at);
        match id {
            ChildId::Attempt(_) => Bounds {
                since: self.in_flight().and_then(|flight| flight.spawned).map(|(_, since)| since),
                time: self.limits.timeout,
                silence: self.limits.idle_timeout,
                yields_to: Urgency::Now,
            },
            ChildId::Gate { gate, .. } => Bounds {
                since,
                time: self.spec.gates.get(gate).map(|gate| gate.timeout),
                silence: None,
                yields_to: Urgency::Now,
            },
            // Nothing depends on it, so no pause or cancel waits for it.
            ChildId::Critic { .. } => Bounds {
                since,
                time: self.spec.critique.as_ref().map(|critique| critique.timeout),
                silence: None,
                yields_to: Urgency::AfterIteration,
            },
        }
    }
}

/// While a child runs there are only two answers: await, or stop it because of something.
pub(super) fn in_flight(
    state: &LoopState,
    (id, child): (ChildId, &Child),
    live: &Live,
    now: Timestamp,
) -> Step {
    let Bounds { since, time, silence, yields_to } = state.bounds(id, child);
    // One stop is enough: the ladder ends by itself.
    let (Some(recorded), None) = (since, child.stopping) else { return Step::Await { until: None } };
    if state.cancel >= Some(yields_to) {
        return Step::Stop(StopReason::Cancel);
    }
    if state.pause >= Some(yields_to) {
        return Step::Stop(StopReason::Interrupt);
    }
    if live.output_lost {
        return Step::Stop(StopReason::OutputLost);
    }
    if state.is_overdrawn(live) {
        return Step::Stop(StopReason::Budget);
    }
    // The clock may have been set since.
    let since =
        live.started.and_then(|started| started.checked_add(recorded.duration_since(child.started_at)).ok());
    let since = since.unwrap_or(recorded);
    let heard = live.last_output.map_or(since, |at| at.max(since));
    let deadlines = [
        (ends_sleep(live), StopReason::ProviderWait),
        (state.limits.max_duration.map(|all| plus(began(state, now), all)), StopReason::LoopDuration),
        (time.map(|limit| plus(since, limit)), StopReason::TimeLimit),
        (silence.map(|limit| plus(heard, limit)), StopReason::Silence),
    ];
    match first_of(&deadlines) {
        Some((at, because)) if at <= now => Step::Stop(because),
        first => Step::Await { until: first.map(|(at, _)| at) },
    }
}
