//! JavaScript and TypeScript: the scripts of `package.json`, run by the manager whose lock file is there; Deno.

use globset::{GlobBuilder, GlobSet};
use serde::Deserialize;
use serde_json::Value;

use super::draft::Draft;
use super::listing::{Listing, contains, has_line, join, split};

const PROTECT: &[&str] = &[
    "**/.npmrc",
    "**/.yarnrc",
    "**/.yarnrc.yml",
    "**/.pnpmfile.cjs",
    "**/pnpm-workspace.yaml",
    "**/bunfig.toml",
    "**/jest.config.*",
    "**/jest.setup.*",
    "**/vitest.config.*",
    "**/vitest.workspace.*",
    "**/vitest.setup.*",
    "**/vite.config.*",
    "**/.mocharc.*",
    "**/ava.config.*",
    "**/karma.conf.*",
    "**/playwright.config.*",
    "**/cypress.config.*",
    "**/.nycrc*",
    "**/.c8rc*",
    "**/babel.config.*",
    "**/.babelrc*",
    "**/.eslintrc*",
    "**/.eslintignore",
    "**/eslint.config.*",
    "**/biome.json",
    "**/biome.jsonc",
    "**/.prettierrc*",
    "**/.prettierignore",
    "**/prettier.config.*",
    "**/tsconfig.json",
    "**/tsconfig.*.json",
    "**/turbo.json",
    "**/nx.json",
    "**/lerna.json",
    // They come first in the `PATH` of scripts.
    "**/node_modules/.bin/**",
];

const TESTS: &[&str] = &[
    // The names that `node --test` takes for tests.
    "**/test.*",
    "**/test-*.*",
    "**/*-test.*",
    "**/*_test.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/__tests__/**",
    "**/__snapshots__/**",
    "**/__mocks__/**",
    "**/test/**",
    "**/tests/**",
    "**/e2e/**",
    "**/cypress/**",
];

/// The parts of a manifest that decide: its scripts, and the configuration of tools that may be there.
const FROZEN: &[&str] =
    &["scripts", "jest", "mocha", "ava", "c8", "nyc", "babel", "eslintConfig", "prettier", "packageManager"];

/// Names under which a script is looked for, the best first.
const TEST: &[&str] = &["test", "test:ci", "test:run", "test:once", "test:unit"];
const LINT: &[&str] = &["lint", "lint:check", "lint:ci"];
const TYPES: &[&str] = &["typecheck", "type-check", "check-types", "types:check", "tsc"];

pub(super) fn detect(draft: &mut Draft<'_>) {
    packages(draft);
    deno(draft);
}

struct Package<'a> {
    folder: &'a str,
    json: Value,
    /// The workspace that it is a member of, by its place among the packages.
    of: Option<usize>,
}

fn packages(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    let mut packages: Vec<Package<'_>> = Vec::new();
    for folder in listing.folders(|name| name == "package.json") {
        let Some(text) = listing.text(folder, "package.json") else { continue };
        match serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            Ok(json) => {
                let of = packages.iter().rposition(|root| is_member(listing, root, folder));
                packages.push(Package { folder, json, of });
            }
            Err(_) => {
                draft.note(format!(
                    "{} cannot be read, and nothing is offered for it",
                    join(folder, "package.json")
                ));
            }
        }
    }
    for package in &packages {
        draft.protect_part(package.folder, "package.json", FROZEN, &["workspaces"]);
        let runner = runner(listing, &packages, package);
        let by_root = |names| package.of.is_some_and(|root| script(&packages[root], names).is_some());
        if !by_root(TEST) {
            match script(package, TEST) {
                Some(name) => {
                    draft.test(package.folder, &format!("{runner}-{}", slug(name)), call(runner, name));
                    for script in run(&package.json["scripts"], name) {
                        draft.protect_called(package.folder, script);
                    }
                }
                None => draft.note(format!(
                    "{} has no script `test` that tests something and ends",
                    join(package.folder, "package.json")
                )),
            }
        }
        for (names, name) in [(LINT, "lint"), (TYPES, "types")] {
            if let Some(found) = script(package, names).filter(|_| !by_root(names)) {
                draft.lint(package.folder, &format!("{runner}-{name}"), call(runner, found));
            }
        }
    }
    if !packages.is_empty() {
        draft.protect(PROTECT);
        draft.protect_existing(TESTS);
    }
}

/// The scripts that a script runs: itself, what is run before and after it, and others of the package that it names.
fn run<'a>(scripts: &'a Value, name: &str) -> Vec<&'a str> {
    let (mut found, mut seen, mut next) = (Vec::new(), Vec::new(), vec![name.to_owned()]);
    while let Some(name) = next.pop() {
        if seen.contains(&name) {
            continue;
        }
        for called in [format!("pre{name}"), name.clone(), format!("post{name}")] {
            let script = scripts[called].as_str().unwrap_or_default();
            found.push(script);
            next.extend(
                script.split_whitespace().filter(|word| scripts[*word].is_string()).map(str::to_owned),
            );
        }
        seen.push(name);
    }
    found
}

/// Whether a package's folder is a member of the workspace that another one is the root of.
fn is_member(listing: &Listing, root: &Package<'_>, folder: &str) -> bool {
    #[derive(Default, Deserialize)]
    struct Pnpm {
        #[serde(default)]
        packages: Vec<String>,
    }
    if !contains(root.folder, folder) {
        return false;
    }
    let declared = match &root.json["workspaces"] {
        Value::Array(globs) => globs.clone(),
        Value::Object(object) => {
            object.get("packages").and_then(Value::as_array).cloned().unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut globs: Vec<String> = declared.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if let Some(text) = listing.text(root.folder, "pnpm-workspace.yaml") {
        globs.extend(serde_saphyr::from_str::<Pnpm>(text).unwrap_or_default().packages);
    }
    let relative = folder[root.folder.len()..].trim_start_matches('/');
    let matches = |globs: Vec<&str>| {
        let trim = |glob: &str| glob.trim_start_matches("./").trim_end_matches('/').to_owned();
        let build = |glob: &str| GlobBuilder::new(&trim(glob)).literal_separator(true).build().ok();
        GlobSet::new(globs.into_iter().filter_map(build)).is_ok_and(|set| set.is_match(relative))
    };
    let (without, with): (Vec<&str>, Vec<&str>) =
        globs.iter().map(String::as_str).partition(|glob| glob.starts_with('!'));
    matches(with) && !matches(without.iter().map(|glob| &glob[1..]).collect())
}

/// The manager whose lock file is in the package's folder, or the nearest above it; if there is none, the one that
/// `packageManager` names.
fn runner(listing: &Listing, packages: &[Package<'_>], package: &Package<'_>) -> &'static str {
    const LOCKS: &[(&str, &str)] = &[
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("package-lock.json", "npm"),
        ("npm-shrinkwrap.json", "npm"),
    ];
    let mut above = Some(package.folder);
    while let Some(folder) = above {
        if let Some((_, runner)) = LOCKS.iter().find(|(lock, _)| listing.has(folder, lock)) {
            return runner;
        }
        above = folder.rsplit_once('/').map(|(above, _)| above).or((!folder.is_empty()).then_some(""));
    }
    let named = |package: &Package<'_>| {
        let text = package.json["packageManager"].as_str()?;
        ["pnpm", "yarn", "bun"].into_iter().find(|runner| text.starts_with(&format!("{runner}@")))
    };
    named(package).or_else(|| named(&packages[package.of?])).unwrap_or("npm")
}

/// The first of the scripts that does its work and ends, and changes no file.
fn script<'n>(package: &Package<'_>, names: &[&'n str]) -> Option<&'n str> {
    let is_good = |name: &&&str| package.json["scripts"][**name].as_str().is_some_and(does_something);
    names.iter().find(is_good).copied()
}

fn does_something(script: &str) -> bool {
    let only_words = script.split("&&").all(|part| {
        let first = part.split_whitespace().next().unwrap_or_default();
        matches!(first, "" | "echo" | "true" | "exit" | ":" | "printf")
    });
    let watches = has_line(script, r"--watch(?:All)?(?:\s|=true|$)") || script.trim() == "ng test";
    let mends = has_line(script, r"\s--(?:fix|write|apply|apply-unsafe)(?:\s|$)");
    !only_words && !watches && !mends
}

/// How a script is run: nothing asks, watches or writes snapshots when `CI` is set.
fn call(runner: &str, script: &str) -> String {
    let run = if script == "test" && runner != "bun" { "" } else { " run" };
    format!("CI=true {runner}{run} {script}")
}

fn slug(script: &str) -> String {
    script.replace(':', "-")
}

const SOURCES: &[&str] = &["ts", "tsx", "mts", "js", "jsx", "mjs"];

fn deno(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    for folder in listing.folders(|name| matches!(name, "deno.json" | "deno.jsonc")) {
        // A `deno.jsonc` may have comments, which its tasks are then not read for.
        let json: Value = listing
            .text(folder, "deno.json")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let is_test = |path: &str| {
            let stem = split(path).1.rsplit_once('.').filter(|(_, extension)| SOURCES.contains(extension));
            stem.is_some_and(|(stem, _)| stem == "test" || stem.ends_with("_test") || stem.ends_with(".test"))
        };
        let has_tests = listing.below(folder, &[]).any(is_test);
        if json["tasks"]["test"].is_string() || json["tasks"]["test"].is_object() {
            draft.test(folder, "deno-test", "deno task test");
        } else if has_tests {
            draft.test(folder, "deno-test", "deno test");
        } else {
            continue;
        }
        draft.lint(folder, "deno-lint", "deno lint");
        draft.protect(&["**/deno.json", "**/deno.jsonc"]);
        draft.protect_existing(&["**/*_test.*", "**/*.test.*", "**/test.ts"]);
    }
}
