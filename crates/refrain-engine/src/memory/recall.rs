//! The memories of earlier loops in a loop's prompt: found once, by its goal, before it begins, and pinned in its
//! specification.

use refrain_core::Spec;
use refrain_core::memory::{MemorySpec, goal, rank, select};
use refrain_store::memory::{self, Vector};

use super::embeddings::{Embedder, catch_up};
use crate::{Host, chain, now};

/// Recalls what has to do with the loop's goal, if its prompt is to have memories. Answers with what went wrong: the
/// loop begins all the same, with less.
pub(crate) fn recall(host: &Host, spec: &mut Spec) -> Option<String> {
    if !spec.iteration_context {
        return None;
    }
    let mut told = spec.memory.take()?;
    let trouble = fill(host, spec, &mut told);
    spec.memory = Some(told);
    trouble
}

fn fill(host: &Host, spec: &Spec, told: &mut MemorySpec) -> Option<String> {
    let goal = goal(spec);
    let (goal, project) = (goal.as_str(), spec.project.as_str());
    // The variables of an attempt were set for its agent.
    let (embedder, mut trouble) = Embedder::of(host, spec.depth == 0);
    let mut vector = None;
    if let Some(embedder) = &embedder {
        match catch_up(embedder, &host.data_home, goal) {
            Ok(of) => vector = of,
            Err(error) => trouble = Some(chain(&error)),
        }
    }
    let of = vector.as_ref().zip(embedder.as_ref());
    let vector = of.map(|(of, embedder)| Vector { model: embedder.model(), of });
    let found = memory::look(&host.data_home, |file| file.find(goal, project, true, vector));
    match found {
        Ok(hits) => {
            let ranked = rank(hits.unwrap_or_default(), goal, project, now());
            told.recalled = select(&ranked, told.budget, project);
        }
        Err(error) => return Some(chain(&error)),
    }
    trouble
}

/// Notes which memories are in the prompt of a loop that exists by now. A failure does not keep the loop from starting.
pub(crate) fn note_use(host: &Host, spec: &Spec) {
    let told = spec.memory.iter().flat_map(|memory| &memory.recalled).map(|it| &it.id);
    if told.clone().next().is_some() {
        let _ = memory::look(&host.data_home, |file| file.used(told, now()));
    }
}
