//! What a tool leaves behind becomes a runner's own child, as a runner adopts orphans: who is dead is taken off the system's list
//! here, or a night of failing pushes would fill it.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, WaitOptions, waitpgid};

/// The groups of tools of which somebody lives still.
static LEFT: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Takes the dead of a tool's group away, whose leader was waited for, and those of tools before it that live no more.
pub(super) fn reap(group: Option<Pid>) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.extend(group);
    left.retain(|group| {
        loop {
            match waitpgid(*group, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                // Somebody is left, and lives.
                Ok(None) => return true,
                // Nobody of ours is.
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
    fn nobody_dead_is_left_of_a_tool() {
        crate::system::adopt_orphans().unwrap();
        // The one in the background outlives the one that started it, until its group is ended.
        let script = "sleep 9 & echo $!";
        let printed = Tool::new("sh", Path::new("/")).args(["-c", script]).output().unwrap();
        let pid: i32 = String::from_utf8(printed).unwrap().trim().parse().unwrap();
        while crate::system::stat(pid).is_some() {
            reap(None);
            std::thread::yield_now();
        }
    }
}
