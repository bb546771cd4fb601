//! Asking something of a loop that somebody else drives, or nobody: a request that is done once, whoever does it.

use std::time::Duration;

use rand::RngExt;
use refrain_agents::environment;
use refrain_core::event::{Ask, Event};
use refrain_core::ids::RequestId;
use refrain_core::{Live, LoopId, LoopState, Step, next_step};
use refrain_proc::identity;
use refrain_proc::sweep::{Mark, sweep};
use refrain_store::journal::{self, Durability};
use refrain_store::notice::Notice;
use refrain_store::{Journal, LoopDir, Request, RunnerLock, inbox};

use crate::{EngineError, Service, now};

/// How long somebody who asks waits before looking whether the runner still lives.
const ASK_CHECK: Duration = Duration::from_millis(200);

impl Service {
    /// Asks something of a loop, and returns how it stands once it was heard. A runner that lives is asked; without one
    /// it is done here.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the loop's state does not allow it, and it is unchanged; else what failed.
    pub fn ask(&self, id: &LoopId, what: &'static str, ask: Ask) -> Result<LoopState, EngineError> {
        let dir = self.locate(id)?.dir;
        let name = format!("{:013}-{:08x}", now().as_millisecond(), rand::rng().random::<u32>());
        let id_error = |_| EngineError::NoLoop { id: id.clone(), project: self.project.root.clone() };
        let request = Request { id: RequestId::try_from(name).map_err(id_error)?, ask };
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        journal::read(&dir)?.state.admits(&request.ask).map_err(refused)?;

        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        request.post(&dir)?;
        loop {
            answer_without_runner(&dir)?;
            let state = journal::read(&dir)?.state;
            if state.has_answered(&request.id) {
                return Ok(state);
            }
            // Nobody answers what can no longer be done: the loop came to an end in between.
            if let Err(why) = state.admits(&request.ask) {
                inbox::remove(&dir.inbox().join(request.id.as_str()));
                return Err(refused(why));
            }
            notice.wait(Some(ASK_CHECK));
            // The agent may have deleted the inbox; asked twice is done once.
            if !dir.inbox().join(request.id.as_str()).exists() {
                request.post(&dir)?;
            }
        }
    }
}

/// Does what waits in the inbox of a loop that nobody drives. With a runner alive, or an empty inbox, this does nothing.
pub(crate) fn answer_without_runner(dir: &LoopDir) -> Result<(), EngineError> {
    if inbox::waiting(dir)?.is_empty() {
        return Ok(());
    }
    let Some(_lock) = RunnerLock::try_take(dir)? else { return Ok(()) };
    let mut journal = Journal::open(dir.clone(), now())?;
    let waiting = inbox::waiting(dir)?;
    for (request, _) in &waiting {
        let state = journal.state();
        if state.has_answered(&request.id) || state.admits(&request.ask).is_err() {
            continue;
        }
        take_over(&mut journal)?;
        let ask = request.ask.clone();
        journal.push(Event::Asked { request: Some(request.id.clone()), ask }, now())?;
        if let Step::Finish(end) = next_step(journal.state(), &Live::default(), now()) {
            journal.push(Event::LoopEnded(end), now())?;
        }
    }
    journal.commit(Durability::Synced)?;
    waiting.iter().for_each(|(_, path)| inbox::remove(path));
    Ok(())
}

/// Takes a loop over from a runner that died: its processes are ended, its attempt is refunded, and the time without a
/// runner is not the loop's own. Whoever calls has the lock. A loop that has stopped left nothing behind.
pub(crate) fn take_over(journal: &mut Journal) -> Result<(), EngineError> {
    let state = journal.state();
    if state.ended.is_some() {
        return Ok(());
    }
    if let Some(flight) = state.in_flight() {
        // After a reboot, or on another machine, its number says nothing.
        let own = identity::own();
        let here =
            state.runner.as_ref().is_some_and(|runner| runner.boot == own.boot && runner.host == own.host);
        let session = flight.spawned.map(|(process, _)| process).filter(|_| here);
        let _ended = sweep(&Mark { variable: environment::mark(&state.spec), session, keeper: None });
    }
    journal.push(state.recover(identity::own()), now())?;
    Ok(())
}
