//! A loop whose agent thinks: the runner and the keeper hold little memory and are never woken.
//!
//! What a loop costs is the memory of its own processes. The resident size also counts the pages of the program's file: the
//! kernel maps up to 64 KiB around each one that is touched, as far as they are in memory, and all runners of a machine share
//! them. So a smoke run, whose program is not optimised, judges only the memory of their own.

use std::time::Duration;

use crate::bench::measure::proc_fs::{status, voluntary_switches};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::start;
use crate::bench::surfaces::running::{Running, keeper};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::process::pause;

const SUBJECT: &str = "Idle";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (settle, window) = bench.pick((1500, 3000), (300, 300));
    let sandbox = Sandbox::new(&bench.tools)?;
    let mut running = Running::start(&sandbox, &start(&bench.tools, 1), &[("MOCK_SLEEP_MS", "60000")])?;
    let agent = running.wait_for("agent", 1)?;
    pause(Duration::from_millis(settle));

    let runner = running.pid();
    let mut rows = memory("runner", runner, (bench.pick(3.0, 7.0), bench.pick(20.0, 58.0)))?;
    let mut watched = vec![("runner", runner)];
    if let Some(keeper) = keeper(agent, runner) {
        rows.extend(memory("keeper", keeper, (bench.pick(1.0, 5.0), bench.pick(6.0, 20.0)))?);
        watched.push(("keeper", keeper));
    } else {
        rows.push(Row::skipped(SUBJECT, "keeper, memory", "the runner itself is the agent's parent"));
    }
    let before = watched.iter().map(|(_, pid)| switches(*pid)).collect::<Result<Vec<_>>>()?;
    pause(Duration::from_millis(window));
    for ((role, pid), before) in watched.iter().zip(before) {
        let what = format!("{role}, wake-ups in {:.1} s", window as f64 / 1e3);
        rows.push(Row::limit(SUBJECT, what, 0.0, switches(*pid)? - before, Unit::Count));
    }
    Ok(rows)
}

/// Its own memory and its resident size, with their limits in MiB.
fn memory(role: &str, pid: i32, (own, resident): (f64, f64)) -> Result<Vec<Row>> {
    let row = |what: &str, field, most: f64| match status(pid, field) {
        Some(kib) => {
            let what = format!("{role}, {what}");
            Ok(Row::limit(SUBJECT, what, most * 1024.0, kib as f64, Unit::Memory))
        }
        None => fail(format!("process {pid} ended while its agent slept")),
    };
    Ok(vec![row("memory of its own", "RssAnon", own)?.steady(), row("resident", "VmRSS", resident)?])
}

fn switches(pid: i32) -> Result<f64> {
    let count = voluntary_switches(pid);
    count.map_or_else(|| fail(format!("process {pid} ended while its agent slept")), |count| Ok(count as f64))
}
