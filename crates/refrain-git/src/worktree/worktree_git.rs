//! The only place where git makes, removes and lists worktrees. Git fails over a worktree that another git is making
//! or removing at that moment. Refrain therefore runs only one such git at a time, under a lock on the git folder,
//! and repeats a git that failed over a worktree of the user's or an agent's git. No hook and no checkout runs under
//! the lock, so it is short.

use std::collections::HashSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::git::Oid;
use refrain_core::text::printable;
use rustix::fs::Access;

use crate::candidate::integrity::{Checkout, LISTED, verify_checkout};
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::text;
use crate::plumbing::git::Git;
use crate::plumbing::git_files::named;
use crate::plumbing::worktree::{Worktree, parse, real};
use crate::repository::Repository;

/// Git's reason for the lock of a worktree while it makes that worktree.
const HALF_MADE: &str = "initializing";

/// The file in the git folder of a worktree that locks it (gitrepository-layout(5)).
const LOCKED: &str = "locked";

/// How often git is repeated. The other git needs only microseconds, and each git takes milliseconds to start.
const AGAIN: usize = 50;

/// The worktrees of a repository, while this is held: exclusively by a git that changes them, shared by those that
/// list them.
pub(crate) struct Worktrees<'a> {
    repository: &'a Repository,
    /// On the git folder itself, so that no lock file remains. None if the folder cannot be opened.
    _lock: Option<File>,
}

impl Repository {
    pub(crate) fn worktrees_to_change(&self) -> Worktrees<'_> {
        let lock = File::open(self.common_dir()).ok().filter(|lock| lock.lock().is_ok());
        Worktrees { repository: self, _lock: lock }
    }

    pub(crate) fn worktrees_to_list(&self) -> Worktrees<'_> {
        let lock = File::open(self.common_dir()).ok().filter(|lock| lock.lock_shared().is_ok());
        Worktrees { repository: self, _lock: lock }
    }

    /// Writes the files of a worktree that [`Worktrees::make`] made, unlocks it, and runs the hook as `git worktree
    /// add` does.
    pub(crate) fn check_out_new(&self, path: &Utf8Path, head: &Oid) -> Result<(), GitError> {
        let there = named(&path.join(".git")).map(|git_dir| self.beside(path, git_dir));
        let git = there.as_ref().unwrap_or(self).git().inside(path);
        git.output(["reset", "--hard", "--quiet", "--no-recurse-submodules"], &[])?;
        self.verify_new_files(git, (path, &[]), head)?;
        if let Some(locked) = named(&path.join(".git")).map(|dir| dir.join(LOCKED)) {
            fs::remove_file(&locked).on("remove", &locked)?;
        }
        let nothing = "0".repeat(head.as_str().len());
        let hook = ["hook", "run", "--ignore-missing", "post-checkout", "--", &nothing, head.as_str(), "1"];
        git.with_hooks().output(hook, &[]).map(drop)
    }

    /// Checks that the files which git has just written in a worktree are those of a commit. `before` is what
    /// [`LISTED`] printed before: the files of entries that are the same still were not written.
    pub(crate) fn verify_new_files(
        &self,
        git: Git<'_>,
        (folder, before): (&Utf8Path, &[u8]),
        commit: &Oid,
    ) -> Result<(), GitError> {
        let tree = self.tree_by(git, commit)?;
        let now = if before.is_empty() { Vec::new() } else { git.output(LISTED, &[])? };
        let records = |printed| HashSet::<&[u8]>::from_iter(<[u8]>::split(printed, |byte| *byte == 0));
        let (before, now) = (records(before), records(&now));
        let same = now.intersection(&before).filter_map(|record| {
            let tab = memchr::memchr(b'\t', record)?;
            Some(&record[tab + 1..])
        });
        let same: HashSet<&[u8]> = same.collect();
        let is_known = |path: &[u8]| same.contains(path);
        verify_checkout(git, Checkout { repository: self, tree: &tree, folder, is_known: &is_known })
    }
}

impl Worktrees<'_> {
    pub(crate) fn list(&self) -> Result<Vec<Worktree>, GitError> {
        let list = ["worktree", "list", "--porcelain", "-z"];
        Ok(parse(&past_half_made(|| self.repository.git().output(list, &[]))?))
    }

    pub(crate) fn at(&self, path: &Utf8Path) -> Result<Option<Worktree>, GitError> {
        let asked = real(path);
        Ok(self.list()?.into_iter().find(|listed| listed.path == asked || listed.path == path))
    }

    /// The folder of another worktree, not the one at `path`, that has the branch checked out.
    pub(crate) fn other_on(&self, branch: &str, path: &Utf8Path) -> Result<Option<Utf8PathBuf>, GitError> {
        let asked = real(path);
        let is_other = |listed: &Worktree| listed.path != asked && listed.path != path;
        let on_it = |listed: &Worktree| listed.branch.as_deref() == Some(branch) && is_other(listed);
        Ok(self.list()?.into_iter().find(on_it).map(|listed| listed.path))
    }

    /// Makes one without files with git; `how` are the arguments after `git worktree add`.
    pub(crate) fn add(&self, git: Git<'_>, how: &[&str]) -> Result<(), GitError> {
        let add = ["worktree", "add", "--quiet", "--no-checkout"];
        past_half_made(|| git.output(add.iter().chain(how), &[])).map(drop)
    }

    /// Makes one without files on a branch that is there. It stays locked as half made until
    /// [`Repository::check_out_new`] is through, so that the next call for the same path recognizes and removes it
    /// after a crash.
    pub(crate) fn make(&self, path: &Utf8Path, branch: &str, is_known: bool) -> Result<(), GitError> {
        // Forced only if git still lists the one at this path: git then also takes a branch that is in use elsewhere.
        let force: &[&str] = if is_known { &["--force"] } else { &[] };
        let how = [force, &["--lock", "--reason", HALF_MADE, path.as_str(), branch]].concat();
        self.add(self.repository.git(), &how)
    }

    /// Removes one with git; `how` are the arguments after `git worktree remove`. Git is not cancelled, because it
    /// would leave a worktree that looks as if files had been deleted. It runs no hook that could hang.
    /// Errors: [`GitError::Unremovable`], before anything is removed.
    pub(crate) fn remove(&self, how: &[&str]) -> Result<(), GitError> {
        let remove = ["worktree", "remove"];
        if let Some(path) = how.last() {
            make_removable(Utf8Path::new(path))?;
        }
        let git = self.repository.git().to_its_end();
        past_half_made(|| git.output(remove.iter().chain(how), &[])).map(drop)
    }

    /// Removes an unfinished worktree, in which no agent has worked.
    pub(crate) fn remove_half_made(&self, path: &Utf8Path) -> Result<(), GitError> {
        // If git made only the folder, it does not recognize it as its own. Only an empty one is removed.
        if !path.join(".git").exists() {
            let _ = fs::remove_dir(path);
        }
        self.remove_whatever(path)
    }

    /// Removes a worktree without a check: the caller has checked that nothing is lost.
    pub(crate) fn remove_whatever(&self, path: &Utf8Path) -> Result<(), GitError> {
        // Forced twice, because an unfinished one is locked.
        self.remove(&["--force", "--force", path.as_str()])
    }
}

/// Gives the user the rights that an agent took from folders. Git would remove a part of the files, and forget the worktree.
fn make_removable(worktree: &Utf8Path) -> Result<(), GitError> {
    const NEEDED: u32 = 0o700;
    let mut folders = vec![worktree.as_std_path().to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(meta) = folder.symlink_metadata() else { continue };
        // Git itself removes an empty folder.
        let is_empty = || fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none());
        let is_open =
            rustix::fs::access(&folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok();
        let lacks = meta.mode() & NEEDED != NEEDED;
        let is_opened =
            lacks && fs::set_permissions(&folder, Permissions::from_mode(meta.mode() | NEEDED)).is_ok();
        if !is_open && !is_opened && !is_empty() {
            return Err(GitError::Unremovable(printable(&folder.to_string_lossy()).into_owned()));
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

impl Worktree {
    /// Whether git was killed while it made this worktree for this branch.
    pub(crate) fn is_half_made(&self, branch: &str) -> bool {
        let is_its_own = self.branch.as_deref().is_none_or(|found| found == branch);
        is_its_own && self.locked.as_deref() == Some(HALF_MADE)
    }
}

/// Whether a worktree is unfinished, according to its files.
pub fn is_half_made(path: &Utf8Path) -> bool {
    let reason = named(&path.join(".git")).and_then(|dir| text(&dir.join(LOCKED)).ok());
    reason.is_some_and(|reason| reason.trim_end() == HALF_MADE)
}

/// Refuses a linked worktree of the project at `project` that no longer leads to its repository: its `.git` file is gone or
/// replaced, or the project was moved: then its git folder is not known.
pub fn check_link(
    worktree: &Utf8Path,
    project: &Utf8Path,
    common_dir: Option<&Utf8Path>,
) -> Result<(), GitError> {
    let link = worktree.join(".git");
    let target = text(&link).ok().and_then(|link| Some(link.strip_prefix("gitdir: ")?.trim_end().to_owned()));
    let (why, is_in_the_way) = match link.symlink_metadata() {
        Err(_) if !worktree.is_dir() => return Ok(()),
        Err(_) => ("its .git file is gone", false),
        Ok(kind) if kind.is_dir() => ("it is a repository of its own now", true),
        Ok(_) => match target {
            Some(target) if worktree.join(&target).join("HEAD").is_file() => return Ok(()),
            Some(_) if common_dir.is_none() => ("its project was moved", false),
            Some(_) => ("what its .git file names is gone", false),
            None => ("its .git file is another one", true),
        },
    };
    let word = |path: &str| shlex::try_quote(path).unwrap_or_default().into_owned();
    // A repository of the agent's own may have commits.
    let aside = if is_in_the_way {
        format!("mv {} {} && ", word(link.as_str()), word(&format!("{worktree}.git.aside")))
    } else {
        String::new()
    };
    let (folder, project) = (word(worktree.as_str()), word(project.as_str()));
    let records = common_dir.and_then(|dir| dir.join("worktrees").read_dir_utf8().ok());
    let is_its = |dir: &Utf8Path| text(&dir.join("gitdir")).is_ok_and(|file| file.trim_end() == link);
    let cure = if records.into_iter().flatten().flatten().any(|entry| is_its(entry.path())) {
        format!("{aside}git -C {project} worktree repair mends it")
    } else if common_dir.is_none() {
        format!("{aside}git worktree repair in the project's new folder mends it")
    } else {
        let away = word(&format!("{worktree}.aside"));
        format!("mv {folder} {away} moves it away, and a resume makes it anew from its branch")
    };
    Err(GitError::LostLink { worktree: worktree.to_owned(), why, cure })
}

/// Whether git failed over a worktree that another git was making or removing.
pub(crate) fn is_over_half_made(said: &str) -> bool {
    said.contains("failed to read") && said.contains("worktrees/")
}

/// Repeats git while it fails over a worktree that another git makes or removes.
fn past_half_made<T>(ask: impl Fn() -> Result<T, GitError>) -> Result<T, GitError> {
    past(ask, |answered| matches!(answered, Err(error) if is_over_half_made(&error.to_string())))
}

/// Repeats a call while its result is of this kind, up to a limit.
pub(crate) fn past<T>(ask: impl Fn() -> T, is_to_be_repeated: impl Fn(&T) -> bool) -> T {
    for _ in 0..AGAIN {
        let answered = ask();
        if !is_to_be_repeated(&answered) {
            return answered;
        }
        std::thread::yield_now();
    }
    ask()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rstest::rstest;

    use super::*;

    #[test]
    fn folders_that_an_agent_closed_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir_all(root.join("closed/inner")).unwrap();
        testkit::write(root.join("closed/inner/file").as_std_path(), "x");
        for folder in ["closed/inner", "closed"] {
            fs::set_permissions(root.join(folder), Permissions::from_mode(0o000)).unwrap();
        }
        make_removable(root).unwrap();
        for folder in ["closed", "closed/inner"] {
            let mode = root.join(folder).metadata().unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{folder}");
        }
        fs::remove_dir_all(root.join("closed")).unwrap();
    }

    #[rstest]
    #[case::over_a_half_made_one("fatal: failed to read .git/worktrees/t07/commondir: Success", 3, 4, true)]
    #[case::over_one_that_stays_so(
        "fatal: failed to read .git/worktrees/t07/commondir: Success",
        1000,
        51,
        false
    )]
    #[case::over_anything_else("fatal: failed to read object", 3, 1, false)]
    fn git_is_asked_again_while_it_dies_over_a_half_made_worktree(
        #[case] said: &str,
        #[case] dies: usize,
        #[case] asked: usize,
        #[case] is_answered: bool,
    ) {
        let count = Cell::new(0);
        let answered = past_half_made(|| {
            count.set(count.get() + 1);
            let failed =
                || GitError::Failed { command: "git worktree list".to_owned(), said: said.to_owned() };
            if count.get() > dies { Ok(()) } else { Err(failed()) }
        });
        assert_eq!((count.get(), answered.is_ok()), (asked, is_answered));
    }
}
