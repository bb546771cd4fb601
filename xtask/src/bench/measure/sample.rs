//! One measured run: its figures, and whether it did its job.

use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::tools::Tools;
use crate::bench::surfaces::contestants::Contestant;
use crate::failure::{Doing, Result, fail};
use crate::files::read;
use crate::process::tail;

/// Seconds after which a run is taken for hung.
const PATIENCE: u32 = 120;

/// The figures of one run. Times in seconds; CPU is that of every process of the run, the agents included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) max_rss_kib: f64,
    /// Page faults that needed no disk, of every process of the run.
    pub(crate) faults: f64,
}

/// Runs a command line `repeat` times under the launcher; another exit code than `code`, a hang, or a process that
/// outlives the command is a failure.
pub(crate) fn measure(
    tools: &Tools,
    sandbox: &Sandbox,
    words: &[OsString],
    variables: &[(&str, &str)],
    (repeat, code): (u32, i32),
) -> Result<Sample> {
    let mut launcher = sandbox.command(&tools.meas);
    launcher.envs(variables.iter().copied());
    launch(launcher, sandbox, words, PATIENCE, (repeat, code))
}

/// Runs a command line `repeat` times under the launcher, which kills it after `limit` seconds.
pub(crate) fn launch(
    mut launcher: Command,
    sandbox: &Sandbox,
    words: &[OsString],
    limit: u32,
    (repeat, code): (u32, i32),
) -> Result<Sample> {
    let (out, said) = (sandbox.note("meas.json"), sandbox.note("stderr"));
    launcher.arg(&out).args([&limit.to_string(), &repeat.to_string(), "--"]).args(words);
    let stderr = File::create(&said).doing("create a file for standard error")?;
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let status = launcher.status().doing("start the launcher")?;
    let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let shown = shown.join(" ");
    let complaint = || tail(&fs::read(&said).unwrap_or_default());
    if !status.success() {
        return fail(format!("the launcher failed on `{shown}`: {}", complaint()));
    }
    let value: Value = serde_json::from_str(&read(&out)?).doing("read what the launcher measured")?;
    if value["timeout"] == true {
        return fail(format!("`{shown}` did not end within {limit} s: {}", complaint()));
    }
    if value["code"] != code {
        return fail(format!("`{shown}` ended with {}, not {code}: {}", value["code"], complaint()));
    }
    if value["survivors"] != 0 {
        return fail(format!(
            "`{shown}` left {} process(es) behind that still lived 2 s after its end",
            value["survivors"]
        ));
    }
    let figure = |key: &str| value[key].as_f64().unwrap_or(f64::NAN);
    Ok(Sample {
        wall: figure("wall"),
        cpu: figure("cpu"),
        max_rss_kib: figure("maxrss_kib"),
        faults: figure("faults"),
    })
}

/// Runs a loop of so many iterations to its cap in a sandbox of its own, and checks that the agent ran so often.
pub(crate) fn to_the_cap(tools: &Tools, contestant: Contestant, iterations: u32) -> Result<Sample> {
    let sandbox = Sandbox::new(tools)?;
    let words = contestant.prepare(tools, &sandbox, iterations)?;
    let sample = measure(tools, &sandbox, &words, &[], (1, contestant.code_at_cap()))?;
    agent_ran(contestant, &sandbox, iterations)?;
    Ok(sample)
}

/// Fails unless the agent was started exactly so often.
pub(crate) fn agent_ran(contestant: Contestant, sandbox: &Sandbox, times: u32) -> Result<()> {
    let runs = sandbox.agent_runs();
    if runs == u64::from(times) {
        return Ok(());
    }
    fail(format!("{}: the agent was started {runs} times, not {times}", contestant.name()))
}
