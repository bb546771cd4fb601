//! Many loops in one process, as a plan's runner drives those of its tasks: what a thousand cost that wait, and how fast a
//! hundred go on at once, against a hundred shell loops at once. Each works in a repository of its own, as tasks do.
//!
//! They are driven by an example of refrain-engine, which knows the library: `hosts BASE LOOPS ITERATIONS PAUSE_MS PROGRAM`.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use crate::bench::measure::sample::{Sample, measure};
use crate::bench::measure::sandbox::Sandbox;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::contestants::{Contestant, SHELL_LOOP};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result, fail};
use crate::files::write;
use crate::process::capture;

const SUBJECT: &str = "Many loops in one process";

/// So many shell loops at once, each in a folder of its own: `ITERATIONS LOOPS`.
const SHELL_LOOPS: &str = r#"for k in $(seq "$2"); do
  mkdir "$k"; cp PROMPT.md "$k"; (cd "$k" && exec bash "$3" "$1") &
done
wait
"#;

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let program = bench.tools.example_path("hosts");
    let mut rows = asleep(bench, &program)?;
    rows.extend(at_full_speed(bench, &program)?);
    Ok(rows)
}

fn asleep(bench: &Bench, program: &Path) -> Result<Vec<Row>> {
    let loops = bench.pick(1000, 20);
    let sandbox = Sandbox::new(&bench.tools)?;
    let printed = capture(sandbox.command(program).args(words(&sandbox, loops, 2, 3_600_000)))?;
    let figures: Value = serde_json::from_str(&printed).doing("read what the example `hosts` printed")?;
    let figure = |key: &str| figures["asleep"][key].as_f64().unwrap_or(f64::NAN);
    let what = |what: &str| format!("{loops} loops asleep: {what}");
    let files = figure("files") / f64::from(loops);
    Ok(vec![
        Row::limit(SUBJECT, what("resident"), 128.0 * 1024.0, figure("resident_kib"), Unit::Memory),
        Row::reported(SUBJECT, what("most that was ever resident"), figure("peak_kib"), Unit::Memory),
        Row::limit(SUBJECT, what("keepers"), 0.0, figure("children"), Unit::Count),
        Row::limit(SUBJECT, what("open files for each"), 9.0, files, Unit::Count),
        Row::reported(SUBJECT, what("threads"), figure("threads"), Unit::Count),
        Row::limit(
            SUBJECT,
            what("CPU in 3 s, counted in steps of 10 ms"),
            0.025,
            figure("cpu_ticks") / 100.0,
            Unit::Time,
        ),
        Row::reported(
            SUBJECT,
            what("time until all have paused"),
            figures["end_s"].as_f64().unwrap_or(f64::NAN),
            Unit::Time,
        ),
    ])
}

fn at_full_speed(bench: &Bench, program: &Path) -> Result<Vec<Row>> {
    let (rounds, loops, short, long) = bench.pick((5, 100, 5, 25), (1, 5, 1, 3));
    let of = |is_ours: bool, iterations: u32| -> Result<Sample> {
        let sandbox = Sandbox::new(&bench.tools)?;
        let words = if is_ours {
            let program = std::iter::once(program.as_os_str().to_owned());
            program.chain(words(&sandbox, loops, iterations, 0)).collect()
        } else {
            let (all, each) = (sandbox.note("loops.sh"), sandbox.note("loop.sh"));
            write(&all, SHELL_LOOPS)?;
            write(&each, SHELL_LOOP)?;
            let numbers = [iterations.to_string().into(), loops.to_string().into()];
            [vec!["bash".into(), all.into()], numbers.into(), vec![each.into()]].concat()
        };
        let sample = measure(&bench.tools, &sandbox, &words, &[], (1, 0))?;
        let (runs, expected) = (sandbox.agent_runs(), u64::from(loops * iterations));
        if runs != expected {
            return fail(format!(
                "{loops} loops at once: the agent was started {runs} times, not {expected}"
            ));
        }
        Ok(sample)
    };
    let (mut cpu, mut wall) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    for round in 0..rounds {
        for turn in 0..2 {
            let who = (round + turn) % 2;
            let (first, second) = (of(who == 0, short)?, of(who == 0, long)?);
            let iterations = f64::from(loops * (long - short));
            cpu[who].push((second.cpu - first.cpu) / iterations);
            wall[who].push((second.wall - first.wall) / iterations);
        }
    }
    let shell = Contestant::Shell.name();
    let what = format!("one iteration of {loops} loops at once");
    Ok(vec![
        Row::cpu(SUBJECT, &what, Some(1.5), &cpu[0], (shell, &cpu[1])),
        Row::wall(SUBJECT, &what, Some(1.5), &wall[0], (shell, &wall[1])),
    ])
}

fn words(sandbox: &Sandbox, loops: u32, iterations: u32, pause_ms: u32) -> Vec<OsString> {
    let numbers = [loops, iterations, pause_ms].map(|number| number.to_string().into());
    [vec![sandbox.note("hosted").into_os_string()], numbers.into(), vec!["mock_agent".into()]].concat()
}
