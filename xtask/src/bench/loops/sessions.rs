//! What a session waits for between two of its turns: each call of `tick`, and of a hook, beside what it takes to start the
//! program at all. In a project in which twenty sessions have a loop each.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use crate::bench::measure::sandbox::Sandbox;
use crate::bench::measure::stats::{median, p99};
use crate::bench::measure::strace::count;
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result, fail};
use crate::files::write;
use crate::process::capture;

const SUBJECT: &str = "Calls of a session";

/// The time that a person does not notice, in seconds: half of the calls must take less.
const GOAL: f64 = 0.010;

const LOOPS: usize = 20;

/// The calls that are there to be compared with.
const FLOORS: [&str; 2] = ["true", "refrain --version"];

/// A call, its standard input, and its exit code.
struct Call {
    what: &'static str,
    words: Vec<OsString>,
    input: PathBuf,
    code: i32,
    speaks: bool,
}

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // A loop without progress is stuck after 102 turns at most.
    let rounds = bench.pick(90, 2);
    let sandbox = Sandbox::new(&bench.tools)?;
    let calls = calls(bench, &sandbox)?;
    let mut wall = vec![Vec::new(); calls.len()];
    for round in 0..rounds {
        for turn in 0..calls.len() {
            let who = (round + turn) % calls.len();
            wall[who].push(calls[who].take(&sandbox)?);
        }
    }
    let (least, floor) = (&wall[0], &wall[1]);
    let mut rows =
        vec![Row::reported(SUBJECT, format!("{}: time, p50", FLOORS[1]), median(floor), Unit::Time).beside(
            FLOORS[0],
            median(least),
            Unit::Time,
        )];
    for (call, wall) in calls.iter().zip(&wall).skip(FLOORS.len()) {
        let [half, most] = ["p50", "p99"].map(|part| format!("{}: time, {part}", call.what));
        let half = Row::limit(SUBJECT, half, GOAL, median(wall), Unit::Time);
        rows.push(half.beside(FLOORS[1], median(floor), Unit::Time));
        let most = Row::reported(SUBJECT, most, p99(wall), Unit::Time);
        rows.push(most.beside(FLOORS[1], p99(floor), Unit::Time));
    }
    for call in calls.iter().skip(FLOORS.len()) {
        rows.extend(call.counts(bench, &sandbox)?);
    }
    Ok(rows)
}

/// Starts the loops, each in a session of its own, and returns the calls to measure. The last loop has ended.
fn calls(bench: &Bench, sandbox: &Sandbox) -> Result<Vec<Call>> {
    let refrain = &bench.tools.refrain;
    for number in 0..LOOPS {
        let (id, session) = (format!("loop-{number}"), format!("session-{number}"));
        let begin = ["tick", "begin", "/refrain:loop", "--agent", "claude", "--args", "Do the next item."];
        let named = ["--name", &id, "--session-id", &session, "--max", "200", "--stuck-threshold", "100"];
        capture(sandbox.command(refrain).args(begin).args(named))?;
        capture(sandbox.command(refrain).args(["tick", "advance", &id]))?;
    }
    capture(sandbox.command(refrain).args(["cancel", "loop-2"]))?;
    let input = |name: &str, text: String| {
        let path = sandbox.note(name);
        write(&path, text).map(|()| path)
    };
    let stop = |session: &str| {
        let cwd = sandbox.repository();
        let told = serde_json::json!({
            "session_id": session, "cwd": cwd, "hook_event_name": "Stop", "stop_hook_active": true,
            "last_assistant_message": "One more item is done.", "background_tasks": [],
        });
        input(session, told.to_string())
    };
    let nothing = || PathBuf::from("/dev/null");
    let call = |what, words: &[&str], input, (code, speaks)| {
        let words = std::iter::once(refrain.into()).chain(words.iter().map(OsString::from)).collect();
        Call { what, words, input, code, speaks }
    };
    let hook = ["hook", "stop", "--agent", "claude"];
    Ok(vec![
        Call { words: vec!["/bin/true".into()], ..call(FLOORS[0], &[], nothing(), (0, false)) },
        call(FLOORS[1], &["--version"], nothing(), (0, true)),
        call("tick advance", &["tick", "advance", "loop-0"], nothing(), (0, true)),
        call("tick hold, nothing to wait for", &["tick", "hold", "loop-2"], nothing(), (3, true)),
        call("hook stop, its loop continues", &hook, stop("session-1")?, (0, true)),
        call("hook stop, a foreign session", &hook, stop("elsewhere")?, (0, false)),
        call("hook stop, an odd input", &hook, input("odd", "[odd".to_owned())?, (0, false)),
    ])
}

impl Call {
    /// Makes it; how long it took, in seconds.
    fn take(&self, sandbox: &Sandbox) -> Result<f64> {
        let out = sandbox.note("said");
        let [program, words @ ..] = self.words.as_slice() else { return fail("a call without a program") };
        let mut command = sandbox.command(program);
        command.args(words).stderr(Stdio::null());
        command.stdin(File::open(&self.input).doing("open what a call reads")?);
        command.stdout(File::create(&out).doing("make a file for what a call says")?);
        let from = Instant::now();
        let status = command.status().doing(format!("start {}", self.what))?;
        let took = from.elapsed().as_secs_f64();
        let speaks = out.metadata().doing("look at what a call said")?.len() > 0;
        match status.code() == Some(self.code) && speaks == self.speaks {
            true => Ok(took),
            false => fail(format!("{}: it ended with {status}, and said something: {speaks}", self.what)),
        }
    }

    /// Its system calls: no thread, so no runtime, and one sync at most.
    fn counts(&self, bench: &Bench, sandbox: &Sandbox) -> Result<[Row; 2]> {
        let [threads, syncs] =
            ["threads", "fsync, fdatasync and their like"].map(|what| format!("{}: {what}", self.what));
        let Some(strace) = &bench.tools.strace else {
            return Ok([threads, syncs].map(|what| Row::skipped(SUBJECT, what, "strace is not installed")));
        };
        // A shell hands it its input: strace has none to give.
        let words = ["/bin/sh", "-c", "input=$1; shift; exec \"$@\" < \"$input\"", "sh"].map(OsString::from);
        let words: Vec<_> =
            words.into_iter().chain([self.input.clone().into()]).chain(self.words.iter().cloned()).collect();
        let tally = count(strace, sandbox, &words, self.code)?;
        let row = |what, most, ours: u64| Row::limit(SUBJECT, what, most, ours as f64, Unit::Count);
        Ok([row(threads, 0.0, tally.threads), row(syncs, 1.0, tally.syncs)])
    }
}
