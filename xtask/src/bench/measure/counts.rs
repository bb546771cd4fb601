//! The work of an iteration, counted: syncs, renames, programs, sleeps, and bytes written beyond prompt and output.
//! Counts do not depend on how busy the machine is; they are the difference between a short and a long loop.

use crate::bench::measure::sample::{agent_ran, measure};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::strace::{self, Tally};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::Contestant;
use crate::bench::surfaces::subject::Bench;
use crate::failure::Result;

const SUBJECT: &str = "Counts per iteration";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (short, long) = bench.pick((10, 40), (2, 4));
    let iterations = f64::from(long - short);
    let grown = journal(bench, long)? as f64 - journal(bench, short)? as f64;
    let mut rows =
        vec![Row::limit(SUBJECT, "journal growth", 1024.0, grown / iterations, Unit::Bytes).steady()];
    let Some(strace) = &bench.tools.strace else {
        rows.push(Row::skipped(
            SUBJECT,
            "syncs, renames, programs, sleeps, bytes written",
            "strace is not installed",
        ));
        return Ok(rows);
    };
    let tally = |contestant: Contestant, iterations: u32| -> Result<Tally> {
        let sandbox = Sandbox::new(&bench.tools)?;
        let words = contestant.prepare(&bench.tools, &sandbox, iterations)?;
        let tally = strace::count(strace, &sandbox, &words, contestant.code_at_cap())?;
        agent_ran(contestant, &sandbox, iterations)?;
        Ok(tally)
    };
    let ours = (tally(Contestant::Refrain, short)?, tally(Contestant::Refrain, long)?);
    let floor = (tally(Contestant::FloorSync2, short)?, tally(Contestant::FloorSync2, long)?);
    let slope =
        |pair: &(Tally, Tally), of: fn(&Tally) -> u64| (of(&pair.1) as f64 - of(&pair.0) as f64) / iterations;
    let limit = |what: &str, most: f64, of: fn(&Tally) -> u64, unit: Unit| {
        Row::limit(SUBJECT, what, most, slope(&ours, of), unit).beside(
            Contestant::FloorSync2.name(),
            slope(&floor, of),
            unit,
        )
    };
    let beyond_agent = ours.1.programs - ours.1.git - u64::from(long);
    rows.extend([
        limit(
            "bytes written beyond prompt and output",
            1024.0,
            |tally| tally.bytes(is_overhead),
            Unit::Bytes,
        ),
        limit("fsync, fdatasync and their like", 2.0, |tally| tally.syncs, Unit::Count),
        limit("renames", 0.0, |tally| tally.renames, Unit::Count),
        limit(
            "programs started (the agent, and git that lists the files)",
            2.0,
            |tally| tally.programs,
            Unit::Count,
        ),
        limit("git processes", 1.0, |tally| tally.git, Unit::Count),
        limit("sleeps", 0.0, |tally| tally.sleeps, Unit::Count),
        // Refrain itself and its keeper.
        Row::limit(
            SUBJECT,
            "programs started beside the agents and git, in the whole loop",
            2.0,
            beyond_agent as f64,
            Unit::Count,
        ),
        // Before the first iteration: whether this is a repository; earlier changes, which no failure branch may take
        // for the loop's own; the programs that git is configured to run, which are pinned; where git's own programs are,
        // as it is let run no others; and the list of files, so that work on them is seen. The list once more after each
        // attempt.
        Row::limit(
            SUBJECT,
            "git processes, in the whole loop",
            5.0 + f64::from(long),
            ours.1.git as f64,
            Unit::Count,
        ),
    ]);
    Ok(rows.into_iter().map(Row::steady).collect())
}

/// Bytes of the journal after so many iterations.
fn journal(bench: &Bench, iterations: u32) -> Result<usize> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let words = Contestant::Refrain.prepare(&bench.tools, &sandbox, iterations)?;
    measure(&bench.tools, &sandbox, &words, &[], (1, Contestant::Refrain.code_at_cap()))?;
    agent_ran(Contestant::Refrain, &sandbox, iterations)?;
    Ok(sandbox.journal().len())
}

/// Whether a file is neither the prompt nor output that is kept, nor one of the mock agent's own notes.
fn is_overhead(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !["prompt.md", "output.log", "stderr.log", "count", "pids", "exits"].contains(&name)
}
