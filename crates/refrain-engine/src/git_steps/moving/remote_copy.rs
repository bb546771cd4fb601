//! Reading a loop that is on another machine, as a git remote has it. What the remote has is copied, and the verbs that read
//! a loop read the copy. Nothing of the copy is executed, and no path in its journal is used.

use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use refrain_agents::environment;
use refrain_core::agent::Usd;
use refrain_core::budget::{CapUsage, Caps, Ledger};
use refrain_core::git::Oid;
use refrain_core::r#loop::TakeOverRefusal;
use refrain_core::view::{RemoteCopy, Status};
use refrain_core::{LoopId, LoopState, Spec};
use refrain_files::read_regular;
use refrain_git::{JournalCommit, JournalRef, Refusal, Repository};
use refrain_store::journal;
use refrain_store::project::mirrors::{self, CopyNote};
use refrain_store::project::{moving, projects};
use refrain_store::{LoopDir, Project, RunnerLock};

use super::{JOURNAL, disk, logs, object_of};
use crate::git_steps::repository::pinned;
use crate::move_error::MoveError;
use crate::service::catalog::sorted;
use crate::{EngineError, ListEntry, Service, chain, now};

/// How long a remote may take to say where a reference is: a user waits for it.
pub(super) const LOOKING: Duration = Duration::from_secs(5);
/// How long it may take to give away what is new.
pub(super) const BRINGING: Duration = Duration::from_secs(30);
/// How many loops of a remote are listed.
const MOST_LISTED: usize = 500;

/// What the verbs that read a loop use.
#[derive(Debug)]
pub struct Reading {
    /// Of a copy, it has no other loop.
    pub service: Service,
    /// Why the copy is not as new as it could be, or why there is none of a loop that left.
    pub failure: Option<EngineError>,
}

impl Reading {
    /// Where the copy comes from; none of a loop of this machine.
    pub fn copy(&self) -> Option<&RemoteCopy> {
        self.service.copy.as_ref()
    }
}

impl Service {
    /// A loop or plan of this machine, to be read; or a copy of the loop, if it left. The remote is asked for a few seconds;
    /// if it does not answer, the last copy is used, or the loop as it left.
    pub fn reading(&self, id: &LoopId) -> Result<Reading, EngineError> {
        let own = self.project.loop_dir(id);
        let here = |failure| Ok(Reading { service: self.clone(), failure });
        if !journal::has_left(&own) {
            return here(None);
        }
        let state = match journal::read_believed::<LoopState>(&own, &self.host.signing()) {
            Ok(state) => state,
            // The verb says what is damaged.
            Err(_) => return here(None),
        };
        let Some(departure) = &state.tenure.departure else { return here(None) };
        if let Some(last) = self.last_of_all(id, &departure.to) {
            return Ok(Reading { service: last, failure: None });
        }
        let bytes = read_regular(&own.journal(), moving::LARGEST)
            .map_err(|source| disk("read", &own.journal(), source))?;
        let renewed = self.repository_of(&state.spec).and_then(|repository| {
            let at = repository.journal_ref(&departure.to, &self.project.root, id)?;
            self.renew(&at.within(LOOKING, BRINGING), None, Some(&bytes))
        });
        let copy = self.copied(id, &departure.to, Some(&bytes));
        Ok(Reading { service: copy.unwrap_or_else(|| self.clone()), failure: renewed.err() })
    }

    /// A copy of the loop as a remote has it, which [`Service::move_to`] names in the same way.
    /// Errors: [`EngineError`] if the remote does not have it, or has never answered.
    pub fn reading_at(&self, id: &LoopId, (remote, dir): (&str, &Utf8Path)) -> Result<Reading, EngineError> {
        let repository = self.repository_of_person()?;
        self.reading_of(&repository.journal_ref(remote, dir, id)?.within(LOOKING, BRINGING), None)
    }

    /// The same, at a commit if it is known which one the remote has.
    fn reading_of(&self, at: &JournalRef<'_>, commit: Option<Oid>) -> Result<Reading, EngineError> {
        let (id, renewed) = (at.id(), self.renew(at, commit, None));
        match (renewed, self.copied(id, at.url(), None)) {
            (Ok(()), Some(service)) => Ok(Reading { service, failure: None }),
            (Err(failure), Some(service)) if is_unreachable(&failure) => {
                Ok(Reading { service, failure: Some(failure) })
            }
            (Err(failure), _) => Err(failure),
            (Ok(()), None) => Err(self.uncopied(id, MoveError::Raced(at.url().to_owned()))),
        }
    }

    /// The loops that a remote has, last touched first, each as a copy.
    pub fn list_at(&self, (remote, dir): (&str, &Utf8Path)) -> Result<Vec<ListEntry>, EngineError> {
        let repository = self.repository_of_person()?;
        let (url, listed) = repository.loops_at(remote, dir, LOOKING)?;
        let loops = match listed {
            Ok(loops) => loops,
            Err(refusal) => return Err(EngineError::Remote { url, refusal }),
        };
        let row = |(id, commit): (LoopId, Oid)| {
            let status = repository.journal_ref(remote, dir, &id).map_err(EngineError::from).and_then(|at| {
                self.reading_of(&at.within(LOOKING, BRINGING), Some(commit))?.service.status(&id)
            });
            match status.map(TryInto::try_into) {
                Ok(Ok(brief)) => Ok(ListEntry::Loop(Box::new(brief))),
                Ok(Err(error)) => Err(EngineError::Catalog(error)),
                Err(error) => Ok(self.damaged(id.as_str(), None, chain(&error))),
            }
        };
        let rows = loops.into_iter().take(MOST_LISTED).map(row).collect::<Result<_, _>>()?;
        Ok(sorted(rows))
    }

    /// The last copy of a loop that left, for a list: no remote is asked.
    pub(crate) fn last_copy(&self, state: &LoopState) -> Option<Status> {
        self.service_of_copy(state)?.status(&state.spec.id).ok()
    }

    /// The same as its state.
    pub(crate) fn copied_state(&self, state: &LoopState) -> Option<LoopState> {
        let service = self.service_of_copy(state)?;
        Some(service.state_and_status(&service.locate(&state.spec.id).ok()?).ok()?.0)
    }

    fn service_of_copy(&self, state: &LoopState) -> Option<Self> {
        let departure = state.tenure.departure.as_ref()?;
        let id = &state.spec.id;
        let own = read_regular(&self.project.loop_dir(id).journal(), moving::LARGEST).ok()?;
        self.copied(id, &departure.to, Some(&own))
    }

    /// How caps stand that machines share, by the copies here of loops at this git remote, or at all: a day is one in UTC, and what
    /// is reserved is unknown.
    pub(crate) fn caps_elsewhere(&self, caps: &Caps, remote: Option<&str>) -> Vec<CapUsage> {
        if caps.is_none() {
            return Vec::new();
        }
        let own = if self.copy.is_some() { self.project.clone() } else { mirrors::project(&self.project) };
        let mut all = vec![own];
        for root in projects::listed(&self.host.data_home) {
            all.extend(Project::find(&root).ok().map(|project| mirrors::project(&project)));
        }
        all.sort_by(|a, b| a.data.cmp(&b.data));
        all.dedup_by(|a, b| a.data == b.data);
        let ledger = Ledger::of_runs(all.iter().flat_map(|project| runs_in(project, remote)));
        ledger.standings(caps, self.project.root.as_str(), now().to_zoned(TimeZone::UTC).date())
    }

    /// The repository, whose git runs what was pinned for the loop. The pins of another machine say nothing about this one.
    pub(crate) fn pinned(&self, repository: Repository, spec: &Spec) -> Repository {
        if self.copy.is_some() { repository } else { pinned(repository, spec) }
    }

    pub(super) fn repository_of_person(&self) -> Result<Repository, EngineError> {
        let env = environment::of_person(self.host.env.iter().cloned());
        let repository = Repository::open(&self.project.root, &env)?;
        repository.check_version()?;
        Ok(repository)
    }

    fn uncopied(&self, id: &LoopId, why: MoveError) -> EngineError {
        EngineError::Copy { id: id.clone(), why }
    }

    /// The service of the last copy from this remote, if it continues the journal that is here. A loop with which nothing
    /// has happened since it left is read from the files that are here.
    pub(super) fn copied(&self, id: &LoopId, url: &str, here: Option<&[u8]>) -> Option<Self> {
        let project = mirrors::project(&self.project);
        let dir = project.loop_dir(id);
        let CopyNote { copy, .. } = mirrors::note(&dir).filter(|note| note.copy.remote == url)?;
        let has_journal = match here {
            Some(here) => read_regular(&dir.journal(), moving::LARGEST).is_ok_and(|it| it.starts_with(here)),
            None => true,
        };
        let copy = RemoteCopy { is_here: self.project.loop_dir(id).exists(), ..copy };
        let project = if has_journal { project } else { self.project.clone() };
        Some(Self { project, copy: Some(copy), ..self.clone() })
    }

    /// The service of the last copy from this remote, if the remote has the loop no longer.
    fn last_of_all(&self, id: &LoopId, url: &str) -> Option<Self> {
        let note = mirrors::note(&mirrors::project(&self.project).loop_dir(id))?;
        if note.is_last { self.copied(id, url, None) } else { None }
    }

    /// Brings the copy of a loop up to date. `here` is its journal on this machine, which the remote's has to continue.
    pub(super) fn renew(
        &self,
        at: &JournalRef<'_>,
        commit: Option<Oid>,
        here: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        let (id, url) = (at.id(), at.url().to_owned());
        let failed = |why| self.uncopied(id, why);
        let there = match commit {
            Some(commit) => at.fetch_commit(commit)?.map(Some),
            None => at.fetch()?,
        };
        let there = there
            .map_err(|refusal| failed(MoveError::Remote { url: url.clone(), refusal }))?
            .ok_or_else(|| failed(MoveError::NotTaken { url: url.clone(), why: TakeOverRefusal::Missing }))?;
        let dir = mirrors::project(&self.project).loop_dir(id);
        // Else another command is bringing it up to date.
        let Some(_lock) = RunnerLock::claim(&dir)? else { return Ok(()) };
        let last = mirrors::note(&dir).filter(|note| note.copy.remote == url);
        let is_whole = here.is_some() || dir.exists();
        if last.is_none_or(|last| last.commit != there.found.commit || !is_whole) {
            self.copy_files(at, &there, &dir, here)?;
        }
        let holder = there.found.holder;
        let copy = RemoteCopy { remote: url, at: now(), holder, is_here: false };
        Ok(mirrors::write_note(&dir, &CopyNote { copy, commit: there.found.commit, is_last: false })?)
    }

    fn copy_files(
        &self,
        at: &JournalRef<'_>,
        there: &JournalCommit,
        dir: &LoopDir,
        here: Option<&[u8]>,
    ) -> Result<(), EngineError> {
        let other = |why| self.uncopied(at.id(), MoveError::OtherJournal { url: at.url().to_owned(), why });
        let object = object_of(there, JOURNAL).ok_or_else(|| other("the file is missing"))?;
        let journal = at.content(object)?;
        let checked = journal::check_copy(&journal, &LoopDir(at.url().into()));
        let state = checked.map_err(|error| self.uncopied(at.id(), MoveError::Journal(error)))?;
        if state.spec.id != *at.id() {
            return Err(other("it has another name"));
        }
        if here.is_some_and(|here| !journal.starts_with(here)) {
            return Err(other("it does not continue the journal that is here"));
        }
        mirrors::empty(dir)?;
        if here == Some(&journal) {
            return Ok(());
        }
        logs::lay_out(at, &there.files, (dir, &journal))?;
        moving::write(dir, Utf8Path::new(JOURNAL), &journal)?;
        Ok(())
    }
}

/// The runs of the loops that are copied here, each with its project, its day and what it cost.
fn runs_in(copies: &Project, remote: Option<&str>) -> Vec<(String, Date, Usd)> {
    let is_there =
        |dir: &LoopDir| mirrors::note(dir).is_some_and(|note| remote.is_none_or(|it| it == note.copy.remote));
    let dirs = copies.loop_dirs().unwrap_or_default().into_iter().filter(is_there);
    let states = dirs.filter_map(|dir| Some(journal::read(&dir).ok()?.state));
    let runs = states.flat_map(|state| {
        let worked = state.attempts.iter().map(|attempt| (attempt.started_at, attempt.usage.cost));
        let judged = state.judged.iter().map(|judged| (judged.at, judged.usage.cost));
        worked.chain(judged).collect::<Vec<_>>()
    });
    let day = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
    runs.filter_map(|(at, cost)| Some((copies.root.to_string(), day(at), cost?))).collect()
}

fn is_unreachable(error: &EngineError) -> bool {
    matches!(error, EngineError::Copy { why: MoveError::Remote { refusal, .. }, .. }
        if matches!(refusal, Refusal::Unreachable { .. } | Refusal::NoPermission { .. } | Refusal::NoRemote { .. }))
}
