//! Times and sums as text for pages.

use jiff::Timestamp;
use refrain_core::spec::Millis;
use refrain_core::view::sum;

/// When it was: to the second, and how long ago.
pub(super) fn at(then: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", then.strftime("%Y-%m-%d %H:%M:%S UTC"), ago(then, now))
}

pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", Millis::from(now.duration_since(then).unsigned_abs()))
}

pub(super) fn money(usd: Option<f64>, at_least: bool) -> String {
    usd.map_or_else(|| "–".to_owned(), |usd| sum(&format!("${usd:.2}"), at_least))
}
