//! What a process that lists the same loops again and again remembers of them: what follows from bytes that are as they
//! were then, and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopState;
use refrain_core::view::Alive;
use refrain_store::catalog::{Brief, KnownJournals, Stamp};

/// Shared by all its copies.
#[derive(Clone, Debug, Default)]
pub struct KnownLoops(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    journals: KnownJournals,
    rows: Mutex<Rows>,
    goals: Mutex<Goals>,
}

/// The rows of open loops, by their folder.
#[derive(Debug, Default)]
struct Rows {
    known: HashMap<Utf8PathBuf, OpenRow>,
    /// The number of rows from which on those are dropped that are not current.
    most: usize,
}

/// Goals by the loop's folder.
#[derive(Debug, Default)]
struct Goals {
    known: HashMap<Utf8PathBuf, Goal>,
    bytes: usize,
}

/// A goal, with all that it follows from: the first line of a journal, which is as it was if the whole journal is.
#[derive(Debug)]
struct Goal {
    stamp: Option<Stamp>,
    line: blake3::Hash,
    goal: Arc<str>,
}

/// A row, with all that it follows from.
#[derive(Debug)]
struct OpenRow {
    state: Arc<LoopState>,
    alive: Alive,
    row: Brief,
}

/// How many bytes of goals are kept: beyond that all are read anew.
const MOST_GOALS: usize = 16 << 20;
/// So few rows are never looked through.
const FEW_ROWS: usize = 200;

impl KnownLoops {
    pub(crate) fn journals(&self) -> &KnownJournals {
        &self.0.journals
    }

    /// The row of this very state, if the same is known of its processes.
    pub(crate) fn row<E>(
        &self,
        folder: &Utf8Path,
        (state, alive): (&Arc<LoopState>, Alive),
        make: impl FnOnce() -> Result<Brief, E>,
    ) -> Result<Brief, E> {
        let rows = || self.0.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rows().known.get(folder)
            && Arc::ptr_eq(&known.state, state)
            && known.alive == alive
        {
            return Ok(known.row.clone());
        }
        let row = make()?;
        let mut rows = rows();
        if rows.known.len() >= rows.most.max(FEW_ROWS) {
            // Those of states that are not current any more.
            rows.known.retain(|_, known| Arc::strong_count(&known.state) > 1);
            rows.most = 2 * rows.known.len();
        }
        rows.known.insert(folder.to_owned(), OpenRow { state: Arc::clone(state), alive, row: row.clone() });
        Ok(row)
    }

    /// The goal of the loop in this folder, whose journal has this stamp, if that is known: `first` reads the journal's
    /// first line, and `make` what that tells.
    pub(crate) fn goal<E>(
        &self,
        folder: &Utf8Path,
        stamp: Option<Stamp>,
        first: impl FnOnce() -> Result<Vec<u8>, E>,
        make: impl FnOnce(&[u8]) -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        let goals = || self.0.goals.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |is_it: &dyn Fn(&Goal) -> bool| {
            let mut goals = goals();
            let known = goals.known.get_mut(folder).filter(|known| is_it(known))?;
            known.stamp = stamp.or(known.stamp);
            Some(Arc::clone(&known.goal))
        };
        if let Some(goal) = known(&|known| stamp.is_some() && known.stamp == stamp) {
            return Ok(goal);
        }
        let first = first()?;
        let line = blake3::hash(&first);
        if let Some(goal) = known(&|known| known.line == line) {
            return Ok(goal);
        }
        let goal = Arc::<str>::from(make(&first)?);
        let mut goals = goals();
        if goals.bytes + goal.len() > MOST_GOALS {
            *goals = Goals::default();
        }
        goals.bytes += goal.len();
        goals.known.insert(folder.to_owned(), Goal { stamp, line, goal: Arc::clone(&goal) });
        Ok(goal)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn a_goal_is_read_once_for_each_first_line() {
        let known = KnownLoops::default();
        let goal = |folder: &str, line: &[u8], says: &str| {
            let make = |_: &[u8]| Ok::<_, Infallible>(says.to_owned());
            known.goal(folder.into(), None, || Ok(line.to_vec()), make).unwrap()
        };
        assert_eq!(&*goal("a", b"1", "Mend it."), "Mend it.");
        assert_eq!(&*goal("a", b"1", "another"), "Mend it.", "it was read from the same bytes");
        assert_eq!(&*goal("a", b"2", "another"), "another");
        assert_eq!(&*goal("b", b"2", "the same"), "the same");
        assert_eq!(known.goal("c".into(), None, || Ok(Vec::new()), |_| Err("damaged")), Err("damaged"));
        assert_eq!(&*goal("c", b"", "restored"), "restored", "an error is not kept");
    }
}
