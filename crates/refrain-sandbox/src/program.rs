//! The last step: a process restricts itself, and starts or becomes the program.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};
use refrain_core::sandbox::Policy;
use refrain_proc::OWN_PROGRAM;
use rustix::fs::StatVfsMountFlags;
use rustix::process::{Resource, Rlimit, Signal, geteuid, getrlimit, setrlimit};

use crate::messages::{HELPER_VERB, NO_SANDBOX, Plan, complain};
use crate::{files, filter, system};

pub(crate) const WORD: &str = "program";

/// The program cannot be executed, and it is not found: as in a shell.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Starts the program of a plan in namespaces. This process restricts itself first: it starts nothing else, and what it
/// starts has the same restrictions.
pub(crate) fn start(plan: Plan, stdin: OwnedFd, writable: &[Utf8PathBuf]) -> io::Result<Result<Child, u8>> {
    let Some((program, args)) = plan.argv.split_first() else {
        return Err(io::Error::other("it has no program"));
    };
    std::env::set_current_dir(&plan.dir)?;
    limit(&plan.policy, writable)?;
    #[expect(clippy::disallowed_methods, reason = "it starts the program")]
    let child = Command::new(program).args(args).env_clear().envs(plan.env).stdin(Stdio::from(stdin)).spawn();
    Ok(child.map_err(|error| not_started(program, &error)))
}

/// Prints why the program was not started; returns the exit code.
fn not_started(program: &str, error: &io::Error) -> u8 {
    complain(&format_args!("{program}: {error}"));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

fn limit(policy: &Policy, writable: &[Utf8PathBuf]) -> io::Result<()> {
    system::close_others_on_exec()?;
    // Mounts that do not hold would be worse than none: nothing may run as if they did.
    if !rustix::fs::statvfs("/")?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(io::Error::other("its root is not read-only"));
    }
    limit_processes(u64::from(policy.processes))?;
    limit_cores()?;
    rustix::thread::set_no_new_privs(true)?;
    write_only(policy, writable).map_err(io::Error::other)?;
    filter::apply()
}

/// The kernel gives no core to the machine's handler of crashes, which runs outside as root, and writes none. With a limit of
/// zero the handler would still be started.
fn limit_cores() -> io::Result<()> {
    if getrlimit(Resource::Core).maximum.is_none_or(|most| most > 1) {
        setrlimit(Resource::Core, Rlimit { current: Some(1), maximum: Some(1) })?;
    }
    Ok(())
}

fn limit_processes(most: u64) -> io::Result<()> {
    let current = getrlimit(Resource::Nproc).current;
    if current.is_none_or(|current| current > most) {
        setrlimit(Resource::Nproc, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// The threads of this user, all of which the kernel counts where there is no namespace. It limits none of root's.
fn own_threads() -> u64 {
    let own = geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == own));
    let threads = processes.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    threads.map(|count| count as u64).sum()
}

/// Starts the binary once more, to become the program of a plan without namespaces: this process stays as it is, to put
/// back what the program changes.
pub(crate) fn start_with_files(plan: Plan, stdin: OwnedFd) -> io::Result<Child> {
    let policy = serde_json::to_string(&plan.policy).map_err(io::Error::other)?;
    #[expect(clippy::disallowed_methods, reason = "it starts itself")]
    Command::new(OWN_PROGRAM)
        .args([HELPER_VERB, WORD, &policy])
        .args(&plan.argv)
        .env_clear()
        .envs(plan.env)
        .current_dir(&plan.dir)
        .stdin(Stdio::from(stdin))
        .spawn()
}

pub(crate) fn run(policy: &str, argv: &[String]) -> u8 {
    let Some((program, args)) = argv.split_first() else { return NO_SANDBOX };
    let restricted = serde_json::from_str::<Policy>(policy).map_err(io::Error::other);
    if let Err(error) = restricted.and_then(|policy| limit_to_files(&policy)) {
        complain(&error);
        return NO_SANDBOX;
    }
    #[expect(clippy::disallowed_methods, reason = "it becomes the program")]
    let error = Command::new(program).args(args).exec();
    not_started(program, &error)
}

fn limit_to_files(policy: &Policy) -> io::Result<()> {
    system::close_others_on_exec()?;
    limit_processes(own_threads().saturating_add(u64::from(policy.processes)))?;
    limit_cores()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    system::give_up_capabilities()?;
    files::restrict(policy)?;
    filter::apply()
}

/// The second layer: the same list as the mounts, as far as this kernel has it.
fn write_only(policy: &Policy, writable: &[Utf8PathBuf]) -> Result<(), RulesetError> {
    let abi = ABI::V6;
    let writes = AccessFs::from_write(abi) & !AccessFs::IoctlDev;
    let mut ruleset = Ruleset::default().handle_access(writes)?.scope(Scope::from_all(abi))?.create()?;
    for path in writable {
        // A folder that is hidden in the sandbox cannot be opened, and needs no rule.
        let Ok(opened) = PathFd::new(path) else { continue };
        let mut accesses = if path.is_dir() { writes } else { writes & AccessFs::from_file(abi) };
        if !may_hold_sockets(policy, path) {
            accesses &= !AccessFs::MakeSock;
        }
        ruleset = ruleset.add_rule(PathBeneath::new(opened, accesses))?;
    }
    ruleset.restrict_self()?;
    Ok(())
}

/// Whether no process in another sandbox sees this written folder. In others two programs could meet at a socket, and one
/// hand the other a folder of its own that the other does not see, or may not write.
pub(crate) fn may_hold_sockets(policy: &Policy, folder: &Utf8Path) -> bool {
    let is_hidden_elsewhere = || policy.hide.iter().any(|hidden| folder.starts_with(hidden));
    policy.private.iter().chain(&policy.caches).any(|own| own == folder)
        || policy.temporary.as_deref() == Some(folder)
        || is_hidden_elsewhere()
}
