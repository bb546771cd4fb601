//! Memories of finished loops: for surfaces ([`Service`]), for a loop that begins ([`recall`]) and for one that has
//! ended ([`loop_memories`]). If anything is wrong with them, a loop begins, runs and ends as without them, and the problem is
//! reported. The file is written by `refrain_store::memory`.

mod background_work;
mod embeddings;
mod loop_memories;
mod recall;

use jiff::Timestamp;
use refrain_core::memory::{Kind, Memory, MemoryId, Origin, RankedMemory, fit, rank};
use refrain_secrets as secrets;
use refrain_store::memory::{self, JudgeCalls, MemoryError, MemoryFilter, Vector};

pub use self::background_work::ReflectionOutcome;
pub(crate) use self::background_work::begin as look_back_on;
use self::embeddings::{Embedder, catch_up};
pub use self::loop_memories::Remembrance;
pub(crate) use self::loop_memories::remember;
pub(crate) use self::recall::{note_use, recall};
use crate::{Service, chain, now};

/// Why something is not remembered, or not found.
#[derive(Debug, thiserror::Error)]
pub enum RememberError {
    #[error(transparent)]
    File(#[from] MemoryError),
    #[error("there are no words in it")]
    Empty,
    #[error("it looks like a secret ({0}), and is not remembered")]
    Secret(&'static str),
}

/// The memories that were found, the best first, and why some may be missing.
#[derive(Debug)]
pub struct MemoryCollector {
    pub found: Vec<RankedMemory>,
    /// What could not be done, and what happens instead.
    pub trouble: Option<String>,
}

impl Service {
    /// The memories that have to do with these words, of this project, or `everywhere`. `variables` as for
    /// [`settings`](Self::settings).
    pub fn search_memories(
        &self,
        words: &str,
        everywhere: bool,
        variables: bool,
    ) -> Result<MemoryCollector, MemoryError> {
        let (home, project) = (&self.host().data_home, self.project().root.as_str());
        let (embedder, mut trouble) = Embedder::of(self.host(), variables);
        let mut vector = None;
        if let Some(embedder) = &embedder {
            match catch_up(embedder, home, words) {
                Ok(of) => vector = of,
                Err(error) => trouble = Some(chain(&error)),
            }
        }
        let of = vector.as_ref().zip(embedder.as_ref());
        let vector = of.map(|(of, embedder)| Vector { model: embedder.model(), of });
        let hits = memory::look(home, |file| file.find(words, project, everywhere, vector))?;
        let mut found = rank(hits.unwrap_or_default(), words, project, now());
        found.retain(|it| it.fits);
        Ok(MemoryCollector { found, trouble })
    }

    /// The selected memories, newest first.
    pub fn memories(&self, which: &MemoryFilter) -> Result<Vec<Memory>, MemoryError> {
        Ok(memory::look(&self.host().data_home, |file| file.list(which))?.unwrap_or_default())
    }

    /// Remembers a person's words for this project.
    pub fn remember(&self, kind: Kind, words: &str, importance: f64) -> Result<Memory, RememberError> {
        let screened = words.lines().find_map(|line| secrets::screen(b"text", line.as_bytes(), None));
        if let Some(secret) = screened {
            return Err(RememberError::Secret(secret.what));
        }
        let text = fit(words, kind).ok_or(RememberError::Empty)?;
        let project = self.project().root.as_str();
        let new = Memory::new(kind, text, project, Origin::Person, importance, now());
        let kept = memory::make(&self.host().data_home, |file| file.remember(vec![new]))?;
        kept.into_iter().next().ok_or(RememberError::Empty)
    }

    pub fn memories_named(&self, ids: &[MemoryId]) -> Result<Vec<Memory>, MemoryError> {
        Ok(memory::look(&self.host().data_home, |file| file.named(ids))?.unwrap_or_default())
    }

    /// The cost of judges that looked back on loops, since then, of this project or of all.
    pub fn judges_asked(
        &self,
        project: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<JudgeCalls, MemoryError> {
        let asked = memory::look(&self.host().data_home, |file| file.all_asked(project, since))?;
        Ok(asked.unwrap_or_default())
    }

    /// Forgets these; answers with how many there were.
    pub fn forget(&self, memories: &[Memory]) -> Result<usize, MemoryError> {
        let ids = memories.iter().map(|it| &it.id);
        Ok(memory::look(&self.host().data_home, |file| file.forget(ids))?.unwrap_or_default())
    }
}
