//! The match of a rule, and helpers to build rules.

use regex::bytes::{Regex, RegexBuilder};

/// The match of a rule and its position.
pub(super) struct Hit {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

/// Whether a secret is missing in the committed version.
pub(super) type Novelty<'a> = &'a dyn Fn(&[u8]) -> bool;

pub(super) fn bytes_regex(regex: &str) -> Option<Regex> {
    RegexBuilder::new(regex).unicode(false).build().ok()
}
