//! A loop of another machine, as a git remote has it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Millis;

/// Where the copy of a loop comes from, and how old it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteCopy {
    /// The address of the remote.
    pub remote: String,
    /// When the remote last said so.
    pub at: Timestamp,
    /// The machine that has taken the loop over from the remote; left out if it lies there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

impl RemoteCopy {
    /// How old it is, and where it is from, in words.
    pub fn age(&self, now: Timestamp) -> String {
        let age = Millis::from(now.duration_since(self.at).unsigned_abs());
        let holder = self.holder.as_ref().map(|holder| format!("; {holder} has taken it over"));
        format!("as of {age} ago, at {}{}", self.remote, holder.unwrap_or_default())
    }
}
