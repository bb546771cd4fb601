//! The catalog as a file: opening it, putting it aside if it is of no use, and doing without it.

use std::fs;
use std::os::fd::AsFd;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_files::IfThere;
use rusqlite::Connection;

use super::fold::Row;
use super::known::KnownJournals;
use super::stamp::Stamp;
use super::{CatalogError, LoopFolder, rows};
use crate::access::signing::Signing;
use crate::disk::atomic::{make_dir, open_private};
use crate::disk::migration::migrate;
use crate::project::layout::{LoopDir, Project};
use crate::{DiskError, OnPath, journal};

/// How long a reader waits for a writer.
const READER_WAITS: Duration = Duration::from_secs(2);
/// The same for a runner: the next reader does what it could not write.
const RUNNER_WAITS: Duration = Duration::from_millis(100);

/// Only ever added to. A change of what is derived (the status object, what an attempt used) is one that empties
/// `projects`, and with that everything.
const STEPS: &[&str] = &[
    "CREATE TABLE projects (
        id INTEGER PRIMARY KEY,
        data TEXT NOT NULL UNIQUE,
        root TEXT NOT NULL
    );
    CREATE TABLE loops (
        id INTEGER PRIMARY KEY,
        project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
        archived INTEGER NOT NULL,
        folder TEXT NOT NULL,
        length INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        agent TEXT NOT NULL,
        charged INTEGER NOT NULL,
        ended TEXT NOT NULL,
        ended_at INTEGER NOT NULL,
        name TEXT NOT NULL,
        iteration INTEGER NOT NULL,
        max_iterations INTEGER,
        updated_at INTEGER NOT NULL,
        worktree TEXT NOT NULL,
        reason TEXT NOT NULL,
        UNIQUE (project, archived, folder)
    );
    -- Apart, because they are long and seldom asked for.
    CREATE TABLE objects (
        loop INTEGER PRIMARY KEY REFERENCES loops ON DELETE CASCADE,
        object TEXT NOT NULL
    );
    CREATE TABLE attempts (
        loop INTEGER NOT NULL REFERENCES loops ON DELETE CASCADE,
        number INTEGER NOT NULL,
        ended_at INTEGER NOT NULL,
        model TEXT,
        input INTEGER,
        cached_input INTEGER,
        output INTEGER,
        cost INTEGER,
        at_least INTEGER NOT NULL,
        PRIMARY KEY (loop, number)
    ) WITHOUT ROWID;",
    // Lists of thousands of loops do not need it.
    "ALTER TABLE loops DROP COLUMN worktree",
    // The usage of judges is listed, too: all is read anew.
    "DELETE FROM projects",
    // Loops of tasks belong to their plan.
    "ALTER TABLE loops ADD COLUMN plan TEXT; DELETE FROM projects",
    // The payer and the mode of a loop are listed.
    "ALTER TABLE attempts ADD COLUMN pool TEXT; DELETE FROM projects",
    // What an agent never said makes sums incomplete, as what it could not say any more does.
    "DELETE FROM projects",
    // The status object says which part of a sum is incomplete.
    "DELETE FROM projects",
    // It says whether the end is signed.
    "DELETE FROM projects",
    // Lists say whether it is verified.
    "ALTER TABLE loops ADD COLUMN verified INTEGER; DELETE FROM projects",
];

/// An open catalog. Looking makes no file: it is made when there is something to be kept.
#[derive(Debug)]
pub struct Catalog {
    pub(super) db: Connection,
    /// Where it is to be, and how long to wait for others, while there is none.
    unmade: Option<(Utf8PathBuf, Duration)>,
    /// What this process knows of loops; none if it lists once.
    pub(super) known: Option<KnownJournals>,
}

/// Does `work` on the user's catalog; on one in memory where that one cannot be used.
/// Errors: [`CatalogError`]: `work`'s own, or that there is no memory.
pub fn with<T>(
    data_home: &Utf8Path,
    work: impl FnMut(&mut Catalog) -> Result<T, CatalogError>,
) -> Result<T, CatalogError> {
    with_known(data_home, None, work)
}

/// The same, for a process that lists the same loops again and again: with what it knows of them, which it knows more of
/// then.
pub fn with_known<T>(
    data_home: &Utf8Path,
    known: Option<&KnownJournals>,
    mut work: impl FnMut(&mut Catalog) -> Result<T, CatalogError>,
) -> Result<T, CatalogError> {
    let mut attempt =
        || work(&mut Catalog { known: known.cloned(), ..Catalog::open(data_home, READER_WAITS)? });
    let done = match attempt() {
        Err(CatalogError::Unfit(_)) => {
            put_aside(data_home);
            attempt()
        }
        done => done,
    };
    match done {
        Err(CatalogError::Unfit(_) | CatalogError::Unreachable(_)) => work(&mut Catalog::in_memory()?),
        done => done,
    }
}

/// Notes a loop that has stopped, for the next reader.
/// Errors: [`CatalogError`], which does no harm: the next reader finds what was not noted.
pub fn note(data_home: &Utf8Path, dir: &LoopDir, signing: &Signing) -> Result<(), CatalogError> {
    let (Some(name), Some(shelf)) = (dir.0.file_name(), dir.0.parent()) else { return Ok(()) };
    let folder = fs::File::open(shelf).on("open", shelf)?;
    let Some(stamp) = Stamp::of(folder.as_fd(), name) else { return Ok(()) };
    let Ok(snapshot) = journal::read_signed(dir, signing) else { return Ok(()) };
    let Some(row) = Row::new(name.to_owned(), stamp, &snapshot.state)? else { return Ok(()) };
    let project = Project::find(&snapshot.state.spec.project)?;
    let mut catalog = Catalog::open(data_home, RUNNER_WAITS)?;
    rows::write(catalog.writable()?, (&project, LoopFolder::Loops), &[row], &[])
}

impl Catalog {
    fn open(data_home: &Utf8Path, patience: Duration) -> Result<Self, CatalogError> {
        let path = path(data_home);
        if !path.exists() {
            return Ok(Self { unmade: Some((path, patience)), ..Self::in_memory()? });
        }
        Ok(Self { db: connect(Connection::open(&path)?, patience)?, unmade: None, known: None })
    }

    fn in_memory() -> Result<Self, CatalogError> {
        Ok(Self { db: connect(Connection::open_in_memory()?, READER_WAITS)?, unmade: None, known: None })
    }

    /// The catalog's file, made if there is none.
    pub(super) fn writable(&mut self) -> Result<&mut Connection, CatalogError> {
        if let Some((path, patience)) = self.unmade.take() {
            make(&path).map_err(|_| {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
                CatalogError::Unreachable(rusqlite::Error::SqliteFailure(code, None))
            })?;
            self.db = connect(Connection::open(&path)?, patience)?;
        }
        Ok(&mut self.db)
    }
}

/// Makes the file here and not by SQLite, which gives what lies beside it the same mode.
fn make(path: &Utf8Path) -> Result<(), DiskError> {
    path.parent().map_or(Ok(()), make_dir)?;
    open_private(path).map(drop)
}

fn connect(mut db: Connection, patience: Duration) -> Result<Connection, CatalogError> {
    db.busy_timeout(patience)?;
    // It is read as a whole; a new file takes this, one that is there keeps its own.
    db.pragma_update(None, "page_size", 16384)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // In WAL mode this is safe against damage; a power loss takes at most what was noted last.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    if !migrate(&mut db, STEPS)? {
        return Err(CatalogError::Unfit("a newer version made it".to_owned()));
    }
    Ok(db)
}

fn path(data_home: &Utf8Path) -> Utf8PathBuf {
    data_home.join("catalog.sqlite")
}

/// A catalog that was put aside and still lies there, beside the one that was built anew.
pub fn aside(data_home: &Utf8Path) -> Option<Utf8PathBuf> {
    Some(aside_place(data_home)).filter(|aside| aside.exists())
}

fn aside_place(data_home: &Utf8Path) -> Utf8PathBuf {
    format!("{}.aside", path(data_home)).into()
}

/// Moves the catalog out of the way, kept for inspection. The files that SQLite keeps beside it go first: they must
/// never be found beside the next one. A process that has it open continues with the moved file.
fn put_aside(data_home: &Utf8Path) {
    let path = path(data_home);
    for suffix in ["-wal", "-shm"] {
        // If it cannot be removed, the catalog cannot be made anew, and the work is done in memory.
        let _ = fs::remove_file(format!("{path}{suffix}"));
    }
    if fs::rename(&path, aside_place(data_home)).if_there().is_err() {
        let _ = fs::remove_file(&path);
    }
}
