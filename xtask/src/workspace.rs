//! Reads cargo metadata: the workspace's folders, packages, dependencies and targets.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Doing, Result, fail};
use crate::process::{capture, cargo};

/// The workspace, from `cargo metadata --no-deps`.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target folder; follows `CARGO_TARGET_DIR`.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Under `dev-dependencies`.
    pub(crate) for_tests: bool,
}

/// Something that cargo can build from a package.
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `bin`, `test`, `example` …
    pub(crate) kind: String,
    pub(crate) source: PathBuf,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let text = capture(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).doing("read what cargo metadata printed")?;
        let packages = list(&value, "packages").iter().map(package).collect::<Result<_>>()?;
        Ok(Self {
            root: path(&value, "workspace_root")?,
            target: path(&value, "target_directory")?,
            packages,
        })
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    pub(crate) fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new(""))
    }
}

fn package(value: &Value) -> Result<Package> {
    let dependencies = list(value, "dependencies")
        .iter()
        .map(|entry| Ok(Dependency { name: text(entry, "name")?, for_tests: entry["kind"] == "dev" }))
        .collect::<Result<_>>()?;
    let targets = list(value, "targets")
        .iter()
        .map(|entry| {
            let kind = entry["kind"][0].as_str().unwrap_or_default().to_owned();
            Ok(Target { name: text(entry, "name")?, kind, source: path(entry, "src_path")? })
        })
        .collect::<Result<_>>()?;
    Ok(Package { name: text(value, "name")?, manifest: path(value, "manifest_path")?, dependencies, targets })
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value, key: &str) -> Result<String> {
    match value[key].as_str() {
        Some(found) => Ok(found.to_owned()),
        None => fail(format!("cargo metadata printed no `{key}` where one was expected")),
    }
}

fn path(value: &Value, key: &str) -> Result<PathBuf> {
    text(value, key).map(PathBuf::from)
}
