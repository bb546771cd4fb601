//! Times and sums for pages.

mod chart;
pub(super) mod loop_charts;

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use refrain_core::spec::Millis;
use refrain_core::text::grouped;
use refrain_core::view;
use refrain_engine::now;

pub(super) use self::chart::{Chart, Point, Unit};

/// A moment as HTML: how long ago it was, with the time by the clock of this machine. A script keeps it current and shows the local time.
pub(super) struct Moment(pub(super) Timestamp);

impl Moment {
    pub(super) fn clock(&self) -> String {
        clock(self.0)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.clock();
        let ago = ago(Millis::from(now().duration_since(self.0).unsigned_abs()));
        write!(f, "<time datetime=\"{}\" title=\"{full}\">{ago}</time>", self.0)
    }
}

/// A moment by the clock of this machine.
pub(super) fn clock(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// In the largest unit, as lists have room for.
fn ago(Millis(ms): Millis) -> String {
    match ms / 1000 {
        0..5 => "just now".to_owned(),
        seconds @ 5..60 => format!("{seconds}s ago"),
        seconds @ 60..3_600 => format!("{}m ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h ago", seconds / 3_600),
        seconds => format!("{}d ago", seconds / 86_400),
    }
}

pub(super) fn money(usd: Option<f64>, at_least: bool) -> String {
    let mark = if at_least { "≥ " } else { "" };
    usd.map_or_else(
        || "–".to_owned(),
        |usd| {
            let text = format!("{:.2}", usd.abs());
            let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
            let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
            format!("{mark}{}${whole}.{cents}", if usd < 0.0 { "-" } else { "" })
        },
    )
}

/// What was spent, with its limit.
pub(super) struct Meter {
    pub(super) says: String,
    /// How much of the limit that is, and the limit, in cents; none without a limit.
    pub(super) part: Option<(u64, u64)>,
}

impl Meter {
    /// None if neither is known.
    pub(super) fn of(cost: Option<f64>, at_least: bool, cap: Option<f64>) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no limit is so large")]
        let cents = |usd: f64| (usd * 100.0).round() as u64;
        let says = match (view::money(cost, at_least), cap) {
            (None, None) => return None,
            (_, None) => money(cost, at_least),
            (_, Some(cap)) => format!("{} of ${cap:.2}", money(cost.or(Some(0.0)), at_least)),
        };
        let part = cap.map(|cap| (cents(cost.unwrap_or_default()).min(cents(cap)), cents(cap)));
        Some(Self { says, part })
    }
}

pub(super) fn files(count: usize) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { "file" } else { "files" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_largest_unit() {
        for (seconds, said) in
            [(0, "just now"), (59, "59s ago"), (119, "1m ago"), (7_300, "2h ago"), (90_000, "1d ago")]
        {
            assert_eq!(ago(Millis(seconds * 1000)), said);
        }
    }

    #[test]
    fn a_meter_shows_the_spent_part_of_its_limit() {
        let said = |cost, cap| Meter::of(cost, false, cap).map(|meter| (meter.says, meter.part));
        assert_eq!(said(Some(1.25), Some(5.0)), Some(("$1.25 of $5.00".to_owned(), Some((125, 500)))));
        assert_eq!(said(Some(1.25), None), Some(("$1.25".to_owned(), None)));
        assert_eq!(said(None, Some(5.0)), Some(("$0.00 of $5.00".to_owned(), Some((0, 500)))));
        assert_eq!(said(None, None), None);
    }
}
