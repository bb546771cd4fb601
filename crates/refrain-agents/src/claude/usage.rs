//! The usage of a run of Claude Code: exact up to its last result, a lower bound since.

use std::collections::{BTreeMap, VecDeque};

use refrain_core::agent::{Tokens, Usd};

use super::wire::{ModelUsage, Outcome, Usage};

/// How many messages are tracked separately. Events of one message are close together in the stream, but sub-agents
/// interleave.
const OPEN_MESSAGES: usize = 64;

/// The usage of a run, from the messages' own counts and from its results.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The exact part: all results so far.
    settled: Option<Count>,
    /// Messages since the last result that will not be reported again.
    closed: Option<Count>,
    /// Messages since the last result, by id. Each is reported once per block, and again when it ends.
    open: VecDeque<(String, Count)>,
    /// The cost of all results so far, if each of them reported one.
    cost: KnownCost,
}

/// A sum of money that is known only if every part of it is.
#[derive(Clone, Copy, Debug)]
enum KnownCost {
    All(Usd),
    NotAll,
}

impl Default for KnownCost {
    fn default() -> Self {
        Self::All(Usd(0))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    input: u64,
    cached: u64,
    output: u64,
}

impl Meter {
    /// A message with its usage so far. The first output count is a start value, and later ones are never smaller.
    pub(super) fn message(&mut self, id: &str, usage: Usage) {
        let said = Count::from(usage);
        if let Some((_, count)) = self.open.iter_mut().find(|(known, _)| known == id) {
            *count = count.max(said);
            return;
        }
        self.open.push_back((id.to_owned(), said));
        if self.open.len() > OPEN_MESSAGES
            && let Some((_, count)) = self.open.pop_front()
        {
            self.closed = Some(self.closed.unwrap_or_default().plus(count));
        }
    }

    /// A result with the usage since the last one; it replaces the messages' counts.
    pub(super) fn result(&mut self, outcome: &Outcome) {
        let models = outcome.model_usage_since_last_result.as_ref();
        let all = models
            .map(|models| models.values().map(|&usage| usage.into()).fold(Count::default(), Count::plus));
        let said = all.or(outcome.usage.map(Count::from)).or(self.since());
        if let Some(said) = said {
            self.settled = Some(self.settled.unwrap_or_default().plus(said));
        }
        self.closed = None;
        self.open.clear();
        self.cost = match (self.cost, models.and_then(cost)) {
            (KnownCost::All(Usd(before)), Some(Usd(more))) => {
                KnownCost::All(Usd(before.saturating_add(more)))
            }
            (KnownCost::NotAll, _) | (_, None) => KnownCost::NotAll,
        };
    }

    /// The cost of this run, without earlier runs of its session; none if a result did not report it.
    pub(super) fn cost(&self) -> Option<Usd> {
        match self.cost {
            KnownCost::All(usd) => Some(usd),
            KnownCost::NotAll => None,
        }
    }

    pub(super) fn tokens(&self) -> Option<Tokens> {
        let Count { input, cached, output } = match (self.settled, self.since()) {
            (Some(settled), Some(since)) => settled.plus(since),
            (one, other) => one.or(other)?,
        };
        Some(Tokens { input: Some(input), cached_input: Some(cached), output: Some(output) })
    }

    fn since(&self) -> Option<Count> {
        let open = self.open.iter().map(|&(_, count)| count);
        open.chain(self.closed).reduce(Count::plus)
    }
}

/// The cost of all models since the last result; an invalid amount is skipped: taken for 0, it would never reach a
/// cap.
fn cost(models: &BTreeMap<String, ModelUsage>) -> Option<Usd> {
    let costs = models.values().map(|usage| usage.cost_usd.filter(|dollars| *dollars >= 0.0));
    costs.sum::<Option<f64>>().map(Usd::from)
}

impl Count {
    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            output: self.output.max(other.output),
        }
    }

    /// Their input excludes tokens written to the cache and read from it; ours includes them.
    fn of(input: Option<u64>, written: Option<u64>, read: Option<u64>, output: Option<u64>) -> Self {
        let [input, written, read, output] = [input, written, read, output].map(Option::unwrap_or_default);
        Self { input: input.saturating_add(written).saturating_add(read), cached: read, output }
    }
}

impl From<Usage> for Count {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
            usage;
        Self::of(input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens)
    }
}

impl From<ModelUsage> for Count {
    fn from(usage: ModelUsage) -> Self {
        let ModelUsage {
            input_tokens,
            cache_creation_input_tokens,
            cache_read_input_tokens,
            output_tokens,
            cost_usd: _,
        } = usage;
        Self::of(input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens)
    }
}
