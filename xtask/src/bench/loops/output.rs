//! Heavy output: every byte is kept and searched, memory does not grow with it, and a line may be of any length.

use crate::bench::measure::sample::{Sample, measure};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::median;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::{Contestant, start};
use crate::bench::surfaces::running::Running;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};

const SUBJECT: &str = "Heavy output";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (rounds, mib, line_mib) = bench.pick((5, 256, 64), (1, 16, 16));
    let (size, one, line) = (mib.to_string(), "1".to_owned(), line_mib.to_string());
    let floor = Contestant::FloorNoSync;
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut turns = [(Contestant::Refrain, &mut ours), (floor, &mut floors)];
        turns.rotate_left(round % 2);
        for (contestant, samples) in turns {
            samples.push(through(bench, contestant, &size)?);
        }
    }
    let what = format!("{mib} MiB of text");
    let pick = |samples: &[Sample], of: fn(&Sample) -> f64| samples.iter().map(of).collect::<Vec<_>>();
    let (our_wall, floor_wall) = (pick(&ours, |s| s.wall), pick(&floors, |s| s.wall));
    let (our_cpu, floor_cpu) = (pick(&ours, |s| s.cpu), pick(&floors, |s| s.cpu));
    let mut rows = vec![
        Row::cpu(SUBJECT, &what, Some(2.0), &our_cpu, (floor.name(), &floor_cpu)),
        Row::wall(SUBJECT, &what, Some(2.0), &our_wall, (floor.name(), &floor_wall)),
    ];
    let floor_memory = median(&pick(&floors, |s| s.max_rss_kib));
    let heavy = memory(bench, &[("MOCK_MIB", &size)])?;
    let light = memory(bench, &[("MOCK_MIB", &one)])?;
    let in_line = memory(bench, &[("MOCK_ONE_LINE_MIB", &line)])?;
    rows.extend([
        Row::limit(
            SUBJECT,
            format!("memory, {what} less that for 1 MiB"),
            8.0 * 1024.0,
            heavy - light,
            Unit::Memory,
        ),
        Row::reported(SUBJECT, format!("memory in all, {what}"), heavy, Unit::Memory).beside(
            floor.name(),
            floor_memory,
            Unit::Memory,
        ),
        Row::limit(
            SUBJECT,
            format!("memory, one line of {line_mib} MiB less 1 MiB of text"),
            8.0 * 1024.0,
            in_line - light,
            Unit::Memory,
        ),
    ]);
    Ok(rows)
}

/// One iteration that prints so much and then claims: the claim must be found after it, and every byte kept.
fn through(bench: &Bench, contestant: Contestant, mib: &str) -> Result<Sample> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let words = contestant.prepare(&bench.tools, &sandbox, 1)?;
    let variables = [("MOCK_MIB", mib), ("MOCK_PROMISE_AT", "1")];
    // The write-back of the last run would be paid by this one.
    rustix::fs::sync();
    let sample = measure(&bench.tools, &sandbox, &words, &variables, (1, 0))?;
    all_kept(&sandbox, mib)?;
    sandbox.remove()?;
    Ok(sample)
}

/// The agent prints the asked MiB, perhaps an end of line, and its last message.
fn all_kept(sandbox: &Sandbox, mib: &str) -> Result<()> {
    let kept = sandbox.output_kept()?;
    let asked = mib.parse::<u64>().unwrap_or(0) << 20;
    let last = "All work is finished.\n<promise>COMPLETE</promise>\n".len() as u64;
    if kept.checked_sub(asked + last).is_some_and(|more| more <= 1) {
        return Ok(());
    }
    fail(format!(
        "output.log holds {kept} bytes, where the agent printed {asked} and a last message of {last}"
    ))
}

/// Peak memory of all processes of the program together, in KiB. A run of its own, because watching costs CPU. The
/// agent lingers after its output, so that the peak can still be read from its processes.
fn memory(bench: &Bench, variables: &[(&str, &str); 1]) -> Result<f64> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let variables = [variables[0], ("MOCK_PROMISE_AT", "1"), ("MOCK_SLEEP_MS", "300")];
    let mut running = Running::start(&sandbox, &start(&bench.tools, 1), &variables)?;
    let peak = running.watch_memory(&bench.tools)?;
    running.expect_code(0)?;
    all_kept(&sandbox, variables[0].1)?;
    drop(running);
    sandbox.remove()?;
    Ok(peak)
}
