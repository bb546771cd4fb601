//! A loop whose agent thinks: the runner and the keeper hold little memory and are never woken.

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
    let most = bench.pick(12.0, 56.0) * 1024.0;
    let mut rows =
        vec![Row::limit(SUBJECT, "runner, resident", most, resident(runner)?, Unit::Memory).steady()];
    let mut watched = vec![("runner", runner)];
    if let Some(keeper) = keeper(agent, runner) {
        let most = bench.pick(4.0, 20.0) * 1024.0;
        rows.push(Row::limit(SUBJECT, "keeper, resident", most, resident(keeper)?, Unit::Memory).steady());
        watched.push(("keeper", keeper));
    } else {
        rows.push(Row::skipped(SUBJECT, "keeper, resident", "the runner itself is the agent's parent"));
    }
    let before = watched.iter().map(|(_, pid)| switches(*pid)).collect::<Result<Vec<_>>>()?;
    pause(Duration::from_millis(window));
    for ((role, pid), before) in watched.iter().zip(before) {
        let what = format!("{role}, wake-ups in {:.1} s", window as f64 / 1e3);
        rows.push(Row::limit(SUBJECT, what, 0.0, switches(*pid)? - before, Unit::Count));
    }
    Ok(rows)
}

fn resident(pid: i32) -> Result<f64> {
    status(pid, "VmRSS")
        .map_or_else(|| fail(format!("process {pid} ended while its agent slept")), |kib| Ok(kib as f64))
}

fn switches(pid: i32) -> Result<f64> {
    let count = voluntary_switches(pid);
    count.map_or_else(|| fail(format!("process {pid} ended while its agent slept")), |count| Ok(count as f64))
}
