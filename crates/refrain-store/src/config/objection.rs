//! Why a value is not accepted, in words for people: by the schema, which knows of each key what is accepted. What the
//! schema cannot say, like which durations there are, the readers of the values say themselves.

use refrain_core::values::whole_numbers;
use serde_json::Value as Json;
use toml::Value;

use super::nearest;
use super::schema::{KeySchema, Table};
use super::wording::{kind, shown};

impl KeySchema {
    /// The error of a value under the path of its key, if the schema can name it.
    pub(super) fn objection(&self, path: &[String], value: &Value) -> Option<String> {
        let (name, above) = path.split_last()?;
        let table = above.iter().try_fold(self.root(), |table, step| table.below(step))?;
        // Values of `env` may be secrets.
        let is_secret = path.iter().any(|name| name == "env");
        table.objection(name, value, if is_secret { kind(value).to_owned() } else { shown(value) })
    }
}

impl Table<'_> {
    fn objection(self, key: &str, value: &Value, shown: String) -> Option<String> {
        let schema = self.key(key)?;
        let words: Vec<&str> =
            schema["oneOf"].as_array().into_iter().flatten().filter_map(|it| it["const"].as_str()).collect();
        if !words.is_empty() {
            let text = value.as_str();
            if text.is_some_and(|text| words.contains(&text)) {
                return None;
            }
            let meant = text.and_then(|text| nearest(text, words.iter().copied()));
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            return Some(format!("{shown}: accepted: {}{meant}", words.join(", ")));
        }
        let takes = |kind: &str| match &schema["type"] {
            Json::Array(kinds) => kinds.iter().any(|it| it == kind),
            one => one == kind,
        };
        let accepted = if takes("object") {
            match value {
                Value::Table(table) => return lacking(schema, table),
                _ => "accepted: a table".to_owned(),
            }
        } else if takes("boolean") {
            match value {
                Value::Boolean(_) => return None,
                Value::String(text) if text.parse::<bool>().is_ok() => {
                    format!("accepted: {text}, without quotes")
                }
                _ => "accepted: true and false".to_owned(),
            }
        } else if takes("integer") {
            match value {
                Value::Integer(number) if u32::try_from(*number).is_ok() => return None,
                _ => format!("accepted: {}", whole_numbers(0, u32::MAX.into())),
            }
        } else if takes("array") && schema["items"]["type"] == "integer" {
            match value {
                Value::Array(items) if items.iter().all(Value::is_integer) => return None,
                _ => "accepted: a list of whole numbers".to_owned(),
            }
        } else if takes("array") {
            match value {
                Value::String(_) => return None,
                Value::Array(items) if items.iter().all(Value::is_str) => return None,
                _ => "accepted: one text, or a list of texts, in quotes".to_owned(),
            }
        } else if takes("string") && !takes("number") {
            match value {
                Value::String(_) => return None,
                _ => "accepted: a text in quotes".to_owned(),
            }
        } else {
            return None;
        };
        Some(format!("{shown}: {accepted}"))
    }
}

/// What a table needs and does not have.
fn lacking(schema: &Json, table: &toml::Table) -> Option<String> {
    let needed = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let lacking: Vec<&str> = needed.filter(|name| !table.contains_key(*name)).collect();
    (!lacking.is_empty()).then(|| format!("it needs {}", lacking.join(" and ")))
}
