//! What ten thousand iterations leave on disk, asked of the engine as a library, because no loop runs that often: bytes
//! written by a late iteration against an early one, and how long such a journal takes to open.
//!
//! The measuring is done by an example of refrain-engine, which knows the library: `growth` prints one JSON object with
//! `bytes_per_iteration_at_10`, `bytes_per_iteration_at_1000` and `open_10k_ms`.

use serde_json::Value;

use crate::bench::report::{Row, Unit, Verdict};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::process::capture;

const SUBJECT: &str = "Growth";
const EXAMPLE: &str = "growth";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let Figures { early, late, open_ms } = Figures::parse(&capture(&mut bench.tools.example(EXAMPLE))?)?;
    let bytes = Row {
        goal: "<= 1.1 x iteration 10".into(),
        floor: format!("iteration 10 {}", Unit::Bytes.show(early)),
        ratio: format!("{:.2}", late / early),
        verdict: if late <= early * 1.1 { Verdict::Pass } else { Verdict::Missed },
        ..Row::reported(SUBJECT, "bytes written by iteration 1000", late, Unit::Bytes)
    };
    let open = "opening a journal of 10,000 iterations";
    Ok(vec![bytes, Row::limit(SUBJECT, open, 0.05, open_ms / 1e3, Unit::Time)])
}

#[derive(Debug, PartialEq)]
struct Figures {
    early: f64,
    late: f64,
    open_ms: f64,
}

impl Figures {
    /// Reads the object, which may be among other lines.
    fn parse(printed: &str) -> Result<Self> {
        let objects: Vec<Value> =
            printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let figure = |key: &str| objects.iter().find_map(|object| object[key].as_f64());
        let all = (
            figure("bytes_per_iteration_at_10"),
            figure("bytes_per_iteration_at_1000"),
            figure("open_10k_ms"),
        );
        match all {
            (Some(early), Some(late), Some(open_ms)) => Ok(Self { early, late, open_ms }),
            _ => fail(format!("example `{EXAMPLE}` printed other figures than it should: {printed}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_among_other_lines() {
        let printed = "building\n{\"at\":10}\n{\"bytes_per_iteration_at_10\":500,\"bytes_per_iteration_at_1000\":503.5,\"open_10k_ms\":8}\n";
        assert_eq!(Figures::parse(printed).unwrap(), Figures { early: 500.0, late: 503.5, open_ms: 8.0 });
        assert!(Figures::parse("").is_err());
    }
}
