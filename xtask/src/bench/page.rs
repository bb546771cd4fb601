//! Writes docs/explanation/performance.md: the figures of one run, the machine they come from, and how to repeat them.

use std::fs;
use std::path::Path;

use super::report::{Row, Verdict, markdown};
use super::surfaces::subject::Bench;
use crate::failure::Result;
use crate::files::write as write_file;
use crate::process::{capture, command};

const INTRODUCTION: &str = "\
# Performance

Written by `cargo xtask bench --write`; do not edit.

Machines are shared and noisy, so every comparison is a ratio inside one run, whose rounds alternate between Refrain and
what it is compared with. CPU ratios are the median of the pairwise ratios, time ratios too where they say so;
else they compare the tenth percentiles.
CPU is that of all processes together, the agent's included. Judge CPU and counts first.

* *shell loop*: the six lines of bash that one would write by hand; they make nothing durable.
* *sync2 floor*: the least that a durable loop can do, in Rust: begin on disk before the agent starts, end on disk before
  the next decision, output kept and searched, nothing else. *nosync floor*: the same without the syncs.
* *true*: `/bin/true`, the least that a program can do.
* *a JSON file each*: a program that reads and parses a file with the status object of each loop, and prints nothing.
* *inotify alone*: how soon a program hears of an append that waits for the system's notice and does nothing else; *list
  --all-projects --json*: the command line, which reads the same rows; *the stylesheet*: a file from memory, through the same server.
* *bare run*: an agent program's own run with the command line, environment and prompt that Refrain gives it, its output
  in files, one run after another. *Bare runs once more* says how far such runs differ from each other.

The agent is a stand-in that starts in a fraction of a millisecond and prints a few lines, so that what is left is the
loop's own cost. Under *Known agents* alone it is the real programs, which ask a scripted model that answers at once; a loop of
ten iterations there includes the start and the end of Refrain.
";

const REPEAT: &str = "
## How to repeat

```
cargo xtask bench              # prints the tables
cargo xtask bench output idle  # only these subjects
cargo xtask bench --write      # renews this page
cargo xtask bench --smoke      # only tries whether everything runs; CI does this
```

Needed are git, a C compiler, strace for the counts, and for known agents the programs that `cargo xtask e2e agents`
installs. `REFRAIN_BIN=PATH` measures another binary. Run it on a machine with nothing else to do: the load stands above,
and a `MISSED` under load means little where the ratio is one of times. On ext4, wait five minutes after anything that
deleted many files, a build or another run too: until then each new file is dearer, for Refrain and not for the shell loop.
The sources are in `xtask/src/bench/` (a file a subject) and `xtask/bench/` (the stand-in agent and the launcher).
";

pub(crate) fn write(bench: &Bench, rows: &[Row], not_measured: &[&str], load_before: &str) -> Result<()> {
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let mut judged =
        format!("\n{} goals met, {} missed in this run.\n", count(Verdict::Pass), count(Verdict::Missed));
    if !not_measured.is_empty() {
        judged.push_str(&format!("Not measured in this run: {}.\n", not_measured.join(", ")));
    }
    let machine = machine(&bench.workspace.root, &bench.tools.scratch, load_before);
    let text = format!("{INTRODUCTION}{judged}{}{machine}{REPEAT}", markdown(rows));
    write_file(&bench.workspace.root.join("docs/explanation/performance.md"), text)?;
    println!("wrote docs/explanation/performance.md");
    Ok(())
}

/// The load of the last minute, five and fifteen minutes.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn machine(root: &Path, scratch: &Path, load_before: &str) -> String {
    let said = |program: &str, words: &[&str]| {
        let told = capture(command(program).current_dir(root).args(words));
        told.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    let edits =
        if said("git", &["status", "--porcelain"]).is_empty() { "" } else { ", with uncommitted changes" };
    let facts = [
        ("date", said("date", &["-u", "+%Y-%m-%d"])),
        ("commit", format!("{}{edits}", said("git", &["rev-parse", "--short", "HEAD"]))),
        ("processor", format!("{}, {} usable", processor(), said("nproc", &[]))),
        ("memory", memory()),
        ("kernel", said("uname", &["-sr"])),
        ("file system of the runs", file_system(scratch)),
        ("load before and after", format!("{load_before}; {}", load_average())),
        ("Rust", said("rustc", &["--version"])),
        ("git", said("git", &["--version"])),
    ];
    let lines: Vec<String> = facts.iter().map(|(what, value)| format!("| {what} | {value} |\n")).collect();
    format!("\n## The machine\n\n| | |\n|---|---|\n{}", lines.concat())
}

/// The value after the first line of a file that begins with `heading`.
fn fact(file: &str, heading: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(heading))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn processor() -> String {
    fact("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory() -> String {
    let kib = fact("/proc/meminfo", "MemTotal")
        .and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

/// The type of the innermost mount that holds the folder: on some, a sync costs nothing.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let innermost = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len());
    innermost.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}
