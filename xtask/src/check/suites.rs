//! Forgotten tests: a test file that no module declares is never compiled, and no tool reports it.
//!
//! A crate has one integration binary (each costs a link), `tests/it/main.rs` or a single `tests/NAME.rs`, and every
//! file below the folder of its `main.rs` is declared as a module. A tier of tests that need more than Rust and git, and
//! are ignored by `cargo test`, has a binary of its own beside it.

use std::path::Path;

use super::finding::Finding;
use super::source::without_comments;
use crate::e2e;
use crate::failure::Result;
use crate::files::{below, entries, read, shown};
use crate::workspace::{Package, Workspace};

/// Every crate with too many test binaries, and every test file that is not compiled.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        findings.extend(check_package(package, &workspace.root)?);
    }
    Ok(findings)
}

fn check_package(package: &Package, root: &Path) -> Result<Vec<Finding>> {
    let folder = package.folder().join("tests");
    let has_code = below(&folder)?.iter().any(|path| is_rust(path));
    let binaries: Vec<_> = package.targets.iter().filter(|target| target.kind == "test").collect();
    let place = shown(&folder, root);
    if binaries.is_empty() && has_code {
        return Ok(vec![Finding::error(
            place,
            "holds Rust files, but no test binary",
            "make tests/it/main.rs and declare them there",
        )]);
    }
    let mut findings = Vec::new();
    for binary in binaries.iter().filter(|binary| binary.source.ends_with("main.rs")) {
        undeclared(&binary.source, binary.source.parent().unwrap_or(&folder), root, &mut findings)?;
    }
    let names = binaries.iter().map(|target| target.name.as_str());
    let usual: Vec<&str> = names.filter(|name| !e2e::is_tier(&package.name, name)).collect();
    if usual.len() > 1 {
        let wrong = format!(
            "{} test binaries ({}), each of which is linked on its own",
            usual.len(),
            usual.join(", ")
        );
        findings.push(Finding::error(place, wrong, "make them modules of one tests/it/main.rs"));
    }
    Ok(findings)
}

/// Adds a finding for every file of `folder` that `parent`, the module above them, does not declare.
fn undeclared(parent: &Path, folder: &Path, root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let text = without_comments(&read(parent)?);
    for path in entries(folder)? {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner = path.join("mod.rs");
        let module = if path.is_dir() { inner.as_path() } else { path.as_path() };
        // A folder without mod.rs belongs to the file of its name, which brings it here below.
        if path == parent || stem == "mod" || !module.is_file() || !is_rust(module) {
            continue;
        }
        if !declares(&text, &stem) {
            findings.push(Finding::error(
                shown(module, root),
                "no module declares it, so its tests never run",
                format!("add `mod {stem};` to {}", shown(parent, root)),
            ));
        }
        let children = folder.join(&stem);
        if children.is_dir() {
            undeclared(module, &children, root, findings)?;
        }
    }
    Ok(())
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Whether the text holds `mod NAME;`, with any visibility and attributes, or names the file by a path attribute.
fn declares(text: &str, name: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let closed = format!("{name};");
    words.windows(2).any(|pair| pair[0] == "mod" && pair[1] == closed)
        || text.contains(&format!("{name}.rs\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Target;

    #[test]
    fn declarations_are_found_in_every_form() {
        for text in [
            "mod loops;",
            "pub(crate) mod loops;",
            "#[cfg(unix)]\nmod loops;",
            "#[path = \"loops.rs\"]\nmod other;",
        ] {
            assert!(declares(text, "loops"), "{text}");
        }
        for text in ["mod loops_too;", "use loops;", "mod loop;", "mod loops { }"] {
            assert!(!declares(text, "loops"), "{text}");
        }
    }

    #[test]
    fn a_tier_has_a_binary_of_its_own_and_nothing_else_does() {
        let package = |names: &[&str]| {
            let folder = Path::new("no such folder");
            let target = |name: &&str| Target {
                name: (*name).to_owned(),
                kind: "test".to_owned(),
                source: folder.join(format!("tests/{name}.rs")),
            };
            Package {
                name: "refrain".to_owned(),
                manifest: folder.join("Cargo.toml"),
                dependencies: Vec::new(),
                targets: names.iter().map(target).collect(),
            }
        };
        for (names, findings) in [(&["it"][..], 0), (&["it", "agents"], 0), (&["it", "more", "agents"], 1)] {
            let found = check_package(&package(names), Path::new("")).unwrap();
            assert_eq!(found.len(), findings, "{names:?}");
        }
    }
}
