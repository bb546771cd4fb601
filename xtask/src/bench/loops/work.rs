//! What the digest of the work costs in a repository of 10,000 files, against `git status` after the same change.
//!
//! The measuring is done by an example of refrain-git, which knows the library:
//! `work DIR ROUNDS` prints one JSON object with a figure a round.

use serde_json::Value;

use crate::bench::report::Row;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result};
use crate::files::fresh_folder;
use crate::process::capture;

const SUBJECT: &str = "Work";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.tools.scratch.join("work");
    fresh_folder(&folder)?;
    let rounds = bench.pick("11", "1");
    let printed = capture(bench.tools.example("work").arg(&folder).arg(rounds))?;
    let figures: Value = serde_json::from_str(printed.trim()).doing("read the figures of the example")?;
    let seconds = |key: &str| -> Vec<f64> {
        let rounds = figures[key].as_array().into_iter().flatten();
        rounds.map(|figure| figure.as_f64().unwrap_or(f64::NAN) / 1e3).collect()
    };
    let (what, floor) = ("digest of 10,000 files, one changed", "git status");
    let git = (seconds("git_cpu_ms"), seconds("git_ms"));
    Ok(vec![
        Row::cpu(SUBJECT, what, Some(3.0), &seconds("ours_cpu_ms"), (floor, &git.0)),
        Row::wall(SUBJECT, what, None, &seconds("ours_ms"), (floor, &git.1)),
        Row::cpu(SUBJECT, "the first digest of a process", None, &seconds("first_cpu_ms"), (floor, &git.0)),
    ])
}
