//! The files that agents read and write: `.refrain/<id>/` in the loop's worktree, hidden from git by a `.gitignore` of
//! `*`.

use std::fs::Metadata;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};

use camino::Utf8PathBuf;
use refrain_core::Spec;
use refrain_core::event::AttemptFinished;
use refrain_core::prompt::state_file::{self, WorkStatus};
use refrain_files::{Folder, OFlags};

use crate::{DiskError, OnPath};

/// The names of the files in the loop's folder.
const STATE: &str = "state.md";
const CONTEXT: &str = "context.md";
/// The name of the file that hides the folder from git, in the folder above.
const IGNORE: &str = ".gitignore";

/// A state file larger than this is no state file, and is not read.
const LARGEST: u64 = 1 << 20;

/// The loop's files in its worktree, and how the state file looked when it was last read.
#[derive(Debug, Default)]
pub struct WorktreeFiles {
    seen: Option<(u64, i64, i64, u64)>,
    said: Option<WorkStatus>,
    iteration: u32,
    /// Whether there may be a `context.md`: unknown at first.
    has_context: Option<bool>,
}

impl WorktreeFiles {
    /// Writes what is missing, before every attempt, as agents clean up after themselves; what is there is not touched,
    /// but for the number of the iteration, a `done` that came to nothing, and a `blocked` that a person has lifted or
    /// that was never said in this loop (`is_blocked` says that it holds): it is set back, so that it has to be said
    /// anew. `context.md` holds what failed, and is there only then.
    pub fn prepare(
        &mut self,
        spec: &Spec,
        iteration: u32,
        context: Option<&str>,
        is_blocked: bool,
    ) -> Result<(), DiskError> {
        let folder = self.prepare_folder(spec, iteration, is_blocked)?;
        match context {
            Some(text) => folder.replace(CONTEXT, text.as_bytes()).on("write", &spec.context_file())?,
            None if self.has_context == Some(false) => {}
            None => folder.remove(CONTEXT).on("remove", &spec.context_file())?,
        }
        self.has_context = Some(context.is_some());
        Ok(())
    }

    fn prepare_folder(&mut self, spec: &Spec, iteration: u32, is_blocked: bool) -> Result<Folder, DiskError> {
        let path = spec.state_file();
        let shared = spec.worktree.join(".refrain");
        let shared = Folder::open_trusted(&spec.worktree)
            .and_then(|root| root.reclaim_or_make(".refrain"))
            .on("create", &shared)?;
        let folder = shared.reclaim_or_make(spec.id.as_str()).on("create", &spec.worktree_dir())?;
        let is_hidden = shared.file(IGNORE, OFlags::RDONLY).is_ok();
        let now = folder.file(STATE, OFlags::RDONLY).and_then(|file| file.metadata());
        let is_unchanged = now.as_ref().is_ok_and(|now| Some(stamp(now)) == self.seen)
            && self.said.is_none()
            && iteration == self.iteration;
        if is_unchanged && is_hidden {
            return Ok(folder);
        }
        if !is_hidden {
            shared.replace(IGNORE, b"*\n").on("write", &spec.worktree.join(".refrain/.gitignore"))?;
        }
        // Anything but a file is removed, except a folder, which may have something in it.
        let is_free =
            |error: &io::Error| error.kind() != ErrorKind::PermissionDenied && folder.remove(STATE).is_ok();
        if now.as_ref().is_err_and(is_free) {
            let text = state_file::initial(&spec.id, iteration, &spec.prompt);
            folder.replace(STATE, text.as_bytes()).on("write", &path)?;
        }
        self.take_back(&folder, spec, is_blocked)?;
        number(&folder, iteration).on("write", &path)?;
        self.iteration = iteration;
        let file = folder.file(STATE, OFlags::RDONLY);
        self.seen = file.and_then(|file| file.metadata()).ok().map(|meta| stamp(&meta));
        Ok(folder)
    }

    /// Adds what the agent left in the state file: `done` if it has written so since the last look, `blocked` if that is
    /// written, or why that does not count. A file that is gone or unreadable says nothing.
    pub fn read_into(&mut self, finished: &mut AttemptFinished, spec: &Spec) {
        let Some(folder) = opened(spec) else { return };
        let now = folder.file(STATE, OFlags::RDONLY).and_then(|file| file.metadata());
        let Ok(now) = now.map(|meta| stamp(&meta)) else { return };
        let is_new = self.seen.replace(now) != Some(now);
        let text = read(&folder).unwrap_or_default();
        let status = state_file::status(&text, &spec.id).filter(|status| match status {
            WorkStatus::InProgress => false,
            WorkStatus::Done => is_new,
            WorkStatus::Blocked => true,
        });
        self.said = status;
        finished.state = status;
        finished.needs =
            status.filter(|status| *status == WorkStatus::Blocked).and_then(|_| state_file::needs(&text));
        finished.state_fault = state_file::fault(&text, &spec.id);
    }

    fn take_back(&mut self, folder: &Folder, spec: &Spec, is_blocked: bool) -> Result<(), DiskError> {
        let text = read(folder).unwrap_or_default();
        let came_to_nothing = match state_file::status(&text, &spec.id) {
            Some(WorkStatus::Done) => true,
            Some(WorkStatus::Blocked) => !is_blocked,
            Some(WorkStatus::InProgress) | None => false,
        };
        if came_to_nothing && let Some(text) = state_file::with_status(&text, WorkStatus::InProgress) {
            folder.replace(STATE, text.as_bytes()).on("write", &spec.state_file())?;
        }
        self.said = None;
        Ok(())
    }
}

/// Has the state file name the iteration that is about to begin, if it names one. Most numbers are as long as the one
/// before: then nothing but its digits is written, and what the agent noted cannot be lost with them.
fn number(folder: &Folder, iteration: u32) -> io::Result<()> {
    let text = read(folder).unwrap_or_default();
    let Some(changed) = state_file::with_iteration(&text, iteration) else { return Ok(()) };
    if text.len() != changed.len() {
        return folder.replace(STATE, changed.as_bytes());
    }
    let differs = text.bytes().zip(changed.bytes()).position(|(a, b)| a != b);
    let end = text.bytes().zip(changed.bytes()).rposition(|(a, b)| a != b);
    let (Some(start), Some(end)) = (differs, end) else { return Ok(()) };
    let file = folder.file(STATE, OFlags::WRONLY);
    // A file that has another name would change there too.
    match file.and_then(|file| Ok((file.metadata()?.nlink() == 1).then_some(file))) {
        Ok(Some(file)) => file.write_all_at(&changed.as_bytes()[start..=end], start as u64),
        Ok(None) | Err(_) => folder.replace(STATE, changed.as_bytes()),
    }
}

/// What has the place of the folder of notes and is no folder, before a loop begins: it is not Refrain's to remove.
pub fn taken_place(spec: &Spec) -> Option<Utf8PathBuf> {
    let path = spec.worktree.join(".refrain");
    path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()).then_some(path)
}

/// What the agent noted in `state.md`; none if there is no such file.
pub fn notes(spec: &Spec) -> Option<String> {
    read(&opened(spec)?)
}

/// Writes what the agent noted, in a worktree that was made anew.
pub fn restore_notes(spec: &Spec, text: &[u8]) -> Result<(), DiskError> {
    let notes = || {
        let shared = Folder::open_trusted(&spec.worktree)?.reclaim_or_make(".refrain")?;
        shared.replace(IGNORE, b"*\n")?;
        shared.reclaim_or_make(spec.id.as_str())?.replace(STATE, text)
    };
    notes().on("write", &spec.state_file())
}

fn opened(spec: &Spec) -> Option<Folder> {
    Folder::open_trusted(&spec.worktree).ok()?.child(".refrain").ok()?.child(spec.id.as_str()).ok()
}

/// A file that looks the same was not written since: same inode, same time, same length.
fn stamp(meta: &Metadata) -> (u64, i64, i64, u64) {
    (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len())
}

/// Regular files only: an agent may have put anything there, a FIFO too, and reading must not hang.
fn read(folder: &Folder) -> Option<String> {
    let file = folder.file(STATE, OFlags::RDONLY).ok()?;
    let length = file.metadata().ok().map(|meta| meta.len()).filter(|length| *length <= LARGEST)?;
    let mut text = String::with_capacity(usize::try_from(length).ok()?);
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}
