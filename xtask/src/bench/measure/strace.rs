//! Counts a run's system calls, from strace's log.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use crate::bench::measure::sandbox::Sandbox;
use crate::failure::{Result, fail};
use crate::files::read;
use crate::process::{show, tail};

const TRACED: &str = "trace=execve,clone,clone3,fsync,fdatasync,sync,syncfs,sync_file_range,msync,rename,renameat,renameat2,\
                      write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,splice,nanosleep,clock_nanosleep";

/// How often things happened in one run, over all its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) programs: u64,
    pub(crate) git: u64,
    pub(crate) threads: u64,
    pub(crate) syncs: u64,
    pub(crate) renames: u64,
    pub(crate) sleeps: u64,
    pub(crate) written: HashMap<String, u64>,
}

impl Tally {
    /// Bytes written to every file that `counts`.
    pub(crate) fn bytes(&self, counts: impl Fn(&str) -> bool) -> u64 {
        self.written.iter().filter(|(path, _)| counts(path)).map(|(_, bytes)| bytes).sum()
    }
}

/// Runs a command line under strace and counts. The exit code must be `code`.
pub(crate) fn count(strace: &Path, sandbox: &Sandbox, words: &[OsString], code: i32) -> Result<Tally> {
    let log = sandbox.note("strace.log");
    let mut traced = sandbox.command(strace);
    traced
        // Stop only at traced calls: hundreds of gits would stop at every call otherwise.
        .args(["-f", "--seccomp-bpf", "-q", "-y", "-s", "200", "-e", "signal=none", "-e", TRACED, "-o"])
        .arg(&log)
        .arg("--")
        .args(words);
    let shown = show(&traced);
    let output = match traced.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return fail(format!("start `{shown}`: {error}")),
    };
    if output.status.code() != Some(code) {
        return fail(format!("`{shown}` ended with {}, not {code}: {}", output.status, tail(&output.stderr)));
    }
    Ok(parse(&read(&log)?))
}

/// Reads a log of `strace -f -y`. A call that another process interrupts has two lines: the first holds the
/// arguments, the second the result.
fn parse(log: &str) -> Tally {
    let mut tally = Tally::default();
    let mut begun: HashMap<&str, &str> = HashMap::new();
    for line in log.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(pid, start);
        } else if rest.starts_with("<... ") {
            if let Some(start) = begun.remove(pid) {
                enter(&mut tally, start, result(rest));
            }
        } else if rest.contains('(') {
            enter(&mut tally, rest, result(rest));
        }
    }
    // A process killed in the middle of a call: the call counts, its result is unknown.
    for start in begun.into_values() {
        enter(&mut tally, start, None);
    }
    tally
}

/// What a call returned: the number after the last equals sign.
fn result(line: &str) -> Option<i64> {
    line.rsplit_once(" = ")?.1.split_whitespace().next()?.parse().ok()
}

fn enter(tally: &mut Tally, call: &str, result: Option<i64>) {
    let Some((name, arguments)) = call.split_once('(') else { return };
    match name {
        "execve" if result == Some(0) => {
            tally.programs += 1;
            let program = arguments.split('"').nth(1).unwrap_or_default();
            tally.git += u64::from(program.rsplit('/').next() == Some("git"));
        }
        "clone" | "clone3" => tally.threads += u64::from(arguments.contains("CLONE_THREAD")),
        "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" | "msync" => tally.syncs += 1,
        "rename" | "renameat" | "renameat2" => tally.renames += 1,
        "nanosleep" | "clock_nanosleep" => tally.sleeps += 1,
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendfile" => {
            wrote(tally, file(arguments, 0), result)
        }
        // The first descriptor is the source; offsets are between the two.
        "copy_file_range" | "splice" => wrote(tally, file(arguments, 1), result),
        _ => {}
    }
}

fn wrote(tally: &mut Tally, path: Option<&str>, result: Option<i64>) {
    if let (Some(path), Some(bytes @ 1..)) = (path, result) {
        *tally.written.entry(path.to_owned()).or_default() += bytes.unsigned_abs();
    }
}

/// The path of the n-th descriptor among the arguments, if it is a file on a disk and no pipe, socket or device.
fn file(arguments: &str, n: usize) -> Option<&str> {
    let path = arguments.split('<').nth(n + 1)?.split('>').next()?;
    let elsewhere = ["/dev/", "/proc/", "/sys/"].iter().any(|folder| path.starts_with(folder));
    (path.starts_with('/') && !elsewhere).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_whole_and_in_halves() {
        let tally = parse(
            r#"10 execve("/x/refrain", ["refrain", "start"], 0x7ffd /* 9 vars */) = 0
11 execve("/usr/local/bin/mock_agent", ["mock_agent"], 0x1) = -1 ENOENT (No such file or directory)
11 execve("/usr/bin/git", ["git"], 0x1 <unfinished ...>
10 write(4</r/journal.jsonl>, "{\"a\":1}"..., 120) = 120
10 fdatasync(4</r/journal.jsonl> <unfinished ...>
11 <... execve resumed>)              = 0
11 write(1<pipe:[33]>, "x = 5", 5 <unfinished ...>
10 <... fdatasync resumed>)           = 0
11 <... write resumed>)               = 5
10 write(5</r/output.log>, "y", 1 <unfinished ...>
10 <... write resumed>)               = 1
10 splice(6<pipe:[33]>, NULL, 7</r/output.log>, NULL, 65536, 0) = 100
10 renameat2(AT_FDCWD</r>, "a", AT_FDCWD</r>, "b", 0) = 0
12 fsync(3</r/x> <unfinished ...>
10 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, child_tid=0x7f, exit_signal=0}, 88 <unfinished ...>
10 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f}, 88) = 13
10 +++ exited with 0 +++
"#,
        );
        assert_eq!((tally.programs, tally.git, tally.syncs, tally.renames, tally.sleeps), (2, 1, 2, 1, 0));
        assert_eq!(tally.threads, 1, "a process is none");
        assert_eq!(tally.bytes(|path| path.ends_with("journal.jsonl")), 120);
        assert_eq!(tally.bytes(|path| path.ends_with("output.log")), 101);
        assert_eq!(tally.written.len(), 2, "{:?}", tally.written);
    }
}
