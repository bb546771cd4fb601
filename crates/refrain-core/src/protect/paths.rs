//! Whole paths: globs, and which changes of which paths they forbid.

use std::fmt;

use globset::{Candidate, Glob, GlobSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::modules;
use crate::git::RepoPath;
use crate::glob::{self, GlobError};
use crate::text::printable;

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file.
    File,
    /// A symbolic link: what is behind it, a whole folder perhaps, is nowhere in the candidate.
    Link,
    /// A repository in the repository: of what is in it the candidate knows the commit only.
    Repository,
}

/// What happened to a path between the base and the candidate. A rename is a deletion and an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is new.
    Added(Kind),
    /// It is the same kind of thing with another content.
    Modified(Kind),
    /// Only its mode changed: a script that is not executable any more does not run.
    Mode,
    /// It became another kind of thing, a file a link for instance.
    Became(Kind),
    /// It is gone.
    Deleted,
}

/// How strictly a path is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// `--protect`: no change, no deletion, no new match. Case does not count here, because a tool may prefer `makefile`
    /// to `Makefile`, and some file systems do not tell them apart.
    Frozen,
    /// `--protect-existing`: what was there neither changes nor goes; new files are welcome. Case counts: `Latest.java` is
    /// no `*Test.java`.
    Existing,
    /// `--auto-gates`: no new file hides a module from a test runner.
    Module,
}

/// A protected path that was touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The path.
    pub path: RepoPath,
    /// What happened to it.
    pub change: Change,
    /// How it is protected; the stricter rule where both hold.
    pub rule: Rule,
    /// The glob that says so, as it was given; the first that does. Of [`Rule::Module`] the module.
    pub glob: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let happened = match self.change {
            Change::Added(Kind::File) => "is new",
            Change::Added(Kind::Link) => "is a new link",
            Change::Added(Kind::Repository) => "is a new repository",
            Change::Modified(_) => "was changed",
            Change::Mode => "has another mode",
            Change::Became(Kind::File) => "became a file",
            Change::Became(Kind::Link) => "became a link",
            Change::Became(Kind::Repository) => "became a repository",
            Change::Deleted => "was deleted",
        };
        let (path, glob) = (&self.path, printable(&self.glob));
        match self.rule {
            Rule::Frozen => write!(f, "{path} {happened}, but --protect {glob} keeps it as it was"),
            Rule::Existing => {
                write!(f, "{path} {happened}, but --protect-existing {glob} keeps it as it was")
            }
            Rule::Module => write!(f, "{path} {happened}, and hides the module {glob} from the test runner"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProtectedPaths {
    frozen: Globs,
    existing: Globs,
    /// Folders in which no new file may hide a module.
    modules: Vec<String>,
}

impl ProtectedPaths {
    /// The rules of `--protect` and of `--protect-existing`.
    /// Errors: On the first glob that cannot be read: a skipped one would protect nothing.
    pub fn new(frozen: &[String], existing: &[String]) -> Result<Self, GlobError> {
        let (frozen, existing) = (Globs::new(frozen, false)?, Globs::new(existing, true)?);
        Ok(Self { frozen, existing, modules: Vec::new() })
    }

    /// The same with folders in which no new file may hide a module of a test runner.
    #[must_use]
    pub fn with_modules(self, folders: &[String]) -> Self {
        Self { modules: folders.to_vec(), ..self }
    }

    /// Every change that a rule forbids, in the order of the changes.
    pub fn touched(&self, changes: &[(RepoPath, Change)]) -> Vec<Violation> {
        changes.iter().filter_map(|(path, change)| self.judge(path, *change)).collect()
    }

    /// Whether a rule covers such a path: only for those their old and new content matters.
    pub fn covers(&self, path: &RepoPath, kind: Kind) -> bool {
        let bytes = path.to_bytes();
        self.freezes(&bytes, kind != Kind::File).is_some()
            || self.existing.first(&bytes).is_some()
            || modules::hidden(path, kind, &self.modules).is_some()
    }

    /// Whether a rule is bound to this folder or to one in it: `ci/**` to `ci` and `.`, but not to `ci/cache`. A folder
    /// that git ignores as a whole is read only if a rule names it.
    pub fn is_bound_to(&self, folder: &RepoPath) -> bool {
        let folder = format!("{}/", String::from_utf8_lossy(&folder.to_bytes()).to_lowercase());
        self.frozen.folders.iter().chain(&self.existing.folders).any(|bound| bound.starts_with(&folder))
    }

    /// Every new or changed file among the changes that Python takes in the place of a protected source.
    pub fn compiled(&self, changes: &[(RepoPath, Change)]) -> Vec<Violation> {
        let hides = |(path, change): &(RepoPath, Change)| {
            let source = match change {
                Change::Added(_) | Change::Modified(_) | Change::Became(_) => modules::source_behind(path)?,
                Change::Mode | Change::Deleted => return None,
            };
            let is_hidden = !self.modules.is_empty() && self.covers(&source, Kind::File);
            let module = source.to_string();
            is_hidden.then(|| Violation {
                path: path.clone(),
                change: *change,
                rule: Rule::Module,
                glob: module,
            })
        };
        changes.iter().filter_map(hides).collect()
    }

    fn judge(&self, path: &RepoPath, change: Change) -> Option<Violation> {
        let bytes = path.to_bytes();
        let may_gain = matches!(change, Change::Added(_));
        let hides = match change {
            Change::Added(kind) | Change::Modified(kind) | Change::Became(kind) => kind != Kind::File,
            Change::Mode | Change::Deleted => false,
        };
        let frozen = self.freezes(&bytes, hides);
        let hidden = match change {
            Change::Added(kind) | Change::Became(kind) => modules::hidden(path, kind, &self.modules),
            Change::Modified(_) | Change::Mode | Change::Deleted => None,
        };
        let (rule, glob) = match (frozen, hidden) {
            (Some(glob), _) => (Rule::Frozen, glob),
            (None, Some(module)) => (Rule::Module, module),
            (None, None) if may_gain => return None,
            (None, None) => (Rule::Existing, self.existing.first(&bytes)?),
        };
        Some(Violation { path: path.clone(), change, rule, glob: glob.to_owned() })
    }

    /// The glob that freezes the path; if it `hides` a folder, also one that is bound to a path in that folder.
    fn freezes(&self, path: &[u8], hides: bool) -> Option<&str> {
        let below = || if hides { self.frozen.first_below(path) } else { None };
        self.frozen.first(path).or_else(below)
    }
}

/// Globs of one rule, and which of the given ones each compiled one comes from.
#[derive(Clone, Debug)]
struct Globs {
    set: GlobSet,
    of: Vec<usize>,
    given: Vec<String>,
    /// The folder that each given one is bound to, in lower case; empty if it may hold anywhere.
    folders: Vec<String>,
}

impl Globs {
    fn new(given: &[String], case_counts: bool) -> Result<Self, GlobError> {
        let mut globs = Vec::new();
        let mut of = Vec::new();
        let mut folders = Vec::new();
        for (at, text) in given.iter().enumerate() {
            let compiled = glob::compile(text, case_counts)?;
            folders.push(fixed_folder(compiled.last().map_or("", Glob::glob)).to_lowercase());
            of.resize(of.len() + compiled.len(), at);
            globs.extend(compiled);
        }
        let set = glob::set(given, &globs)?;
        Ok(Self { set, of, given: given.to_vec(), folders })
    }

    fn first(&self, path: &[u8]) -> Option<&str> {
        let matched = self.set.matches_candidate(&Candidate::from_bytes(path));
        matched.iter().map(|at| self.of[*at]).min().map(|at| self.given[at].as_str())
    }

    /// The first that is bound to a folder which the path would replace: a link `.github` hides a new
    /// `.github/workflows/x.yml`.
    fn first_below(&self, path: &[u8]) -> Option<&str> {
        let path = String::from_utf8_lossy(path).to_lowercase();
        let below =
            |folder: &String| folder.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'));
        self.folders.iter().position(below).map(|at| self.given[at].as_str())
    }
}

/// The folder that contains all matches of a pattern; empty if there is none.
fn fixed_folder(pattern: &str) -> &str {
    let fixed = pattern.find(['*', '?', '[', '{', '\\']).map_or(pattern, |end| &pattern[..end]);
    fixed.rfind('/').map_or("", |end| &fixed[..=end])
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
