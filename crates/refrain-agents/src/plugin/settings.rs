//! Edits of a user's settings: JSON, with or without comments. All other bytes stay; each edit is a list of
//! [`Splice`]s, so that it can be reverted exactly. A library parses the text; nothing here reads or writes a file.

mod document;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use refrain_core::splice::Splice;

use document::{Document, Group};

/// One change of ours in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub path: Vec<String>,
    /// The value: JSON, on one line.
    pub value: String,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Key,
    /// Identified by its last key, which may also contain entries of others.
    SharedKey,
    /// Identified as the element, of the array at its path, with a single hook that runs these words.
    Element(String),
}

/// Why settings cannot be edited. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("it is no JSON: {0}")]
    Malformed(String),
    #[error("{} is no object", place(.0))]
    NoObject(Vec<String>),
    #[error("{} is no array", place(.0))]
    NoArray(Vec<String>),
    #[error("{} stands there twice", place(.0))]
    Twice(Vec<String>),
    #[error("{} is something else already", place(.0))]
    Taken(Vec<String>),
}

fn place(path: &[String]) -> String {
    if path.is_empty() { "the whole".to_owned() } else { path.join(".") }
}

/// The state of an entry of ours in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    Same,
    /// Another entry is in its place, for example an older version.
    Other,
    Nothing,
}

/// Compares an entry of ours with a text.
pub fn look(text: &str, edit: &Edit) -> Result<EntryState, SettingsError> {
    let document = Document::read(text)?;
    Ok(match find(&document, edit)? {
        Spot::There { value, .. } if is_same(value, edit) => EntryState::Same,
        Spot::There { .. } => EntryState::Other,
        Spot::Missing { .. } => EntryState::Nothing,
    })
}

/// Adds all our missing entries to a text.
pub fn put(text: &str, edits: &[Edit]) -> Result<(String, Vec<Splice>), SettingsError> {
    let (mut text, mut all) = (text.to_owned(), Vec::new());
    for edit in edits {
        let document = Document::read(&text)?;
        let splices = match find(&document, edit)? {
            Spot::There { value, .. } if is_same(value, edit) => vec![],
            Spot::There { .. } if edit.kind == Kind::Key => {
                return Err(SettingsError::Taken(edit.path.clone()));
            }
            Spot::There { value, .. } => {
                let at = document.start + value.start();
                vec![Splice { at, old: value.text(document.text).to_owned(), new: edit.value.clone() }]
            }
            Spot::Missing { group: None, .. } => document.fill(&edit.path, edit),
            Spot::Missing { group: Some(group), depth } => document.insert(&group, depth, edit),
        };
        // The splices were made for this text.
        text = splices.iter().fold(text, |text, splice| splice.apply(&text).unwrap_or(text));
        all.extend(splices);
    }
    Ok((text, all))
}

/// Removes our entries from a text that may have changed since, and what is empty without them. A different value in
/// one of our places belongs to the user and stays.
pub fn take(text: &str, edits: &[Edit]) -> Result<String, SettingsError> {
    let mut text = text.to_owned();
    for edit in edits {
        let mut was_there = false;
        loop {
            let document = Document::read(&text)?;
            let Spot::There { group, index, value } = find(&document, edit)? else { break };
            if !matches!(edit.kind, Kind::Element(_)) && !is_same(value, edit) {
                break;
            }
            text = document.without(&group, index);
            was_there = true;
        }
        if !was_there {
            continue;
        }
        // Its containers, the innermost first.
        let mut path = edit.path.as_slice();
        if !matches!(edit.kind, Kind::Element(_)) {
            path = &path[..path.len().saturating_sub(1)];
        }
        while let Some((_, above)) = path.split_last() {
            let document = Document::read(&text)?;
            let Some((group, index)) = document.emptied(path) else { break };
            text = document.without(&group, index);
            path = above;
        }
    }
    Ok(text)
}

/// Whether a text has no content.
pub fn is_empty(text: &str) -> bool {
    Document::read(text).is_ok_and(|document| document.is_empty())
}

/// The place of an entry of ours, existing or missing.
enum Spot<'d> {
    There {
        value: &'d Value<'d>,
        group: Group,
        index: usize,
    },
    /// The innermost existing container for it, and how many keys lead there; none in an empty text.
    Missing {
        group: Option<Group>,
        depth: usize,
    },
}

fn find<'d>(document: &'d Document<'d>, edit: &Edit) -> Result<Spot<'d>, SettingsError> {
    let Some(mut value) = document.value.as_ref() else { return Ok(Spot::Missing { group: None, depth: 0 }) };
    let mut at = None;
    for (depth, key) in edit.path.iter().enumerate() {
        let Value::Object(object) = value else {
            return Err(SettingsError::NoObject(edit.path[..depth].to_vec()));
        };
        let group = Group::of_object(object);
        let mut of_name =
            object.properties.iter().enumerate().filter(|(_, property)| property.name.as_str() == key);
        let Some((index, property)) = of_name.next() else {
            return Ok(Spot::Missing { group: Some(group), depth });
        };
        if of_name.next().is_some() {
            return Err(SettingsError::Twice(edit.path[..=depth].to_vec()));
        }
        (value, at) = (&property.value, Some((group, index)));
    }
    match (&edit.kind, at) {
        (Kind::Element(mark), _) => {
            let Value::Array(array) = value else { return Err(SettingsError::NoArray(edit.path.clone())) };
            let group = Group::of_array(array);
            let own = array.elements.iter().enumerate().find(|(_, value)| runs(value, mark));
            Ok(match own {
                Some((index, value)) => Spot::There { value, group, index },
                None => Spot::Missing { group: Some(group), depth: edit.path.len() },
            })
        }
        (Kind::Key | Kind::SharedKey, Some((group, index))) => Ok(Spot::There { value, group, index }),
        (Kind::Key | Kind::SharedKey, None) => Err(SettingsError::NoObject(Vec::new())),
    }
}

/// Whether it is a matcher of hooks with a single hook that runs these words. One with another hook added belongs to
/// the user.
fn runs(value: &Value<'_>, mark: &str) -> bool {
    let Some([Value::Object(hook)]) = value
        .as_object()
        .and_then(|matcher| matcher.get_array("hooks"))
        .map(|hooks| hooks.elements.as_slice())
    else {
        return false;
    };
    hook.get_string("command").is_some_and(|command| command.value.contains(mark))
}

fn is_same(value: &Value<'_>, edit: &Edit) -> bool {
    serde_json::Value::from(value.clone())
        == serde_json::from_str::<serde_json::Value>(&edit.value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
