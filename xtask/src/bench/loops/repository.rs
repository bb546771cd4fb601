//! What git's part of a loop costs in a repository of 10,000 files, against what a user would type.
//!
//! The measuring is done by examples of refrain-git, which know the library: `NAME DIR ROUNDS FILES` prints one JSON
//! object, with a figure a round for each key.

use serde_json::Value;

use crate::bench::report::Row;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result};
use crate::files::fresh_folder;
use crate::process::capture;

/// A loop's commit of one changed file, against `git commit -am` of the same.
pub(crate) fn commit(bench: &Bench) -> Result<Vec<Row>> {
    let figures = Figures::of(bench, "commit", ("21", "2"))?;
    let git = figures.cost("git");
    Ok(figures.rows("Commit", "ours", &figures.one_of("files"), Some(2.0), ("git commit -am", &git)).into())
}

/// The digest of the work, against `git status` after the same change.
pub(crate) fn work(bench: &Bench) -> Result<Vec<Row>> {
    let figures = Figures::of(bench, "work", ("11", "1"))?;
    let (git, ours) = (figures.cost("git"), figures.cost("ours"));
    let (subject, floor, what) =
        ("Work", "git status", format!("digest of {} files, one changed", figures.files));
    Ok(vec![
        Row::cpu(subject, &what, Some(3.0), &ours.cpu, (floor, &git.cpu)),
        Row::wall(subject, &what, None, &ours.wall, (floor, &git.wall)),
        Row::cpu(
            subject,
            "the first digest of a process",
            None,
            &figures.seconds("first_cpu_ms"),
            (floor, &git.cpu),
        ),
    ])
}

/// A worktree of the pool, against `git worktree add`; and the landing of a task's work, against a squashed merge by hand.
pub(crate) fn worktree(bench: &Bench) -> Result<Vec<Row>> {
    let figures = Figures::of(bench, "worktree", ("9", "1"))?;
    let (subject, add, merge) = ("Worktrees and landing", figures.cost("git_add"), figures.cost("git_merge"));
    let floor = ("git worktree add", &add);
    let used = figures.rows(subject, "used", &figures.one_of("files, used before"), Some(0.3), floor);
    let fresh = figures.rows(subject, "fresh", &figures.one_of("files, made"), Some(1.1), floor);
    let by_hand = ("git merge --squash, git commit", &merge);
    let landing = figures.rows(subject, "landing", "landing the work of a task", None, by_hand);
    Ok(used.map(|row| row.aiming_at(0.1)).into_iter().chain(fresh).chain(landing).collect())
}

/// What an example printed, and of how many files.
struct Figures {
    printed: Value,
    files: &'static str,
}

/// In seconds, one figure a round.
struct Cost {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Figures {
    fn of(bench: &Bench, example: &str, rounds: (&'static str, &'static str)) -> Result<Self> {
        let folder = bench.tools.scratch.join(example);
        fresh_folder(&folder)?;
        let (count, files) = bench.pick(("10000", "10,000"), ("4000", "4,000"));
        let rounds = bench.pick(rounds.0, rounds.1);
        let printed = capture(bench.tools.example(example).arg(&folder).args([rounds, count]))?;
        let printed = serde_json::from_str(printed.trim()).doing("read the figures of the example")?;
        Ok(Self { printed, files })
    }

    fn one_of(&self, what: &str) -> String {
        format!("one of {} {what}", self.files)
    }

    fn seconds(&self, key: &str) -> Vec<f64> {
        let rounds = self.printed[key].as_array().into_iter().flatten();
        rounds.map(|figure| figure.as_f64().unwrap_or(f64::NAN) / 1e3).collect()
    }

    fn cost(&self, key: &str) -> Cost {
        Cost { cpu: self.seconds(&format!("{key}_cpu_ms")), wall: self.seconds(&format!("{key}_ms")) }
    }

    fn rows(
        &self,
        subject: &'static str,
        ours: &str,
        what: &str,
        goal: Option<f64>,
        (floor, theirs): (&str, &Cost),
    ) -> [Row; 2] {
        let ours = self.cost(ours);
        [
            Row::cpu(subject, what, goal, &ours.cpu, (floor, &theirs.cpu)),
            Row::wall(subject, what, goal, &ours.wall, (floor, &theirs.wall)),
        ]
    }
}
