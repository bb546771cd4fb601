//! Linux: `/proc`, pidfds, subreapers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use refrain_core::event::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::identity::Stat;

/// Looks a process up; none if it does not exist (any more).
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    // The whole text is shorter, so one read is enough.
    let mut bytes = [0; 1024];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut bytes).ok()?;
    // The name in parentheses may contain any bytes, including parentheses.
    let text = String::from_utf8_lossy(&bytes[..length]);
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let threads: u64 = fields.nth(13)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks like a zombie while its other threads live.
    let zombie = matches!(state, "Z" | "X") && threads <= 1;
    let stopped = matches!(state, "T" | "t");
    Some(Stat { process: Process { pid, start }, parent, session, zombie, stopped })
}

/// How much memory new programs may use without swapping, in bytes; all there could be if the system does not report
/// it.
pub fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    available.and_then(|kib| kib.parse::<u64>().ok()).map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}

pub(crate) fn stats() -> impl Iterator<Item = Stat> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
}

/// The arguments that a process was started with, its name first, each ended by a zero byte; empty if they cannot be
/// read.
pub(crate) fn arguments(pid: i32) -> Vec<u8> {
    of_any_thread(pid, "cmdline")
}

/// The variables that a process was started with, in the same form.
pub(crate) fn environment(pid: i32) -> Vec<u8> {
    of_any_thread(pid, "environ")
}

/// A file of a process. That of a first thread that has ended is empty, and those of the others are not.
fn of_any_thread(pid: i32, file: &str) -> Vec<u8> {
    match fs::read(format!("/proc/{pid}/{file}")) {
        Ok(of_first) if of_first.is_empty() => {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let mut texts = threads.filter_map(|thread| fs::read(thread.path().join(file)).ok());
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        }
        of_first => of_first.unwrap_or_default(),
    }
}

/// How long a process has run; none where there is no such process.
pub(crate) fn age(pid: i32) -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    let start = Duration::try_from_secs_f64(stat(pid)?.process.start as f64 / ticks as f64).ok()?;
    Some(uptime.saturating_sub(start))
}

/// What a process is called; none where there is no such process.
pub(crate) fn name(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

/// The working folder of a process; none if it cannot be read.
pub(crate) fn folder(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Read once: a process lives in one run of the machine.
pub(crate) fn boot() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return boot.clone();
    }
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id = id.trim().to_owned();
    if !id.is_empty() {
        let _ = BOOT.set(id.clone());
    }
    id
}

/// The time since the system was started, with the time that it slept.
pub(crate) fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// Makes this process the parent of every descendant that loses its own.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Prevents other processes of the same user from tracing this one, taking its descriptors or reading its memory.
/// Programs that it starts are not affected.
pub(crate) fn deny_tracing() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Lets the system send SIGCONT to this process when the thread that started it ends, in case it is stopped then.
pub(crate) fn continue_when_parent_ends() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?)
}

/// Signals exactly this process, or none: its number may have been reused.
pub(crate) fn signal(process: Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let same = stat(process.pid).is_some_and(|stat| stat.process == process);
    if same {
        // It may have died just now, which is fine.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// Whether this process was started with a signal ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The program that this process runs, even if the file at its original path was replaced.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// Becomes readable when a child has ended that was not waited for.
pub(crate) fn end_of(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Enlarges a pipe's buffer, if the system allows it.
pub(crate) fn widen(pipe: &impl AsFd, bytes: usize) {
    let _ = fcntl_setpipe_size(pipe, bytes);
}

/// Waits up to `grace` for the end of a child that was not waited for; returns whether it ended.
pub(crate) fn is_gone_within(pid: Pid, grace: Duration) -> io::Result<bool> {
    let process = end_of(pid)?;
    let until = Instant::now() + grace;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
