//! How the processes of agents, critics and gates ended.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::agent::AgentReport;
use crate::fingerprint::Fingerprint;
use crate::gate::{GateName, Verdict};
use crate::promise::NearMiss;
use crate::prompt::state_file::{StatusFault, WorkStatus};
use crate::sandbox::RefusedHost;
use crate::serde_default::is_default;
use crate::spec::Millis;
use crate::work::WorkDigest;

/// What the agent left behind when it ended. What it amounts to (a claim? charged?) is decided by the fold.
#[serde_with::apply(
    Option => #[serde(default, skip_serializing_if = "Option::is_none")],
    bool => #[serde(default, skip_serializing_if = "std::ops::Not::not")],
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptFinished {
    /// How its process ended.
    pub exit: Exit,
    /// Whether its message made the promise.
    pub promised: bool,
    /// The promise was nearly made: what was wrong with it.
    pub near_miss: Option<NearMiss>,
    /// Why it gave its task up, in its own words, where its message said so and made no promise.
    pub gave_up: Option<String>,
    /// The work when it ended, before any gate; none if it is not known.
    pub work: Option<WorkDigest>,
    /// What it says of its work in `state.md`: `done` where it said so anew, `blocked` where that stands there.
    #[serde(alias = "state_done", deserialize_with = "said")]
    pub state: Option<WorkStatus>,
    /// What a person has to do in its own words, where it left `blocked` there with some.
    pub needs: Option<String>,
    /// Why what it wrote there does not count.
    pub state_fault: Option<StatusFault>,
    /// What git would run, or where it would push, that is not as it was when the loop started: the names of settings and
    /// files. Refrain's git does not run or use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git_changed: Vec<String>,
    /// Hosts that its sandbox refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedHost>,
    /// It was a session's turn in which nothing was done but to speak.
    pub idle: bool,
    /// Bytes that it printed on standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes that it printed on standard error, kept or not.
    pub stderr_bytes: u64,
    /// The last line it said, for lists.
    pub preview: String,
    /// What its message said of the iteration in one line, where it did.
    pub summary: Option<String>,
    /// It left processes running: `attempt.swept` says when all of them are gone.
    pub left: bool,
    /// Why not all that it printed could be kept. Without that its result is unknown.
    pub output_error: Option<String>,
    /// What its stream came to; none of a command whose output is no stream.
    pub report: Option<Box<AgentReport>>,
    /// What its failure comes down to, where it failed by itself.
    pub fingerprint: Option<Fingerprint>,
    /// What is kept of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sealed: AttemptSeals,
}

impl AttemptFinished {
    /// The end of an attempt that said nothing.
    pub fn new(exit: Exit) -> Self {
        Self {
            exit,
            promised: false,
            near_miss: None,
            gave_up: None,
            work: None,
            state: None,
            needs: None,
            state_fault: None,
            git_changed: Vec::new(),
            refused: Vec::new(),
            idle: false,
            stdout_bytes: 0,
            stderr_bytes: 0,
            preview: String::new(),
            summary: None,
            left: false,
            output_error: None,
            report: None,
            fingerprint: None,
            sealed: AttemptSeals::default(),
        }
    }
}

/// Old journals said only whether it was done.
fn said<'de, D: Deserializer<'de>>(value: D) -> Result<Option<WorkStatus>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredStatus {
        Of(Option<WorkStatus>),
        Done(bool),
    }
    Ok(match StoredStatus::deserialize(value)? {
        StoredStatus::Of(status) => status,
        StoredStatus::Done(is_done) => is_done.then_some(WorkStatus::Done),
    })
}

/// What is kept of an attempt, so that it can be checked later: as far as its files could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptSeals {
    /// What the agent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Seal>,
    /// What it printed on standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Seal>,
}

/// What a critic left behind when it ended. Whatever that is, the loop continues.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CritiqueFinished {
    /// How its process ended.
    pub exit: Exit,
    /// What it said to the agent.
    pub feedback: Option<String>,
    /// Why it said nothing of use.
    pub error: Option<String>,
    /// It left processes running: `attempt.swept` says when all of them are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// What its stream came to; none of a command whose output is no stream.
    pub report: Option<Box<AgentReport>>,
}

/// What is kept of an output, so that it can be checked later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    /// How many bytes are kept.
    pub bytes: u64,
    /// Their BLAKE3 hash, in 64 hexadecimal digits, as `b3sum` prints it.
    pub blake3: String,
}

/// What a gate left behind when it ended. What it amounts to (passed? a result at all?) is decided by the fold.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateFinished {
    /// Which.
    pub gate: GateName,
    /// How its process ended.
    pub exit: Exit,
    /// How long it took.
    #[serde(rename = "duration_ms")]
    pub duration: Millis,
    /// Bytes that it printed, kept or not.
    pub bytes: u64,
    /// Why its good end proves nothing: what it said about having tested nothing.
    pub no_test: Option<String>,
    /// How many test runners printed their summary.
    #[serde(default, skip_serializing_if = "is_default")]
    pub summaries: u32,
    /// The last line that it printed, for lists.
    pub preview: String,
    /// It left processes running: `attempt.swept` says when all of them are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Why not all that it printed could be kept.
    pub output_error: Option<String>,
    /// What its failure comes down to.
    pub fingerprint: Option<Fingerprint>,
    /// What is kept of what it printed.
    pub log: Option<Seal>,
    /// What the agent said, where the gate is one.
    pub review: Option<Box<ReviewResult>>,
    /// Hosts that its sandbox refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedHost>,
}

/// What an agent that reviews left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewResult {
    /// What it said.
    pub verdict: Verdict,
    /// What its stream came to; none of a command whose output is no stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<AgentReport>>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its end was not seen because its supervisor died. Not the agent's fault.
    Lost,
    /// Its end was not seen, but it had said its last word: found on disk, or as the end of a session's turn, after
    /// which its process lives on.
    Unseen,
}

impl GateFinished {
    /// The end of a gate that printed nothing.
    pub fn new(gate: GateName, exit: Exit) -> Self {
        Self {
            gate,
            exit,
            duration: Millis(0),
            bytes: 0,
            no_test: None,
            summaries: 0,
            preview: String::new(),
            left: false,
            output_error: None,
            fingerprint: None,
            log: None,
            review: None,
            refused: Vec::new(),
        }
    }

    /// Whether a command passed that did not have to be stopped.
    pub fn is_pass(&self) -> bool {
        self.exit == Exit::Code(0) && self.no_test.is_none() && self.output_error.is_none()
    }
}
