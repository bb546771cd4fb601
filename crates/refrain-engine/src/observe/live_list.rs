//! A live list of loops and plans. For surfaces that stay open: it is listed again at each change, and while nothing
//! changes nothing is done.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_core::text::clip;
use refrain_store::catalog::{Brief, Detail, Facts};

use crate::observe::journal_watcher::JournalWatcher;
use crate::service::catalog::ListEntry;
use crate::{EngineError, Service};

/// How often it is checked that the runners of driven loops still live.
const ALIVE_CHECK: Duration = Duration::from_secs(2);

/// The longest goal of a row, in bytes.
const LONGEST_GOAL: usize = 200;

/// How many rows have their goals.
const MOST_GOALS: usize = 500;

/// A loop or a plan in the live list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRow {
    /// Without its status object and its iterations.
    pub brief: Brief,
    pub facts: Facts,
    /// The last line that its agent said; none if that was not looked at.
    pub said: Option<String>,
    /// The first line of its goal, cut; empty if that was not looked at.
    pub goal: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Seen(Box<ListRow>),
    /// One that cannot be read, or a project: its name, and why.
    Damaged(String, String),
}

impl Entry {
    fn of(row: ListEntry) -> Option<Self> {
        let brief = match row {
            ListEntry::Damaged(damaged) => return Some(Self::Damaged(damaged.id, damaged.reason)),
            ListEntry::Loop(brief) => *brief,
        };
        let facts = brief.facts()?;
        let by_loop = brief.iterations.iter().rev().filter_map(|it| it.said()).find(|said| !said.is_empty());
        let by_task = || facts.current.iter().rev().find_map(|task| task.preview.clone());
        let said = by_loop.map(str::to_owned).or_else(by_task);
        let brief = Brief { object: None, iterations: Vec::new(), ..brief };
        Some(Self::Seen(Box::new(ListRow { brief, facts, said, goal: Arc::default() })))
    }

    fn is_driven(&self) -> bool {
        matches!(self, Self::Seen(row) if !row.brief.has_stopped())
    }
}

/// Looks at all loops and plans of a project, or of all. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct LiveList {
    service: Service,
    everywhere: bool,
    lookout: Option<JournalWatcher>,
    last: Vec<Entry>,
    /// Of the loops and plans of each project, by when they were started.
    goals: HashMap<(Arc<str>, LoopId, Timestamp), Arc<str>>,
    /// How long listing took.
    took: Duration,
}

impl Service {
    /// Looks at all loops and plans of this project, or of all that Refrain has worked in.
    pub fn live_list(&self, everywhere: bool) -> LiveList {
        LiveList {
            service: self.clone(),
            everywhere,
            lookout: None,
            last: Vec::new(),
            goals: HashMap::new(),
            took: Duration::ZERO,
        }
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
    /// Waits until the list is another than at the last call, and returns it, last touched first.
    pub fn look(&mut self) -> Result<Vec<Entry>, EngineError> {
        loop {
            let is_first = self.lookout.is_none();
            match &mut self.lookout {
                Some(lookout) => {
                    // However much happens, a list of thousands takes no more than a tenth of a core.
                    park_timeout(9 * self.took);
                    let is_driven = self.last.iter().any(Entry::is_driven);
                    lookout.wait(is_driven.then_some(ALIVE_CHECK));
                }
                // Watches first, and looks then: what happens in between is seen twice, and not never.
                None => {
                    let (service, everywhere) = (self.service.clone(), self.everywhere);
                    let open = move || service.with_others(everywhere);
                    self.lookout = Some(JournalWatcher::new(open, false)?);
                }
            }
            let began = Instant::now();
            let rows = self.service.list_with(self.everywhere, Detail::Object)?;
            let mut entries: Vec<_> = rows.into_iter().filter_map(Entry::of).collect();
            self.add_goals(&mut entries);
            self.took = began.elapsed();
            if is_first || entries != self.last {
                self.last.clone_from(&entries);
                return Ok(entries);
            }
        }
    }

    /// Each is read once.
    fn add_goals(&mut self, entries: &mut [Entry]) {
        let mut services: HashMap<Arc<str>, Option<Service>> = HashMap::new();
        for entry in entries.iter_mut().take(MOST_GOALS) {
            let Entry::Seen(row) = entry else { continue };
            let Brief { project, id, .. } = &row.brief;
            let key = (Arc::clone(project), id.clone(), row.facts.started_at);
            if let Some(goal) = self.goals.get(&key) {
                row.goal = Arc::clone(goal);
                continue;
            }
            let open = || Service::open(Utf8Path::new(&**project), self.service.host.clone()).ok();
            let service = services.entry(Arc::clone(project)).or_insert_with(open);
            let Some(Ok(goal)) = service.as_ref().map(|service| service.goal(id)) else { continue };
            let first = goal.lines().map(str::trim).find(|line| !line.is_empty());
            row.goal = clip(first.unwrap_or_default(), LONGEST_GOAL).into();
            self.goals.insert(key, Arc::clone(&row.goal));
        }
    }
}
