//! What agents read and write: `.refrain/<id>/` in the loop's worktree, hidden from git by a `.gitignore` of `*`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use camino::Utf8Path;
use refrain_core::Spec;
use refrain_core::state_file::{self, WorkStatus};
use rustix::fs::OFlags;

use crate::{DiskError, OnPath, write_atomic};

/// A state file larger than this is no state file, and is not read.
const LARGEST: u64 = 1 << 20;

/// The loop's files in its worktree, and how the state file looked when it was last read.
#[derive(Debug, Default)]
pub struct WorktreeFiles {
    seen: Option<(u64, i64, i64, u64)>,
    said: Option<WorkStatus>,
    /// The iteration that the state file names.
    iteration: u32,
    /// Whether there may be a `context.md`: at first nobody knows.
    has_context: Option<bool>,
}

impl WorktreeFiles {
    /// Writes what is missing, before every attempt, as agents clean up after themselves; what is there is not touched,
    /// but for the number of the iteration, a `done` that came to nothing, and a `blocked` that a person lets go on from or that
    /// was never said in this loop (`is_blocked` says that it holds): it is set back, so that it has to be said anew.
    /// `context.md` holds what failed, and is there only then.
    ///
    /// # Errors
    /// [`DiskError`] where the worktree cannot be written.
    pub fn prepare(
        &mut self,
        spec: &Spec,
        iteration: u32,
        context: Option<&str>,
        is_blocked: bool,
    ) -> Result<(), DiskError> {
        self.prepare_folder(spec, iteration, is_blocked)?;
        let path = spec.context_file();
        match context {
            Some(text) => write_atomic(&path, text.as_bytes())?,
            None if self.has_context == Some(false) => {}
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).on("remove", &path),
                _ => {}
            },
        }
        self.has_context = Some(context.is_some());
        Ok(())
    }

    fn prepare_folder(&mut self, spec: &Spec, iteration: u32, is_blocked: bool) -> Result<(), DiskError> {
        let path = spec.state_file();
        let ignore = spec.worktree.join(".refrain/.gitignore");
        let now = fs::metadata(&path).ok().map(|meta| stamp(&meta));
        let is_unchanged =
            now.is_some() && now == self.seen && self.said.is_none() && iteration == self.iteration;
        if is_unchanged && ignore.exists() {
            return Ok(());
        }
        let dir = spec.worktree_dir();
        for folder in [spec.worktree.join(".refrain"), dir.clone()] {
            own_folder(&folder)?;
        }
        if !ignore.exists() {
            write_atomic(&ignore, b"*\n")?;
        }
        if !path.exists() {
            write_atomic(&path, state_file::initial(&spec.id, iteration, &spec.prompt).as_bytes())?;
        }
        self.take_back(spec, is_blocked)?;
        number(&path, iteration)?;
        self.iteration = iteration;
        self.seen = fs::metadata(&path).ok().map(|meta| stamp(&meta));
        Ok(())
    }

    /// What the agent says of its work: `done` where it has said so since the last look, `blocked` where that stands there. A
    /// file that is gone or unreadable says nothing.
    pub fn says(&mut self, spec: &Spec) -> Option<WorkStatus> {
        let path = spec.state_file();
        let now = fs::metadata(&path).ok().map(|meta| stamp(&meta))?;
        let is_new = self.seen.replace(now) != Some(now);
        let status = read(&path).and_then(|text| state_file::status(&text, &spec.id));
        let said = status.filter(|status| match status {
            WorkStatus::InProgress => false,
            WorkStatus::Done => is_new,
            WorkStatus::Blocked => true,
        });
        self.said = said;
        said
    }

    fn take_back(&mut self, spec: &Spec, is_blocked: bool) -> Result<(), DiskError> {
        let path = spec.state_file();
        let text = read(&path).unwrap_or_default();
        let came_to_nothing = match state_file::status(&text, &spec.id) {
            Some(WorkStatus::Done) => true,
            Some(WorkStatus::Blocked) => !is_blocked,
            Some(WorkStatus::InProgress) | None => false,
        };
        if came_to_nothing && let Some(text) = state_file::with_status(&text, WorkStatus::InProgress) {
            write_atomic(&path, text.as_bytes())?;
        }
        self.said = None;
        Ok(())
    }
}

/// Has the state file name the iteration that is about to begin, where it names one. Most numbers are as long as the one
/// before: then nothing but its digits is written, and what the agent noted cannot be lost with them.
fn number(path: &Utf8Path, iteration: u32) -> Result<(), DiskError> {
    let text = read(path).unwrap_or_default();
    let Some(changed) = state_file::with_iteration(&text, iteration) else { return Ok(()) };
    if text.len() != changed.len() {
        return write_atomic(path, changed.as_bytes());
    }
    let differs = text.bytes().zip(changed.bytes()).position(|(a, b)| a != b);
    let end = text.bytes().zip(changed.bytes()).rposition(|(a, b)| a != b);
    let (Some(start), Some(end)) = (differs, end) else { return Ok(()) };
    // A link that the agent put there instead is not written through.
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file: File = match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(_) => return write_atomic(path, changed.as_bytes()),
    };
    file.write_all_at(&changed.as_bytes()[start..=end], start as u64).on("write", path)
}

/// What an agent says there that it needs, where it says that it is blocked.
#[must_use]
pub fn needs(spec: &Spec, said: Option<WorkStatus>) -> Option<String> {
    said.filter(|said| *said == WorkStatus::Blocked)?;
    state_file::needs(&read(&spec.state_file())?)
}

/// What the agent noted in `state.md`; none where there is no such file.
#[must_use]
pub fn notes(spec: &Spec) -> Option<String> {
    read(&spec.state_file())
}

/// Makes a folder that is Refrain's by its name. A file or a link that somebody put there instead is taken away: nothing
/// is ever written through it.
fn own_folder(folder: &Utf8Path) -> Result<(), DiskError> {
    match fs::symlink_metadata(folder) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(folder).on("take away", folder)?,
        Err(_) => {}
    }
    match fs::create_dir(folder) {
        // Another loop in this worktree was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made.on("create", folder),
    }
}

/// A file that looks the same was not written since: same inode, same time, same length.
fn stamp(meta: &Metadata) -> (u64, i64, i64, u64) {
    (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len())
}

/// Regular files only: an agent may have put anything there, a FIFO too, and reading must not hang.
fn read(path: &Utf8Path) -> Option<String> {
    let meta = fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= LARGEST)?;
    let mut text = String::with_capacity(usize::try_from(meta.len()).ok()?);
    fs::File::open(path).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}
