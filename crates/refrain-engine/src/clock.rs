//! The only clock. Everything else gets the time as a value.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use refrain_agents::adapter::Clock;

/// Now, to the millisecond: more would only make journals longer.
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this module is the home of the clock")]
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// The same, for parsers of wall-clock times in the output of programs.
pub(crate) static ON_THE_WALL: LazyLock<Clock> = LazyLock::new(|| Clock { now, zone: TimeZone::system() });
