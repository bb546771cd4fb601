//! What a model's tokens cost, if the agent itself does not say: a price from the configuration, pinned in the
//! specification, and exact sums. Which loop may have a cap on money is decided in [`crate::spec::AgentSpec::admits`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{Tokens, Usd};

/// What one million tokens of a model cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// In.
    pub input: Usd,
    /// In, read from a cache.
    pub cached_input: Usd,
    /// Out, reasoning included.
    pub output: Usd,
}

impl Price {
    /// The cost of the tokens, rounded up to a billionth of a dollar; none if not all of them are known, as a part
    /// would pass for the whole.
    pub fn of(self, tokens: Tokens) -> Option<Usd> {
        const MILLION: u128 = 1_000_000;
        let (all, output) = (tokens.input?, tokens.output?);
        // An agent that says nothing of a cache may have used one: then the sum is too high, never too low.
        let cached = tokens.cached_input.unwrap_or(0).min(all);
        let cost = |count: u64, Usd(each): Usd| u128::from(count) * u128::from(each);
        let sum = cost(all - cached, self.input)
            .saturating_add(cost(cached, self.cached_input))
            .saturating_add(cost(output, self.output));
        Some(Usd(u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// $1.25, $0.125 and $10 for a million.
    const PRICE: Price =
        Price { input: Usd(1_250_000_000), cached_input: Usd(125_000_000), output: Usd(10_000_000_000) };

    fn tokens(input: Option<u64>, cached_input: Option<u64>, output: Option<u64>) -> Tokens {
        Tokens { input, cached_input, output }
    }

    #[rstest]
    #[case::everything(tokens(Some(1_000_000), Some(400_000), Some(100_000)), Some(1_800_000_000))]
    #[case::no_cache_told(tokens(Some(1_000_000), None, Some(0)), Some(1_250_000_000))]
    #[case::one_token(tokens(Some(1), None, Some(0)), Some(1_250))]
    #[case::rounded_up(tokens(Some(1), Some(1), Some(1)), Some(10_125))]
    #[case::nothing_used(tokens(Some(0), Some(0), Some(0)), Some(0))]
    #[case::more_cached_than_there_is(tokens(Some(8), Some(80), Some(0)), Some(1_000))]
    #[case::output_unknown(tokens(Some(5), None, None), None)]
    #[case::input_unknown(tokens(None, None, Some(5)), None)]
    #[case::nothing_known(Tokens::default(), None)]
    fn tokens_are_priced_by_kind(#[case] tokens: Tokens, #[case] cost: Option<u64>) {
        assert_eq!(PRICE.of(tokens), cost.map(Usd));
    }

    #[test]
    fn parts_of_a_billionth_are_rounded_up() {
        let cheap = Price { input: Usd(1), cached_input: Usd(1), output: Usd(1) };
        assert_eq!(cheap.of(tokens(Some(1), None, Some(0))), Some(Usd(1)));
        assert_eq!(cheap.of(tokens(Some(1_000_000), None, Some(1))), Some(Usd(2)));
    }

    proptest! {
        #[test]
        fn no_number_overflows_and_more_never_costs_less(
            a: u64, b: u64, c: u64, input: u64, cached: u64, output: u64
        ) {
            let price = Price { input: Usd(input), cached_input: Usd(cached), output: Usd(output) };
            let cost = price.of(tokens(Some(a), Some(b), Some(c)));
            prop_assert!(cost.is_some());
            prop_assert!(price.of(tokens(Some(a), Some(b), Some(c.saturating_add(1)))) >= cost);
        }
    }
}
