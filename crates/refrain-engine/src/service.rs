//! [`Service`], the interface for every surface: actions on the loops of a project, and views of them. Runners are in
//! `driver`, plans in `plan`, live views in `observe`.

pub(crate) mod by_kind;
pub(crate) mod catalog;
pub(crate) mod detect_gates;
pub(crate) mod evolution;
pub(crate) mod import_export;
pub(crate) mod logs;
pub(crate) mod mirror;
pub(crate) mod notes;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod seal;
pub(crate) mod search;
pub(crate) mod shared_files;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::budget::Caps;
use refrain_core::signature::{Objection, Remedy};
use refrain_core::view::{self, Alive, RemoteCopy, Status, StatusWord};
use refrain_core::{LoopId, LoopState, Machine, Spec};
use refrain_store::access::trust::{Content, Trust};
use refrain_store::disk::notice::Notice;
use refrain_store::journal::{self};
use refrain_store::project::{archive, mirrors};
use refrain_store::{LoopDir, Project, RunnerLock, config};

use crate::EngineError;
use crate::driver::liveness::{alive, look};
use crate::host::Host;
use crate::observe::known_loops::KnownLoops;

/// How long a runner that has recorded the end of its loop is waited for.
const LEAVING: Duration = Duration::from_secs(10);
/// How often it is checked meanwhile: one that was killed wakes no waiter.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) project: Project,
    pub(crate) host: Host,
    /// Everything of the project is trusted, for what is asked of this value.
    pub(crate) trusts_once: bool,
    /// If its loops are copies of those that a git remote has: where the copy that it was opened for comes from.
    pub(crate) copy: Option<RemoteCopy>,
    /// The folder of the archived loop or plan that it was opened for, and those of the plan's loops, if their ids reach others.
    pub(crate) archived: BTreeMap<LoopId, LoopDir>,
    pub(crate) known: KnownLoops,
}

#[derive(Clone, Debug)]
pub struct LoopLocation {
    pub dir: LoopDir,
    pub archived: bool,
}

impl Service {
    /// Opens the project that `dir` lies in.
    pub fn open(dir: &Utf8Path, host: Host) -> Result<Self, EngineError> {
        Ok(Self {
            project: Project::find(dir)?,
            host,
            trusts_once: false,
            copy: None,
            archived: BTreeMap::new(),
            known: KnownLoops::default(),
        })
    }

    /// The same, with what this process knows of the loops that it lists again and again.
    #[must_use]
    pub fn knowing(self, known: KnownLoops) -> Self {
        Self { known, ..self }
    }

    /// The same, but everything of the project counts as trusted if `once`; nothing is stored.
    #[must_use]
    pub fn trusting(self, once: bool) -> Self {
        Self { trusts_once: once, ..self }
    }

    /// The name of the folder of this archived loop that it reads, if the id reaches another.
    pub fn archived_folder(&self, id: &LoopId) -> Option<&str> {
        self.archived.get(id)?.0.file_name()
    }

    /// The folder of this archived plan that it reads, if the id reaches another.
    pub(crate) fn archived_plan(&self, id: &LoopId) -> Option<&LoopDir> {
        self.archived.get(id).filter(|dir| dir.0.starts_with(self.project.plan_archive()))
    }

    /// Whether [`Service::trusting`] said so.
    pub fn trusts_once(&self) -> bool {
        self.trusts_once
    }

    /// Whether the user trusts this content of the project.
    pub fn trusts(&self, content: Content<'_>) -> bool {
        self.trusts_once || Trust::new(&self.host.state_home).is_trusted(&self.project.root, content)
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The settings of loops that are started here. `variables` says whether those of the environment count: not inside
    /// an attempt, where they were set for the agent.
    pub fn settings(
        &self,
        chosen: config::AgentChoice<'_>,
        variables: bool,
    ) -> Result<config::Settings, config::ConfigError> {
        let Host { config_home, state_home, env, .. } = &self.host;
        let variables: &[_] = if variables { env } else { &[] };
        let (project, trusts_once) = (&self.project, self.trusts_once);
        config::load(config::Places { config_home, state_home, project, trusts_once, variables }, chosen)
    }

    pub fn spec(&self, id: &LoopId) -> Result<Spec, EngineError> {
        Ok(journal::read(&self.locate(id)?.dir)?.state.spec)
    }

    /// The folder of a loop, in the archive too.
    pub fn locate(&self, id: &LoopId) -> Result<LoopLocation, EngineError> {
        if self.archived_plan(id).is_some() {
            return Err(EngineError::IsPlan(id.clone()));
        }
        match self.archived.get(id) {
            Some(dir) => return Ok(LoopLocation { dir: dir.clone(), archived: true }),
            None if !self.archived.is_empty() => return Err(self.no_loop(id)),
            None => {}
        }
        let dir = self.project.loop_dir(id);
        if dir.exists() {
            return Ok(LoopLocation { dir, archived: false });
        }
        match archive::find(&self.project, id) {
            Some(dir) => Ok(LoopLocation { dir, archived: true }),
            None if self.project.plan_dir(id).exists() => Err(EngineError::IsPlan(id.clone())),
            None => Err(self.no_loop(id)),
        }
    }

    /// Whether the data of its project is found from its folder: not if an agent deleted its `.git`.
    pub fn is_found(&self) -> bool {
        Project::find(&self.project.worktree).is_ok_and(|found| found.data == self.project.data)
    }

    pub(crate) fn no_loop(&self, id: &LoopId) -> EngineError {
        let (loops, plans) = (self.project.loop_dirs(), self.project.plan_dirs());
        let dirs = [loops, plans].map(Result::unwrap_or_default).concat();
        let names = dirs.iter().filter_map(|dir| dir.0.file_name());
        let nearest = config::nearest(id.as_str(), names).and_then(|name| name.parse().ok());
        let copy = mirrors::note(&mirrors::project(&self.project).loop_dir(id)).map(|note| note.copy.remote);
        EngineError::NoLoop { id: id.clone(), project: self.project.root.clone(), nearest, copy }
    }

    pub fn status(&self, id: &LoopId) -> Result<Status, EngineError> {
        Ok(self.state_and_status(&self.locate(id)?)?.1)
    }

    /// The state of a loop, with its signatures checked, and its status.
    pub fn state_and_status(&self, found: &LoopLocation) -> Result<(LoopState, Status), EngineError> {
        let dir = &found.dir;
        let state = journal::read_signed(dir, &self.host.signing())?.state;
        // The take-over shows it, and asks for it.
        let is_unknown_key = |it: &Objection| it.remedy() == Remedy::TrustKey;
        let status = match &self.copy {
            Some(copy) => {
                let status = view::status(&state, self.alive(dir, &state));
                let caps = if state.is_final() { Caps::default() } else { state.spec.caps };
                let caps = self.caps_elsewhere(&caps, Some(&copy.remote));
                let is_moved = status.status == StatusWord::Moved
                    && state.signatures.objection().is_none_or(is_unknown_key);
                let needs = if is_moved { Some(copy.needs(&state.spec.id)) } else { status.needs };
                Status { mirrored: Some(copy.clone()), caps, needs, ..status }
            }
            None => {
                // What cannot be read hides nothing else: doctor reports it.
                let caps = if state.is_final() { None } else { self.shared_caps(state.spec.caps).ok() };
                Status { caps: caps.unwrap_or_default(), ..look(dir, &state) }
            }
        };
        // What it needs names the loop by its id; of a task it is what the plan needs, which may be over.
        let is_moot = |_: &String| {
            let plan = state.spec.task.as_ref().and_then(|task| self.plan(&task.plan).ok());
            !self.archived.is_empty() || plan.is_some_and(|plan| plan.is_final())
        };
        let needs = status.needs.filter(|needs| !is_moot(needs));
        Ok((state, Status { needs, ..status }))
    }

    /// What is known of the processes of a loop: of one on another machine, nothing.
    pub(crate) fn alive(&self, dir: &LoopDir, state: &LoopState) -> Alive {
        if self.copy.is_some() { Alive::default() } else { alive(dir, state) }
    }

    /// Moves a stopped loop into the archive; returns where it lies then.
    pub fn archive(&self, id: &LoopId) -> Result<Utf8PathBuf, EngineError> {
        let LoopLocation { dir, archived: false } = self.locate(id)? else {
            return Err(EngineError::Archived(id.clone()));
        };
        let _lock = self.lock_of_ended::<LoopState>(id, &dir)?;
        let signing = self.host.signing();
        let ended = match journal::has_left(&dir) {
            true => journal::read(&self.known_dir(id))?.state.ended,
            false => journal::read_believed::<LoopState>(&dir, &signing)?.ended,
        };
        let ended = ended.ok_or_else(|| EngineError::NotStopped(id.clone()))?;
        let aside = archive::put_aside(&self.project, id, ended.at)?;
        signing.moved(&dir, &LoopDir(aside.clone()));
        Ok(aside)
    }

    /// The lock of a loop or plan that has ended.
    pub(crate) fn lock_of_ended<M: Machine>(
        &self,
        id: &LoopId,
        dir: &LoopDir,
    ) -> Result<RunnerLock, EngineError> {
        lock_at_rest::<M>(dir)?.ok_or_else(|| EngineError::NotStopped(id.clone()))
    }

    pub fn events(&self, id: &LoopId) -> Result<Vec<refrain_core::Record>, EngineError> {
        Ok(journal::records(&self.locate(id)?.dir)?)
    }
}

/// The lock of a loop or plan that no runner drives; none if one does. A runner that has recorded the end holds it for a moment
/// longer: this waits for that.
pub(crate) fn lock_at_rest<M: Machine>(dir: &LoopDir) -> Result<Option<RunnerLock>, EngineError> {
    let (until, mut notice) = (Instant::now() + LEAVING, None);
    loop {
        if let Some(lock) = RunnerLock::try_take(dir)? {
            return Ok(Some(lock));
        }
        let left = until.saturating_duration_since(Instant::now());
        let has_ended = journal::read_as::<M>(dir).is_ok_and(|read| read.state.ended.is_some());
        if !has_ended || left.is_zero() {
            return Ok(None);
        }
        match &notice {
            // What happened meanwhile is seen in the next round.
            None => notice.insert(Notice::new()?).watch(&dir.runner_lock()),
            Some(notice) => notice.wait(Some(left.min(LOOK_AGAIN))),
        }
    }
}
