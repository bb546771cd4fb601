//! What a loop and a plan have in common, whatever they do: somebody drives them, and they are asked to stop.

use crate::event::{Ask, Asker, Event, Identity};
use crate::fold::Fold;
use crate::ids::RequestId;
use crate::r#loop::{LoopState, Refusal};
use crate::plan::{PlanEvent, PlanState};

/// A loop, or a plan: the state that its journal adds up to.
pub trait Machine: Fold {
    /// Whether it can be asked this now.
    ///
    /// # Errors
    /// A [`Refusal`] that says why not.
    fn admits(&self, ask: &Ask) -> Result<(), Refusal>;

    /// Whether a request was turned into an event already.
    fn has_answered(&self, request: &RequestId) -> bool;

    /// Whether it has stopped, for good or for now.
    fn has_ended(&self) -> bool;

    /// Who drives it, or drove it last.
    fn runner(&self) -> Option<&Identity>;

    /// The event that records a request; without an id it was a signal.
    fn asked(request: Option<RequestId>, ask: Ask, by: Asker) -> Self::Event;
}

impl Machine for LoopState {
    fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.admits(ask)
    }

    fn has_answered(&self, request: &RequestId) -> bool {
        self.has_answered(request)
    }

    fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    fn runner(&self) -> Option<&Identity> {
        self.runner.as_ref()
    }

    fn asked(request: Option<RequestId>, ask: Ask, by: Asker) -> Event {
        Event::Asked { request, ask, by }
    }
}

impl Machine for PlanState {
    fn admits(&self, ask: &Ask) -> Result<(), Refusal> {
        self.admits(ask)
    }

    fn has_answered(&self, request: &RequestId) -> bool {
        self.has_answered(request)
    }

    fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    fn runner(&self) -> Option<&Identity> {
        self.runner.as_ref()
    }

    fn asked(request: Option<RequestId>, ask: Ask, by: Asker) -> PlanEvent {
        PlanEvent::Asked { request, ask, by }
    }
}
