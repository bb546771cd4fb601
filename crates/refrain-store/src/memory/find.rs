//! What is found for a goal: by its words, and by a vector if there is one. Vectors are compared one by one: of ten
//! thousand that takes some hundredths of a second, and an index would take an extension.

use std::collections::BTreeMap;

use refrain_core::memory::{Hit, Memory, MemoryId, STANDING, cosine, keywords};
use rusqlite::params;

use super::MemoryFile;
use super::rows::{COLUMNS, memory};

/// How many are searched by words, and by a vector, in the goal's project, and in all others.
const MOST: u32 = 60;

#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    pub model: &'a str,
    pub of: &'a [f32],
}

impl MemoryFile {
    /// Memories that may have to do with the goal; `everywhere` in other projects too.
    pub fn find(
        &self,
        goal: &str,
        project: &str,
        everywhere: bool,
        vector: Option<Vector<'_>>,
    ) -> rusqlite::Result<Vec<Hit>> {
        let mut hits: BTreeMap<MemoryId, Hit> = BTreeMap::new();
        let words = keywords(goal);
        for is_here in if everywhere { &[true, false][..] } else { &[true] } {
            for (memory, bm25) in self.by_words(&words, project, *is_here)? {
                hits.insert(memory.id.clone(), Hit { memory, bm25: Some(bm25), likeness: None });
            }
            let Some(vector) = vector else { continue };
            for (memory, likeness) in self.by_vector(vector, project, *is_here)? {
                let id = memory.id.clone();
                let hit = hits.entry(id).or_insert(Hit { memory, bm25: None, likeness: None });
                hit.likeness = Some(likeness);
            }
        }
        for memory in self.standing(project)? {
            hits.entry(memory.id.clone()).or_insert(Hit { memory, bm25: None, likeness: None });
        }
        Ok(hits.into_values().collect())
    }

    /// Those with words of the goal in them, with any endings.
    fn by_words(
        &self,
        words: &[String],
        project: &str,
        is_here: bool,
    ) -> rusqlite::Result<Vec<(Memory, f64)>> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        // Letters and digits only, and in quotes: nothing of it is an operator.
        let wanted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let mut query = self.db.prepare(&format!(
            "SELECT {COLUMNS}, bm25(words) AS fits FROM words JOIN memories ON memories.number = words.rowid
             WHERE words MATCH ?1 AND (project = ?2) = ?3 ORDER BY fits LIMIT ?4",
            COLUMNS = of_memories(),
        ))?;
        let given = params![wanted.join(" OR "), project, is_here, MOST];
        query.query_map(given, |row| Ok((memory(row)?, row.get("fits")?)))?.collect()
    }

    /// Those that mean much the same, the likest.
    fn by_vector(
        &self,
        vector: Vector<'_>,
        project: &str,
        is_here: bool,
    ) -> rusqlite::Result<Vec<(Memory, f32)>> {
        let mut query = self
            .db
            .prepare("SELECT number, vector FROM memories WHERE model = ?1 AND (project = ?2) = ?3")?;
        let mut rows = query.query(params![vector.model, project, is_here])?;
        let mut found: Vec<(i64, f32)> = Vec::new();
        while let Some(row) = rows.next()? {
            let kept = row.get_ref(1)?.as_blob().map(unpacked).unwrap_or_default();
            if let Some(likeness) = cosine(vector.of, &kept) {
                found.push((row.get(0)?, likeness));
            }
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(MOST as usize);
        let mut query = self.db.prepare(&format!("SELECT {COLUMNS} FROM memories WHERE number = ?1"))?;
        let likest = found.into_iter();
        likest.map(|(number, likeness)| Ok((query.query_row([number], memory)?, likeness))).collect()
    }

    /// What holds for all that is done in the project.
    fn standing(&self, project: &str) -> rusqlite::Result<Vec<Memory>> {
        let mut query = self.db.prepare(&format!(
            "SELECT {COLUMNS} FROM memories WHERE project = ?1 AND kind = 'fact' AND origin = 'person'
             AND importance >= ?2 ORDER BY importance DESC, created_at DESC LIMIT ?3"
        ))?;
        query.query_map(params![project, STANDING, MOST], memory)?.collect()
    }

    pub fn is_empty(&self) -> rusqlite::Result<bool> {
        self.db.query_row("SELECT NOT EXISTS (SELECT 1 FROM memories)", [], |row| row.get(0))
    }

    /// Memories that have no vector of this model, the newest first.
    pub fn without_vector(&self, model: &str, most: u32) -> rusqlite::Result<Vec<Memory>> {
        let mut query = self.db.prepare(&format!(
            "SELECT {COLUMNS} FROM memories WHERE model IS NOT ?1 ORDER BY created_at DESC LIMIT ?2"
        ))?;
        query.query_map(params![model, most], memory)?.collect()
    }

    /// Keeps the vector of a memory, as long as that says what the vector was made of.
    pub fn keep_vector(&self, of: &Memory, vector: Vector<'_>) -> rusqlite::Result<()> {
        let packed: Vec<u8> = vector.of.iter().flat_map(|number| number.to_le_bytes()).collect();
        let given = params![of.id.as_str(), of.text, vector.model, packed];
        self.db.execute("UPDATE memories SET model = ?3, vector = ?4 WHERE id = ?1 AND text = ?2", given)?;
        Ok(())
    }
}

fn unpacked(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// The columns, if another table has one of the same name.
fn of_memories() -> String {
    COLUMNS.split(", ").map(|column| format!("memories.{column}")).collect::<Vec<_>>().join(", ")
}
