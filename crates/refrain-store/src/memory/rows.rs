//! Rows in and out: what is kept, listed, used and forgotten.

use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_core::memory::{Kind, Memory, MemoryId};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};

use super::MemoryFile;

/// The columns of a memory, in the order in which [`memory`] reads them.
pub(super) const COLUMNS: &str =
    "id, kind, text, project, origin, importance, source, created_at, used_at, uses";

/// Which memories are meant: those to which all holds that is said.
#[derive(Clone, Debug, Default)]
pub struct MemoryFilter {
    pub project: Option<String>,
    pub kind: Option<Kind>,
    pub source: Option<LoopId>,
}

impl MemoryFile {
    /// Remembers all of these, or nothing; what was there already becomes what the core says.
    pub fn remember(&mut self, memories: Vec<Memory>) -> rusqlite::Result<Vec<Memory>> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut kept = Vec::new();
        for new in memories {
            let query = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1");
            let old = all.query_row(&query, [new.id.as_str()], memory).optional()?;
            let is_new = old.is_none();
            let it = match old {
                Some(old) => old.again(new),
                None => new,
            };
            if is_new {
                all.execute(
                    "INSERT INTO memories (id, kind, text, project, origin, importance, source, created_at, uses)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
                    params![
                        it.id.as_str(),
                        it.kind.as_str(),
                        it.text,
                        it.project,
                        it.origin.as_str(),
                        it.importance,
                        it.source.as_ref().map(LoopId::as_str),
                        it.created_at.as_millisecond()
                    ],
                )?;
            } else {
                all.execute(
                    "UPDATE memories SET origin = ?2, importance = ?3, source = ?4 WHERE id = ?1",
                    params![
                        it.id.as_str(),
                        it.origin.as_str(),
                        it.importance,
                        it.source.as_ref().map(LoopId::as_str)
                    ],
                )?;
                // Its vector is of other words then.
                all.execute(
                    "UPDATE memories SET text = ?2, model = NULL, vector = NULL WHERE id = ?1 AND text <> ?2",
                    params![it.id.as_str(), it.text],
                )?;
            }
            kept.push(it);
        }
        all.commit()?;
        Ok(kept)
    }

    /// All that are meant, the newest first.
    pub fn list(&self, which: &MemoryFilter) -> rusqlite::Result<Vec<Memory>> {
        let mut query = self.db.prepare(&format!(
            "SELECT {COLUMNS} FROM memories
             WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR source = ?3)
             ORDER BY created_at DESC, number DESC"
        ))?;
        let MemoryFilter { project, kind, source } = which;
        let given = params![project, kind.map(Kind::as_str), source.as_ref().map(LoopId::as_str)];
        query.query_map(given, memory)?.collect()
    }

    /// Those of these that there are, in their order.
    pub fn named(&self, ids: &[MemoryId]) -> rusqlite::Result<Vec<Memory>> {
        let mut query = self.db.prepare(&format!("SELECT {COLUMNS} FROM memories WHERE id = ?1"))?;
        let found = ids.iter().map(|id| query.query_row([id.as_str()], memory).optional());
        found.filter_map(Result::transpose).collect()
    }

    /// Notes that these are in a loop's prompt.
    pub fn used<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a MemoryId>,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for id in ids {
            let given = params![id.as_str(), at.as_millisecond()];
            all.execute("UPDATE memories SET uses = uses + 1, used_at = ?2 WHERE id = ?1", given)?;
        }
        all.commit()
    }

    /// Forgets these, and leaves nothing of them in the file.
    pub fn forget<'a>(&mut self, ids: impl Iterator<Item = &'a MemoryId>) -> rusqlite::Result<usize> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut gone = 0;
        for id in ids {
            gone += all.execute("DELETE FROM memories WHERE id = ?1", [id.as_str()])?;
        }
        all.commit()?;
        // What was written last lies beside the file, until that is emptied too. If another process reads, the next
        // deletion empties it.
        let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(gone)
    }
}

/// One memory of a row that begins with [`COLUMNS`].
pub(super) fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    let at = |column| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<At>>(column)?.map(|at| at.0))
    };
    let said = |column| row.get::<_, ParsedText<_>>(column).map(|said| said.0);
    Ok(Memory {
        id: said(0)?,
        kind: row.get::<_, ParsedText<_>>(1)?.0,
        text: row.get(2)?,
        project: row.get(3)?,
        origin: row.get::<_, ParsedText<_>>(4)?.0,
        importance: row.get(5)?,
        source: row.get::<_, Option<ParsedText<_>>>(6)?.map(|said| said.0),
        created_at: row.get::<_, At>(7)?.0,
        used_at: at(8)?,
        uses: row.get(9)?,
    })
}

/// A word that one of our types has a meaning for.
struct ParsedText<T>(T);

impl<T: std::str::FromStr> FromSql for ParsedText<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(|_| FromSqlError::InvalidType)
    }
}

struct At(Timestamp);

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let at = value.as_i64()?;
        Timestamp::from_millisecond(at).map(Self).map_err(|_| FromSqlError::OutOfRange(at))
    }
}
