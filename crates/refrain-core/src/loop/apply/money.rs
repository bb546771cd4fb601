//! How the usage of agents is counted: attempts, reviewers and critics alike.

use super::super::state::{JudgeUsage, LoopState};
use crate::agent::{AgentReport, Scope, Tokens, Usage, Usd};
use crate::spec::AgentSpec;

impl LoopState {
    /// The usage of an attempt, from totals that may be those of its whole session.
    pub(in crate::r#loop) fn account(&mut self, agent: &AgentSpec, report: Option<&AgentReport>) -> Usage {
        let Some(report) = report else {
            return Usage::of_run(None, None, false);
        };
        // A session that began with this attempt used nothing before; of another session only what it reported is
        // known.
        let known = report.session.id.as_ref().and_then(|id| self.sessions.get(id)).copied();
        let fresh = !report.resumed && known.is_none();
        let tokens_before = known.and_then(|(tokens, _)| tokens).or(fresh.then(Tokens::default));
        let cost_before = known.and_then(|(_, cost)| cost).or(fresh.then(Usd::default));
        let tokens = match report.tokens {
            Some((Scope::Attempt, tokens)) => Some(tokens),
            Some((Scope::Session, all)) => tokens_before.map(|before| all.since(before)),
            None => None,
        };
        let used_tokens = matches!(report.tokens, Some((Scope::Attempt, tokens)) if tokens.counted() > 0);
        let cost = match report.cost {
            Some((Scope::Attempt, cost)) => Some(cost),
            // A sum that does not grow although tokens were used is none of the session.
            Some((Scope::Session, Usd(all))) => {
                cost_before.map(|Usd(before)| match all.saturating_sub(before) {
                    0 if used_tokens => Usd(all),
                    more => Usd(more),
                })
            }
            None => None,
        };
        if let Some(id) = &report.session.id {
            let of_session = |scope: Scope| scope == Scope::Session;
            let all_tokens = report.tokens.filter(|(of, _)| of_session(*of)).map(|(_, tokens)| tokens);
            let all_cost = report.cost.filter(|(of, _)| of_session(*of)).map(|(_, cost)| cost);
            let known = self.sessions.entry(id.clone()).or_default();
            *known = (all_tokens.or(known.0), all_cost.or(known.1));
        }
        agent.priced(Usage::of_run(tokens, cost, report.is_final))
    }

    /// The usage of a reviewer or a critic is the loop's, too.
    pub(in crate::r#loop) fn spend(&mut self, agent: &AgentSpec, report: Option<&AgentReport>) -> Usage {
        let used = self.account(agent, report);
        if report.is_none() || used.tokens.counted() > 0 {
            self.assume_cost(agent, used);
        }
        self.spent = self.spent + used;
        self.costs.push(used.cost);
        let said = report.and_then(|report| report.session.model.clone());
        let model = said.or_else(|| agent.model.clone());
        let pool = report.and_then(|report| report.pool.clone());
        self.judged.push(JudgeUsage { at: self.updated_at, model, pool, usage: used });
        // One that its provider failed was cut off, too.
        let report = report.filter(|report| report.fault.is_none());
        self.cost_unknown |= withholds_cost(report, used);
        self.untold_judges = match used.cost {
            Some(_) => 0,
            None => self.untold_judges + u32::from(used.tokens.counted() > 0),
        };
        used
    }

    /// What an agent that worked did not report counts against the loop's own cap like a reservation that no one settled:
    /// as much as would be reserved for it, and no more than was left.
    pub(super) fn assume_cost(&mut self, agent: &AgentSpec, used: Usage) {
        if used.cost.is_none() && agent.tells_cost() {
            let likely = self.to_reserve(agent);
            let counted = self.budget().map_or(likely, |left| left.min(likely));
            self.assumed = self.assumed.plus(counted);
        }
    }
}

/// Whether an agent reported all that it will, but not its cost: a cap on money cannot be kept then. One that was cut
/// off might have reported it.
pub(super) fn withholds_cost(report: Option<&AgentReport>, used: Usage) -> bool {
    used.cost.is_none() && report.is_some_and(|report| report.is_final)
}
