//! Templates with names in braces: commit messages, branch names.

use std::str::FromStr;

use schemars::JsonSchema;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::ids::LoopId;
use crate::newtype::checked_text;
use crate::text::{clip, printable, squeeze};

/// The names that stand for something. There is no escape: a subject line or a branch name needs no brace.
const NAMES: [&str; 6] = ["loop", "id", "iteration", "max", "summary", "timestamp"];

/// A text with names in braces that stand for something (seed 001, `commit_template`, `branch_template`). Names that it does
/// not know are refused when it is read, not when it is used.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct Template(String);

/// Why a text is no [`Template`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a template cannot be empty; accepted: text, and placeholders such as {{loop}}")]
    Empty,
    #[error(
        "{{{0}}} stands for nothing; accepted: {{loop}} and {{timestamp}}, in a message also {{iteration}}, {{max}} and {{summary}}"
    )]
    Unknown(String),
    #[error("a {{ is not closed in {0:?}")]
    Open(String),
}

/// The values of the names in a [`Template`].
#[derive(Clone, Copy, Debug)]
pub struct TemplateValues<'a> {
    /// `{loop}`: the loop's id.
    pub id: &'a LoopId,
    /// `{iteration}`; nothing before there is one.
    pub iteration: u32,
    /// `{max}`: the cap.
    pub max: Option<u32>,
    /// `{summary}`: what the agent said of its iteration, else the goal.
    pub summary: &'a str,
    /// `{timestamp}`: now, in the form for the name of a branch, `20261121-173000`.
    pub timestamp: &'a str,
}

impl Template {
    /// The default of `--commit-template`.
    pub const COMMIT: &'static str = "{summary}";
    /// The default of `--branch-template`.
    /// It names the loop too (seed 001 has `loop/{timestamp}`), as two may start in the same second.
    pub const BRANCH: &'static str = "loop/{timestamp}-{loop}";

    pub fn fill(&self, with: TemplateValues<'_>) -> String {
        let (mut text, mut rest) = (String::new(), self.0.as_str());
        while let Some((words, after)) = rest.split_once('{')
            && let Some((name, after)) = after.split_once('}')
        {
            text.push_str(words);
            text.push_str(&with.value(name).unwrap_or_default());
            rest = after;
        }
        text + rest
    }
}

impl TemplateValues<'_> {
    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "loop" | "id" => self.id.to_string(),
            "iteration" => self.iteration.to_string(),
            "max" => self.max.map_or_else(|| "∞".to_owned(), |max| max.to_string()),
            "summary" => self.summary.to_owned(),
            "timestamp" => self.timestamp.to_owned(),
            _ => return None,
        })
    }
}

impl Default for Template {
    fn default() -> Self {
        Self(Self::COMMIT.to_owned())
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(TemplateError::Open(text.to_owned()));
            };
            if !NAMES.contains(&name) {
                return Err(TemplateError::Unknown(name.to_owned()));
            }
            rest = after;
        }
        Ok(Self(text.to_owned()))
    }
}

checked_text!(Template);

/// The longest subject of a commit, in bytes.
const SUBJECT: usize = 72;

/// The first line of a text that has words, as the subject of a commit.
pub fn subject(text: &str) -> Option<String> {
    let line = text.lines().map(|line| squeeze(&printable(line))).find(|line| !line.trim().is_empty())?;
    Some(clip(line.trim(), SUBJECT).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> String {
        let id = "mend".parse().unwrap();
        let with = TemplateValues {
            id: &id,
            iteration: 3,
            max: None,
            summary: "Mend it",
            timestamp: "20261121-173000",
        };
        template.parse::<Template>().unwrap().fill(with)
    }

    #[test]
    fn names_in_templates_are_replaced_by_their_values() {
        for (template, text) in [
            (Template::COMMIT, "Mend it"),
            (Template::BRANCH, "loop/20261121-173000-mend"),
            ("feat({loop}): {iteration}/{max}", "feat(mend): 3/∞"),
            ("no names }", "no names }"),
        ] {
            assert_eq!(fill(template), text);
        }
    }

    #[test]
    fn a_subject_is_the_first_line_with_words() {
        assert_eq!(
            subject("\n  Mend\tthe \u{1b}[1mparser. \nThen rest.").as_deref(),
            Some("Mend the parser.")
        );
        assert_eq!(subject(" \n\n"), None);
        assert!(subject(&"long ".repeat(40)).unwrap().len() <= SUBJECT + "…".len());
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused_when_it_is_read() {
        for (template, complaint) in [
            (" ", "a template cannot be empty; accepted: text, and placeholders such as {loop}"),
            (
                "{iteratoin}",
                "{iteratoin} stands for nothing; accepted: {loop} and {timestamp}, in a message also {iteration}, {max} and {summary}",
            ),
            ("a {loop", "a { is not closed in \"a {loop\""),
        ] {
            assert_eq!(template.parse::<Template>().unwrap_err().to_string(), complaint);
        }
    }
}
