//! The sandbox without namespaces: Landlock says which files are read and written. It has no rule that takes back a part of
//! a folder, so that all that lies beside what is hidden is allowed, one by one.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use camino::{Utf8Path, Utf8PathBuf};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use refrain_core::sandbox::Policy;
use refrain_proc::sweep::end_descendants;

use crate::messages::{Plan, complain};
use crate::program;
use crate::refusal::{At, Refusal, Step};

/// Without it a program could move files between folders, or cut them off.
const NEEDED: ABI = ABI::V3;
/// Devices that programs need, and folders of the same kind.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Starts the program of a plan, which restricts itself first.
pub(crate) fn start(plan: Plan, stdin: OwnedFd) -> Result<Child, Refusal> {
    ruleset().map_err(io::Error::other).at(Step::Landlock)?;
    check(&plan.policy).at(Step::Plan)?;
    // What the program leaves becomes a child of this process, and is ended.
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)).at(Step::Program)?;
    let dir = plan.dir.clone();
    program::start_with_files(plan, stdin).at_path(Step::Program, &dir)
}

/// Waits for the program, and ends what it left.
pub(crate) fn wait(mut program: Child, policy: &Policy) -> io::Result<ExitStatus> {
    let status = program.wait();
    end_descendants();
    if let Some(folder) = &policy.temporary
        && let Err(error) = std::fs::remove_dir_all(folder)
    {
        complain(&format_args!("{folder}: {error}"));
    }
    status
}

/// Refuses what Landlock could not hold: a hidden path in a folder that may be written.
fn check(policy: &Policy) -> io::Result<()> {
    for hidden in &policy.hide {
        let Ok(path) = hidden.canonicalize_utf8() else { continue };
        let real = |folder: &Utf8PathBuf| folder.canonicalize_utf8().unwrap_or_else(|_| folder.clone());
        if let Some(folder) = policy.write.iter().find(|folder| path.starts_with(real(folder))) {
            return Err(io::Error::other(format!("{hidden} cannot be hidden in {folder}, which is written")));
        }
    }
    Ok(())
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // Signals and abstract sockets, since Linux 6.12.
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

/// Restricts this process, and all that it starts.
pub(crate) fn restrict(policy: &Policy) -> io::Result<()> {
    let mut rules = Rules { ruleset: ruleset().map_err(io::Error::other)? };
    let all = AccessFs::from_all(NEEDED);
    let read = AccessFs::ReadFile | AccessFs::Execute;
    let written = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock);
    // The names of files are seen everywhere, so that a program can find its way.
    rules.add("/".into(), AccessFs::ReadDir.into())?;
    let hidden: Vec<Utf8PathBuf> = policy.hide.iter().cloned().chain(["/dev".into()]).collect();
    rules.add_beside("/".into(), &hidden, read)?;
    for path in &policy.show {
        rules.add(path, read)?;
    }
    for path in &policy.write {
        let has_sockets = program::may_hold_sockets(policy, path);
        rules.add(path, if has_sockets { written | AccessFs::MakeSock } else { written })?;
    }
    for path in DEVICES {
        rules.add(path.into(), written & !AccessFs::Execute)?;
    }
    let status = rules.ruleset.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::other("Landlock does not hold")),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

struct Rules {
    ruleset: RulesetCreated,
}

impl Rules {
    /// Allows what is at a path. What is not there, or cannot be opened, is nothing for the program either.
    fn add(&mut self, path: &Utf8Path, accesses: BitFlags<AccessFs>) -> io::Result<()> {
        let Ok(opened) = PathFd::new(path) else { return Ok(()) };
        let accesses = if path.is_dir() { accesses } else { accesses & AccessFs::from_file(NEEDED) };
        if !accesses.is_empty() {
            let rule = PathBeneath::new(opened, accesses);
            (&mut self.ruleset).add_rule(rule).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Allows what is in a folder, except for what is hidden.
    fn add_beside(
        &mut self,
        folder: &Utf8Path,
        hidden: &[Utf8PathBuf],
        accesses: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path();
            // A link is where it leads to.
            if hidden.iter().any(|hidden| hidden == path) || entry.file_type().is_ok_and(|it| it.is_symlink())
            {
                continue;
            }
            match hidden.iter().any(|hidden| hidden.starts_with(path)) {
                true => self.add_beside(path, hidden, accesses)?,
                false => self.add(path, accesses)?,
            }
        }
        Ok(())
    }
}
