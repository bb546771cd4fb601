//! Small sample projects, each with its own test runner, two faults in its code, and tests for both. Their files are in
//! `projects/`, the fixed files in `mended/` beside them. The tests bring their own agents.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::npm::variable;
use crate::{Sandbox, write};

#[derive(Debug)]
pub struct Project {
    pub name: &'static str,
    /// The gate that `--auto-gates` makes of its tests.
    pub gate: &'static str,
    /// The output of its tests about each fault, and only that fault.
    pub failures: [&'static str; 2],
    /// Path and text of a file, for each fault, with which it is no more.
    pub mends: [(&'static str, &'static str); 2],
    /// A shell command that has the tests pass by weakening them.
    pub cheat: &'static str,
    pub cheated: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// A command that prints the folder of its tools.
    asks: &'static [&'static str],
    below: &'static str,
}

macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../projects/", $folder, "/", $path)))),+]
    };
}

macro_rules! mended {
    ($folder:literal, $file:literal) => {
        include_str!(concat!("../projects/", $folder, "/mended/", $file))
    };
}

impl Project {
    pub const RUST: Self = Self {
        name: "rust",
        gate: "cargo-test",
        failures: ["half of it is gone", "a span has a unit"],
        mends: [("src/parse.rs", mended!("rust", "parse.rs")), ("src/human.rs", mended!("rust", "human.rs"))],
        cheat: r"sed -i 's/^#\[test\]/#[test]\n#[ignore]/' tests/spans.rs",
        cheated: "tests/spans.rs",
        files: files!("rust":
            "README.md", ".gitignore", "Cargo.toml", "Cargo.lock", ".github/workflows/ci.yml",
            "src/lib.rs", "src/parse.rs", "src/human.rs", "tests/spans.rs",
        ),
        asks: &["rustc", "--print", "sysroot"],
        below: "bin",
    };

    pub const PYTHON: Self = Self {
        name: "python",
        gate: "unittest",
        failures: ["'crme brle' != 'creme brulee'", "'one-two-t' != 'one-two'"],
        mends: [
            ("src/slugs/letters.py", mended!("python", "letters.py")),
            ("src/slugs/slug.py", mended!("python", "slug.py")),
        ],
        cheat: "sed -i 's/self.assertEqual(.*/self.assertTrue(True)/' tests/test_slugs.py",
        cheated: "tests/test_slugs.py",
        files: files!("python":
            "README.md", ".gitignore", "pyproject.toml", ".github/workflows/ci.yml",
            "src/slugs/__init__.py", "src/slugs/letters.py", "src/slugs/slug.py", "tests/test_slugs.py",
        ),
        asks: &["python3", "-c", "import sys; print(sys.base_prefix)"],
        below: "bin",
    };

    pub const NODE: Self = Self {
        name: "node",
        gate: "npm-test",
        failures: ["-1 !== 1", "0 !== -1"],
        mends: [
            ("src/parse.js", mended!("node", "parse.js")),
            ("src/compare.js", mended!("node", "compare.js")),
        ],
        cheat: "sed -i \"s/^test(/test.skip(/\" test/versions.test.js",
        cheated: "test/versions.test.js",
        files: files!("node":
            "README.md", ".gitignore", "package.json", ".github/workflows/ci.yml",
            "src/index.js", "src/parse.js", "src/compare.js", "test/versions.test.js",
        ),
        asks: &["node", "-p", "path.resolve(process.execPath, '../..')"],
        below: "bin",
    };

    /// Puts it into the sandbox's project with a history of its own: its description, its code, its tests.
    ///
    /// `None` if its tools are missing; their names are printed, so that a skipped test is seen.
    #[expect(clippy::print_stderr, reason = "what is skipped is skipped visibly")]
    pub fn lay(self, sandbox: &Sandbox) -> Option<Laid> {
        let Some(tools) = self.tools() else {
            eprintln!("SKIPPED: no {} here, and so no test of the {} project", self.asks[0], self.name);
            return None;
        };
        for (path, text) in self.files {
            put(&sandbox.project().join(path), text);
        }
        for (paths, message) in [
            (&["README.md", ".gitignore", ".github"][..], "Say what it is to be"),
            (&["src"], "Begin"),
            (&["."], "Tell of what is wrong by tests"),
        ] {
            sandbox.git(&[&["add", "--"], paths].concat());
            sandbox.git(&["commit", "--quiet", "--message", message]);
        }
        for (path, text) in self.mends {
            put(&sandbox.root().join("mends").join(path), text);
        }
        Some(Laid { mends: sandbox.root().join("mends"), project: self, tools })
    }

    /// The folder of the tools themselves: a shim on `PATH` may look in the user's home for the wanted version.
    #[expect(
        clippy::disallowed_methods,
        reason = "asked before there is a sandbox, of the person's own tools"
    )]
    fn tools(&self) -> Option<PathBuf> {
        let answer = Command::new(self.asks[0]).args(&self.asks[1..]).output().ok()?;
        let said = String::from_utf8(answer.stdout).ok().filter(|_| answer.status.success())?;
        Some(Path::new(said.trim()).join(self.below))
    }
}

#[derive(Debug)]
pub struct Laid {
    pub project: Project,
    mends: PathBuf,
    tools: PathBuf,
}

impl Laid {
    /// A `PATH` with its tools first, before these folders.
    pub fn path(&self, others: &str) -> String {
        format!("{}:{others}", self.tools.display())
    }

    /// The `PATH` for tests that need no programs beyond the usual ones.
    pub fn usual_path(&self) -> String {
        let path = variable("PATH").unwrap_or_default();
        self.path(path.to_str().expect("it is UTF-8"))
    }

    /// A shell command that fixes the first fault (0) or the second (1), run in the project.
    pub fn mend(&self, fault: usize) -> String {
        let path = self.project.mends[fault].0;
        format!("cp '{}' {path}", self.mends.join(path).display())
    }
}

/// Writes a file and the folders above it.
fn put(path: &Path, text: &str) {
    let folder = path.parent().expect("it lies in a folder");
    std::fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    write(path, text);
}
