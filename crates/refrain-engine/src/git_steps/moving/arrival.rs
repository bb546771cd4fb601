//! Taking a loop over from a remote. The claim is recorded before the remote gets it, and the loop exists here, or can be
//! resumed here, only once everything is in place: the same command continues after a crash.

use std::collections::BTreeMap;
use std::ffi::OsString;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use refrain_agents::{environment, generic};
use refrain_core::event::{Arrival, Departure, Event};
use refrain_core::git::{Checkout, GitPins, Oid};
use refrain_core::r#loop::{Takeover, take_over};
use refrain_core::sandbox::SandboxSpec;
use refrain_core::signature::PublicKey;
use refrain_core::{LoopId, LoopState, Spec};
use refrain_files::read_regular;
use refrain_git::{GitError, JournalCommit, JournalRef, Repository, Swap};
use refrain_proc::identity;
use refrain_store::config::AgentChoice;
use refrain_store::journal::{self, Durability};
use refrain_store::project::{archive, mirrors, moving, projects, worktree};
use refrain_store::{ClaimOutcome, Journal, LoopDir, RunnerLock, WorktreeLock};

use super::{DepartureSteps, JOURNAL, NOTES, content, disk, logs, object_of};
use crate::git_steps::repository::{self, marked};
use crate::git_steps::tool_pins;
use crate::move_error::MoveError;
use crate::sandbox::NoSandbox;
use crate::{EngineError, Service, now};

/// A loop that was taken over.
#[derive(Clone, Debug)]
pub struct MovedHere {
    pub url: String,
    /// The key of the machine that it left.
    pub key: PublicKey,
    pub worktree: Utf8PathBuf,
    pub sandbox: SandboxChange,
}

/// What a move changed, because the user of this machine asks for a sandbox.
#[derive(Clone, Debug, Default)]
pub enum SandboxChange {
    /// Nothing but what both users allow.
    #[default]
    None,
    /// The loop gets the sandbox of this user.
    Given,
    /// This machine cannot make it, and the user asks for it only where it can be made.
    Missing(String),
    /// This machine cannot make it, and the loop does not continue without it unless the user says so.
    Required(NoSandbox),
}

/// A specification with what is different here.
pub(super) struct Adapted {
    pub(super) spec: Spec,
    pub(super) agents: BTreeMap<String, String>,
    pub(super) sandbox: SandboxChange,
}

impl Service {
    /// Takes a loop over from a remote, as [`Service::move_to`] names it. `signer` is the key of the machine that it left, if a
    /// person accepts that one. It may be repeated.
    pub fn move_from(
        &self,
        id: &LoopId,
        from: (&str, &Utf8Path),
        signer: Option<&PublicKey>,
    ) -> Result<MovedHere, EngineError> {
        let read = |dir: &LoopDir| Ok(journal::read_believed::<LoopState>(dir, &self.host.signing())?);
        self.arrive(id, from, read, |steps| steps.run(signer))
    }

    /// Takes a loop over from a remote by these steps, with its lock held. `read` gives its state as it is here.
    pub(super) fn arrive<T>(
        &self,
        id: &LoopId,
        (remote, dir): (&str, &Utf8Path),
        read: impl FnOnce(&LoopDir) -> Result<LoopState, EngineError>,
        steps: impl FnOnce(ArrivalSteps<'_>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        if self.project.plan_dir(id).exists() {
            return Err(EngineError::IsPlan(id.clone()));
        }
        let own = self.project.loop_dir(id);
        // One that left comes back to its worktree from the archive too.
        let archived = archive::find(&self.project, id).filter(|dir| !own.exists() && journal::has_left(dir));
        if let Some(archived) = &archived {
            archive::bring_back(&self.project, archived, id)?;
            self.host.signing().moved(archived, &own);
        }
        let is_new = !own.exists();
        let own = if is_new { moving::staging(&self.project, id) } else { own };
        let Some(_lock) = RunnerLock::claim(&own)? else {
            return Err(EngineError::Driven { id: id.clone(), pid: None });
        };
        let take = || -> Result<T, EngineError> {
            let repository = self.repository_of_person()?;
            let at = repository.journal_ref(remote, dir, id)?;
            let here = if is_new { None } else { Some(read(&own)?) };
            steps(ArrivalSteps { service: self, id, dir: own, here, at: &at, repository: &repository })
        };
        let taken = take();
        if taken.is_err() && is_new {
            moving::discard_staging(&self.project, id);
        }
        if taken.is_err()
            && let Some(archived) = &archived
        {
            let own = self.project.loop_dir(id);
            archive::put_back(&self.project, archived, id)?;
            self.host.signing().moved(&own, archived);
        }
        taken
    }
}

/// A loop on its way to this machine.
pub(super) struct ArrivalSteps<'a> {
    pub(super) service: &'a Service,
    pub(super) id: &'a LoopId,
    /// Its folder; a staging folder if it does not exist here.
    pub(super) dir: LoopDir,
    /// Its state by the journal of this machine.
    pub(super) here: Option<LoopState>,
    pub(super) at: &'a JournalRef<'a>,
    pub(super) repository: &'a Repository,
}

/// The loop as the remote has it, which was found to fit.
struct Incoming {
    there: JournalCommit,
    journal: Vec<u8>,
    state: LoopState,
    departure: Box<Departure>,
    key: PublicKey,
    /// What it is asked to do here.
    spec: Spec,
    agents: BTreeMap<String, String>,
    sandbox: SandboxChange,
    branch: String,
    /// Where that is here.
    branch_head: Option<Oid>,
    /// The content that the worktree is to get.
    content: Oid,
    has_worktree: bool,
}

impl Incoming {
    /// Whether an earlier call of this machine claimed it.
    fn is_claimed(&self) -> bool {
        self.there.found.holder.is_some()
    }
}

impl ArrivalSteps<'_> {
    fn failed(&self, why: MoveError) -> EngineError {
        EngineError::Move { id: self.id.clone(), why }
    }

    fn url(&self) -> String {
        self.at.url().to_owned()
    }

    fn run(mut self, signer: Option<&PublicKey>) -> Result<MovedHere, EngineError> {
        let (there, fence) = self.find()?;
        let incoming = self.check(there, signer)?;
        let claim = match incoming.is_claimed() {
            true => incoming.there.found.commit.clone(),
            false => self.claim(&incoming, fence)?,
        };
        self.lay_out(&incoming)?;
        let (spec, url) = (&incoming.spec, self.url());
        let arrival = Arrival {
            from: url.clone(),
            fence,
            claim: Some(claim),
            host: identity::own().host,
            project: spec.project.clone(),
            worktree: spec.worktree.clone(),
            branch: (!incoming.state.spec.git.checkout.is_own_worktree()).then(|| incoming.branch.clone()),
            working_dir: spec.working_dir.clone(),
            agents: incoming.agents.clone(),
            pins: spec.git.pins.clone(),
            programs: tool_pins::of_gates(spec, &self.env(spec)),
            sandbox: spec.sandbox.clone(),
        };
        let mut journal: Journal =
            Journal::open_signed(self.dir.clone(), now(), self.service.host.signing())?;
        journal.push(Event::LoopMoved(Box::new(arrival)), now())?;
        journal.commit(Durability::Synced)?;
        moving::forget_claims(&self.dir)?;
        mirrors::discard(&self.service.project, self.id)?;
        // Only a convenience: what cannot be listed elsewhere still runs.
        let _ = projects::remember(&self.service.host.data_home, &self.service.project.root);
        let Incoming { key, spec, sandbox, .. } = incoming;
        Ok(MovedHere { url, key, worktree: spec.worktree, sandbox })
    }

    pub(super) fn env(&self, spec: &Spec) -> Vec<(OsString, OsString)> {
        marked(&self.service.host.git_env(spec), spec)
    }

    /// The loop at the remote, and the fence of its take-over. A departure from here that did not reach the remote is
    /// finished first.
    fn find(&self) -> Result<(JournalCommit, u64), EngineError> {
        let own = moving::claims(&self.dir);
        for is_again in [false, true] {
            let there = self.service.fetch(self.at, self.id)?;
            let (tenure, found) =
                (self.here.as_ref().map(|here| &here.tenure), there.as_ref().map(|it| &it.found));
            let taken = take_over(tenure, self.at.url(), found, &own);
            match (taken, there, &self.here) {
                (Ok(Takeover::FinishDeparture), _, Some(here)) if !is_again => {
                    let Self { service, id, at, repository, dir, .. } = self;
                    DepartureSteps { service, id, dir, at, repository }.publish(here, None)?;
                }
                (Ok(Takeover::Claim { fence } | Takeover::Continue { fence }), Some(there), _) => {
                    return Ok((there, fence));
                }
                (Err(why), ..) => return Err(self.failed(MoveError::NotTaken { url: self.url(), why })),
                (Ok(_), ..) => break,
            }
        }
        Err(self.failed(MoveError::Raced(self.url())))
    }

    /// Refuses what does not fit, before anything is changed.
    fn check(&self, there: JournalCommit, signer: Option<&PublicKey>) -> Result<Incoming, EngineError> {
        let other = |why| self.failed(MoveError::OtherJournal { url: self.url(), why });
        let object = object_of(&there, JOURNAL).ok_or_else(|| other("the file is missing"))?;
        let journal = self.at.content(object)?;
        let from = LoopDir(self.url().into());
        let journal::ForeignJournal { state, key, is_trusted } =
            journal::departed(&journal, &from, &self.service.host.signing())
                .map_err(|error| self.failed(MoveError::Journal(error)))?;
        if !is_trusted && signer != Some(&key) {
            return Err(self.failed(MoveError::Signer { url: self.url(), key }));
        }
        let departure = state.tenure.departure.clone().ok_or_else(|| other("the loop has not left"))?;
        let claims = u64::from(there.found.holder.is_some());
        if state.spec.id != *self.id || departure.fence.checked_add(claims) != Some(there.found.fence) {
            return Err(other("it has another name or fence"));
        }
        if self.here.is_some() {
            let path = self.dir.journal();
            let own = read_regular(&path, moving::LARGEST).map_err(|source| disk("read", &path, source))?;
            if !journal.starts_with(&own) {
                return Err(other("it does not continue the journal that is here"));
            }
        }
        let Adapted { mut spec, agents, sandbox } = self.adapted(&state.spec)?;
        let branch = spec.git.new_branch().unwrap_or_default().to_owned();
        spec.git.pins = Some(Box::new(self.pins(&spec, &branch)?));
        let branch_head = self.repository.branch_head(&branch)?;
        if let Some(head) = &branch_head
            && !self.repository.is_behind(head, &departure.head)?
        {
            return Err(self.failed(MoveError::Diverged(branch)));
        }
        if let Some(by) = self.repository.checked_out(&branch, &spec.worktree)? {
            return Err(GitError::BranchElsewhere { branch, by }.into());
        }
        let content = self.content_of(&departure)?;
        let has_worktree = spec.worktree.exists() && !refrain_git::is_half_made(&spec.worktree);
        let incoming = Incoming {
            there,
            journal,
            state,
            departure,
            key,
            spec,
            agents,
            sandbox,
            branch,
            branch_head,
            content,
            has_worktree,
        };
        self.check_worktree(&incoming)?;
        Ok(incoming)
    }

    /// The content of the worktree that a loop left.
    fn content_of(&self, departure: &Departure) -> Result<Oid, GitError> {
        departure.work.clone().map_or_else(|| self.repository.tree_of(&departure.head), Ok)
    }

    /// Refuses to replace a worktree with content that the loop did not take along.
    fn check_worktree(&self, incoming: &Incoming) -> Result<(), EngineError> {
        // An earlier call may have been killed while it wrote the files.
        if !incoming.has_worktree || incoming.is_claimed() {
            return Ok(());
        }
        let found = content(self.service, &incoming.spec, &self.dir)?;
        let left = self.here.as_ref().and_then(|here| here.tenure.departure.as_ref());
        let left = left.map(|departure| self.content_of(departure)).transpose()?;
        match found.files.is_empty() || found.tree == incoming.content || Some(&found.tree) == left.as_ref() {
            true => Ok(()),
            false => Err(self.failed(MoveError::Changed(incoming.spec.worktree.clone()))),
        }
    }

    /// The specification with the paths of this machine, its sandbox as far as the user allows it or asks for it here, and
    /// the programs of agents that have other paths here.
    pub(super) fn adapted(&self, there: &Spec) -> Result<Adapted, EngineError> {
        let mut spec = there.clone();
        spec.project.clone_from(&self.service.project.root);
        spec.worktree = self.worktree();
        if !spec.git.checkout.is_own_worktree() {
            // The checkout of its user stays as it is, here too.
            let own = || format!("loop/{}", self.id);
            let branch = spec.git.new_branch().map_or_else(own, str::to_owned);
            spec.git.checkout = Checkout::Worktree { branch, from: "HEAD".to_owned() };
        }
        let inside = there.working_dir.strip_prefix(&there.worktree).unwrap_or(Utf8Path::new(""));
        if inside.components().any(|part| !matches!(part, Utf8Component::Normal(_))) {
            let why = "its folder is outside of its worktree";
            return Err(self.failed(MoveError::OtherJournal { url: self.url(), why }));
        }
        // Joined to nothing, a path would end in a slash.
        spec.working_dir =
            if inside.as_str().is_empty() { spec.worktree.clone() } else { spec.worktree.join(inside) };
        let env = environment::base(&spec, self.service.host.env.iter().cloned());
        let (worktree, project) = (spec.worktree.clone(), spec.project.clone());
        let mut agents = BTreeMap::new();
        for agent in spec.agents_mut() {
            let path = Utf8Path::new(&agent.program);
            let is_in_path = !agent.program.contains('/');
            // One in the worktree comes with that.
            let inside = path.strip_prefix(&there.worktree).ok().map(|inside| worktree.join(inside));
            let adapted = match (inside, path.strip_prefix(&there.project)) {
                (Some(inside), _) => inside.into_string(),
                (None, Ok(inside)) => project.join(inside).into_string(),
                (None, Err(_)) if path.is_absolute() && !path.is_file() => {
                    let name = path.file_name().unwrap_or_default();
                    generic::find(name, &project, &env)?.to_string_lossy().into_owned()
                }
                (None, Err(_)) => agent.program.clone(),
            };
            let is_work =
                !is_in_path && (!path.is_absolute() || Utf8Path::new(&adapted).starts_with(&worktree));
            if !is_work {
                generic::find(&adapted, &project, &env)?;
            }
            if adapted != agent.program {
                agents.insert(std::mem::replace(&mut agent.program, adapted.clone()), adapted);
            }
        }
        let config = self.service.settings(AgentChoice::default(), true)?.config.sandbox;
        let (moved, missing) =
            crate::sandbox::moved(&self.service.host, &spec, &self.service.project, &config);
        let sandbox = match missing {
            Some(error) if moved.is_some() => SandboxChange::Required(error),
            Some(error) => SandboxChange::Missing(error.to_string()),
            None => {
                let mechanism = |sandbox: &Option<SandboxSpec>| sandbox.as_ref().map(|it| it.mechanism);
                let is_given = mechanism(&spec.sandbox) != mechanism(&moved);
                if is_given { SandboxChange::Given } else { SandboxChange::None }
            }
        };
        spec.sandbox = moved;
        Ok(Adapted { spec, agents, sandbox })
    }

    /// Where the worktree of the loop is to be: where an earlier call began it, where the loop had it on this machine, or where a
    /// new loop has it.
    fn worktree(&self) -> Utf8PathBuf {
        let had = || Some(&self.here.as_ref()?.spec).filter(|spec| spec.git.checkout.is_own_worktree());
        let before = moving::worktree(&self.dir).or_else(|| had().map(|spec| spec.worktree.clone()));
        before.unwrap_or_else(|| {
            let Service { host, project, .. } = self.service;
            repository::free_folder(project.own_worktree(&host.state_home, self.id))
        })
    }

    /// What git runs here for the loop, and where it pushes: that is the same remote as before, if the loop publishes.
    pub(super) fn pins(&self, there: &Spec, branch: &str) -> Result<GitPins, EngineError> {
        let git = &there.git;
        let pins = self.repository.take_pins(branch)?;
        let url = |pins: Option<&GitPins>| {
            pins.and_then(|pins| Some(pins.push.as_ref()?.url.clone())).unwrap_or_default()
        };
        let (there, here) = (url(git.pins.as_deref()), url(Some(&pins)));
        if git.workflow.publishes() && there != here {
            return Err(self.failed(MoveError::OtherTarget { there, here }));
        }
        Ok(pins)
    }

    /// Claims the loop at the remote. Of all machines that try, one succeeds.
    fn claim(&self, incoming: &Incoming, fence: u64) -> Result<Oid, EngineError> {
        let there = &incoming.there;
        let commit = self.at.claim(there, fence, incoming.state.seq, &identity::own().host)?;
        moving::record_claim(&self.dir, &commit)?;
        match self.at.swap(&commit, Some(&there.found.commit))? {
            Swap::Done => Ok(commit),
            Swap::Unknown(refusal) => Err(self.failed(MoveError::Unknown { url: self.url(), refusal })),
            Swap::Refused(refusal) => Err(self.failed(MoveError::Remote { url: self.url(), refusal })),
            Swap::Stale => Err(self.failed(MoveError::Raced(self.url()))),
        }
    }

    /// Puts the loop in its place: its folder, its branch, its worktree.
    fn lay_out(&mut self, incoming: &Incoming) -> Result<(), EngineError> {
        let Incoming { there, journal, departure, spec, branch, branch_head, .. } = incoming;
        let notes = object_of(there, NOTES).map(|object| self.at.content(object)).transpose()?;
        moving::record_worktree(&self.dir, &spec.worktree)?;
        logs::lay_out(self.at, &there.files, (&self.dir, journal))?;
        moving::write(&self.dir, Utf8Path::new(JOURNAL), journal)?;
        let _lock = match WorktreeLock::claim(&self.service.project, &spec.worktree, false)? {
            ClaimOutcome::Alone(lock) | ClaimOutcome::Beside(lock, _) => lock,
            ClaimOutcome::Refused(by) => {
                return Err(EngineError::WorktreeTaken {
                    worktree: spec.worktree.clone(),
                    by,
                    needs_alone: true,
                });
            }
        };
        let is_there =
            incoming.has_worktree && content(self.service, spec, &self.dir)?.tree == incoming.content;
        let is_as_left = is_there && branch_head.as_ref() == Some(&departure.head);
        if incoming.has_worktree
            && !is_as_left
            && let Some(why) = self.repository.remove_saved_worktree(&spec.worktree)?
        {
            return Err(GitError::Failed { command: "git worktree remove".to_owned(), said: why }.into());
        }
        let name = format!("refs/heads/{branch}");
        if !self.repository.move_reference(&name, branch_head.as_ref(), &departure.head, "refrain move")? {
            return Err(GitError::ReferenceMoved(name).into());
        }
        if !spec.worktree.exists() || refrain_git::is_half_made(&spec.worktree) {
            // Hooks and filters of this machine, over content of the agent.
            let (env, of) = (self.env(spec), (&self.service.host, spec, &self.dir));
            let repository = repository::open_in_sandbox(&self.service.project.root, &env, of)?;
            let made = repository.restore_worktree(&spec.worktree, branch, Some(&departure.head));
            if let Err(error) = made {
                let probe = || crate::sandbox::probe_moved(&self.service.host, spec, &self.service.project);
                let missing = matches!(error, GitError::Failed { .. }).then(probe).and_then(Result::err);
                match missing {
                    None => return Err(error.into()),
                    // Without a hook it has its files, and without a filter it has not.
                    Some(_) if spec.worktree.exists() => {}
                    Some(why) => return Err(self.failed(MoveError::Sandbox(Box::new(why)))),
                }
            }
            if departure.work.is_some() {
                repository::open_in_sandbox(&spec.worktree, &env, of)?.take_content(&incoming.content)?;
            }
        }
        if let Some(notes) = notes {
            worktree::restore_notes(spec, &notes)?;
        }
        if self.here.is_none() {
            self.dir = moving::settle(&self.service.project, self.id)?;
        }
        Ok(())
    }
}
