//! Values of the configuration as people write them: as text or as a number, read by the functions that read the command
//! line, so that a value is accepted everywhere or nowhere.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use refrain_core::agent::Usd;
use refrain_core::git::PathGlob;
use refrain_core::spec::Millis;
use refrain_core::values::{self, Limit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A text or a number, as text.
pub(super) struct Written(String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Written, E> {
                Ok(Written(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl JsonSchema for Written {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Written".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }
}

fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let Written(text) = Written::deserialize(deserializer)?;
    read(&text).map_err(|accepted| D::Error::custom(format!("{text:?}: {accepted}")))
}

/// Readers for `deserialize_with`: one for each kind of value.
macro_rules! readers {
    ($($name:ident: $type:ty = $read:expr;)*) => {$(
        pub(super) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
            read(deserializer, $read)
        }
    )*};
}

readers! {
    iterations: Option<u32> = |text| values::iterations(text).map(Some);
    duration: Option<Millis> = |text| values::duration(text).map(Some);
    duration_limit: Option<Limit<Millis>> = |text| values::limit(text, values::duration).map(Some);
    pause: Option<Limit<Millis>> = |text| values::pause(text).map(Some);
    cost_limit: Option<Limit<Usd>> = |text| values::limit(text, values::usd).map(Some);
    token_limit: Option<Limit<u64>> = |text| values::limit(text, values::tokens).map(Some);
    bytes: Option<u64> = |text| values::bytes(text).map(Some);
    price: Usd = values::price;
    some_price: Option<Usd> = |text| values::price(text).map(Some);
}

/// A program and its arguments: one text, split like a shell's, or a list of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program: a path, or a name looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Command {
    fn of(words: Vec<String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        match words.next().filter(|program| !program.is_empty()) {
            Some(program) => Ok(Self { program, args: words.collect() }),
            None => Err("accepted is a program and its arguments".to_owned()),
        }
    }
}

impl fmt::Display for Command {
    /// As it could be typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = || std::iter::once(&self.program).chain(&self.args).map(String::as_str);
        // Only a NUL cannot be quoted, and no shell could pass one on.
        let typed = shlex::try_join(words()).unwrap_or_else(|_| words().collect::<Vec<_>>().join(" "));
        f.write_str(&typed)
    }
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of(words(text)?)
    }
}

fn words(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).ok_or_else(|| "a quotation is not closed; accepted are words as in a shell".to_owned())
}

/// Words: one text, split like a shell's, or a list.
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("words, as one text or as a list")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                words(text).map(Words).map_err(|error| E::custom(format!("{text:?}: {error}")))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(Words(words))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Words(words) = Words::deserialize(deserializer)?;
        Self::of(words).map_err(D::Error::custom)
    }
}

impl JsonSchema for Command {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
    }
}

/// Patterns for paths: one text, split like a shell's, or a list.
pub(super) fn globs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<PathGlob>>, D::Error> {
    let Words(words) = Words::deserialize(deserializer)?;
    let globs = words.iter().map(|word| word.parse()).collect::<Result<_, _>>();
    globs.map(Some).map_err(D::Error::custom)
}

/// Arguments: one text, split like a shell's, or a list of words.
pub(super) fn args<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    Words::deserialize(deserializer).map(|Words(words)| Some(words))
}
