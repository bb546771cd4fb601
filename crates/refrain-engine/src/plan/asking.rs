//! Asking something of a plan that somebody else drives, or nobody.

use std::time::Duration;

use refrain_agents::environment;
use refrain_core::event::{Ask, Asker, Urgency};
use refrain_core::plan::{PlanEnd, PlanEvent, PlanState};
use refrain_core::{LoopId, LoopState};
use refrain_store::disk::notice::Notice;
use refrain_store::journal;
use refrain_store::project::inbox;
use refrain_store::{Journal, LoopDir, RunnerLock};

use super::landing::Landing;
use super::statuses::Statuses;
use crate::service::asking::{SlowRunner, SlowRunnerNotice, request};
use crate::{EngineError, Host, LoopRequest, Service, now};

/// How long somebody who asks waits before looking whether the runner still lives.
const ASK_CHECK: Duration = Duration::from_millis(200);

impl Service {
    /// Asks something of a plan, and returns how it stands once it was heard. A runner that lives is asked; without one it
    /// is done here. `slow` is told of the runner as for a loop.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the plan's state does not allow it, and it is unchanged; else what failed.
    pub fn ask_plan(
        &self,
        id: &LoopId,
        what: LoopRequest,
        (ask, by): (Ask, Asker),
        slow: impl FnOnce(SlowRunner),
    ) -> Result<PlanState, EngineError> {
        let dir = self.plan_dir(id)?;
        let request = request(self.host(), &dir, (ask, by));
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        let read = || -> Result<PlanState, EngineError> { Ok(journal::read_as(&dir)?.state) };
        read()?.admits(&request.ask).map_err(refused)?;
        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        request.post(&dir)?;
        let mut slow = SlowRunnerNotice::new(slow);
        loop {
            self.answer_plan_without_runner(&dir)?;
            let state = read()?;
            if state.has_answered(&request.id) {
                return Ok(state);
            }
            // Nobody answers what can no longer be done: the plan came to an end in between.
            if let Err(why) = state.admits(&request.ask) {
                inbox::remove(&dir.inbox().join(request.id.as_str()));
                return Err(refused(why));
            }
            slow.look(state.runner.as_ref());
            notice.wait(Some(ASK_CHECK));
            // An agent may have deleted the inbox or the doorbell; asked twice is done once.
            match dir.inbox().join(request.id.as_str()).exists() {
                true => inbox::ring(&dir),
                false => request.post(&dir)?,
            }
        }
    }

    /// Does what waits in the inbox of a plan that nobody drives. With a runner alive, or an empty inbox, this does nothing.
    pub(super) fn answer_plan_without_runner(&self, dir: &LoopDir) -> Result<(), EngineError> {
        if inbox::waiting(dir)?.is_empty() {
            return Ok(());
        }
        let Some(_lock) = RunnerLock::try_take(dir)? else { return Ok(()) };
        let mut journal: Journal<PlanState> = Journal::open(dir.clone(), now())?;
        let waiting = self.host.signing().requests(dir)?;
        Statuses::around(self, &mut journal, |journal| {
            for (request, _) in &waiting {
                let state = journal.state();
                if state.has_answered(&request.id) || state.admits(&request.ask).is_err() {
                    continue;
                }
                journal.push(
                    PlanEvent::Asked {
                        request: Some(request.id.clone()),
                        ask: request.ask.clone(),
                        by: request.by,
                    },
                    now(),
                )?;
                let end = match request.ask {
                    Ask::Cancel(_) => PlanEnd::Cancelled,
                    Ask::Pause(_) | Ask::Steer(_) | Ask::Proceed => PlanEnd::Paused,
                };
                // One that stopped before stays as it is, unless it is to stop for good.
                if end == PlanEnd::Cancelled || journal.state().ended.is_none() {
                    journal.push(PlanEvent::Ended(end), now())?;
                }
            }
            Ok(())
        })?;
        waiting.iter().for_each(|(_, path)| inbox::remove(path));
        let state = journal.state();
        let env = environment::of_git(&state.spec.each, self.host.env.iter().cloned());
        if state.is_final() {
            self.put_away(state, &Landing::new(self, state, &self.host, env))
        } else {
            Ok(())
        }
    }

    /// What is left to do for a plan that is over, and recorded as that: its loops are, too, and git keeps nothing for it.
    pub(super) fn put_away(&self, state: &PlanState, landing: &Landing) -> Result<(), EngineError> {
        let cancelled = self.cancel_tasks(state);
        landing.clear(state);
        cancelled
    }

    /// Cancels the loops of a plan that nobody drives.
    fn cancel_tasks(&self, state: &PlanState) -> Result<(), EngineError> {
        for (_, running) in state.running() {
            let is_over = |state: &LoopState| state.is_final();
            match self.locate(&running.id) {
                // It was never started.
                Err(EngineError::NoLoop { .. }) => {}
                Err(error) => return Err(error),
                Ok(found) if journal::read(&found.dir).is_ok_and(|read| is_over(&read.state)) => {}
                Ok(_) => {
                    let ask = (Ask::Cancel(Urgency::Now), state.cancelled_by.unwrap_or_default());
                    self.ask(&running.id, LoopRequest::Cancel, ask, |_| {})?;
                }
            }
        }
        Ok(())
    }
}

/// Asks a loop to rest, or to end for good, for this asker, without waiting for its answer.
pub(super) fn tell(
    host: &Host,
    dir: &LoopDir,
    (urgency, for_good, by): (Urgency, bool, Asker),
) -> Result<(), EngineError> {
    let ask = if for_good { Ask::Cancel(urgency) } else { Ask::Pause(urgency) };
    Ok(request(host, dir, (ask, by)).post(dir)?)
}
