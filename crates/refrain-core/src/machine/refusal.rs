//! Why a machine refuses a request.

use crate::spec::{AgentKind, Limits};

/// Why a request is not taken. The loop is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A completed or cancelled machine stays so.
    #[error("it is {0}")]
    Final(&'static str),
    /// It is stopped already.
    #[error("it has stopped already ({0})")]
    Stopped(&'static str),
    /// It stopped at a limit, and that or another limit would stop it again.
    #[error("it would stop at once: {used}; grant it more in all with {flag}")]
    NothingGranted {
        /// How much is used, or would be by one more iteration.
        used: String,
        /// The options and values that would do, all of them, ready to be typed.
        flag: String,
    },
    /// More than one leg's worth of iterations.
    #[error("at most {} more iterations at a time: up to {most}, not {asked}", Limits::MAX_GRANT)]
    TooMany {
        asked: u32,
        /// The most that is accepted.
        most: u32,
    },
    /// Only a loop can be asked this.
    #[error("it is a plan; its tasks are loops, which can")]
    NotALoop,
    /// It runs with the user's rights.
    #[error("it has no sandbox")]
    NoSandbox,
    /// A cap on a value that the agent does not report.
    #[error("{agent} does not say {what}, so {flag} could not be kept")]
    Unreported {
        agent: AgentKind,
        /// The unreported value.
        what: &'static str,
        /// The option.
        flag: &'static str,
    },
    /// There is nothing to approve.
    #[error("it does not wait for approval: it is {0}")]
    NotAsked(&'static str),
    /// Another candidate waits than the one that was looked at.
    #[error("{waits} waits for approval, not tree {asked}")]
    AnotherTree {
        waits: String,
        /// What was named.
        asked: String,
    },
    /// More words than any prompt has room for.
    #[error("{asked} bytes of steering are too many; accepted are 1 to {MAX_STEERING}")]
    SteeringTooLong {
        /// How many were asked for, in bytes.
        asked: usize,
    },
    /// More words than the next prompt has room for.
    #[error(
        "{waiting} bytes of steering wait already and {asked} more would not fit into one prompt ({MAX_STEERING})"
    )]
    TooLong {
        /// What the next prompt will say already, in bytes.
        waiting: usize,
        /// How much more was asked for, in bytes.
        asked: usize,
    },
}

/// How much steering one prompt takes, in bytes: a prompt that is passed as an argument must fit into one. Schemas and
/// forms, which count characters, use the same number.
pub const MAX_STEERING: usize = 8 << 10;

/// Whether this text can steer any loop: a longer one cannot, in any state of the loop.
pub fn check_steering(text: &str) -> Result<(), Refusal> {
    match text.len() {
        asked if asked > MAX_STEERING => Err(Refusal::SteeringTooLong { asked }),
        _ => Ok(()),
    }
}
