//! What a new loop is likely to take, from similar ones.

use std::fmt;

use crate::spec::Millis;
use crate::view::StatusWord;

/// A loop that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastLoop {
    pub iterations: u32,
    pub cost_usd: Option<f64>,
    pub duration: Millis,
    pub is_verified: bool,
}

/// The range of the middle half of similar loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    pub loops: usize,
    pub verified: usize,
    pub iterations: (u32, u32),
    pub duration: (Millis, Millis),
    /// Of the loops whose cost is known.
    pub cost_usd: Option<(f64, f64)>,
}

impl PastLoop {
    /// Whether a loop with this status says what the next one may take: it ended by itself.
    #[must_use]
    pub fn is_basis(word: StatusWord) -> bool {
        use StatusWord::{BudgetExceeded, Completed, IterationCap, Stuck, TimedOut};
        matches!(word, Completed | IterationCap | BudgetExceeded | TimedOut | Stuck)
    }
}

impl Forecast {
    /// Fewer loops are no basis for a forecast.
    pub const LEAST: usize = 3;
    /// Older loops than so many say little about the next one.
    pub const MOST: usize = 50;

    /// None for too few loops.
    #[must_use]
    pub fn of(past: &[PastLoop]) -> Option<Self> {
        if past.len() < Self::LEAST {
            return None;
        }
        let costs: Vec<_> = past.iter().filter_map(|it| it.cost_usd).collect();
        Some(Self {
            loops: past.len(),
            verified: past.iter().filter(|it| it.is_verified).count(),
            iterations: middle(past.iter().map(|it| it.iterations).collect(), u32::cmp)?,
            duration: middle(past.iter().map(|it| it.duration).collect(), Millis::cmp)?,
            cost_usd: if costs.len() < Self::LEAST { None } else { middle(costs, f64::total_cmp) },
        })
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((low, high)) = self.cost_usd {
            write!(f, "{}, ", range(format!("${low:.2}"), format!("${high:.2}")))?;
        }
        let (few, many) = self.iterations;
        let s = if many == 1 { "" } else { "s" };
        write!(f, "{} iteration{s}, ", range(few.to_string(), many.to_string()))?;
        let time = range(self.duration.0.to_string(), self.duration.1.to_string());
        write!(f, "{time}; {} of {} verified", self.verified, self.loops)
    }
}

fn range(least: String, most: String) -> String {
    if least == most { least } else { format!("{least}–{most}") }
}

/// The least and the most without the lowest and the highest quarter.
fn middle<T: Copy>(mut values: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<(T, T)> {
    values.sort_by(order);
    let last = values.len().checked_sub(1)?;
    Some((values[last / 4], values[last - last / 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_leaves_out_the_extremes() {
        let past = |iterations: u32| PastLoop {
            iterations,
            cost_usd: Some(f64::from(iterations) / 2.0),
            duration: Millis(u64::from(iterations) * 60_000),
            is_verified: iterations > 1,
        };
        let all: Vec<_> = [90, 1, 3, 2, 4, 5].map(past).into();
        let forecast = Forecast::of(&all).unwrap();
        assert_eq!(forecast.to_string(), "$1.00–$2.50, 2–5 iterations, 2m 0s–5m 0s; 5 of 6 verified");
        assert_eq!(Forecast::of(&all[..2]), None);
        let unknown = PastLoop { cost_usd: None, ..past(1) };
        let forecast = Forecast::of(&[unknown; 3]).unwrap();
        assert_eq!(forecast.to_string(), "1 iteration, 1m 0s; 0 of 3 verified");
    }
}
