//! Counts over all seeds. A simulation that never reaches a corner proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(&'static str, &'static str), u64>);

impl Tally {
    pub(crate) fn add(&mut self, group: &'static str, what: &'static str) {
        *self.0.entry((group, what)).or_default() += 1;
    }

    pub(crate) fn count(&self, group: &'static str, what: &'static str) -> u64 {
        self.0.get(&(group, what)).copied().unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    /// The bounds are those of 10,000 seeds; fewer have to show proportionally less.
    pub(crate) fn assert_covers(&self, covered: &[(&'static str, &'static str, u64)], seeds: u64) {
        for (group, what, least) in covered {
            let (count, least) = (self.count(group, what), least * seeds.min(10_000) / 10_000);
            assert!(count >= least, "too few cases of {group} {what}: {count}, not {least}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|((group, what), count)| writeln!(f, "{count:>8}  {group} {what}"))
    }
}
