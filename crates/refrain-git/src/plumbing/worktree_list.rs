//! Linked worktrees, read from git's files (gitrepository-layout(5), `worktrees`): which exist, what is checked out
//! in them, and how one is created. Cases that the files do not show plainly are left to git.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;

use crate::plumbing::disk::{read, text};
use crate::plumbing::listed::Worktree;
use crate::plumbing::object::now;
use crate::repository::Repository;

/// How many worktrees may have the same name.
const MOST: u32 = 1000;

/// Settings with which git would create the repository's own files in another way.
const OTHERWISE: [&[u8]; 2] = [b"extensions", b"sharedrepository"];

impl Repository {
    /// The linked worktrees and their checked-out branches, read from the files; none if these are incomplete, as
    /// while one is being created.
    pub(crate) fn linked(&self) -> Option<Vec<Worktree>> {
        let Ok(all) = self.common_dir().join("worktrees").read_dir_utf8() else {
            let is_none = self.common_dir().join("worktrees").symlink_metadata().is_err();
            return is_none.then(Vec::new);
        };
        let look = |dir: &Utf8Path| {
            let file = text(&dir.join("gitdir")).ok()?;
            let path = dir.join(file.trim_end()).parent()?.to_owned();
            Some(Worktree { path, branch: head_of(dir)?, ..Worktree::default() })
        };
        all.map(|entry| look(entry.ok()?.path())).collect()
    }

    /// Creates a worktree without files in an empty folder, its head on a branch at a commit, as `git worktree add`
    /// would; returns whether it did. If not, nothing is left, and git has to do it.
    pub(crate) fn link(&self, path: &Utf8Path, branch: &str, at: &Oid) -> bool {
        let config = read(&self.common_dir().join("config")).unwrap_or_default().to_ascii_lowercase();
        let is_usual = !OTHERWISE.iter().any(|about| memchr::memmem::find(&config, about).is_some());
        let name = path.file_name().filter(|name| {
            let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            name.bytes().all(is_fine)
        });
        // Git removes its records of an earlier one.
        let (Some(name), true, None) = (name, is_usual, self.git_dir_of(path)) else { return false };
        let Ok(dir) = self.new_git_dir(name) else { return false };
        match fill(&dir, path, branch, at) {
            Ok(()) => true,
            Err(_) => {
                // Its own folder first: without that nothing refers to it.
                let _ = fs::remove_dir_all(&dir).and_then(|()| fs::remove_file(path.join(".git")));
                false
            }
        }
    }

    /// A new folder among those of the linked worktrees, with a name that is still free.
    fn new_git_dir(&self, name: &str) -> io::Result<Utf8PathBuf> {
        let all = self.common_dir().canonicalize_utf8()?.join("worktrees");
        DirBuilder::new().recursive(true).create(&all)?;
        for number in 0..MOST {
            let dir = all.join(if number == 0 { name.to_owned() } else { format!("{name}{number}") });
            match fs::create_dir(&dir) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| dir),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

/// Links a git folder and a worktree to each other. It need not survive a power loss: git's own files do not either.
fn fill(dir: &Utf8Path, path: &Utf8Path, branch: &str, at: &Oid) -> io::Result<()> {
    // Locked, so that `git worktree prune` does not remove an unfinished worktree.
    write(&dir.join("locked"), "initializing\n")?;
    DirBuilder::new().recursive(true).create(path)?;
    let dot_git = path.canonicalize_utf8()?.join(".git");
    write(&dir.join("gitdir"), &format!("{dot_git}\n"))?;
    write(&dir.join("commondir"), "../..\n")?;
    for folder in ["refs", "logs"] {
        fs::create_dir(dir.join(folder))?;
    }
    // Its last line preserves the head in case its branch is deleted.
    let (nothing, now) = ("0".repeat(at.as_str().len()), now());
    write(&dir.join("logs/HEAD"), &format!("{nothing} {at} refrain <> {now} +0000\tbegin a task\n"))?;
    write(&dot_git, &format!("gitdir: {dir}\n"))?;
    write(&dir.join("HEAD"), &format!("ref: refs/heads/{branch}\n"))?;
    fs::remove_file(dir.join("locked"))
}

/// Creates a file that does not exist.
fn write(path: &Utf8Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// The branch of the head in a git folder, none if it is detached; no answer if its file does not show that.
pub(crate) fn head_of(git_dir: &Utf8Path) -> Option<Option<String>> {
    let head = text(&git_dir.join("HEAD")).ok()?;
    let Some(name) = head.strip_prefix("ref: ") else { return Some(None) };
    // If references are not stored in files (reftable), git names an impossible branch there.
    let branch = name.trim_end().strip_prefix("refs/heads/").filter(|name| *name != ".invalid")?;
    Some(Some(branch.to_owned()))
}

/// Whether the git folder of a worktree contains git folders of submodules.
pub(crate) fn has_modules(git_dir: &Utf8Path) -> bool {
    fs::read_dir(git_dir.join("modules")).is_ok_and(|mut entries| entries.next().is_some())
}
