//! Asking something of a loop or a plan that another runner drives, or none: a request that is done once, by whichever
//! process does it.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use rand::RngExt;
use refrain_agents::{environment, hook};
use refrain_core::event::{Ask, Asker, Event, Urgency};
use refrain_core::ids::RequestId;
use refrain_core::session::Session;
use refrain_core::{ChildId, Live, LoopId, LoopState, Machine, SharedEvent, Step, next_step};
use refrain_proc::identity;
use refrain_proc::sweep::{self, Mark, sweep};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{self, Durability};
use refrain_store::project::inbox;
use refrain_store::{ClaimOutcome, Journal, LoopDir, Project, Request, RunnerLock, WorktreeLock};

use crate::driver::liveness::{is_session_alive, is_stopped};
use crate::driver::recovery;
use crate::git_steps::repository;
use crate::observe::telemetry::tell_of_session;
use crate::service::mirror;
use crate::{EngineError, Host, LoopRequest, Service, chain, now};

/// How long a caller waits before it checks whether the runner still lives.
const ASK_CHECK: Duration = Duration::from_millis(200);
/// After how long a runner that has not answered is worth a word: one that is well does so at once.
const ASK_SLOW: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct SlowRunner {
    pub pid: Option<i32>,
    /// It is stopped (SIGSTOP), and answers once it is continued. Else it hangs, or cannot be rung.
    pub is_stopped: bool,
}

/// A machine for which requests are done while no runner drives it.
pub(crate) trait Unattended: Machine {
    type Actor;

    fn actor(service: &Service) -> &Self::Actor;

    fn host(actor: &Self::Actor) -> &Host;

    /// Does these requests, each once, and makes that durable. The caller has the lock.
    fn answer(
        actor: &Self::Actor,
        journal: &mut Journal<Self>,
        requests: &[&Request],
    ) -> Result<(), EngineError>;

    /// Does what is left to do for the new state.
    fn settle(actor: &Self::Actor, state: &Self, dir: &LoopDir) -> Result<(), EngineError>;

    /// It has just ended here, and no runner's process reports that.
    fn tell_end(_: &Host, _: &Self, _: &LoopDir) {}

    fn is_new(&self, request: &Request) -> bool {
        !self.has_answered(&request.id) && self.admits(&request.ask).is_ok()
    }

    fn record(journal: &mut Journal<Self>, request: &Request) -> Result<(), EngineError> {
        let asked = SharedEvent::Asked(Some(request.id.clone()), request.ask.clone(), request.by);
        Ok(journal.push(Self::event(asked), now())?)
    }
}

impl Service {
    /// Asks the loop or plan in `dir`, and returns its state after the request was taken.
    pub(crate) fn ask_machine<M: Unattended>(
        &self,
        dir: &LoopDir,
        id: &LoopId,
        what: LoopRequest,
        ask: (Ask, Asker),
        slow: impl FnOnce(SlowRunner),
    ) -> Result<M, EngineError> {
        let request = request(&self.host, dir, ask);
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        let before: M = journal::read_believed(dir, &self.host.signing())?;
        before.admits(&request.ask).map_err(refused)?;

        request.post(dir)?;
        let mut notice = None;
        let (began, mut slow) = (Instant::now(), Some(slow));
        loop {
            let answered = answer_without_runner::<M>(M::actor(self), dir)?;
            if let Some(state) = answered.filter(|state| state.ended.is_some() && before.ended.is_none()) {
                M::tell_end(&self.host, &state, dir);
            }
            let state: M = journal::read_as(dir)?.state;
            if state.has_answered(&request.id) {
                return Ok(state);
            }
            // A request that is no longer possible gets no answer: the loop or plan ended in between.
            if let Err(why) = state.admits(&request.ask) {
                inbox::remove(&dir.inbox().join(request.id.as_str()));
                return Err(refused(why));
            }
            let (runner, is_stopped) = (state.runner.as_ref(), is_stopped(state.runner.as_ref()));
            if (is_stopped || began.elapsed() >= ASK_SLOW)
                && let Some(slow) = slow.take()
            {
                slow(SlowRunner { pid: runner.map(|runner| runner.process.pid), is_stopped });
            }
            match &notice {
                // Only now: the kernel takes up to 40 ms to close one. What happened meanwhile is seen in the next
                // round.
                None => {
                    notice.insert(Notice::new()?).watch(&dir.journal());
                    continue;
                }
                Some(notice) => notice.wait(Some(ASK_CHECK)),
            }
            // The agent may have deleted the inbox or the doorbell; asked twice is done once.
            match dir.inbox().join(request.id.as_str()).exists() {
                true => inbox::ring(dir),
                false => request.post(dir)?,
            }
        }
    }
}

/// A request of this asker to the loop or plan in `dir`.
pub(crate) fn request(host: &Host, dir: &LoopDir, (ask, by): (Ask, Asker)) -> Request {
    let id = RequestId::made(now(), rand::rng().random());
    host.signing().sign_request(dir, Request { id, ask, by, signature: None })
}

/// Does what waits in the inbox of a loop or plan without a runner, and returns its state then. With a runner alive, or
/// an empty inbox, this does nothing.
pub(crate) fn answer_without_runner<M: Unattended>(
    actor: &M::Actor,
    dir: &LoopDir,
) -> Result<Option<M>, EngineError> {
    if inbox::waiting(dir)?.is_empty() {
        return Ok(None);
    }
    let Some(_lock) = RunnerLock::try_take(dir)? else { return Ok(None) };
    let signing = M::host(actor).signing();
    let mut journal: Journal<M> = Journal::open_signed(dir.clone(), now(), signing.clone())?;
    let waiting = signing.requests(dir)?;
    M::answer(actor, &mut journal, &waiting.iter().map(|(request, _)| request).collect::<Vec<_>>())?;
    waiting.iter().for_each(|(_, path)| inbox::remove(path));
    M::settle(actor, journal.state(), dir)?;
    Ok(Some(journal.state().clone()))
}

impl Unattended for LoopState {
    type Actor = Host;

    fn actor(service: &Service) -> &Host {
        &service.host
    }

    fn host(host: &Host) -> &Host {
        host
    }

    fn answer(host: &Host, journal: &mut Journal, requests: &[&Request]) -> Result<(), EngineError> {
        // Only the session ends its turn, except on cancel.
        let is_its_turn = journal.state().is_in_session() && journal.state().in_flight().is_some();
        let can_wait = |ask: &Ask| is_its_turn && !matches!(ask, Ask::Cancel(_));
        if requests.iter().any(|request| journal.state().is_new(request) && !can_wait(&request.ask)) {
            take_over(journal, host)?;
        }
        for request in requests {
            if journal.state().is_new(request) {
                Self::record(journal, request)?;
                finish_if_asked(journal, host)?;
            }
        }
        journal.commit(Durability::Synced)?;
        Ok(())
    }

    fn settle(_: &Host, state: &Self, dir: &LoopDir) -> Result<(), EngineError> {
        if state.ended.is_some() {
            mirror::close(state, dir);
        }
        Ok(())
    }

    fn tell_end(host: &Host, state: &Self, dir: &LoopDir) {
        tell_of_session(host, state, dir);
    }
}

/// Takes a loop over from a runner that died: its processes are ended, its attempt is refunded, and the time without a
/// runner does not count. The caller has the lock. One that has stopped only gets the end that it was asked for: the
/// requesting process may have died in between.
pub(crate) fn take_over(journal: &mut Journal, host: &Host) -> Result<(), EngineError> {
    take_over_where(journal, host, |session| is_session_alive(session) == Some(false))
}

/// [`take_over`]; what the tools of its session left running is ended where the session is dead.
pub(crate) fn take_over_where(
    journal: &mut Journal,
    host: &Host,
    is_dead: impl Fn(&Session) -> bool,
) -> Result<(), EngineError> {
    let state = journal.state();
    let swept = (state.is_busy() || state.sweeping || state.is_committing()).then(|| {
        // After a reboot, or on another machine, its number says nothing.
        let own = identity::own();
        let here =
            state.runner.as_ref().is_some_and(|runner| runner.boot == own.boot && runner.host == own.host);
        let spawned = state.in_flight().and_then(|flight| flight.spawned);
        let session = spawned.map(|(process, _)| process).filter(|_| here);
        sweep(&Mark { variables: environment::marks(&state.spec), session, keeper: None })
    });
    if state.ended.is_some() {
        if let Some(killed) = swept.filter(|_| state.sweeping) {
            journal.push(Event::AttemptSwept { killed, survivors: Vec::new(), names: Vec::new() }, now())?;
        }
        return finish_if_asked(journal, host);
    }
    let left = sweep_session(state, is_dead);
    let taken_over = recovery::taken_over(state, journal.dir());
    journal.push(taken_over, now())?;
    if let Some((killed, names)) = left.filter(|(killed, _)| *killed > 0) {
        journal.push(Event::AttemptSwept { killed, survivors: Vec::new(), names }, now())?;
    }
    Ok(())
}

fn sweep_session(state: &LoopState, is_dead: impl Fn(&Session) -> bool) -> Option<(u32, Vec<String>)> {
    let session = state.session.as_ref().filter(|session| state.is_in_session() && is_dead(session))?;
    let mark = hook::tool_mark(session.agent, session.id.as_deref()?)?;
    Some(sweep::sweep_session(&mark, |path| hook::is_program_of(session.agent, path)))
}

fn finish_if_asked(journal: &mut Journal, host: &Host) -> Result<(), EngineError> {
    loop {
        match next_step(journal.state(), &Live::default(), now()) {
            Step::ReleaseWorktree => {
                // The request is on disk before anything is removed for it.
                journal.commit(Durability::Synced)?;
                let released = release(journal, host)?;
                journal.push(released, now())?;
            }
            Step::Finish(end) => journal.push(Event::LoopEnded(end), now())?,
            // There is no runner to finish the iteration: what it changed stays in the worktree.
            Step::TakeCandidate | Step::Start(ChildId::Gate { .. }) | Step::Commit { .. }
                if journal.state().cancel == Some(Urgency::AfterIteration) =>
            {
                let by = journal.state().cancelled_by.unwrap_or_default();
                journal.push(Event::Asked { request: None, ask: Ask::Cancel(Urgency::Now), by }, now())?;
            }
            Step::TakeBase
            | Step::TakeCandidate
            | Step::Start(_)
            | Step::Stop(_)
            | Step::ChangeAgent
            | Step::SaveWork
            | Step::Intend(_)
            | Step::Publish(_)
            | Step::Commit { .. }
            | Step::BeginIteration { .. }
            | Step::Wait(_)
            | Step::Await { .. }
            | Step::Rest => return Ok(()),
        }
    }
}

/// Gives back the worktree of a loop without a runner, unless another loop works in it by now.
fn release(journal: &Journal, host: &Host) -> Result<Event, EngineError> {
    let spec = &journal.state().spec;
    let released = |why| Ok(Event::WorktreeReleased { kept: Some(why), branch_removed: false });
    let project = match Project::find(&spec.project) {
        Ok(project) => project,
        // It was moved.
        Err(error) if !spec.project.is_dir() => return released(chain(&error)),
        Err(error) => return Err(error.into()),
    };
    let by = match WorktreeLock::claim(&project, &spec.worktree, false)? {
        ClaimOutcome::Alone(_lock) | ClaimOutcome::Beside(_lock, _) => {
            let env = environment::of_git(spec, host.env.iter().cloned());
            let open =
                |folder: &Utf8Path| repository::open_in_sandbox(folder, &env, (host, spec, journal.dir()));
            return Ok(repository::release(journal.state(), journal.dir(), open, |error| chain(error)));
        }
        ClaimOutcome::Refused(by) => by,
    };
    let why = match by.as_slice() {
        [] => "another loop works in it".to_owned(),
        names => format!("{} works in it", names.join(", ")),
    };
    released(why)
}
