//! How a loop uses the shared money: which steps cost money, how much is reserved for them, and when too little is
//! left.

use super::Allowance;
use crate::agent::{Usage, Usd};
use crate::event::{BlockReason, End};
use crate::r#loop::{ChildId, Live, LoopState, Step};
use crate::spec::{AgentKind, AgentSpec};

/// What is reserved if nothing is known yet, and by how much a reservation grows.
pub(super) const STEP: Usd = Usd(1_000_000_000);
/// The least that is reserved for an agent that gets its reservation as a budget of its own and reports its cost only
/// at its end: it can ask for no more on the way, and one that is stopped half-way has cost its money for nothing.
pub(super) const ROOM: Usd = Usd(5_000_000_000);
/// How many of the last agents are used to estimate the cost of the next.
const LAST: usize = 5;

impl AgentSpec {
    /// Whether it keeps to a budget that it is given, which is then the only thing that stops it in time. If its cost
    /// is known while it runs, its reservation grows instead.
    pub fn keeps_a_budget(&self) -> bool {
        self.kind == AgentKind::Claude && self.price.is_none()
    }

    /// Whether it reports its cost, itself or by a price.
    pub fn tells_cost(&self) -> bool {
        self.admits(true, false).is_ok()
    }
}

impl LoopState {
    /// The agent that costs money if this step is done, if there is one.
    pub fn costs_of(&self, step: &Step) -> Option<&AgentSpec> {
        match step {
            // A session pays for itself and does not report its cost.
            Step::BeginIteration { .. } | Step::Start(ChildId::Attempt(_)) => {
                self.session.is_none().then_some(&self.spec.agent)
            }
            Step::Start(child) => self.agent_of(*child),
            Step::TakeBase
            | Step::TakeCandidate
            | Step::Stop(_)
            | Step::Commit { .. }
            | Step::Intend(_)
            | Step::Publish(_)
            | Step::ChangeAgent
            | Step::SaveWork
            | Step::ReleaseWorktree
            | Step::Wait(_)
            | Step::Await { .. }
            | Step::Finish(_)
            | Step::Rest => None,
        }
    }

    pub fn runs(&self) -> Option<&AgentSpec> {
        self.agent_of(self.child()?.0)
    }

    /// How much is reserved for an agent of this loop: a quarter more than the dearest of the last ones that ran.
    pub fn to_reserve(&self, agent: &AgentSpec) -> Usd {
        let known = self.costs.iter().rev().flatten().take(LAST);
        let dearest = known.filter(|cost| **cost > Usd(0)).max();
        let likely = dearest.map_or(STEP, |Usd(cost)| Usd(cost.saturating_add(cost / 4)));
        if agent.keeps_a_budget() { likely.max(ROOM) } else { likely }
    }

    /// The cost of the running agent so far, as far as it reported.
    pub fn cost_so_far(&self, used: &Usage) -> Usd {
        self.runs().and_then(|agent| agent.priced(*used).cost).unwrap_or_default()
    }

    /// Whether the running agent has used all that it may: of the loop's own money and tokens, or of the shared money.
    pub(crate) fn is_overdrawn(&self, live: &Live) -> bool {
        let is_short = |allowance: Allowance| self.cost_so_far(&live.used) >= allowance.amount;
        live.used != Usage::default()
            && (self.is_over_budget(&live.used) || live.allowance.is_some_and(is_short))
    }

    /// What keeps this agent from being started under a shared cap.
    pub(crate) fn shortage(&self, agent: &AgentSpec, left: &Allowance) -> Option<End> {
        if !agent.tells_cost() {
            return Some(End::Blocked { why: BlockReason::CostUnknown });
        }
        let likely = if *agent == self.spec.agent { self.likely_use() } else { Usage::default() };
        let is_short = left.amount == Usd(0) || likely.cost.is_some_and(|likely| likely > left.amount);
        is_short.then_some(End::BudgetExceeded { by: Some(left.by) })
    }
}

/// Up to what a reservation of `amount` is to grow now that so much is used; none while that has time. The next thing
/// that the agent says may cost as much as a quarter of a step: room for it is made before it is needed.
pub fn to_grow(used: Usd, amount: Usd) -> Option<Usd> {
    let is_close = used.0.saturating_add(STEP.0 / 4) >= amount.0;
    is_close.then(|| Usd(used.0.saturating_add(STEP.0)))
}
