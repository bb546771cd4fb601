//! A loop of another machine, as a git remote has it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::LoopId;
use crate::spec::Millis;
use crate::text::printable;

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
    /// Whether the loop left this machine.
    #[serde(skip)]
    pub is_here: bool,
}

impl RemoteCopy {
    /// How this machine gets the loop, which lies at the remote or was taken over from there.
    pub fn needs(&self, id: &LoopId) -> String {
        let remote = printable(&self.remote);
        let from = format!("refrain move {id} --from {remote}");
        let away = match self.is_here {
            true => format!("; refrain archive {id} removes it from the list here"),
            false => String::new(),
        };
        match &self.holder {
            None => format!("{from} takes it over{away}"),
            Some(holder) => format!(
                "unless it is completed there, refrain move {id} --to {remote} on {}, then {from} here{away}",
                printable(holder)
            ),
        }
    }

    /// How old it is, and where it is from, in words.
    pub fn age(&self, now: Timestamp) -> String {
        let age = Millis::from(now.duration_since(self.at).unsigned_abs());
        let holder = self.holder.as_ref().map(|holder| format!("; {holder} has taken it over"));
        format!("as of {age} ago, at {}{}", self.remote, holder.unwrap_or_default())
    }
}
