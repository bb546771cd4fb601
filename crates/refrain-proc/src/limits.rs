use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::identity;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub open_files: Option<u64>,
    /// Processes and threads that the user may have in all. Root may have any number.
    pub processes: Option<u64>,
}

/// The limits of this process, which its children inherit.
pub fn own() -> Limits {
    Limits {
        open_files: getrlimit(Resource::Nofile).current,
        processes: getrlimit(Resource::Nproc).current.filter(|_| !identity::is_root()),
    }
}

static FOUND: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of open files to the maximum: a process that drives many loops needs a few for each. If that is
/// refused, the limit stays. Keepers and their agents get the original limit: some programs iterate over all possible
/// file descriptors, or rely on small ones.
pub fn raise_open_files() {
    let found = *FOUND.get_or_init(|| getrlimit(Resource::Nofile));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: found.maximum, ..found });
}

/// Gives a child the original limit of this process, before the child starts other processes.
pub(crate) fn hand_down(child: u32) {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let (Some(found), Some(child)) = (FOUND.get(), child) {
        // Fails only if the child is gone.
        let _ = prlimit(Some(child), Resource::Nofile, *found);
    }
}
