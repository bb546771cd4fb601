//! Ending whole trees of processes: freeze, list and kill until none is found. Frozen processes cannot fork, so the
//! list gets complete; a pid is only ever signalled through a descriptor that was verified to refer to the listed
//! process.

mod session;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use refrain_core::event::Process;
use refrain_core::text::{clip, printable, squeeze};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

use crate::identity::{self, Stat};
use crate::keeper::is_keeper;
use crate::system;

pub use session::sweep_session;

/// How long one sweep continues while new processes appear: some that cannot be frozen can fork for ever.
pub(crate) const ROUNDS_BOUND: Duration = Duration::from_secs(5);

/// The mark of a loop's processes: a variable that all its agents are started with, another one of its gates, and the
/// session of the current attempt, for processes that cleared their environment.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Names and values of the variables, as `NAME=value`: a process bears one of them.
    pub variables: Vec<String>,
    pub session: Option<Process>,
    /// The keeper that this process has lost, if any: after its death, its descendants become this process's own.
    pub keeper: Option<Process>,
}

/// Ends every process that bears the mark, and their descendants, except this one. Returns how many there were.
pub fn sweep(mark: &Mark) -> u32 {
    let ended = end_all(|| marked(mark));
    for pid in ended.iter().filter_map(|(pid, _)| Pid::from_raw(*pid)) {
        // Orphans have become this subreaper's children; other processes have not, which is fine.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    count(&ended)
}

fn count(ended: &BTreeSet<(i32, u64)>) -> u32 {
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}

/// Ends every descendant of this process. Returns how many there were. The caller reaps its children.
pub fn end_descendants() -> u32 {
    count(&end_all(own_descendants))
}

/// Sends a signal to every descendant of this process.
pub(crate) fn signal_descendants(signal: Signal) {
    own_descendants().into_iter().for_each(|process| send(process, signal));
}

pub(crate) fn living_descendants() -> Vec<i32> {
    own_descendants().into_iter().map(|(pid, _)| pid).collect()
}

/// How many names are reported, and how long one may be, in bytes.
const MOST_NAMES: usize = 5;
const LONGEST_NAME: usize = 40;

/// The program names of this process's living descendants. None if no descendant lives.
pub(crate) fn living_names() -> Option<Vec<String>> {
    let living = own_descendants();
    (!living.is_empty()).then(|| names(living))
}

/// The program names of these processes, each once.
fn names(processes: BTreeSet<(i32, u64)>) -> Vec<String> {
    let name = |(pid, _): (i32, u64)| {
        let arguments = system::arguments(pid);
        let program = String::from_utf8_lossy(arguments.split(|byte| *byte == 0).next()?).into_owned();
        let name = squeeze(&printable(program.rsplit('/').next()?));
        (!name.is_empty()).then(|| clip(&name, LONGEST_NAME).into_owned())
    };
    let names: BTreeSet<String> = processes.into_iter().filter_map(name).collect();
    names.into_iter().take(MOST_NAMES).collect()
}

/// Whether this process has children, including zombies. Without them it has no descendants.
fn has_children() -> bool {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, peek), Err(Errno::CHILD))
}

fn own_descendants() -> BTreeSet<(i32, u64)> {
    // Every loop ends here: on a machine with many processes, reading about all of them takes longer than the rest of
    // it.
    if !has_children() {
        return BTreeSet::new();
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    descendants(&[own], &identity::all().collect::<Vec<_>>())
}

fn end_all(list: impl Fn() -> BTreeSet<(i32, u64)>) -> BTreeSet<(i32, u64)> {
    let mut ended = BTreeSet::new();
    let bound = Instant::now() + ROUNDS_BOUND;
    loop {
        // Freeze until a list has no new process: then no process is left that could fork.
        let mut frozen = BTreeSet::new();
        loop {
            let new: Vec<_> = list().difference(&frozen).copied().collect();
            if new.is_empty() || Instant::now() >= bound {
                break;
            }
            for process in new {
                send(process, Signal::STOP);
                frozen.insert(process);
            }
        }
        // The killed are listed until they are gone or reaped by us; a dead process needs no second kill.
        let alive: Vec<_> = frozen.difference(&ended).copied().collect();
        for process in &alive {
            send(*process, Signal::KILL);
            ended.insert(*process);
        }
        if alive.is_empty() || Instant::now() >= bound {
            return ended;
        }
    }
}

/// The processes that descend from `roots`, without zombies: they are dead.
fn descendants(roots: &[i32], all: &[Stat]) -> BTreeSet<(i32, u64)> {
    let mut found = BTreeSet::new();
    let mut parents = roots.to_vec();
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|stat| stat.parent == parent) {
            if found.insert((child.process.pid, child.process.start)) {
                parents.push(child.process.pid);
            }
        }
    }
    let dead = all.iter().filter(|stat| stat.zombie).map(|stat| (stat.process.pid, stat.process.start));
    for zombie in dead {
        found.remove(&zombie);
    }
    found
}

fn marked(mark: &Mark) -> BTreeSet<(i32, u64)> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let all: Vec<Stat> = identity::all().collect();
    let own_session = identity::stat(own).map(|stat| stat.session);
    // Our own tools run in our session; keepers are known by their name; every other child of ours is an orphan of an
    // agent.
    let orphaned = |stat: &Stat| {
        stat.parent == own
            && Some(stat.session) != own_session
            && mark.keeper.is_some_and(|keeper| stat.process.start >= keeper.start)
            && !is_keeper(&system::arguments(stat.process.pid))
    };
    // If another process has the leader's number by now, the number was reused: that session is unrelated.
    let session =
        mark.session.filter(|leader| identity::stat(leader.pid).is_none_or(|now| now.process == *leader));
    let in_session = |stat: &Stat| {
        session.is_some_and(|leader| stat.session == leader.pid && stat.process.start >= leader.start)
    };
    let mut found: BTreeSet<_> = all
        .iter()
        .filter(|stat| {
            !stat.zombie && (in_session(stat) || orphaned(stat) || bears(stat.process.pid, &mark.variables))
        })
        .map(|stat| (stat.process.pid, stat.process.start))
        .collect();
    let is_keeper = |stat: &&Stat| mark.keeper == Some(stat.process);
    // A keeper that cannot even be killed still has its children.
    let keeper = all.iter().find(is_keeper).map(|stat| stat.process.pid);
    let roots: Vec<i32> = found.iter().map(|(pid, _)| *pid).chain(keeper).collect();
    found.extend(descendants(&roots, &all));
    found.retain(|(pid, _)| *pid != own);
    found
}

fn bears(pid: i32, variables: &[String]) -> bool {
    let is_one = |entry: &[u8]| variables.iter().any(|variable| entry == variable.as_bytes());
    system::environment(pid).split(|byte| *byte == 0).any(is_one)
}

fn send((pid, start): (i32, u64), signal: Signal) {
    system::signal(Process { pid, start }, signal);
}
