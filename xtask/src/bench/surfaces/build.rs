//! What a newcomer waits for: the CPU of `cargo build --release` from an empty folder, beside that of an earlier commit; and
//! how large the published program and its list of crates are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::measure::sample::launch;
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result};
use crate::files::read;
use crate::process::{capture, cargo, command};

const SUBJECT: &str = "Build";

/// The commit that the build is compared with: the last before the profile for building fast.
const BASE: &str = "215f472";

/// Seconds after which a build is taken for hung.
const LIMIT: u32 = 5_400;

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let root = &bench.workspace.root;
    let crates = read(&root.join("Cargo.lock"))?.matches("[[package]]").count();
    let mut rows = vec![Row::limit(SUBJECT, "crates in Cargo.lock", 440.0, crates as f64, Unit::Count)];
    if bench.smoke {
        return Ok(rows);
    }
    let program = fs::metadata(&bench.tools.refrain).doing("look at the program")?;
    rows.push(Row::limit(SUBJECT, "the program", 26e6 / 1024.0, program.len() as f64 / 1024.0, Unit::Memory));

    let what = "cargo build --release, from an empty folder";
    let sandbox = Sandbox::new(&bench.tools)?;
    match checkout(root, BASE, &sandbox.note("base")) {
        Ok(base) => {
            let (ours, theirs) = (built(bench, &sandbox, root)?, built(bench, &sandbox, &base)?);
            let floor = (&*format!("commit {BASE}"), &[theirs][..]);
            rows.push(Row::cpu(SUBJECT, what, Some(0.45), &[ours], floor));
        }
        Err(failure) => rows.push(Row::skipped(SUBJECT, what, format!("no commit {BASE}: {failure}"))),
    }
    Ok(rows)
}

/// A clone of the repository at a commit.
fn checkout(root: &Path, commit: &str, to: &Path) -> Result<PathBuf> {
    capture(command("git").args(["clone", "--quiet", "--shared", "--no-checkout"]).args([root, to]))?;
    capture(command("git").current_dir(to).args(["checkout", "--quiet", commit]))?;
    Ok(to.to_owned())
}

/// CPU seconds of a build of that checkout, whose target folder is then removed.
fn built(bench: &Bench, sandbox: &Sandbox, root: &Path) -> Result<f64> {
    let target = sandbox.note("target");
    capture(cargo().current_dir(root).args(["fetch", "--locked", "--quiet"]))?;
    let words = ["build", "--release", "--locked", "--offline", "--quiet"].map(OsString::from);
    let words = [vec![cargo().get_program().to_owned()], words.to_vec()].concat();
    let mut launcher = command(&bench.tools.meas);
    launcher.current_dir(root).env("CARGO_TARGET_DIR", &target).env_remove("CARGO_INCREMENTAL");
    let sample = launch(launcher, sandbox, &words, LIMIT, (1, 0))?;
    fs::remove_dir_all(&target).doing("remove what was built")?;
    Ok(sample.cpu)
}
