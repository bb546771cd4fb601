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

const NAMES: [(&str, PartKind); 4] = [
    ("task", PartKind::Task),
    ("plan", PartKind::Plan),
    ("custom", PartKind::File),
    ("verification", PartKind::Verification),
];

/// A word in two braces each, or a name in one.
static BRACES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}").ok());

impl SpecTemplate {
    pub(super) fn names(&self, kind: PartKind) -> bool {
        names(&self.0).any(|name| NAMES.contains(&(name, kind)))
    }

    /// The text with all parts filled in; none of a kind leave nothing.
    pub(super) fn fill(&self, part: impl Fn(PartKind) -> String) -> String {
        let Some(braces) = &*BRACES else { return self.0.clone() };
        let filled = |found: &Captures<'_>| match found.get(1) {
            Some(word) => format!("{{{}}}", word.as_str()),
            None => {
                NAMES.iter().filter(|(name, _)| *name == &found[2]).map(|(_, kind)| part(*kind)).collect()
            }
        };
        braces.replace_all(&self.0, filled).into_owned()
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let found = BRACES.iter().flat_map(move |braces| braces.captures_iter(text));
    found.filter_map(|found| Some(found.get(2)?.as_str()))
}

impl FromStr for SpecTemplate {
    type Err = SpecTemplateError;

    fn from_str(text: &str) -> Result<Self, SpecTemplateError> {
        let is_known = |name: &str| NAMES.iter().any(|(known, _)| *known == name);
        if let Some(unknown) = names(text).find(|name| !is_known(name)) {
            return Err(SpecTemplateError::Unknown(unknown.to_owned()));
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
        let name = |of| NAMES.iter().find(|(_, kind)| *kind == of).unwrap().0;
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
