//! Who drives the loop, and until when: runners, sessions, requests of people, the end and what follows a resumption.

use jiff::Timestamp;

use super::super::provider_faults::Trouble;
use super::super::state::{LoopState, Phase, Steering};
use crate::event::{ApprovedTree, Ask, Asker, BlockReason, End, Event};
use crate::ids::RequestId;
use crate::machine::Ended;
use crate::sandbox::Host;
use crate::session::Session;
use crate::spec::Limits;

impl LoopState {
    /// A runner takes over. What an earlier one had in flight is settled with it.
    pub(super) fn start_runner(&mut self, event: &Event) -> Result<(), &'static str> {
        let Event::RunnerStarted { runner, interrupted, adopted, judged, fence } = event else {
            return Err("runner.started");
        };
        let is_late = self.ended.is_some() || fence.is_some_and(|fence| fence < self.tenure.fence);
        if is_late || judged.is_some() && (interrupted.is_some() || self.runs().is_none()) {
            return Err("runner.started");
        }
        match (&self.phase, interrupted) {
            (Phase::InFlight(flight), Some(id)) if flight.id == *id => {
                let flight = flight.clone();
                // When it ended was not seen: the last that is known of it is the last event.
                self.settle(flight, self.updated_at, adopted.clone());
            }
            (Phase::Idle { .. } | Phase::Begun { .. } | Phase::Publishing(_), None) if adopted.is_none() => {
                if let Phase::Publishing(publishing) = &mut self.phase {
                    // The next runner checks whether it was done before it does it again.
                    publishing.running = None;
                }
            }
            (Phase::Proving(_) | Phase::Critiquing(_), None) if adopted.is_none() => {
                if let Some(judge) = self.runs().cloned() {
                    self.spend(&judge, judged.as_deref());
                }
                self.lose_gate();
                self.lose_critique(None);
            }
            _ => return Err("runner.started"),
        }
        self.lifecycle.runner = Some(runner.clone());
        self.sweeping = false;
        self.git.unwatched |= self.git.base.is_some();
        if let Some(fence) = fence {
            self.lease(*fence);
        }
        Ok(())
    }

    /// A session drives it from here on, and no runner.
    pub(super) fn bind_session(&mut self, session: &Session) -> Result<(), &'static str> {
        let may = if self.in_flight().is_some() { self.session.is_some() } else { !self.is_busy() };
        if !may || self.ended.is_some() {
            return Err("session.bound");
        }
        self.session = Some(session.clone());
        Ok(())
    }

    /// A request is recorded, and what it asks for at once.
    pub(super) fn take_request(
        &mut self,
        request: Option<&RequestId>,
        ask: &Ask,
        by: Asker,
    ) -> Result<(), &'static str> {
        let kills = self.kills_at_once(ask);
        self.lifecycle.ask(request, ask, by)?;
        if kills {
            self.kill_child();
        }
        match ask {
            Ask::Cancel(_) | Ask::Pause(_) => {}
            // Any other process of the user can write a request, and an agent is one.
            Ask::AllowHost(host) if by.is_person() => self.allow_host(host),
            Ask::AllowHost(_) => {}
            Ask::Steer(text) => {
                self.steering.push(Steering { text: text.clone(), by, request: request.cloned() })
            }
            Ask::Withdraw(request) => self.withdraw(request, by),
            Ask::Proceed => {
                self.wait = None;
                self.rested_since = None;
                self.trouble.next = None;
                if let Phase::Publishing(publishing) = &mut self.phase {
                    publishing.next = None;
                }
                self.hurried = true;
            }
        }
        Ok(())
    }

    fn allow_host(&mut self, host: &Host) {
        if let Some(sandbox) = self.spec.sandbox.as_mut().filter(|sandbox| !sandbox.hosts.contains(host)) {
            sandbox.hosts.push(host.clone());
        }
    }

    /// The loop stops, for good or until it is resumed.
    pub(super) fn end(&mut self, end: End, at: Timestamp) -> Result<(), &'static str> {
        let fits = match end {
            // A stopped loop can still be cancelled; nothing else can happen to it but `resume`.
            End::Cancelled => self.cancel.is_some() && !self.is_final(),
            End::Completed { claim } => self.completes_by() == Some(claim) && self.cancel.is_none(),
            End::IterationCap
            | End::Stuck
            | End::TimedOut
            | End::BudgetExceeded { .. }
            | End::Blocked { .. }
            | End::Paused => self.cancel.is_none(),
        };
        let again = self.ended.is_some() && end != End::Cancelled;
        let for_good = matches!(end, End::Completed { .. } | End::Cancelled);
        if !fits || again || self.is_busy() || (for_good && self.holds_worktree()) {
            return Err("loop.ended");
        }
        self.wait = None;
        self.lifecycle.ended = Some(Ended { end, at });
        Ok(())
    }

    /// A person resumes it: what stopped it counts no more.
    pub(super) fn resume_with(
        &mut self,
        limits: &Limits,
        approved: Option<&ApprovedTree>,
        no_sandbox: bool,
        at: Timestamp,
    ) -> Result<(), &'static str> {
        let fits = approved.is_none() || approved.cloned() == self.awaits_approval();
        let is_here = self.check_here().is_ok();
        if !fits || !is_here || self.is_busy() || self.is_final() || self.cancel.is_some() {
            return Err("loop.resumed");
        }
        self.hear_of_approval(approved, at);
        self.limits = limits.clone();
        if no_sandbox {
            self.spec.sandbox = None;
        }
        let was = self.lifecycle.resume();
        (self.wait, self.rested_since) = (None, None);
        (self.lifecycle.runner, self.session) = (None, None);
        self.refunds_in_a_row = 0;
        (self.churn, self.idle_turns, self.unneeded) = (0, 0, 0);
        // The last iteration may not be the last any more.
        self.weigh_claim();
        (self.cost_unknown, self.untold, self.untold_judges) = (false, 0, 0);
        (self.given_up, self.blocked) = (None, 0);
        if matches!(was, Some(End::Stuck | End::Blocked { why: BlockReason::Stuck })) {
            self.reset_stuck();
        }
        if self.missing_gate().is_some() {
            // By now it may be there.
            (self.baseline, self.proof) = (None, None);
        }
        self.progress.saved = None;
        (self.git.refused, self.git.bad_work) = (None, false);
        self.publish_again();
        self.git.stale |= self.has_told_all() || self.may_be_renewed();
        self.git.unwatched |= self.git.base.is_some();
        if let Phase::Proving(proving) = &mut self.phase {
            // A person who has not been asked yet has said nothing.
            proving.hindered = proving.hindered.filter(|why| *why == BlockReason::Approval);
        }
        let mut next = self.trouble.next;
        if let Phase::Begun { hindered, .. } = &mut self.phase
            && hindered.take().is_some()
        {
            next = None;
        }
        self.trouble = Trouble::only(next);
        Ok(())
    }
}
