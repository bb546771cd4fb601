//! The one door for every surface: what can be done with loops, and seen of them.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use rand::RngExt;
use refrain_agents::ear::{self, Stream};
use refrain_agents::{environment, generic, version};
use refrain_core::agent::AgentEvent;
use refrain_core::event::{Ask, Event, FORMAT, Identity, LoopStarted};
use refrain_core::git::Checkout;
use refrain_core::r#loop::{self, Grant};
use refrain_core::view::{self, Alive, Status};
use refrain_core::{LoopId, LoopState, Spec};
use refrain_git::Repository;
use refrain_proc::detach::{self, Detached};
use refrain_proc::{identity, output};
use refrain_store::journal::{self, Durability, JournalError};
use refrain_store::layout::AttemptDir;
use refrain_store::{
    Claimed, Journal, LoopDir, Project, RunnerLock, WorktreeLock, archive, config, projects, sessions,
};

use crate::asking::take_over;
use crate::follow::Follower;
use crate::memory::{note_use, recall};
use crate::runner::{Runner, Share};
use crate::{EngineError, LoopRequest, now, recovery, repository, session};

/// What the engine needs to know of its surroundings: libraries do not look for themselves.
#[derive(Clone, Debug)]
pub struct Host {
    /// The binary that becomes a keeper, or a detached runner, under another name.
    pub program: PathBuf,
    /// The person's environment.
    pub env: Vec<(OsString, OsString)>,
    /// The user's data home for Refrain.
    pub data_home: Utf8PathBuf,
    /// The user's state home for Refrain.
    pub state_home: Utf8PathBuf,
    /// The user's config home for Refrain.
    pub config_home: Utf8PathBuf,
    /// The version of Refrain.
    pub version: String,
}

/// The door to one project's loops.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) project: Project,
    pub(crate) host: Host,
}

/// A loop that was found.
#[derive(Clone, Debug)]
pub struct Located {
    /// Its folder.
    pub dir: LoopDir,
    /// Whether it lies in the archive.
    pub archived: bool,
}

/// What a person wants of a loop that is to go on, and the event that says so; or why not.
pub(crate) type Letting<'a> = (LoopRequest, &'a dyn Fn(&LoopState) -> Result<Option<Event>, r#loop::Refusal>);

/// How many more names are tried where a made-up one is taken.
pub(crate) const NAME_TRIES: u32 = 16;

impl Service {
    /// The door to the project that `dir` lies in.
    ///
    /// # Errors
    /// [`EngineError`] where there is no such folder.
    pub fn open(dir: &Utf8Path, host: Host) -> Result<Self, EngineError> {
        Ok(Self { project: Project::find(dir)?, host })
    }

    /// The project.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The host that it was opened with.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What is configured for loops that are started here. `variables` says whether those of the environment count: not
    /// inside an attempt, where they were set for the agent.
    ///
    /// # Errors
    /// [`config::ConfigError`] for a file or a variable that cannot be used.
    pub fn settings(
        &self,
        chosen: config::Chosen<'_>,
        variables: bool,
    ) -> Result<config::Settings, config::ConfigError> {
        let Host { config_home, state_home, env, .. } = &self.host;
        let variables: &[_] = if variables { env } else { &[] };
        config::load(config::Places { config_home, state_home, project: &self.project, variables }, chosen)
    }

    /// Starts a loop: from here on it exists, and the value returned has the right to drive it. Where the name was made
    /// up, another is made up until one is free.
    ///
    /// # Errors
    /// [`EngineError`]; nothing was begun then.
    pub fn start(&self, spec: Spec, named: Option<LoopId>) -> Result<Runner, EngineError> {
        self.start_in(spec, named, None)
    }

    /// The same, where the worktree of the project is known already.
    pub(crate) fn start_in(
        &self,
        mut spec: Spec,
        named: Option<LoopId>,
        there: Option<&Repository>,
    ) -> Result<Runner, EngineError> {
        if spec.depth >= Spec::MAX_DEPTH {
            return Err(EngineError::TooDeep);
        }
        if spec.git.workflow.publishes() {
            self.host.github_token().map_err(|error| EngineError::Unpublishable(error.to_string()))?;
        }
        let env = environment::base(&spec, self.host.env.iter().cloned());
        // A session runs already, wherever its program lies.
        let program = match spec.session {
            Some(_) => spec.agent.program.clone().into(),
            None => generic::locate(&spec, &env)?,
        };
        if spec.gates_must_run {
            self.check_programs(&spec, &env, &spec.gates)?;
        }
        let words = match &spec.session {
            Some(session) => session.slug().to_owned(),
            None => Utf8Path::new(&spec.agent.program).file_stem().unwrap_or("loop").to_owned(),
        };
        spec.trace = spec.trace.or_else(|| self.host.trace());
        let forgetful = recall(&self.host, &mut spec);
        for _ in 0..NAME_TRIES {
            spec.id = named.clone().unwrap_or_else(|| LoopId::derived(&words, rand::rng().random()));
            let dir = self.project.loop_dir(&spec.id);
            if dir.exists() {
                match named {
                    Some(id) => return Err(EngineError::NameTaken(id)),
                    None => continue,
                }
            }
            let mut spec = spec.clone();
            if let Checkout::Worktree { .. } = spec.git.checkout
                && spec.agent.program.contains('/')
            {
                // Seen from its own worktree it may be another, or not there.
                spec.agent.program = program.to_string_lossy().into_owned();
            }
            let git_env = self.host.git_env(&spec);
            let open = || match there {
                Some(there) => Ok(there.again().in_env(&git_env)),
                None => Repository::open(&self.project.worktree, &git_env),
            };
            let opened = repository::settle(&mut spec, &self.project, &self.host.state_home, &git_env, open)?;
            let started =
                LoopStarted { format: FORMAT, refrain: self.host.version.clone(), spec: spec.clone() };
            let share = self.share(&spec)?;
            // The lock first: a loop that exists and is not locked could be taken over by somebody else.
            if let Some(lock) = RunnerLock::claim(&dir)? {
                match Journal::create(dir, Event::LoopStarted(Box::new(started)), now()) {
                    Ok(journal) => {
                        // Only a convenience: a loop that cannot be listed elsewhere still runs.
                        let _ = projects::remember(&self.host.data_home, &self.project.root);
                        note_use(&self.host, &spec);
                        return Ok(Runner { opened, forgetful, ..Runner::new(journal, lock, share, 0) });
                    }
                    Err(JournalError::Taken(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if named.is_some() {
                break;
            }
        }
        Err(EngineError::NameTaken(spec.id))
    }

    /// The version of the agent's program and those that were tested, where that one was not.
    #[must_use]
    pub fn untested(&self, spec: &Spec) -> Option<(String, String)> {
        let tested = ear::adapter(spec.agent.kind)?.tested();
        let env = environment::base(spec, self.host.env.iter().cloned());
        let version = version::installed(&generic::locate(spec, &env).ok()?)?;
        let is_untested = !tested.is_empty() && !tested.contains(&version.as_str());
        is_untested.then(|| (version, tested.join(", ")))
    }

    /// Takes a loop over to go on with it, under new totals where they are given. What its last runner left behind is
    /// ended first.
    ///
    /// # Errors
    /// [`EngineError`]; the loop is unchanged then.
    pub fn resume(&self, id: &LoopId, grant: &Grant, proceed: bool) -> Result<Runner, EngineError> {
        self.let_go_on(id, proceed, (LoopRequest::Resume, &|state| state.resume(grant)))
    }

    /// Takes a loop over that waits for a person's approval, who gives it: to the tree that begins with this name, where one
    /// is named. What they approve of is looked at once more before it counts.
    ///
    /// # Errors
    /// [`EngineError`]; the loop is unchanged then.
    pub fn approve(&self, id: &LoopId, grant: &Grant, tree: Option<&str>) -> Result<Runner, EngineError> {
        self.let_go_on(id, false, (LoopRequest::Approve, &|state| state.approve(grant, tree)))
    }

    fn let_go_on(&self, id: &LoopId, proceed: bool, what: Letting<'_>) -> Result<Runner, EngineError> {
        self.refuse_where_a_session_lives(&self.state(id)?)?;
        let mut runner = self.let_go_on_anyhow(id, proceed, what)?;
        sessions::forget(&self.project, id);
        if runner.journal.state().session.is_some() {
            runner.journal.push(Event::SessionLeft, now())?;
            runner.journal.commit(Durability::Synced)?;
        }
        Ok(runner)
    }

    /// The same, whoever drove it.
    pub(crate) fn let_go_on_anyhow(
        &self,
        id: &LoopId,
        proceed: bool,
        (what, decide): Letting<'_>,
    ) -> Result<Runner, EngineError> {
        let Located { mut dir, archived } = self.locate(id)?;
        let lock = RunnerLock::try_take(&dir)?;
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        let Some(lock) = lock else {
            let state = journal::read(&dir).ok().map(|snapshot| snapshot.state);
            return Err(self.driven(id, state.as_ref()));
        };
        // Asked of what is on disk first: a refusal changes nothing, not even a torn tail.
        let state = journal::read(&dir)?.state;
        decide(&state).map_err(refused)?;
        let past = state.seq;
        let share = self.share(&state.spec)?;
        let git_env = environment::of_git(&state.spec, self.host.env.iter().cloned());
        let is_restored = repository::restore(&state, &git_env)?;
        if archived {
            dir = archive::bring_back(&self.project, &dir, id)?;
        }
        let mut journal: Journal = Journal::open(dir, now())?;
        take_over(&mut journal, &self.host.env)?;
        if let Some(event) = decide(journal.state()).map_err(refused)? {
            journal.push(event, now())?;
        }
        if proceed {
            journal.push(Event::Asked { request: None, ask: Ask::Proceed }, now())?;
        }
        journal.commit(Durability::Synced)?;
        Ok(Runner { is_restored, ..Runner::new(journal, lock, share, past) })
    }

    /// Takes over a loop that was just started or resumed elsewhere: what a detached runner does.
    ///
    /// # Errors
    /// [`EngineError`] where somebody else drives it or it cannot be read.
    pub fn take(&self, id: &LoopId) -> Result<Runner, EngineError> {
        let dir = self.locate(id)?.dir;
        let lock = RunnerLock::try_take(&dir)?.ok_or_else(|| self.driven(id, None))?;
        let mut journal: Journal = Journal::open(dir, now())?;
        let past = journal.state().seq;
        if journal.state().is_in_session() && journal.state().in_flight().is_some() {
            return Err(self.driven(id, None));
        }
        let share = self.share(&journal.state().spec)?;
        take_over(&mut journal, &self.host.env)?;
        Ok(Runner::new(journal, lock, share, past))
    }

    /// Hands a loop to a process of its own that outlives this one; returns once that has taken over.
    ///
    /// # Errors
    /// [`EngineError`] where it did not; the loop exists and can be resumed.
    pub fn detach(&self, runner: Runner, args: &[String]) -> Result<(LoopState, Detached), EngineError> {
        let Runner { journal, locks, .. } = runner;
        // Whoever takes over claims both.
        drop(locks);
        let log = journal.dir().runner_log();
        let started =
            detach::start(&self.host.program, "refrain", args, &self.host.env, log.as_std_path())
                .map_err(|error| EngineError::Process("the detached runner did not take over", error))?;
        Ok((journal::read(journal.dir())?.state, started))
    }

    /// Follows any loop from its first event on; with all that its agents printed, or only what they print from now on.
    ///
    /// # Errors
    /// [`EngineError`] where there is no such loop.
    pub fn follow(&self, id: &LoopId, all_output: bool) -> Result<Follower, EngineError> {
        Ok(Follower::of(self.locate(id)?.dir, all_output)?)
    }

    /// What an attempt's agent said, where that was a stream of events; `false` where it was not.
    ///
    /// # Errors
    /// [`EngineError`] where it cannot be read.
    pub fn said(
        &self,
        spec: &Spec,
        dir: &AttemptDir,
        say: &mut dyn FnMut(AgentEvent),
    ) -> Result<bool, EngineError> {
        let Some(dialect) = recovery::dialect(spec, &dir.prompt()) else { return Ok(false) };
        let (mut stream, mut chunk) = (Stream::new(dialect), vec![0; 64 << 10]);
        let kept = dir.stdout(true);
        let Ok(mut kept) = output::read(&kept) else { return Ok(true) };
        loop {
            match kept.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(EngineError::Process("a stream cannot be read", error)),
                Ok(0) => break,
                Ok(length) => stream.push(&chunk[..length], say),
            }
        }
        stream.end(say);
        Ok(true)
    }

    /// What a loop was asked to do.
    ///
    /// # Errors
    /// [`EngineError`] where it is not there or cannot be read.
    pub fn spec(&self, id: &LoopId) -> Result<Spec, EngineError> {
        Ok(journal::read(&self.locate(id)?.dir)?.state.spec)
    }

    /// Where a loop lies, in the archive too.
    ///
    /// # Errors
    /// [`EngineError::NoLoop`].
    pub fn locate(&self, id: &LoopId) -> Result<Located, EngineError> {
        let dir = self.project.loop_dir(id);
        if dir.exists() {
            return Ok(Located { dir, archived: false });
        }
        archive::find(&self.project, id)
            .map(|dir| Located { dir, archived: true })
            .ok_or_else(|| self.no_loop(id))
    }

    pub(crate) fn no_loop(&self, id: &LoopId) -> EngineError {
        let dirs = self.project.loop_dirs().unwrap_or_default();
        let names = dirs.iter().filter_map(|dir| dir.0.file_name());
        let nearest = config::nearest(id.as_str(), names).and_then(|name| name.parse().ok());
        EngineError::NoLoop { id: id.clone(), project: self.project.root.clone(), nearest }
    }

    /// How a loop stands.
    ///
    /// # Errors
    /// [`EngineError`] where it is not there or cannot be read.
    pub fn status(&self, id: &LoopId) -> Result<Status, EngineError> {
        let dir = self.locate(id)?.dir;
        let state = journal::read(&dir)?.state;
        // What cannot be read hides nothing else: doctor tells.
        let caps = if state.is_final() { None } else { self.shared_caps(state.spec.caps).ok() };
        Ok(Status { caps: caps.unwrap_or_default(), ..look(&dir, &state) })
    }

    /// Moves a stopped loop into the archive; returns where it lies then.
    ///
    /// # Errors
    /// [`EngineError`] where it has not stopped, or cannot be moved.
    pub fn archive(&self, id: &LoopId) -> Result<Utf8PathBuf, EngineError> {
        let dir = self.project.loop_dir(id);
        if !dir.exists() {
            return Err(self.no_loop(id));
        }
        let _lock = RunnerLock::try_take(&dir)?.ok_or_else(|| EngineError::NotStopped(id.clone()))?;
        let ended = journal::read(&dir)?.state.ended.ok_or_else(|| EngineError::NotStopped(id.clone()))?;
        Ok(archive::put_aside(&self.project, id, ended.at)?)
    }

    /// A loop's events.
    ///
    /// # Errors
    /// [`EngineError`] where they cannot be read.
    pub fn events(&self, id: &LoopId) -> Result<Vec<refrain_core::Record>, EngineError> {
        Ok(journal::records(&self.locate(id)?.dir)?)
    }

    /// The loop's share in its worktree.
    pub(crate) fn share(&self, spec: &Spec) -> Result<Share, EngineError> {
        let needs_alone = spec.needs_worktree_alone();
        match WorktreeLock::claim(&self.project, &spec.worktree, !needs_alone)? {
            Claimed::Alone(lock) => Ok((lock, Vec::new())),
            Claimed::Beside(lock, mut others) => {
                others.sort_unstable();
                others.dedup();
                Ok((lock, others))
            }
            Claimed::Refused(by) => {
                Err(EngineError::WorktreeTaken { worktree: spec.worktree.clone(), by, needs_alone })
            }
        }
    }

    fn driven(&self, id: &LoopId, state: Option<&LoopState>) -> EngineError {
        let pid = state.and_then(|state| state.runner.as_ref()).map(|runner| runner.process.pid);
        EngineError::Driven { id: id.clone(), pid }
    }
}

/// The view of a loop, with what only the machine knows: whether its runner lives.
pub(crate) fn look(dir: &LoopDir, state: &LoopState) -> Status {
    view::status(state, alive(dir, state))
}

/// Who of a loop lives.
pub(crate) fn alive(dir: &LoopDir, state: &LoopState) -> Alive {
    if let Some(session) = state.session.as_ref().filter(|_| state.is_in_session())
        && RunnerLock::is_free(dir)
    {
        return Alive { runner: session::is_alive(session), ..Alive::default() };
    }
    // A process that lives may have given the loop up, and of one on another machine nothing is known: the lock says more.
    let alive = state.runner.as_ref().and_then(identity::is_alive);
    let runner = alive.filter(|alive| !alive || !RunnerLock::is_free(dir));
    let runner = runner.or_else(|| RunnerLock::is_free(dir).then_some(false));
    let spawned = state.in_flight().and_then(|flight| flight.spawned).map(|(process, _)| process);
    let orphan = spawned.filter(|agent| runner == Some(false) && identity::is_running(*agent));
    let stopped = runner == Some(true) && is_stopped(state.runner.as_ref());
    Alive { runner, orphan: orphan.map(|agent| agent.pid), stopped }
}

/// Whether a runner lives on this machine, and is stopped.
pub(crate) fn is_stopped(runner: Option<&Identity>) -> bool {
    runner.is_some_and(|it| identity::is_alive(it) == Some(true) && identity::is_stopped(it.process))
}
