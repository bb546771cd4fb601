//! Brings one project's rows up to date: its journals are compared with the rows.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use camino::Utf8Path;
use refrain_core::{LoopId, LoopState};
use refrain_files::IfThere;
use rustix::fs::{Dir, DirEntry, FileType};

use super::fold::{Brief, Row};
use super::known::{Basis, Judged, KnownJournals};
use super::selection::{Detail, LoopFolder};
use super::stamp::Stamp;
use super::{Catalog, CatalogError, rows};
use crate::OnPath;
use crate::access::signing::Signing;
use crate::journal::{self, JournalError};
use crate::project::layout::{LoopDir, Project};

#[derive(Debug)]
pub enum CatalogEntry {
    /// It has stopped: its journal alone decides its status.
    Stopped(Box<Brief>),
    /// It has not, or its end is unsigned: its status depends on live processes too.
    Open {
        dir: LoopDir,
        state: Arc<LoopState>,
        /// Of the journal that it was read from.
        stamp: Stamp,
    },
    Damaged {
        name: String,
        error: JournalError,
    },
}

impl Catalog {
    /// Every loop on a project's shelf as it is now, in no order; the rows are brought up to date on the way.
    /// Errors: [`CatalogError`]; of a shelf that cannot be read, not of one that is not there.
    pub fn update(
        &mut self,
        project: &Project,
        shelf: LoopFolder,
        detail: Detail,
        signing: &Signing,
    ) -> Result<Vec<CatalogEntry>, CatalogError> {
        let folder = shelf.folder(project);
        let mut there = stamps(&folder)?;
        let mut found = Vec::with_capacity(there.len());
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        let place = (project, shelf);
        let is_current = |name: &str, stamp| {
            if there.get(name) == Some(&Some(stamp)) {
                return there.remove(name).is_some();
            }
            gone.push(name.to_owned());
            false
        };
        rows::each(&self.db, place, detail, is_current, |brief| {
            found.push(CatalogEntry::Stopped(Box::new(brief)));
        })?;
        let mut known = self.known.as_ref().map(KnownJournals::lock);
        let mut before = known.as_mut().and_then(|known| known.remove(&folder)).unwrap_or_default();
        let (judged, mut now) = (Judged::by(signing), HashMap::new());
        for (name, stamp) in there {
            if shelf == LoopFolder::Loops && name.parse::<LoopId>().is_err() {
                continue;
            }
            let dir = LoopDir(folder.join(&name));
            let basis = stamp.map(|stamp| Basis::of(&dir, stamp, signing, &judged));
            let was = before.remove(&name).filter(|(was, _)| Some(was) == basis.as_ref());
            let state = match was.map_or_else(
                || journal::read_signed(&dir, signing).map(|it| Arc::new(it.state)),
                |(_, state)| Ok(state),
            ) {
                Ok(state) => state,
                // It has no first line yet, or was just moved away: there is no loop.
                Err(JournalError::Missing(_)) => continue,
                Err(error) => {
                    found.push(CatalogEntry::Damaged { name, error });
                    continue;
                }
            };
            // Its journal was written back in between: the next look finds it.
            let Some(basis) = basis else { continue };
            let stamp = basis.journal;
            match Row::new(name.clone(), stamp, &state)? {
                Some(row) => {
                    found.push(CatalogEntry::Stopped(Box::new(row.brief.clone())));
                    changed.push(row);
                }
                None => {
                    now.insert(name, (basis, Arc::clone(&state)));
                    found.push(CatalogEntry::Open { dir, state, stamp });
                }
            }
        }
        drop(known.map(|mut known| known.insert(folder, now)));
        if !changed.is_empty() || !gone.is_empty() {
            // In the order in which they are looked up: rows that lie beside each other are read faster.
            changed.sort_unstable_by(|a: &Row, b: &Row| a.folder.cmp(&b.folder));
            rows::write(self.writable()?, place, &changed, &gone)?;
        }
        Ok(found)
    }

    /// The status object of a loop that has stopped, as of the last [`Self::update`].
    pub fn object(&self, project: &Project, id: &LoopId) -> Result<Option<String>, CatalogError> {
        rows::object(&self.db, (project, LoopFolder::Loops), id)
    }

    /// Forgets every project but these: those that the list of projects names, whether they are there or not.
    pub fn keep_projects(&mut self, roots: &[&str]) -> Result<(), CatalogError> {
        rows::keep_projects(&self.db, roots)
    }
}

/// The loops' folders of a shelf, each with the stamp of its journal, if there is one: what is written after that is
/// seen the next time.
fn stamps(folder: &Utf8Path) -> Result<HashMap<String, Option<Stamp>>, CatalogError> {
    let Some(dir) = File::open(folder).if_there().on("open", folder)? else { return Ok(HashMap::new()) };
    // Thousands of names are read without a path for each.
    let entries = Dir::read_from(&dir).on("read", folder)?.flatten();
    let stamp = |entry: DirEntry| {
        let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."))?;
        let stamp = Stamp::of(dir.as_fd(), name);
        (stamp.is_some() || entry.file_type() == FileType::Directory).then(|| (name.to_owned(), stamp))
    };
    Ok(entries.filter_map(stamp).collect())
}
