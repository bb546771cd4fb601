//! Loops that an agent's own session drives. The work between two of its turns is done in the process of a hook or of
//! `tick`, which must end in milliseconds: there is no runtime. What takes longer (gates, commits, all that asks git)
//! is left to a runner of the loop's own, a *prover*, which ends when the session's turn comes.

mod hook;
mod turn;
mod watch;

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::event::{AttemptFinished, End, Event, Identity};
use refrain_core::r#loop::{Grant, Live, Step, next_step};
use refrain_core::session::{IDLE_WAITS, LoopOwner, Session, is_heard};
use refrain_core::spec::AgentKind;
use refrain_core::{AttemptId, LoopId, LoopState, Spec};
use refrain_proc::{detach, identity};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{self, Durability};
use refrain_store::project::sessions;
use refrain_store::{Journal, LoopDir, RunnerLock};

pub use self::turn::{Activity, TurnReport};
use self::turn::{Next, go_on, over};
use crate::driver::liveness::is_session_alive;
use crate::git_steps::repository::marked;
use crate::git_steps::work::WorkWatch;
use crate::observe::telemetry::tell_of_session;
use crate::service::mirror;
use crate::service::requests::take_over_where;
use crate::{EngineError, LoopRequest, Service, now};

/// How often a prover is started for one question: if it dies again and again, that is reported instead.
const PROVERS: u32 = 3;

/// How long a new loop waits for others to release its worktree.
const MOMENT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub enum Turn {
    /// A turn of the session begins: its prompt, with the counter's marker first.
    Next {
        /// The marker, on a line of its own: `[loop mend iteration 2/20]`.
        marker: String,
        prompt: String,
    },
    Under(Box<LoopState>),
    Proving,
    /// There was nothing to do: its next turn begins at `until`.
    Resting {
        until: Timestamp,
    },
    Stopped(Box<LoopState>),
}

impl Service {
    /// Begins a loop that a session drives. Its first turn is still to begin.
    /// Errors: [`EngineError`]: nothing was begun then, or, where the disk failed in between, a loop that counts as
    /// crashed.
    pub fn begin_in_session(
        &self,
        spec: Spec,
        named: Option<LoopId>,
        session: Session,
    ) -> Result<LoopId, EngineError> {
        let until = Instant::now() + MOMENT;
        let runner = loop {
            match self.start(spec.clone(), named.clone()) {
                // The work of another session is mostly proven in moments.
                Err(EngineError::WorktreeTaken { .. }) if Instant::now() < until => {
                    wait_for_change(&self.project().sessions(), LOOK_AGAIN);
                }
                started => break started?,
            }
        };
        let id = runner.id().clone();
        let (name, mut journal) = (session.id.clone(), runner.journal);
        journal.push(Event::SessionBound(session), now())?;
        journal.commit(Durability::Synced)?;
        // After the record: any reader forgets a note of a loop that no session drives.
        sessions::note(self.project(), &id, name.as_deref())?;
        let state = journal.state();
        mirror::write(&state.spec, &mirror::files(state, None));
        Ok(id)
    }

    /// Has a session resume a stopped loop, also one that a runner drove, under a new total if one is given.
    /// Errors: [`EngineError`] if another session or a runner drives it, or its state does not allow it; it is
    /// unchanged then.
    pub fn resume_in_session(
        &self,
        id: &LoopId,
        grant: &Grant,
        session: Session,
    ) -> Result<LoopState, EngineError> {
        let state = self.state(id)?;
        let is_its_own = state.session.as_ref().is_some_and(|own| own.id.is_some() && own.id == session.id);
        if !is_its_own {
            self.refuse_where_a_session_lives(&state)?;
        }
        let runner = self.resume_unchecked(id, false, (LoopRequest::Resume, &|state| state.resume(grant)))?;
        let (name, mut journal) = (session.id.clone(), runner.journal);
        journal.push(Event::SessionBound(session), now())?;
        journal.commit(Durability::Synced)?;
        sessions::note(self.project(), id, name.as_deref())?;
        Ok(journal.state().clone())
    }

    /// Refuses what would take a loop away from a session that works on it.
    pub(crate) fn refuse_where_a_session_lives(&self, state: &LoopState) -> Result<(), EngineError> {
        let session = state.session.as_ref().filter(|_| state.is_in_session());
        match session.filter(|session| is_session_alive(session) == Some(true)) {
            Some(session) => Err(EngineError::Driven {
                id: state.spec.id.clone(),
                pid: session.process.map(|process| process.pid),
            }),
            None => Ok(()),
        }
    }

    /// Refuses what would act for a session that works on a loop from outside of it: `around` is what the caller's
    /// variables say of the session that it was started in.
    pub fn refuse_another_session(
        &self,
        state: &LoopState,
        around: Option<(AgentKind, Option<&str>)>,
    ) -> Result<(), EngineError> {
        let Some(bound) = &state.session else { return Ok(()) };
        let named = around.filter(|(agent, _)| *agent == bound.agent).and_then(|(_, id)| id);
        let here = self.session_here(bound.agent, named);
        let is_its_own = bound.is(named.unwrap_or_default(), here.process)
            || (bound.process.is_some() && bound.process == here.process);
        if is_its_own { Ok(()) } else { self.refuse_where_a_session_lives(state) }
    }

    /// Records the session that drives a loop, now that it is known. Says whether it is this one: another session of
    /// the same process may have been faster.
    fn bind(&self, id: &LoopId, session: &Session) -> Result<bool, EngineError> {
        let dir = self.locate(id)?.dir;
        let Some(_lock) = RunnerLock::try_take(&dir)? else { return Ok(false) };
        let mut journal: Journal = Journal::open_signed(dir, now(), self.host().signing())?;
        let name = session.id.as_deref().unwrap_or_default();
        if LoopOwner::of(journal.state(), name, session.process) != LoopOwner::Unbound {
            return Ok(false);
        }
        journal.push(Event::SessionBound(session.clone()), now())?;
        journal.commit(Durability::Synced)?;
        sessions::note(self.project(), id, session.id.as_deref())?;
        Ok(true)
    }

    /// The session that this process was started in: the nearest process above it that is the agent's.
    pub fn session_here(&self, agent: AgentKind, id: Option<&str>) -> Session {
        let Identity { boot, host, .. } = identity::own();
        let process = identity::above(|program| refrain_agents::hook::is_program_of(agent, program));
        Session { agent, id: id.map(str::to_owned), process, boot, host }
    }

    pub fn state(&self, id: &LoopId) -> Result<LoopState, EngineError> {
        Ok(journal::read(&self.locate(id)?.dir)?.state)
    }

    /// The session ended its turn, or is to begin one: what comes next, waited for as long as `patience` allows.
    /// Without anything said a turn under way continues. What was said is about the loop as it was `seen`: if two
    /// sessions say it at once, one of them counts.
    /// Errors: [`EngineError`] if the turn is unknown; what is on disk is what happened.
    pub fn turn(
        &self,
        seen: &LoopState,
        said: Option<&TurnReport>,
        patience: Duration,
    ) -> Result<Turn, EngineError> {
        // A loop that a runner drove, and might drive again, has no turn that a session could end.
        if seen.session.is_none() {
            return Ok(Turn::Stopped(Box::new(seen.clone())));
        }
        let (id, turn) = (&seen.spec.id, seen.in_flight().map(|flight| flight.id));
        let dir = self.locate(id)?.dir;
        let (until, mut notice) = (Instant::now() + patience, None);
        let (waits, mut rests) = (said.is_none(), None);
        let (mut said, mut provers) = (said, 0);
        loop {
            if let Some(lock) = RunnerLock::try_take(&dir)? {
                match self.step(&dir, turn, &mut said)? {
                    // A session that ended its turn gets the wait as an answer; one that waits already keeps waiting.
                    Next::Turn(Turn::Resting { until: then }) if waits => rests = Some(then),
                    Next::Turn(turn) => return Ok(turn),
                    // Two sessions at work in one folder are proven one after the other.
                    Next::Prover if self.is_taken(&dir)? => {}
                    Next::Prover if provers < PROVERS => {
                        drop(lock);
                        provers += 1;
                        // Another process that waits for the same proof may have been faster.
                        match self.prove(&dir, id) {
                            Err(error) if provers == PROVERS => return Err(error),
                            Ok(()) | Err(_) => {}
                        }
                    }
                    Next::Prover => return Ok(Turn::Proving),
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(rests.map_or(Turn::Proving, |until| Turn::Resting { until }));
            }
            match &notice {
                // Only now: the kernel takes up to 40 ms to close one. What happened meanwhile is seen in the next
                // round.
                None => notice.insert(Notice::new()?).watch(&dir.journal()),
                Some(notice) => {
                    let rest = rests.and_then(|until| Duration::try_from(until.duration_since(now())).ok());
                    notice.wait(Some(left.min(rest.map_or(LOOK_AGAIN, |rest| rest.max(LOOK_AGAIN)))));
                }
            }
        }
    }

    /// Does what can be done at once; the caller holds the loop's lock.
    fn step(
        &self,
        dir: &LoopDir,
        seen: Option<AttemptId>,
        said: &mut Option<&TurnReport>,
    ) -> Result<Next, EngineError> {
        let mut journal: Journal = Journal::open_signed(dir.clone(), now(), self.host().signing())?;
        let mut watch = WorkWatch::default();
        let mut look = |spec: &Spec| {
            let env = marked(&self.host().git_env(spec), spec);
            watch.look(spec, &env, None)
        };
        let state = journal.state();
        let mut attempt_work = None;
        if let Some(said) = said.take()
            && is_heard(state, seen)
        {
            let finished: AttemptFinished = over(state, dir, said, look(&state.spec));
            attempt_work.clone_from(&finished.work);
            journal.push(Event::AttemptFinished(Box::new(finished)), now())?;
        }
        let was_over = journal.state().ended.is_some();
        // Nothing runs between the end of a turn and the next iteration, which begins with the same work.
        let next = go_on(&mut journal, |spec| attempt_work.take().or_else(|| look(spec).0))?;
        // A caller that only asks is not to wait for the disk.
        if !journal.is_written() {
            journal.commit(Durability::Synced)?;
        }
        if let Next::Turn(Turn::Stopped(state)) = &next {
            mirror::close(state, dir);
            sessions::forget(self.project(), &state.spec.id);
            if !was_over {
                tell_of_session(self.host(), state, dir);
            }
        }
        Ok(next)
    }

    /// Whether another loop needs the worktree for itself just now.
    fn is_taken(&self, dir: &LoopDir) -> Result<bool, EngineError> {
        match self.share(&journal::read(dir)?.state.spec) {
            Err(EngineError::WorktreeTaken { .. }) => Ok(true),
            claimed => claimed.map(|_| false),
        }
    }

    /// Starts a prover for what a session cannot wait for.
    fn prove(&self, dir: &LoopDir, id: &LoopId) -> Result<(), EngineError> {
        let words = ["-C", self.project().worktree.as_str(), "drive", id.as_str()].map(str::to_owned);
        detach::start(&self.host().program, "refrain", &words, &self.host().env, &dir.runner_log())
            .map(drop)
            .map_err(|error| EngineError::Process("the runner that is to prove it did not take over", error))
    }

    /// Takes a loop from its session, whose turn is refunded: it counts as crashed, and can be resumed.
    pub fn leave_session(&self, id: &LoopId) -> Result<LoopState, EngineError> {
        let dir = self.locate(id)?.dir;
        let lock = RunnerLock::try_take(&dir)?;
        let Some(_lock) = lock else { return Err(EngineError::Driven { id: id.clone(), pid: None }) };
        let mut journal: Journal = Journal::open_signed(dir, now(), self.host().signing())?;
        if journal.state().ended.is_none() {
            // Where its process is not known, the caller is believed.
            let is_dead = |session: &Session| is_session_alive(session) != Some(true);
            take_over_where(&mut journal, self.host(), is_dead)?;
            if journal.state().session.is_some() {
                journal.push(Event::SessionLeft, now())?;
            }
            journal.commit(Durability::Synced)?;
            mirror::close(journal.state(), journal.dir());
        }
        sessions::forget(self.project(), id);
        Ok(journal.state().clone())
    }
}

impl Service {
    /// Waits while a session has nothing to do: until one of these files changes, the loop does not run any more, or a
    /// time is over that is longer each time in a row. Returns which: `changed`, `not-running`, `timeout` (seed 000).
    pub fn idle(&self, id: &LoopId, files: &[Utf8PathBuf]) -> Result<&'static str, EngineError> {
        let dir = self.locate(id)?.dir;
        let notice = Notice::new()?;
        notice.watch(&dir.journal());
        files.iter().for_each(|file| notice.watch(file));
        let state = journal::read(&dir)?.state;
        let streak = sessions::idle_streak(self.project(), id, state.iteration)?;
        let wait = IDLE_WAITS[(streak - 1).min(IDLE_WAITS.len() - 1)];
        let until = Instant::now() + Duration::from_secs(wait);
        let look = || files.iter().map(|file| watch::mark(file));
        let before: Vec<_> = look().collect();
        loop {
            if journal::read(&dir)?.state.ended.is_some() {
                return Ok("not-running");
            }
            if !look().eq(before.iter().copied()) {
                return Ok("changed");
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok("timeout");
            }
            // One that is made only now is not watched yet.
            notice.wait(Some(left.min(Duration::from_secs(5))));
        }
    }

    /// The loops with gates in this worktree that sessions drive.
    pub fn gated_session_loops(&self, worktree: &Utf8Path) -> Result<Vec<LoopId>, EngineError> {
        let states = self.project().loop_dirs()?.into_iter().filter_map(|dir| journal::read(&dir).ok());
        let is_one = |state: &LoopState| {
            let lives = |session| is_session_alive(session) != Some(false);
            let is_driven = state.is_in_session() && state.session.as_ref().is_some_and(lives);
            is_driven
                && state.ended.is_none()
                && !state.spec.gates.is_empty()
                && state.spec.worktree == worktree
        };
        let found = states.map(|snapshot| snapshot.state).filter(is_one);
        Ok(found.map(|state| state.spec.id).collect())
    }

    /// Ends a session's loop whose session says that its iterations are used up.
    pub fn cap_in_session(&self, id: &LoopId) -> Result<LoopState, EngineError> {
        let dir = self.locate(id)?.dir;
        let lock = RunnerLock::try_take(&dir)?;
        let Some(_lock) = lock else { return Err(EngineError::Driven { id: id.clone(), pid: None }) };
        let mut journal: Journal = Journal::open_signed(dir, now(), self.host().signing())?;
        if journal.state().session.is_none() {
            return Ok(journal.state().clone());
        }
        if journal.state().in_flight().is_some() {
            let finished = over(journal.state(), journal.dir(), &TurnReport::default(), (None, Vec::new()));
            journal.push(Event::AttemptFinished(Box::new(finished)), now())?;
        }
        let was_over = journal.state().ended.is_some();
        if !was_over {
            // A loop of a fixed number of iterations is completed by reaching it.
            let next = next_step(journal.state(), &Live::default(), now());
            let end =
                if let Step::Finish(end @ End::Completed { .. }) = next { end } else { End::IterationCap };
            journal.push(Event::LoopEnded(end), now())?;
        }
        journal.commit(Durability::Synced)?;
        if !was_over {
            tell_of_session(self.host(), journal.state(), journal.dir());
        }
        mirror::close(journal.state(), journal.dir());
        sessions::forget(self.project(), id);
        Ok(journal.state().clone())
    }

    /// Whether Refrain can write its files of the project.
    pub fn check_writable(&self) -> Result<(), EngineError> {
        let folder = self.project().sessions();
        refrain_store::make_dir_nofollow(&folder)?;
        let probe = folder.join(".writable");
        refrain_store::write_nofollow(&probe, b"")?;
        // It was only a try.
        let _ = refrain_files::remove(&probe);
        Ok(())
    }
}

/// Waits until a file is changed, or for `at_most`.
fn wait_for_change(file: &Utf8Path, at_most: Duration) {
    if let Ok(notice) = Notice::new() {
        notice.watch(file);
        notice.wait(Some(at_most));
    }
}

/// How often to check whether a prover is still there: it may be silent, and its last message is written before it
/// leaves.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
pub(crate) mod tests;
