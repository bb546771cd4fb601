//! The identity of a process: its number is reused, so its start time is included, with the boot and the machine.

use std::time::Duration;

use camino::Utf8Path;
use refrain_core::event::{Identity, Process};

use crate::system;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub process: Process,
    pub parent: i32,
    pub session: i32,
    /// Whether it is dead and not reaped yet.
    pub zombie: bool,
    /// Whether a signal or a debugger stopped it.
    pub stopped: bool,
}

/// Looks a process up; none if it does not exist (any more).
pub fn stat(pid: i32) -> Option<Stat> {
    system::stat(pid)
}

pub fn all() -> impl Iterator<Item = Stat> {
    system::stats()
}

/// Whether a process runs that has an argument with this ending, and this variable.
pub fn is_running_with(argument: &str, variable: &[u8]) -> bool {
    let has = |bytes: Vec<u8>, fits: &dyn Fn(&[u8]) -> bool| bytes.split(|byte| *byte == 0).any(fits);
    all().filter(|stat| !stat.zombie).map(|stat| stat.process.pid).any(|pid| {
        has(system::arguments(pid), &|part| part.ends_with(argument.as_bytes()))
            && has(system::environment(pid), &|part| part == variable)
    })
}

/// The nearest ancestor that runs such a program: the program's path, or that of the script it was started with.
pub fn above(is: impl Fn(&Utf8Path) -> bool) -> Option<Process> {
    let above = ancestors().into_iter().map(|stat| stat.process).filter(|process| process.pid > 1);
    above.into_iter().find(|process| runs(process.pid, &is))
}

/// Whether a process runs such a program: the program's path, or that of the script it was started with.
pub(crate) fn runs(pid: i32, is: impl Fn(&Utf8Path) -> bool) -> bool {
    let arguments = system::arguments(pid);
    let mut words =
        arguments.split(|byte| *byte == 0).take(2).filter_map(|word| std::str::from_utf8(word).ok());
    words.any(|word| is(Utf8Path::new(word)))
}

/// The processes above this one, nearest first, as far as the system shows them.
pub fn ancestors() -> Vec<Stat> {
    loop {
        // A process that ends meanwhile leaves its children to another: the chain read so far is invalid.
        if let Some(found) = chain() {
            return found;
        }
    }
}

/// The same, unless one of them ended meanwhile.
fn chain() -> Option<Vec<Stat>> {
    let mut found = Vec::new();
    let Some(mut child) = stat(rustix::process::getpid().as_raw_nonzero().get()) else {
        return Some(found);
    };
    while child.parent > 0 {
        let Some(parent) = stat(child.parent) else {
            // The system hides it from this user if the child still has the same parent.
            let is_hidden = stat(child.process.pid).is_some_and(|now| now.parent == child.parent);
            return is_hidden.then_some(found);
        };
        found.push(parent);
        child = parent;
    }
    Some(found)
}

pub fn own() -> Identity {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let start = stat(pid).map_or(0, |stat| stat.process.start);
    Identity { process: Process { pid, start }, boot: system::boot(), host: host() }
}

/// Whether this process runs as root: some agents then refuse to skip their permission prompts.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether that process runs on this machine now.
pub fn is_running(process: Process) -> bool {
    stat(process.pid).is_some_and(|stat| !stat.zombie && stat.process == process)
}

/// Whether a process of this number runs that is at least so old: the process that wrote the number then, and no later one that has
/// it since.
pub fn is_running_since(pid: i32, ago: Duration) -> bool {
    let is_as_old = || system::age(pid).is_some_and(|age| age + CLOCK_SLACK >= ago);
    stat(pid).is_some_and(|stat| !stat.zombie) && is_as_old()
}

/// By how much the clocks of files and of processes may differ.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// Whether that process is stopped, by SIGSTOP as a rule: it does nothing, and ends at nothing but SIGKILL, until SIGCONT.
pub fn is_stopped(process: Process) -> bool {
    stat(process.pid).is_some_and(|stat| stat.stopped && stat.process == process)
}

/// Whether that process lives; none if it belongs to another machine and cannot be seen from here.
pub fn is_alive(identity: &Identity) -> Option<bool> {
    seen(identity).map(|stat| stat.is_some())
}

/// That process as it is now, if it lives; none if it belongs to another machine and cannot be seen from here.
pub fn seen(identity: &Identity) -> Option<Option<Stat>> {
    if identity.host != host() {
        return None;
    }
    let is_it = |stat: &Stat| !stat.zombie && stat.process == identity.process;
    let is_of_this_boot = identity.boot == system::boot();
    Some(is_of_this_boot.then(|| stat(identity.process.pid)).flatten().filter(is_it))
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::process::Signal;

    use super::*;

    #[test]
    fn a_stopped_process_is_known_as_stopped_until_it_continues() {
        #[expect(clippy::disallowed_methods, reason = "a process to be stopped")]
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let process = stat(pid).unwrap().process;
        let wait = |is: bool| {
            while is_stopped(process) != is {
                std::thread::yield_now();
            }
        };
        wait(false);
        system::signal(process, Signal::STOP);
        wait(true);
        assert!(!is_stopped(Process { start: process.start + 1, pid }), "it is another process");
        system::signal(process, Signal::CONT);
        wait(false);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_seen_whatever_bytes_are_its_name() {
        let rename = "printf '\\377) T 1' > /proc/$$/comm; echo; read end";
        #[expect(clippy::disallowed_methods, reason = "a process with a name")]
        let mut child = std::process::Command::new("sh")
            .args(["-c", rename])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut renamed = [0];
        child.stdout.take().unwrap().read_exact(&mut renamed).unwrap();
        let stat = stat(i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(stat.parent, rustix::process::getpid().as_raw_nonzero().get());
        assert!(!stat.stopped);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let own = own();
        assert_eq!(is_alive(&own), Some(true));
        let mut earlier = own.clone();
        earlier.process.start -= 1;
        assert_eq!(is_alive(&earlier), Some(false), "the number was used before");
        let mut before = own.clone();
        before.boot = "another".into();
        assert_eq!(is_alive(&before), Some(false), "the machine was started since");
        let elsewhere = Identity { host: "elsewhere".into(), ..own };
        assert_eq!(is_alive(&elsewhere), None);
    }
}
