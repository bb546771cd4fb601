//! `refrain top` on a terminal of its own: its cost while an agent prints ten times a second, and that it is idle while
//! nothing happens.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::bench::measure::proc_fs::{cpu, descendants, voluntary_switches};
use crate::bench::measure::sandbox::{LOOP, Sandbox};
use crate::bench::report::{Row, Unit};
use crate::bench::surfaces::running::{PATIENCE, Running};
use crate::bench::surfaces::subject::Bench;
use crate::failure::{Doing, Result, fail};
use crate::files::write;
use crate::process::{command, pause};

const SUBJECT: &str = "Top";

/// Prints ten lines a second, and ends after a while.
const TALKER: &str =
    "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo \"at the next item, number $i\"; sleep 0.1; done";

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let what = "CPU in percent of a core, ten updates a second";
    // The terminal is util-linux's.
    if command("script").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(vec![Row::skipped(SUBJECT, what, "there is no script(1) to make a terminal")]);
    }
    let (settle, window) = bench.pick((2000, 8000), (1000, 500));
    let sandbox = Sandbox::new(&bench.tools)?;
    let script = sandbox.note("talker.sh");
    write(&script, TALKER)?;
    let agent = format!("sh {}", script.display());
    let words = ["start", "--command", &agent, "--prompt", "Talk.", "--name", LOOP, "-m", "1", "--quiet"];
    let words = std::iter::once(bench.tools.refrain.clone().into()).chain(words.map(OsString::from));
    let mut talking = Running::start(&sandbox, &words.collect::<Vec<_>>(), &[])?;
    talking.wait_for_event("attempt.spawned", 1)?;
    let mut top = Top::open(bench, &sandbox)?;
    // The list at first, then the loop.
    pause(Duration::from_millis(settle / 2));
    top.press("\r")?;
    pause(Duration::from_millis(settle));
    let (before, began) = (top.cpu()?, Instant::now());
    pause(Duration::from_millis(window));
    let percent = (top.cpu()? - before) / began.elapsed().as_secs_f64() * 100.0;
    drop(talking);
    // Its runner is gone: that is seen, and then nothing happens any more.
    pause(Duration::from_millis(settle + bench.pick(3000, 1000)));
    let before = top.switches()?;
    pause(Duration::from_millis(window));
    let idle = format!("wake-ups in {:.1} s, nothing happens", window as f64 / 1e3);
    Ok(vec![
        Row::limit(SUBJECT, what, 2.0, percent, Unit::Count),
        Row::limit(SUBJECT, idle, 0.0, top.switches()? - before, Unit::Count),
    ])
}

/// It on its terminal; both end when this is dropped.
struct Top {
    terminal: Child,
    pid: i32,
}

impl Top {
    fn open(bench: &Bench, sandbox: &Sandbox) -> Result<Self> {
        let line = format!("stty cols 120 rows 40; exec {} top", bench.tools.refrain.display());
        let mut terminal = sandbox.command("script");
        terminal.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm-256color");
        let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut top = Self { terminal: terminal.spawn().doing("start script")?, pid: 0 };
        let since = Instant::now();
        let is_it = |pid: &i32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"refrain\0top\0"))
        };
        while since.elapsed() < PATIENCE {
            if let Some(pid) = descendants(top.terminal.id() as i32).into_iter().find(is_it) {
                top.pid = pid;
                return Ok(top);
            }
            pause(Duration::from_millis(20));
        }
        fail("refrain top did not start on a terminal")
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        let Some(stdin) = &mut self.terminal.stdin else { return fail("the terminal has no keyboard") };
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).doing("press a key")
    }

    fn cpu(&self) -> Result<f64> {
        cpu(self.pid).map_or_else(|| fail("refrain top has ended"), Ok)
    }

    fn switches(&self) -> Result<f64> {
        let count = voluntary_switches(self.pid);
        count.map_or_else(|| fail("refrain top has ended"), |count| Ok(count as f64))
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // Its keyboard is gone, and with it the terminal.
        let _ = self.press("q");
        drop(self.terminal.stdin.take());
        let _ = self.terminal.kill();
        let _ = self.terminal.wait();
    }
}
