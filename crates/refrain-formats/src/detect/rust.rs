//! Rust: cargo, nextest.

use globset::GlobBuilder;
use toml::{Table, Value};

use super::draft::Draft;
use super::listing::{contains, join};

const PROTECT: &[&str] = &[
    "**/.cargo/config",
    "**/.cargo/config.toml",
    "**/.config/nextest.toml",
    "**/rust-toolchain",
    "**/rust-toolchain.toml",
    "**/clippy.toml",
    "**/.clippy.toml",
    "**/rustfmt.toml",
    "**/.rustfmt.toml",
];

/// The parts of a manifest that decide: which tests are built, and how.
const FROZEN: &[&str] = &[
    "lib",
    "lints",
    "profile",
    "package.autotests",
    "workspace.exclude",
    "workspace.default-members",
    "workspace.lints",
];
const MAY_GAIN: &[&str] = &["workspace.members", "test", "bin"];

const TESTS: &[&str] = &["**/tests/**", "**/tests.rs", "**/*_test.rs", "**/*_tests.rs"];

pub(super) fn detect(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    let mut roots: Vec<(&str, Table)> = Vec::new();
    for folder in listing.folders(|name| name == "Cargo.toml") {
        let Some(text) = listing.text(folder, "Cargo.toml") else { continue };
        let table = match text.parse::<Table>() {
            Ok(table) => table,
            Err(_) => {
                draft.note(format!(
                    "{} cannot be read, and nothing is offered for it",
                    join(folder, "Cargo.toml")
                ));
                continue;
            }
        };
        draft.protect_part(folder, "Cargo.toml", FROZEN, MAY_GAIN);
        let is_member = |(root, manifest): &(&str, Table)| {
            contains(root, folder) && manifest.contains_key("workspace") && !excludes(manifest, root, folder)
        };
        let is_root = table.contains_key("workspace");
        if is_root || (table.contains_key("package") && !roots.iter().any(is_member)) {
            roots.push((folder, table));
        }
    }
    for (folder, manifest) in &roots {
        gates(draft, folder, manifest.contains_key("workspace"));
    }
    if !roots.is_empty() {
        draft.protect(PROTECT);
        draft.protect_existing(TESTS);
        draft.note("Rust's unit tests stand beside the code in src/, where no path can protect them");
    }
}

fn gates(draft: &mut Draft<'_>, folder: &str, is_workspace: bool) {
    let all = if is_workspace { " --workspace" } else { "" };
    if draft.listing.has(folder, ".config/nextest.toml") {
        draft.test(folder, "cargo-nextest", format!("cargo nextest run{all}"));
        draft.note(
            "cargo nextest does not run the tests in Rust's documentation; --gate 'cargo test --doc' does",
        );
    } else {
        draft.test(folder, "cargo-test", format!("cargo test{all}"));
    }
    draft.lint(folder, "cargo-clippy", format!("cargo clippy{all} --all-targets -- -D warnings"));
    draft.lint(
        folder,
        "cargo-fmt",
        if is_workspace { "cargo fmt --all --check" } else { "cargo fmt --check" },
    );
}

fn excludes(manifest: &Table, root: &str, folder: &str) -> bool {
    let relative = folder[root.len()..].trim_start_matches('/');
    let excluded =
        manifest.get("workspace").and_then(|workspace| workspace.get("exclude")).and_then(Value::as_array);
    excluded.into_iter().flatten().filter_map(Value::as_str).any(|glob| {
        let glob = glob.trim_end_matches('/');
        let matcher = GlobBuilder::new(glob).literal_separator(true).build();
        contains(glob, relative) || matcher.is_ok_and(|glob| glob.compile_matcher().is_match(relative))
    })
}
