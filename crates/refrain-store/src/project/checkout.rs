//! The folders that candidates are checked out to when they are to be proven elsewhere. They lie in the user's state
//! home, never inside a project, numbered from 1 for each project: a loop takes the first free one, so that it finds
//! the caches of the one before it at the same path. They hold no work.

use std::fs::{self, File};
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk::atomic::make_dir;
use crate::disk::numbered_folders::{self, lock, numbers};
use crate::project::layout::Project;
use crate::{DiskError, OnPath};

/// How many loops of one project may have one at a time.
const MOST: u32 = 200;

/// A folder for a loop to prove its candidates in, for as long as the value lives.
#[derive(Debug)]
pub struct CleanPlace {
    home: Utf8PathBuf,
    number: u32,
    name: String,
    _lock: File,
}

impl CleanPlace {
    /// The first folder of this project that no other loop has.
    pub fn take(project: &Project, state_home: &Utf8Path) -> Result<Self, DiskError> {
        let home = project.checkouts(state_home);
        numbered_folders::make_home(&home, project)?;
        for number in 1..=MOST {
            if let Some(lock) = lock(&home, number)? {
                let name = project.root.file_name().unwrap_or("project").to_owned();
                let place = Self { home, number, name, _lock: lock };
                make_dir(&place.dir())?;
                return Ok(place);
            }
        }
        Err(ErrorKind::QuotaExceeded).on("find a free number in", &home)
    }

    /// The folder. It is called as the project is, as some tools name things after it.
    pub fn folder(&self) -> Utf8PathBuf {
        self.dir().join("tree").join(&self.name)
    }

    /// Git's index of it: beside it, out of reach of the programs that run in it.
    pub fn index(&self) -> Utf8PathBuf {
        self.dir().join("index")
    }

    /// The list of files that gates before the first iteration left in it, beside it.
    pub fn kept(&self) -> Utf8PathBuf {
        self.dir().join("baseline")
    }

    /// Lets it go. The first stays as it is, for the caches in it; what further loops needed beside it at the same time
    /// goes, also what one of them left that was killed.
    pub fn leave(self) {
        let Self { home, number, .. } = &self;
        let beyond = numbers(home).into_iter().filter(|other| *other > 1);
        for other in beyond {
            let lock = if other == *number { None } else { lock(home, other).ok().flatten() };
            if lock.is_some() || other == *number {
                // Only room: what cannot be removed does no harm.
                let _ = fs::remove_dir_all(home.join(other.to_string()));
            }
        }
    }

    fn dir(&self) -> Utf8PathBuf {
        self.home.join(self.number.to_string())
    }
}

/// The folders of this project that no loop has.
pub fn unused(project: &Project, state_home: &Utf8Path) -> Vec<Utf8PathBuf> {
    let home = project.checkouts(state_home);
    let is_free = |number: &u32| matches!(lock(&home, *number), Ok(Some(_)));
    numbers(&home).into_iter().filter(is_free).map(|number| home.join(number.to_string())).collect()
}

/// Removes one of them; whether no loop has it.
pub fn remove(project: &Project, state_home: &Utf8Path, dir: &Utf8Path) -> Result<bool, DiskError> {
    let home = project.checkouts(state_home);
    let number = dir.strip_prefix(&home).ok().and_then(|name| name.as_str().parse().ok());
    let lock = match number {
        Some(number) => lock(&home, number)?,
        None => None,
    };
    if lock.is_some() {
        fs::remove_dir_all(dir).on("remove", dir)?;
    }
    Ok(lock.is_some())
}

/// Folders of projects that no longer exist, each with the project's; the first process to lock one may remove it.
pub fn orphaned(state_home: &Utf8Path) -> Vec<(Utf8PathBuf, Utf8PathBuf)> {
    numbered_folders::orphaned(&state_home.join("checkouts"), "")
}

/// Removes the folders of a project, but for those that a loop has.
pub fn remove_all(home: &Utf8Path) -> Result<(), DiskError> {
    numbered_folders::remove_all(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(root: &Utf8Path) -> Project {
        Project { root: root.join("app"), worktree: root.join("app"), data: root.join("data") }
    }

    #[test]
    fn the_first_stays_where_it_is_and_no_two_loops_have_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let (project, state) = (project(root), root.join("state"));
        let take = || CleanPlace::take(&project, &state).unwrap();
        let first = take();
        let folder = first.folder();
        assert!(folder.ends_with("1/tree/app") && folder.starts_with(&state), "{folder}");
        let (second, third) = (take(), take());
        for place in [&first, &second, &third] {
            fs::create_dir_all(place.folder()).unwrap();
        }
        let [of_second, of_third] = [&second, &third].map(CleanPlace::folder);
        drop(third);
        second.leave();
        assert!(!of_second.exists() && !of_third.exists(), "no loop has them any more");
        first.leave();
        assert!(folder.exists(), "its caches are for the next");
        assert_eq!(take().folder(), folder);
    }

    #[test]
    fn checkouts_of_a_deleted_project_are_found_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let (project, state) = (project(root), root.join("state"));
        fs::create_dir(&project.root).unwrap();
        let place = CleanPlace::take(&project, &state).unwrap();
        assert_eq!(orphaned(&state), []);
        fs::remove_dir(&project.root).unwrap();
        let home = project.checkouts(&state);
        assert_eq!(orphaned(&state), [(home.clone(), project.root.clone())]);
        assert!(remove_all(&home).is_err(), "a loop has it");
        fs::create_dir_all(place.folder()).unwrap();
        assert_eq!(unused(&project, &state), Vec::<Utf8PathBuf>::new());
        let dir = home.join("1");
        assert!(!remove(&project, &state, &dir).unwrap() && dir.is_dir());
        drop(place);
        assert_eq!(unused(&project, &state), std::slice::from_ref(&dir));
        assert!(remove(&project, &state, &dir).unwrap() && !dir.exists());
        remove_all(&home).unwrap();
        assert!(!home.exists());
    }
}
