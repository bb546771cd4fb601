//! Starting a loop, continuing one, and handing one to a process of its own.

use std::path::Path;

use crate::driver::liveness::is_driven;
use crate::driver::locks::Share;
use crate::driver::runner::Runner;
use crate::git_steps::repository;
use crate::memory::{note_use, recall};
use crate::service::requests::take_over;
use crate::service::{LoopLocation, lock_at_rest};
use crate::{EngineError, LoopRequest, Service, now};
use camino::Utf8Path;
use rand::RngExt;
use refrain_agents::output_parser::{self};
use refrain_agents::{environment, generic, version};
use refrain_core::event::{Ask, Event, FORMAT, LoopStarted};
use refrain_core::r#loop::Grant;
use refrain_core::spec::OnStuck;
use refrain_core::{LoopId, LoopState, Machine, Refusal, Spec};
use refrain_git::Repository;
use refrain_proc::detach::{self, DetachedRunner};
use refrain_store::journal::{self, Durability, JournalError};
use refrain_store::project::worktree::taken_place;
use refrain_store::project::{archive, projects, sessions};
use refrain_store::{ClaimOutcome, Journal, LoopDir, RunnerLock, WorktreeLock};

/// What a person wants of a loop that is to be resumed, and the event that says so; or why not.
pub(crate) type ResumeDecision<'a> = (LoopRequest, &'a dyn Fn(&LoopState) -> Result<Option<Event>, Refusal>);

/// How many more names are tried where a made-up one is taken.
const NAME_TRIES: u32 = 16;

/// Makes the paths of agents' programs absolute: seen from a worktree they may be others, or not there.
pub(crate) fn pin_programs(spec: &mut Spec) {
    let folder = spec.working_dir.clone();
    for agent in spec.agents_mut().filter(|agent| agent.program.contains('/')) {
        agent.program = without_dots(folder.join(&agent.program).as_std_path());
    }
}

/// A path to show: its folder without `.` and `..`, and the program by its own name, which may decide what a link runs as.
fn without_dots(program: &Path) -> String {
    let parts = program.parent().and_then(|folder| folder.canonicalize().ok()).zip(program.file_name());
    let path = parts.map_or_else(|| program.to_owned(), |(folder, name)| folder.join(name));
    path.to_string_lossy().into_owned()
}

impl Service {
    /// Starts a loop: from here on it exists, and the value returned has the right to drive it. Where the name was made
    /// up, another is made up until one is free.
    /// Errors: [`EngineError`]; nothing was begun then.
    pub fn start(&self, spec: Spec, named: Option<LoopId>) -> Result<Runner, EngineError> {
        self.start_in(spec, named, None)
    }

    /// Refuses what [`Self::start`] would refuse, except for what other loops hold.
    pub fn check_start(&self, spec: &Spec) -> Result<(), EngineError> {
        self.check_surroundings(spec)?;
        self.settle(spec.clone(), None).map(drop)
    }

    fn check_surroundings(&self, spec: &Spec) -> Result<(), EngineError> {
        if spec.depth >= Spec::MAX_DEPTH {
            return Err(EngineError::TooDeep);
        }
        if spec.git.workflow.publishes() {
            self.host.github_token().map_err(|error| EngineError::Unpublishable(error.to_string()))?;
        }
        let env = environment::base(spec, self.host.env.iter().cloned());
        // A session runs already, wherever its program lies.
        if spec.session.is_none() {
            generic::locate(spec, &env)?;
            if let OnStuck::Change(agent) = &spec.stuck.answer {
                generic::find(&agent.program, &spec.working_dir, &env)?;
            }
        }
        if spec.gates_must_run {
            self.check_programs(spec, &env, &spec.gates)?;
        }
        Ok(())
    }

    /// [`Self::start`], where the worktree of the project is known already.
    pub(crate) fn start_in(
        &self,
        mut spec: Spec,
        named: Option<LoopId>,
        there: Option<&Repository>,
    ) -> Result<Runner, EngineError> {
        self.check_surroundings(&spec)?;
        let words = match &spec.session {
            Some(session) => session.slug().to_owned(),
            None => Utf8Path::new(&spec.agent.program).file_stem().unwrap_or("loop").to_owned(),
        };
        spec.trace = spec.trace.or_else(|| self.host.trace());
        spec.gate_env.mark = format!("{:016x}", rand::rng().random::<u64>());
        let forgetful = recall(&self.host, &mut spec);
        self.with_free_name(named.as_ref(), &words, |id| {
            let (spec, opened) = self.settle(Spec { id: id.clone(), ..spec.clone() }, there)?;
            let started =
                LoopStarted { format: FORMAT, refrain: self.host.version.clone(), spec: spec.clone() };
            let share = match self.share(&spec) {
                // It is named after the loop: another start has the name.
                Err(EngineError::WorktreeTaken { .. }) if spec.git.checkout.is_own_worktree() => {
                    return Ok(None);
                }
                share => share?,
            };
            let started = Event::LoopStarted(Box::new(started));
            let Some((journal, lock)) = self.create(self.project.loop_dir(id), started)? else {
                return Ok(None);
            };
            note_use(&self.host, &spec);
            let forgetful = forgetful.clone();
            Ok(Some(Runner { opened, forgetful, ..Runner::new(journal, lock, share, 0) }))
        })
    }

    /// The specification with the repository, branch and worktree that it will have.
    fn settle(
        &self,
        mut spec: Spec,
        there: Option<&Repository>,
    ) -> Result<(Spec, Option<Repository>), EngineError> {
        if spec.git.checkout.is_own_worktree() {
            pin_programs(&mut spec);
        }
        let git_env = self.host.git_env(&spec);
        let open = || match there {
            Some(there) => Ok(there.again().in_env(&git_env)),
            None => Repository::open(&self.project.worktree, &git_env),
        };
        let opened = repository::settle(&mut spec, &self.project, &self.host.state_home, &git_env, open)?;
        if spec.task.is_none()
            && let Some(place) = taken_place(&spec)
        {
            return Err(EngineError::NotesPlaceTaken(place));
        }
        Ok((spec, opened))
    }

    /// What is made of a name that is free: the one that is given, else one that is made up, and another while that is
    /// taken. `make` answers with none if it was taken meanwhile.
    pub(crate) fn with_free_name<T>(
        &self,
        named: Option<&LoopId>,
        words: &str,
        mut make: impl FnMut(&LoopId) -> Result<Option<T>, EngineError>,
    ) -> Result<T, EngineError> {
        let made_up = || LoopId::derived(words, rand::random());
        let mut id = named.cloned().unwrap_or_else(made_up);
        for _ in 0..if named.is_some() { 1 } else { NAME_TRIES } {
            if !self.is_name_taken(&id)
                && let Some(made) = make(&id)?
            {
                return Ok(made);
            }
            id = named.cloned().unwrap_or_else(made_up);
        }
        match journal::read(&self.project.loop_dir(&id)) {
            Err(JournalError::Damaged { .. }) => Err(EngineError::NameDamaged(id)),
            Ok(_) | Err(_) => Err(self.name_taken(id)),
        }
    }

    pub(crate) fn name_taken(&self, id: LoopId) -> EngineError {
        EngineError::NameTaken { is_plan: self.project.plan_dir(&id).exists(), id }
    }

    pub(crate) fn is_name_taken(&self, id: &LoopId) -> bool {
        self.project.plan_dir(id).exists() || self.project.loop_dir(id).exists()
    }

    /// Writes the first record: from here on the machine exists. None if another has that folder by now.
    pub(crate) fn create<S: Machine>(
        &self,
        dir: LoopDir,
        started: S::Event,
    ) -> Result<Option<(Journal<S>, RunnerLock)>, EngineError> {
        self.host.signing().require_key().map_err(EngineError::NoSigningKey)?;
        // The lock first: what exists and is not locked could be taken over by another process.
        let Some(lock) = RunnerLock::claim(&dir)? else { return Ok(None) };
        match Journal::create_signed(dir, started, now(), self.host.signing()) {
            Ok(journal) => {
                // Only a convenience: what cannot be listed elsewhere still runs.
                let _ = projects::remember(&self.host.data_home, &self.project.root);
                Ok(Some((journal, lock)))
            }
            Err(JournalError::Taken(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the loop is to commit, and git does not know who commits.
    pub fn lacks_committer(&self, spec: &Spec) -> bool {
        spec.git.workflow.commits() && self.lacks_identity(spec)
    }

    /// Whether git does not know who commits here.
    pub fn lacks_identity(&self, spec: &Spec) -> bool {
        let repository = Repository::open(&self.project.worktree, &self.host.git_env(spec));
        repository.is_ok_and(|repository| repository.committer().is_err())
    }

    /// The version of the agent's program and those that were tested, where that one was not.
    pub fn untested(&self, spec: &Spec) -> Option<(String, String)> {
        let tested = output_parser::adapter(spec.agent.kind)?.tested();
        let env = environment::base(spec, self.host.env.iter().cloned());
        let version = version::installed(&generic::locate(spec, &env).ok()?)?;
        let is_untested = !tested.is_empty() && !tested.contains(&version.as_str());
        is_untested.then(|| (version, tested.join(", ")))
    }

    /// Takes a loop over to resume it, under new totals if they are given. Leftover processes of its last runner are
    /// ended first.
    /// Errors: [`EngineError`]; the loop is unchanged then.
    pub fn resume(&self, id: &LoopId, grant: &Grant, proceed: bool) -> Result<Runner, EngineError> {
        self.resume_with(id, proceed, (LoopRequest::Resume, &|state| state.resume(grant)))
    }

    /// Refuses a loop whose agent and gates a stranger may have chosen: neither the user nor a trusted key signed its start,
    /// nor an arrival after it.
    pub fn check_origin(&self, id: &LoopId) -> Result<(), EngineError> {
        self.refuse_foreign(id, &self.locate(id)?.dir)
    }

    fn refuse_foreign(&self, id: &LoopId, dir: &LoopDir) -> Result<(), EngineError> {
        match journal::foreign_start(dir, &self.host.signing())? {
            Some(why) => Err(EngineError::Foreign { id: id.clone(), why }),
            None => Ok(()),
        }
    }

    /// Refuses what [`Self::approve`] would refuse.
    pub fn check_approval(&self, id: &LoopId, grant: &Grant) -> Result<(), EngineError> {
        let refused = |why| EngineError::Refused { id: id.clone(), what: LoopRequest::Approve, why };
        self.state(id)?.approve(grant, None).map(drop).map_err(refused)
    }

    /// Takes over a loop that waits for approval, on a person's behalf: for the tree that begins with this name, if one
    /// is named. The tree is checked once more before the approval counts.
    /// Errors: [`EngineError`]; the loop is unchanged then.
    pub fn approve(&self, id: &LoopId, grant: &Grant, tree: Option<&str>) -> Result<Runner, EngineError> {
        self.resume_with(id, false, (LoopRequest::Approve, &|state| state.approve(grant, tree)))
    }

    fn resume_with(
        &self,
        id: &LoopId,
        proceed: bool,
        what: ResumeDecision<'_>,
    ) -> Result<Runner, EngineError> {
        self.refuse_where_a_session_lives(&self.state(id)?)?;
        let mut runner = self.resume_unchecked(id, proceed, what)?;
        sessions::forget(&self.project, id);
        if runner.journal.state().session.is_some() {
            runner.journal.push(Event::SessionLeft, now())?;
            runner.journal.commit(Durability::Synced)?;
        }
        Ok(runner)
    }

    /// The same, even if a live session drives it.
    pub(crate) fn resume_unchecked(
        &self,
        id: &LoopId,
        proceed: bool,
        (what, decide): ResumeDecision<'_>,
    ) -> Result<Runner, EngineError> {
        let LoopLocation { mut dir, archived } = self.locate(id)?;
        let lock = self.runner_lock::<LoopState>(id, &dir)?;
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        // Asked of what is on disk first: a refusal changes nothing, not even a torn tail.
        let state = journal::read_believed(&dir, &self.host.signing())?;
        decide(&state).map_err(refused)?;
        self.refuse_foreign(id, &dir)?;
        let past = state.seq;
        let share = self.share(&state.spec)?;
        let git_env = environment::of_git(&state.spec, self.host.env.iter().cloned());
        crate::sandbox::restore_left(&dir.0)?;
        let sweeper = repository::sweeper(&self.host, &state.spec, &dir);
        let is_restored = repository::restore(&state, &git_env, sweeper)?;
        if archived {
            let back = archive::bring_back(&self.project, &dir, id)?;
            self.host.signing().moved(&dir, &back);
            dir = back;
        }
        let mut journal: Journal = Journal::open_signed(dir, now(), self.host.signing())?;
        take_over(&mut journal, &self.host)?;
        if let Some(event) = decide(journal.state()).map_err(refused)? {
            journal.push(event, now())?;
        }
        if proceed {
            journal.push(Event::Asked { request: None, ask: Ask::Proceed, by: Default::default() }, now())?;
        }
        journal.commit(Durability::Synced)?;
        Ok(Runner { is_restored, ..Runner::new(journal, lock, share, past) })
    }

    pub(crate) fn take_loop(&self, id: &LoopId, dir: LoopDir) -> Result<Runner, EngineError> {
        let lock = self.runner_lock::<LoopState>(id, &dir)?;
        let mut journal: Journal = Journal::open_signed(dir, now(), self.host.signing())?;
        let past = journal.state().seq;
        if journal.state().is_in_session() && journal.state().in_flight().is_some() {
            return Err(EngineError::Driven { id: id.clone(), pid: None });
        }
        let share = self.share(&journal.state().spec)?;
        take_over(&mut journal, &self.host)?;
        Ok(Runner::new(journal, lock, share, past))
    }

    /// The right to drive the loop or plan in `dir`.
    pub(crate) fn runner_lock<M: Machine>(
        &self,
        id: &LoopId,
        dir: &LoopDir,
    ) -> Result<RunnerLock, EngineError> {
        let pid = || Some(journal::read_as::<M>(dir).ok()?.state.runner.as_ref()?.process.pid);
        lock_at_rest::<M>(dir)?.ok_or_else(|| EngineError::Driven { id: id.clone(), pid: pid() })
    }

    /// Hands a loop to a process of its own that outlives this one; returns once that has taken over.
    /// Errors: [`EngineError`] if it did not; the loop exists and can be resumed.
    pub fn detach(
        &self,
        runner: Runner,
        args: &[String],
    ) -> Result<(LoopState, DetachedRunner), EngineError> {
        let Runner { journal, locks, .. } = runner;
        self.hand_over(&journal, locks, args)
    }

    /// Releases the locks and starts a detached process that claims them.
    pub(crate) fn hand_over<S: Machine>(
        &self,
        journal: &Journal<S>,
        locks: impl Sized,
        args: &[String],
    ) -> Result<(S, DetachedRunner), EngineError> {
        drop(locks);
        let log = journal.dir().runner_log();
        let started = detach::start(&self.host.program, "refrain", args, &self.host.env, &log);
        let started = started.map_err(|error| match journal::read_as::<S>(journal.dir()) {
            // Another took it over meanwhile.
            Ok(read) if is_driven(journal.dir(), read.state.runner.as_ref()) == Some(true) => {
                let pid = read.state.runner.as_ref().map(|runner| runner.process.pid);
                EngineError::Driven { id: read.state.id().clone(), pid }
            }
            Ok(_) | Err(_) => EngineError::Process("the detached runner did not take over", error),
        })?;
        Ok((journal::read_as(journal.dir())?.state, started))
    }

    pub(crate) fn share(&self, spec: &Spec) -> Result<Share, EngineError> {
        let needs_alone = spec.needs_worktree_alone();
        match WorktreeLock::claim(&self.project, &spec.worktree, !needs_alone)? {
            ClaimOutcome::Alone(lock) => Ok((lock, Vec::new())),
            ClaimOutcome::Beside(lock, mut others) => {
                others.sort_unstable();
                others.dedup();
                Ok((lock, others))
            }
            ClaimOutcome::Refused(by) => {
                Err(EngineError::WorktreeTaken { worktree: spec.worktree.clone(), by, needs_alone })
            }
        }
    }
}
