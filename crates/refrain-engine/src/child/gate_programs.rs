//! Checks the first program of gates before anything of a loop or plan is created. Which word of a command is that
//! program is decided in `refrain_core::protect`; here it is looked up.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::Spec;
use refrain_core::gate::{Check, GateSpec};
use refrain_core::git::Checkout;
use refrain_core::protect::first_program;
use refrain_core::text::nearest;
use refrain_git::Repository;
use refrain_proc::program::is_executable;
use refrain_proc::tool::Tool;

use crate::{EngineError, GateProgramError, GateProgramFault, Service};

use crate::git_steps::tool_pins;

impl Service {
    /// Refuses gates and critics of `spec` whose first program is not there, and gates that a shell cannot read.
    pub(crate) fn check_programs(
        &self,
        spec: &Spec,
        env: &[(OsString, OsString)],
        gates: &[GateSpec],
    ) -> Result<(), EngineError> {
        let of_gate = |gate: &GateSpec| {
            let program = match &gate.check {
                Check::Command(command) => first_program(command),
                Check::Review(review) => Some(review.agent.program.clone()),
            };
            Some((format!("gate {}", gate.name), program?))
        };
        let critic = spec.critique.as_ref().map(|it| ("the critic".to_owned(), it.critic.program.clone()));
        for gate in gates {
            let Check::Command(command) = &gate.check else { continue };
            if let Some(fault) = self.syntax_fault(command) {
                let (owner, program) = (format!("gate {}", gate.name), command.to_owned());
                return Err(GateProgramError { owner, program, fault, nearest: None }.into());
            }
        }
        let lookup = ProgramLookup { service: self, spec, env };
        for (owner, program) in gates.iter().filter_map(of_gate).chain(critic) {
            if let Some((fault, nearest)) = lookup.fault(&program) {
                return Err(GateProgramError { owner, program, fault, nearest }.into());
            }
        }
        Ok(())
    }

    /// Drops default gates of `spec` whose first program is not there; returns a line for each.
    pub fn drop_missing_gates(&self, spec: &mut Spec) -> Vec<String> {
        let env = environment::base(spec, self.host.env.iter().cloned());
        let mut lines = Vec::new();
        let lookup = ProgramLookup { service: self, spec, env: &env };
        let runs = |gate: &&GateSpec| {
            let Check::Command(command) = &gate.check else { return true };
            let Some(program) = first_program(command).filter(|_| gate.by_default && spec.gates_must_run)
            else {
                return true;
            };
            let Some((fault, nearest)) = lookup.fault(&program) else { return true };
            let owner = format!("gate {}", gate.name);
            lines.push(format!("{}; it is dropped", GateProgramError { owner, program, fault, nearest }));
            false
        };
        let kept: Vec<_> = spec.gates.iter().filter(runs).cloned().collect();
        spec.gates = kept;
        lines
    }

    /// The same for gates that a loop like `spec` does not have in this form: those that the project offers, or that
    /// tasks name.
    /// Errors: As above; none if a missing program is allowed.
    pub fn check_gates(&self, spec: &Spec, gates: &[GateSpec]) -> Result<(), EngineError> {
        let env = environment::base(spec, self.host.env.iter().cloned());
        if spec.gates_must_run { self.check_programs(spec, &env, gates) } else { Ok(()) }
    }

    /// What a shell that runs nothing says of a command that it cannot read.
    fn syntax_fault(&self, command: &str) -> Option<GateProgramFault> {
        let shell = Tool::new("sh", Path::new("/")).outside(&self.host.env, &self.project.folders());
        let read = shell.args(["-n", "-c", command]).run().ok()?;
        let said = String::from_utf8_lossy(&read.stderr);
        let said = said.lines().next().unwrap_or("syntax error").to_owned();
        (!read.status.success()).then_some(GateProgramFault::Syntax(said))
    }
}

struct ProgramLookup<'a> {
    service: &'a Service,
    spec: &'a Spec,
    env: &'a [(OsString, OsString)],
}

impl ProgramLookup<'_> {
    /// What is wrong with the program, and what was probably meant; none if it can be run.
    fn fault(&self, program: &str) -> Option<(GateProgramFault, Option<String>)> {
        if program.contains('/') { self.fault_of_path(program) } else { self.fault_of_name(program) }
    }

    fn fault_of_name(&self, name: &str) -> Option<(GateProgramFault, Option<String>)> {
        // Without a `PATH` every shell has its own.
        if !self.env.iter().any(|(key, _)| key == "PATH") {
            return None;
        }
        let folders = tool_pins::folders(self.spec, self.env);
        if tool_pins::in_folders(&folders, name).is_some() {
            return None;
        }
        let known: BTreeSet<String> = folders.iter().flat_map(|folder| executables(folder)).collect();
        let meant = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        Some((GateProgramFault::NotFound(name.to_owned()), meant))
    }

    fn fault_of_path(&self, program: &str) -> Option<(GateProgramFault, Option<String>)> {
        let path = self.spec.working_dir.join(program);
        match fs::metadata(&path) {
            Ok(meta) if is_executable(&meta) => None,
            Ok(meta) if meta.is_dir() => Some((GateProgramFault::Folder(program.to_owned()), None)),
            Ok(_) => Some((GateProgramFault::NotExecutable(program.to_owned()), None)),
            Err(_) if self.is_in_commit(&path) => None,
            Err(_) => {
                let known = path.parent().map(|folder| executables(folder.as_std_path())).unwrap_or_default();
                let file = path.file_name().unwrap_or_default();
                let meant = nearest(file, known.iter().map(String::as_str));
                let folder = &program[..program.len() - file.len().min(program.len())];
                let meant = meant.map(|name| format!("{folder}{name}"));
                Some((GateProgramFault::NoFile(program.to_owned()), meant))
            }
        }
    }

    /// Whether the worktree that the loop makes for itself has the file: it may begin at another commit.
    fn is_in_commit(&self, path: &Utf8Path) -> bool {
        let Checkout::Worktree { from, .. } = &self.spec.git.checkout else { return false };
        let project = &self.service.project.worktree;
        let Ok(inside) = plain(path).strip_prefix(project).map(ToOwned::to_owned) else { return false };
        let git_env = environment::of_git(self.spec, self.service.host.env.iter().cloned());
        Repository::open(project, &git_env).is_ok_and(|it| it.has_file(from, &inside).unwrap_or_default())
    }
}

/// The path without `.` and `..`, which git does not know.
fn plain(path: &Utf8Path) -> Utf8PathBuf {
    path.components().fold(Utf8PathBuf::new(), |mut plain, part| {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => _ = plain.pop(),
            Utf8Component::Prefix(_) | Utf8Component::RootDir | Utf8Component::Normal(_) => plain.push(part),
        }
        plain
    })
}

fn executables(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let programs = entries.filter(|entry| fs::metadata(entry.path()).is_ok_and(|it| is_executable(&it)));
    programs.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
