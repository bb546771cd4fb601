//! A list of loops and plans that stays, and is told what changed of it. For surfaces that stay: what has stopped is
//! read once, what is driven only as far as it is new, and while nothing changes nothing is done.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::r#loop::LoopState;
use refrain_core::view::{Kind, StatusWord};
use refrain_core::{LoopId, Record};
use refrain_store::catalog::{Brief, Detail};
use refrain_store::journal::Tail;
use refrain_store::notice::Notice;
use refrain_store::{LoopDir, Project};
use serde::Deserialize;

use crate::catalog::Listed;
use crate::service::look;
use crate::{EngineError, Service, chain};

/// How often it is made sure that the runners of what is driven still live.
const ALIVE_CHECK: Duration = Duration::from_secs(2);
/// So many that have stopped are watched, those that were touched last: the system's watches are for others too.
const WATCHED: usize = 1000;

/// A loop, or a plan, in a list that stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Glimpse {
    /// Its id.
    pub id: LoopId,
    /// The project's folder.
    pub project: Arc<str>,
    /// What drives it.
    pub kind: Kind,
    /// Where it stands.
    pub status: StatusWord,
    /// Iterations begun; of a plan, those that all its tasks used.
    pub iteration: u32,
    /// The cap.
    pub max_iterations: Option<u32>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When the last event happened.
    pub updated_at: Timestamp,
    /// When it stopped.
    pub ended_at: Option<Timestamp>,
    /// What it cost, in US dollars, as far as that is known.
    pub cost_usd: Option<f64>,
    /// Each gate, and whether it passed last.
    pub gates: Vec<(String, bool)>,
    /// The last line that its agent said; none where that was not looked at.
    pub said: Option<String>,
    /// Why it stands where it stands.
    pub reason: String,
    /// What a person has to do for it to go on.
    pub needs: Option<String>,
}

/// One entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A loop, or a plan.
    Seen(Box<Glimpse>),
    /// One that cannot be read, or a project: its name, and why.
    Damaged(String, String),
}

/// What is new.
#[derive(Clone, Debug, PartialEq)]
pub enum RosterNews {
    /// The whole list, last touched first.
    All(Vec<Entry>),
    /// These changed.
    Some(Vec<Glimpse>),
}

/// What of a status object is in no [`Brief`].
#[derive(Deserialize)]
struct Rest {
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    usage: Cost,
    #[serde(default)]
    gates: Vec<Passed>,
    needs: Option<String>,
}

#[derive(Deserialize)]
struct Cost {
    cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct Passed {
    name: String,
    passed: bool,
}

impl Glimpse {
    /// Of a row that has its object; none where that cannot be understood.
    fn of(brief: Brief, said: Option<String>) -> Option<Self> {
        let rest: Rest = serde_json::from_str(brief.object.as_deref()?).ok()?;
        let Brief { id, kind, status, iteration, max_iterations, updated_at, project, reason, .. } = brief;
        let Rest { started_at, ended_at, usage, gates, needs } = rest;
        let gates = gates.into_iter().map(|gate| (gate.name, gate.passed)).collect();
        let cost_usd = usage.cost_usd;
        Some(Self {
            id,
            project,
            kind,
            status,
            iteration,
            max_iterations,
            started_at,
            updated_at,
            ended_at,
            cost_usd,
            gates,
            said,
            reason,
            needs,
        })
    }
}

/// Looks at all loops and plans of a project, or of all. Blocks; belongs on a thread of its own.
#[derive(Debug)]
pub struct Roster {
    service: Service,
    everywhere: bool,
    notice: Option<Notice>,
    /// The folders that loops come to, or go from.
    folders: Vec<Utf8PathBuf>,
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    service: Service,
    id: LoopId,
    dir: LoopDir,
    of: Of,
    /// It has not stopped, as far as is known.
    is_driven: bool,
    /// How it stood last.
    seen: Option<Glimpse>,
}

#[derive(Debug)]
enum Of {
    /// A loop, and how far its journal was read.
    Loop(Tail, Option<Box<LoopState>>),
    Plan,
    /// A folder in which there may be a loop in a moment.
    Nothing,
}

impl Service {
    /// Looks at all loops and plans of this project, or of all that Refrain has worked in.
    #[must_use]
    pub fn roster(&self, everywhere: bool) -> Roster {
        let service = self.clone();
        Roster { service, everywhere, notice: None, folders: Vec::new(), watched: Vec::new() }
    }
}

impl Roster {
    /// What is new since the last call: at first, and whenever loops came or went, all of it. Waits for that.
    ///
    /// # Errors
    /// [`EngineError`] where nothing can be listed, or no notices can be had.
    pub fn look(&mut self) -> Result<RosterNews, EngineError> {
        loop {
            let Some(notice) = &self.notice else { return self.look_at_all().map(RosterNews::All) };
            let is_driven = self.watched.iter().any(|watched| watched.is_driven);
            let woken = notice.wait_for(is_driven.then_some(ALIVE_CHECK));
            if woken.iter().any(|path| self.may_be_new(path)) {
                return self.look_at_all().map(RosterNews::All);
            }
            // Without a notice it is made sure that those that are driven still are.
            let is_due = |watched: &Watched| match woken.is_empty() {
                true => watched.is_driven,
                false => woken.contains(&watched.dir.journal()),
            };
            let due = self.watched.iter_mut().filter(|watched| is_due(watched));
            let seen: Vec<_> = due.filter_map(Watched::other).collect();
            if !seen.is_empty() {
                return Ok(RosterNews::Some(seen));
            }
        }
    }

    /// Whether a loop may have come, or gone, where something happened.
    fn may_be_new(&self, path: &Utf8Path) -> bool {
        let is_nothing = |it: &Watched| matches!(it.of, Of::Nothing) && it.dir.journal() == path;
        self.folders.iter().any(|folder| folder == path) || self.watched.iter().any(is_nothing)
    }

    /// Watches first, and looks then: what happens in between is seen twice, and not never.
    fn look_at_all(&mut self) -> Result<Vec<Entry>, EngineError> {
        let mut services = vec![self.service.clone()];
        if self.everywhere {
            let others = self.service.known_projects().into_iter();
            let others = others.filter_map(|root| Service::open(&root, self.service.host.clone()).ok());
            let new = |other: &Service| other.project.data != self.service.project.data;
            services.extend(others.filter(new));
        }
        let notice = Notice::new()?;
        let folders = |project: &Project| [project.loops(), project.data.join("plans"), project.archive()];
        let mut paths: Vec<_> = services.iter().flat_map(|service| folders(&service.project)).collect();
        // Where it is not there, its folder would be watched, which the catalog is written in.
        let projects = self.everywhere.then(|| self.service.host.data_home.join("projects"));
        paths.extend(projects.filter(|path| path.exists()));
        paths.iter().for_each(|path| notice.watch(path));
        self.folders = paths;
        let listed = self.service.list_with(self.everywhere, Detail::Object)?;
        self.watched = services.iter().flat_map(|service| watched(service, &listed)).collect();
        self.watched.sort_by_key(|watched| !watched.is_driven);
        self.watched.truncate(WATCHED.max(self.watched.iter().filter(|it| it.is_driven).count()));
        self.watched.iter().for_each(|watched| notice.watch(&watched.dir.journal()));
        self.notice = Some(notice);
        Ok(listed.into_iter().filter_map(|row| self.entry(row)).collect())
    }

    fn entry(&mut self, row: Listed) -> Option<Entry> {
        let brief = match row {
            Listed::Damaged { name, error } => return Some(Entry::Damaged(name, chain(&error))),
            Listed::Loop(brief) => brief,
        };
        // Of what is driven more is known than a list says; what stopped is as the list has it.
        let driven = |watched: &&mut Watched| {
            watched.is_driven
                && watched.id == brief.id
                && watched.service.project.root.as_str() == &*brief.project
        };
        let seen = self.watched.iter_mut().find(driven).and_then(Watched::glimpse);
        seen.or_else(|| Glimpse::of(*brief, None)).map(|seen| Entry::Seen(Box::new(seen)))
    }
}

/// Everything of a project that is to be watched, those first that were touched last.
fn watched(service: &Service, listed: &[Listed]) -> Vec<Watched> {
    let project = &service.project;
    let mut all: Vec<Watched> = listed
        .iter()
        .filter_map(|row| match row {
            Listed::Loop(brief) if &*brief.project == project.root.as_str() => Some(brief),
            Listed::Loop(_) | Listed::Damaged { .. } => None,
        })
        .map(|brief| {
            let (dir, of) = match brief.kind {
                Kind::Plan => (project.plan_dir(&brief.id), Of::Plan),
                Kind::Process | Kind::Session | Kind::Task => {
                    let dir = project.loop_dir(&brief.id);
                    let tail = Tail::new(&dir);
                    (dir, Of::Loop(tail, None))
                }
            };
            let is_driven = !brief.has_stopped();
            Watched { service: service.clone(), id: brief.id.clone(), dir, of, is_driven, seen: None }
        })
        .collect();
    // A folder whose journal is just being written.
    for folder in [project.loops(), project.data.join("plans")] {
        let Ok(entries) = folder.read_dir_utf8() else { continue };
        for entry in entries.flatten() {
            let dir = LoopDir(entry.path().to_owned());
            if let (Ok(id), false) = (entry.file_name().parse(), dir.exists()) {
                let (of, service) = (Of::Nothing, service.clone());
                all.push(Watched { service, id, dir, of, is_driven: false, seen: None });
            }
        }
    }
    all
}

impl Watched {
    /// How it stands now, where that is not how it stood.
    fn other(&mut self) -> Option<Glimpse> {
        let before = self.seen.take();
        let seen = self.glimpse()?;
        Some(seen).filter(|seen| Some(seen) != before.as_ref())
    }

    /// How it stands now; none where it cannot be read, or is gone.
    fn glimpse(&mut self) -> Option<Glimpse> {
        let seen = match &mut self.of {
            Of::Nothing => None,
            Of::Plan => {
                let status = self.service.plan_status(&self.id).ok()?;
                let said = status.current.iter().rev().find_map(|task| task.preview.clone());
                Glimpse::of(status.try_into().ok()?, said)
            }
            Of::Loop(tail, state) => {
                let records: Vec<Record> = tail.next(u64::MAX).ok()?;
                for record in &records {
                    match state {
                        None => *state = LoopState::begin(record).ok().map(Box::new),
                        // A damaged journal is told by whoever reads it whole.
                        Some(state) => drop(state.apply(record)),
                    }
                }
                let status = look(&self.dir, state.as_deref()?);
                let iterations = status.iterations.iter().flatten().rev();
                let said = iterations.filter_map(|it| it.said()).find(|said| !said.is_empty());
                let said = said.map(str::to_owned);
                Glimpse::of(status.try_into().ok()?, said)
            }
        }?;
        self.is_driven = !seen.status.has_stopped();
        self.seen = Some(seen.clone());
        Some(seen)
    }
}
