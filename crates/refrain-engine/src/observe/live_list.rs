//! A live list of loops and plans, and what changed in it. For surfaces that stay open: what has stopped is read once,
//! what is driven only as far as it is new, and while nothing changes nothing is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use refrain_core::r#loop::LoopState;
use refrain_core::text::clip;
use refrain_core::view::Kind;
use refrain_core::{LoopId, Record};
use refrain_store::catalog::{Brief, Detail, Facts};
use refrain_store::journal::{self, Tail};
use refrain_store::{LoopDir, Project};

use crate::driver::liveness::look;
use crate::observe::journal_watcher::{JournalWatcher, News};
use crate::service::catalog::ListEntry;
use crate::{EngineError, Service};

/// How often it is checked that the runners of driven loops still live.
const ALIVE_CHECK: Duration = Duration::from_secs(2);
/// The longest goal of a row, in bytes.
const LONGEST_GOAL: usize = 200;

/// A loop or a plan in the live list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRow {
    /// Without its status object and its iterations.
    pub brief: Brief,
    pub facts: Facts,
    /// The last line that its agent said; none if that was not looked at.
    pub said: Option<String>,
    /// The first line of its goal, cut; empty if it is unknown.
    pub goal: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Seen(Box<ListRow>),
    /// One that cannot be read, or a project: its name, and why.
    Damaged(String, String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum LiveListChange {
    /// The whole list, last touched first.
    All(Vec<Entry>),
    Some(Vec<ListRow>),
}

impl ListRow {
    /// Of a row that has its object; none if that cannot be parsed.
    fn of(brief: Brief, said: Option<String>, goal: Arc<str>) -> Option<Self> {
        let facts = brief.facts()?;
        Some(Self { brief: Brief { object: None, iterations: Vec::new(), ..brief }, facts, said, goal })
    }
}

/// Looks at all loops and plans of a project, or of all. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct LiveList {
    service: Service,
    everywhere: bool,
    lookout: Option<JournalWatcher>,
    known: BTreeMap<Utf8PathBuf, EntryOwner>,
    /// When it was last made sure that what is driven still is.
    checked: Instant,
}

#[derive(Debug)]
enum EntryOwner {
    Listed(Box<WatchedLoop>),
    /// The loop of a task is its plan's affair.
    OfTask,
}

#[derive(Debug)]
struct WatchedLoop {
    service: Arc<Service>,
    id: LoopId,
    dir: LoopDir,
    of: Of,
    goal: Arc<str>,
    /// It has not stopped, as far as is known.
    is_driven: bool,
    seen: Option<ListRow>,
}

#[derive(Debug)]
enum Of {
    /// A loop, and how far its journal was read.
    Loop(Tail, Option<Box<LoopState>>),
    Plan,
}

impl Service {
    /// Looks at all loops and plans of this project, or of all that Refrain has worked in.
    pub fn live_list(&self, everywhere: bool) -> LiveList {
        let service = self.clone();
        LiveList { service, everywhere, lookout: None, known: BTreeMap::new(), checked: Instant::now() }
    }

    /// This project, and with it all that Refrain has worked in if that is asked.
    fn with_others(&self, everywhere: bool) -> Vec<Self> {
        let mut services = vec![self.clone()];
        for root in if everywhere { self.known_projects() } else { Vec::new() } {
            if let Ok(other) = Self::open(&root, self.host.clone())
                && services.iter().all(|known| known.project.data != other.project.data)
            {
                services.push(other);
            }
        }
        services
    }
}

impl LiveList {
    /// Waits for changes since the last call, and returns them: at first, and whenever loops came or went, the whole
    /// list.
    pub fn look(&mut self) -> Result<LiveListChange, EngineError> {
        loop {
            let is_driven = self.listed().any(|watched| watched.is_driven);
            let Some(lookout) = &mut self.lookout else {
                // Watches first, and looks then: what happens in between is seen twice, and not never.
                let (service, everywhere) = (self.service.clone(), self.everywhere);
                self.lookout = Some(JournalWatcher::new(move || service.with_others(everywhere), false)?);
                return self.look_at_all().map(LiveListChange::All);
            };
            let patience = is_driven.then(|| ALIVE_CHECK.saturating_sub(self.checked.elapsed()));
            let mut due = BTreeSet::new();
            for news in lookout.wait(patience) {
                match news {
                    News::Recorded(whose, _) if self.is_of_task(&whose.dir) => {}
                    News::Recorded(whose, _) if self.known.contains_key(&whose.dir.0) => {
                        due.insert(whose.dir.0);
                    }
                    News::Recorded(..) | News::Listed => return self.look_at_all().map(LiveListChange::All),
                    News::Printed(..) => {}
                }
            }
            // Without a notice it is made sure that those that are driven still are.
            if self.checked.elapsed() >= ALIVE_CHECK {
                due.extend(
                    self.listed().filter(|watched| watched.is_driven).map(|watched| watched.dir.0.clone()),
                );
                self.checked = Instant::now();
            }
            let other = |folder: &Utf8PathBuf| match self.known.get_mut(folder)? {
                EntryOwner::Listed(watched) => watched.other(),
                EntryOwner::OfTask => None,
            };
            let seen: Vec<_> = due.iter().filter_map(other).collect();
            if !seen.is_empty() {
                return Ok(LiveListChange::Some(seen));
            }
        }
    }

    fn listed(&self) -> impl Iterator<Item = &WatchedLoop> {
        self.known.values().filter_map(|known| match known {
            EntryOwner::Listed(watched) => Some(watched.as_ref()),
            EntryOwner::OfTask => None,
        })
    }

    /// Whether it is a loop that is on no list.
    fn is_of_task(&mut self, dir: &LoopDir) -> bool {
        match self.known.get(&dir.0) {
            Some(known) => matches!(known, EntryOwner::OfTask),
            None => {
                let is_of_task =
                    journal::read(dir).is_ok_and(|found: journal::Snapshot| found.state.spec.task.is_some());
                if is_of_task {
                    self.known.insert(dir.0.clone(), EntryOwner::OfTask);
                }
                is_of_task
            }
        }
    }

    fn look_at_all(&mut self) -> Result<Vec<Entry>, EngineError> {
        let listed = self.service.list_with(self.everywhere, Detail::Object)?;
        let services = self.lookout.as_ref().map(JournalWatcher::services).unwrap_or_default();
        let services: BTreeMap<_, _> =
            services.iter().map(|service| (service.project.root.as_str(), service)).collect();
        let (mut known, mut entries) = (BTreeMap::new(), Vec::with_capacity(listed.len()));
        for row in listed {
            let brief = match row {
                ListEntry::Damaged(damaged) => {
                    entries.push(Entry::Damaged(damaged.id, damaged.reason));
                    continue;
                }
                ListEntry::Loop(brief) => brief,
            };
            let (mut seen, mut goal) = (None, Arc::default());
            if let Some(service) = services.get(&*brief.project) {
                let mut watched = WatchedLoop::new(service, &brief);
                goal = Arc::clone(&watched.goal);
                // A driven loop's own row is newer than the list's; a stopped one's row is in the list.
                seen = if watched.is_driven { watched.glimpse() } else { None };
                known.insert(watched.dir.0.clone(), EntryOwner::Listed(Box::new(watched)));
            }
            let seen = seen.or_else(|| ListRow::of(*brief, None, goal));
            entries.extend(seen.map(|seen| Entry::Seen(Box::new(seen))));
        }
        self.known = known;
        Ok(entries)
    }
}

impl WatchedLoop {
    fn new(service: &Arc<Service>, brief: &Brief) -> Self {
        let project: &Project = &service.project;
        let (dir, of) = match brief.kind {
            Kind::Plan => (project.plan_dir(&brief.id), Of::Plan),
            Kind::Process | Kind::Session | Kind::Task => {
                let dir = project.loop_dir(&brief.id);
                let tail = Tail::new(&dir);
                (dir, Of::Loop(tail, None))
            }
        };
        let goal = service.goal_of(brief).unwrap_or_default();
        let first = goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let goal = clip(first, LONGEST_GOAL).into();
        let is_driven = !brief.has_stopped();
        Self { service: Arc::clone(service), id: brief.id.clone(), dir, of, goal, is_driven, seen: None }
    }

    fn other(&mut self) -> Option<ListRow> {
        let before = self.seen.take();
        let seen = self.glimpse()?;
        Some(seen).filter(|seen| Some(seen) != before.as_ref())
    }

    /// Its row; none if it cannot be read, or is gone.
    fn glimpse(&mut self) -> Option<ListRow> {
        let seen = match &mut self.of {
            Of::Plan => {
                let status = self.service.plan_status(&self.id).ok()?;
                let said = status.current.iter().rev().find_map(|task| task.preview.clone());
                ListRow::of(status.try_into().ok()?, said, Arc::clone(&self.goal))
            }
            Of::Loop(tail, state) => {
                let records: Vec<Record> = tail.next(u64::MAX).ok()?;
                for record in &records {
                    match state {
                        // A damaged journal is reported by a full read of it.
                        Some(state) if record.seq > 1 => drop(state.apply(record)),
                        // The first again: it was written back.
                        Some(_) | None => *state = LoopState::begin(record).ok().map(Box::new),
                    }
                }
                let status = look(&self.dir, state.as_deref()?);
                let iterations = status.iterations.iter().flatten().rev();
                let said = iterations.filter_map(|it| it.said()).find(|said| !said.is_empty());
                let said = said.map(str::to_owned);
                ListRow::of(status.try_into().ok()?, said, Arc::clone(&self.goal))
            }
        }?;
        self.is_driven = !seen.brief.has_stopped();
        self.seen = Some(seen.clone());
        Some(seen)
    }
}
