//! Which crate may use which, compared with the manifests. docs/architecture.md has the drawing.
//!
//! Cargo itself refuses cycles; it does not refuse a surface that reaches past the engine into the store.

use super::finding::Finding;
use crate::files::shown;
use crate::workspace::Workspace;

/// A crate and the crates it may use. Crates that do not exist yet may be listed.
const ARROWS: &[(&str, &[&str])] = &[
    ("refrain-core", &[]),
    ("refrain-formats", &["refrain-core"]),
    ("refrain-files", &[]),
    ("refrain-store", &["refrain-files", "refrain-core"]),
    ("refrain-proc", &["refrain-files", "refrain-core"]),
    ("refrain-sandbox", &["refrain-proc", "refrain-core"]),
    ("refrain-agents", &["refrain-proc", "refrain-core"]),
    ("refrain-secrets", &[]),
    ("refrain-forge", &["refrain-proc", "refrain-core"]),
    (
        "refrain-git",
        &[
            "refrain-forge",
            "refrain-secrets",
            "refrain-proc",
            "refrain-files",
            "refrain-formats",
            "refrain-core",
        ],
    ),
    (
        "refrain-engine",
        &[
            "refrain-agents",
            "refrain-git",
            "refrain-forge",
            "refrain-secrets",
            "refrain-store",
            "refrain-sandbox",
            "refrain-proc",
            "refrain-files",
            "refrain-formats",
            "refrain-core",
        ],
    ),
    ("refrain-app", &["refrain-engine", "refrain-core"]),
    ("refrain-server", &["refrain-app", "refrain-engine", "refrain-core"]),
    ("refrain-tui", &["refrain-engine", "refrain-core"]),
    (
        "refrain",
        &[
            "refrain-server",
            "refrain-tui",
            "refrain-app",
            "refrain-engine",
            "refrain-formats",
            "refrain-core",
        ],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// The crate that every other one may use in its tests.
const FOR_TESTS: &str = "testkit";

/// Every arrow between our own crates that the table does not hold.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = shown(&package.manifest, &workspace.root);
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == package.name) else {
            findings.push(Finding::error(
                manifest,
                format!("`{}` is a crate without a place in the map", package.name),
                "add it to ARROWS in xtask/src/check/arrows.rs, and run `cargo xtask generate` for the drawing",
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let ours = workspace.package(&dependency.name).is_some();
            let in_tests = dependency.for_tests && dependency.name == FOR_TESTS;
            if ours && !in_tests && !allowed.contains(&dependency.name.as_str()) {
                let may = if allowed.is_empty() { "no crate of ours".to_owned() } else { allowed.join(", ") };
                findings.push(Finding::error(
                    &manifest,
                    format!("`{}` may not use `{}`", package.name, dependency.name),
                    format!(
                        "it may use {may}: move the code to the crate it belongs in (docs/architecture.md)"
                    ),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(packages: &[(&str, &[(&str, bool)])]) -> Workspace {
        let packages: Vec<String> = packages
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<String> = dependencies
                    .iter()
                    .map(|(name, dev)| format!(r#"{{"name":"{name}","kind":{}}}"#, if *dev { "\"dev\"" } else { "null" }))
                    .collect();
                let dependencies = dependencies.join(",");
                format!(
                    r#"{{"name":"{name}","manifest_path":"/r/{name}/Cargo.toml","dependencies":[{dependencies}],"targets":[]}}"#
                )
            })
            .collect();
        let packages = packages.join(",");
        let text =
            format!(r#"{{"workspace_root":"/r","target_directory":"/r/target","packages":[{packages}]}}"#);
        Workspace::parse(&text).unwrap()
    }

    #[test]
    fn the_map_as_it_is_drawn_is_allowed() {
        let map = workspace(&[
            ("refrain-core", &[("serde", false), ("testkit", true)]),
            ("refrain-engine", &[("refrain-core", false)]),
            ("refrain", &[("refrain-engine", false), ("refrain-core", false), ("testkit", true)]),
            ("testkit", &[]),
        ]);
        assert!(check(&map).is_empty());
    }

    #[test]
    fn an_arrow_back_past_a_room_or_to_the_testkit_is_an_error() {
        for (from, to) in
            [("refrain-core", "refrain-store"), ("refrain", "refrain-store"), ("refrain", "testkit")]
        {
            let map = workspace(&[(from, &[(to, false)]), (to, &[])]);
            let findings = check(&map);
            assert_eq!(findings.len(), 1, "{from} -> {to}");
            assert!(findings[0].to_string().contains(&format!("`{from}` may not use `{to}`")));
        }
    }

    #[test]
    fn a_development_arrow_is_an_arrow_unless_it_leads_to_the_testkit() {
        let map = workspace(&[("refrain-store", &[("refrain-engine", true)]), ("refrain-engine", &[])]);
        assert_eq!(check(&map).len(), 1);
    }

    #[test]
    fn a_new_crate_is_reported_with_the_file_to_edit() {
        let findings = check(&workspace(&[("refrain-cloud", &[])]));
        assert!(findings[0].to_string().contains("ARROWS in xtask/src/check/arrows.rs"));
    }
}
