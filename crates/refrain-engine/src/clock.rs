//! The only clock. Everything else gets the time as a value.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use refrain_agents::adapter::Clock;

/// Now, to the millisecond: more would only make journals longer.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this module is the home of the clock")]
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// The same, for readers of what programs say of a clock on the wall.
pub(crate) static ON_THE_WALL: LazyLock<Clock> = LazyLock::new(|| Clock { now, zone: TimeZone::system() });
