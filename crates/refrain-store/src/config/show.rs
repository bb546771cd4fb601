//! What `config show` and `trust` show: every key, its value, and where that comes from. Variables for agents may hold secrets, and
//! are shown by name only.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::file::{ConfigFile, key};
use super::layers::Settings;
use super::schema::KeySchema;
use super::setting::{ConfigError, Origin, Setting};

/// One key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The key, as TOML has it: `start.max-iterations`.
    pub key: String,
    /// Its value; `null` where it has none, and what then holds depends on other things.
    pub value: Option<Value>,
    /// Where that comes from: `default`, a file and its line as in `refrain.toml:3`, or the name of a variable.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub origin: Origin,
}

fn as_text<S: serde::Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}

fn entry(path: &[String], given: &Setting) -> Entry {
    let is_secret = path.iter().rev().nth(1).is_some_and(|above| above == "env");
    let value = match is_secret {
        true => Some(Value::from("[redacted]")),
        false => serde_json::to_value(&given.value).ok(),
    };
    let value = if path == ["gates", "env"] { value.map(names_only) } else { value };
    Entry { key: key(path), value, origin: given.origin.clone() }
}

/// `NAME=VALUE`, or a list of these, without the values, which may be secrets.
fn names_only(list: Value) -> Value {
    let hidden = |item: Value| match item.as_str().and_then(|text| text.split_once('=')) {
        Some((name, _)) => Value::from(format!("{name}=[redacted]")),
        None => item,
    };
    match list {
        Value::Array(items) => items.into_iter().map(hidden).collect(),
        one => hidden(one),
    }
}

impl ConfigFile {
    /// Everything that it says, sorted.
    pub fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        Ok(self.layer()?.given.iter().map(|(path, given)| entry(path, given)).collect())
    }
}

impl Settings {
    /// Every key that there is or that was given, sorted.
    pub fn entries(&self) -> Vec<Entry> {
        let given = self.given.iter().map(|(path, given)| (path.clone(), entry(path, given)));
        let known = KeySchema::new();
        let tables =
            known.root().names().into_iter().filter_map(|name| Some((name, known.root().below(name)?)));
        let default = tables.flat_map(|(table, keys)| {
            let names = keys.names().into_iter().filter(move |name| keys.below(name).is_none());
            names.map(move |name| {
                let path = vec![table.to_owned(), name.to_owned()];
                let value = keys.default_of(name);
                (path.clone(), Entry { key: key(&path), value, origin: Origin::Default })
            })
        });
        let all: std::collections::BTreeMap<_, _> = default.chain(given).collect();
        all.into_values().collect()
    }
}
