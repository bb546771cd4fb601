use crate::spec::{AgentKind, Limits};

/// Why a request is not taken. The loop is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is {0}")]
    Final(&'static str),
    #[error("it was moved to {to}")]
    Moved { to: String },
    /// It cannot be moved, for this reason.
    #[error("{0}")]
    Immovable(String),
    #[error("it has stopped already ({0})")]
    Stopped(&'static str),
    #[error("it would stop at once: {used}; give it a larger total with {flag}")]
    NothingGranted {
        /// How much is used, or would be by one more iteration.
        used: String,
        /// The options and values that would do, all of them, ready to be typed.
        flag: String,
    },
    #[error("at most {} more iterations at a time: up to {most}, not {asked}", Limits::MAX_GRANT)]
    TooMany { asked: u32, most: u32 },
    #[error("it is a plan; its tasks are loops, which can")]
    NotALoop,
    #[error("that request has had its effect, or there is none of that name")]
    NotQueued,
    #[error("it has no sandbox that limits its network")]
    NoSandbox,
    #[error("{agent} does not say {what}, so {flag} could not be kept")]
    Unreported { agent: AgentKind, what: &'static str, flag: &'static str },
    #[error("it does not wait for approval: it is {0}")]
    NotAsked(&'static str),
    /// To approve would end the loop before any agent gets this text.
    #[error("its agent has not had the text that is queued: {0}")]
    TextQueued(String),
    #[error("{waits} waits for approval, not tree {asked}")]
    AnotherTree { waits: String, asked: String },
    #[error("{asked} bytes of steering are too many; accepted: 1 to {MAX_STEERING}")]
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

impl Refusal {
    /// The options that would be enough, if it was granted nothing.
    pub(crate) fn flag(&self) -> Option<&str> {
        if let Self::NothingGranted { flag, .. } = self { Some(flag) } else { None }
    }
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
