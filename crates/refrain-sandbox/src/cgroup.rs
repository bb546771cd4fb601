//! The cgroup of a sandbox, which bounds memory and CPU. It needs a cgroup v2 that this user may write, as systemd delegates
//! one to each user's session.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{Bounds, SandboxSpec};
use rustix::fs::{Access, access};

/// Where cgroups v2 are mounted, alone or beside v1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The first part of the names of these cgroups; the number of the process that removes them follows.
const PREFIX: &str = "refrain-sandbox-";
/// Of a bound of CPU time, in microseconds.
const PERIOD: u64 = 100_000;
/// How much of the machine's memory a sandbox gets, in percent.
const MEMORY_SHARE: u64 = 80;

/// A new cgroup, removed with this value. What a killed process left is removed by the next one.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: Utf8PathBuf,
    processes: File,
}

impl Cgroup {
    pub(crate) fn new(bounds: &Bounds, processes: u32) -> io::Result<Self> {
        let of_this_process = fs::read_to_string("/proc/self/cgroup")?;
        let own = of_this_process.lines().find_map(|line| line.strip_prefix("0::"));
        let is_mount = |mount: &&str| Utf8Path::new(mount).join("cgroup.controllers").is_file();
        match (MOUNTS.iter().copied().find(is_mount), own) {
            (Some(mount), Some(own)) => Self::new_in(mount.into(), own, bounds, processes),
            (None, _) | (_, None) => Err(io::Error::other("there is no cgroup v2")),
        }
    }

    /// In the nearest cgroup around the own one that gives its children what is needed, and that this user may write.
    fn new_in(mount: &Utf8Path, own: &str, bounds: &Bounds, processes: u32) -> io::Result<Self> {
        let mut result = Err(io::Error::other("no cgroup is delegated"));
        for around in Utf8Path::new(own.trim_start_matches('/')).ancestors() {
            result = Self::below(&mount.join(around), bounds, processes);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn below(around: &Utf8Path, bounds: &Bounds, processes: u32) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let memory = bounds.memory.map(|bytes| ("memory", "memory.max", bytes.to_string()));
        let quota = bounds.cpus.map(|cpus| format!("{} {PERIOD}", u64::from(cpus) * PERIOD));
        let limits: Vec<_> = memory.into_iter().chain(quota.map(|text| ("cpu", "cpu.max", text))).collect();
        let given = fs::read_to_string(around.join("cgroup.subtree_control"))?;
        if let Some((missing, ..)) =
            limits.iter().find(|(name, ..)| !given.split_whitespace().any(|it| it == *name))
        {
            return Err(io::Error::other(format!("no cgroup with the controller {missing} is delegated")));
        }
        // Who moves a process writes here too.
        access(around.join("cgroup.procs").as_str(), Access::WRITE_OK)?;
        remove_left(around);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = around.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let made =
            limits.iter().try_for_each(|(_, file, text)| write(&folder.join(file), text)).and_then(|()| {
                // As far as there is any: without the first, memory could be swapped out; of processes there are other limits too.
                let _ = write(&folder.join("memory.swap.max"), "0");
                let _ = write(&folder.join("pids.max"), &processes.to_string());
                OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("cgroup.procs"))
            });
        match made {
            Ok(processes) => Ok(Self { folder, processes }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// Moves a process, and all that it will start.
    pub(crate) fn add(&self, process: u32) -> io::Result<()> {
        (&self.processes).write_all(process.to_string().as_bytes())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It is empty, as process 1 is gone.
        let _ = fs::remove_dir(&self.folder);
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the kernel: nothing has to survive a crash")]
fn write(path: &Utf8Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Removes the cgroups of processes that are gone. The kernel removes none that has processes.
fn remove_left(around: &Utf8Path) {
    for entry in around.read_dir_utf8().into_iter().flatten().flatten() {
        let rest = entry.file_name().strip_prefix(PREFIX);
        let process = rest.and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Utf8Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The bounds that this machine holds: those that are given, or else most of its memory; none if it holds none.
#[must_use]
pub fn held_bounds(given: &Bounds) -> Bounds {
    let bounds = if given.is_none() {
        Bounds { memory: memory_of_machine().map(|bytes| bytes / 100 * MEMORY_SHARE), ..*given }
    } else {
        *given
    };
    let is_held = !bounds.is_none() && Cgroup::new(&bounds, SandboxSpec::PROCESSES).is_ok();
    if is_held { bounds } else { Bounds::default() }
}

/// In bytes.
fn memory_of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { memory: Some(1 << 30), cpus: Some(2), is_required: true };

    /// A tree of folders instead of the kernel's: files in it can be created.
    fn tree(rows: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, controllers) in rows {
            let folder = Utf8Path::from_path(dir.path()).unwrap().join(path);
            fs::create_dir_all(&folder).unwrap();
            write(&folder.join("cgroup.procs"), "").unwrap();
            write(&folder.join("cgroup.subtree_control"), controllers).unwrap();
        }
        dir
    }

    #[test]
    fn the_nearest_cgroup_with_the_controllers_gets_a_child() {
        let dir = tree(&[("", "cpu memory"), ("app", "cpu memory pids"), ("app/a", "pids"), ("app/a/b", "")]);
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let left = root.join("app").join(format!("{PREFIX}4999999-0"));
        fs::create_dir(&left).unwrap();
        let cgroup = Cgroup::new_in(root, "/app/a/b", &BOUNDS, 400).unwrap();
        assert_eq!(cgroup.folder.parent(), Some(&*root.join("app")));
        cgroup.add(17).unwrap();
        for (name, text) in [
            ("memory.max", "1073741824"),
            ("cpu.max", "200000 100000"),
            ("pids.max", "400"),
            ("cgroup.procs", "17"),
        ] {
            assert_eq!(fs::read_to_string(cgroup.folder.join(name)).unwrap(), text, "{name}");
        }
        assert!(!left.exists(), "what a killed process left is removed");
    }

    /// Nothing is checked where this user can make no cgroup.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to be moved")]
    fn a_process_is_moved_and_its_cgroup_goes_with_it() {
        let Ok(cgroup) = Cgroup::new(&Bounds::default(), 400) else { return };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        cgroup.add(child.id()).unwrap();
        let its = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        assert!(its.contains(cgroup.folder.file_name().unwrap()), "{its}");
        child.kill().unwrap();
        child.wait().unwrap();
        let folder = cgroup.folder.clone();
        drop(cgroup);
        assert!(!folder.exists());
    }

    #[test]
    fn without_a_delegated_controller_there_is_none() {
        let dir = tree(&[("", "cpu"), ("app", "cpu pids")]);
        let error = Cgroup::new_in(dir.path().try_into().unwrap(), "/app", &BOUNDS, 400).unwrap_err();
        assert_eq!(error.to_string(), "no cgroup with the controller memory is delegated");
    }
}
