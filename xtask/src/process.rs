//! Processes, environment and clock: the lints reserve them for one crate of the product; this tool uses them here.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::failure::{Doing, Result, fail};

/// A command to be started. The only constructor, so that the lint has one exemption.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask runs cargo, git and the program under test; it hosts no agent"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// A variable of this tool's own environment; an empty one counts as unset.
#[expect(clippy::disallowed_methods, reason = "xtask is a binary: reading the environment is its own affair")]
pub(crate) fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Waits. Only for watching another program's files from outside: nothing announces their change.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark watches from outside and must not disturb what it measures"
)]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Nanoseconds of the wall clock, to be compared with the stamp that the mock agent leaves.
#[expect(clippy::disallowed_methods, reason = "compared with a time stamp of another process")]
pub(crate) fn wall_clock_ns() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// The cargo that runs this tool, else the one in PATH.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(environment("CARGO").unwrap_or_else(|| "cargo".into()));
    // What the cargo that runs this program says of it: build scripts that read it would run again, and all that needs them.
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs to the end and gives standard output; anything but success is a failure that quotes standard error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output().doing(format!("start `{shown}`"))?;
    if !output.status.success() {
        return fail(format!("`{shown}` ended with {}: {}", output.status, tail(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end with the terminal passed through; anything but success is a failure.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.stdin(Stdio::null()).status().doing(format!("start `{shown}`"))?;
    if status.success() { Ok(()) } else { fail(format!("`{shown}` ended with {status}")) }
}

/// The command line as one would type it, for messages.
pub(crate) fn show(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The last lines of a program's output, on one line: enough to see why it failed.
pub(crate) fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        "(it said nothing)".into()
    } else {
        lines[lines.len().saturating_sub(6)..].join(" | ")
    }
}
