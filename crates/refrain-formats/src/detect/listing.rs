//! What a repository looks like to detection: the paths in it, and the texts of the few files that decide.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// The longest file that is worth reading for [`offer`](super::offer), in bytes: a longer one was not written by hand.
pub const READ_AT_MOST: u64 = 1 << 20;

/// How many test files are read to learn which runner they are written for.
const TESTS_READ: usize = 3;

/// Folders of what others wrote, or of what was built.
const THEIRS: &[&str] =
    &["node_modules", "vendor", "third_party", "target", "dist", "build", "venv", "site-packages"];

/// Folders whose manifests are inputs of tests, or shown to people.
const INPUTS: &[&str] = &[
    "testdata",
    "fixtures",
    "__fixtures__",
    "test",
    "tests",
    "spec",
    "example",
    "examples",
    "template",
    "templates",
];

/// Files whose text decides which gates there are.
const READ: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pnpm-workspace.yaml",
    "deno.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
    "Pipfile",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
    ".justfile",
    "composer.json",
    "CMakeLists.txt",
];

/// Scripts that run a project's tests, the first that is there.
pub(super) const SCRIPTS: &[&str] = &[
    "test.sh",
    "run_tests.sh",
    "run-tests.sh",
    "script/test",
    "scripts/test",
    "scripts/test.sh",
    "bin/test",
];

/// A repository's paths and the texts of some of its files. Paths are relative to its top and use slashes. Omit ignored
/// files.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Listing {
    /// A listing of all `paths` and the readable `texts` of those that [`wanted`] names.
    pub fn new(
        paths: impl IntoIterator<Item = impl Into<String>>,
        texts: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), texts: texts.into_iter().collect() }
    }

    /// Whether the folder has a file of that name.
    pub(super) fn has(&self, folder: &str, name: &str) -> bool {
        self.paths.contains(&join(folder, name))
    }

    pub(super) fn first<'a>(&self, folder: &str, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.has(folder, name))
    }

    /// The text of a file, if it was read.
    pub(super) fn text(&self, folder: &str, name: &str) -> Option<&str> {
        self.texts.get(&join(folder, name)).map(String::as_str)
    }

    /// Folders that have a file whose name matches, the nearest to the top first; without hidden folders, [`THEIRS`]
    /// and [`INPUTS`].
    pub(super) fn folders(&self, is_one: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut folders: Vec<_> = self
            .paths
            .iter()
            .map(|path| split(path))
            .filter(|(folder, name)| is_ours(folder) && is_one(name))
            .collect();
        folders.sort_by_key(|(folder, _)| (depth(folder), *folder));
        folders.dedup_by_key(|(folder, _)| *folder);
        folders.into_iter().map(|(folder, _)| folder).collect()
    }

    /// Files that match and are skipped, because they are in a folder of [`INPUTS`].
    pub(super) fn passed_over(&self, is_one: impl Fn(&str) -> bool) -> Vec<&str> {
        let is_input = |path: &&String| {
            let (folder, name) = split(path);
            is_one(name) && !is_ours(folder) && !is_theirs(folder)
        };
        self.paths.iter().filter(is_input).map(String::as_str).collect()
    }

    /// Paths below a folder, relative to it, without those below one of `apart`, a hidden folder or one of [`THEIRS`].
    pub(super) fn below<'a>(&'a self, folder: &'a str, apart: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let is_apart = move |path: &str| {
            apart.iter().any(|other| *other != folder && contains(folder, other) && contains(other, path))
        };
        self.paths
            .iter()
            .filter(move |path| contains(folder, path) && !is_apart(path) && !is_theirs(split(path).0))
            .map(move |path| path[folder.len()..].trim_start_matches('/'))
    }
}

/// The files whose texts [`offer`](super::offer) wants to see, of all that there are; of each at most [`READ_AT_MOST`].
pub fn wanted<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut wanted = Vec::new();
    let mut tests = Vec::new();
    for path in paths {
        let (folder, name) = split(path);
        let is_script = SCRIPTS.iter().any(|script| path == *script || path.ends_with(&format!("/{script}")));
        if is_script || (is_ours(folder) && READ.contains(&name)) {
            wanted.push(path);
        } else if is_python_test(path) && !is_theirs(folder) {
            tests.push(path);
        }
    }
    tests.sort_unstable();
    wanted.extend(tests.into_iter().take(TESTS_READ));
    wanted
}

/// Whether unittest or pytest would take the file for one of tests.
pub(super) fn is_python_test(path: &str) -> bool {
    let name = split(path).1;
    (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py") || name == "tests.py"
}

/// Whether a text has a line that matches: for the few texts that are read, and patterns that are constants.
pub(super) fn has_line(text: &str, pattern: &str) -> bool {
    Regex::new(&format!("(?m){pattern}")).is_ok_and(|regex| regex.is_match(text))
}

/// A path's folder, empty for the top, and its name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Whether a path is a folder or below it.
pub(super) fn contains(folder: &str, path: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth(folder: &str) -> usize {
    if folder.is_empty() { 0 } else { folder.split('/').count() }
}

fn is_theirs(folder: &str) -> bool {
    folder.split('/').any(|part| part.starts_with('.') || THEIRS.contains(&part))
}

fn is_ours(folder: &str) -> bool {
    !is_theirs(folder) && !folder.split('/').any(|part| INPUTS.contains(&part))
}
