//! What the system lets this process and its children have.

use rustix::process::{Resource, getrlimit};

use crate::identity;

/// How many; none is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files that one process may have open.
    pub open_files: Option<u64>,
    /// Processes and threads that the user may have in all. Root may have any number.
    pub processes: Option<u64>,
}

/// This process's, which its children inherit.
#[must_use]
pub fn own() -> Limits {
    Limits {
        open_files: getrlimit(Resource::Nofile).current,
        processes: getrlimit(Resource::Nproc).current.filter(|_| !identity::is_root()),
    }
}
