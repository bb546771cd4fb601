//! Hosts of package registries. No registry is named here: lock files and the user's tools name them.

use super::Host;

/// A program of a language that gets packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageTool {
    Cargo,
    Npm,
    Pip,
    Go,
    Bundler,
}

/// Lock files, their tools, and what is in front of the address of a registry in them.
const LOCK_FILES: [(&str, PackageTool, &[&str]); 9] = [
    ("Cargo.lock", PackageTool::Cargo, &["source = \"sparse+"]),
    ("package-lock.json", PackageTool::Npm, &["\"resolved\": \""]),
    ("npm-shrinkwrap.json", PackageTool::Npm, &["\"resolved\": \""]),
    ("yarn.lock", PackageTool::Npm, &["resolved \""]),
    ("pnpm-lock.yaml", PackageTool::Npm, &["tarball: "]),
    ("uv.lock", PackageTool::Pip, &["registry = \"", "url = \""]),
    ("poetry.lock", PackageTool::Pip, &["url = \""]),
    ("Pipfile.lock", PackageTool::Pip, &["\"url\": \""]),
    ("Gemfile.lock", PackageTool::Bundler, &["remote: "]),
];
/// Files of a project that show its tool, although they name no registry.
const MANIFESTS: [(&str, PackageTool); 5] = [
    ("Cargo.toml", PackageTool::Cargo),
    ("package.json", PackageTool::Npm),
    ("pyproject.toml", PackageTool::Pip),
    ("requirements.txt", PackageTool::Pip),
    ("go.mod", PackageTool::Go),
];
/// A project that names more has a lock file that is none.
const MOST_HOSTS: usize = 16;

/// The files of a project that are read, and whether their text matters.
pub fn project_files() -> impl Iterator<Item = (&'static str, PackageTool, bool)> {
    let locks = LOCK_FILES.iter().map(|(name, tool, _)| (*name, *tool, true));
    locks.chain(MANIFESTS.iter().map(|(name, tool)| (*name, *tool, false)))
}

/// The hosts of the registries that a lock file names.
#[must_use]
pub fn registries_of(file: &str, text: &str) -> Vec<Host> {
    let marks = LOCK_FILES.iter().find(|(name, ..)| *name == file).map(|(_, _, marks)| *marks);
    let marks = marks.unwrap_or_default();
    // An entry of a list of files has its address after a brace.
    let mut found = hosts(
        text.lines()
            .filter_map(|line| marks.iter().find_map(|mark| Some(line.trim_start().split_once(mark)?.1))),
    );
    // A repository does not open the user's own network.
    found.retain(|host| !host.is_local());
    found
}

/// The hosts of addresses, each once: of HTTPS alone, and without a login.
#[must_use]
pub fn hosts(addresses: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Host> {
    let mut hosts = Vec::new();
    for address in addresses {
        let place = address.as_ref().trim().strip_prefix("https://");
        let place = place.and_then(|rest| rest.split(['/', '"', '\'', ',', '?', '#', ' ']).next());
        let host = place.and_then(|place| place.parse().ok());
        if let Some(host) = host.filter(|host: &Host| host.address.is_none() && !hosts.contains(host))
            && hosts.len() < MOST_HOSTS
        {
            hosts.push(host);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Cargo.lock", "source = \"sparse+https://index.example/api/\"", &["index.example:443"])]
    #[case("Cargo.lock", "source = \"registry+https://forge.example/index\"", &[])]
    #[case("Cargo.lock", "source = \"git+https://forge.example/lib\"", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://npm.example:8443/a/-/a.tgz\",", &["npm.example:8443"])]
    #[case("package-lock.json", "  \"resolved\": \"git+ssh://git@forge.example/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://user:pass@npm.example/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://10.0.0.7/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://npm.example=10.0.0.7/a\",", &[])]
    #[case("package-lock.json", "  \"homepage\": \"https://home.example/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://localhost:8443/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://metadata.google.internal/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://nas.home.arpa/a\",", &[])]
    #[case("package-lock.json", "  \"resolved\": \"https://-npm.example/a\",", &[])]
    #[case("yarn.lock", "  resolved \"https://yarn.example/a.tgz#1\"", &["yarn.example:443"])]
    #[case("pnpm-lock.yaml", "  resolution: {tarball: https://pnpm.example/a.tgz}", &["pnpm.example:443"])]
    #[case("uv.lock", "source = { registry = \"https://py.example/simple\" }\n    { url = \"https://files.example/a\", size = 1 }", &["py.example:443", "files.example:443"])]
    #[case("Gemfile.lock", "GEM\n  remote: https://gems.example/", &["gems.example:443"])]
    #[case("README.md", "\"resolved\": \"https://npm.example/a\"", &[])]
    fn a_lock_file_names_registries(#[case] file: &str, #[case] text: &str, #[case] expected: &[&str]) {
        let found: Vec<String> = registries_of(file, text).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn no_file_names_very_many() {
        let text: String = (0..99).map(|n| format!("\"resolved\": \"https://h{n}.example/a\"\n")).collect();
        assert_eq!(registries_of("package-lock.json", &text).len(), MOST_HOSTS);
    }
}
