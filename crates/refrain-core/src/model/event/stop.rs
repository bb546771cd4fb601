use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an attempt is ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// `cancel --now`.
    Cancel,
    /// `pause --now`, a second Ctrl-C, SIGTERM, SIGHUP.
    Interrupt,
    /// The attempt's time limit.
    TimeLimit,
    /// The attempt's silence limit.
    Silence,
    /// The loop's own duration.
    LoopDuration,
    /// What it prints cannot be kept: a full disk, most likely. One that works on unrecorded is worse than one that is
    /// ended.
    OutputLost,
    /// It used up the loop's money or tokens.
    Budget,
    /// Its program sleeps until its provider takes requests again: the loop waits for that without it.
    ProviderWait,
}
