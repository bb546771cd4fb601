//! Texts of a request, turned into values. Each refusal names what is accepted.

use camino::Utf8PathBuf;
use refrain_core::agent::Usd;
use refrain_core::spec::Millis;
use refrain_core::values::{Limit, limit};

pub use refrain_core::values::{duration, iteration, iterations, pause, promise, tokens, usd, whole_number};

/// A duration or `none`.
pub fn duration_limit(text: &str) -> Result<Limit<Millis>, String> {
    limit(text, duration)
}

/// An amount of money or `none`.
pub fn usd_limit(text: &str) -> Result<Limit<Usd>, String> {
    limit(text, usd)
}

/// A number of tokens or `none`.
pub fn tokens_limit(text: &str) -> Result<Limit<u64>, String> {
    limit(text, tokens)
}

/// `K[=V]`.
pub fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_name || value.is_some_and(|value| value.contains('\0')) {
        return Err("accepted: NAME=VALUE, or NAME, without white space in the name".to_owned());
    }
    if name.starts_with("REFRAIN_") {
        return Err("REFRAIN_ variables are refrain's own".to_owned());
    }
    Ok((name.to_owned(), value.map(str::to_owned)))
}

/// A folder. An empty path would name the current folder, which is hardly meant.
pub fn folder(text: &str) -> Result<Utf8PathBuf, String> {
    if text.is_empty() { Err("accepted: a folder that is there".to_owned()) } else { Ok(text.into()) }
}
