//! The part of a specification on files of other systems.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The counter of another system that a loop continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedCounter {
    /// The file that said it.
    pub from: String,
    /// How many iterations were counted there.
    pub iteration: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorName {
    Loop(Mirror),
    /// `.scud/loop-state.json` (seed 001), which shows a plan.
    Scud,
}

/// A format of another system that Refrain writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mirror {
    /// `.ralph_state.json` and `.ralph_context.md` in the working folder (seed 004).
    Ralph,
    /// `.synthex/loops/<id>.json` (seed 000).
    Synthex,
    /// `.descartes/loop-state.json` (seed 001).
    Descartes,
    /// `loop.local.md` (seed 002).
    Randroid,
}

impl Mirror {
    pub const ALL: [Self; 4] = [Self::Ralph, Self::Synthex, Self::Descartes, Self::Randroid];
}

impl FromStr for MirrorName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "scud" => Ok(Self::Scud),
            _ => text
                .parse()
                .map(Self::Loop)
                .map_err(|accepted: String| format!("{accepted}; scud for a plan")),
        }
    }
}

impl FromStr for Mirror {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = || format!("accepted: {}", Self::ALL.map(|mirror| mirror.to_string()).join(", "));
        Self::ALL.into_iter().find(|mirror| mirror.to_string() == text).ok_or_else(accepted)
    }
}
