//! Finding a program. Nothing here starts it.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use camino::Utf8Path;

/// The path of a program with this name in this environment's `PATH`.
pub fn in_path(program: impl AsRef<OsStr>, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    path.into_iter()
        .flat_map(std::env::split_paths)
        .map(|dir| dir.join(program.as_ref()))
        .find(|path| path.metadata().is_ok_and(|meta| is_executable(&meta)))
}

/// The same outside of `dirs`, which an agent can write to, and of relative folders in `PATH`.
pub fn in_path_outside(
    program: impl AsRef<OsStr>,
    env: &[(OsString, OsString)],
    dirs: &[&Utf8Path],
) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|meta| is_executable(&meta)) && !is_within(path, dirs);
    folders_outside(env, dirs).0.into_iter().map(|folder| folder.join(program.as_ref())).find(is_program)
}

/// The absolute folders in the environment's `PATH` outside of `dirs`, and whether these are all.
pub fn folders_outside(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> (Vec<PathBuf>, bool) {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let all: Vec<PathBuf> = path.into_iter().flat_map(std::env::split_paths).collect();
    let many = all.len();
    let is_outside = |folder: &PathBuf| folder.is_absolute() && !is_within(folder, dirs);
    let outside: Vec<PathBuf> = all.into_iter().filter(is_outside).collect();
    let is_all = outside.len() == many;
    (outside, is_all)
}

fn is_within(path: &Path, dirs: &[&Utf8Path]) -> bool {
    let real = path.canonicalize().unwrap_or_default();
    let has = |dir: &Path| path.starts_with(dir) || real.starts_with(dir);
    dirs.iter().any(|dir| has(dir.as_std_path()) || dir.canonicalize().is_ok_and(|dir| has(&dir)))
}

/// The environment with only the folders in `PATH` that [`in_path_outside`] searches: a script finds its interpreter there.
pub fn env_outside(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> Vec<(OsString, OsString)> {
    let folders = folders_outside(env, dirs).0;
    // A folder that was in PATH has no colon.
    let path = std::env::join_paths(folders).unwrap_or_default();
    let others = env.iter().filter(|(name, _)| name != "PATH").cloned();
    others.chain([("PATH".into(), path)]).collect()
}

pub fn is_executable(meta: &Metadata) -> bool {
    meta.is_file() && meta.permissions().mode() & 0o111 != 0
}
