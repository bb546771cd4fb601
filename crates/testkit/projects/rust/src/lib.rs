//! Spans of time as people write them.
//!
//! ```
//! assert_eq!(spans::parse("90s"), Ok(90));
//! ```

mod human;
mod parse;

pub use human::human;
pub use parse::{parse, Error};

/// Letters of units and the seconds in each, the longest first.
pub(crate) const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
