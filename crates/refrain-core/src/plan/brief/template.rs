//! A specification's template (seed 001, `spec_template`): a person's words around the parts. Inserted texts are data:
//! a name in braces there stays as it is.

use std::str::FromStr;
use std::sync::LazyLock;

use crate::newtype::checked_text;

use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use super::PartKind;

/// A text in which `{task}`, `{plan}`, `{custom}` and `{verification}` stand for the parts of a specification. Another word in
/// braces is refused; `{{word}}` stands for itself in single braces, and all other braces stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct SpecTemplate(String);

/// Why a text is no [`SpecTemplate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecTemplateError {
    /// A name that stands for nothing.
    #[error(
        "{{{0}}} stands for nothing; accepted: {{task}}, {{plan}}, {{custom}} and {{verification}}, and {{{{{0}}}}} for \
         the word in braces"
    )]
    Unknown(String),
    #[error("it does not name {{task}}, so the agent would not be told what to do")]
    NoTask,
}

fn name(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Task => "task",
        PartKind::Plan => "plan",
        PartKind::File => "custom",
        PartKind::Verification => "verification",
        PartKind::Template => "",
    }
}

impl SpecTemplate {
    pub(super) fn names(&self, kind: PartKind) -> bool {
        words(&self.0).any(|(_, word, is_name)| is_name && word == name(kind))
    }

    /// The text with all parts filled in; none of a kind leave nothing.
    pub(super) fn fill(&self, part: impl Fn(PartKind) -> String) -> String {
        let kinds = [PartKind::Task, PartKind::Plan, PartKind::File, PartKind::Verification];
        let (mut text, mut from) = (String::new(), 0);
        for (range, word, is_name) in words(&self.0) {
            text.push_str(&self.0[from..range.start]);
            match kinds.into_iter().find(|kind| is_name && name(*kind) == word) {
                Some(kind) => text.push_str(&part(kind)),
                None => text.push_str(&format!("{{{word}}}")),
            }
            from = range.end;
        }
        text.push_str(&self.0[from..]);
        text
    }
}

/// The words in braces: the place, the word, and whether the braces are single.
fn words(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, &str, bool)> {
    static BRACES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}").ok());
    let found = |found: Captures<'_>| {
        let whole = found.get(0)?.range();
        let is_name = found.get(2).is_some();
        Some((whole, is_name))
    };
    let all = BRACES.as_ref().into_iter().flat_map(|braces| braces.captures_iter(text));
    all.filter_map(found).map(|(range, is_name)| {
        let width = if is_name { 1 } else { 2 };
        (range.clone(), &text[range.start + width..range.end - width], is_name)
    })
}

impl FromStr for SpecTemplate {
    type Err = SpecTemplateError;

    fn from_str(text: &str) -> Result<Self, SpecTemplateError> {
        let known = ["task", "plan", "custom", "verification"];
        let unknown = words(text).find(|(_, word, is_name)| *is_name && !known.contains(word));
        if let Some((_, word, _)) = unknown {
            return Err(SpecTemplateError::Unknown(word.to_owned()));
        }
        let template = Self(text.to_owned());
        if template.names(PartKind::Task) { Ok(template) } else { Err(SpecTemplateError::NoTask) }
    }
}

checked_text!(SpecTemplate);

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> String {
        template.parse::<SpecTemplate>().unwrap().fill(|kind| format!("<{}: {{plan}} {{x}}>", name(kind)))
    }

    #[test]
    fn parts_are_filled_in_and_never_read_as_templates() {
        for (template, text) in [
            ("{task}", "<task: {plan} {x}>"),
            ("Do {task}, by {verification}.", "Do <task: {plan} {x}>, by <verification: {plan} {x}>."),
            ("{task}{custom}{task}", "<task: {plan} {x}><custom: {plan} {x}><task: {plan} {x}>"),
            ("{task} prints {{name}}", "<task: {plan} {x}> prints {name}"),
            ("{task} {{task}}", "<task: {plan} {x}> {task}"),
            ("{task} { a: 1 } {} {A} {1} { task } }{", "<task: {plan} {x}> { a: 1 } {} {A} {1} { task } }{"),
        ] {
            assert_eq!(fill(template), text);
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_refused_when_it_is_read() {
        for (template, complaint) in [
            (
                "{taks}",
                "{taks} stands for nothing; accepted: {task}, {plan}, {custom} and {verification}, and {{taks}} for the \
                 word in braces",
            ),
            ("", "it does not name {task}, so the agent would not be told what to do"),
            ("{plan} {{task}}", "it does not name {task}, so the agent would not be told what to do"),
        ] {
            assert_eq!(template.parse::<SpecTemplate>().unwrap_err().to_string(), complaint);
        }
    }
}
