//! The file itself: opening it, making it, putting it aside if it is damaged.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::Connection;

use super::{MemoryError, Trouble};
use crate::disk::atomic::{make_dir, open_private};
use crate::disk::migration::migrate;
use crate::{DiskError, OnPath};

const PATIENCE: Duration = Duration::from_millis(800);

const STEPS: &[&str] = &[
    "CREATE TABLE memories (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        project TEXT NOT NULL,
        origin TEXT NOT NULL,
        importance REAL NOT NULL,
        source TEXT,
        created_at INTEGER NOT NULL,
        used_at INTEGER,
        uses INTEGER NOT NULL,
        -- Which model made the vector of the text; what another made cannot be compared.
        model TEXT,
        vector BLOB
    );
    CREATE INDEX memories_of_projects ON memories (project, kind);
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = 'memories', content_rowid = 'number', tokenize = 'porter unicode61'
    );
    -- What is forgotten is gone from the disk too.
    INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
        INSERT INTO words (rowid, text) VALUES (new.number, new.text);
    END;
    CREATE TRIGGER memories_gone AFTER DELETE ON memories BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text);
    END;
    CREATE TRIGGER memories_changed AFTER UPDATE OF text ON memories BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text);
        INSERT INTO words (rowid, text) VALUES (new.number, new.text);
    END;",
    // Which end of which loop an agent was asked about, so that none is asked twice; and what that cost.
    "CREATE TABLE asked (
        project TEXT NOT NULL,
        loop TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        what TEXT NOT NULL,
        at INTEGER NOT NULL,
        cost INTEGER,
        PRIMARY KEY (project, loop, started_at, seq, what)
    ) WITHOUT ROWID;",
];

#[derive(Debug)]
pub struct MemoryFile {
    pub(super) db: Connection,
}

/// Asks the user's memories; none if there are none yet, and then no file is made.
pub fn look<T>(
    data_home: &Utf8Path,
    work: impl FnOnce(&mut MemoryFile) -> rusqlite::Result<T>,
) -> Result<Option<T>, MemoryError> {
    let path = path(data_home);
    if !path.exists() { Ok(None) } else { with(&path, work).map(Some) }
}

/// The same, to keep something: the file is made if there is none.
pub fn make<T>(
    data_home: &Utf8Path,
    work: impl FnOnce(&mut MemoryFile) -> rusqlite::Result<T>,
) -> Result<T, MemoryError> {
    let path = path(data_home);
    path.parent().map_or(Ok(()), make_dir)?;
    // Made here and not by SQLite, which gives what lies beside it the same mode.
    open_private(&path)?;
    with(&path, work)
}

fn with<T>(
    path: &Utf8Path,
    work: impl FnOnce(&mut MemoryFile) -> rusqlite::Result<T>,
) -> Result<T, MemoryError> {
    let was = inode(path);
    let done = connect(path).and_then(|db| Ok(work(&mut MemoryFile { db })?));
    done.or_else(|trouble| match trouble {
        Trouble::Unfit => Err(MemoryError::Damaged(put_aside(path, was)?)),
        Trouble::Newer => Err(MemoryError::Newer),
        Trouble::Unreachable(error) => Err(MemoryError::Unreachable(error)),
    })
}

fn connect(path: &Utf8Path) -> Result<Connection, Trouble> {
    let mut db = Connection::open(path)?;
    db.busy_timeout(PATIENCE)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // In WAL mode this is safe against damage; a power loss takes at most what was remembered last.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "secure_delete", true)?;
    if !migrate(&mut db, STEPS)? {
        return Err(Trouble::Newer);
    }
    Ok(db)
}

fn path(data_home: &Utf8Path) -> Utf8PathBuf {
    data_home.join("memory.sqlite")
}

fn inode(path: &Utf8Path) -> Option<u64> {
    fs::metadata(path).ok().map(|meta| meta.ino())
}

/// Those that were put aside and still lie there.
pub fn aside(data_home: &Utf8Path) -> Vec<Utf8PathBuf> {
    let path = path(data_home);
    (1..=MOST_ASIDE).map(|number| aside_place(&path, number)).take_while(|place| place.exists()).collect()
}

/// How many are kept apart; after that the last one is replaced.
const MOST_ASIDE: u32 = 100;

fn aside_place(path: &Utf8Path, number: u32) -> Utf8PathBuf {
    format!("{path}.damaged-{number}").into()
}

/// Moves the file that had this inode out of the way, with what SQLite keeps beside it: what was written last lies
/// there.
fn put_aside(path: &Utf8Path, was: Option<u64>) -> Result<Utf8PathBuf, DiskError> {
    let free = (1..MOST_ASIDE).find(|number| !aside_place(path, *number).exists());
    let free = free.unwrap_or(MOST_ASIDE);
    let place = aside_place(path, free);
    if inode(path) != was {
        // Another process did that already.
        return Ok(aside_place(path, free.saturating_sub(1).max(1)));
    }
    fs::rename(path, &place).on("move", path)?;
    for suffix in ["-wal", "-shm"] {
        // Without these files there is nothing to be kept.
        let _ = fs::rename(format!("{path}{suffix}"), format!("{place}{suffix}"));
    }
    Ok(place)
}
