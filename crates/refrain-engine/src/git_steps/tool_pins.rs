//! Finds the programs of a loop's gates, and hashes them. Which of them are pinned, and which may differ from the
//! start, is decided in `refrain_core::protect`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::gate::{Check, GateSpec};
use refrain_core::protect::{Program, programs};
use refrain_proc::program::is_executable;

/// The programs that the gates look up, as they are found now in the `PATH` of `env`.
pub(crate) fn of_gates(spec: &Spec, env: &[(OsString, OsString)]) -> Vec<Program> {
    let folders = folders(spec, env);
    let of_gate = |gate: &GateSpec| match &gate.check {
        Check::Command(command) => programs(command),
        Check::Review(_) => Vec::new(),
    };
    let names: BTreeSet<String> = spec.gates.iter().flat_map(of_gate).collect();
    names.into_iter().map(|name| find(spec, &folders, name)).collect()
}

/// The same as gates find them that run in a clean checkout. Its files are named as if they were in the worktree.
pub(crate) fn in_checkout(spec: &Spec, folder: &Utf8Path, env: &[(OsString, OsString)]) -> Vec<Program> {
    let inside = spec.working_dir.strip_prefix(&spec.worktree).unwrap_or(Utf8Path::new(""));
    let there = Spec { worktree: folder.to_owned(), working_dir: folder.join(inside), ..spec.clone() };
    let mut found = of_gates(&there, env);
    for program in &mut found {
        let rest = program.path.as_deref().and_then(|path| Utf8Path::new(path).strip_prefix(folder).ok());
        if let Some(path) = rest.map(|rest| spec.worktree.join(rest).into_string()) {
            program.path = Some(path);
        }
    }
    found
}

/// The folders of `PATH`, as the gates of the loop see them.
pub(crate) fn folders(spec: &Spec, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let asked = spec.gate_env.variables.get("PATH").and_then(Option::as_ref);
    let found = || env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = asked.map(|path| path.expose().into()).or_else(found).unwrap_or_default();
    // A relative or empty entry is relative to the gate's own folder.
    std::env::split_paths(&path).map(|folder| spec.working_dir.as_std_path().join(folder)).collect()
}

pub(crate) fn in_folders(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| is_executable(&meta));
    folders.iter().map(|folder| folder.join(name)).find(is_program)
}

fn find(spec: &Spec, folders: &[PathBuf], name: String) -> Program {
    let Some(path) = in_folders(folders, &name) else {
        return Program { name, path: None, blake3: None };
    };
    // In the worktree by its own name, or by the target of a link.
    let is_work = is_inside(&path, spec) || fs::canonicalize(&path).is_ok_and(|real| is_inside(&real, spec));
    let blake3 = (!is_work).then(|| hash(&path).unwrap_or_default());
    Program { name, path: Some(path.to_string_lossy().into_owned()), blake3 }
}

/// Whether the path itself says that it is in the worktree.
pub(crate) fn is_inside(path: &Path, spec: &Spec) -> bool {
    let leads_out = |rest: &Path| rest.components().any(|part| part == Component::ParentDir);
    path.strip_prefix(&spec.worktree).is_ok_and(|rest| !leads_out(rest))
}

/// What a file holds; nothing if it cannot be read, as for a program that may only be run.
fn hash(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}
