//! Bringing one project's rows up to date: what is on disk is compared with what is known of it.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;

use camino::Utf8PathBuf;
use refrain_core::{LoopId, LoopState};

use super::fold::{Brief, Row};
use super::stamp::Stamp;
use super::{Catalog, CatalogError, rows};
use crate::OnPath;
use crate::journal::{self, JournalError};
use crate::layout::{LoopDir, Project};

/// Where a project keeps loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Those that run or have ended.
    Loops,
    /// Those that were put aside.
    Archive,
}

impl Shelf {
    pub(super) fn is_archive(self) -> bool {
        self == Self::Archive
    }

    fn folder(self, project: &Project) -> Utf8PathBuf {
        match self {
            Self::Loops => project.loops(),
            Self::Archive => project.archive(),
        }
    }
}

/// A loop that was found.
#[derive(Debug)]
pub enum Found {
    /// It has stopped: its journal alone says how it stands.
    Stopped(Box<Brief>),
    /// It has not: how it stands depends on who is alive too.
    Open(LoopDir, Box<LoopState>),
    /// Its journal cannot be read.
    Damaged {
        /// Its folder's name.
        name: String,
        /// What is wrong.
        error: JournalError,
    },
}

impl Catalog {
    /// Every loop on a project's shelf as it is now, in no order; the rows are brought up to date on the way.
    ///
    /// # Errors
    /// [`CatalogError`]; of a shelf that cannot be read, not of one that is not there.
    pub fn update(&mut self, project: &Project, shelf: Shelf) -> Result<Vec<Found>, CatalogError> {
        let folder = shelf.folder(project);
        let place = (project, shelf);
        let mut known = rows::known(&self.db, place)?;
        let (mut found, mut changed) = (Vec::with_capacity(known.len()), Vec::new());
        let dir = match File::open(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            dir => Some(dir.on("open", &folder)?),
        };
        let entries = dir.as_ref().map(|_| folder.read_dir_utf8()).transpose().on("read", &folder)?;
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            // The stamp first: what is written behind it is seen the next time.
            let Some(stamp) = dir.as_ref().and_then(|dir| Stamp::of(dir.as_fd(), name)) else { continue };
            if known.get(name).is_some_and(|(known, _)| *known == stamp)
                && let Some((_, brief)) = known.remove(name)
            {
                found.push(Found::Stopped(Box::new(brief)));
                continue;
            }
            if shelf == Shelf::Loops && name.parse::<LoopId>().is_err() {
                continue;
            }
            let dir = LoopDir(entry.path().to_owned());
            match journal::read(&dir) {
                Ok(snapshot) => match Row::new(name.to_owned(), stamp, &snapshot.state)? {
                    Some(row) => {
                        found.push(Found::Stopped(Box::new(row.brief.clone())));
                        known.remove(name);
                        changed.push(row);
                    }
                    None => found.push(Found::Open(dir, Box::new(snapshot.state))),
                },
                // It has no first line yet, or was just moved away: there is no loop.
                Err(JournalError::Missing(_)) => {}
                Err(error) => found.push(Found::Damaged { name: name.to_owned(), error }),
            }
        }
        let gone: Vec<String> = known.into_keys().collect();
        if !changed.is_empty() || !gone.is_empty() {
            rows::write(self.writable()?, place, &changed, &gone)?;
        }
        Ok(found)
    }

    /// Forgets every project but these: those that the list of projects names, whether they are there or not.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn keep_projects(&mut self, roots: &[&str]) -> Result<(), CatalogError> {
        rows::keep_projects(&self.db, roots)
    }
}
