//! When a loop is over by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Until when a loop goes on (`--loop`, `--iterations N`, `--infinite`; seed 002). How many iterations it has stands in
/// [`super::Limits`], whatever is said here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Until it claims to be done, and that is proven.
    #[default]
    Complete,
    /// Until its iterations are used up: a claim counts in the last of them, and ends nothing before that.
    Count,
    /// For as long as nobody, and no limit, stops it: a claim says that there is nothing to do now, and is waited behind.
    Forever,
}

impl Until {
    /// Whether it is what loops do anyway.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}
