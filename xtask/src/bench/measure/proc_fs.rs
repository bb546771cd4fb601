//! What /proc says about a process. Everything may vanish between two looks, so an absent answer is an ordinary one.

use std::fs;
use std::path::Path;

/// The number after a heading of /proc/PID/status, such as `VmRSS` (in kB).
pub(crate) fn status(pid: i32, heading: &str) -> Option<u64> {
    number(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, heading)
}

/// The parent, and whether it is dead: a zombie has ended, only its parent has not looked yet.
pub(crate) fn parent_and_death(pid: i32) -> Option<(i32, bool)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses and may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    Some((words.next()?.parse().ok()?, matches!(state, "Z" | "X")))
}

/// Whether a process runs: neither gone nor a zombie.
pub(crate) fn lives(pid: i32) -> bool {
    parent_and_death(pid).is_some_and(|(_, dead)| !dead)
}

/// How often the threads of a process gave up the processor of their own will: each is a sleep, so the next is a
/// wake-up.
pub(crate) fn voluntary_switches(pid: i32) -> Option<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        sum += number(&text, "voluntary_ctxt_switches")?;
    }
    Some(sum)
}

/// For how long the threads of a process ran, in seconds.
pub(crate) fn cpu(pid: i32) -> Option<f64> {
    let mut sum = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        sum += text.split_whitespace().next().and_then(|ran| ran.parse::<f64>().ok()).unwrap_or_default();
    }
    Some(sum / 1e9)
}

/// The memory of a process in KiB, with shared pages divided by the number of sharers (PSS).
pub(crate) fn proportional(pid: i32) -> Option<u64> {
    number(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss")
}

/// The processes below `root`, itself first.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = pid
            && let Some((parent, false)) = parent_and_death(pid)
        {
            all.push((pid, parent));
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let above = found[next];
        found.extend(all.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// Whether a process runs the program of that file name from the mock agent's folder.
pub(crate) fn runs_from(pid: i32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.starts_with(folder))
}

fn number(text: &str, heading: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(heading)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_matched_whole() {
        let text =
            "VmRSSx:\t9 kB\nVmRSS:\t  512 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n";
        assert_eq!(number(text, "VmRSS"), Some(512));
        assert_eq!(number(text, "voluntary_ctxt_switches"), Some(7));
        assert_eq!(number(text, "Threads"), None);
    }
}
