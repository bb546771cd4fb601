//! How much of what matters is given: by kind, within the budget (seed 003).

use camino::Utf8Path;

use super::{Kind, RankedMemory, RecalledMemory};

/// About how many bytes make a token.
const TOKEN: usize = 4;
/// The tokens of the section itself, and of each memory beside its words.
const FRAME: usize = 120;
const BESIDE: usize = 10;

const MOST_FACTS: usize = 20;
const MOST_EPISODES: usize = 10;
/// The tokens that have to be left for episodes, and for a procedure.
const LEFT_FOR_EPISODES: usize = 500;
const LEFT_FOR_PROCEDURE: usize = 200;

/// What a loop gets of all that was ranked: facts first, then the results of earlier loops if there is room, then the
/// best procedure. What does not fit is skipped.
pub fn select(ranked: &[RankedMemory], budget: u32, project: &str) -> Vec<RecalledMemory> {
    let mut left = usize::try_from(budget).unwrap_or(usize::MAX).saturating_sub(FRAME);
    let mut told = Vec::new();
    for kind in Kind::ALL {
        let (most, least) = match kind {
            Kind::Fact => (MOST_FACTS, 0),
            Kind::Episode => (MOST_EPISODES, LEFT_FOR_EPISODES),
            Kind::Procedure => (1, LEFT_FOR_PROCEDURE),
        };
        if left <= least {
            continue;
        }
        let worth = ranked.iter().filter(|it| it.is_relevant && it.memory.kind == kind && is_worth_it(it));
        let mut count = 0;
        for it in worth {
            let cost = it.memory.text.len().div_ceil(TOKEN) + BESIDE;
            if count < most && cost <= left {
                (left, count) = (left - cost, count + 1);
                told.push(recalled(it, project));
            }
        }
    }
    told
}

/// Of loops' results only those that mattered, were useful, or are still worth something.
fn is_worth_it(it: &RankedMemory) -> bool {
    match it.memory.kind {
        Kind::Fact | Kind::Procedure => true,
        Kind::Episode => {
            let worth = 0.6 * it.durability + 0.4 * it.recency;
            it.memory.importance >= 0.85 || it.memory.uses >= 3 || worth >= 0.25
        }
    }
}

fn recalled(it: &RankedMemory, project: &str) -> RecalledMemory {
    let memory = &it.memory;
    let folder = || Utf8Path::new(&memory.project).file_name().unwrap_or("another").to_owned();
    RecalledMemory {
        id: memory.id.clone(),
        kind: memory.kind,
        text: memory.text.clone(),
        at: memory.created_at,
        elsewhere: (memory.project != project).then(folder),
    }
}
