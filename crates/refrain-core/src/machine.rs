//! What a loop and a plan have in common: both are the fold of a journal, have a runner, take stop requests, and
//! continue when they are resumed. refrain-store, which reads and writes journals, knows nothing else of them.

mod damage;
mod refusal;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{self, Ask, Asker, Identity, Record, Urgency};
use crate::ids::{LoopId, RequestId};
use crate::model::status::StatusWord;
use crate::signature::{Signatures, SignedKind, SignedRecord};
use crate::spec::Millis;

pub use damage::Damage;
pub use refusal::{MAX_STEERING, Refusal, check_steering};

/// A loop, or a plan: the state that the records of a journal add up to.
pub trait Machine: Clone + Deref<Target = Lifecycle<Self::End>> {
    type Event: Serialize + DeserializeOwned;

    type End: MachineEnd;

    fn begin(record: &Record<Self::Event>) -> Result<Self, Damage>;

    /// The state after one more record; unchanged if the record cannot follow.
    fn apply(&mut self, record: &Record<Self::Event>) -> Result<(), Damage>;

    fn id(&self) -> &LoopId;

    fn admits(&self, ask: &Ask) -> Result<(), Refusal>;

    /// The kind of a record with this event, if it is signed.
    fn signed(event: &Self::Event) -> Option<SignedKind>;

    /// Whether an end may rest on what this event says: a forged end needs a forged result.
    fn is_result(event: &Self::Event) -> bool;

    /// The findings on the signatures of its journal.
    fn judge(&self, records: &[SignedRecord]) -> Signatures;

    fn event(shared: SharedEvent) -> Self::Event;
}

/// An event that every machine has; each has its own name for it in the journal.
pub enum SharedEvent {
    /// A request was heard, from that asker; without an id it was a signal.
    Asked(Option<RequestId>, Ask, Asker),
    /// The journal ended in half a line of so many bytes, which that file beside it keeps.
    JournalTorn(u64, String),
    /// The journal was deleted or changed under its writer, and so many bytes were written back. What another process had made of
    /// it is in that file.
    JournalRestored(u64, Option<String>),
}

/// The ways in which a machine can stop.
pub trait MachineEnd: Copy + Into<StatusWord> {
    /// The status that it leaves the machine in, as `status` spells it.
    fn name(self) -> &'static str {
        self.into().as_str()
    }

    /// Whether nothing more can happen to it.
    fn is_final(self) -> bool {
        self.into().is_over()
    }
}

impl<E: Copy + Into<StatusWord>> MachineEnd for E {}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended<E = event::End> {
    pub end: E,
    pub at: Timestamp,
}

/// The part of a machine's state that does not depend on what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifecycle<E> {
    /// Events folded so far; the next has this number plus one.
    pub seq: u64,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    /// The process that drives it, or drove it last.
    pub runner: Option<Identity>,
    /// A stop for good was asked for.
    pub cancel: Option<Urgency>,
    /// A stop for now was asked for; `resume` takes it back.
    pub pause: Option<Urgency>,
    /// Who asked for the end; a person if several did.
    pub cancelled_by: Option<Asker>,
    /// Who asked for the pause; a person if several did.
    pub paused_by: Option<Asker>,
    /// The last request for the end.
    pub cancel_request: Option<RequestId>,
    /// The last request for the pause; none if only a signal to the runner asked for it.
    pub pause_request: Option<RequestId>,
    /// How it stopped, while it is stopped.
    pub ended: Option<Ended<E>>,
    /// Its own duration up to `updated_at`.
    pub active: Duration,
    answered: BTreeSet<RequestId>,
}

impl<E: MachineEnd> Lifecycle<E> {
    /// The lifecycle of a machine that starts, with a journal of this format.
    pub(crate) fn begin(at: Timestamp, format: u32) -> Result<Self, Damage> {
        if !event::is_readable(format) {
            return Err(Damage::Format { found: format });
        }
        Ok(Self {
            seq: 1,
            started_at: at,
            updated_at: at,
            runner: None,
            cancel: None,
            pause: None,
            cancelled_by: None,
            paused_by: None,
            cancel_request: None,
            pause_request: None,
            ended: None,
            active: Duration::ZERO,
            answered: BTreeSet::new(),
        })
    }

    /// Refuses a record that does not follow the last one.
    pub(crate) fn check_order(&self, seq: u64, at: Timestamp) -> Result<(), Damage> {
        if seq != self.seq + 1 {
            return Err(Damage::Sequence { expected: self.seq + 1, found: seq });
        }
        if at < self.updated_at { Err(Damage::Time(seq)) } else { Ok(()) }
    }

    /// A record was applied; so much of the time since the last one is the machine's own.
    pub(crate) fn advance(&mut self, seq: u64, at: Timestamp, own: Duration) {
        self.active += own;
        (self.seq, self.updated_at) = (seq, at);
    }

    /// The time since the last event.
    pub(crate) fn stretch(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.updated_at)).unwrap_or_default()
    }

    /// Whether nothing more can happen to it.
    pub fn is_final(&self) -> bool {
        self.ended.is_some_and(|ended| ended.end.is_final())
    }

    /// Whether a request was turned into an event already.
    pub fn has_answered(&self, request: &RequestId) -> bool {
        self.answered.contains(request)
    }

    /// Refuses what cannot be asked once it has stopped.
    pub(crate) fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        match (self.ended.map(|ended| ended.end), ask) {
            (Some(end), _) if end.is_final() => Err(Refusal::Final(end.name())),
            (Some(end), Ask::Pause(_) | Ask::Proceed) => Err(Refusal::Stopped(end.name())),
            (_, Ask::Withdraw(_)) => Err(Refusal::NotQueued),
            (_, Ask::Cancel(_) | Ask::Pause(_) | Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_)) => Ok(()),
        }
    }

    /// Records a request, each once; of two stops the more urgent one counts.
    pub(crate) fn ask(
        &mut self,
        request: Option<&RequestId>,
        ask: &Ask,
        by: Asker,
    ) -> Result<(), &'static str> {
        if request.is_some_and(|request| !self.answered.insert(request.clone())) {
            return Err("asked");
        }
        let (stop, asker, last, urgency) = match ask {
            Ask::Cancel(urgency) => {
                (&mut self.cancel, &mut self.cancelled_by, &mut self.cancel_request, urgency)
            }
            Ask::Pause(urgency) => (&mut self.pause, &mut self.paused_by, &mut self.pause_request, urgency),
            Ask::Steer(_) | Ask::Proceed | Ask::AllowHost(_) | Ask::Withdraw(_) => return Ok(()),
        };
        *stop = (*stop).max(Some(*urgency));
        *asker = (*asker).max(Some(by));
        if let Some(request) = request {
            *last = Some(request.clone());
        }
        Ok(())
    }

    pub(crate) fn forget_pause(&mut self) {
        (self.pause, self.paused_by, self.pause_request) = (None, None, None);
    }

    pub(crate) fn forget_cancel(&mut self) {
        (self.cancel, self.cancelled_by, self.cancel_request) = (None, None, None);
    }

    /// Whether an event is needed to resume it. None is for one whose runner died, unless it gets more or was about to
    /// pause. One that was about to be cancelled gets no more: the next runner finishes that.
    pub(crate) fn may_resume(&self, gets_more: bool) -> Result<bool, Refusal> {
        match self.ended.map(|ended| ended.end) {
            Some(end) if end.is_final() => Err(Refusal::Final(end.name())),
            Some(_) if self.cancel.is_some() => Err(Refusal::Final("cancelled")),
            None if self.cancel.is_some() => Ok(false),
            None => Ok(self.pause.is_some() || gets_more),
            Some(_) => Ok(true),
        }
    }

    pub(crate) fn resume(&mut self) -> Option<E> {
        self.forget_pause();
        self.ended.take().map(|ended| ended.end)
    }

    /// If this duration is used up: how much is, and the option that grants twice that.
    pub(crate) fn more_time(&self, max_duration: Option<Millis>) -> Option<(String, String)> {
        let active = Millis::from(self.active);
        let enough = (active.0.saturating_mul(2) / 1000).max(60);
        let words = (format!("{active} are used up"), format!("--max-duration {enough}s"));
        max_duration.filter(|all| *all <= active).map(|_| words)
    }
}
