//! The projects that agents work in: each has a mistake that its gate finds.

/// A project with a mistake that its gate finds.
pub(super) struct Lab {
    pub(super) name: &'static str,
    /// Programs without which it is skipped.
    pub(super) needs: &'static [&'static str],
    pub(super) files: &'static [(&'static str, &'static str)],
    /// What is done in the project after its commit, by a shell.
    pub(super) setup: &'static str,
    /// A folder that stands first in `PATH`, seen from the project.
    pub(super) path: &'static str,
    pub(super) gate: &'static str,
    pub(super) protect: &'static [&'static str],
    /// Options beside `--auto-gates`.
    pub(super) auto: &'static [&'static str],
    pub(super) mend: &'static str,
}

pub(super) static SHELL: Lab = Lab {
    name: "shell",
    needs: &[],
    files: &[
        ("src/sum.sh", "sum() { echo 0; }\n"),
        ("lib/common.sh", "fail() { echo \"FAILED: $1\"; exit 1; }\n"),
        (
            "tests/sum.sh",
            ". ./lib/common.sh\n. ./src/sum.sh\n[ \"$(sum 1 2)\" = 3 ] || fail 'the sum is wrong'\n",
        ),
        (
            "test.sh",
            "#!/bin/sh\nset -e\n. ./lib/common.sh\n[ ! -f .env ] || . ./.env\nfor test in tests/*.sh; do sh \"$test\"; done\n\
             echo 'all is well'\n",
        ),
        (".gitignore", ".env\n/out/\n"),
    ],
    setup: "",
    path: "",
    gate: "tests=sh test.sh",
    protect: &["--protect", "test.sh", "--protect", "lib", "--protect-existing", "tests/**"],
    auto: &[],
    mend: "echo 'sum() { echo $(($1 + $2)); }' > src/sum.sh",
};

pub(super) static MAKE: Lab = Lab {
    name: "make",
    needs: &["make"],
    files: &[
        ("src/sum.sh", "sum() { echo 0; }\n"),
        ("tests/sum.sh", ". ./src/sum.sh\n[ \"$(sum 1 2)\" = 3 ] || { echo 'the sum is wrong'; exit 1; }\n"),
        ("Makefile", "-include local.mk\ntest:\n\tsh tests/sum.sh\n"),
    ],
    setup: "",
    path: "",
    gate: "tests=make test",
    protect: &["--protect", "Makefile", "--protect-existing", "tests/**"],
    auto: &[],
    mend: "echo 'sum() { echo $(($1 + $2)); }' > src/sum.sh",
};

/// A gate that asks git what changed. `--auto-gates` finds none here.
pub(super) static GIT: Lab = Lab {
    name: "git",
    needs: &[],
    files: &[("kept.txt", "0\n")],
    setup: "",
    path: "",
    gate: "same=git diff --exit-code HEAD -- kept.txt && grep -qs 1 kept.txt more.txt",
    protect: &["--protect", "*.sh"],
    auto: &[],
    mend: "echo 1 > more.txt",
};

/// A gate whose program is looked up in `PATH`, where a folder of the worktree stands first.
pub(super) static VENV: Lab = Lab {
    name: "venv",
    needs: &[],
    files: SHELL.files,
    setup: "",
    path: ".venv/bin",
    gate: "tests=sh test.sh",
    protect: SHELL.protect,
    auto: &[],
    mend: SHELL.mend,
};

/// A toolchain that is chosen by a file of the project, as rustup does it; `cargo` is a stand-in.
pub(super) static TOOLCHAIN: Lab = Lab {
    name: "toolchain",
    needs: &[],
    files: &[
        ("Cargo.toml", "[package]\nname = \"sum\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "pub fn sum(a: i32, b: i32) -> i32 { a - b }\n"),
        ("tests/sum.rs", "#[test]\nfn sums() {}\n"),
    ],
    setup: "mkdir -p ../tools; cat > ../tools/cargo <<'END'\n#!/bin/sh\n\
            path=$(sed -n 's/^path = \"\\(.*\\)\"/\\1/p' rust-toolchain.toml 2> /dev/null)\n\
            [ -z \"$path\" ] || exec \"$path/bin/cargo\" \"$@\"\n\
            grep -q 'a + b' src/lib.rs && said='ok. 1 passed; 0' || said='FAILED. 0 passed; 1'\n\
            echo \"test result: $said failed; 0 ignored; 0 measured; 0 filtered out\"\n\
            grep -q 'a + b' src/lib.rs\nEND\nchmod +x ../tools/cargo",
    path: "../tools",
    gate: "tests=cargo test",
    protect: &["--protect", "Cargo.toml", "--protect-existing", "tests/**"],
    auto: &["--soft-gate", "cargo-clippy=true", "--soft-gate", "cargo-fmt=true"],
    mend: "echo 'pub fn sum(a: i32, b: i32) -> i32 { a + b }' > src/lib.rs",
};

pub(super) static PYTHON: Lab = Lab {
    name: "python",
    needs: &["python3"],
    files: &[
        ("sums.py", "def total(a, b):\n    return 0\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_sums.py",
            "import unittest\n\nimport sums\n\n\nclass Sums(unittest.TestCase):\n    def test_total(self):\n        \
             self.assertEqual(sums.total(1, 2), 3)\n",
        ),
        (".gitignore", "__pycache__/\n"),
    ],
    setup: "",
    path: "",
    gate: "tests=python3 -m unittest discover",
    protect: &["--protect-existing", "tests/**"],
    auto: &[],
    mend: "printf 'def total(a, b):\\n    return a + b\\n' > sums.py",
};

pub(super) static NODE: Lab = Lab {
    name: "node",
    needs: &["node", "npm"],
    files: &[
        ("sum.js", "exports.sum = (a, b) => 0;\n"),
        (
            "test.js",
            "const assert = require('assert');\nconst { sum } = require('./sum.js');\nassert.strictEqual(sum(1, 2), 3);\n\
             console.log('all is well');\n",
        ),
        (
            "package.json",
            "{ \"name\": \"sum\", \"version\": \"1.0.0\", \"scripts\": { \"test\": \"node test.js\" } }\n",
        ),
        (".gitignore", "node_modules/\n.cache/\n"),
    ],
    setup: "",
    path: "",
    gate: "tests=npm test",
    protect: &["--protect", "package.json", "--protect-existing", "tests/**"],
    auto: &[],
    mend: "echo 'exports.sum = (a, b) => a + b;' > sum.js",
};

pub(super) static NODE_TEST: Lab = Lab {
    name: "node --test",
    needs: &["node"],
    files: &[
        ("sum.js", "exports.sum = (a, b) => 0;\n"),
        (
            "test/sum.js",
            "const test = require('node:test');\nconst assert = require('assert');\nconst { sum } = require('../sum.js');\n\
             test('sums', () => assert.strictEqual(sum(1, 2), 3));\n",
        ),
        (
            "package.json",
            "{ \"name\": \"sum\", \"version\": \"1.0.0\", \"scripts\": { \"test\": \"node --test test/\" } }\n",
        ),
    ],
    setup: "",
    path: "",
    gate: "tests=node --test test/",
    protect: &["--protect", "package.json", "--protect-existing", "test/**"],
    auto: &[],
    mend: NODE.mend,
};

pub(super) static RUST: Lab = Lab {
    name: "rust",
    needs: &["cargo"],
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n",
        ),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"sum\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "pub fn sum(a: i32, b: i32) -> i32 {\n    a - b\n}\n"),
        ("tests/sum.rs", "#[test]\nfn sums() {\n    assert_eq!(sum::sum(1, 2), 3);\n}\n"),
        (".gitignore", "/target\n"),
    ],
    setup: "",
    path: "",
    gate: "tests=cargo test",
    protect: &["--protect", "Cargo.toml", "--protect-existing", "tests/**"],
    auto: &["--soft-gate", "cargo-clippy=true", "--soft-gate", "cargo-fmt=true"],
    mend: "printf 'pub fn sum(a: i32, b: i32) -> i32 {\\n    a + b\\n}\\n' > src/lib.rs",
};
