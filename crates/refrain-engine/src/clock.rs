//! The only clock. Everything else gets the time as a value.

use jiff::{Timestamp, Unit};

/// Now, to the millisecond: more would only make journals longer.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this module is the home of the clock")]
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}
