//! A loop that runs in the background while the harness observes it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::bench::measure::proc_fs::{descendants, lives, parent_and_death, runs_from, status};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::tools::Tools;
use crate::failure::{Doing, Result, fail};
use crate::process::{pause, tail, wall_clock_ns};

/// How long anything may take that should take moments.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Ended when dropped, so that a failed benchmark leaves nothing running.
pub(crate) struct Running<'a> {
    child: Child,
    sandbox: &'a Sandbox,
}

impl<'a> Running<'a> {
    /// Starts a command line in the sandbox.
    pub(crate) fn start(
        sandbox: &'a Sandbox,
        words: &[OsString],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let Some((program, arguments)) = words.split_first() else { return fail("an empty command line") };
        let stderr = File::create(sandbox.note("stderr")).doing("create a file for standard error")?;
        let mut command = sandbox.command(program);
        command.args(arguments).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let child = command.spawn().doing(format!("start {}", program.to_string_lossy()))?;
        Ok(Self { child, sandbox })
    }

    /// The process that was started: the runner of the loop.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until the n-th process of a role (`agent`, `grandchild`) has noted its pid; gives its pid.
    pub(crate) fn wait_for(&mut self, role: &str, n: usize) -> Result<i32> {
        let (sandbox, mut found) = (self.sandbox, None);
        self.wait_until(&format!("{role} number {n}"), || {
            found = pids(sandbox, role).get(n - 1).copied();
            found.is_some()
        })?;
        found.map_or_else(|| fail("a pid that was there is gone"), Ok)
    }

    /// Waits until the journal holds the n-th event of a type; gives the wall clock at which it was first seen there.
    pub(crate) fn wait_for_event(&mut self, kind: &str, n: usize) -> Result<u128> {
        let (sandbox, mut seen) = (self.sandbox, 0);
        self.wait_until(&format!("`{kind}` number {n} in the journal"), || {
            seen = wall_clock_ns();
            sandbox.events(kind) >= n
        })?;
        Ok(seen)
    }

    /// Waits until something holds; looks every half millisecond. Fails if the loop ends before.
    fn wait_until(&mut self, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
        let from = Instant::now();
        loop {
            if holds() {
                return Ok(());
            }
            if let Some(code) = self.child.try_wait().doing("look at the loop")? {
                // It may have happened just before the end.
                return if holds() {
                    Ok(())
                } else {
                    fail(format!("the loop ended with {code} before there was {what}: {}", self.said()))
                };
            }
            if from.elapsed() > PATIENCE {
                return fail(format!("no {what} within {} s: {}", PATIENCE.as_secs(), self.said()));
            }
            pause(Duration::from_micros(500));
        }
    }

    /// Waits for the end; any exit code but this one is a failure.
    pub(crate) fn expect_code(&mut self, code: i32) -> Result<()> {
        let from = Instant::now();
        loop {
            match self.child.try_wait().doing("wait for the loop")? {
                Some(status) if status.code() == Some(code) => return Ok(()),
                Some(status) => {
                    return fail(format!("the loop ended with {status}, not {code}: {}", self.said()));
                }
                None if from.elapsed() > PATIENCE => {
                    return fail(format!(
                        "the loop did not end within {} s: {}",
                        PATIENCE.as_secs(),
                        self.said()
                    ));
                }
                None => pause(Duration::from_millis(1)),
            }
        }
    }

    /// Watches until the end; the sum over the program's processes of their peak memory in KiB, without the agent's. A
    /// little more than was ever in use at once, since their peaks need not coincide.
    pub(crate) fn watch_memory(&mut self, tools: &Tools) -> Result<f64> {
        let mut peaks: HashMap<i32, u64> = HashMap::new();
        let from = Instant::now();
        while self.child.try_wait().doing("look at the loop")?.is_none() {
            for pid in descendants(self.pid()) {
                // Between fork and exec the agent still looks like the process that starts it: ignore that memory.
                if runs_from(pid, &tools.folder) {
                    peaks.remove(&pid);
                } else if let Some(peak) = status(pid, "VmHWM") {
                    peaks.insert(pid, peak);
                }
            }
            if from.elapsed() > PATIENCE {
                return fail(format!(
                    "the loop did not end within {} s: {}",
                    PATIENCE.as_secs(),
                    self.said()
                ));
            }
            pause(Duration::from_millis(5));
        }
        Ok(peaks.values().sum::<u64>() as f64)
    }

    pub(crate) fn said(&self) -> String {
        tail(&fs::read(self.sandbox.note("stderr")).unwrap_or_default())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // What the program should have ended itself: a sleeping mock agent must not disturb the next subject.
        for role in ["agent", "grandchild"] {
            for pid in pids(self.sandbox, role).into_iter().filter(|pid| lives(*pid)) {
                if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
    }
}

/// The pids that processes of a role have noted, in order.
pub(crate) fn pids(sandbox: &Sandbox, role: &str) -> Vec<i32> {
    let text = fs::read_to_string(sandbox.note("pids")).unwrap_or_default();
    let pid = |line: &str| line.strip_prefix(role)?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(pid).collect()
}

/// The process that started the agent, if it is another one than the runner.
pub(crate) fn keeper(agent: i32, runner: i32) -> Option<i32> {
    let (parent, _) = parent_and_death(agent)?;
    (parent != runner && parent != 1).then_some(parent)
}
