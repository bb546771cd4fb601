//! What Refrain adds to an iteration of the real agent programs, which ask a scripted model: a loop against as many bare
//! runs of the same command line, and those against as many again. The measuring is done by a program of the test kit, which has that model; of agents,
//! only those are measured that `cargo xtask e2e agents` has installed.

use std::process::Stdio;

use serde_json::Value;

use crate::bench::report::Row;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result, fail};
use crate::process::tail;

const SUBJECT: &str = "Known agents";

/// A program, the most that a loop of it may take in times of its bare runs, and how many rounds (of three, as they
/// begin by turns with one of three) of how many iterations. Smoke omits programs of which one round takes too long.
struct Subject {
    name: &'static str,
    goal: Option<f64>,
    measuring: (u32, u32),
    smoke: Option<(u32, u32)>,
}

const SUBJECTS: [Subject; 4] = [
    Subject { name: "claude", goal: Some(1.03), measuring: (15, 10), smoke: Some((1, 2)) },
    Subject { name: "codex", goal: Some(1.03), measuring: (15, 10), smoke: Some((1, 2)) },
    Subject { name: "opencode", goal: None, measuring: (3, 3), smoke: None },
    Subject { name: "gemini", goal: None, measuring: (3, 3), smoke: None },
];

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for subject in SUBJECTS {
        if let Some(sizes) = bench.pick(Some(subject.measuring), subject.smoke) {
            rows.extend(measure(bench, &subject, sizes)?);
        }
    }
    Ok(rows)
}

fn measure(bench: &Bench, subject: &Subject, (rounds, iterations): (u32, u32)) -> Result<Vec<Row>> {
    let mut measuring = bench.tools.program("agent_overhead");
    measuring.arg(&bench.tools.refrain).args([subject.name, &rounds.to_string(), &iterations.to_string()]);
    // On the disk that is measured, like the sandboxes of all other subjects.
    measuring.env("TMPDIR", &bench.tools.scratch).stdin(Stdio::null());
    let output = measuring.output().doing("start agent_overhead")?;
    if !output.status.success() {
        return fail(format!("{}: {}", subject.name, tail(&output.stderr)));
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let told: Vec<Value> = told
        .lines()
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>()
        .doing("read the rounds")?;
    if let Some(version) = told.iter().find_map(|round| round["not_installed"].as_str()) {
        let what = format!("{} {version}, one iteration", subject.name);
        return Ok(vec![Row::skipped(SUBJECT, what, "not installed: `cargo xtask e2e agents` installs it")]);
    }
    let seconds = |key: &str| -> Vec<f64> {
        told.iter().map(|round| round[key].as_f64().unwrap_or(f64::NAN) / 1e3).collect()
    };
    let version = told.first().and_then(|round| round["version"].as_str()).unwrap_or_default();
    let what = format!("{} {version}, one iteration", subject.name);
    let bare = "bare run";
    let control = format!("{}, bare runs once more", subject.name);
    Ok(vec![
        Row::time(SUBJECT, &what, subject.goal, &seconds("loop_ms"), (bare, &seconds("bare_ms"))),
        Row::time(SUBJECT, &control, None, &seconds("control_ms"), (bare, &seconds("bare_ms"))),
        Row::cpu(SUBJECT, &what, None, &seconds("loop_cpu_ms"), (bare, &seconds("bare_cpu_ms"))),
        Row::cpu(SUBJECT, &control, None, &seconds("control_cpu_ms"), (bare, &seconds("bare_cpu_ms"))),
    ])
}
