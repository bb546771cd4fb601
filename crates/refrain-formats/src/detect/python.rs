//! Python: pytest, unittest, Django, hatch, tox, nox; run in the environment of uv, Poetry, PDM or Pipenv if one is
//! used.

use toml::{Table, Value};

use super::draft::Draft;
use super::listing::{Listing, has_line, is_python_test, join, split};

const PROTECT: &[&str] = &[
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/tox.ini",
    "**/tox.toml",
    "**/noxfile.py",
    "**/setup.cfg",
    "**/conftest.py",
    "**/sitecustomize.py",
    "**/usercustomize.py",
    "**/*.pth",
    // `python -m` looks in the current folder first.
    "**/pytest.py",
    "**/pytest/__init__.py",
    "**/_pytest/__init__.py",
    "**/unittest.py",
    "**/unittest/__init__.py",
    "**/.coveragerc",
    "**/ruff.toml",
    "**/.ruff.toml",
    "**/.flake8",
    "**/mypy.ini",
    "**/.mypy.ini",
    "**/pyrightconfig.json",
    "**/.pylintrc",
    "**/.python-version",
];

const FROZEN: &[&str] = &[
    "tool.pytest",
    "tool.coverage",
    "tool.tox",
    "tool.hatch.envs",
    "tool.ruff",
    "tool.black",
    "tool.flake8",
    "tool.mypy",
    "tool.pyright",
];

const TESTS: &[&str] = &["**/test_*.py", "**/*_test.py", "**/tests.py", "**/tests/**", "**/test/**"];

const MANIFESTS: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "noxfile.py",
    "pytest.ini",
    ".pytest.ini",
    "Pipfile",
    "requirements.txt",
    "manage.py",
];

const REQUIREMENTS: &[&str] = &[
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
    "Pipfile",
    "setup.cfg",
];

pub(super) fn detect(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    let mut folders = listing.folders(|name| MANIFESTS.contains(&name));
    // A handful of scripts with tests, and nothing that declares a project.
    if !folders.contains(&"") && listing.below("", &folders).any(is_python_test) {
        folders.insert(0, "");
    }
    let mut is_any = false;
    for folder in &folders {
        let project = Project::read(listing, folder);
        // A manifest above may only configure a linter for folders with manifests of their own.
        let tests: Vec<&str> = listing.below(folder, &folders).filter(|path| is_python_test(path)).collect();
        is_any |= project.lints(draft);
        // Even if there is none: a new one may configure pytest.
        draft.protect_part(folder, "pyproject.toml", FROZEN, &[]);
        if tests.is_empty() {
            let declares = listing.has(folder, "setup.py") || project.table.contains_key("project");
            if declares {
                draft.note(format!(
                    "{} has no tests, so that no gate is offered for it: --gate 'python3 -m pytest' asks for some",
                    if folder.is_empty() { "this Python project" } else { folder }
                ));
            }
            continue;
        }
        is_any = true;
        let (name, command) = project.test_command(&tests);
        draft.test(folder, name, command);
        draft.protect_modules((*folder).to_owned());
        for inside in tests.iter().map(|test| split(test).0).filter(|inside| !inside.is_empty()) {
            draft.protect_modules(join(folder, inside));
        }
    }
    if is_any {
        draft.protect(PROTECT);
        draft.protect_existing(TESTS);
    }
}

struct Project<'a> {
    listing: &'a Listing,
    folder: &'a str,
    /// `pyproject.toml`, empty if there is none that can be read.
    table: Table,
}

impl<'a> Project<'a> {
    fn read(listing: &'a Listing, folder: &'a str) -> Self {
        let table =
            listing.text(folder, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
        Self { listing, folder, table }
    }

    fn tool(&self, name: &str) -> Option<&Value> {
        self.table.get("tool")?.get(name)
    }

    fn has(&self, name: &str) -> bool {
        self.listing.has(self.folder, name)
    }

    /// Whether an ini file of the folder has the section.
    fn has_section(&self, file: &str, section: &str) -> bool {
        let is_it = |line: &str| {
            line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(section)
        };
        self.listing.text(self.folder, file).is_some_and(|text| text.lines().any(is_it))
    }

    /// The prefix of a command that runs it in the project's environment.
    fn prefix(&self) -> &'static str {
        let at_top = |name| self.has(name) || self.listing.has("", name);
        match () {
            () if at_top("uv.lock") || self.tool("uv").is_some() => "uv run ",
            () if at_top("poetry.lock") || self.tool("poetry").is_some() => "poetry run ",
            () if at_top("pdm.lock") || self.tool("pdm").is_some() => "pdm run ",
            () if self.has("Pipfile") => "pipenv run ",
            () => "",
        }
    }

    /// A tool of the environment; without one it is asked of the interpreter, whose `bin` may not be in `PATH`.
    fn call(&self, tool: &str, arguments: &str) -> String {
        let prefix = self.prefix();
        let python = if prefix.is_empty() { "python3 -m " } else { "" };
        format!("{prefix}{python}{tool}{arguments}")
    }

    fn wants_pytest(&self, tests: &[&str]) -> bool {
        let mentions = |text: &str| has_line(text, r"(?-u:\b)pytest(?-u:\b)");
        let configured = self.tool("pytest").is_some()
            || ["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"]
                .iter()
                .any(|name| self.has(name))
            || self.has_section("setup.cfg", "tool:pytest")
            || self.has_section("tox.ini", "pytest");
        let names = REQUIREMENTS.iter().chain(&["pyproject.toml", "tox.ini"]);
        configured
            || names.filter_map(|name| self.listing.text(self.folder, name)).any(mentions)
            || tests.iter().filter_map(|path| self.listing.text(self.folder, path)).any(mentions)
    }

    /// The first that fits, and what its gate is called.
    fn test_command(&self, tests: &[&str]) -> (&'static str, String) {
        let uses = |word: &str| {
            tests.iter().filter_map(|path| self.listing.text(self.folder, path)).any(|t| t.contains(word))
        };
        let under_tests =
            tests.iter().all(|path| path.starts_with("tests/")) && !self.has("tests/__init__.py");
        match () {
            () if self.wants_pytest(tests) => ("pytest", self.call("pytest", "")),
            () if self.has("manage.py") => {
                ("django-test", format!("{}python3 manage.py test", self.prefix()))
            }
            () if self.tool("hatch").is_some_and(|hatch| hatch.get("envs").is_some()) => {
                ("hatch-test", "hatch test".to_owned())
            }
            () if self.has("tox.ini") || self.has("tox.toml") || self.tool("tox").is_some() => {
                ("tox", "tox".to_owned())
            }
            () if self.has("noxfile.py") => ("nox", "nox".to_owned()),
            () if uses("unittest") => {
                let from = if under_tests { " -s tests" } else { "" };
                ("unittest", format!("{}python3 -m unittest discover{from}", self.prefix()))
            }
            // Tests written for unittest run there too.
            () => ("pytest", self.call("pytest", "")),
        }
    }

    /// The linters that are configured; whether there is any.
    fn lints(&self, draft: &mut Draft<'_>) -> bool {
        let ruff = self.has("ruff.toml") || self.has(".ruff.toml") || self.tool("ruff").is_some();
        let flake8 = self.has(".flake8")
            || self.has_section("setup.cfg", "flake8")
            || self.has_section("tox.ini", "flake8");
        let mypy = self.tool("mypy").is_some()
            || self.has("mypy.ini")
            || self.has(".mypy.ini")
            || self.has_section("setup.cfg", "mypy");
        // Without files in its configuration mypy needs them as arguments.
        let files = if self.tool("mypy").is_some_and(|mypy| mypy.get("files").is_some()) { "" } else { " ." };
        let pyright = self.has("pyrightconfig.json") || self.tool("pyright").is_some();
        let rows = [
            (ruff, "ruff", " check"),
            (self.tool("black").is_some(), "black", " --check ."),
            (flake8, "flake8", ""),
            (mypy, "mypy", files),
            (pyright, "pyright", ""),
        ];
        for (_, tool, arguments) in rows.iter().filter(|(is_used, _, _)| *is_used) {
            draft.lint(self.folder, tool, self.call(tool, arguments));
        }
        rows.iter().any(|(is_used, _, _)| *is_used)
    }
}
