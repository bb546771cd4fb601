//! What can be seen of many loops at once: lists and sums, of one project or of all. The catalog remembers the loops
//! that have stopped; the states of the others are read anew.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::agent::Usd;
use refrain_core::view::usage::Tally;
use refrain_core::view::{DamagedRow, Kind, Status};
use refrain_core::{LoopId, LoopState};
use refrain_store::catalog::{self, Brief, Catalog, CatalogEntry, CatalogError, Detail, LoopFolder, Stamp};
use refrain_store::project::{archive, projects};
use refrain_store::{JournalError, LoopDir, Project};

use crate::driver::liveness::{alive, status};
use crate::{ByKind, EngineError, Service, UsageScope, chain};

#[derive(Debug)]
pub enum ListEntry {
    Loop(Box<Brief>),
    /// A loop or a plan whose journal cannot be read, or a project: named, so that it is not just missing.
    Damaged(Box<DamagedRow>),
}

/// The loops and plans of a project, and what their attempts cost of late.
#[derive(Debug)]
pub struct CostedList {
    pub rows: Vec<ListEntry>,
    /// With whether it was more; none if nothing is known.
    pub cost: Option<(Usd, bool)>,
}

impl Service {
    /// Every loop and plan of the project, but for the loops of tasks, last touched first.
    pub fn list(&self) -> Result<Vec<ListEntry>, EngineError> {
        self.list_with(false, Detail::Line)
    }

    /// Every loop and plan of the project, or of all that Refrain has worked in and this one, last touched first. The
    /// loops of tasks are their plan's affair, and not among them.
    pub fn list_with(&self, everywhere: bool, detail: Detail) -> Result<Vec<ListEntry>, EngineError> {
        let work = |catalog: &mut Catalog| {
            if !everywhere {
                return self.listed(catalog.update(
                    &self.project,
                    LoopFolder::Loops,
                    detail,
                    &self.host.signing(),
                )?);
            }
            let mut all = Vec::new();
            for project in self.all_projects(catalog)? {
                let found = unless_unreadable(
                    &project,
                    catalog.update(&project, LoopFolder::Loops, detail, &self.host.signing()),
                )?;
                all.extend(Self { project, ..self.clone() }.listed(found)?);
            }
            Ok(all)
        };
        Ok(sorted(catalog::with_known(&self.host.data_home, Some(&self.known.journals), work)?))
    }

    /// The loops and plans of each of these projects, in no order, by one look into the catalog.
    /// Errors: [`EngineError`] if nothing can be listed; a project that cannot be read is named among its rows.
    pub fn list_each(services: &[Self], detail: Detail) -> Result<Vec<Vec<ListEntry>>, EngineError> {
        let Some(first) = services.first() else { return Ok(Vec::new()) };
        let work = |catalog: &mut Catalog| {
            let listed = |service: &Self| {
                let found =
                    catalog.update(&service.project, LoopFolder::Loops, detail, &service.host.signing());
                service.listed(unless_unreadable(&service.project, found)?)
            };
            services.iter().map(listed).collect()
        };
        Ok(catalog::with(&first.host.data_home, work)?)
    }

    /// The same in a line each, with what the attempts of each project cost that ended `since` then, and whether it
    /// was more; archived ones count.
    pub fn list_each_with_cost(services: &[Self], since: Timestamp) -> Result<Vec<CostedList>, EngineError> {
        let Some(first) = services.first() else { return Ok(Vec::new()) };
        let work = |catalog: &mut Catalog| {
            let listed = |service: &Self| {
                let (project, signing) = (&service.project, service.host.signing());
                let mut on = |shelf| {
                    unless_unreadable(project, catalog.update(project, shelf, Detail::Line, &signing))
                };
                let (found, archived) = (on(LoopFolder::Loops)?, on(LoopFolder::Archive)?);
                let cost = catalog.cost(project, found.iter().chain(&archived), since)?;
                Ok(CostedList { rows: service.listed(found)?, cost })
            };
            services.iter().map(listed).collect()
        };
        Ok(catalog::with_known(&first.host.data_home, Some(&first.known.journals), work)?)
    }

    /// Adds the status objects to rows that were listed without: a page shows few of thousands.
    pub fn add_objects(rows: &mut [(&Self, &mut Brief)]) -> Result<(), EngineError> {
        let Some((first, _)) = rows.first() else { return Ok(()) };
        let data_home = first.host.data_home.clone();
        catalog::with(&data_home, |catalog| {
            for (service, brief) in rows.iter_mut().filter(|(_, brief)| brief.object.is_none()) {
                brief.object = catalog.object(&service.project, &brief.id)?;
            }
            Ok(())
        })?;
        for (service, brief) in rows.iter_mut().filter(|(_, brief)| brief.object.is_none()) {
            // The catalog lost it in between, or cannot be used.
            if let Ok(ByKind::Loop(status)) = service.standing(&brief.id) {
                brief.object = Brief::try_from(status).ok().and_then(|brief| brief.object);
            }
        }
        Ok(())
    }

    /// Every archived loop and plan of the project, but for the loops of tasks, last touched first.
    pub fn list_archived(&self, detail: Detail) -> Result<Vec<ListEntry>, EngineError> {
        let work = |catalog: &mut Catalog| {
            let signing = self.host.signing();
            self.rows(catalog.update(&self.project, LoopFolder::Archive, detail, &signing)?)
        };
        let mut all = catalog::with(&self.host.data_home, work)?;
        for (id, dirs) in archive::by_id(&self.project.plan_archive()) {
            all.extend(dirs.into_iter().filter_map(|dir| self.archived_plan_row(&id, dir)));
        }
        all.retain(|row| plan_of(row).is_none());
        Ok(sorted(all))
    }

    /// The names of the folders of those of these archived loops and plans that their ids do not reach, by their places in the list.
    pub fn hidden_folders(&self, rows: &[ListEntry]) -> HashMap<usize, String> {
        let [loops, plans] =
            [self.project.archive(), self.project.plan_archive()].map(|archive| archive::by_id(&archive));
        let hidden = |(place, row): (usize, &ListEntry)| {
            let ListEntry::Loop(brief) = row else { return None };
            let is_plan = brief.kind == Kind::Plan;
            let folders = if is_plan { &plans } else { &loops };
            let (dirs, stamp) = (folders.get(&brief.id)?, brief.stamp?);
            let is_taken = self.project.loop_dir(&brief.id).exists()
                || self.project.plan_dir(&brief.id).exists()
                || is_plan && loops.contains_key(&brief.id);
            if !is_taken && dirs.len() == 1 {
                return None;
            }
            let own = dirs.iter().find(|dir| Stamp::at(&dir.journal()) == Some(stamp))?;
            (is_taken || dirs.last() != Some(own)).then(|| Some((place, own.0.file_name()?.to_owned())))?
        };
        rows.iter().enumerate().filter_map(hidden).collect()
    }

    /// The rows of what was found of the project, and those of its plans; the loops of tasks are none.
    fn listed(&self, found: Vec<CatalogEntry>) -> Result<Vec<ListEntry>, CatalogError> {
        let mut all = self.rows(found)?;
        all.extend(self.plan_rows(&self.plans().unwrap_or_default()));
        all.retain(|row| plan_of(row).is_none());
        Ok(all)
    }

    /// The loops of a plan's tasks, last touched first.
    pub fn list_tasks(&self, plan: &LoopId, detail: Detail) -> Result<Vec<ListEntry>, EngineError> {
        self.locate_plan(plan)?;
        let work = |catalog: &mut Catalog| {
            self.rows(catalog.update(&self.project, LoopFolder::Loops, detail, &self.host.signing())?)
        };
        let mut all = catalog::with(&self.host.data_home, work)?;
        all.retain(|row| plan_of(row) == Some(plan));
        Ok(sorted(all))
    }

    /// The loops of all projects that have not stopped, with the worktree that the agent of each writes.
    pub fn open_worktrees(&self) -> Result<Vec<(LoopId, Utf8PathBuf)>, EngineError> {
        let work = |catalog: &mut Catalog| {
            let mut all = Vec::new();
            for project in self.all_projects(catalog)? {
                let (shelf, signing) = (LoopFolder::Loops, self.host.signing());
                let found =
                    unless_unreadable(&project, catalog.update(&project, shelf, Detail::Line, &signing))?;
                all.extend(found.into_iter().filter_map(|entry| match entry {
                    CatalogEntry::Open { state, .. } => {
                        Some((state.spec.id.clone(), state.spec.worktree.clone()))
                    }
                    CatalogEntry::Stopped(_) | CatalogEntry::Damaged { .. } => None,
                }));
            }
            Ok(all)
        };
        Ok(catalog::with(&self.host.data_home, work)?)
    }

    /// These plans of this project, in the form of a list.
    fn plan_rows(&self, plans: &[LoopId]) -> Vec<ListEntry> {
        plans.iter().filter_map(|id| self.plan_row(id, None)).collect()
    }

    fn plan_row(&self, id: &LoopId, stamp: Option<Stamp>) -> Option<ListEntry> {
        match self.plan_status(id) {
            Ok(status) => {
                let brief: Brief = status.try_into().ok()?;
                Some(ListEntry::Loop(Box::new(Brief { stamp, ..brief })))
            }
            Err(EngineError::Journal(error)) => {
                Some(self.damaged(id.as_str(), Some(Kind::Plan), chain(&error)))
            }
            // It went away in between.
            Err(_) => None,
        }
    }

    fn archived_plan_row(&self, id: &LoopId, dir: LoopDir) -> Option<ListEntry> {
        let stamp = Stamp::at(&dir.journal());
        if matches!(self.find(id), Ok(ByKind::Plan(found)) if found == dir) {
            return self.plan_row(id, stamp);
        }
        Self { archived: BTreeMap::from([(id.clone(), dir)]), ..self.clone() }.plan_row(id, stamp)
    }

    /// Adds up what the attempts of this project or of all used that ended `since` then, and how its loops stopped;
    /// archived ones count. Returns, with the sums, what could not be read and is not in them.
    pub(crate) fn usage(
        &self,
        of: UsageScope<'_>,
        since: Option<Timestamp>,
        tally: impl Fn() -> Tally,
    ) -> Result<(Tally, Vec<ListEntry>), EngineError> {
        let work = |catalog: &mut Catalog| {
            let (mut sums, mut unread) = (tally(), Vec::new());
            let projects = match of {
                UsageScope::Project => vec![self.project.clone()],
                UsageScope::All => self.all_projects(catalog)?,
                UsageScope::Of(services) => services.iter().map(|it| it.project.clone()).collect(),
            };
            for project in projects {
                let mut found = Vec::new();
                for shelf in [LoopFolder::Loops, LoopFolder::Archive] {
                    found.extend(unless_unreadable(
                        &project,
                        catalog.update(&project, shelf, Detail::Line, &self.host.signing()),
                    )?);
                }
                let service = Self { project, ..self.clone() };
                let copies = service.take_copied(&mut found);
                catalog.add_up(&service.project, &found, since, &mut sums)?;
                for copy in &copies {
                    Catalog::add_copy(&service.project, copy, since, &mut sums);
                }
                unread.extend(found.into_iter().filter_map(|found| match found {
                    CatalogEntry::Stopped(_) | CatalogEntry::Open { .. } => None,
                    CatalogEntry::Damaged { name, error } => {
                        Some(service.damaged(&name, None, chain(&error)))
                    }
                }));
            }
            Ok((sums, unread))
        };
        Ok(catalog::with(&self.host.data_home, work)?)
    }

    /// Takes the loops away that left and of which a copy is here; returns what the copies say of them.
    fn take_copied(&self, found: &mut Vec<CatalogEntry>) -> Vec<LoopState> {
        let mut copies = Vec::new();
        found.retain(|found| {
            let CatalogEntry::Open { state, .. } = found else { return true };
            let copy = self.copied_state(state);
            let is_here = copy.is_none();
            copies.extend(copy);
            is_here
        });
        copies
    }

    /// The row of each loop, with the running ones read anew.
    fn rows(&self, found: Vec<CatalogEntry>) -> Result<Vec<ListEntry>, CatalogError> {
        let row = |found| {
            Ok(match found {
                CatalogEntry::Stopped(brief) => ListEntry::Loop(brief),
                CatalogEntry::Open { dir, state, stamp } => {
                    let brief = |mut status: Status| {
                        let iterations = status.iterations.take().unwrap_or_default();
                        Ok::<_, CatalogError>(Brief { iterations, stamp: Some(stamp), ..status.try_into()? })
                    };
                    let row = match self.last_copy(&state) {
                        Some(copy) => brief(copy)?,
                        None => brief(status(&dir, &state, alive(&dir, &state)))?,
                    };
                    ListEntry::Loop(Box::new(row))
                }
                CatalogEntry::Damaged { name, error } => self.damaged(&name, None, chain(&error)),
            })
        };
        found.into_iter().map(row).collect()
    }

    pub(crate) fn damaged(&self, name: &str, kind: Option<Kind>, why: String) -> ListEntry {
        ListEntry::Damaged(Box::new(DamagedRow::new(name, kind, self.project.root.as_str(), why)))
    }

    /// The status of a loop or plan that is refused with this error; none if it is not damaged.
    pub fn damaged_status(&self, id: &LoopId, error: &EngineError) -> Option<DamagedRow> {
        let EngineError::Journal(damage @ JournalError::Damaged { .. }) = error else { return None };
        let kind = matches!(self.find(id), Ok(ByKind::Plan(_))).then_some(Kind::Plan);
        Some(DamagedRow::new(id.as_str(), kind, self.project.root.as_str(), chain(damage)))
    }

    /// This project, and those on the list that are still there, each once. Of those that are off the list the catalog
    /// knows nothing any more.
    fn all_projects(&self, catalog: &mut Catalog) -> Result<Vec<Project>, CatalogError> {
        let listed = projects::listed(&self.host.data_home);
        let mut all = vec![self.project.clone()];
        for root in listed.iter().filter(|root| root.is_dir()) {
            if let Ok(project) = Project::find(root)
                && all.iter().all(|other| other.data != project.data)
            {
                all.push(project);
            }
        }
        let roots: Vec<&str> =
            listed.iter().chain(all.iter().map(|project| &project.root)).map(|root| root.as_str()).collect();
        catalog.keep_projects(&roots)?;
        Ok(all)
    }
}

/// One project that cannot be read must not hide the others: it is named among their loops.
fn unless_unreadable(
    project: &Project,
    found: Result<Vec<CatalogEntry>, CatalogError>,
) -> Result<Vec<CatalogEntry>, CatalogError> {
    match found {
        Err(CatalogError::Disk(error)) => {
            Ok(vec![CatalogEntry::Damaged { name: project.root.to_string(), error: error.into() }])
        }
        found => found,
    }
}

fn plan_of(row: &ListEntry) -> Option<&LoopId> {
    match row {
        ListEntry::Loop(brief) => brief.plan.as_ref(),
        ListEntry::Damaged(_) => None,
    }
}

pub(crate) fn sorted(mut rows: Vec<ListEntry>) -> Vec<ListEntry> {
    let key = |row: &ListEntry| match row {
        ListEntry::Loop(brief) => Reverse(Some(brief.updated_at)),
        ListEntry::Damaged(_) => Reverse(None),
    };
    rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| name(a).cmp(name(b))));
    rows
}

fn name(row: &ListEntry) -> &str {
    match row {
        ListEntry::Loop(brief) => brief.id.as_str(),
        ListEntry::Damaged(damaged) => &damaged.id,
    }
}
