//! Which memories matter to a goal, and in which order: words and vectors, fused by reciprocal rank, weighed by how
//! durable and how recent each is (seed 003). Memories of the goal's own project come before all others.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::keywords::{keywords, stem};
use super::{Memory, MemoryId};

/// The lead of the first of a ranking: the usual constant of reciprocal rank fusion.
const K: f64 = 60.0;
/// The place that a standing fact has at least.
const STANDING_PLACE: f64 = 20.0;

/// How similar a memory without a common word must be to a goal, to be given; the same for one of another project.
/// Models differ in what they call similar: these are above what the usual ones give to unrelated texts.
const ALIKE: f32 = 0.6;
const ALIKE_ELSEWHERE: f32 = 0.7;

const DAY: f64 = 24.0 * 60.0 * 60.0;
/// Within which a memory, and its last use, lose all but a third of their freshness, in seconds.
const FADES: f64 = 14.0 * DAY;
const USE_FADES: f64 = 21.0 * DAY;
/// As often used is as good as it gets.
const MANY_USES: f64 = 20.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub memory: Memory,
    /// How well its words fit the goal's: lower is better, as SQLite's BM25 has it. None if they do not.
    pub bm25: Option<f64>,
    /// How similar it is to the goal by its vector, from -1 to 1; none if unknown.
    pub likeness: Option<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RankedMemory {
    pub memory: Memory,
    /// It has something to do with the goal; no loop gets one that has not.
    pub is_relevant: bool,
    /// It matches the search words, however little: shown to a person who searches.
    pub fits: bool,
    /// How much it matters, against the others of the same ranking.
    pub score: f64,
    /// How durable it is, from 0 to 1.
    pub durability: f64,
    /// How recent it is, from 0 to 1.
    pub recency: f64,
}

/// Puts what was found for a goal in order, the best first.
pub fn rank(hits: Vec<Hit>, goal: &str, project: &str, now: Timestamp) -> Vec<RankedMemory> {
    let by_words = places(&hits, |hit| hit.bm25);
    let by_vector = places(&hits, |hit| hit.likeness.map(|likeness| -f64::from(likeness)));
    let stems: BTreeSet<String> = keywords(goal).iter().map(|word| stem(word).to_owned()).collect();
    let place = |places: &[MemoryId], id: &MemoryId| places.iter().position(|other| other == id);
    let mut ranked: Vec<RankedMemory> = hits
        .into_iter()
        .map(|hit| {
            let places = [place(&by_words, &hit.memory.id), place(&by_vector, &hit.memory.id)];
            let found = places.into_iter().flatten();
            #[expect(clippy::cast_precision_loss, reason = "places are few")]
            let fused: f64 = found.map(|place| 1.0 / (K + 1.0 + place as f64)).sum();
            let fused = if hit.memory.is_standing() { fused.max(1.0 / (K + STANDING_PLACE)) } else { fused };
            let (durability, recency) = (durability(&hit.memory, now), recency(&hit.memory, now));
            RankedMemory {
                is_relevant: is_relevant(&hit, &stems, project),
                fits: hit.bm25.is_some() || hit.likeness.is_some_and(|likeness| likeness >= ALIKE),
                score: fused * (1.0 + durability + recency),
                durability,
                recency,
                memory: hit.memory,
            }
        })
        .collect();
    ranked.sort_by(|a, b| {
        let here = |it: &RankedMemory| it.memory.project == project;
        let order = here(b).cmp(&here(a)).then(b.score.total_cmp(&a.score));
        order.then_with(|| a.memory.id.cmp(&b.memory.id))
    });
    ranked
}

/// The memories of a ranking, by its values, the lowest first.
fn places(hits: &[Hit], by: impl Fn(&Hit) -> Option<f64>) -> Vec<MemoryId> {
    let mut known: Vec<_> = hits.iter().filter_map(|hit| Some((by(hit)?, &hit.memory.id))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    known.into_iter().map(|(_, id)| id.clone()).collect()
}

/// Whether it has something to do with the goal: it shares enough words with it, or means much the same. Of another
/// project more is asked.
fn is_relevant(hit: &Hit, goal: &BTreeSet<String>, project: &str) -> bool {
    let memory = &hit.memory;
    let is_here = memory.project == project;
    if is_here && memory.is_standing() {
        return true;
    }
    let alike = if is_here { ALIKE } else { ALIKE_ELSEWHERE };
    if hit.likeness.is_some_and(|likeness| likeness >= alike) {
        return true;
    }
    let own = keywords_of(&memory.text);
    let shared = goal.intersection(&own).count();
    let asked = match goal.len() {
        0 => return false,
        1..=3 => 1,
        many => 2.max(many / 8),
    };
    shared >= asked + usize::from(!is_here)
}

/// All words that a memory is about, in their compared form.
fn keywords_of(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).map(|word| stem(word).to_owned()).collect()
}

fn durability(memory: &Memory, now: Timestamp) -> f64 {
    let used = (f64::from(memory.uses).ln_1p() / MANY_USES.ln_1p()).min(1.0);
    0.55 * memory.importance + 0.30 * used + 0.15 * faded(memory.created_at, now, FADES)
}

fn recency(memory: &Memory, now: Timestamp) -> f64 {
    let used = memory.used_at.map_or(0.0, |at| faded(at, now, USE_FADES));
    faded(memory.created_at, now, FADES).max(used)
}

fn faded(since: Timestamp, now: Timestamp, within: f64) -> f64 {
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (-age.as_secs_f64() / within).exp()
}

/// How similar two vectors are; none if they have other lengths, or no direction.
pub fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    if a.len() != b.len() {
        return None;
    }
    let (mut dot, mut of_a, mut of_b) = (0.0f32, 0.0f32, 0.0f32);
    for (a, b) in a.iter().zip(b) {
        dot += a * b;
        of_a += a * a;
        of_b += b * b;
    }
    let length = (of_a * of_b).sqrt();
    let cosine = dot / length;
    (length > 0.0 && cosine.is_finite()).then_some(cosine)
}
