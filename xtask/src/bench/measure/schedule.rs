//! What it costs to decide what a plan does next: ten thousand tasks to their end, eight at a time, every event applied and
//! every step asked for, in several shapes of graph; and whether that grows with the tasks, and not faster.
//!
//! The deciding is done by an example of refrain-engine, which knows the library: `schedule TASKS`.

use serde_json::Value;

use crate::bench::report::{Row, Unit, Verdict};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::process::capture;

const SUBJECT: &str = "Scheduling";
/// Ten times the tasks may take so many times as long.
const LINEAR: f64 = 16.0;
const SHAPES: [(&str, &str); 4] = [
    ("layers", "in layers of a hundred"),
    ("chain", "one behind the other"),
    ("wide", "in any order"),
    ("star", "all behind the first"),
];

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (few, many) = bench.pick((1_000, 10_000), (10, 50));
    let (few, many) = (measure(bench, few)?, measure(bench, many)?);
    let mut rows = Vec::new();
    for (shape, words) in SHAPES {
        let (Some(few), Some(many)) = (few[shape].as_f64(), many[shape].as_f64()) else {
            return fail(format!("example `schedule` printed no `{shape}`: {few} {many}"));
        };
        let limit = Row::limit(SUBJECT, format!("10,000 tasks {words}: CPU"), 0.05, many / 1e3, Unit::Time);
        rows.push(limit.beside("1,000 tasks", few / 1e3, Unit::Time));
        rows.push(Row {
            goal: format!("<= {LINEAR} x 1,000 tasks"),
            ratio: format!("{:.1}", many / few),
            verdict: if many <= few * LINEAR { Verdict::Pass } else { Verdict::Missed },
            ..Row::reported(SUBJECT, format!("10,000 tasks {words}: growth"), many / 1e3, Unit::Time)
        });
    }
    Ok(rows)
}

fn measure(bench: &Bench, tasks: u32) -> Result<Value> {
    let printed = capture(bench.tools.example("schedule").arg(tasks.to_string()))?;
    let object = printed.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    object.map_or_else(|| fail(format!("example `schedule` printed no figures: {printed}")), Ok)
}
