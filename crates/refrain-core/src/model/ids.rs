//! The ids of loops, attempts and requests. They are validated once, on input, because they become paths.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::newtype::checked_text;
use crate::plan::TaskId;

/// A loop's name within its project: `[a-z0-9][a-z0-9-]{0,63}` (seed 000, FR-NL11).
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct LoopId(String);

/// Why a text is no [`LoopId`]; names the first offending character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoopIdError {
    #[error("an id cannot be empty; accepted: 1 to 64 of a-z, 0-9 and, not first, '-'")]
    Empty,
    #[error("{0:?} has {1} characters; accepted: at most 64")]
    TooLong(String, usize),
    #[error("{0:?} has {1:?}; accepted: a-z, 0-9 and, not first, '-'")]
    BadCharacter(String, char),
    /// The word that stands for an id in help and hints.
    #[error("put the name of a loop or plan in place of ID; refrain list shows the names")]
    Placeholder,
}

impl LoopId {
    pub const MAX: usize = 64;

    /// An id from any words: lower-cased, other characters squeezed to hyphens, `loop` if nothing is left; then the
    /// suffix. It names a loop without `--name` (seed 000: `<command>-<4 hex>`).
    pub fn derived(words: &str, suffix: u16) -> Self {
        let slug = match slug(words, Self::MAX - 5) {
            slug if slug.is_empty() => "loop".to_owned(),
            slug => slug,
        };
        Self(format!("{slug}-{suffix:04x}"))
    }

    /// An id that is words alone, as [`Self::derived`] makes them; none where nothing is left of them.
    pub fn of_words(words: &str) -> Option<Self> {
        let slug = slug(words, Self::MAX);
        (!slug.is_empty()).then_some(Self(slug))
    }

    /// The id of the loop that is this round of a plan's task: begins with the plan's id and the task's, as far as there is
    /// room, and ends with what tells it from all others. Who knows the three knows the id.
    pub fn of_task(plan: &Self, task: &TaskId, round: u32) -> Self {
        let whole = blake3::hash(format!("{plan} {task} {round}").as_bytes()).to_hex();
        let (plan, task) = (slug(plan.as_str(), 30), slug(task.as_str(), 20));
        let task = if task.is_empty() { "task".to_owned() } else { task };
        Self(format!("{plan}-{task}-{}", &whole[..8]))
    }
}

/// Words in the form of an id, at most `most` bytes.
fn slug(words: &str, most: usize) -> String {
    let mut slug = String::new();
    for c in words.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.truncate(most);
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

impl FromStr for LoopId {
    type Err = LoopIdError;

    fn from_str(text: &str) -> Result<Self, LoopIdError> {
        let bad = |(i, c): &(usize, char)| !matches!(c, 'a'..='z' | '0'..='9') && (*i == 0 || *c != '-');
        match text.char_indices().find(bad) {
            Some(_) if text == "ID" => Err(LoopIdError::Placeholder),
            Some((_, c)) => Err(LoopIdError::BadCharacter(text.to_owned(), c)),
            None if text.is_empty() => Err(LoopIdError::Empty),
            None if text.len() > Self::MAX => Err(LoopIdError::TooLong(text.to_owned(), text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

checked_text!(LoopId);

/// One start of the agent: attempt `attempt` (from 1) of iteration `iteration` (from 1). Shown `3`, `3.2`, `3.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct AttemptId {
    /// The iteration it belongs to, from 1.
    pub iteration: u32,
    /// Which start of that iteration, from 1.
    pub attempt: u32,
}

impl AttemptId {
    /// The number of the gates before the first iteration: no attempt has it.
    pub const BEFORE: Self = Self { iteration: 0, attempt: 1 };

    /// The name of its folder: `0003`, `0003.2`; sorts by iteration.
    pub fn dir_name(self) -> String {
        match self.attempt {
            1 => format!("{:04}", self.iteration),
            k => format!("{:04}.{k}", self.iteration),
        }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempt {
            1 => write!(f, "{}", self.iteration),
            k => write!(f, "{}.{k}", self.iteration),
        }
    }
}

/// The name of one request to a loop, made by the asker. The event that answers it repeats it, so that a request that is
/// seen twice is done once. Letters, digits and hyphens only: it is a file name in the inbox.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema,
)]
#[schemars(with = "String")]
pub struct RequestId(String);

/// A text that is no [`RequestId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no request id: 1 to 64 letters, digits and hyphens")]
pub struct RequestIdError(String);

impl RequestId {
    /// A new id for a request at `at`; its text sorts by time, too.
    pub fn made(at: Timestamp, random: u32) -> Self {
        Self(format!("{:013}-{random:08x}", at.as_millisecond().max(0)))
    }
}

impl FromStr for RequestId {
    type Err = RequestIdError;

    fn from_str(text: &str) -> Result<Self, RequestIdError> {
        let fits = (1..=64).contains(&text.len());
        if fits && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            Ok(Self(text.to_owned()))
        } else {
            Err(RequestIdError(text.to_owned()))
        }
    }
}

checked_text!(RequestId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_refused_by_the_first_offending_character() {
        for good in ["a", "0", "a-b", "release-1", &"a".repeat(64)] {
            assert!(good.parse::<LoopId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a_b", "a/b", "..", "ä", "a b", &"a".repeat(65)] {
            assert!(bad.parse::<LoopId>().is_err(), "{bad}");
        }
        assert_eq!("Ab".parse::<LoopId>(), Err(LoopIdError::BadCharacter("Ab".into(), 'A')));
    }

    #[test]
    fn derived_ids_are_ids() {
        let long = "x".repeat(99);
        for (words, id) in [
            ("claude", "claude-00ff"),
            ("/usr/bin/My Agent", "usr-bin-my-agent-00ff"),
            ("...", "loop-00ff"),
            (&long, &*format!("{}-00ff", "x".repeat(59))),
        ] {
            let derived = LoopId::derived(words, 255);
            assert_eq!(derived.as_str(), id);
            assert_eq!(id.parse(), Ok(derived));
        }
    }

    #[test]
    fn a_tasks_loop_has_an_id_of_its_own() {
        let id = |plan: &str, task: &str, round| {
            LoopId::of_task(&plan.parse().unwrap(), &task.parse().unwrap(), round)
        };
        let one = id("house-00ff", "auth:10.1", 1);
        assert!(one.as_str().starts_with("house-00ff-auth-10-1-") && one == id("house-00ff", "auth:10.1", 1));
        for other in
            [id("house-00ff", "auth:10.1", 2), id("house-00ff", "auth-10-1", 1), id("house", "auth:10.1", 1)]
        {
            assert_ne!(one, other);
        }
        for (plan, task) in [("a".repeat(64), "1".repeat(100)), ("a".to_owned(), "...".to_owned())] {
            let id = id(&plan, &task, u32::MAX);
            assert_eq!(id.as_str().parse(), Ok(id));
        }
    }

    #[test]
    fn an_attempt_is_named_after_its_iteration() {
        let id = |iteration, attempt| AttemptId { iteration, attempt };
        assert_eq!((id(3, 1).to_string(), id(3, 1).dir_name()), ("3".into(), "0003".into()));
        assert_eq!((id(3, 2).to_string(), id(3, 2).dir_name()), ("3.2".into(), "0003.2".into()));
    }
}
