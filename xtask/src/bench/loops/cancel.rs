//! `cancel --now` of a willing agent: from the start of the command to the agent's death, and to the recorded end of
//! the loop.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::bench::measure::sandbox::{LOOP, Sandbox};
use crate::bench::measure::stats::{median, worst};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::start;
use crate::bench::surfaces::running::Running;
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Failure, Result, fail};
use crate::process::{pause, tail};

const SUBJECT: &str = "Promptness";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let rounds = bench.pick(7, 1);
    let (mut deaths, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (death, end) = cancel(bench)?;
        deaths.push(death);
        ends.push(end);
    }
    Ok(vec![
        Row::limit(
            SUBJECT,
            format!("cancel --now to the agent's death: worst of {rounds}"),
            0.1,
            worst(&deaths),
            Unit::Time,
        ),
        Row::reported(SUBJECT, "cancel --now to the agent's death: median", median(&deaths), Unit::Time),
        Row::limit(
            SUBJECT,
            format!("cancel --now to the recorded end: worst of {rounds}"),
            0.1,
            worst(&ends),
            Unit::Time,
        ),
        Row::reported(SUBJECT, "cancel --now to the recorded end: median", median(&ends), Unit::Time),
    ])
}

/// Seconds to the death of the agent and to the end of the loop.
fn cancel(bench: &Bench) -> Result<(f64, f64)> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let mut running = Running::start(&sandbox, &start(&bench.tools, 3), &[("MOCK_SLEEP_MS", "60000")])?;
    let agent = running.wait_for("agent", 1)?;
    // The agent has just begun; a cancel comes to a loop at rest.
    pause(Duration::from_millis(200));
    let pid = Pid::from_raw(agent).ok_or_else(|| Failure(format!("the agent noted the pid {agent}")))?;
    let agent = pidfd_open(pid, PidfdFlags::empty()).doing("open the agent's pidfd")?;

    let from = Instant::now();
    let mut command = sandbox.command(&bench.tools.refrain);
    command
        .args(["cancel", LOOP, "--now"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let asker = command.spawn().doing("start refrain cancel")?;
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    // Readable when the process has ended, whether or not its parent has looked.
    let died = poll(&mut [PollFd::new(&agent, PollFlags::IN)], Some(&patience))
        .doing("wait for the agent's death")?;
    let death = from.elapsed().as_secs_f64();
    if died != 1 {
        return fail("the agent still lived 10 s after `refrain cancel --now` was started");
    }
    running.wait_for_event("loop.ended", 1)?;
    let end = from.elapsed().as_secs_f64();
    let answer = asker.wait_with_output().doing("wait for refrain cancel")?;
    if !answer.status.success() {
        return fail(format!(
            "`refrain cancel {LOOP} --now` ended with {}: {}",
            answer.status,
            tail(&answer.stderr)
        ));
    }
    running.expect_code(15)?;
    Ok((death, end))
}
