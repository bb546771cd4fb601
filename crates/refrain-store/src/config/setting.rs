//! Values as they were given, each with where it comes from; and why one cannot be used.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Default,
    /// A line of a file, counted from 1.
    File {
        path: Utf8PathBuf,
        line: usize,
    },
    Variable(String),
    /// An option of the command line.
    Option(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Option(name) => f.write_str(name),
        }
    }
}

/// Why the configuration cannot be used. Nothing was touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{path} cannot be used: {why}")]
    Unusable { path: Utf8PathBuf, why: String },
    #[error("{at}: {what}")]
    Wrong { at: Origin, what: String },
}

#[derive(Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) value: toml::Value,
    pub(super) origin: Origin,
    pub(super) layer: usize,
    pub(super) of_agent: bool,
}

pub(super) type Values = BTreeMap<Vec<String>, Setting>;

impl fmt::Debug for Setting {
    /// Without the value, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "from {}", self.origin)
    }
}

impl Setting {
    pub(super) fn new(value: toml::Value, origin: Origin) -> Self {
        Self { value, origin, layer: 0, of_agent: false }
    }
}
