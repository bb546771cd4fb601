//! The folders that a tool may write, held by Landlock: a file that it writes can be replaced by a link at any moment, by an
//! agent that writes the same folders.

use std::io;
use std::path::Path;
use std::thread;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError,
};

/// Earlier ones hold neither a move between folders nor a file that is cut off. A sandbox requires it, too.
const NEEDED: ABI = ABI::V3;

/// Starts a process that may write these folders and `/dev/null` alone, where the kernel can hold it to that.
pub(super) fn start_within<T: Send>(
    folders: &[&Path],
    start: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    // What a thread may do holds for its children, and for no other thread.
    let limited = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || {
            restrict(folders)?;
            start()
        })?;
        thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    });
    limited
}

fn restrict(folders: &[&Path]) -> io::Result<()> {
    // On a kernel without it there is no agent in a sandbox from which it would protect.
    let Ok(mut ruleset) = ruleset() else { return Ok(()) };
    for folder in folders.iter().copied().chain([Path::new("/dev/null")]) {
        let Ok(opened) = PathFd::new(folder) else { continue };
        let accesses = if folder.is_dir() { written() } else { AccessFs::WriteFile | AccessFs::Truncate };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, accesses)).map_err(io::Error::other)?;
    }
    ruleset.restrict_self().map(drop).map_err(io::Error::other)
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(written())?.create()
}

fn written() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEEDED)
}
