//! How much a loop reserves before it starts an agent, and when it asks for more.

use crate::agent::Usd;
use crate::r#loop::LoopState;
use crate::spec::{AgentKind, AgentSpec};

/// What is reserved where nothing is known yet, and by how much a reservation grows.
pub(super) const STEP: Usd = Usd(1_000_000_000);
/// The least that is reserved for an agent that is handed its reservation as a budget of its own and says what it cost
/// only at its end: it can ask for no more on the way, and one that is stopped half-way has cost its money for nothing.
pub(super) const ROOM: Usd = Usd(5_000_000_000);
/// How many of the last attempts tell what the next is likely to cost.
const LAST: usize = 5;

impl AgentSpec {
    /// Whether it keeps to a budget that it is told, which is then all that stops it in time.
    fn takes_a_budget(&self) -> bool {
        self.kind == AgentKind::Claude && self.price.is_none()
    }
}

impl LoopState {
    /// What its next attempt is likely to cost at most: a quarter more than the dearest of the last ones.
    #[must_use]
    pub fn to_reserve(&self) -> Usd {
        let known = self.attempts.iter().rev().filter_map(|attempt| attempt.usage.cost);
        let dearest = known.take(LAST).filter(|cost| *cost > Usd(0)).max();
        let likely = dearest.map_or(STEP, |Usd(cost)| Usd(cost.saturating_add(cost / 4)));
        if self.spec.agent.takes_a_budget() { likely.max(ROOM) } else { likely }
    }
}

/// Up to what a reservation of `amount` is to grow now that so much is used; none while that has time. The next thing that
/// the agent says may cost as much as a quarter of a step: room for it is made before it is needed.
#[must_use]
pub fn to_grow(used: Usd, amount: Usd) -> Option<Usd> {
    let is_close = used.0.saturating_add(STEP.0 / 4) >= amount.0;
    is_close.then(|| Usd(used.0.saturating_add(STEP.0)))
}
