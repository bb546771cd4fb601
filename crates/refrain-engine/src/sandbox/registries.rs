//! The registries of a project's packages, as its lock files and the user's tools name them when a loop starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_core::sandbox::{Host, PackageTool, hosts, project_files, registries_of};
use refrain_proc::tool::Tool;
use serde::Deserialize;

/// The largest lock file that is read.
const LARGEST: u64 = 32 << 20;
/// How long a tool may take to say what it is configured to.
const PATIENCE: Duration = Duration::from_secs(5);
/// pip has no command for the registry that it uses when none is configured.
const ASK_PIP: &str = "from pip._internal.models.index import PyPI\n\
                       print(PyPI.simple_url)\nprint('https://' + PyPI.file_storage_domain + '/')";

/// The registries of a project.
#[derive(Debug, Default)]
pub struct Registries {
    /// Their hosts, each once.
    pub hosts: Vec<Host>,
    /// Those that only a lock file names, with the name of the file: it comes with the repository.
    pub unknown: Vec<(Host, &'static str)>,
}

/// The registries that lock files name; if none of a tool does, those that the tool says. Tools are asked outside of the
/// project, so that it configures none of them.
#[must_use]
pub fn registries(host: &crate::Host, spec: &Spec) -> Registries {
    let (mut named, mut tools) = (Vec::new(), BTreeMap::new());
    let mut folders = vec![spec.worktree.as_path(), spec.working_dir.as_path()];
    folders.dedup();
    for (folder, (name, tool, is_lock)) in
        folders.into_iter().flat_map(|folder| project_files().map(move |file| (folder, file)))
    {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        let text = if is_lock {
            refrain_files::read_regular(&path, LARGEST).unwrap_or_default()
        } else {
            Vec::new()
        };
        let hosts = registries_of(name, &String::from_utf8_lossy(&text));
        *tools.entry(tool).or_insert(false) |= !hosts.is_empty();
        named.extend(hosts.into_iter().map(|host| (host, name)));
    }
    let mut found = Registries::default();
    let mut known = Vec::new();
    // A folder of the project in it would take the place of pip.
    let env: Vec<_> = host.env.iter().filter(|(name, _)| name != "PYTHONPATH").cloned().collect();
    for (tool, is_named) in tools {
        let said = ask(tool, &env, &[&spec.project, &spec.worktree]);
        if !is_named {
            found.hosts.extend(said.iter().cloned());
        }
        known.extend(said);
    }
    found.hosts.extend(named.iter().map(|(host, _)| host.clone()));
    found.unknown = named.into_iter().filter(|(host, _)| !known.contains(host)).collect();
    found.hosts.sort();
    found.hosts.dedup();
    found.unknown.dedup_by(|a, b| a.0 == b.0);
    found
}

fn ask(tool: PackageTool, env: &[(OsString, OsString)], project: &[&Utf8Path]) -> Vec<Host> {
    let run = |program: &str, args: &[&str]| {
        let tool = Tool::new(program, Path::new("/")).outside(env, project).args(args).limit(PATIENCE);
        tool.output().map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default()
    };
    match tool {
        PackageTool::Cargo => hosts(cargo_registries(env)),
        PackageTool::Npm => hosts(run("npm", &["config", "get", "registry"]).lines()),
        PackageTool::Pip => {
            let configured = run("pip", &["config", "get", "global.index-url"]);
            match configured.trim() {
                "" => hosts(run("python3", &["-c", ASK_PIP]).lines()),
                configured => hosts([configured]),
            }
        }
        PackageTool::Go => {
            let said = run("go", &["env", "GOPROXY", "GOSUMDB"]);
            let names =
                said.split(['\n', ',', '|', ' ']).filter(|name| !matches!(*name, "" | "direct" | "off"));
            let address = |name: &str| match name.contains("://") {
                true => name.to_owned(),
                false => format!("https://{name}/"),
            };
            hosts(names.map(address))
        }
        PackageTool::Bundler => Vec::new(),
    }
}

/// What cargo has recorded of the registries that the user has used: the folder of each has its host in its name, and says where
/// packages are downloaded.
fn cargo_registries(env: &[(OsString, OsString)]) -> Vec<String> {
    #[derive(Deserialize)]
    struct IndexConfig {
        dl: String,
    }
    let variable =
        |name: &str| env.iter().rev().find(|(set, _)| set == name).map(|(_, value)| PathBuf::from(value));
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")));
    let Some(index) = home.and_then(|home| Utf8PathBuf::try_from(home.join("registry/index")).ok()) else {
        return Vec::new();
    };
    let mut addresses = Vec::new();
    for entry in index.read_dir_utf8().into_iter().flatten().flatten() {
        let config =
            refrain_files::read_regular(&entry.path().join("config.json"), 64 << 10).unwrap_or_default();
        let Ok(config) = serde_json::from_slice::<IndexConfig>(&config) else { continue };
        addresses.extend(entry.file_name().rsplit_once('-').map(|(name, _)| format!("https://{name}/")));
        addresses.push(config.dl);
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_it_has_got_packages() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("registry/index/index.example-0123456789abcdef");
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("config.json");
        refrain_store::write_atomic(
            config.as_path().try_into().unwrap(),
            br#"{"dl":"https://static.example/crates"}"#,
        )
        .unwrap();
        let env = [("CARGO_HOME".into(), dir.path().into())];
        let found: Vec<String> = ask(PackageTool::Cargo, &env, &[]).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["index.example:443", "static.example:443"]);
    }
}
