//! The names of all keys, as the published schema has them: one source for editors, for refusals and for `config show`.

use schemars::Schema;
use serde_json::Value;

use super::keys::Config;

pub fn schema() -> Schema {
    schemars::schema_for!(Config)
}

#[derive(Debug)]
pub(super) struct KeySchema(Value);

/// A table of the configuration, as the schema describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    root: &'a Value,
    own: &'a Value,
}

impl KeySchema {
    pub(super) fn new() -> Self {
        Self(schema().to_value())
    }

    pub(super) fn root(&self) -> Table<'_> {
        Table { root: &self.0, own: &self.0 }
    }
}

impl<'a> Table<'a> {
    /// What is known of a key: its schema, `$ref` followed, also that of an optional one. None if there is no such key.
    pub(super) fn key(self, key: &str) -> Option<&'a Value> {
        let found = self.own["properties"].get(key).or_else(|| {
            // Names of one's own: agents, prompts, gates, models.
            Some(&self.own["additionalProperties"]).filter(|schema| schema.is_object())
        })?;
        let found = found["anyOf"].as_array().and_then(|any| any.first()).unwrap_or(found);
        let target = found["$ref"].as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        Some(target.unwrap_or(found))
    }

    /// The table under a key, if that is one.
    pub(super) fn below(self, key: &str) -> Option<Self> {
        let own = self.key(key)?;
        let is_table = own["properties"].is_object() || own["additionalProperties"].is_object();
        is_table.then_some(Self { root: self.root, own })
    }

    pub(super) fn has(self, key: &str) -> bool {
        self.key(key).is_some()
    }

    /// Whether a key of this very name is accepted in it; one's own names do not count.
    pub(super) fn has_own(self, key: &str) -> bool {
        self.own["properties"].get(key).is_some()
    }

    /// The names of its keys, sorted: whether maps keep their order depends on what else is built in. None if they are
    /// one's own.
    pub(super) fn names(self) -> Vec<&'a str> {
        let keys = self.own["properties"].as_object();
        let mut names: Vec<_> = keys.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn takes_own_names(self) -> bool {
        self.own["additionalProperties"].is_object()
    }

    /// The default of the key, if it is a single value.
    pub(super) fn default_of(self, key: &str) -> Option<Value> {
        let value = &self.own["properties"].get(key)?["default"];
        (!value.is_null()).then(|| value.clone())
    }
}
