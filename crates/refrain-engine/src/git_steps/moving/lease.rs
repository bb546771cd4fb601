//! A loop that machines hand to each other without its departure: the machine that had it may be dead, frozen or cut off.
//! The reference of the loop at a git remote is the lease. A take-over moves it to a commit with a higher fence, and from
//! then on no push of the machine before succeeds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{Arrival, Event};
use refrain_core::git::Oid;
use refrain_core::r#loop::{TakeOverRefusal, Takeover, take_lease};
use refrain_core::signature::PublicKey;
use refrain_core::{LoopId, LoopState, Spec};
use refrain_files::read_regular;
use refrain_git::{Holder, JournalCommit, NewJournalCommit, Repository, Swap};
use refrain_proc::identity;
use refrain_store::journal::{self, Durability, ForeignJournal, Unreplicated, Witness};
use refrain_store::project::{moving, projects, worktree};
use refrain_store::{ClaimOutcome, Journal, LoopDir, WorktreeLock};

use super::arrival::{Adapted, ArrivalSteps, SandboxChange};
use super::{JOURNAL, NOTES, disk, logs, object_of};
use crate::error::chain;
use crate::git_steps::repository;
use crate::git_steps::tool_pins;
use crate::move_error::MoveError;
use crate::{EngineError, Service, now};

/// How often a take-over is tried again while the machine that has the loop moves the reference.
const TRIES: u32 = 5;

/// The witness of a loop's journal at a git remote: journal and branch are pushed together, and only while this machine is
/// the one that pushed last.
#[derive(Debug)]
pub struct RemoteWitness {
    at: Mutex<RemotePlace>,
    covered: AtomicU64,
}

#[derive(Debug)]
struct RemotePlace {
    repository: Repository,
    remote: String,
    dir: Utf8PathBuf,
    loop_dir: LoopDir,
    spec: Box<Spec>,
    fence: u64,
    /// Where the reference is, as this machine moved it last.
    known: Option<Oid>,
    /// Commits that may have arrived, or may arrive yet, each with how many records it has.
    tried: Vec<(Oid, u64)>,
    /// The logs that are stored as objects, each with its length then: it only grows. An excerpt has another name.
    stored: BTreeMap<Utf8PathBuf, (u64, (Utf8PathBuf, Oid))>,
}

impl Witness for RemoteWitness {
    fn replicate(&self, seq: u64, journal: &[u8]) -> Result<(), Unreplicated> {
        if self.covers(seq) {
            return Ok(());
        }
        let mut place = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let replicated = place.replicate(seq, journal);
        if replicated.is_ok() {
            self.covered.fetch_max(seq, Ordering::SeqCst);
        }
        replicated
    }

    fn covers(&self, seq: u64) -> bool {
        self.covered.load(Ordering::SeqCst) >= seq
    }
}

fn unreachable(error: impl std::error::Error) -> Unreplicated {
    Unreplicated::Unreachable(chain(&error))
}

impl RemotePlace {
    fn replicate(&mut self, seq: u64, journal: &[u8]) -> Result<(), Unreplicated> {
        let Self { repository, remote, dir, loop_dir, spec, fence, known, tried, stored } = self;
        let at = repository.journal_ref(remote, dir, &spec.id).map_err(unreachable)?;
        let branch = spec.git.new_branch().unwrap_or_default();
        let refused = |refusal: refrain_git::Refusal| Unreplicated::Unreachable(refusal.to_string());
        let there = at.places(branch).map_err(unreachable)?.map_err(refused)?;
        if let Some((commit, has)) = tried.iter().find(|(commit, _)| Some(commit) == there.journal.as_ref()) {
            *known = Some(commit.clone());
            if *has >= seq {
                tried.clear();
                return Ok(());
            }
        }
        if there.journal != *known {
            return Err(Unreplicated::Fenced);
        }
        // The branch of a loop that ended without a commit is gone.
        let last = || Ok(known.as_ref().map(|known| at.held_head(known)).transpose()?.flatten());
        let here =
            repository.branch_head(branch).and_then(|here| here.map_or_else(last, |here| Ok(Some(here))));
        let head = match here.map_err(unreachable)? {
            Some(head) => head,
            None => repository.head_of(branch).map_err(unreachable)?,
        };
        let mut files = vec![(JOURNAL.into(), at.store(journal).map_err(unreachable)?)];
        if let Some(notes) = worktree::notes(spec) {
            files.push((NOTES.into(), at.store(notes.as_bytes()).map_err(unreachable)?));
        }
        for path in logs::listed(loop_dir).map_err(unreachable)? {
            // It is sealed, so that its absence shows.
            let Some(length) = logs::length(loop_dir, &path) else { continue };
            if stored.get(&path).is_none_or(|(known, _)| *known != length) {
                let Ok((name, content)) = logs::carried(loop_dir, &path, logs::BRIEF) else { continue };
                let object = at.store(&content).map_err(unreachable)?;
                stored.insert(path.clone(), (length, (name, object)));
            }
            files.extend(stored.get(&path).map(|(_, file)| file.clone()));
        }
        let new = NewJournalCommit {
            previous: known.as_ref(),
            head: &head,
            files: &files,
            trees: &[],
            fence: *fence,
            seq,
            index: &super::index(loop_dir),
        };
        let name = identity::own().host;
        let holder = Holder { name: &name, fence: *fence, seq, head: Some(&head) };
        let commit = at.replica(&new, holder).map_err(unreachable)?;
        // The commit of the journal has the head, so nothing is lost if others moved the branch.
        let is_ours = match &there.branch {
            Some(branch) => repository.is_behind(branch, &head).unwrap_or(false),
            None => repository.branch_head(branch).map_err(unreachable)?.is_some(),
        };
        let moved = (is_ours && there.branch.as_ref() != Some(&head)).then_some((
            branch,
            there.branch.as_ref(),
            &head,
        ));
        tried.push((commit.clone(), seq));
        match at.swap_with_branch(&commit, known.as_ref(), moved).map_err(unreachable)? {
            Swap::Done => {
                *known = Some(commit);
                tried.clear();
                Ok(())
            }
            // The next look says whether another machine has the loop.
            Swap::Stale => {
                Err(Unreplicated::Unreachable("its reference, or its branch, was moved".to_owned()))
            }
            Swap::Refused(refusal) | Swap::Unknown(refusal) => Err(refused(refusal)),
        }
    }
}

impl Service {
    /// Takes a loop over from a remote under a fence, which has to be higher than that of every machine before: its journal,
    /// its branch and its worktree are here then, and [`Service::resume`] and [`crate::Runner::drive_leased`] continue it
    /// with the witness. A loop that is here and not at the remote is given to the remote with its first barrier. `signer` is
    /// the key of the last machine, if a person accepts that one. It may be repeated.
    ///
    /// Records and commits that only this machine has, from a drive that lost its lease, are kept beside the journal and as
    /// `refs/refrain/fenced/ID-FENCE`.
    pub fn take_lease(
        &self,
        id: &LoopId,
        (remote, dir): (&str, &Utf8Path),
        fence: u64,
        signer: Option<&PublicKey>,
    ) -> Result<RemoteWitness, EngineError> {
        let read = |dir: &LoopDir| Ok(journal::read_as::<LoopState>(dir)?.state);
        self.arrive(id, (remote, dir), read, |arriving| {
            let is_again = !moving::claims(&arriving.dir).is_empty();
            let (known, seq) = LeaseTakeOver { arriving, fence, signer, is_again }.run()?;
            let loop_dir = self.project.loop_dir(id);
            let state = journal::read_as::<LoopState>(&loop_dir)?.state;
            let place = RemotePlace {
                repository: self.repository_of(&state.spec)?,
                remote: remote.to_owned(),
                dir: dir.to_owned(),
                loop_dir,
                spec: Box::new(state.spec),
                fence,
                known,
                tried: Vec::new(),
                stored: BTreeMap::new(),
            };
            Ok(RemoteWitness { at: Mutex::new(place), covered: AtomicU64::new(seq) })
        })
    }
}

struct LeaseTakeOver<'a> {
    arriving: ArrivalSteps<'a>,
    fence: u64,
    signer: Option<&'a PublicKey>,
    /// An earlier call claimed the loop, and may have been killed before everything was in its place.
    is_again: bool,
}

/// The loop as the remote has it.
struct RemoteJournal {
    there: JournalCommit,
    journal: Vec<u8>,
    state: LoopState,
    head: Option<Oid>,
}

impl LeaseTakeOver<'_> {
    fn failed(&self, why: MoveError) -> EngineError {
        EngineError::Move { id: self.arriving.id.clone(), why }
    }

    /// The commit that the reference is at now, and how many records the remote has.
    fn run(mut self) -> Result<(Option<Oid>, u64), EngineError> {
        let ArrivalSteps { at, .. } = self.arriving;
        let url = at.url().to_owned();
        for _ in 0..TRIES {
            let own = moving::claims(&self.arriving.dir);
            let there = self.arriving.service.fetch(at, self.arriving.id)?;
            let taken = take_lease(there.as_ref().map(|it| &it.found), self.fence, &own)
                .map_err(|why| self.failed(MoveError::NotTaken { url: url.clone(), why }))?;
            let Some(there) = there else {
                let why = TakeOverRefusal::Missing;
                let is_here = self.arriving.here.is_some();
                return if is_here {
                    Ok((None, 0))
                } else {
                    Err(self.failed(MoveError::NotTaken { url, why }))
                };
            };
            let held = self.check(there)?;
            let seq = held.state.seq;
            if let Some(Takeover::Continue { .. }) = taken {
                let commit = held.there.found.commit.clone();
                self.lay_out(held, &commit)?;
                return Ok((Some(commit), seq));
            }
            let name = identity::own().host;
            let holder = Holder { name: &name, fence: self.fence, seq, head: held.head.as_ref() };
            let claim = at.take_over(&held.there, holder)?;
            moving::record_claim(&self.arriving.dir, &claim)?;
            match at.swap(&claim, Some(&held.there.found.commit))? {
                Swap::Done => {
                    self.lay_out(held, &claim)?;
                    return Ok((Some(claim), seq));
                }
                Swap::Stale => {}
                Swap::Unknown(refusal) => return Err(self.failed(MoveError::Unknown { url, refusal })),
                Swap::Refused(refusal) => return Err(self.failed(MoveError::Remote { url, refusal })),
            }
        }
        Err(self.failed(MoveError::Raced(url)))
    }

    /// Refuses what does not fit, before anything is changed.
    fn check(&self, there: JournalCommit) -> Result<RemoteJournal, EngineError> {
        let ArrivalSteps { service, id, at, .. } = &self.arriving;
        let other = |why| self.failed(MoveError::OtherJournal { url: at.url().to_owned(), why });
        let object = object_of(&there, JOURNAL).ok_or_else(|| other("the file is missing"))?;
        let journal = at.content(object)?;
        let ForeignJournal { state, key, is_trusted } =
            journal::held(&journal, &LoopDir(at.url().into()), &service.host.signing())
                .map_err(|error| self.failed(MoveError::Journal(error)))?;
        if !is_trusted && self.signer != Some(&key) {
            return Err(self.failed(MoveError::Signer { url: at.url().to_owned(), key }));
        }
        if state.spec.id != **id {
            return Err(other("it has another name"));
        }
        if state.tenure.departure.is_none() && !state.tenure.is_leased {
            return Err(other("the loop has not left"));
        }
        let departed = state.tenure.departure.as_ref().map(|departure| departure.head.clone());
        let head = at.held_head(&there.found.commit)?.or(departed);
        Ok(RemoteJournal { there, journal, state, head })
    }

    /// Puts the loop in its place: its journal, its branch, its worktree.
    fn lay_out(&mut self, held: RemoteJournal, claim: &Oid) -> Result<(), EngineError> {
        let RemoteJournal { there, journal, state, head } = held;
        let own = match &self.arriving.here {
            None => Vec::new(),
            Some(_) => {
                let path = self.arriving.dir.journal();
                read_regular(&path, moving::LARGEST).map_err(|source| disk("read", &path, source))?
            }
        };
        // This machine had the loop last: what only it has is true all the same.
        let is_whole = !self.is_again || own.len() > journal.len();
        let is_ahead = !own.is_empty() && own.starts_with(&journal) && is_whole;
        let is_left = state.tenure.departure.is_some();
        if !is_ahead || is_left {
            let Adapted { spec, agents, sandbox } = self.arriving.adapted(&state.spec)?;
            if let SandboxChange::Required(error) = sandbox {
                return Err(self.failed(MoveError::Sandbox(Box::new(error))));
            }
            let branch = spec.git.new_branch().unwrap_or_default().to_owned();
            let pins = Some(Box::new(self.arriving.pins(&spec, &branch)?));
            let ArrivalSteps { service, id, dir, at, .. } = &self.arriving;
            moving::record_worktree(dir, &spec.worktree)?;
            if !is_ahead {
                if !journal.starts_with(&own) {
                    let name = format!("journal.fenced-{}", self.fence);
                    moving::write(dir, Utf8Path::new(&name), &own)?;
                    service.host.signing().forget(dir);
                }
                moving::write(dir, Utf8Path::new(JOURNAL), &journal)?;
            }
            logs::lay_out(at, &there.files, (dir, &journal))?;
            self.restore(&spec, &branch, head.as_ref())?;
            let notes = there.files.iter().find(|(path, ..)| path == NOTES);
            if let Some((_, object, _)) = notes {
                worktree::restore_notes(&spec, &at.content(object)?)?;
            }
            let arrival = Arrival {
                from: at.url().to_owned(),
                fence: self.fence,
                claim: Some(claim.clone()),
                host: identity::own().host,
                project: spec.project.clone(),
                worktree: spec.worktree.clone(),
                branch: (!state.spec.git.checkout.is_own_worktree()).then(|| branch.clone()),
                working_dir: spec.working_dir.clone(),
                agents,
                pins,
                programs: tool_pins::of_gates(
                    &spec,
                    &repository::marked(&service.host.git_env(&spec), &spec),
                ),
                sandbox: spec.sandbox.clone(),
            };
            let placed = match self.arriving.here {
                None => moving::settle(&service.project, id)?,
                Some(_) => dir.clone(),
            };
            let mut journal: Journal = Journal::open_signed(placed.clone(), now(), service.host.signing())?;
            journal.push(Event::LoopMoved(Box::new(arrival)), now())?;
            journal.commit(Durability::Synced)?;
            self.arriving.dir = placed;
        }
        moving::forget_claims(&self.arriving.dir)?;
        // Only a convenience: what cannot be listed elsewhere still runs.
        let Service { host, project, .. } = self.arriving.service;
        let _ = projects::remember(&host.data_home, &project.root);
        Ok(())
    }

    /// The branch as the last machine had it, and a clean worktree of it.
    fn restore(&self, spec: &Spec, branch: &str, head: Option<&Oid>) -> Result<(), EngineError> {
        let ArrivalSteps { service, id, dir, repository, .. } = &self.arriving;
        let Some(head) = head.filter(|_| !branch.is_empty()) else { return Ok(()) };
        let _lock = match WorktreeLock::claim(&service.project, &spec.worktree, false)? {
            ClaimOutcome::Alone(lock) | ClaimOutcome::Beside(lock, _) => lock,
            ClaimOutcome::Refused(by) => {
                let worktree = spec.worktree.clone();
                return Err(EngineError::WorktreeTaken { worktree, by, needs_alone: true });
            }
        };
        let name = format!("refs/heads/{branch}");
        let moves = |name: &str, from: Option<&Oid>, to: &Oid| -> Result<(), EngineError> {
            match repository.move_reference(name, from, to, "refrain take-over")? {
                true => Ok(()),
                false => Err(refrain_git::GitError::ReferenceMoved(name.to_owned()).into()),
            }
        };
        let here = repository.branch_head(branch)?;
        if let Some(here) = &here
            && !repository.is_behind(here, head)?
        {
            moves(&format!("refs/refrain/fenced/{id}-{}", self.fence), None, here)?;
        }
        if spec.worktree.exists()
            && !refrain_git::is_half_made(&spec.worktree)
            && let Some(said) = repository.remove_saved_worktree(&spec.worktree)?
        {
            return Err(
                refrain_git::GitError::Failed { command: "git worktree remove".to_owned(), said }.into()
            );
        }
        moves(&name, here.as_ref(), head)?;
        // Hooks and filters of this machine, over content of the agent.
        let of = (&service.host, spec, dir);
        let confined = repository::open_in_sandbox(&service.project.root, &self.arriving.env(spec), of)?;
        Ok(confined.restore_worktree(&spec.worktree, branch, Some(head))?)
    }
}
