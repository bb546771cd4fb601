//! The engine's surroundings, as the caller gives them: the engine looks for nothing by itself.

use std::ffi::OsString;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use refrain_store::access::signing::Signing;

/// The engine's surroundings: libraries do not look for them themselves.
#[derive(Clone, Debug)]
pub struct Host {
    /// The binary that becomes a keeper, or a detached runner, under another name.
    pub program: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// The user's data home for Refrain.
    pub data_home: Utf8PathBuf,
    /// The user's state home for Refrain.
    pub state_home: Utf8PathBuf,
    /// The user's config home for Refrain.
    pub config_home: Utf8PathBuf,
    pub version: String,
}

impl Host {
    /// The user's key, and what was signed with it.
    pub fn signing(&self) -> Signing {
        Signing::new(&self.state_home, &self.config_home)
    }
}
