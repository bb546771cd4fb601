//! One task, from any kind of file (seed 001, SCUD; seed-systems.md section 4.3).

pub(crate) mod remote;
pub(crate) mod selection;
pub(crate) mod task_loop;
pub(crate) mod task_ref;

use std::cmp::Ordering;
use std::str::FromStr;

use crate::newtype::checked_text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The name of a task in its file: 1 to 100 of `A-Z a-z 0-9 _ : . -`. Numbers in it order as numbers: `1.2 < 1.10 < 2`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct TaskId(String);

/// A text that is no [`TaskId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no task id; accepted: 1 to {max} letters, digits, `_`, `:`, `.` and `-`", max = TaskId::MAX)]
pub struct TaskIdError(String);

impl TaskId {
    /// The longest id, in characters (SCUD's own).
    pub const MAX: usize = 100;

    /// How much of a text makes an id, in bytes.
    const FROM_WORDS: usize = 48;

    /// An id made from a task's title, for one without an id: its words in small letters, or a hash if they have no
    /// letters of ASCII.
    pub fn from_words(text: &str) -> Self {
        let mut id = String::new();
        for c in text.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                id.push(c);
            } else if !id.is_empty() && !id.ends_with('-') {
                id.push('-');
            }
        }
        if id.len() > Self::FROM_WORDS {
            let end = id[..Self::FROM_WORDS].rfind('-').unwrap_or(Self::FROM_WORDS);
            id.truncate(end);
        }
        id.truncate(id.trim_end_matches('-').len());
        if id.is_empty() {
            id = format!("task-{}", &blake3::hash(text.as_bytes()).to_hex()[..8]);
        }
        Self(id)
    }

    /// The id as a part of names of loops, branches and folders: `[a-z0-9-]`, and no two ids the same.
    pub fn slug(&self) -> String {
        let lower = self.0.to_ascii_lowercase();
        let slug = lower.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let slug = slug.trim_matches('-');
        // A replaced or cut id is made unique by the original.
        if slug == self.0 && slug.len() <= Self::SLUG {
            return slug.to_owned();
        }
        let hash = blake3::hash(self.0.as_bytes()).to_hex();
        let slug = slug.get(..Self::SLUG).unwrap_or(slug).trim_end_matches('-');
        format!("{slug}-{}", &hash[..4]).trim_start_matches('-').to_owned()
    }

    /// The longest part of an id that is kept as it is in a name.
    const SLUG: usize = 24;
}

impl FromStr for TaskId {
    type Err = TaskIdError;

    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        let fits = (1..=Self::MAX).contains(&text.len());
        let is_its = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.' | b'-');
        if fits && text.bytes().all(is_its) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TaskIdError(text.to_owned()))
        }
    }
}

checked_text!(TaskId);

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TaskId {
    fn cmp(&self, other: &Self) -> Ordering {
        natural(&self.0, &other.0).then_with(|| self.0.cmp(&other.0))
    }
}

/// Runs of digits as numbers, all else as bytes.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(x), Some(y)) = (a.first(), b.first()) else { return a.len().cmp(&b.len()) };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (left, right) = (number(&mut a), number(&mut b));
            // Without leading zeros the longer is the larger.
            match left.len().cmp(&right.len()).then_with(|| left.cmp(right)) {
                Ordering::Equal => {}
                unequal @ (Ordering::Less | Ordering::Greater) => return unequal,
            }
        } else if x == y {
            (a, b) = (&a[1..], &b[1..]);
        } else {
            return x.cmp(y);
        }
    }
}

/// Takes the digits that it begins with, less leading zeros.
fn number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    &digits[zeros..]
}

/// Where a task stands, in the words of its file.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TaskStatus {
    /// To be done.
    #[default]
    Pending,
    /// It is being worked on.
    InProgress,
    /// Done.
    Done,
    /// Done, and to be looked at by a person.
    Review,
    /// A person is needed.
    Blocked,
    /// Not now.
    Deferred,
    /// Not at all.
    Cancelled,
    /// Its subtasks are done in its place.
    Expanded,
    /// It was tried in vain.
    Failed,
    /// It was tried in vain, and waits for a person to tell how to go on (seed 001, "tune").
    AwaitingTune,
}

impl TaskStatus {
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::InProgress,
        Self::Done,
        Self::Review,
        Self::Blocked,
        Self::Deferred,
        Self::Cancelled,
        Self::Expanded,
        Self::Failed,
        Self::AwaitingTune,
    ];

    pub fn word(self) -> &'static str {
        self.into()
    }

    /// The status of that word. An unknown one is none, and never taken for `pending`.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::Review)
    }

    /// Whether a running plan takes it on: a task left over from a crash too.
    pub fn is_to_do(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Whether only a person, or another writer, sets this status of a task that is not done: the plan has nothing left
    /// to do.
    pub(super) fn is_off(self) -> bool {
        match self {
            Self::Done | Self::Review | Self::Deferred | Self::Cancelled | Self::Expanded => true,
            Self::Pending | Self::InProgress | Self::Blocked | Self::Failed | Self::AwaitingTune => false,
        }
    }
}

/// How urgent a task is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// First.
    Critical,
    /// Soon.
    High,
    /// As it comes.
    #[default]
    Medium,
    /// Last.
    Low,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub title: String,
    pub description: Option<String>,
    pub details: Option<String>,
    /// How to see that it is done, in words.
    pub test_strategy: Option<String>,
    /// The shell command that proves it, if the file names one of its own.
    pub verification: Option<String>,
    pub status: TaskStatus,
    /// Its complexity: 0, or one of Fibonacci's numbers up to 89 (SCUD).
    pub complexity: u32,
    pub priority: Priority,
    pub dependencies: Vec<TaskId>,
    pub parent: Option<TaskId>,
    /// The files that it is about, as its file names them.
    pub files: Vec<String>,
    /// What the file says beside a status that a person has to look at.
    pub note: Option<Note>,
}

impl Task {
    /// A task of which nothing else is known: to be done, after nothing.
    pub fn new(id: TaskId, title: String) -> Self {
        Self {
            id,
            title,
            description: None,
            details: None,
            test_strategy: None,
            verification: None,
            status: TaskStatus::Pending,
            complexity: 0,
            priority: Priority::Medium,
            dependencies: Vec::new(),
            parent: None,
            files: Vec::new(),
            note: None,
        }
    }
}

/// Why a task has its status, for the reader of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub reason: String,
    pub attempts: u32,
}

/// As much of a task as its plan needs to decide: what the plan's journal keeps of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Card {
    /// Its name in its file.
    pub id: TaskId,
    /// What is to be done, in a line.
    pub title: String,
    /// Where it stands in its file.
    pub status: TaskStatus,
    /// How hard it is.
    #[serde(default)]
    pub complexity: u32,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// What has to be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    /// The task that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
}

impl From<&Task> for Card {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            title: task.title.clone(),
            status: task.status,
            complexity: task.complexity,
            priority: task.priority,
            dependencies: task.dependencies.clone(),
            parent: task.parent.clone(),
        }
    }
}

impl Card {
    /// A task of which no more is known than this.
    pub(super) fn task(&self) -> Task {
        let Self { id, title, status, complexity, priority, dependencies, parent } = self.clone();
        Task { status, complexity, priority, dependencies, parent, ..Task::new(id, title) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TaskId {
        text.parse().unwrap()
    }

    #[test]
    fn ids_order_as_people_count() {
        let mut ids = ["10", "2", "1.10", "1.2", "auth:10.1", "auth:9", "1"].map(id);
        ids.sort();
        assert_eq!(ids.map(|id| id.to_string()), ["1", "1.2", "1.10", "2", "10", "auth:9", "auth:10.1"]);
        assert_ne!(id("1").cmp(&id("01")), Ordering::Equal, "only the same id is the same");
    }

    #[test]
    fn an_invalid_task_id_is_refused() {
        for bad in ["", "a b", "a/b", "ä", "..\n", &"1".repeat(101)] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_status_has_its_word() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::named(status.word()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.word());
        }
        assert_eq!(TaskStatus::named("wip"), None);
    }
}
