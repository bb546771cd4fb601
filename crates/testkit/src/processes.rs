//! Finds processes of a sandbox: its path is in the environment of every process started in it, and in the command line
//! of its agents, so that one that cleared its environment is found too.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub pid: i32,
    /// Its command line, words joined by blanks.
    pub command: String,
}

/// Every living process that bears `marker` in its environment or command line. Zombies bear nothing: they are dead.
pub fn survivors(marker: &str) -> Vec<Survivor> {
    let own = std::process::id();
    let pids = fs::read_dir("/proc").expect("/proc is there").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let command = read("cmdline");
            let bears = [&command, &read("environ")].iter().any(|text| contains(text, marker.as_bytes()));
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            bears.then(|| Survivor { pid: i32::try_from(pid).unwrap_or_default(), command })
        })
        .collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Sends a signal to one process that the test knows by its number.
pub fn signal_process(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already; whether it should be is for the test to say.
        let _ = kill_process(pid, signal);
    }
}
