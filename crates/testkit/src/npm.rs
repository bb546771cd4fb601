//! Packages from npm for tests: each version in a folder of its own, put there whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The version of axe-core that pages are checked with.
const AXE: &str = "4.14.1";

/// The path of the accessibility checker axe-core, a script for the browser; none if it is not installed.
pub fn axe() -> Option<PathBuf> {
    let path = cache()?.join(format!("axe-core-{AXE}/node_modules/axe-core/axe.min.js"));
    path.is_file().then_some(path)
}

/// Installs axe-core, unless it is there. Returns what was done.
pub fn install_axe() -> Result<String, String> {
    if let Some(path) = axe() {
        return Ok(format!("axe-core {AXE} is there: {}", path.display()));
    }
    let name = format!("axe-core-{AXE}");
    let place = install(&name, &format!("axe-core@{AXE}"), |_| Ok(()))?;
    Ok(format!("axe-core {AXE} was installed: {}", place.display()))
}

/// Installs a package, named with its version, into a folder of this name once `check` finds it good.
pub(crate) fn install(
    name: &str,
    package: &str,
    check: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let cache = cache().ok_or("there is no home to keep programs in: set REFRAIN_AGENTS_DIR")?;
    fs::create_dir_all(&cache).map_err(|error| format!("make {}: {error}", cache.display()))?;
    // On the same file system, so that it can be moved to its place when it is whole.
    let scratch = tempfile::tempdir_in(&cache).map_err(|error| format!("in {}: {error}", cache.display()))?;
    let mut npm = command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix"]);
    output(npm.arg(scratch.path()).arg(package).current_dir(scratch.path()))?;
    check(scratch.path())?;
    let place = cache.join(name);
    let whole = scratch.keep();
    // Another process may have been faster.
    if let Err(error) = fs::rename(&whole, &place)
        && !place.is_dir()
    {
        return Err(format!("move {} to {}: {error}", whole.display(), place.display()));
    }
    Ok(place)
}

pub(crate) fn cache() -> Option<PathBuf> {
    let own = variable("REFRAIN_AGENTS_DIR").map(PathBuf::from);
    let general = || variable("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
    own.or_else(|| Some(general().or_else(home)?.join("refrain-e2e/agents")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "where programs are kept is decided by the user who runs the tests"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "npm is run with the environment of the user who runs the tests"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("start {name}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} ended with {}: {}", output.status, said.trim()))
}
