//! The promise: the words by which an agent claims that the work is done, and where they count.
//!
//! A claim is read from the agent's own message and from nowhere else, and a mention is no claim. The rules are the
//! table "Claim and proof" of the design, the reasons are the false and missed completions of the seeds and their
//! peers: an echoed prompt, a quoted instruction, a code fence, "not complete yet", "I have not yet earned
//! `<promise>…`".
//!
//! [`Scanner`] reads a message as it streams by, in bounded memory; [`line`](self) rules on one line at a time.

mod block;
mod echo;
mod give_up_line;
mod line;
mod plain_lines;
mod scanner;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

pub(crate) use give_up_line::{GIVES_UP, PLACEHOLDER};
pub(crate) use plain_lines::plain_lines;
pub use scanner::{PREVIEW, Scanner, scan};

use crate::newtype::checked_text;
use crate::text::squeeze;

/// Where the promise counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MatchMode {
    /// As its tag alone on a line, or at the end of the last line if a required gate decides about the claim. For agents whose
    /// own final message is known.
    Tag,
    /// As its tag in the same way, or as bare words on the last line, in any case. For commands whose message is all that they
    /// print.
    Plain,
    /// Anywhere, in any case. Only when asked for by name: "not complete" counts too (seed 001's original).
    Substring,
}

/// The words of a promise: white space squeezed, never empty, nothing that would make a tag of its own.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct PromiseText(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromiseTextError {
    #[error("a promise cannot be empty")]
    Empty,
    #[error("a promise cannot hold {0:?}")]
    Character(char),
}

impl FromStr for PromiseText {
    type Err = PromiseTextError;

    fn from_str(text: &str) -> Result<Self, PromiseTextError> {
        let text = squeeze(text);
        match text.chars().find(|c| matches!(c, '<' | '>' | '`') || c.is_control()) {
            Some(c) => Err(PromiseTextError::Character(c)),
            None if text.is_empty() => Err(PromiseTextError::Empty),
            None => Ok(Self(text)),
        }
    }
}

checked_text!(PromiseText);

/// What a loop listens for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// The words.
    pub text: PromiseText,
    /// Where they count.
    #[serde(rename = "match")]
    pub mode: MatchMode,
}

impl Promise {
    /// The promise of every agent of a task, bare words too (seed 001).
    pub fn of_task() -> Self {
        Self { text: PromiseText("TASK_COMPLETE".to_owned()), mode: MatchMode::Plain }
    }

    /// The words as an agent is to print them.
    pub fn tag(&self) -> String {
        format!("{OPEN}{}{CLOSE}", self.text)
    }

    pub fn is_tagged_in(&self, prompt: &str) -> bool {
        let tags = prompt.split(OPEN).skip(1);
        tags.filter_map(|rest| rest.split_once(CLOSE)).any(|(words, _)| squeeze(words) == self.text.as_str())
    }
}

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub claimed: bool,
    /// It does not, but nearly: what was wrong with the last try.
    pub near_miss: Option<NearMiss>,
    /// It makes none, and gives the task up: why, in a line.
    pub gave_up: Option<String>,
    /// Its summary of the iteration in one line ([`crate::prompt::summary`]).
    pub summary: Option<String>,
    /// Its last line that is not empty, printable and short: for lists.
    pub last_line: String,
}

/// What keeps something from being a claim that looks like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NearMiss {
    /// Other words stand on its line.
    InSentence,
    /// It stands in code.
    InCode,
    /// It stands in a quotation.
    InQuote,
    /// It stands in a comment.
    InComment,
    /// Its words are spelled in another case.
    WrongCase,
    /// Its words are others.
    OtherText,
    /// It has no words.
    Empty,
    /// Its tag has attributes.
    Attributes,
    /// Its tag is escaped.
    Escaped,
    /// Its tag is not closed.
    Unclosed,
    /// The words stand alone, without their tag.
    Untagged,
    /// The message is so long that it was not read.
    TooLong,
}

impl NearMiss {
    pub fn hint(self) -> &'static str {
        match self {
            Self::InSentence => "the promise counts only alone on its line; other words stood beside it",
            Self::InCode => "the promise does not count in code; print it as plain text, alone on its line",
            Self::InQuote => "the promise does not count in a quotation; print it alone on its line",
            Self::InComment => {
                "the promise does not count in a comment; print it as plain text, alone on its line"
            }
            Self::WrongCase => "the promise was spelled in another case; print it exactly as agreed",
            Self::OtherText => "the promise tag held other words than agreed; print it exactly as agreed",
            Self::Empty => "the promise tag was empty; print it with the agreed words",
            Self::Attributes => "the promise tag takes no attributes; print it exactly as agreed",
            Self::Escaped => "the promise tag was escaped; print it as plain text, alone on its line",
            Self::Unclosed => "the promise tag was not closed; print it whole, alone on its line",
            Self::Untagged => "the promise counts only with its tag around it, alone on its line",
            Self::TooLong => {
                "your final message was too long and was not read; end with a short one, with the promise alone on its line"
            }
        }
    }
}
