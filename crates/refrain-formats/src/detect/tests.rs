use proptest::prelude::*;
use refrain_core::gate::Offer;
use refrain_core::protect::{Change, Kind, ProtectedPaths};

use super::*;

/// The offer of a repository of these files; those that are read have their texts.
fn offered(files: &[(&str, &str)]) -> Offer {
    let read = |path: &str| {
        files
            .iter()
            .find(|(other, _)| *other == path)
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
    };
    let mut texts: Vec<_> =
        wanted(files.iter().map(|(path, _)| *path)).into_iter().filter_map(read).collect();
    loop {
        let offer = offer(&Listing::new(files.iter().map(|(path, _)| *path), texts.clone()));
        match offer.unread.is_empty() {
            true => return offer,
            false => texts.extend(offer.unread.iter().filter_map(|path| read(path))),
        }
    }
}

fn gates(files: &[(&str, &str)]) -> Vec<String> {
    let line = |gate: &refrain_core::gate::GateSpec| {
        format!("{}{}: {}", if gate.hard { "" } else { "soft " }, gate.name, gate.check)
    };
    offered(files).gates.iter().map(line).collect()
}

fn hard(files: &[(&str, &str)]) -> Vec<String> {
    gates(files).into_iter().filter(|line| !line.starts_with("soft ")).collect()
}

const CRATE: &str = "[package]\nname = \"a\"\n";

#[test]
fn a_crate() {
    assert_eq!(
        gates(&[("Cargo.toml", CRATE), ("src/lib.rs", "")]),
        [
            "cargo-test: cargo test",
            "soft cargo-clippy: cargo clippy --all-targets -- -D warnings",
            "soft cargo-fmt: cargo fmt --check",
        ]
    );
}

#[test]
fn a_workspace_covers_its_members_and_nothing_else() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nexclude = [\"tools/own\", \"fuzz\"]\n"),
        ("crates/a/Cargo.toml", CRATE),
        ("tools/own/Cargo.toml", CRATE),
        ("fuzz/Cargo.toml", "[package]\nname = \"f\"\n[workspace]\n"),
        ("tests/fixture/Cargo.toml", CRATE),
    ];
    assert_eq!(
        hard(&files),
        [
            "cargo-test: cargo test --workspace",
            "cargo-test-fuzz: cd ./fuzz && cargo test --workspace",
            "cargo-test-tools-own: cd ./tools/own && cargo test",
        ]
    );
    let notes = offered(&files).notes;
    assert!(notes.iter().any(|note| note.contains("tests/fixture/Cargo.toml")), "{notes:?}");
}

#[test]
fn nextest_where_it_is_configured() {
    let files = [("Cargo.toml", "[workspace]\n[package]\nname = \"a\"\n"), (".config/nextest.toml", "")];
    assert_eq!(hard(&files), ["cargo-nextest: cargo nextest run --workspace"]);
}

fn package(scripts: &str) -> String {
    format!("{{\"name\": \"a\", \"scripts\": {{{scripts}}}}}")
}

#[test]
fn scripts_are_run_by_the_manager_whose_lock_is_there() {
    let json = package(r#""test": "vitest", "lint": "eslint .", "typecheck": "tsc --noEmit""#);
    for (lock, runner, test) in [
        ("package-lock.json", "npm", "npm test"),
        ("pnpm-lock.yaml", "pnpm", "pnpm test"),
        ("yarn.lock", "yarn", "yarn test"),
        ("bun.lockb", "bun", "bun run test"),
        ("README.md", "npm", "npm test"),
    ] {
        assert_eq!(
            gates(&[("package.json", &json), (lock, "")]),
            [
                format!("{runner}-test: CI=true {test}"),
                format!("soft {runner}-lint: CI=true {runner} run lint"),
                format!("soft {runner}-types: CI=true {runner} run typecheck"),
            ],
            "{lock}"
        );
    }
    let named = r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "jest"}}"#;
    assert_eq!(hard(&[("package.json", named)]), ["pnpm-test: CI=true pnpm test"]);
}

#[test]
fn a_script_that_tests_nothing_or_does_not_end_is_no_gate() {
    for script in [
        r#""test": "echo \"Error: no test specified\" && exit 1""#,
        r#""test": "exit 0""#,
        r#""test": "true""#,
        r#""test": """#,
        r#""test": "jest --watch""#,
        r#""test": "jest --watchAll""#,
        r#""test": "ng test""#,
        r#""start": "node .""#,
    ] {
        let offer = offered(&[("package.json", &package(script))]);
        assert_eq!(offer.gates, [], "{script}");
        assert!(offer.notes[0].starts_with("no test was found"), "{script}");
        assert!(offer.notes[1].contains("has no script `test`"), "{script}");
    }
    for (script, command) in [
        (r#""test": "jest --watch", "test:ci": "jest --ci""#, "npm-test-ci: CI=true npm run test:ci"),
        (r#""test": "react-scripts test --watchAll=false""#, "npm-test: CI=true npm test"),
        (r#""test": "echo go && node --test""#, "npm-test: CI=true npm test"),
    ] {
        assert_eq!(gates(&[("package.json", &package(script))]), [command]);
    }
    let mends = package(r#""test": "jest", "lint": "eslint --fix .", "lint:check": "eslint .""#);
    assert_eq!(gates(&[("package.json", &mends)])[1], "soft npm-lint: CI=true npm run lint:check");
}

#[test]
fn members_of_a_javascript_workspace() {
    let member = package(r#""test": "vitest run", "lint": "eslint .""#);
    let by_root =
        r#"{"workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces", "lint": "eslint ."}}"#;
    let files =
        [("package.json", by_root), ("packages/a/package.json", &*member), ("site/package.json", &*member)];
    assert_eq!(
        gates(&files),
        [
            "npm-test: CI=true npm test",
            "npm-test-site: cd ./site && CI=true npm test",
            "soft npm-lint: CI=true npm run lint",
            "soft npm-lint-site: cd ./site && CI=true npm run lint",
        ]
    );
    let files = [
        ("package.json", "{}"),
        ("pnpm-workspace.yaml", "packages:\n  - 'packages/**'\n  - '!packages/old'\n"),
        ("pnpm-lock.yaml", ""),
        ("packages/a/package.json", &*member),
        ("packages/old/package.json", &*member),
    ];
    assert_eq!(
        hard(&files),
        [
            "pnpm-test-packages-a: cd ./packages/a && CI=true pnpm test",
            "pnpm-test-packages-old: cd ./packages/old && CI=true pnpm test",
        ]
    );
}

#[test]
fn a_python_gate_is_chosen_by_the_configured_runner() {
    let test = ("tests/test_a.py", "import a\n");
    let rows: &[(&[(&str, &str)], &str)] = &[
        (&[("pyproject.toml", "[project]\ndependencies = [\"pytest>=8\"]\n")], "pytest: python3 -m pytest"),
        (&[("pytest.ini", "")], "pytest: python3 -m pytest"),
        (&[("setup.cfg", "[metadata]\n[tool:pytest]\n")], "pytest: python3 -m pytest"),
        (&[("requirements-dev.txt", "pytest==8.1\n"), ("requirements.txt", "")], "pytest: python3 -m pytest"),
        (&[("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")], "pytest: uv run pytest"),
        (
            &[("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest = \"*\"\n")],
            "pytest: poetry run pytest",
        ),
        (&[("Pipfile", "[dev-packages]\npytest = \"*\"\n")], "pytest: pipenv run pytest"),
        (&[("pyproject.toml", "[project]\n[tool.hatch.envs.default]\n")], "hatch-test: hatch test"),
        (&[("setup.py", ""), ("tox.ini", "[testenv]\ncommands = stestr run\n")], "tox: tox"),
        (&[("noxfile.py", "")], "nox: nox"),
        (&[("manage.py", "")], "django-test: python3 manage.py test"),
        (&[("setup.py", "")], "pytest: python3 -m pytest"),
        (&[], "pytest: python3 -m pytest"),
    ];
    for (files, expected) in rows {
        let files: Vec<_> = files.iter().copied().chain([test]).collect();
        assert_eq!(hard(&files), [*expected], "{files:?}");
    }
    let unittest = ("tests/test_a.py", "import unittest\n");
    assert_eq!(
        offered(&[unittest, ("web/pyproject.toml", ""), ("web/test_b.py", "")]).modules,
        ["", "tests", "web"]
    );
    assert_eq!(hard(&[unittest]), ["unittest: python3 -m unittest discover -s tests"]);
    assert_eq!(hard(&[unittest, ("tests/__init__.py", "")]), ["unittest: python3 -m unittest discover"]);
    assert_eq!(hard(&[("setup.py", ""), ("a.py", "")]), [""; 0]);
    assert_eq!(hard(&[("vendor/x/test_a.py", ""), (".venv/lib/test_b.py", "")]), [""; 0]);
}

#[test]
fn python_linters_that_are_configured() {
    let files = [
        ("pyproject.toml", "[project]\n[tool.ruff]\n[tool.mypy]\nfiles = \"src\"\n[tool.black]\n"),
        ("uv.lock", ""),
        (".flake8", ""),
    ];
    assert_eq!(
        gates(&files),
        [
            "soft ruff: uv run ruff check",
            "soft black: uv run black --check .",
            "soft flake8: uv run flake8",
            "soft mypy: uv run mypy",
        ]
    );
}

#[test]
fn python_projects_beside_each_other() {
    let files = [
        ("pyproject.toml", "[tool.ruff]\n"),
        ("services/a b/pyproject.toml", "[project]\n[tool.pytest.ini_options]\n"),
        ("services/a b/tests/test_a.py", ""),
        ("services/c/requirements.txt", ""),
        ("services/c/test_c.py", "import unittest\n"),
    ];
    assert_eq!(
        hard(&files),
        [
            "pytest-services-a-b: cd './services/a b' && python3 -m pytest",
            "unittest-services-c: cd ./services/c && python3 -m unittest discover",
        ]
    );
}

#[test]
fn go_modules() {
    let files = [
        ("go.work", ""),
        ("go.mod", ""),
        ("a_test.go", ""),
        ("tools/go.mod", ""),
        ("tools/x_test.go", ""),
        ("empty/go.mod", ""),
        (".golangci.yml", ""),
    ];
    let found = gates(&files);
    assert_eq!(found[..2], ["go-test: go test ./...", "go-test-tools: cd ./tools && go test ./..."]);
    assert!(
        found.contains(&"soft golangci-lint-empty: cd ./empty && golangci-lint run".to_owned()),
        "{found:?}"
    );
    let notes = offered(&files).notes;
    assert!(notes[0].starts_with("empty/go.mod has no *_test.go"), "{notes:?}");
}

#[test]
fn make_just_and_scripts_stand_beside_at_the_top() {
    let files = [
        ("Cargo.toml", CRATE),
        ("Makefile", "test:\n\tcargo test --all-features\nlint:\n\tcargo fmt --check\n"),
        ("justfile", "test:\n  cargo test\n"),
        ("test.sh", "#!/usr/bin/env bash\n"),
    ];
    assert_eq!(hard(&files), ["cargo-test: cargo test", "make-test: make test", "test: bash test.sh"]);
    let notes = offered(&files).notes;
    assert!(
        notes.contains(&"`just test` is no gate of its own: it runs `cargo test`, which is one".to_owned())
    );
}

#[test]
fn make_just_and_scripts_stand_in_where_a_folder_has_nothing_else() {
    let files = [
        ("a/Makefile", "check:\n\t./run\n"),
        ("b/go.mod", ""),
        ("b/x_test.go", ""),
        ("b/Makefile", "test:\n\tgo test -race ./...\n"),
        ("c/run_tests.sh", "make -j4\n"),
    ];
    assert_eq!(
        hard(&files),
        [
            "go-test-b: cd ./b && go test ./...",
            "make-check-a: cd ./a && make check",
            "run-tests-c: cd ./c && sh run_tests.sh",
        ]
    );
}

#[test]
fn other_ecosystems() {
    let rows: &[(&[&str], &[&str])] = &[
        (
            &[
                "build.gradle.kts",
                "settings.gradle.kts",
                "gradlew",
                "app/build.gradle",
                "app/src/test/java/ATest.java",
            ],
            &["gradle-test: sh gradlew --console=plain test"],
        ),
        (&["pom.xml", "core/pom.xml", "core/src/test/java/ATest.java"], &["maven-test: mvn -B test"]),
        (&["pom.xml", "src/main/java/A.java"], &[]),
        (&["App.sln", "App/App.csproj", "App.Tests/App.Tests.csproj"], &["dotnet-test: dotnet test"]),
        (
            &["mix.exs", "test/a_test.exs", ".formatter.exs"],
            &["mix-test: mix test", "soft mix-format: mix format --check-formatted"],
        ),
        (&["Gemfile", ".rspec", "spec/a_spec.rb"], &["rspec: bundle exec rspec"]),
        (&["Rakefile", "test/test_a.rb"], &["rake-test: rake test"]),
        (&["Gemfile", "bin/rails", "test/models/a_test.rb"], &["rails-test: ruby bin/rails test"]),
        (&["composer.json", "phpunit.xml.dist", "tests/ATest.php"], &["phpunit: php vendor/bin/phpunit"]),
        (&["Package.swift", "Tests/ATests/a.swift"], &["swift-test: swift test"]),
        (&["build.zig", "src/main.zig"], &["zig-test: zig build test --summary all"]),
        (&["MODULE.bazel"], &["bazel-test: bazel test //..."]),
        (&["deno.json", "a_test.ts"], &["deno-test: deno test", "soft deno-lint: deno lint"]),
        (&["CMakeLists.txt"], &[]),
        (&["README.md"], &[]),
    ];
    for (paths, expected) in rows {
        let files: Vec<_> = paths.iter().map(|path| (*path, "")).collect();
        assert_eq!(gates(&files), *expected, "{paths:?}");
    }
    let cmake = "project(a)\nenable_testing()\n";
    assert!(
        hard(&[("CMakeLists.txt", cmake)])[0]
            .ends_with("ctest --test-dir build --output-on-failure --no-tests=error")
    );
    let composer = r#"{"scripts": {"test": ["phpunit", "phpstan"]}}"#;
    assert_eq!(
        hard(&[("composer.json", composer), ("tests/ATest.php", "")]),
        ["composer-test: composer test"]
    );
}

#[test]
fn every_ecosystem_is_offered_and_not_only_the_first() {
    let files = [
        ("Cargo.toml", CRATE),
        ("web/package.json", r#"{"scripts": {"test": "vitest"}}"#),
        ("py/test_a.py", ""),
        ("py/requirements.txt", "pytest"),
        ("go.mod", ""),
        ("a_test.go", ""),
        ("Makefile", "test:\n\tcargo test && go test ./...\n"),
    ];
    assert_eq!(
        hard(&files),
        [
            "cargo-test: cargo test",
            "go-test: go test ./...",
            "make-test: make test",
            "npm-test-web: cd ./web && CI=true npm test",
            "pytest-py: cd ./py && python3 -m pytest",
        ]
    );
}

#[test]
fn an_unreadable_manifest_is_noted_and_not_guessed() {
    let offer = offered(&[("Cargo.toml", "[package"), ("package.json", "{")]);
    assert_eq!(offer.gates, []);
    assert_eq!(
        offer.notes,
        [
            "no test was found that could be a gate: give one with --gate CMD",
            "Cargo.toml cannot be read, and nothing is offered for it",
            "package.json cannot be read, and nothing is offered for it",
        ]
    );
}

#[test]
fn of_manifests_parts_are_frozen() {
    let offer = offered(&[
        ("Cargo.toml", "[workspace]\n"),
        ("crates/a/Cargo.toml", CRATE),
        ("web/package.json", "{}"),
        ("py/setup.py", ""),
        ("composer.json", r#"{"scripts": {"test": "phpunit"}}"#),
        ("tests/ATest.php", ""),
    ]);
    let paths: Vec<_> = offer.parts.iter().map(|part| part.path.as_str()).collect();
    assert_eq!(
        paths,
        ["Cargo.toml", "crates/a/Cargo.toml", "web/package.json", "py/pyproject.toml", "composer.json"]
    );
}

#[test]
fn only_files_that_decide_about_gates_are_read() {
    let paths = [
        "Cargo.toml",
        "src/lib.rs",
        "node_modules/a/package.json",
        "web/package.json",
        "test.sh",
        "tests/test_d.py",
        "tests/test_c.py",
        "tests/test_b.py",
        "tests/test_a.py",
        "sub/scripts/test",
    ];
    assert_eq!(
        wanted(paths),
        [
            "Cargo.toml",
            "web/package.json",
            "test.sh",
            "sub/scripts/test",
            "tests/test_a.py",
            "tests/test_b.py",
            "tests/test_c.py",
        ]
    );
}

/// Files that an agent touches to cheat, in a repository of everything, and what it does to them.
const CHEATS: &[(&str, Change)] = &[
    (".github/workflows/ci.yml", Change::Modified(Kind::File)),
    (".github/workflows/new.yml", Change::Added(Kind::File)),
    (".github", Change::Added(Kind::Link)),
    (".gitlab-ci.yml", Change::Deleted),
    (".husky/pre-commit", Change::Added(Kind::File)),
    (".cargo/config.toml", Change::Added(Kind::File)),
    ("crates/a/.cargo/config.toml", Change::Added(Kind::File)),
    ("rust-toolchain.toml", Change::Modified(Kind::File)),
    ("clippy.toml", Change::Added(Kind::File)),
    ("web/jest.config.js", Change::Modified(Kind::File)),
    ("web/vitest.config.ts", Change::Added(Kind::File)),
    ("web/.eslintrc.json", Change::Modified(Kind::File)),
    ("web/biome.json", Change::Modified(Kind::File)),
    ("web/src/a.test.ts", Change::Modified(Kind::File)),
    ("web/src/__snapshots__/a.snap", Change::Modified(Kind::File)),
    ("py/conftest.py", Change::Added(Kind::File)),
    ("py/sitecustomize.py", Change::Added(Kind::File)),
    ("py/pytest.ini", Change::Added(Kind::File)),
    ("py/ruff.toml", Change::Modified(Kind::File)),
    ("py/test_a.py", Change::Modified(Kind::File)),
    ("py/test_a.py", Change::Deleted),
    ("crates/a/tests/a.rs", Change::Mode),
    ("a_test.go", Change::Became(Kind::Link)),
    ("Makefile", Change::Modified(Kind::File)),
    ("GNUmakefile", Change::Added(Kind::File)),
    ("makefile", Change::Added(Kind::File)),
    ("test.sh", Change::Modified(Kind::File)),
    (".env.test", Change::Added(Kind::File)),
];

const HONEST: &[(&str, Change)] = &[
    ("src/lib.rs", Change::Modified(Kind::File)),
    ("src/new.rs", Change::Added(Kind::File)),
    ("web/src/a.ts", Change::Modified(Kind::File)),
    ("web/src/b.test.ts", Change::Added(Kind::File)),
    ("py/app.py", Change::Modified(Kind::File)),
    ("py/test_b.py", Change::Added(Kind::File)),
    ("b_test.go", Change::Added(Kind::File)),
    ("crates/a/tests/b.rs", Change::Added(Kind::File)),
    ("README.md", Change::Modified(Kind::File)),
    ("src/latest.rs", Change::Deleted),
    ("Cargo.lock", Change::Modified(Kind::File)),
    ("sub/Makefile", Change::Modified(Kind::File)),
];

#[test]
fn the_offered_protection_catches_cheats_and_allows_honest_work() {
    let offer = offered(&[
        ("Cargo.toml", CRATE),
        ("web/package.json", r#"{"scripts": {"test": "vitest"}}"#),
        ("py/test_a.py", ""),
        ("go.mod", ""),
        ("a_test.go", ""),
        ("Makefile", "test:\n\tcargo test && go test ./...\n"),
        ("test.sh", ""),
    ]);
    let protected = ProtectedPaths::new(&offer.protect, &offer.protect_existing).unwrap();
    let touched = |path: &str, change| {
        !protected.touched(&[(refrain_core::git::RepoPath::from_bytes(path.as_bytes()), change)]).is_empty()
    };
    for (path, change) in CHEATS {
        assert!(touched(path, *change), "{path} {change:?}");
    }
    for (path, change) in HONEST {
        assert!(!touched(path, *change), "{path} {change:?}");
    }
}

proptest! {
    // Each case compiles all the globs.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every glob that is offered can be read, names are unique, and the order of the paths does not matter.
    #[test]
    fn an_offer_is_whole(
        mut paths in proptest::collection::vec(
            "((a|b c|-x|\\[1\\]|tests)/){0,3}(Cargo.toml|package.json|go.mod|x_test.go|test_a.py|Makefile|test.sh|setup.py|pom.xml)",
            0..12,
        )
    ) {
        let files: Vec<_> = paths.iter().map(|path| {
            let text = match path.rsplit('/').next() {
                Some("Cargo.toml") => CRATE,
                Some("package.json") => r#"{"scripts": {"test": "jest"}}"#,
                Some("Makefile") => "test:\n\tjest\n",
                _ => "",
            };
            (path.clone(), text)
        }).collect();
        let view: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let offer = offered(&view);
        let names: std::collections::BTreeSet<_> = offer.gates.iter().map(|gate| &gate.name).collect();
        prop_assert_eq!(names.len(), offer.gates.len());
        prop_assert!(ProtectedPaths::new(&offer.protect, &offer.protect_existing).is_ok());
        for gate in &offer.gates {
            prop_assert!(shlex::split(&gate.check.to_string()).is_some(), "{}", gate.check);
        }
        paths.reverse();
        let mut view = view;
        view.reverse();
        prop_assert_eq!(offered(&view).gates, offer.gates);
    }
}

#[test]
fn scripts_that_a_gate_calls_are_protected_where_they_say_that_they_check() {
    let calls = |files: &[(&str, &str)]| -> Vec<String> {
        let called = |glob: &String| glob.starts_with('/') && !glob.ends_with('*');
        offered(files).protect_existing.into_iter().filter(called).collect()
    };
    let scripts = r#"{"scripts":{"pretest":"sh ci/build.sh","test":"node index.js && node ./selftest.js"}}"#;
    let files = [("index.js", ""), ("selftest.js", ""), ("ci/build.sh", "")];
    let package = |folder: &str, text| {
        let paths = files.map(|(path, _)| super::listing::join(folder, path));
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let manifest = super::listing::join(folder, "package.json");
        files.push((manifest.as_str(), text));
        calls(&files)
    };
    assert_eq!(package("", scripts), ["/ci/build.sh", "/selftest.js"]);
    assert_eq!(package("a[1]", scripts), ["/a[[]1[]]/ci/build.sh", "/a[[]1[]]/selftest.js"]);
    assert_eq!(calls(&[("Makefile", "test:\n\t@sh check.sh\n"), ("check.sh", "")]), ["/check.sh"]);
    assert!(calls(&[("Makefile", "test:\n\t@sh check.sh\n")]).is_empty());
    // The files that those read and run in turn, and not those that they test.
    let script = ". ./lib/common.sh\n. \"$(dirname \"$0\")/src/sum.sh\"\nsh ci/deep.sh\n[ \"$(sh greet.sh)\" = hi ] || exit 1\n";
    let files = [
        ("test.sh", script),
        ("lib/common.sh", "say() { echo \"$1\"; }\n"),
        ("src/sum.sh", "sum() { echo 0; }\n"),
        ("ci/deep.sh", ". ci/more\n"),
        ("ci/more", "MORE=1\n"),
        ("greet.sh", "echo hi\n"),
    ];
    assert_eq!(calls(&files), ["/ci/deep.sh", "/ci/more", "/lib/common.sh"]);
    let npm = r#"{"scripts":{"test":"npm run lint && npm run unit","unit":"sh run.sh","lint":"true"}}"#;
    assert_eq!(
        calls(&[("package.json", npm), ("run.sh", ". ./env\n"), ("env", "A=1\n")]),
        ["/env", "/run.sh"]
    );
    let makefile = "include rules\ntest: unit\nunit:\n\tcd .\n\t. ./env && bash x\n";
    let files = [("Makefile", makefile), ("rules", ""), ("env", ""), ("x", "")];
    assert_eq!(calls(&files), ["/env", "/x"]);
    assert!(offered(&files).protect.contains(&"/rules".to_owned()));
    let protect = offered(&[("test.sh", "[ ! -f .env ] || . ./.env\n")]).protect;
    assert!(protect.contains(&"/.env".to_owned()), "settings that are not there yet: {protect:?}");
    // The files that `node --test` would run.
    let protect = offered(&[("package.json", r#"{"scripts":{"test":"node --test"}}"#)]).protect_existing;
    let protected = ProtectedPaths::new(&[], &protect).unwrap();
    for path in ["test.js", "a/test.mjs", "test-a.js", "a-test.cjs", "a_test.js", "test/a.js"] {
        let changed =
            [(refrain_core::git::RepoPath::from_bytes(path.as_bytes()), Change::Modified(Kind::File))];
        assert_eq!(protected.touched(&changed).len(), 1, "{path}");
    }
}
