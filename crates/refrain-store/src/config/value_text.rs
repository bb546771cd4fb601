//! Values of the configuration as people write them: as text or as a number, read by the functions that read the command
//! line, so that a value is accepted everywhere or nowhere.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use refrain_core::agent::Usd;
use refrain_core::glob::PathGlob;
use refrain_core::mirror::Mirror;
use refrain_core::spec::Millis;
use refrain_core::values::{self, Limit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use toml::Value;

use super::keys::BlobPlace;
use super::wording::shown;

/// A value, as the text that it is read from: of a text what it says, of all else what stands in the file. What is neither
/// a text nor a number no reader takes, and it says what it would.
pub(super) struct ValueText {
    text: String,
    shown: String,
}

impl<'de> Deserialize<'de> for ValueText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let shown = shown(&value);
        Ok(match value {
            Value::String(text) => Self { text, shown },
            Value::Float(number) => Self { text: number.to_string(), shown },
            Value::Integer(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_)
            | Value::Table(_) => Self { text: shown.clone(), shown },
        })
    }
}

impl JsonSchema for ValueText {
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
    let ValueText { text, shown } = ValueText::deserialize(deserializer)?;
    read(&text).map_err(|accepted| D::Error::custom(format!("{shown}: {accepted}")))
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
    iteration: Option<u32> = |text| values::iteration(text).map(Some);
    jobs: Option<u32> = |text| values::jobs(text).map(Some);
    duration: Option<Millis> = |text| values::duration(text).map(Some);
    duration_limit: Option<Limit<Millis>> = |text| values::limit(text, values::duration).map(Some);
    pause: Option<Limit<Millis>> = |text| values::pause(text).map(Some);
    cost_limit: Option<Limit<Usd>> = |text| values::limit(text, values::usd).map(Some);
    token_limit: Option<Limit<u64>> = |text| values::limit(text, values::tokens).map(Some);
    bytes: Option<u64> = |text| values::bytes(text).map(Some);
    logs: Option<BlobPlace> = |text| text.parse().map(Some).map_err(str::to_owned);
    price: Usd = values::price;
    some_price: Option<Usd> = |text| values::price(text).map(Some);
}

/// A program and its arguments: one text, split like a shell's, or a list of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program: a path, or a name looked up in `PATH`.
    pub program: String,
    pub args: Vec<String>,
}

impl Command {
    fn of(words: Vec<String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        match words.next().filter(|program| !program.is_empty()) {
            Some(program) => Ok(Self { program, args: words.collect() }),
            None => Err("accepted: a program and its arguments".to_owned()),
        }
    }

    /// The first argument that was meant for a shell, as it seems: no shell runs the command.
    pub fn shell_syntax(&self) -> Option<&str> {
        let is_shells = |arg: &&String| {
            matches!(arg.as_str(), "|" | "||" | "&" | "&&" | ";" | ">" | ">>" | "<" | "2>" | "2>&1")
                || arg.ends_with(';')
                || arg.starts_with('$') && arg.len() > 1
        };
        let is_shell = ["sh", "bash", "zsh", "dash"].contains(&self.program.rsplit('/').next()?);
        self.args.iter().find(is_shells).filter(|_| !is_shell).map(String::as_str)
    }
}

impl fmt::Display for Command {
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
    shlex::split(text).ok_or_else(|| "a quotation is not closed; accepted: words as in a shell".to_owned())
}

/// Words: one text, split like a shell's, or a list.
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => {
                words(&text).map(Self).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
            }
            other => other.try_into().map(Self).map_err(D::Error::custom),
        }
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

/// Systems that a loop is shown to: one text, split like a shell's, or a list.
pub(super) fn mirrors<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Mirror>>, D::Error> {
    let Words(words) = Words::deserialize(deserializer)?;
    let read =
        |word: &String| word.parse().map_err(|accepted| D::Error::custom(format!("{word:?}: {accepted}")));
    words.iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Arguments: one text, split like a shell's, or a list of words.
pub(super) fn args<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    Words::deserialize(deserializer).map(|Words(words)| Some(words))
}
