//! The usage of attempts, and the ends of loops: the data for the sums of `refrain usage`.

use jiff::Timestamp;
use refrain_core::LoopState;
use refrain_core::agent::{Tokens, Usage, Usd};
use refrain_core::event::End;
use refrain_core::view::usage::{Tally, UsageRecord};
use refrain_core::view::{self, Alive};
use rusqlite::{Row, params};

use super::fold::{Spending, spendings};
use super::rows::unfit;
use super::update::CatalogEntry;
use super::{Catalog, CatalogError};
use crate::project::layout::Project;

impl Catalog {
    /// Adds what a project's loops used and how they stopped, archived ones too: of those that have stopped what the
    /// catalog knows since the last [`update`](Self::update), of the others what that found.
    pub fn add_up(
        &self,
        project: &Project,
        found: &[CatalogEntry],
        since: Option<Timestamp>,
        tally: &mut Tally,
    ) -> Result<(), CatalogError> {
        let from = since.map_or(i64::MIN, |since| since.as_millisecond());
        let mut query = self.db.prepare(
            "SELECT id, agent, attempts.ended_at, model, input, cached_input, output, cost, at_least, pool
             FROM loops JOIN attempts ON attempts.loop = loops.id
             WHERE project = (SELECT id FROM projects WHERE data = ?1) AND attempts.ended_at >= ?2",
        )?;
        let mut rows = query.query(params![project.data.as_str(), from])?;
        while let Some(row) = rows.next()? {
            tally.spend(&spent(row, project)?);
        }
        let mut query = self.db.prepare(
            "SELECT ended, charged, json_extract(object, '$.verified') IS TRUE
             FROM loops JOIN objects ON objects.loop = loops.id
             WHERE project = (SELECT id FROM projects WHERE data = ?1) AND ended_at >= ?2 ORDER BY id",
        )?;
        let mut rows = query.query(params![project.data.as_str(), from])?;
        while let Some(row) = rows.next()? {
            let end: End = serde_json::from_str(row.get_ref(0)?.as_str().map_err(unfit)?)?;
            tally.stop(end, row.get(1)?, row.get(2)?);
        }
        for found in found {
            if let CatalogEntry::Open { state, .. } = found {
                let of = tally.unused_number();
                records(project, state, since, of).for_each(|spent| tally.spend(&spent));
            }
        }
        Ok(())
    }

    /// Adds what a loop used that other machines drive, and how it stopped, by a copy of its journal.
    pub fn add_copy(project: &Project, copy: &LoopState, since: Option<Timestamp>, tally: &mut Tally) {
        let of = tally.unused_number();
        records(project, copy, since, of).for_each(|spent| tally.spend_elsewhere(&spent));
        let ended = copy.ended.filter(|_| copy.signatures.objection().is_none());
        if let Some(ended) = ended.filter(|ended| since.is_none_or(|since| ended.at >= since)) {
            let is_verified = view::status(copy, Alive::default()).verified == Some(true);
            tally.stop(ended.end, copy.charged, is_verified);
        }
    }

    /// What the attempts of [`add_up`](Self::add_up) cost, and whether it was more; none if nothing is known.
    pub fn cost<'a>(
        &self,
        project: &Project,
        found: impl IntoIterator<Item = &'a CatalogEntry>,
        since: Timestamp,
    ) -> Result<Option<(Usd, bool)>, CatalogError> {
        let stopped = self.stopped_cost(project, since)?;
        let open = found.into_iter().filter_map(|found| match found {
            CatalogEntry::Open { state, .. } => Some(state),
            CatalogEntry::Stopped(_) | CatalogEntry::Damaged { .. } => None,
        });
        let running = open.flat_map(|state| spendings(state)).filter(|spending| spending.at >= since);
        let sum = running.fold(stopped, |sum, spending| sum + spending.usage);
        Ok(sum.cost.map(|cost| (cost, sum.cost_at_least)))
    }

    fn stopped_cost(&self, project: &Project, since: Timestamp) -> Result<Usage, CatalogError> {
        // As a float, which cannot overflow: agents say what they like.
        let mut query = self.db.prepare_cached(
            "SELECT COUNT(cost), TOTAL(cost), MAX(at_least OR cost IS NULL)
             FROM loops JOIN attempts ON attempts.loop = loops.id
             WHERE project = (SELECT id FROM projects WHERE data = ?1) AND attempts.ended_at >= ?2",
        )?;
        let sum = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?, row.get(2)?));
        let (known, total, at_least): (_, _, Option<bool>) =
            query.query_row(params![project.data.as_str(), since.as_millisecond()], sum)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let cost = (known > 0).then_some(Usd(total as u64));
        Ok(Usage { cost, cost_at_least: at_least.unwrap_or_default(), ..Usage::default() })
    }
}

/// What the agents of a loop used since then.
fn records(
    project: &Project,
    state: &LoopState,
    since: Option<Timestamp>,
    of: u64,
) -> impl Iterator<Item = UsageRecord> {
    let of_loop = move |Spending { at, model, pool, usage }| {
        let (project, agent) = (project.root.to_string(), state.spec.agent.kind);
        UsageRecord { of, project, agent, model, pool, at, usage }
    };
    spendings(state).filter(move |it| since.is_none_or(|since| it.at >= since)).map(of_loop)
}

fn spent(row: &Row<'_>, project: &Project) -> Result<UsageRecord, CatalogError> {
    let number = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(at)?.map(i64::cast_unsigned));
    Ok(UsageRecord {
        of: row.get::<_, i64>(0)?.cast_unsigned(),
        project: project.root.to_string(),
        agent: serde_json::from_str(row.get_ref(1)?.as_str().map_err(unfit)?)?,
        at: Timestamp::from_millisecond(row.get(2)?).map_err(unfit)?,
        model: row.get(3)?,
        pool: row.get(9)?,
        usage: {
            let tokens = Tokens { input: number(4)?, cached_input: number(5)?, output: number(6)? };
            Usage::of_run(Some(tokens), number(7)?.map(Usd), !row.get::<_, bool>(8)?)
        },
    })
}
