//! The programs that replace the real ones on `PATH`, and the environment they read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::write;

/// Puts the programs into a folder. They are the same for all forges.
pub(super) fn install(folder: &Path) {
    for (name, text) in [
        ("gh", include_str!("program.sh")),
        ("glab", include_str!("program.sh")),
        ("ssh", include_str!("ssh.sh")),
    ] {
        executable(&folder.join(name), text);
    }
}

pub(super) fn executable(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
}
