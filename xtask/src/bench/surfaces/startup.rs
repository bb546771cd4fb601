//! The time of a short command: `--help`, and `status` of one finished loop, against `true`.

use std::ffi::OsString;

use crate::bench::measure::sample::measure;
use crate::bench::measure::sandbox::{LOOP, Sandbox};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::Contestant;
use crate::bench::surfaces::subject::Bench;
use crate::failure::Result;

const SUBJECT: &str = "Start-up";
const FAULT_ROUNDS: u32 = 3;

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // Several starts in each sample, because one is shorter than a disturbance.
    let (rounds, repeat) = bench.pick((15, 10), (1, 2));
    let sandbox = Sandbox::new(&bench.tools)?;
    let words = Contestant::Refrain.prepare(&bench.tools, &sandbox, 3)?;
    measure(&bench.tools, &sandbox, &words, &[], (1, Contestant::Refrain.code_at_cap()))?;

    let refrain = || bench.tools.refrain.clone().into_os_string();
    let asked: [Vec<OsString>; 3] = [
        vec!["/bin/true".into()],
        vec![refrain(), "--help".into()],
        vec![refrain(), "status".into(), LOOP.into()],
    ];
    let (mut cpu, mut wall) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for round in 0..rounds {
        for turn in 0..asked.len() {
            let who = (round + turn) % asked.len();
            let sample = measure(&bench.tools, &sandbox, &asked[who], &[], (repeat, 0))?;
            cpu[who].push(sample.cpu / f64::from(repeat));
            wall[who].push(sample.wall / f64::from(repeat));
        }
    }
    let mut rows = Vec::new();
    // A program that is not optimised touches more pages. How many the kernel maps around each depends a little on what is in
    // memory: the least of the starts counts, and a bound is a tenth above what was seen.
    // The status of a loop checks its signature, and searches for secrets in the goal that it shows.
    let pages = bench.pick([400.0, 600.0], [1_500.0, 2_030.0]);
    for (who, what, goal, most) in [(1, "--help", 4.0, pages[0]), (2, "status of one loop", 8.0, pages[1])] {
        let mut faults = f64::INFINITY;
        for _ in 0..FAULT_ROUNDS {
            faults = faults.min(measure(&bench.tools, &sandbox, &asked[who], &[], (1, 0))?.faults);
        }
        let what_of = format!("{what}: page faults");
        rows.push(Row::limit(SUBJECT, what_of, most, faults, Unit::Count).steady());
        rows.push(Row::cpu(SUBJECT, what, Some(goal), &cpu[who], ("true", &cpu[0])));
        rows.push(Row::wall(SUBJECT, what, Some(goal), &wall[who], ("true", &wall[0])));
    }
    Ok(rows)
}
