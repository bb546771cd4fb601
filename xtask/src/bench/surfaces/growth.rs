//! What ten thousand iterations leave on disk, asked of the engine as a library, because no loop runs that often: bytes
//! written by a late iteration against an early one, and how long such a journal takes to open.
//!
//! The measuring is done by an example of refrain-engine, which knows the library: `growth DIR ITERATIONS` prints one JSON object with
//! `bytes_per_iteration_at_10`, `bytes_per_iteration_at_1000` and `open_10k_ms`.

use serde_json::Value;

use crate::bench::report::{Row, Unit, Verdict};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::files::fresh_folder;
use crate::process::capture;

const SUBJECT: &str = "Growth";
const EXAMPLE: &str = "growth";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.tools.scratch.join("growth");
    fresh_folder(&folder)?;
    let iterations = bench.pick("10000", "1000");
    let printed = capture(bench.tools.example(EXAMPLE).arg(&folder).arg(iterations))?;
    let figures = Figures::parse(&printed)?;
    let (early, late) = (figures.early, figures.late);
    let mut rows = vec![Row {
        goal: "<= 1.1 x iteration 10".into(),
        floor: format!("iteration 10 {}", Unit::Bytes.show(early)),
        ratio: format!("{:.2}", late / early),
        verdict: if late <= early * 1.1 { Verdict::Pass } else { Verdict::Missed },
        ..Row::reported(SUBJECT, "bytes written by iteration 1000", late, Unit::Bytes)
    }];
    rows.push(match figures.open_ms {
        Some(ms) => Row::limit(SUBJECT, "opening a journal of 10,000 iterations", 0.05, ms / 1e3, Unit::Time),
        None if bench.smoke => {
            Row::skipped(SUBJECT, "opening a journal of 10,000 iterations", "smoke makes fewer")
        }
        None => return fail(format!("example `{EXAMPLE}` printed no `open_10k_ms`: {printed}")),
    });
    Ok(rows)
}

#[derive(Debug, PartialEq)]
struct Figures {
    early: f64,
    late: f64,
    open_ms: Option<f64>,
}

impl Figures {
    /// Reads the object, which may be among other lines.
    fn parse(printed: &str) -> Result<Self> {
        let objects: Vec<Value> =
            printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let figure = |key: &str| objects.iter().find_map(|object| object[key].as_f64());
        match (figure("bytes_per_iteration_at_10"), figure("bytes_per_iteration_at_1000")) {
            (Some(early), Some(late)) => Ok(Self { early, late, open_ms: figure("open_10k_ms") }),
            _ => fail(format!(
                "example `{EXAMPLE}` printed no bytes_per_iteration_at_10 and …_at_1000: {printed}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_among_other_lines() {
        let printed = "building\n{\"at\":10}\n{\"bytes_per_iteration_at_10\":500,\"bytes_per_iteration_at_1000\":503.5,\"open_10k_ms\":8}\n";
        assert_eq!(
            Figures::parse(printed).unwrap(),
            Figures { early: 500.0, late: 503.5, open_ms: Some(8.0) }
        );
        assert!(Figures::parse("").is_err());
    }
}
