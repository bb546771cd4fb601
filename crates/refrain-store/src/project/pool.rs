//! The worktrees that the tasks of plans work in: which number belongs to which task, as long as it is used; which are
//! *held*, because something of value lies in them that only a person can take away; how large they are, and how long
//! unused. They are numbered from 1 for each project, in the user's state home, and used again and again, for the
//! caches in them. What lies in one is asked of git (`refrain-git`, `pool`).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use refrain_core::Spec;
use refrain_files::{IfThere, read_regular};

use crate::disk::atomic::{make_dir, write_atomic};
use crate::disk::numbered_folders::{self, lock, lock_file, numbers};
use crate::project::layout::{POOL, Project};
use crate::{DiskError, OnPath};

const MOST: u32 = 400;
/// How much of the file is read that says where the repository of a worktree is.
const LONGEST_LINK: u64 = 8 << 10;

/// A number of the pool, had for as long as the value lives.
#[derive(Debug)]
pub struct Slot {
    home: Utf8PathBuf,
    number: u32,
    name: String,
    lock: File,
}

impl Slot {
    /// The first that is free and not held. A task without a sandbox gets none in which a task worked in one: what git
    /// ignores stays there, and would be run.
    pub fn take(project: &Project, state_home: &Utf8Path, is_sandboxed: bool) -> Result<Self, DiskError> {
        let home = project.pool(state_home);
        numbered_folders::make_home(&home, project)?;
        for number in 1..=MOST {
            if held(&home, number).is_empty()
                && (is_sandboxed || !sandbox_file(&home, number).exists())
                && let Some(slot) = Self::try_take(&home, project, number)?
            {
                return Ok(slot);
            }
        }
        Err(ErrorKind::QuotaExceeded).on("find a free number in", &home)
    }

    /// This very one, held or not; none if another process has it. So a resumed plan finds a task where it was.
    pub fn take_number(
        project: &Project,
        state_home: &Utf8Path,
        number: u32,
    ) -> Result<Option<Self>, DiskError> {
        let home = project.pool(state_home);
        numbered_folders::make_home(&home, project)?;
        Self::try_take(&home, project, number)
    }

    fn try_take(home: &Utf8Path, project: &Project, number: u32) -> Result<Option<Self>, DiskError> {
        let Some(lock) = lock(home, number)? else { return Ok(None) };
        let name = project.root.file_name().unwrap_or("project").to_owned();
        let slot = Self { home: home.to_owned(), number, name, lock };
        make_dir(&slot.dir())?;
        Ok(Some(slot))
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// The worktree, whether it is there yet or not. It is called as the project is, as some tools name things after
    /// it.
    pub fn folder(&self) -> Utf8PathBuf {
        self.dir().join(&self.name)
    }

    /// A folder around it for its own data, where no program that runs in it looks.
    pub fn dir(&self) -> Utf8PathBuf {
        self.home.join(self.number.to_string())
    }

    /// Has all others skip it from now on, unless they ask for this very one, for these reasons.
    pub fn hold(&self, reasons: &[String]) -> Result<(), DiskError> {
        write_atomic(&held_file(&self.home, self.number), reasons.join("\n").as_bytes())
    }

    /// Gives it back to all tasks: what it was held for is gone.
    pub fn give_back(&self) -> Result<(), DiskError> {
        remove_file(&held_file(&self.home, self.number))
    }

    /// Notes the specification of a loop that is about to work in it in a sandbox.
    pub fn note_sandbox(&self, spec: &Spec) -> Result<(), DiskError> {
        let path = sandbox_file(&self.home, self.number);
        let text = serde_json::to_vec(spec).map_err(io::Error::other).on("write", &path)?;
        write_atomic(&path, &text)
    }

    /// Nothing of a sandbox is left in it.
    pub fn forget_sandbox(&self) -> Result<(), DiskError> {
        remove_file(&sandbox_file(&self.home, self.number))
    }

    /// Removes what is left of its folder once git has removed the worktree in it.
    pub fn remove(self) -> Result<(), DiskError> {
        let dir = self.dir();
        fs::remove_dir_all(&dir).on("remove", &dir)?;
        self.forget_sandbox()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // It says only which of two was unused for longer.
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        let _ = rustix::fs::futimens(&self.lock, &times);
    }
}

/// One number of a pool, as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    pub number: u32,
    pub dir: Utf8PathBuf,
    /// Whether it is in use. The check itself takes the lock for an instant.
    pub is_taken: bool,
    /// Why it is passed over; nothing if it is not.
    pub held: Vec<String>,
    /// When it was last let go, or taken.
    pub last_used: Option<SystemTime>,
}

/// All numbers of a project's pool, from the least.
#[must_use]
pub fn found(project: &Project, state_home: &Utf8Path) -> Vec<SlotEntry> {
    let home = project.pool(state_home);
    let look = |number| SlotEntry {
        number,
        dir: home.join(u32::to_string(&number)),
        is_taken: matches!(
            File::open(lock_file(&home, number)).map(|file| file.try_lock_shared()),
            Ok(Err(_))
        ),
        held: held(&home, number),
        last_used: lock_file(&home, number).metadata().and_then(|meta| meta.modified()).ok(),
    };
    numbers(&home).into_iter().map(look).collect()
}

/// The pools of projects that are not there any more, each with the project's folder.
pub fn orphaned(state_home: &Utf8Path) -> Vec<(Utf8PathBuf, Utf8PathBuf)> {
    numbered_folders::orphaned(&state_home.join("worktrees"), POOL)
}

/// The worktrees of loops whose repository is gone or was moved, each with the folder that it was in. What no commit has is only
/// there, and git can no longer say what that is.
pub fn worktrees_without_repository(state_home: &Utf8Path) -> Vec<(Utf8PathBuf, Utf8PathBuf)> {
    let folders = |dir: &Utf8Path| -> Vec<Utf8PathBuf> {
        let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
        let is_folder = |entry: &Utf8DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.filter(is_folder).map(Utf8DirEntry::into_path).collect()
    };
    let root_of = |worktree: &Utf8Path| {
        let link = String::from_utf8(read_regular(&worktree.join(".git"), LONGEST_LINK).ok()?).ok()?;
        let own = Utf8PathBuf::from(link.trim_end().strip_prefix("gitdir: ")?);
        let root = own.ancestors().nth(3)?.to_owned();
        let project = Project { root: root.clone(), worktree: root.clone(), data: root.clone() };
        // An agent can write the link.
        let is_its = worktree.parent()?.file_name()? == project.own_name();
        (is_its && matches!(own.try_exists(), Ok(false)) && matches!(root.try_exists(), Ok(false)))
            .then_some(root)
    };
    let all = folders(&state_home.join("worktrees")).into_iter().flat_map(|project| folders(&project));
    all.filter_map(|worktree| Some((root_of(&worktree)?, worktree))).map(|(root, it)| (it, root)).collect()
}

/// Removes a pool of a project that is gone: not while a worktree of it is used, or held.
pub fn remove_all(home: &Utf8Path) -> Result<(), DiskError> {
    if let Some(number) = held_number(home) {
        return Err(ErrorKind::ResourceBusy).on("remove, as it is held,", &home.join(number.to_string()));
    }
    numbered_folders::remove_all(home)
}

/// The first number of a pool that is held.
pub fn held_number(home: &Utf8Path) -> Option<u32> {
    numbers(home).into_iter().find(|number| !held(home, *number).is_empty())
}

/// The size of a folder, in bytes, and whether that is all of it: at most `most` files and folders are counted. A file
/// with several links in it counts once, and other disks do not count.
pub fn size(folder: &Utf8Path, most: usize) -> (u64, bool) {
    let (mut bytes, mut left, mut linked) = (0, most, BTreeSet::new());
    let Ok(top) = fs::symlink_metadata(folder) else { return (0, true) };
    let mut folders = vec![folder.as_std_path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of a link, the link.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.dev() != top.dev() || (meta.nlink() > 1 && meta.is_file() && !linked.insert(meta.ino())) {
                continue;
            }
            if left == 0 {
                return (bytes, false);
            }
            left -= 1;
            bytes += meta.blocks() * 512;
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    (bytes, true)
}

/// The specification of the last loop that worked in a sandbox in the worktree of this folder; none if there was none.
pub fn sandboxed_by(dir: &Utf8Path) -> Result<Option<Spec>, DiskError> {
    let path = Utf8PathBuf::from(format!("{dir}.sandbox"));
    let Some(text) = fs::read(&path).if_there().on("read", &path)? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(io::Error::other).on("read", &path)
}

fn sandbox_file(home: &Utf8Path, number: u32) -> Utf8PathBuf {
    home.join(format!("{number}.sandbox"))
}

fn remove_file(path: &Utf8Path) -> Result<(), DiskError> {
    fs::remove_file(path).if_there().on("remove", path).map(drop)
}

fn held_file(home: &Utf8Path, number: u32) -> Utf8PathBuf {
    home.join(format!("{number}.held"))
}

fn held(home: &Utf8Path, number: u32) -> Vec<String> {
    match fs::read_to_string(held_file(home, number)) {
        Ok(reasons) if reasons.trim().is_empty() => vec!["no reason is recorded".to_owned()],
        Ok(reasons) => reasons.lines().map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        _dir: tempfile::TempDir,
        project: Project,
        state: Utf8PathBuf,
    }

    impl Home {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            let app = root.join("app");
            fs::create_dir(&app).unwrap();
            let project = Project { root: app.clone(), worktree: app, data: root.join("data") };
            Self { _dir: dir, project, state: root.join("state") }
        }

        fn take(&self) -> Slot {
            Slot::take(&self.project, &self.state, false).unwrap()
        }

        fn take_number(&self, number: u32) -> Option<Slot> {
            Slot::take_number(&self.project, &self.state, number).unwrap()
        }

        fn found(&self) -> Vec<SlotEntry> {
            found(&self.project, &self.state)
        }
    }

    #[test]
    fn a_slot_number_belongs_to_one_task_until_released() {
        let home = Home::new();
        let (first, second) = (home.take(), home.take());
        assert_eq!((first.number(), second.number()), (1, 2));
        assert!(first.folder().ends_with("_pool/1/app") && first.folder().starts_with(&home.state));
        assert!(home.take_number(2).is_none());
        assert_eq!(home.found().iter().map(|slot| slot.is_taken).collect::<Vec<_>>(), [true, true]);
        drop(first);
        assert_eq!(home.take_number(2).map(|slot| slot.number()), None);
        assert_eq!(home.take().number(), 1, "used again");
        drop(second);
        assert_eq!(home.take_number(2).unwrap().number(), 2);
        assert_eq!(home.take_number(7).unwrap().number(), 7, "also one that was removed meanwhile");
    }

    #[test]
    fn a_slot_used_in_a_sandbox_is_skipped_without_one() {
        let home = Home::new();
        let spec = {
            use refrain_core::spec::{AgentKind, AgentSpec};
            let agent = AgentSpec::new(AgentKind::Generic, "agent");
            Spec::new("a".parse().unwrap(), agent, "Mend it.", Utf8PathBuf::from("/project"))
        };
        let dir = home.take().dir();
        assert_eq!(sandboxed_by(&dir).unwrap(), None);
        home.take().note_sandbox(&spec).unwrap();
        assert_eq!(sandboxed_by(&dir).unwrap(), Some(spec));
        assert_eq!(home.take().number(), 2);
        assert_eq!(Slot::take(&home.project, &home.state, true).unwrap().number(), 1);
        home.take_number(1).unwrap().forget_sandbox().unwrap();
        assert_eq!(home.take().number(), 1);
    }

    #[test]
    fn a_held_slot_is_skipped_and_reported() {
        let home = Home::new();
        let reasons = ["nested is a repository of its own".to_owned(), ".env looks like a secret".to_owned()];
        home.take().hold(&reasons).unwrap();
        assert_eq!(home.take().number(), 2);
        assert_eq!(home.found()[0].held, reasons);
        let held = home.take_number(1).unwrap();
        held.give_back().unwrap();
        held.give_back().unwrap();
        drop(held);
        assert_eq!((home.take().number(), home.found()[0].held.len()), (1, 0));
    }

    #[test]
    fn slots_of_a_deleted_project_are_removed_unless_used_or_held() {
        let home = Home::new();
        let slot = home.take();
        assert_eq!(orphaned(&home.state), []);
        fs::remove_dir(&home.project.root).unwrap();
        let pool = home.project.pool(&home.state);
        assert_eq!(orphaned(&home.state), [(pool.clone(), home.project.root.clone())]);
        assert!(remove_all(&pool).is_err(), "a task has it");
        slot.hold(&["it has a value".to_owned()]).unwrap();
        drop(slot);
        assert!(remove_all(&pool).is_err(), "it is held");
        home.take_number(1).unwrap().give_back().unwrap();
        remove_all(&pool).unwrap();
        assert!(!pool.exists());
    }

    #[test]
    fn sizes_are_measured_on_disk_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        assert_eq!(size(&root.join("missing"), 10), (0, true));
        for folder in ["a", "a/b"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        write_atomic(&root.join("a/b/file"), &[1; 100_000]).unwrap();
        fs::hard_link(root.join("a/b/file"), root.join("a/again")).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("a/link")).unwrap();
        let (bytes, is_all) = size(root, 100);
        assert!(is_all && (100_000..150_000).contains(&bytes), "{bytes}");
        assert!(!size(root, 2).1);
    }
}
