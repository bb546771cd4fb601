//! Processes that a tool leaves become the runner's children, because the runner adopts orphans. They are reaped here
//! when dead, or a night of failing pushes would fill the process table.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, WaitOptions, waitpgid};

static LEFT: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Reaps the dead processes of a tool's group, whose leader was waited for, and of earlier tools' groups.
pub(super) fn reap(group: Option<Pid>) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.extend(group);
    left.retain(|group| {
        loop {
            match waitpgid(*group, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                // A process of the group still lives.
                Ok(None) => return true,
                // The group has no children of ours.
                Err(_) => return false,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Tool;
    use super::*;

    #[test]
    fn no_dead_process_of_a_tool_is_left() {
        crate::system::adopt_orphans().unwrap();
        // The background process outlives its starter, until its group is ended.
        let script = "sleep 9 & echo $!";
        let printed = Tool::new("sh", Path::new("/")).args(["-c", script]).output().unwrap();
        let pid: i32 = String::from_utf8(printed).unwrap().trim().parse().unwrap();
        while crate::system::stat(pid).is_some() {
            reap(None);
            std::thread::yield_now();
        }
    }
}
