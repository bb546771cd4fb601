//! Rows in and out: all SQL of one project's loops.

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::LoopId;
use refrain_core::event::End;
use refrain_core::view::Kind;
use rusqlite::{Connection, OptionalExtension, Row as Columns, TransactionBehavior, params};

use super::fold::{Brief, Row, Spending};
use super::stamp::Stamp;
use super::{CatalogError, Detail, LoopFolder};
use crate::project::layout::Project;

/// Forgets the loops of all projects but these.
pub(super) fn keep_projects(db: &Connection, keep: &[&str]) -> Result<(), CatalogError> {
    let mut query = db.prepare("SELECT id, root FROM projects")?;
    let all = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let all: Vec<(i64, String)> = all.collect::<Result<_, _>>()?;
    for (id, _) in all.iter().filter(|(_, root)| !keep.contains(&root.as_str())) {
        db.execute("DELETE FROM projects WHERE id = ?1", [id])?;
    }
    Ok(())
}

/// Gives away each loop that is known on a project's shelf: its folder, the stamp of the journal that it was made from,
/// and the rest if that is `wanted`.
pub(super) fn each(
    db: &Connection,
    (project, shelf): (&Project, LoopFolder),
    detail: Detail,
    mut wanted: impl FnMut(&str, Stamp) -> bool,
    mut take: impl FnMut(Brief),
) -> Result<(), CatalogError> {
    let (object, join) = match detail {
        Detail::Line => ("NULL", ""),
        Detail::Object => ("object", "JOIN objects ON objects.loop = loops.id"),
    };
    let mut query = db.prepare_cached(&format!(
        "SELECT folder, length, modified, inode,
                ended, name, iteration, max_iterations, updated_at, reason, {object}, plan, verified
         FROM loops {join}
         WHERE project = (SELECT id FROM projects WHERE data = ?1) AND archived = ?2"
    ))?;
    let mut columns = query.query(params![project.data.as_str(), shelf.is_archive()])?;
    let root = Arc::from(project.root.as_str());
    while let Some(row) = columns.next()? {
        let stamp = Stamp { length: row.get(1)?, modified: row.get(2)?, inode: row.get(3)? };
        let folder = row.get_ref(0)?.as_str().map_err(unfit)?;
        if wanted(folder, stamp) {
            take(Brief { stamp: Some(stamp), ..brief(row, &root)? });
        }
    }
    Ok(())
}

/// The status object of a loop; none if the catalog does not know it.
pub(super) fn object(
    db: &Connection,
    (project, shelf): (&Project, LoopFolder),
    id: &LoopId,
) -> Result<Option<String>, CatalogError> {
    let mut query = db.prepare_cached(
        "SELECT object FROM objects JOIN loops ON objects.loop = loops.id
         WHERE project = (SELECT id FROM projects WHERE data = ?1) AND archived = ?2 AND folder = ?3",
    )?;
    let place = params![project.data.as_str(), shelf.is_archive(), id.as_str()];
    Ok(query.query_row(place, |row| row.get(0)).optional()?)
}

fn brief(row: &Columns<'_>, root: &Arc<str>) -> Result<Brief, CatalogError> {
    let plan = row.get::<_, Option<String>>(11)?.map(|plan| plan.parse().map_err(unfit)).transpose()?;
    Ok(Brief {
        kind: if plan.is_some() { Kind::Task } else { Kind::Process },
        plan,
        id: row.get_ref(5)?.as_str().map_err(unfit)?.parse().map_err(unfit)?,
        status: serde_json::from_str::<End>(row.get_ref(4)?.as_str().map_err(unfit)?)?.into(),
        verified: row.get(12)?,
        iteration: row.get(6)?,
        max_iterations: row.get(7)?,
        updated_at: Timestamp::from_millisecond(row.get(8)?).map_err(unfit)?,
        project: Arc::clone(root),
        reason: row.get(9)?,
        object: row.get(10)?,
        iterations: Vec::new(),
        copy: None,
        stamp: None,
    })
}

pub(super) fn unfit(error: impl std::fmt::Display) -> CatalogError {
    CatalogError::Unfit(error.to_string())
}

/// Writes what changed, and forgets what is gone: all of it or nothing.
pub(super) fn write(
    db: &mut Connection,
    (project, shelf): (&Project, LoopFolder),
    changed: &[Row],
    gone: &[String],
) -> Result<(), CatalogError> {
    let all = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let project: i64 = all.query_row(
        "INSERT INTO projects (data, root) VALUES (?1, ?2)
         ON CONFLICT (data) DO UPDATE SET root = excluded.root RETURNING id",
        [project.data.as_str(), project.root.as_str()],
        |row| row.get(0),
    )?;
    let mut forget = all.prepare("DELETE FROM loops WHERE project = ?1 AND archived = ?2 AND folder = ?3")?;
    let mut add = all.prepare(
        "INSERT INTO loops (project, archived, folder, length, modified, inode, agent, charged,
            ended, ended_at, name, iteration, max_iterations, updated_at, reason, plan, verified)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    let mut add_object = all.prepare("INSERT INTO objects VALUES (?1, ?2)")?;
    let mut add_attempt =
        all.prepare("INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for folder in gone.iter().chain(changed.iter().map(|row| &row.folder)) {
        forget.execute(params![project, shelf.is_archive(), folder])?;
    }
    for Row { folder, stamp, agent, charged, ended, brief, attempts } in changed {
        let id = add.insert(params![
            project,
            shelf.is_archive(),
            folder,
            stamp.length,
            stamp.modified,
            stamp.inode,
            serde_json::to_string(agent)?,
            charged,
            serde_json::to_string(&ended.end)?,
            ended.at.as_millisecond(),
            brief.id.as_str(),
            brief.iteration,
            brief.max_iterations,
            brief.updated_at.as_millisecond(),
            brief.reason,
            brief.plan.as_ref().map(LoopId::as_str),
            brief.verified,
        ])?;
        add_object.execute(params![id, brief.object])?;
        for (number, Spending { at, model, pool, usage }) in (0_i64..).zip(attempts) {
            add_attempt.execute(params![
                id,
                number,
                at.as_millisecond(),
                model,
                usage.tokens.input.map(signed),
                usage.tokens.cached_input.map(signed),
                usage.tokens.output.map(signed),
                usage.cost.map(|cost| signed(cost.0)),
                usage.at_least,
                pool,
            ])?;
        }
    }
    drop((forget, add, add_object, add_attempt));
    Ok(all.commit()?)
}

/// SQLite's numbers have a sign; no real number is larger than that.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
