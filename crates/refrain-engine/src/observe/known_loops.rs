//! What a process that lists the same loops again and again remembers of them: what follows from bytes that are as they
//! were then, and nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use refrain_store::catalog::KnownJournals;

/// Shared by all its copies.
#[derive(Clone, Debug, Default)]
pub struct KnownLoops {
    pub(crate) journals: KnownJournals,
    goals: Arc<Mutex<Goals>>,
}

/// Goals by the first line of the journal.
#[derive(Debug, Default)]
struct Goals {
    known: HashMap<blake3::Hash, Arc<str>>,
    bytes: usize,
}

/// How many bytes of goals are kept: beyond that all are read anew.
const MOST_GOALS: usize = 16 << 20;

impl KnownLoops {
    /// The goal in the first line of a journal, which `make` reads if it is not known.
    pub(crate) fn goal<E>(
        &self,
        line: &[u8],
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        let goals = || self.goals.lock().unwrap_or_else(PoisonError::into_inner);
        let line = blake3::hash(line);
        if let Some(goal) = goals().known.get(&line) {
            return Ok(Arc::clone(goal));
        }
        let goal = Arc::<str>::from(make()?);
        let mut goals = goals();
        if goals.bytes + goal.len() > MOST_GOALS {
            *goals = Goals::default();
        }
        goals.bytes += goal.len();
        goals.known.insert(line, Arc::clone(&goal));
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
        let goal =
            |line: &[u8], says: &str| known.goal(line, || Ok::<_, Infallible>(says.to_owned())).unwrap();
        assert_eq!(&*goal(b"1", "Mend it."), "Mend it.");
        assert_eq!(&*goal(b"1", "another"), "Mend it.", "it was read from the same bytes");
        assert_eq!(&*goal(b"2", "another"), "another");
        assert_eq!(known.goal(b"", || Err("damaged")), Err("damaged"));
        assert_eq!(&*goal(b"", "restored"), "restored", "an error is not kept");
    }
}
