//! What `--sandbox` adds: to the start of an agent, to the CPU time of a build, and to the processes and memory of a loop.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use crate::bench::measure::proc_fs::{descendants, proportional};
use crate::bench::measure::sample::measure;
use crate::bench::measure::sandbox::{LOOP, Sandbox};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::running::{PATIENCE, Running};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Failure, Result, fail};
use crate::files::write;
use crate::process::{capture, pause};

const SUBJECT: &str = "Sandbox";

/// Compiles the same file again and again.
const BUILD: &str = "for i in 1 2 3 4 5 6 7 8; do cc -O2 -c -o out.o big.c || exit 1; done";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let words = start(bench, "probe", "/bin/true", 1, true);
    let Some((program, arguments)) = words.split_first() else { return fail("an empty command line") };
    if let Err(failure) = capture(sandbox.command(program).args(arguments)) {
        return Ok(vec![Row::skipped(SUBJECT, "all of it", failure.to_string())]);
    }
    let mut rows = starts(bench, &sandbox)?;
    rows.push(build(bench, &sandbox)?);
    rows.extend(processes(bench)?);
    Ok(rows)
}

/// The command line of a loop over a program, of so many iterations.
fn start(bench: &Bench, name: &str, agent: &str, iterations: u32, is_confined: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![bench.tools.refrain.clone().into()];
    let iterations = iterations.to_string();
    let options = ["start", "--quiet", "--name", name, "-p", "x", "--command", agent, "--exact", &iterations];
    words.extend(options.map(OsString::from));
    words.push(if is_confined { "--sandbox" } else { "--no-sandbox" }.into());
    words
}

/// Both, by turns: what each round took without, and with a sandbox.
fn rounds(
    bench: &Bench,
    sandbox: &Sandbox,
    (what, agent): (&str, &str),
    (rounds, iterations): (u32, u32),
    figure: fn(crate::bench::measure::sample::Sample) -> f64,
) -> Result<[Vec<f64>; 2]> {
    let mut figures = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let is_confined = (round + turn) % 2 == 1;
            let name = format!("{what}-{round}-{turn}");
            let words = start(bench, &name, agent, iterations, is_confined);
            let sample = measure(&bench.tools, sandbox, &words, &[], (1, 0))?;
            figures[usize::from(is_confined)].push(figure(sample));
        }
    }
    Ok(figures)
}

/// The same kinds of namespaces as the sandbox has, and nothing in them.
const NAMESPACES: [&str; 4] = ["unshare", "-Urmpin", "--fork", "/bin/true"];

fn starts(bench: &Bench, sandbox: &Sandbox) -> Result<Vec<Row>> {
    let (count, iterations) = bench.pick((15, 20), (2, 3));
    let size = (count, iterations);
    let [without, with] = rounds(bench, sandbox, ("start", "/bin/true"), size, |sample| sample.wall)?;
    let added: Vec<f64> =
        with.iter().zip(&without).map(|(with, without)| (with - without) / f64::from(iterations)).collect();
    let (mut floor, mut namespaces) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let once = |words: &[OsString]| {
            let sample = measure(&bench.tools, sandbox, words, &[], (iterations, 0))?;
            Ok::<f64, Failure>(sample.wall / f64::from(iterations))
        };
        let least = once(&["/bin/true".into()])?;
        floor.push(least);
        namespaces.push(once(&NAMESPACES.map(OsString::from))? - least);
    }
    // The namespaces alone are most of the goal of four, and the binary is executed twice more; the rest are mounts, and
    // what restores protected places after a kill.
    // A user does not notice them: an agent takes between 75 ms and 3 s until it prints its version, and longer to work.
    Ok(vec![
        Row::time(SUBJECT, "start of an agent, added", Some(14.0), &added, ("true", &floor)),
        Row::time(SUBJECT, "the same namespaces by unshare, added", None, &namespaces, ("true", &floor)),
    ])
}

fn build(bench: &Bench, sandbox: &Sandbox) -> Result<Row> {
    let functions = bench.pick(600, 200);
    let source: String = (0..functions)
        .map(|number| {
            format!("int f{number}(int x) {{ for (int i = 0; i < x; i++) x ^= i * {number}; return x; }}\n")
        })
        .collect();
    write(&sandbox.repository().join("big.c"), source)?;
    write(&sandbox.repository().join("build.sh"), BUILD)?;
    let size = (bench.pick(10, 1), 1);
    let [without, with] = rounds(bench, sandbox, ("build", "sh build.sh"), size, |sample| sample.cpu)?;
    Ok(Row::cpu(SUBJECT, "a build", Some(1.05), &with, ("without", &without)))
}

/// While the agent sleeps; the prompt is an argument of its shell.
fn processes(bench: &Bench) -> Result<Vec<Row>> {
    let [without, with] = [held(bench, false)?, held(bench, true)?];
    let memory = bench.pick(6.0, 60.0) * 1024.0;
    Ok(vec![
        Row::limit(SUBJECT, "processes, added", 2.0, with.0 - without.0, Unit::Count).steady(),
        Row::limit(SUBJECT, "memory, added", memory, with.1 - without.1, Unit::Memory),
    ])
}

/// How many processes a loop has, and how much memory they use, in KiB.
fn held(bench: &Bench, is_confined: bool) -> Result<(f64, f64)> {
    let sandbox = Sandbox::new(&bench.tools)?;
    let running =
        Running::start(&sandbox, &start(bench, LOOP, "sh -c 'exec sleep 60'", 1, is_confined), &[])?;
    let from = Instant::now();
    loop {
        let all = descendants(running.pid());
        let is_asleep = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "sleep")
        };
        if all.iter().any(is_asleep) {
            let memory: u64 = all.iter().filter_map(|pid| proportional(*pid)).sum();
            return Ok((all.len() as f64, memory as f64));
        }
        if from.elapsed() > PATIENCE {
            return fail(format!("the agent of a loop did not begin: {}", running.said()));
        }
        pause(Duration::from_millis(5));
    }
}
