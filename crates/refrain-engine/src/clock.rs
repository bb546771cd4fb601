//! The only clock. Everything else gets the time as a value.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};

/// Now, to the millisecond: more would only make journals longer.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this module is the home of the clock")]
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// The same, in the machine's own zone.
#[must_use]
pub(crate) fn local() -> Zoned {
    now().to_zoned(TimeZone::system())
}
