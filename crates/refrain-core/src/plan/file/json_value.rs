//! Values of a JSON text that know their place in it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::{FileError, Position};

#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(Raw)
    }
}

/// A value that may be missing; `null` is there, and has a place.
pub(super) fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(from).map(Some)
}

impl<'a> Raw<'a> {
    /// Its text, without white space around it.
    pub(super) fn text(self) -> &'a str {
        self.0.get()
    }

    /// Its place in the whole that it was read from.
    pub(super) fn span(self, whole: &str) -> Range<usize> {
        let begin = self.text().as_ptr() as usize - whole.as_ptr() as usize;
        begin..begin + self.text().len()
    }

    pub(super) fn place(self, whole: &str) -> Position {
        Position::of(whole, self.span(whole).start)
    }

    pub(super) fn is_null(self) -> bool {
        self.text() == "null"
    }

    pub(super) fn as_type<T: DeserializeOwned>(self) -> Option<T> {
        serde_json::from_str(self.text()).ok()
    }

    pub(super) fn as_text(self) -> Option<Cow<'a, str>> {
        if let Some(plain) = self.text().strip_prefix('"').and_then(|text| text.strip_suffix('"'))
            && !plain.contains('\\')
        {
            return Some(Cow::Borrowed(plain));
        }
        self.as_type::<String>().map(Cow::Owned)
    }

    /// Its content, as a type that borrows from it. An error has its place in the whole.
    pub(super) fn read<T: Deserialize<'a>>(self, whole: &str) -> Result<T, FileError> {
        read(self.text(), whole, self.span(whole).start)
    }
}

/// Reads a part of a text that begins at `at` of the whole.
pub(super) fn read<'a, T: Deserialize<'a>>(part: &'a str, whole: &str, at: usize) -> Result<T, FileError> {
    serde_json::from_str(part).map_err(|error| {
        let before: usize =
            part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let place = Position::of(whole, (at + before + error.column().saturating_sub(1)).min(whole.len()));
        let why = error.to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        FileError::Malformed { place, why: why.to_owned() }
    })
}

/// The members of an object, in order. A duplicate key is refused.
#[derive(Debug)]
pub(super) struct Members<'a>(pub(super) Vec<(String, Raw<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let (mut members, mut names) = (Vec::new(), std::collections::HashSet::new());
                while let Some((name, value)) = map.next_entry::<String, Raw<'de>>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!("{name:?} stands there twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(InOrder)
    }
}
