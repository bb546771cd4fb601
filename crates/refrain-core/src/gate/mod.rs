//! A gate: a check that Refrain runs itself on what an agent claims. What a gate is and what its results add up to;
//! refrain-engine runs it.

mod default;
mod offer;
mod outcome;
mod summary;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

pub use self::default::{DefaultGates, GateChoice, GateSource};
pub use self::offer::Offer;
pub use self::outcome::{NOT_EXECUTABLE, NOT_FOUND, cannot_run, found_no_test, missing_program};
pub use self::summary::{lacks_summary, shows_output, summaries};
use crate::newtype::checked_text;
use crate::spec::{AgentSpec, Millis, Secret};

/// A gate's name: `[a-z][a-z0-9-]*`, at most 64 characters (contract.md), because it becomes the name of its log.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct GateName(String);

/// A text that is no [`GateName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be the name of a gate; accepted: 1 to 64 of a-z, 0-9 and '-', the first a letter")]
pub struct GateNameError(String);

impl GateName {
    pub const MAX: usize = 64;

    /// The default name of a gate: its program's (contract.md), as far as that is a valid one.
    pub fn of_command(command: &str) -> Self {
        let word = command.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
        let program = word.rsplit('/').next().unwrap_or_default();
        let mut name = String::new();
        for c in program.chars().map(|c| c.to_ascii_lowercase()) {
            match c {
                'a'..='z' => name.push(c),
                '0'..='9' if !name.is_empty() => name.push(c),
                _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
                _ => {}
            }
        }
        name.truncate(Self::MAX);
        let name = name.trim_end_matches('-');
        Self(if name.is_empty() { "gate".to_owned() } else { name.to_owned() })
    }

    /// The same name, made different from `taken` ones by a number.
    #[must_use]
    pub fn apart_from(self, taken: &[Self]) -> Self {
        let numbered = |n: u32| {
            let mut name = self.0.clone();
            name.truncate(Self::MAX - 11);
            Self(format!("{name}-{n}"))
        };
        if !taken.contains(&self) {
            return self;
        }
        (2..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_else(|| self.clone())
    }
}

impl FromStr for GateName {
    type Err = GateNameError;

    fn from_str(text: &str) -> Result<Self, GateNameError> {
        let is_one = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.len() <= Self::MAX
            && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
        if is_one { Ok(Self(text.to_owned())) } else { Err(GateNameError(text.to_owned())) }
    }
}

checked_text!(GateName);

/// A check that Refrain runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateSpec {
    /// What it is called.
    pub name: GateName,
    /// What is run.
    #[serde(flatten)]
    pub check: Check,
    /// Whether it decides, or only informs.
    pub hard: bool,
    /// How long it may take.
    #[serde(rename = "timeout_ms")]
    pub timeout: Millis,
    /// How often it is run once more where it failed: one that passes then is flaky, and passed.
    #[serde(default)]
    pub retries: u32,
    /// When it is run.
    #[serde(default)]
    pub when: GateWhen,
    /// It completes the loop after an iteration in which it and all other required gates pass, whatever the agent says
    /// (`--success-command`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes: bool,
    /// It runs the tests that the loop itself makes, in a project that had none: while there are none, it passes and
    /// verifies nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_tests: bool,
    /// The project offered it, and nothing named a gate: if it cannot run before the first iteration, the loop drops it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_default: bool,
}

/// What a gate runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A shell command (`sh -c`), as in every CI: it passes by its exit code.
    Command(String),
    /// An agent that is given a specification and what the loop changed, and passes a verdict.
    Review(Box<ReviewSpec>),
}

/// An agent that reviews.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewSpec {
    /// The agent: started afresh each time, and may only read.
    pub agent: AgentSpec,
    /// What the work is held against.
    pub spec: String,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Review(review) => write!(f, "review by {}", review.agent.program),
        }
    }
}

/// The environment of gates that are commands, as far as it differs from that of the agent: they get no `REFRAIN_` variable,
/// so that the code under test cannot behave only for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateEnv {
    /// Random, made when the loop is started: it names the variable that marks the processes of gates, which no agent gets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mark: String,
    /// Variables by their names (`--gate-env`). One without a value is passed as the runner has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Option<Secret>>,
}

/// What an agent that reviews said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The work is what was asked for.
    Pass,
    /// It is not.
    Fail {
        /// What is missing or wrong, in the reviewer's words.
        findings: String,
    },
    /// It said neither: that never passes.
    Missing {
        /// Why there is none.
        why: String,
    },
}

impl GateSpec {
    /// How long a gate may take by default: 10 minutes.
    pub const TIMEOUT: Millis = Millis(10 * 60 * 1000);

    pub fn reviewer(&self) -> Option<&AgentSpec> {
        match &self.check {
            Check::Review(review) => Some(&review.agent),
            Check::Command(_) => None,
        }
    }

    /// Whether it is an agent: it costs money, and is asked only if the gates before it leave something to ask.
    pub fn is_review(&self) -> bool {
        match self.check {
            Check::Command(_) => false,
            Check::Review(_) => true,
        }
    }
}

/// When a gate is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateWhen {
    /// Behind every iteration that changed the candidate or claims.
    #[default]
    Iteration,
    /// Only after one that claims.
    Claim,
    /// As iteration, or as claim if the default gates took more than 5 minutes before the first iteration.
    Auto,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_without_a_name_is_called_after_its_program() {
        for (command, name) in [
            ("cargo test --workspace", "cargo"),
            ("./scripts/check_all.sh", "check-all-sh"),
            ("RUSTFLAGS=-Dwarnings cargo clippy", "cargo"),
            ("/usr/bin/python3.12 -m pytest", "python3-12"),
            ("[ -f done ]", "gate"),
            ("", "gate"),
        ] {
            assert_eq!(GateName::of_command(command).as_str(), name, "{command}");
        }
    }

    #[test]
    fn a_taken_gate_name_gets_a_number() {
        let name = |text: &str| text.parse::<GateName>().unwrap();
        let taken = [name("cargo"), name("cargo-2")];
        assert_eq!(name("cargo").apart_from(&taken).as_str(), "cargo-3");
        assert_eq!(name("npm").apart_from(&taken).as_str(), "npm");
        for bad in ["", "Tests", "1st", "-x", "a_b", &"a".repeat(65)] {
            assert!(bad.parse::<GateName>().is_err(), "{bad:?}");
        }
    }
}
