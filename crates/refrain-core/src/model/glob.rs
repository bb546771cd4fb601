//! Globs: which paths a pattern matches, below the worktree's root. Every option and key that takes one is read here.
//!
//! The dialect is globset's (`*` and `?` stay within a folder's name, `**` does not, `{a,b}`, `[abc]`). As in
//! `.gitignore`, a glob without a slash in its middle holds at any depth (`/conftest.py` does not), one that ends in a
//! slash covers what lies below it, and so does one without wildcards: `ci` covers `ci/run`, `tools/ci/run` and a file
//! `ci`.

use std::str::FromStr;

use globset::{Candidate, Glob, GlobBuilder, GlobSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    #[error(
        "a glob cannot be empty; accepted: a path or a pattern, such as `tests/**`; `**` means every path"
    )]
    Empty,
    #[error("{0:?} lies outside the worktree; a glob is seen from the worktree's top, without `..`")]
    Outside(String),
    /// It looks like an exception, as `.gitignore` has them; there are none here.
    #[error("{0:?} takes nothing back: there are no exceptions; `\\!` stands for a name that begins with !")]
    Exception(String),
    #[error("{glob:?} is no glob: {why}")]
    Unreadable { glob: String, why: String },
}

/// A glob as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PathGlob(String);

impl PathGlob {
    /// Whether the glob covers the path, given in git's bytes.
    pub fn matches(&self, path: &[u8]) -> bool {
        // Compiled at each use: that is seldom, as it is asked only of what was found.
        self.matches_any([path])
    }

    /// Whether the glob covers one of the paths.
    pub fn matches_any<'a>(&self, paths: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let globs = compile(&self.0, true).and_then(|globs| set(&[&self.0], &globs));
        let covers = |set: &GlobSet, path| set.is_match_candidate(&Candidate::from_bytes(path));
        globs.is_ok_and(|set| paths.into_iter().any(|path| covers(&set, path)))
    }
}

impl FromStr for PathGlob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        compile(text, true)?;
        Ok(Self(text.to_owned()))
    }
}

/// What a glob matches, in globset's full form.
pub(crate) fn compile(text: &str, case_counts: bool) -> Result<Vec<Glob>, GlobError> {
    let build = |pattern: &String| {
        GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(!case_counts)
            .build()
            .map_err(|error| unreadable(text, &error))
    };
    patterns(text)?.iter().map(build).collect()
}

pub(crate) fn set(given: &[impl AsRef<str>], globs: &[Glob]) -> Result<GlobSet, GlobError> {
    let given = || given.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    GlobSet::new(globs).map_err(|error| unreadable(&given(), &error))
}

fn unreadable(glob: &str, error: &globset::Error) -> GlobError {
    GlobError::Unreadable { glob: glob.to_owned(), why: error.kind().to_string() }
}

/// The patterns that a glob means, in full.
fn patterns(text: &str) -> Result<Vec<String>, GlobError> {
    if text.starts_with('!') {
        return Err(GlobError::Exception(text.to_owned()));
    }
    let trimmed = text.trim_start_matches("./");
    let (anchored, trimmed) = match trimmed.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (trimmed.trim_end_matches('/').contains('/'), trimmed),
    };
    let only_folder = trimmed.ends_with('/');
    let body = trimmed.trim_end_matches('/');
    if body.is_empty() {
        return Err(GlobError::Empty);
    }
    if body.split('/').any(|part| part == "..") {
        return Err(GlobError::Outside(text.to_owned()));
    }
    let body = if anchored { body.to_owned() } else { format!("**/{body}") };
    let is_plain = !body.trim_start_matches("**/").contains(['*', '?', '[', '{']);
    let mut patterns = Vec::new();
    if !only_folder {
        patterns.push(body.clone());
    }
    if only_folder || is_plain {
        patterns.push(format!("{body}/**"));
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_in_a_gitignore() {
        for (glob, path, is) in [
            ("*.pem", "a.pem", true),
            ("*.pem", "tests/keys/a.pem", true),
            ("/*.pem", "tests/a.pem", false),
            ("tests/*.pem", "tests/a.pem", true),
            ("tests/*.pem", "tests/keys/a.pem", false),
            ("tests/**", "tests/keys/a.pem", true),
            ("tests/**/*.pem", "tests/a.pem", true),
            ("fixtures/", "tests/fixtures/deep/a.pem", true),
            ("/fixtures/", "tests/fixtures/a.pem", false),
            ("tests/fixtures/", "tests/fixtures/a.pem", true),
            ("fixtures", "fixtures/a.pem", true),
            ("fixtures", "tests/fixtures/deep/a.pem", true),
            ("{a,b}.toml", "x/b.toml", true),
        ] {
            assert_eq!(glob.parse::<PathGlob>().unwrap().matches(path.as_bytes()), is, "{glob} {path}");
        }
        assert!("*".parse::<PathGlob>().unwrap().matches(b"caf\xe9"));
        for (bad, why) in [
            ("", "a glob cannot be empty"),
            ("/", "a glob cannot be empty"),
            ("../a", "\"../a\" lies outside the worktree"),
            ("!a", "\"!a\" takes nothing back"),
            ("[a", "\"[a\" is no glob: unclosed character class"),
        ] {
            let error = bad.parse::<PathGlob>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
        // A journal of an earlier version is read, and an invalid glob matches nothing.
        let stored: PathGlob = serde_json::from_str("\"../*\"").unwrap();
        assert!(!stored.matches(b"a"));
    }
}
