//! Finding a program. Nothing here starts it.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The path of a program with this name in this environment's `PATH`.
pub fn in_path(program: impl AsRef<OsStr>, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    path.into_iter()
        .flat_map(std::env::split_paths)
        .map(|dir| dir.join(program.as_ref()))
        .find(|path| path.metadata().is_ok_and(|meta| is_executable(&meta)))
}

pub fn is_executable(meta: &Metadata) -> bool {
    meta.is_file() && meta.permissions().mode() & 0o111 != 0
}
