//! Moving a loop between machines over a git remote. Here it leaves; [`arrival`] takes it over. The journal records the
//! departure before the remote gets it, and the remote's reference is moved by compare-and-swap: at every moment one
//! machine at most can continue the loop.

mod arrival;
mod lease;
pub(crate) mod logs;
mod remote_copy;
mod remote_task;
mod removal;
mod submission;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{Arrival, Departure, Event};
use refrain_core::git::{Oid, OmittedPath, RepoPath};
use refrain_core::r#loop::{RemoteLoop, TakeOverRefusal};
use refrain_core::signature::PublicKey;
use refrain_core::{LoopId, LoopState, MachineEnd, Refusal, Spec};
use refrain_files::read_regular;
use refrain_git::{Bounds, JournalCommit, JournalRef, NewJournalCommit, Repository, Swap, TreeRequest};
use refrain_proc::identity;
use refrain_store::journal::{self, Durability};
use refrain_store::project::{mirrors, moving, worktree};
use refrain_store::{Journal, LoopDir};

use crate::git_steps::repository::{self, marked, pinned};
use crate::move_error::MoveError;
use crate::{EngineError, LoopLocation, LoopRequest, Service, now};

pub use arrival::{MovedHere, SandboxChange};
pub use lease::RemoteWitness;
pub use remote_copy::Reading;

/// The names of the files that go with a loop beside its logs.
const JOURNAL: &str = "journal.jsonl";
const NOTES: &str = "state.md";

/// A loop that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAway {
    pub url: String,
    /// The key that signed its departure.
    pub key: PublicKey,
}

/// How the loop is over for good, if it is.
fn final_end(dir: &LoopDir) -> Result<Option<&'static str>, EngineError> {
    let ended = journal::read(dir)?.state.ended.map(|ended| ended.end);
    Ok(ended.filter(|end| end.is_final()).map(|end| end.name()))
}

impl Service {
    /// Hands a stopped loop over to a remote: the name of a configured one, a path from `dir`, or an address. It may be
    /// repeated.
    /// Errors: [`EngineError`]; the loop is still here, except after [`MoveError::Unknown`].
    pub fn move_to(
        &self,
        id: &LoopId,
        (remote, dir): (&str, &Utf8Path),
        with_changes: bool,
    ) -> Result<MovedAway, EngineError> {
        let refused = |why| EngineError::Refused { id: id.clone(), what: LoopRequest::Move, why };
        let immovable = |why: &str| Err(refused(Refusal::Immovable(why.to_owned())));
        let own = match self.locate(id) {
            Ok(LoopLocation { dir, archived: false }) => dir,
            Ok(LoopLocation { dir, .. }) if let Some(end) = final_end(&dir)? => {
                return Err(refused(Refusal::Final(end)));
            }
            Ok(_) => return immovable("it is archived; refrain resume brings it back"),
            Err(EngineError::IsPlan(_)) => return immovable("it is a plan, and plans cannot be moved"),
            Err(error) => return Err(error),
        };
        let _lock = self.lock_of_ended::<LoopState>(id, &own)?;
        let signing = self.host.signing();
        let state = journal::read_believed::<LoopState>(&own, &signing)?;
        let failed = |why| EngineError::Move { id: id.clone(), why };
        if !state.is_at_rest() {
            return Err(EngineError::NotStopped(id.clone()));
        }
        state.check_movable().map_err(refused)?;
        let repository = self.repository_of(&state.spec)?;
        let at = repository.journal_ref(remote, dir, id)?;
        // An address has no name that an agent could give another meaning.
        let named = format!("remote.{}.", at.remote());
        let changed = repository.changed_pins()?.into_iter().find(|name| name.starts_with(&named));
        if let Some(changed) = changed {
            return Err(failed(MoveError::Configuration(changed)));
        }
        let there = self.fetch(&at, id)?;
        let (url, found) = (at.url().to_owned(), there.as_ref().map(|there| &there.found));
        let leaving = DepartureSteps { service: self, id, dir: &own, at: &at, repository: &repository };
        match &state.tenure.departure {
            Some(departure) if departure.to != url => {
                return Err(refused(Refusal::Moved { to: departure.to.clone() }));
            }
            Some(_) if state.tenure.is_leaving(&url, found) => leaving.publish(&state, None)?,
            Some(departure) => match found {
                Some(RemoteLoop { fence, holder: None, .. }) if *fence == departure.fence => {}
                Some(RemoteLoop { holder: Some(holder), .. }) => {
                    let why = TakeOverRefusal::Claimed(holder.clone());
                    return Err(failed(MoveError::NotTaken { url, why }));
                }
                Some(_) | None => return Err(failed(MoveError::Occupied(url))),
            },
            None if found.map(|found| &found.commit) != state.tenure.before(&url) => {
                return Err(failed(MoveError::Occupied(url)));
            }
            None => {
                let departure = leaving.departure(&state, with_changes)?;
                let mut journal: Journal = Journal::open_signed(own.clone(), now(), signing.clone())?;
                journal.push(Event::LoopLeft(Box::new(departure)), now())?;
                if signing.public_key().is_none() {
                    return Err(failed(MoveError::NoKey(signing.key_file())));
                }
                journal.commit(Durability::Synced)?;
                let left = journal.state().clone();
                leaving.publish(&left, Some(&mut journal))?;
            }
        }
        mirrors::discard(&self.project, id)?;
        let key = signing.public_key().ok_or_else(|| failed(MoveError::NoKey(signing.key_file())))?;
        Ok(MovedAway { url, key })
    }

    /// Refuses what is asked of a loop that was moved away.
    pub(crate) fn refuse_moved(
        &self,
        id: &LoopId,
        dir: &LoopDir,
        what: LoopRequest,
    ) -> Result<(), EngineError> {
        let refused = |why| EngineError::Refused { id: id.clone(), what, why };
        journal::read(dir)?.state.check_here().map_err(refused)
    }

    /// The repository of the project, as the loop's git uses it.
    fn repository_of(&self, spec: &Spec) -> Result<Repository, EngineError> {
        Ok(pinned(Repository::open(&self.project.root, &marked(&self.host.git_env(spec), spec))?, spec))
    }

    fn fetch(&self, at: &JournalRef<'_>, id: &LoopId) -> Result<Option<JournalCommit>, EngineError> {
        let url = || at.url().to_owned();
        at.fetch()?.map_err(|refusal| EngineError::Move {
            id: id.clone(),
            why: MoveError::Remote { url: url(), refusal },
        })
    }
}

/// What a worktree holds.
struct Content {
    tree: Oid,
    head: Option<Oid>,
    branch: Option<String>,
    /// Its files that no commit has.
    files: Vec<RepoPath>,
    left_out: Option<OmittedPath>,
}

/// The content of the loop's worktree, of which neither a file nor the index is changed.
fn content(service: &Service, spec: &Spec, dir: &LoopDir) -> Result<Content, EngineError> {
    let env = marked(&service.host.env, spec);
    let there = repository::open_in_sandbox(&spec.worktree, &env, (&service.host, spec, dir))?;
    let found = there.survey()?;
    if let Some(operation) = found.operation {
        return Err(EngineError::InProgress { operation, worktree: spec.worktree.clone() });
    }
    let (tree, left_out) = there.tree_and_rest(TreeRequest {
        base: &Default::default(),
        index: &index(dir),
        bounds: Bounds::of(&spec.git, None),
    })?;
    let (head, branch) = (found.head, found.branch);
    let files = found.dirty.into_iter().map(|it| it.path).collect();
    Ok(Content { tree, head, branch, files, left_out: left_out.into_iter().next() })
}

/// A private index for what is done once.
fn index(dir: &LoopDir) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{}.move", dir.index()))
}

/// A loop of this machine on its way to a remote.
struct DepartureSteps<'a> {
    service: &'a Service,
    id: &'a LoopId,
    dir: &'a LoopDir,
    at: &'a JournalRef<'a>,
    repository: &'a Repository,
}

impl DepartureSteps<'_> {
    fn failed(&self, why: MoveError) -> EngineError {
        EngineError::Move { id: self.id.clone(), why }
    }

    fn url(&self) -> String {
        self.at.url().to_owned()
    }

    /// The record with which the loop leaves, once its work is known to be fit for that.
    fn departure(&self, state: &LoopState, with_changes: bool) -> Result<Departure, EngineError> {
        let spec = &state.spec;
        let began_on = state.git.base.as_ref().and_then(|base| base.branch.as_deref());
        let content = match spec.worktree.exists() || !spec.git.checkout.is_own_worktree() {
            true => Some(content(self.service, spec, self.dir)?),
            false => None,
        };
        let head = match (spec.git.new_branch(), &content) {
            (None, Some(content)) if content.branch.as_deref() == began_on => content.head.clone(),
            (None, _) => None,
            (Some(branch), _) => self.repository.branch_head(branch)?,
        };
        let branch = spec.git.new_branch().or(began_on).unwrap_or("HEAD");
        let other_branch = || {
            let (branch, worktree) = (branch.to_owned(), spec.worktree.clone());
            self.failed(MoveError::OtherBranch { branch, worktree })
        };
        let Some(head) = head else {
            if spec.git.new_branch().is_none() {
                return Err(other_branch());
            }
            let (branch, last) = (branch.to_owned(), state.git.head.clone());
            return Err(refrain_git::GitError::BranchGone { branch, last }.into());
        };
        let mut work = None;
        if let Some(content) = content {
            if content.head.as_ref() != Some(&head) {
                return Err(other_branch());
            }
            let worktree = spec.worktree.clone();
            let was_dirty = |file: &&RepoPath| {
                let dirty = state.git.base.iter().flat_map(|base| &base.dirty);
                dirty.clone().any(|it| it.path == **file)
            };
            if let Some(file) = content.files.iter().find(was_dirty) {
                return Err(self.failed(MoveError::OlderChange { worktree, file: file.clone() }));
            }
            if !content.files.is_empty() && !with_changes {
                let files = content.files.len();
                return Err(self.failed(MoveError::Uncommitted { worktree, files }));
            }
            if let Some(left_out) = content.left_out {
                return Err(self.failed(MoveError::LeftOut(left_out)));
            }
            work = (!content.files.is_empty()).then_some(content.tree);
        }
        let rules = (spec.git.largest_file, spec.git.allow_secrets.as_slice());
        if let Some(secret) = self.at.exposed(&head, state.git.began.as_ref(), rules)? {
            return Err(self.failed(MoveError::Secret(secret)));
        }
        Ok(Departure { to: self.url(), fence: state.tenure.fence, head, work })
    }

    /// Gives the remote the loop, whose journal has its departure. If the remote refuses and `journal` is there to write,
    /// the loop stays here.
    fn publish(&self, state: &LoopState, journal: Option<&mut Journal>) -> Result<(), EngineError> {
        let Some(departure) = &state.tenure.departure else { return Ok(()) };
        let previous = state.tenure.before(&departure.to);
        let object = self.store(&self.dir.journal())?;
        let mut files = vec![(Utf8PathBuf::from(JOURNAL), object.clone())];
        for path in logs::listed(self.dir)? {
            let (name, content) = logs::carried(self.dir, &path, moving::LARGEST)
                .map_err(|source| disk("read", &path, source))?;
            files.push((name, self.at.store(&content)?));
        }
        if let Some(notes) = worktree::notes(&state.spec) {
            files.push((NOTES.into(), self.at.store(notes.as_bytes())?));
        }
        let proofs = [state.proof.as_ref(), state.baseline.as_ref()];
        let candidates = proofs.into_iter().flatten().map(|proof| &proof.candidate);
        let proving = state.proving().and_then(|proving| proving.candidate.as_ref());
        let of_candidates = candidates.chain(proving).filter_map(|candidate| candidate.tree.clone());
        let protected = state.git.base.as_ref().and_then(|base| base.protected.clone());
        let mut trees: Vec<Oid> = of_candidates.chain(protected).collect();
        trees.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        trees.dedup();
        // Git may have cleaned an older one up.
        let mut carried: Vec<Oid> = departure.work.iter().cloned().collect();
        for tree in trees {
            if self.repository.has_whole(&tree)? {
                carried.push(tree);
            }
        }
        let commit = self.at.commit(&NewJournalCommit {
            previous,
            head: &departure.head,
            files: &files,
            trees: &carried,
            fence: departure.fence,
            seq: state.seq,
            index: &index(self.dir),
        })?;
        let why = match self.at.swap(&commit, previous)? {
            Swap::Done => return Ok(()),
            Swap::Unknown(refusal) => {
                return Err(self.failed(MoveError::Unknown { url: self.url(), refusal }));
            }
            Swap::Refused(refusal) => MoveError::Remote { url: self.url(), refusal },
            Swap::Stale => {
                // An earlier push of this very journal may have arrived late.
                let there = self.service.fetch(self.at, self.id)?;
                let is_it = |there: JournalCommit| {
                    there.found.holder.is_none() && object_of(&there, JOURNAL) == Some(&object)
                };
                if there.is_some_and(is_it) {
                    return Ok(());
                }
                MoveError::Raced(self.url())
            }
        };
        if let Some(journal) = journal {
            // The reference was not moved, and no push of this call is on its way any more.
            journal.push(Event::LoopMoved(Box::new(stays(state, departure))), now())?;
            journal.commit(Durability::Synced)?;
        }
        Err(self.failed(why))
    }

    fn store(&self, path: &Utf8Path) -> Result<Oid, EngineError> {
        let content = read_regular(path, moving::LARGEST).map_err(|source| disk("read", path, source))?;
        Ok(self.at.store(&content)?)
    }
}

fn disk(action: &'static str, path: &Utf8Path, source: std::io::Error) -> EngineError {
    refrain_store::DiskError { action, path: path.to_owned(), source }.into()
}

fn object_of<'a>(commit: &'a JournalCommit, name: &str) -> Option<&'a Oid> {
    commit.files.iter().find(|(path, ..)| path == name).map(|(_, object, _)| object)
}

/// The record of a departure that did not take place.
fn stays(state: &LoopState, departure: &Departure) -> Arrival {
    let spec = &state.spec;
    Arrival {
        from: departure.to.clone(),
        fence: departure.fence + 1,
        claim: None,
        host: identity::own().host,
        project: spec.project.clone(),
        worktree: spec.worktree.clone(),
        branch: None,
        working_dir: spec.working_dir.clone(),
        agents: Default::default(),
        pins: spec.git.pins.clone(),
        programs: state.git.base.as_ref().map(|base| base.programs.clone()).unwrap_or_default(),
        sandbox: None,
    }
}
