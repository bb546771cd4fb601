//! A critic looks at the loop's progress now and then. The loop continues whatever the result; a critic that failed or
//! was lost is not tried again.

use jiff::Timestamp;

use super::state::{Child, Feedback, LoopState, Phase, RunningCritique};
use crate::event::{CritiqueFinished, Exit};

impl LoopState {
    /// Whether a critic is to look at what the last iteration came to.
    pub(super) fn is_critique_due(&self) -> bool {
        let every = self.spec.critique.as_ref().map_or(0, |critique| critique.every);
        every > 0
            && self.charged > 0
            && self.charged.is_multiple_of(every)
            && self.feedback.asked < self.iteration
            && matches!(self.phase, Phase::Idle { claim: None, uncommitted: false })
    }

    pub fn critiquing(&self) -> Option<&RunningCritique> {
        let Phase::Critiquing(critiquing) = &self.phase else { return None };
        Some(critiquing)
    }

    pub(super) fn start_critique(&mut self, iteration: u32, at: Timestamp) -> Result<(), &'static str> {
        if !self.is_critique_due() || iteration != self.iteration || self.sweeping || !self.is_driven() {
            return Err("critique.started");
        }
        self.feedback = Feedback { asked: iteration, said: None, error: None };
        self.phase = Phase::Critiquing(RunningCritique { iteration, child: Child::new(at) });
        Ok(())
    }

    /// The critic in flight, if the event `what` fits it.
    pub(super) fn critique_to(
        &mut self,
        what: &'static str,
        fits: impl FnOnce(&RunningCritique) -> bool,
    ) -> Result<&mut RunningCritique, &'static str> {
        let Phase::Critiquing(critiquing) = &mut self.phase else { return Err(what) };
        if fits(critiquing) { Ok(critiquing) } else { Err(what) }
    }

    pub(super) fn finish_critique(&mut self, finished: &CritiqueFinished) -> Result<(), &'static str> {
        let stopped = self.critique_to("critique.finished", |_| true)?.child.stopping.is_some();
        self.phase = Phase::Idle { claim: None, uncommitted: false };
        self.sweeping = finished.left;
        if let Some(critic) = self.spec.critique.as_ref().map(|critique| critique.critic.clone()) {
            self.spend(&critic, finished.report.as_deref());
        }
        let ended = matches!(finished.exit, Exit::Code(0) | Exit::Unseen) && !stopped;
        self.feedback.said = finished.feedback.clone().filter(|said| ended && !said.trim().is_empty());
        self.feedback.error.clone_from(&finished.error);
        Ok(())
    }

    /// It could not be started, or its end was not seen.
    pub(super) fn lose_critique(&mut self, error: Option<&str>) {
        if self.critiquing().is_some() {
            self.phase = Phase::Idle { claim: None, uncommitted: false };
            self.feedback.error = error.map(str::to_owned);
        }
    }
}
