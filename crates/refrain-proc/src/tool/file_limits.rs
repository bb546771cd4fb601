//! The files that a tool may write and run, held by Landlock. An agent that writes the same folders can replace a file by a link
//! at any moment, and add a program to a configuration.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictSelfError, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
};
use rustix::io::Errno;

/// Earlier ones hold neither a move between folders nor a file that is cut off. A sandbox requires it, too.
const NEEDED: ABI = ABI::V3;

/// The files that a tool may write, besides `/dev/null`, and run.
#[derive(Clone, Debug, Default)]
pub struct FileLimits {
    /// Folders.
    pub written: Vec<PathBuf>,
    /// Programs, and folders of programs; all programs, if there are none.
    pub run: Vec<PathBuf>,
}

impl FileLimits {
    /// Starts a process that is held to this, if the kernel can do so.
    pub(super) fn start<T: Send>(&self, start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        // The limits of a thread hold for its children, and for no other thread.
        thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, || {
                self.restrict()?;
                start()
            })?;
            thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
        })
    }

    fn restrict(&self) -> io::Result<()> {
        let write = AccessFs::from_write(NEEDED);
        let run = if self.run.is_empty() { BitFlags::EMPTY } else { AccessFs::Execute.into() };
        // A sandbox needs Landlock too: on a kernel without it there is none whose agent could do harm here.
        let Ok(ruleset) = ruleset(write | run) else { return Ok(()) };
        let written = self.written.iter().map(|path| (path.as_path(), write));
        let run = self.run.iter().map(|path| (path.as_path(), run));
        let null = (Path::new("/dev/null"), write & AccessFs::from_file(NEEDED));
        let mut rules = ruleset;
        for (path, accesses) in written.chain(run).chain([null]) {
            // A file that is not there can be neither written nor run.
            if let Ok(opened) = PathFd::new(path) {
                rules = rules.add_rule(PathBeneath::new(opened, accesses)).map_err(io::Error::other)?;
            }
        }
        match rules.restrict_self() {
            // In 16 sandboxes already: the outermost one may be of Refrain.
            Err(RulesetError::RestrictSelf(RestrictSelfError::RestrictSelfCall { source, .. }))
                if source.raw_os_error() == Some(Errno::TOOBIG.raw_os_error()) =>
            {
                Ok(())
            }
            done => done.map(drop).map_err(io::Error::other),
        }
    }
}

/// Whether this kernel can hold a process to limits.
#[cfg(test)]
pub(super) fn is_supported() -> bool {
    ruleset(AccessFs::Execute.into()).is_ok()
}

fn ruleset(accesses: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(accesses)?.create()
}

/// What the kernel runs for a program besides itself: its loader. None if that is not known: of a script, for example.
pub fn loader(program: &Path) -> Option<Option<PathBuf>> {
    // The header, and the table of segments behind it (elf(5)).
    let mut start = Vec::new();
    File::open(program).ok()?.take(16 << 10).read_to_end(&mut start).ok()?;
    let number = |at: usize, size: usize| {
        let bytes = start.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    const OF_64_BITS_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";
    const LOADER: usize = 3;
    if !start.starts_with(OF_64_BITS_LITTLE_ENDIAN) {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for segment in (0..count).map(|at| table + at * size) {
        if number(segment, 4)? == LOADER {
            let (at, length) = (number(segment + 8, 8)?, number(segment + 32, 8)?);
            let path = start.get(at..at.checked_add(length)?)?.strip_suffix(b"\0")?;
            return Some(Some(PathBuf::from(str::from_utf8(path).ok()?)));
        }
    }
    Some(None)
}
