//! The least that a durable loop can do: start the agent, drain its pipe into a log, look for the promise, and keep a
//! journal. What Refrain costs is measured against this. The modes are
//!
//! * `nosync`: records are written, never synced: the floor of output, where syncs would only add noise;
//! * `sync2`: the begin is on disk before the agent starts, the end before the next decision: the floor of an iteration.
//!
//! It is a program of its own, so that it can be built as the product is (`dist`, no argument parser, no runtime).
//! It does none of what makes Refrain worth having: no keeper, no time limit, no standard error, no hash, no claim rules.

use std::error::Error;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use memchr::memmem::Finder;

const PROMISE: &[u8] = b"<promise>COMPLETE</promise>";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [agent, iterations, mode] = words.as_slice() else {
        return Err("usage: bench_floor AGENT ITERATIONS nosync|sync2".into());
    };
    let synced = match mode.as_str() {
        "nosync" => false,
        "sync2" => true,
        other => return Err(format!("mode `{other}`: expected nosync or sync2").into()),
    };
    create_dir_all(".floor")?;
    let mut journal = append_to(".floor/journal.jsonl")?;
    let mut log = append_to(".floor/output.log")?;
    let finder = Finder::new(PROMISE);
    let mut buffer = vec![0; 64 << 10];
    for iteration in 1..=iterations.parse()? {
        record(&mut journal, "begin", iteration, synced)?;
        let claimed = attempt(agent, &mut log, &finder, &mut buffer)?;
        record(&mut journal, "end", iteration, synced)?;
        if claimed {
            break;
        }
    }
    Ok(())
}

fn append_to(path: &str) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// One line about as long as an event of Refrain's.
fn record(journal: &mut File, what: &str, iteration: u32, synced: bool) -> std::io::Result<()> {
    let line = format!(
        "{{\"e\":\"{what}\",\"iter\":{iteration},\"at\":\"2026-01-01T00:00:00.000Z\",\"exit\":0,\"bytes\":1234,\"tail\":\"Iteration {iteration}: still working.\"}}\n"
    );
    journal.write_all(line.as_bytes())?;
    if synced { journal.sync_data() } else { Ok(()) }
}

/// One run of the agent; whether it printed the promise.
#[expect(clippy::disallowed_methods, reason = "the floor is the plainest way to start a process")]
fn attempt(
    agent: &str,
    log: &mut File,
    finder: &Finder<'_>,
    buffer: &mut [u8],
) -> Result<bool, Box<dyn Error>> {
    let mut child = Command::new(agent)
        .args(["-p", "Do the next item of the plan."])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = child.stdout.take().ok_or("no pipe")?;
    let (mut found, mut kept) = (false, 0);
    loop {
        let count = output.read(&mut buffer[kept..])?;
        if count == 0 {
            break;
        }
        log.write_all(&buffer[kept..kept + count])?;
        let end = kept + count;
        found |= finder.find(&buffer[..end]).is_some();
        // A promise may lie across two reads.
        kept = end.min(PROMISE.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
    child.wait()?;
    Ok(found)
}
