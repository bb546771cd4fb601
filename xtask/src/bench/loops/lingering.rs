//! An agent that ends and leaves a child, in a session of its own and holding standard output open: the result is
//! recorded at once all the same, and the child does not survive.
//!
//! The agent notes the time as its last act; the harness looks at the journal every half millisecond, so the figure
//! does not depend on what the program says about itself.

use crate::bench::measure::proc_fs::lives;
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::{median, worst};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::start;
use crate::bench::surfaces::running::{PATIENCE, Running, pids};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Result, fail};
use crate::files::read;

const SUBJECT: &str = "Promptness";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let iterations = bench.pick(10, 2);
    let sandbox = Sandbox::new(&bench.tools)?;
    let life = (PATIENCE.as_secs() * 2).to_string();
    let variables = [("MOCK_GRANDCHILD_S", life.as_str())];
    let mut running = Running::start(&sandbox, &start(&bench.tools, iterations), &variables)?;
    let mut delays = Vec::new();
    for n in 1..=iterations as usize {
        let recorded = running.wait_for_event("attempt.finished", n)?;
        let exits = read(&sandbox.note("exits"))?;
        let Some(exit) = exits.lines().nth(n - 1).and_then(|line| line.parse::<u128>().ok()) else {
            return fail(format!("`attempt.finished` number {n} was recorded before the agent ended"));
        };
        delays.push(recorded.saturating_sub(exit) as f64 / 1e9);
    }
    running.expect_code(10)?;
    let left: Vec<i32> = pids(&sandbox, "grandchild").into_iter().filter(|pid| lives(*pid)).collect();
    if !left.is_empty() {
        return fail(format!("{} of {iterations} grandchildren outlived the loop", left.len()));
    }
    let what = "agent's exit to its result in the journal, a grandchild holding its pipe";
    Ok(vec![
        Row::limit(SUBJECT, format!("{what}: worst of {iterations}"), 0.25, worst(&delays), Unit::Time),
        Row::reported(SUBJECT, format!("{what}: median"), median(&delays), Unit::Time),
    ])
}
