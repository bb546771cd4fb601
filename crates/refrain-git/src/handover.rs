//! Handing a wave over to the person: their branch moves to its commit, and what they have checked out follows it, with all
//! that they have changed, staged or put there themselves left as it is.
//!
//! The lock of their index is held over all of it, so that no git of theirs comes in between. Files first, then the branch,
//! then the index: whoever is killed on the way leaves at worst files that are ahead of the branch, which no careless commit
//! turns into a loss; a branch ahead of its files would look like a change that takes the wave back. A note in the worktree's
//! git folder says what was begun. With it the next call finishes: what is on disk already is taken as it is, and a file that
//! was cut off in the middle of being written is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::git::{Oid, Operation, RepoPath};

use crate::Cancel;
use crate::candidate::SUBMODULE;
use crate::clean::remove;
use crate::error::{GitError, OnPath};
use crate::git::{Git, said};
use crate::index::{Index, Locked};
use crate::merge::oid;
use crate::repository::Repository;
use crate::stage::{self, Change, File};

/// What is to be handed over, and to whom.
#[derive(Clone, Copy, Debug)]
pub struct HandOverRequest<'a> {
    /// The plan; its name is in the lock of the index, so that it knows its own.
    pub id: &'a LoopId,
    /// The branch that was checked out at the plan's begin; none where the head was detached.
    pub branch: Option<&'a str>,
    /// Where it should be: the last commit that was handed over, or the head at the begin.
    pub expected: &'a Oid,
    /// The commit, which descends from that.
    pub to: &'a Oid,
    /// What the branch's log says of it.
    pub why: &'a str,
    /// A place for private indexes, in the plan's own folder: this, and others beside it.
    pub index: &'a Utf8Path,
    /// Who may stop it, until the first file is written.
    pub cancel: Option<&'a Cancel>,
}

/// What came of it. But for `Done` nothing was changed, and it may be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// The branch has it, and so have the files.
    Done,
    /// The branch is somewhere else: the person committed meanwhile.
    Diverged {
        /// Where.
        head: Oid,
    },
    /// Something of the person's would be overwritten.
    InTheWay {
        /// What.
        paths: Vec<RepoPath>,
    },
    /// Another branch is checked out by now.
    OtherBranch {
        /// Which; none where the head is detached.
        now: Option<String>,
    },
    /// The branch is checked out in another worktree too, whose files would not follow.
    CheckedOut {
        /// Where.
        by: Utf8PathBuf,
    },
    /// Git is in the middle of something.
    InProgress(Operation),
    /// Another git holds the index lock, or died holding it.
    IndexLocked,
}

/// A path that is another in the commit.
struct Step {
    path: Vec<u8>,
    from: File,
    to: File,
}

impl Step {
    fn is_submodule(&self) -> bool {
        [&self.from, &self.to].into_iter().flatten().any(|(mode, _)| mode == SUBMODULE)
    }
}

/// What each path is on disk.
#[derive(Debug, Default)]
struct Disk {
    /// As it is to be already.
    ahead: BTreeSet<Vec<u8>>,
    /// What is left of one who was killed writing it.
    cut_off: Vec<PathBuf>,
    /// Something else than either, so it is the person's.
    in_the_way: BTreeSet<Vec<u8>>,
}

impl Repository {
    /// Hands a commit over.
    ///
    /// # Errors
    /// [`GitError::Unborn`] on a branch without a commit; [`GitError`] where git cannot do it, and [`GitError::Cancelled`].
    pub fn hand_over(&self, request: HandOverRequest<'_>) -> Result<HandedOver, GitError> {
        let HandOverRequest { branch, expected, to, .. } = request;
        let note = Note::of(self, expected, to);
        if let Some(operation) = self.operation() {
            return Ok(HandedOver::InProgress(operation));
        }
        let now = self.current_branch()?;
        if now.as_deref() != branch {
            return Ok(HandedOver::OtherBranch { now });
        }
        if let Some(branch) = branch
            && let Some(by) = self.checked_out(branch, self.root())?
        {
            return Ok(HandedOver::CheckedOut { by });
        }
        let head = self.reference("HEAD")?.ok_or_else(|| GitError::Unborn(self.root().to_owned()))?;
        if head != *expected && (head != *to || !note.is_there()) {
            let done = self.git().run(["merge-base", "--is-ancestor", to.as_str(), head.as_str()], &[])?;
            return Ok(if done.status.success() { HandedOver::Done } else { HandedOver::Diverged { head } });
        }
        let index = Index::of(self);
        let Some(lock) = index.lock(request.id)? else { return Ok(HandedOver::IndexLocked) };
        let git = self.git().until(request.cancel).with_index(request.index);
        Job { repository: self, request, git, head: &head, note: &note }.run(lock)
    }

    /// What a plan begins at: the head, and the branch that is checked out.
    ///
    /// # Errors
    /// [`GitError::Unborn`] in a repository without a commit.
    pub fn begin_of_plan(&self) -> Result<(Oid, Option<String>), GitError> {
        let head = self.reference("HEAD")?.ok_or_else(|| GitError::Unborn(self.root().to_owned()))?;
        Ok((head, self.current_branch()?))
    }

    /// The branch that is checked out; none where the head is detached.
    pub(crate) fn current_branch(&self) -> Result<Option<String>, GitError> {
        let done = self.git().run(["symbolic-ref", "--quiet", "HEAD"], &[])?;
        let name = String::from_utf8_lossy(&done.stdout);
        Ok(name.trim_end_matches('\n').strip_prefix("refs/heads/").map(str::to_owned))
    }
}

/// Says what was begun and is not over.
struct Note {
    path: Utf8PathBuf,
    text: String,
}

impl Note {
    fn of(repository: &Repository, expected: &Oid, to: &Oid) -> Self {
        Self { path: repository.git_dir().join("refrain-handover"), text: format!("{expected} {to}\n") }
    }

    fn is_there(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }

    /// It need not survive a power loss: what git writes does not either.
    fn write(&self) -> Result<(), GitError> {
        #[expect(clippy::disallowed_methods, reason = "whole or of no use, which is as good as none")]
        fs::write(&self.path, &self.text).on("write", &self.path)
    }

    fn remove(&self) -> Result<(), GitError> {
        remove(&self.path)
    }
}

/// A hand-over on its way, under the lock of the person's index.
struct Job<'a> {
    repository: &'a Repository,
    request: HandOverRequest<'a>,
    /// On the private index.
    git: Git<'a>,
    head: &'a Oid,
    note: &'a Note,
}

impl Job<'_> {
    fn run(&self, lock: Locked<'_>) -> Result<HandedOver, GitError> {
        let HandOverRequest { expected, to, index, .. } = self.request;
        lock.copy_to(index)?;
        if !self.git.output(["ls-files", "--unmerged", "-z"], &[])?.is_empty() {
            return Ok(HandedOver::InProgress(Operation::Merge));
        }
        let steps = self.steps()?;
        let disk = self.look(&steps)?;
        if !disk.in_the_way.is_empty() {
            return Ok(in_the_way(disk.in_the_way));
        }
        self.note.write()?;
        for path in &disk.cut_off {
            // One that stays is named by git, which refuses to write over it.
            let _ = fs::remove_file(path);
        }
        // What the person has as it is to be already is theirs to have; the index need only know.
        let ahead = steps.iter().filter(|step| disk.ahead.contains(&step.path));
        self.put(self.git, ahead.map(|step| (&step.path, &step.to)))?;
        // From here on it is not stopped half-way.
        let git = self.git.to_its_end();
        let read = ["read-tree", "-m", "-u", "--no-recurse-submodules", expected.as_str(), to.as_str()];
        let done = git.run(read, &[])?;
        if !done.status.success() {
            let said = said(&done);
            let Some(path) = named(&said) else {
                // As where the disk is full, in the middle of it: the next call goes on.
                return Err(GitError::Failed { command: "git read-tree".to_owned(), said });
            };
            // This it says before it writes anything.
            self.note.remove()?;
            return Ok(in_the_way([path].into()));
        }
        if self.head == expected && !self.move_branch(git)? {
            self.take_back(git, &lock, &steps, &disk)?;
            self.note.remove()?;
            let head = self.repository.reference("HEAD")?;
            return Ok(HandedOver::Diverged { head: head.unwrap_or_else(|| expected.clone()) });
        }
        lock.replace_with(index)?;
        self.note.remove()?;
        Ok(HandedOver::Done)
    }

    fn move_branch(&self, git: Git<'_>) -> Result<bool, GitError> {
        let HandOverRequest { branch, expected, to, why, .. } = self.request;
        let place = branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let args = ["update-ref", "--no-deref", "-m", why, &place, to.as_str(), expected.as_str()];
        Ok(git.run(args, &[])?.status.success())
    }

    /// Puts the files back that were written for a commit which the branch did not take.
    fn take_back(
        &self,
        git: Git<'_>,
        lock: &Locked<'_>,
        steps: &[Step],
        disk: &Disk,
    ) -> Result<(), GitError> {
        lock.copy_to(self.request.index)?;
        let written = steps.iter().filter(|step| !disk.ahead.contains(&step.path) && !step.is_submodule());
        let mut back = Vec::new();
        for step in written {
            match &step.from {
                Some(_) => back.extend([step.path.as_slice(), b"\0"].concat()),
                None => {
                    let path = self.repository.on_disk(&step.path);
                    let _ = fs::remove_file(&path);
                    for above in path.ancestors().skip(1) {
                        // Only empty ones go, and what is not removed stops it.
                        if above == self.repository.root().as_std_path() || fs::remove_dir(above).is_err() {
                            break;
                        }
                    }
                }
            }
        }
        Git::output(git, ["checkout-index", "--force", "-z", "--stdin"], &back).map(drop)
    }

    /// What is another in the commit.
    fn steps(&self) -> Result<Vec<Step>, GitError> {
        let HandOverRequest { expected, to, .. } = self.request;
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--raw", expected.as_str(), to.as_str()];
        let printed = self.git.output(words, &[])?;
        let mut fields = printed.split(|byte| *byte == 0);
        let mut steps = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head);
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            let side = |mode: usize, object: usize| -> Result<Option<(String, Oid)>, GitError> {
                let (mode, object) = (words.get(mode), words.get(object));
                let mode = mode.filter(|mode| **mode != "000000");
                mode.zip(object)
                    .map(|(mode, object)| Ok(((*mode).to_owned(), oid("diff-tree", object)?)))
                    .transpose()
            };
            steps.push(Step { path: path.to_vec(), from: side(0, 2)?, to: side(1, 3)? });
        }
        Ok(steps)
    }

    /// Looks at what is on disk and in the index of the paths that are to change. It is their content that counts, and not
    /// what the index remembers of them.
    fn look(&self, steps: &[Step]) -> Result<Disk, GitError> {
        let as_new = self.differing(".new", steps.iter().map(|step| (&step.path, &step.to)))?;
        let as_old = self.differing(".old", steps.iter().map(|step| (&step.path, &step.from)))?;
        let staged = self.staged()?;
        let sparse = self.sparse()?;
        let gone: BTreeSet<&[u8]> =
            steps.iter().filter(|step| step.to.is_none()).map(|step| step.path.as_slice()).collect();
        let mut disk = Disk::default();
        for step in steps {
            let path = &step.path;
            let staged = staged.get(path);
            // As the index of the last commit, or as that of the next, has it.
            let fits = staged.is_none_or(|staged| *staged == step.to);
            if step.is_submodule() || sparse.contains(path) {
                if !fits {
                    disk.in_the_way.insert(path.clone());
                }
                continue;
            }
            let there = fs::symlink_metadata(self.repository.on_disk(path)).ok();
            let is = |side: &Option<_>, differing: &BTreeSet<Vec<u8>>| match side {
                Some(_) => !differing.contains(path),
                None => there.is_none(),
            };
            let is_new = is(&step.to, &as_new);
            let is_old = is(&step.from, &as_old) && staged.is_none();
            if is_new && fits {
                disk.ahead.insert(path.clone());
            } else if fits && !is_old && self.is_cut_off(step, there.as_ref())? {
                disk.cut_off.push(self.repository.on_disk(path));
            } else if step.from.is_none() {
                disk.in_the_way.extend(self.in_the_place_of(path, &gone));
            } else if !is_old {
                disk.in_the_way.insert(path.clone());
            }
        }
        Ok(disk)
    }

    /// Which of these are not on disk as they are said to be.
    fn differing<'p>(
        &self,
        name: &str,
        files: impl Iterator<Item = (&'p Vec<u8>, &'p File)>,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let index = Utf8PathBuf::from(format!("{}{name}", self.request.index));
        remove(&index)?;
        let git = self.git.with_index(&index);
        self.put(git, files.filter(|(_, file)| file.is_some()))?;
        // It says with its exit code that there are some.
        git.run(["update-index", "-q", "--refresh"], &[])?;
        let printed = git.output(["diff-files", "-z", "--name-only", "--ignore-submodules=all"], &[])?;
        remove(&index)?;
        Ok(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Puts files into an index; one without a mode goes.
    fn put<'p>(
        &self,
        git: Git<'_>,
        files: impl Iterator<Item = (&'p Vec<u8>, &'p File)>,
    ) -> Result<(), GitError> {
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for (path, file) in files {
            match file {
                Some((mode, object)) => there.extend(stage::info(mode, object, path)),
                None => gone.extend(stage::info("0", self.request.to, path)),
            }
        }
        // First what is gone: a file may have become a folder.
        gone.extend(there);
        stage::put(git, &gone)
    }

    /// What the person staged: paths that the index has otherwise than the last commit, and how.
    fn staged(&self) -> Result<BTreeMap<Vec<u8>, File>, GitError> {
        let words = ["diff-index", "--cached", "-z", "--raw", "--no-renames", self.request.expected.as_str()];
        let printed = self.git.output(words, &[])?;
        Ok(Change::all(&printed).into_iter().map(|change| (change.path.to_vec(), change.file())).collect())
    }

    /// The paths that the person has git leave out of the worktree.
    fn sparse(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        if !self.repository.git_dir().join("info/sparse-checkout").exists() {
            return Ok(BTreeSet::new());
        }
        let printed = self.git.output(["ls-files", "-t", "-z"], &[])?;
        let records = printed.split(|byte| *byte == 0);
        Ok(records.filter_map(|record| record.strip_prefix(b"S ")).map(<[u8]>::to_vec).collect())
    }

    /// What of the person's is where a new path is to be: a file, those in a folder of that name, or a file where a folder
    /// above it should be. What goes with the same step is not theirs.
    fn in_the_place_of(&self, path: &[u8], gone: &BTreeSet<&[u8]>) -> Vec<Vec<u8>> {
        let root = self.repository.root().as_std_path();
        let relative = |path: &Path| {
            path.strip_prefix(root).map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default()
        };
        let own = self.repository.on_disk(path);
        let above = own.ancestors().skip(1).take_while(|above| *above != root);
        let is_file = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir());
        let blocking = above.filter(is_file).map(relative).find(|path| !gone.contains(path.as_slice()));
        let mut found: Vec<Vec<u8>> = blocking.into_iter().collect();
        files_below(&own, &mut |file| {
            let path = relative(file);
            if !gone.contains(path.as_slice()) {
                found.push(path);
            }
        });
        found
    }

    /// Whether this is what is left where somebody was killed in the middle of this very hand-over: the file is gone, or
    /// begins as the new one and ends too early.
    fn is_cut_off(&self, step: &Step, there: Option<&Metadata>) -> Result<bool, GitError> {
        if !self.note.is_there() {
            return Ok(false);
        }
        let Some(there) = there else { return Ok(step.from.is_some()) };
        let Some((_, object)) = step.to.as_ref().filter(|_| there.is_file()) else { return Ok(false) };
        let whole = self.git.output(["cat-file", "blob", object.as_str()], &[])?;
        Ok(fs::read(self.repository.on_disk(&step.path)).is_ok_and(|begin| whole.starts_with(&begin)))
    }
}

/// Names every file at or below a path, links too.
fn files_below(path: &Path, name: &mut impl FnMut(&Path)) {
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(_) => name(&path),
            Err(_) => {}
        }
    }
}

fn in_the_way(paths: BTreeSet<Vec<u8>>) -> HandedOver {
    HandedOver::InTheWay { paths: paths.iter().map(|path| RepoPath::from_bytes(path)).collect() }
}

/// The path that git names where it refuses to overwrite something.
fn named(said: &str) -> Option<Vec<u8>> {
    let line = said.lines().find(|line| {
        ["not uptodate", "would be overwritten", "would lose untracked", "would be removed"]
            .iter()
            .any(|words| line.contains(words))
    })?;
    let (_, rest) = line.split_once('\'')?;
    Some(rest.rsplit_once('\'')?.0.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_git_refuses_over_is_found_in_its_words() {
        for (said, path) in [
            ("error: Entry 'a b' not uptodate. Cannot merge.", Some("a b")),
            ("error: Untracked working tree file 'it's' would be overwritten by merge.", Some("it's")),
            ("error: Updating 'dir' would lose untracked files in it", Some("dir")),
            ("fatal: index file corrupt", None),
        ] {
            assert_eq!(named(said), path.map(|path| path.as_bytes().to_vec()), "{said}");
        }
    }
}
