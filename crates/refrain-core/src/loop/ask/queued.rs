//! Requests that have had no effect yet, and can be taken back: a text that no prompt holds, and a stop that waits for
//! the end of the iteration.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::{Asker, Urgency};
use crate::ids::RequestId;
use crate::r#loop::LoopState;

/// A request that has had no effect yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueuedRequest {
    /// Its name, for taking it back.
    pub request: RequestId,
    /// The effect that it will have.
    pub effect: QueuedEffect,
    /// The text of `steer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who asked.
    pub by: Asker,
}

/// The effect that a queued request will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueuedEffect {
    /// The next prompt has its text.
    Steer,
    /// The loop pauses after this iteration.
    Pause,
    /// The loop is cancelled after this iteration.
    Cancel,
}

impl fmt::Display for QueuedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.effect {
            QueuedEffect::Steer => {
                write!(f, "the next prompt will say: {}", self.text.as_deref().unwrap_or_default())
            }
            QueuedEffect::Pause => f.write_str("it pauses after this iteration"),
            QueuedEffect::Cancel => f.write_str("it is cancelled after this iteration"),
        }
    }
}

impl LoopState {
    /// The requests that can be taken back, in their order. A stop can be while the iteration's agent or gate runs: after that
    /// the end is being made. The stop of a task is its plan's.
    pub fn queued(&self) -> impl Iterator<Item = QueuedRequest> {
        let told = self.in_flight().map_or(0, |flight| flight.told);
        let texts = self.steering.iter().skip(told).filter_map(|steering| {
            Some(QueuedRequest {
                request: steering.request.clone()?,
                effect: QueuedEffect::Steer,
                text: Some(steering.text.clone()),
                by: steering.by,
            })
        });
        let can_stop_later = self.ended.is_none()
            && self.spec.task.is_none()
            && self.child().is_some_and(|(_, child)| child.stopping.is_none());
        let stops = [
            (QueuedEffect::Pause, self.pause, &self.pause_request, self.paused_by),
            (QueuedEffect::Cancel, self.cancel, &self.cancel_request, self.cancelled_by),
        ];
        let stops = stops.into_iter().filter_map(|(effect, urgency, request, by)| {
            let is_queued = can_stop_later && urgency == Some(Urgency::AfterIteration);
            let request = request.clone().filter(|_| is_queued)?;
            Some(QueuedRequest { request, effect, text: None, by: by.unwrap_or_default() })
        });
        let can_change = !self.is_final() && self.check_here().is_ok();
        let mut all: Vec<_> = texts.chain(stops).filter(|_| can_change).collect();
        all.sort_by(|a, b| a.request.cmp(&b.request));
        all.into_iter()
    }

    /// Takes a queued request back; an agent cannot take back what a person asked for.
    pub(in crate::r#loop) fn withdraw(&mut self, request: &RequestId, by: Asker) {
        let queued = self.queued().find(|queued| queued.request == *request && queued.by <= by);
        match queued.map(|queued| queued.effect) {
            Some(QueuedEffect::Steer) => {
                self.steering.retain(|steering| steering.request.as_ref() != Some(request));
            }
            Some(QueuedEffect::Pause) => self.lifecycle.forget_pause(),
            Some(QueuedEffect::Cancel) => self.lifecycle.forget_cancel(),
            None => {}
        }
    }
}
