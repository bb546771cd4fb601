//! The layer of variables: `REFRAIN_MAX_ITERATIONS` for `max-iterations` of `[start]`, `REFRAIN_GIT_WORKFLOW` for
//! `workflow` of `[git]`. Other variables that begin with `REFRAIN_` are not settings, and are ignored here.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::keys::Config;
use super::schema::KeySchema;
use super::setting::{ConfigError, Origin, Setting, Values};

/// Which tables have variables, and how their names begin.
const TABLES: [(&str, &str); 2] = [("start", "REFRAIN_"), ("git", "REFRAIN_GIT_")];

/// What the variables say. An empty one says nothing.
pub(super) fn layer(variables: &[(OsString, OsString)]) -> Result<Values, ConfigError> {
    let set: BTreeMap<&str, &OsString> = variables
        .iter()
        .filter_map(|(name, value)| Some((name.to_str().filter(|name| name.starts_with("REFRAIN_"))?, value)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let mut given = Values::new();
    if set.is_empty() {
        return Ok(given);
    }
    let known = KeySchema::new();
    for (table, prefix) in TABLES {
        let Some(keys) = known.root().below(table) else { continue };
        // A table of its own fits into no variable.
        for key in keys.names().into_iter().filter(|key| keys.below(key).is_none()) {
            let name = format!("{prefix}{}", key.replace('-', "_").to_uppercase());
            let Some(text) = set.get(name.as_str()) else { continue };
            let origin = Origin::Variable(name.clone());
            let value = match text.to_str() {
                Some(text) => value(&known, &[table.to_owned(), key.to_owned()], text),
                None => Err("it is no UTF-8 text".to_owned()),
            };
            let value = value.map_err(|what| ConfigError::Wrong { at: origin.clone(), what })?;
            given.insert(vec![table.to_owned(), key.to_owned()], Setting::new(value, origin));
        }
    }
    Ok(given)
}

/// The text as the value that the key takes: itself, or what it says.
fn value(known: &KeySchema, path: &[String; 2], text: &str) -> Result<toml::Value, String> {
    let [table, key] = path;
    let fits = |value: &toml::Value| {
        let inner = toml::Table::from_iter([(key.clone(), value.clone())]);
        let whole = toml::Table::from_iter([(table.clone(), toml::Value::Table(inner))]);
        whole.try_into::<Config>().map(drop)
    };
    let as_text = toml::Value::String(text.to_owned());
    let Err(error) = fits(&as_text) else { return Ok(as_text) };
    let switch = text.parse().ok().map(toml::Value::Boolean).filter(|switch| fits(switch).is_ok());
    switch.ok_or_else(|| known.objection(path, &as_text).unwrap_or_else(|| error.message().to_owned()))
}
