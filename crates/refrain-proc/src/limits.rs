use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use rustix::system::sysinfo;

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
    if let Some(found) = FOUND.get() {
        limit(child, Resource::Nofile, *found);
    }
}

/// Bounds what a child takes that reads what an agent wrote, also when this process is gone: half of the memory of the
/// machine, and on each of its processors the time that the child has.
pub(crate) fn bound(child: u32, time: Duration) {
    let info = sysinfo();
    #[expect(clippy::useless_conversion, reason = "it has 32 bits on some systems")]
    let memory = u64::from(info.totalram) * u64::from(info.mem_unit) / 2;
    let processors = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    for (resource, most) in [(Resource::Data, memory), (Resource::Cpu, time.as_secs().max(1) * processors)] {
        // A child has what this process has, which may be less.
        let has = getrlimit(resource);
        let most = |has: Option<u64>| Some(has.map_or(most, |has| has.min(most)));
        limit(child, resource, Rlimit { current: most(has.current), maximum: most(has.maximum) });
    }
}

/// Fails only if the child is gone.
fn limit(child: u32, resource: Resource, limit: Rlimit) {
    if let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        let _ = prlimit(Some(child), resource, limit);
    }
}
