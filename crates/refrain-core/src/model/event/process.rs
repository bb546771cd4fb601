use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process, for as long as the machine runs: a pid alone is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// A process, for ever and everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// The process on its machine.
    pub process: Process,
    /// Which run of that machine.
    pub boot: String,
    /// Which machine.
    pub host: String,
}
