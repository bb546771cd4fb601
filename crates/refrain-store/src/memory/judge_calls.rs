//! Agents that were asked about loops that are over: about each end of each loop one at most, for each thing that is
//! asked.

use jiff::Timestamp;
use refrain_core::LoopState;
use refrain_core::agent::Usd;
use rusqlite::params;

use super::MemoryFile;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgeCalls {
    pub count: u64,
    pub cost: Usd,
    /// How many did not say what they cost.
    pub untold: u64,
}

impl MemoryFile {
    /// Notes that an agent is about to be asked for `what` about the end of a loop; `false` if one was already.
    pub fn begin_asking(&mut self, of: &LoopState, what: &str, at: Timestamp) -> rusqlite::Result<bool> {
        let begun = self.db.execute(
            "INSERT OR IGNORE INTO asked (project, loop, started_at, seq, what, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                of.spec.project.as_str(),
                of.spec.id.as_str(),
                of.started_at.as_millisecond(),
                i64::try_from(of.seq).unwrap_or(i64::MAX),
                what,
                at.as_millisecond()
            ],
        )?;
        Ok(begun > 0)
    }

    pub fn asked(&mut self, of: &LoopState, what: &str, cost: Option<Usd>) -> rusqlite::Result<()> {
        let given = params![
            of.spec.project.as_str(),
            of.spec.id.as_str(),
            of.started_at.as_millisecond(),
            i64::try_from(of.seq).unwrap_or(i64::MAX),
            what,
            cost.map(|cost| i64::try_from(cost.0).unwrap_or(i64::MAX))
        ];
        self.db.execute(
            "UPDATE asked SET cost = ?6 WHERE project = ?1 AND loop = ?2 AND started_at = ?3 AND seq = ?4 AND what = ?5",
            given,
        )?;
        Ok(())
    }

    /// The number and cost of all that were asked since then, about loops of this project, or of all.
    pub fn all_asked(&self, project: Option<&str>, since: Option<Timestamp>) -> rusqlite::Result<JudgeCalls> {
        let since = since.map_or(i64::MIN, Timestamp::as_millisecond);
        self.db.query_row(
            "SELECT COUNT(*), COALESCE(SUM(cost), 0), COUNT(*) - COUNT(cost) FROM asked
             WHERE (?1 IS NULL OR project = ?1) AND at >= ?2",
            params![project, since],
            |row| {
                Ok(JudgeCalls {
                    count: unsigned(row.get(0)?),
                    cost: Usd(unsigned(row.get(1)?)),
                    untold: unsigned(row.get(2)?),
                })
            },
        )
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
