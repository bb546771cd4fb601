use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Millis> for Duration {
    fn from(Millis(ms): Millis) -> Self {
        Duration::from_millis(ms)
    }
}

impl From<Duration> for Millis {
    /// Rounds down; the longest duration becomes the largest number.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    /// As a person would say it: `0.4s`, `12s`, `2m 15s`, `1h 5m`, `3d 4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0 / 1000;
        match s {
            0..10 => write!(f, "{s}.{}s", self.0 % 1000 / 100),
            10..60 => write!(f, "{s}s"),
            60..3600 => write!(f, "{}m {}s", s / 60, s % 60),
            3600..86400 => write!(f, "{}h {}m", s / 3600, s % 3600 / 60),
            _ => write!(f, "{}d {}h", s / 86400, s % 86400 / 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (ms, shown) in [
            (0, "0.0s"),
            (449, "0.4s"),
            (9_999, "9.9s"),
            (59_999, "59s"),
            (135_000, "2m 15s"),
            (3_900_000, "1h 5m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(Millis(ms).to_string(), shown);
        }
    }
}
