//! One task file: read as a whole, changed under a lock that every Refrain process takes, and replaced only if no other
//! program, which does not know that lock, changed it meanwhile.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::plan::TaskId;
use refrain_core::plan::file::{self, Change, EditedTasks, FileError, NewTask, Shape, Tasks};
use refrain_files::OFlags;

use super::TasksError;
use crate::disk::atomic::{remove_unfinished, replace_atomic};
use crate::{DiskError, OnPath, Project, make_dir_nofollow};

/// The longest task file, in bytes: a hundred times what ten thousand tasks take.
const LONGEST: u64 = 64 << 20;
/// How often a change is tried while others change the file.
const TRIES: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFile {
    /// Without links: one that is there later was made by an agent.
    pub path: Utf8PathBuf,
    pub shape: Shape,
    pub tag: String,
    /// Where it is locked: out of the work tree, in which a lock file would show.
    locks: Utf8PathBuf,
}

/// By what it is seen whether a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Clone, Debug)]
pub struct TasksRead {
    pub tasks: Tasks,
    pub stamp: Stamp,
}

#[derive(Clone, Debug)]
pub struct TasksWritten {
    pub stamp: Stamp,
    pub found: Stamp,
    /// Tasks that are not there any more.
    pub missing: Vec<TaskId>,
    /// Tasks that another program or a person set to another status, which they still have.
    pub left: Vec<TaskId>,
}

impl TaskFile {
    pub(super) fn new(project: &Project, path: Utf8PathBuf, shape: Shape, tag: String) -> Self {
        let path = path.canonicalize_utf8().unwrap_or(path);
        Self { path, shape, tag, locks: locks(project) }
    }

    /// The tasks of a tag in a file that was found before.
    /// Errors: [`TasksError`], also if a link is in the place of a part of its path.
    pub fn at(project: &Project, path: Utf8PathBuf, tag: String) -> Result<Self, TasksError> {
        let (text, _) = whole(&path)?;
        let name = path.file_name().unwrap_or_default();
        let malformed =
            |source: FileError| TasksError::Malformed { path: path.clone(), source: source.into() };
        let shape = Shape::of(name, &text).map_err(malformed)?;
        let shape = shape.ok_or_else(|| TasksError::Unfit { path: path.clone(), why: "holds no tasks" })?;
        Ok(Self { path, shape, tag, locks: locks(project) })
    }

    pub fn read(&self) -> Result<TasksRead, TasksError> {
        let (text, stamp) = whole(&self.path)?;
        let tasks = file::read(&text, self.shape, &self.tag).map_err(|source| self.malformed(source))?;
        Ok(TasksRead { tasks, stamp })
    }

    /// By what it is seen whether it was changed since it was read.
    pub fn stamp(&self) -> Result<Stamp, TasksError> {
        Stamp::at(&self.path)
    }

    /// Sets the statuses of tasks, except of those that others have set differently. All else stays as it is: what
    /// others changed since it was read is kept. After it returns, a power loss leaves the new file; before, the old
    /// one; never a mixture.
    /// Errors: [`TasksError`]; the file is then as it was.
    pub fn set(&self, changes: &[Change]) -> Result<TasksWritten, TasksError> {
        let set = |text: &str| {
            let EditedTasks { text, missing, left } = file::set(text, self.shape, &self.tag, changes)?;
            Ok((text, (missing, left)))
        };
        let (found, stamp, (missing, left)) = self.replace(set)?;
        Ok(TasksWritten { stamp, found, missing, left })
    }

    /// Adds a task at the end, as [`Self::set`] changes one.
    pub fn add(&self, task: &NewTask) -> Result<TaskId, TasksError> {
        let (_, _, id) = self.replace(|text| file::add(text, self.shape, &self.tag, task))?;
        Ok(id)
    }

    /// Replaces the text; the stamps are those of the old and of the new one.
    fn replace<T>(
        &self,
        change: impl Fn(&str) -> Result<(String, T), FileError>,
    ) -> Result<(Stamp, Stamp, T), TasksError> {
        let path = &self.path;
        let lock = self.lock()?;
        lock.lock().on("lock", &self.locks)?;
        remove_unfinished(path);
        for _ in 0..TRIES {
            let (text, stamp) = whole(path)?;
            let (new, result) = change(&text).map_err(|source| self.malformed(source))?;
            if new == text {
                return Ok((stamp, stamp, result));
            }
            let is_current = || fs::metadata(path).is_ok_and(|now| Stamp::of(&now) == stamp);
            if replace_atomic(path, new.as_bytes(), is_current)? {
                return Ok((stamp, self.stamp()?, result));
            }
        }
        Err(TasksError::Busy(path.clone()))
    }

    /// The lock of the file: held while it is changed, so waiting for it is short.
    fn lock(&self) -> Result<File, DiskError> {
        make_dir_nofollow(&self.locks)?;
        let name = blake3::hash(self.path.as_str().as_bytes()).to_hex();
        let path = self.locks.join(format!("{}.lock", &name[..16]));
        refrain_files::open(&path, OFlags::WRONLY | OFlags::CREATE).on("open", &path)
    }

    fn malformed(&self, source: FileError) -> TasksError {
        TasksError::Malformed { path: self.path.clone(), source: source.into() }
    }
}

impl Stamp {
    /// That of a file of which nothing else needs to be known.
    pub fn at(path: &Utf8Path) -> Result<Self, TasksError> {
        Ok(Self::of(&fs::metadata(path).on("look at", path)?))
    }

    fn of(file: &Metadata) -> Self {
        Self {
            file: (file.dev(), file.ino()),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// Where task files are locked.
fn locks(project: &Project) -> Utf8PathBuf {
    project.data.join("tasks")
}

/// The text of a file that could hold tasks, or lead to them. The user may have put a link there.
pub(super) fn text(path: &Utf8Path) -> Result<String, TasksError> {
    content(path, refrain_files::open_regular(path)).map(|(text, _)| text)
}

fn whole(path: &Utf8Path) -> Result<(String, Stamp), TasksError> {
    content(path, refrain_files::open(path, OFlags::RDONLY))
}

fn content(path: &Utf8Path, file: io::Result<File>) -> Result<(String, Stamp), TasksError> {
    let unfit = |why| TasksError::Unfit { path: path.to_owned(), why };
    let is_other = || fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    let file = match file {
        Err(_) if is_other() => return Err(unfit("is no regular file")),
        file => file.on("read", path)?,
    };
    let meta = file.metadata().on("look at", path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(LONGEST)).unwrap_or_default() + 1);
    file.take(LONGEST + 1).read_to_end(&mut bytes).on("read", path)?;
    if bytes.len() as u64 > LONGEST {
        return Err(unfit("is larger than 64 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unfit("is not UTF-8 text"))?;
    Ok((text, Stamp::of(&meta)))
}
