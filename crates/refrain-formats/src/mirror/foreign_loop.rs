//! What a file of another system says of a loop. It is untrusted data: a value outside its format is refused, never
//! guessed around, and a program that it names is only shown.

use std::fmt;

use jiff::Timestamp;
use refrain_core::ids::LoopId;
use refrain_core::promise::PromiseText;
use refrain_core::spec::Limits;
use refrain_core::text::clip;
use refrain_core::values;
use serde::{Deserialize, Deserializer};

use super::check::Check;
use super::parts::LoopPhase;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum System {
    /// Seed 000.
    #[strum(to_string = "Synthex")]
    Synthex,
    /// Seed 001, one loop.
    #[strum(to_string = "Descartes")]
    Descartes,
    /// Seed 001, the tasks of a tag.
    #[strum(to_string = "SCUD")]
    Scud,
    /// Seed 002.
    #[strum(to_string = "Randroid")]
    Randroid,
    /// Seed 004.
    #[strum(to_string = "Conclave")]
    Ralph,
    /// The plugin of Claude Code, whose file is read, never written.
    #[strum(to_string = "the Ralph loop")]
    RalphLoop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignLoop {
    pub system: System,
    pub id: Option<LoopId>,
    /// When the Refrain loop that it shows began; none if Refrain did not write it.
    pub began: Option<Timestamp>,
    pub prompt: Prompt,
    /// What it ran, as a command line; none if its system knows only one agent. It is shown, never run.
    pub command: Option<String>,
    pub promised: PromiseWords,
    /// How many iterations it may have in total; none is without a limit.
    pub cap: Option<u32>,
    pub iteration: u32,
    pub standing: LoopPhase,
    /// What checked its work there; none if nothing did. Refrain never runs a command from it.
    pub check: Option<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    Text(String),
    /// The content of this file, by its name in the project.
    File(String),
    /// The file does not say.
    Unsaid,
}

/// The words that claim a loop's work done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromiseWords {
    Words(PromiseText),
    /// None: it ends when its agent ends well.
    Never,
    /// The file does not say, or says that it never ends by itself: Refrain's own default applies.
    Unsaid,
}

/// Why a loop cannot continue from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error(
        "no system that is known writes such a file; accepted: the loop states of Synthex, Descartes, Randroid, Conclave and the Ralph loop"
    )]
    Unknown,
    #[error("it is no state of {system}'s: {why}")]
    Damaged { system: System, why: String },
    #[error("{key}: {found}: accepted {accepted}")]
    Value { key: &'static str, found: String, accepted: String },
    #[error("it is the state of a plan, of tag {tag:?}; what is left of that its tasks say themselves")]
    Plan {
        tag: String,
        /// The words that continue it, as they can be typed.
        words: String,
    },
}

/// Why a loop that was read cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotContinue {
    #[error("it is {0} there")]
    Over(&'static str),
    #[error("its iterations are used up: {used} of {cap}; accepted: --max-iterations {} to {most}", used + 1)]
    UsedUp { used: u32, cap: u32, most: u32 },
    #[error("it may have {cap} iterations, and had {used}: at most {} more at a time; accepted: --max-iterations {} to {most}", Limits::MAX_GRANT, used + 1)]
    TooMany { used: u32, cap: u32, most: u32 },
}

/// A larger count is implausible; a smaller one cannot overflow a counter.
const MOST_COUNTED: u32 = 1_000_000;

/// How much of a file's content a refusal repeats, in bytes.
const SHOWN: usize = 400;

impl ForeignLoop {
    /// How many iterations it may have in total, with those that were counted there.
    pub fn total(&self, asked: Option<u32>) -> Result<u32, CannotContinue> {
        match self.standing {
            LoopPhase::Completed => return Err(CannotContinue::Over("completed")),
            LoopPhase::Cancelled => return Err(CannotContinue::Over("cancelled")),
            LoopPhase::Running | LoopPhase::MaxIterationsReached | LoopPhase::Crashed => {}
        }
        let (used, most) = (self.iteration, self.iteration + Limits::MAX_GRANT);
        // A loop without a limit there gets one here, and a note says so.
        let cap = asked.or(self.cap).unwrap_or(used + Limits::DEFAULT_ITERATIONS);
        let is_over = self.standing == LoopPhase::MaxIterationsReached && asked.is_none();
        match cap {
            cap if cap <= used || is_over => Err(CannotContinue::UsedUp { used, cap, most }),
            cap if cap > most => Err(CannotContinue::TooMany { used, cap, most }),
            cap => Ok(cap),
        }
    }
}

impl System {
    pub(super) fn damaged(self, error: &dyn fmt::Display) -> Unread {
        Unread::Damaged { system: self, why: clip(&error.to_string(), SHOWN).into_owned() }
    }
}

/// A key that must be there, though it may say `null`.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

pub(super) fn value(key: &'static str, found: &dyn fmt::Debug, accepted: impl Into<String>) -> Unread {
    Unread::Value { key, found: clip(&format!("{found:?}"), SHOWN).into_owned(), accepted: accepted.into() }
}

pub(super) fn id(system: System, key: &'static str, text: &str) -> Result<LoopId, Unread> {
    text.parse().map_err(|error| system.damaged(&format!("{key}: {error}")))
}

pub(super) fn words(text: &str) -> Result<PromiseText, Unread> {
    values::promise(text).map_err(|error| value("completion_promise", &text, error))
}

/// A number of iterations that a loop can continue from.
pub(super) fn counted(iteration: u32) -> Result<u32, Unread> {
    let accepted =
        || value("iteration", &iteration, format!("are {}", values::whole_numbers(0, MOST_COUNTED.into())));
    Some(iteration).filter(|iteration| *iteration <= MOST_COUNTED).ok_or_else(accepted)
}

/// A task from such a file. It reaches the agent as an argument, so it must not be one of its options; and a person who
/// looks at it must see all of it.
pub(super) fn prompt(text: &str) -> Result<Prompt, Unread> {
    if text.trim().is_empty() {
        return Ok(Prompt::Unsaid);
    }
    admits(text)?;
    Ok(Prompt::Text(text.to_owned()))
}

/// Whether a task that a person did not type can be given to an agent.
pub fn admits(text: &str) -> Result<(), Unread> {
    let hidden = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    match hidden {
        Some(c) => Err(value("prompt", &c, "are texts without control characters")),
        None if text.trim_start().starts_with('-') => {
            let begin: String = text.trim_start().chars().take(40).collect();
            Err(value(
                "prompt",
                &begin,
                "are texts that begin with a word, as an agent would take this for an option",
            ))
        }
        None => Ok(()),
    }
}
