//! What a loop's commit of one changed file costs in a repository of 10,000 files, against `git commit -am` of the same.
//!
//! The measuring is done by an example of refrain-git, which knows the library:
//! `commit DIR ROUNDS` prints one JSON object with a figure a round.

use serde_json::Value;

use crate::bench::report::Row;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result};
use crate::files::fresh_folder;
use crate::process::capture;

const SUBJECT: &str = "Commit";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.tools.scratch.join("commit");
    fresh_folder(&folder)?;
    let rounds = bench.pick("21", "2");
    let printed = capture(bench.tools.example("commit").arg(&folder).arg(rounds))?;
    let figures: Value = serde_json::from_str(printed.trim()).doing("read the figures of the example")?;
    let seconds = |key: &str| -> Vec<f64> {
        let rounds = figures[key].as_array().into_iter().flatten();
        rounds.map(|figure| figure.as_f64().unwrap_or(f64::NAN) / 1e3).collect()
    };
    let (what, floor) = ("one of 10,000 files", "git commit -am");
    Ok(vec![
        Row::cpu(SUBJECT, what, Some(2.0), &seconds("ours_cpu_ms"), (floor, &seconds("git_cpu_ms"))),
        Row::wall(SUBJECT, what, Some(2.0), &seconds("ours_ms"), (floor, &seconds("git_ms"))),
    ])
}
