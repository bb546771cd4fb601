//! What a worktree of the pool costs in a repository of 10,000 files, against `git worktree add`; and what it costs to land
//! the work of a task, against a squashed merge by hand.
//!
//! The measuring is done by an example of refrain-git, which knows the library:
//! `worktree DIR ROUNDS` prints one JSON object with a figure a round.

use serde_json::Value;

use crate::bench::report::Row;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result};
use crate::files::fresh_folder;
use crate::process::capture;

const SUBJECT: &str = "Worktrees and landing";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.tools.scratch.join("worktree");
    fresh_folder(&folder)?;
    let rounds = bench.pick("9", "1");
    let printed = capture(bench.tools.example("worktree").arg(&folder).arg(rounds))?;
    let figures: Value = serde_json::from_str(printed.trim()).doing("read the figures of the example")?;
    let seconds = |key: String| -> Vec<f64> {
        let rounds = figures[key].as_array().into_iter().flatten();
        rounds.map(|figure| figure.as_f64().unwrap_or(f64::NAN) / 1e3).collect()
    };
    let compare = |ours: &str, what: &str, goal: Option<f64>, floor: (&str, &str)| {
        let (name, key) = floor;
        let cpu = (seconds(format!("{ours}_cpu_ms")), seconds(format!("{key}_cpu_ms")));
        let wall = (seconds(format!("{ours}_ms")), seconds(format!("{key}_ms")));
        [
            Row::cpu(SUBJECT, what, goal, &cpu.0, (name, &cpu.1)),
            Row::wall(SUBJECT, what, goal, &wall.0, (name, &wall.1)),
        ]
    };
    let add = ("git worktree add", "git_add");
    let used =
        compare("used", "one of 10,000 files, used before", Some(0.3), add).map(|row| row.aiming_at(0.1));
    let fresh = compare("fresh", "one of 10,000 files, made", Some(1.1), add);
    let by_hand = ("git merge --squash, git commit", "git_merge");
    let landing = compare("landing", "landing the work of a task", None, by_hand);
    Ok(used.into_iter().chain(fresh).chain(landing).collect())
}
