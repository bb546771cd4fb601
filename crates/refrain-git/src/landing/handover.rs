//! Handing a wave over to the user: their branch moves to its commit, and their checkout follows it. Everything that
//! they have changed, staged or added is left as it is.
//!
//! The lock of their index is held throughout, so that no other git interferes. Files are written first, then the
//! branch, then the index: a kill in between leaves at worst files that are ahead of the branch, which no careless
//! commit turns into a loss; a branch ahead of its files would look like a change that reverts the wave. A note beside
//! the private indexes, where no agent in a sandbox writes, records the operation. With it the next call for the same
//! loop or plan finishes: files already on disk are accepted as they are, and a file that was cut off while being written
//! is written again.

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::git::{Oid, Operation, RepoPath};

use crate::Cancel;
use crate::error::{GitError, OnPath};
use crate::landing::filtered_files::FilteredFiles;
use crate::landing::handover_disk::Step;
use crate::landing::replaced_files::ReplacedFiles;
use crate::plumbing::disk::{remove, text};
use crate::plumbing::git::{Git, said};
use crate::plumbing::index::{Index, IndexLock};
use crate::plumbing::verified_objects::VerifiedObjects;
use crate::plumbing::worktree_list::head_of;
use crate::repository::Repository;

/// The commit to hand over, and the user's branch.
#[derive(Clone, Copy, Debug)]
pub struct HandOverRequest<'a> {
    /// The plan; its id is in the index lock, so that it recognizes its own lock.
    pub id: &'a LoopId,
    /// The branch that was checked out when the plan began; none if the head was detached.
    pub branch: Option<&'a str>,
    /// The expected head: the last commit that was handed over, or the head at the start.
    pub expected: &'a Oid,
    /// The commit to hand over, a descendant of the expected one.
    pub to: &'a Oid,
    pub why: &'a str,
    /// Whether the agent that made it ran in a sandbox: nothing that it wrote is run outside of one.
    pub is_from_sandbox: bool,
    /// The path of private indexes, in the plan's own folder: this, and others beside it.
    pub index: &'a Utf8Path,
    /// Cancels it until the first file is written.
    pub cancel: Option<&'a Cancel>,
}

/// The result. Except for `Done`, nothing was changed, and it may be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// The branch and the files are updated.
    Done,
    /// The branch is elsewhere: the user committed meanwhile.
    Diverged {
        head: Oid,
    },
    /// Changes of the user would be overwritten.
    InTheWay {
        paths: Vec<RepoPath>,
    },
    /// Another branch is checked out now.
    OtherBranch {
        /// Its name; none if the head is detached.
        now: Option<String>,
    },
    /// The branch is also checked out in another worktree, whose files would not follow.
    CheckedOut {
        by: Utf8PathBuf,
    },
    InProgress(Operation),
    /// Another git holds the index lock, or died holding it.
    IndexLocked,
    /// Git did not move the branch: it is locked, or a hook of the user refused.
    BranchHeld {
        /// In git's words.
        said: String,
    },
}

impl Repository {
    /// Hands a commit over.
    /// Errors: [`GitError::Unborn`] on a branch without a commit; [`GitError::ForgedObject`]; [`GitError`] if git fails,
    /// and [`GitError::Cancelled`].
    pub fn hand_over(&self, request: HandOverRequest<'_>) -> Result<HandedOver, GitError> {
        self.hand_over_or_check(request, false)
    }

    /// What [`Self::hand_over`] would say now, as far as that is known before it writes; nothing is changed.
    pub fn check_hand_over(&self, request: HandOverRequest<'_>) -> Result<HandedOver, GitError> {
        self.hand_over_or_check(request, true)
    }

    fn hand_over_or_check(
        &self,
        request: HandOverRequest<'_>,
        is_check: bool,
    ) -> Result<HandedOver, GitError> {
        let HandOverRequest { branch, expected, to, index, .. } = request;
        let note = Note::of(index, expected, to);
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
            let is_done = self.is_behind(to, &head)?;
            return Ok(if is_done { HandedOver::Done } else { HandedOver::Diverged { head } });
        }
        if is_check && note.is_there() {
            return Ok(HandedOver::Done);
        }
        let git = self.git().until(request.cancel);
        let objects = VerifiedObjects::of(self, git, &[expected, to])?;
        let index = Index::of(self);
        let Some(lock) = index.lock(request.id)? else { return Ok(HandedOver::IndexLocked) };
        let git = objects.apply(git).without_fetching().with_index(request.index);
        Job { repository: self, request, git, head: &head, note: &note, is_check }.run(lock)
    }

    /// The hand-over with this private index that was interrupted after the move of the branch: from which commit to
    /// which. Git's index does not have it yet.
    pub fn moved_ahead_of_index(&self, private: &Utf8Path) -> Result<Option<(Oid, Oid)>, GitError> {
        let Some((from, to)) = Note::begun(private) else { return Ok(None) };
        Ok((self.reference("HEAD")?.as_ref() == Some(&to)).then_some((from, to)))
    }

    /// The start of a plan: the head, and the branch that is checked out.
    pub fn begin_of_plan(&self) -> Result<(Oid, Option<String>), GitError> {
        let head = self.reference("HEAD")?.ok_or_else(|| GitError::Unborn(self.root().to_owned()))?;
        Ok((head, self.current_branch()?))
    }

    /// The branch that is checked out; none if the head is detached.
    pub(crate) fn current_branch(&self) -> Result<Option<String>, GitError> {
        if let Some(Some(name)) = head_of(self.git_dir()) {
            return Ok(Some(name));
        }
        let done = self.git().run(["symbolic-ref", "--quiet", "HEAD"], &[])?;
        let name = String::from_utf8_lossy(&done.stdout);
        Ok(name.trim_end_matches('\n').strip_prefix("refs/heads/").map(str::to_owned))
    }
}

/// Records a hand-over that has begun and is not complete.
pub(crate) struct Note {
    path: Utf8PathBuf,
    text: String,
}

impl Note {
    fn of(private: &Utf8Path, expected: &Oid, to: &Oid) -> Self {
        Self { path: Self::path(private), text: format!("{expected} {to}\n") }
    }

    fn path(private: &Utf8Path) -> Utf8PathBuf {
        Utf8PathBuf::from(format!("{private}.handover"))
    }

    /// The incomplete hand-over: from which commit to which.
    pub(crate) fn begun(private: &Utf8Path) -> Option<(Oid, Oid)> {
        let text = text(&Self::path(private)).ok()?;
        let (expected, to) = text.trim_end().split_once(' ')?;
        Some((expected.parse().ok()?, to.parse().ok()?))
    }

    pub(crate) fn is_there(&self) -> bool {
        text(&self.path).is_ok_and(|text| text == self.text)
    }

    /// It need not survive a power loss: git's own files do not either.
    fn write(&self) -> Result<(), GitError> {
        #[expect(clippy::disallowed_methods, reason = "whole or of no use, which is as good as none")]
        fs::write(&self.path, &self.text).on("write", &self.path)
    }

    fn remove(&self) -> Result<(), GitError> {
        remove(&self.path)
    }
}

/// A hand-over in progress, under the lock of the user's index.
pub(crate) struct Job<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) request: HandOverRequest<'a>,
    pub(crate) git: Git<'a>,
    head: &'a Oid,
    pub(crate) note: &'a Note,
    is_check: bool,
}

impl Job<'_> {
    fn run(&self, lock: IndexLock<'_>) -> Result<HandedOver, GitError> {
        let HandOverRequest { expected, to, index, .. } = self.request;
        lock.copy_to(index)?;
        // The two questions run in parallel.
        let (staged, steps) = std::thread::scope(|both| {
            let staged = both.spawn(|| self.staged());
            (staged.join(), self.steps())
        });
        let staged = staged.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))?;
        let Some(staged) = staged else { return Ok(HandedOver::InProgress(Operation::Merge)) };
        let steps = steps?;
        // It may take long: what the user changes meanwhile is seen after it.
        let filtered = match self.request.is_from_sandbox {
            true => {
                let files = steps.iter().map(|step| (&step.path, &step.to));
                FilteredFiles::make(self.repository, self.git, to, files)?
            }
            false => FilteredFiles::default(),
        };
        let disk = self.look(&steps, &staged)?;
        if !disk.in_the_way.is_empty() {
            return Ok(in_the_way(disk.in_the_way));
        }
        // Paths that the user already has in their final form stay, and git does not write what filters make: for these only the
        // index is updated.
        let settled: BTreeSet<_> = disk.ahead.union(&filtered.paths).collect();
        if self.is_check {
            return self.check(&steps, &settled);
        }
        self.note.write()?;
        for path in &disk.cut_off {
            // If it cannot be removed, git names it and refuses to overwrite it.
            let _ = fs::remove_file(path);
        }
        self.settle(&steps, &settled)?;
        let sparse = self.sparse()?;
        let is_written = |step: &&Step| {
            !disk.ahead.contains(&step.path) && !sparse.contains(&step.path) && !step.is_submodule()
        };
        let written: Vec<_> = steps.iter().filter(is_written).collect();
        let old = written.iter().filter(|step| step.from.is_some()).map(|step| &step.path);
        let replaced = ReplacedFiles::keep(self.repository, format!("{index}.replaced").into(), old)?;
        // From here on it cannot be cancelled.
        let git = self.git.to_its_end();
        let writing = self.writing(git);
        let read = ["read-tree", "-m", "-u", "--no-recurse-submodules", expected.as_str(), to.as_str()];
        let mut done = writing.run(read, &[])?;
        if !done.status.success() {
            // Git compares the times in the index, which lacks them after a hand-over that was killed, and refuses before it
            // writes anything.
            git.run(["update-index", "-q", "--refresh"], &[])?;
            done = writing.run(read, &[])?;
        }
        if !done.status.success() {
            let said = said(&done);
            let Some(path) = named(&said) else {
                // For example, the disk is full: the next call continues.
                return Err(GitError::Failed { command: "git read-tree".to_owned(), said });
            };
            // Git reports this before it writes anything.
            self.note.remove()?;
            return Ok(in_the_way([path].into()));
        }
        // By now git's index has what a sparse checkout omits.
        let except = disk.ahead.iter().cloned().chain(self.sparse()?).collect();
        filtered.place(self.repository, &except)?;
        if self.head == expected
            && let Some(said) = self.move_branch()?
        {
            self.take_back(git, &lock, &written, &replaced)?;
            self.note.remove()?;
            return Ok(match self.repository.reference("HEAD")? {
                Some(head) if head != *expected => HandedOver::Diverged { head },
                _ => HandedOver::BranchHeld { said },
            });
        }
        lock.replace_with(index)?;
        self.note.remove()?;
        Ok(HandedOver::Done)
    }

    /// Gives paths in the private index the entries of the new commit.
    fn settle(&self, steps: &[Step], settled: &BTreeSet<&Vec<u8>>) -> Result<(), GitError> {
        let settled = steps.iter().filter(|step| settled.contains(&step.path));
        self.put(self.git, settled.map(|step| (&step.path, &step.to)))
    }

    /// The git that writes the other files.
    fn writing<'g>(&self, git: Git<'g>) -> Git<'g> {
        if self.request.is_from_sandbox { git.without_filters() } else { git }
    }

    /// Asks git whether it would overwrite something; it writes only the private index.
    fn check(&self, steps: &[Step], settled: &BTreeSet<&Vec<u8>>) -> Result<HandedOver, GitError> {
        let HandOverRequest { expected, to, .. } = self.request;
        self.settle(steps, settled)?;
        self.git.run(["update-index", "-q", "--refresh"], &[])?;
        let read = ["read-tree", "-n", "-m", "-u", "--no-recurse-submodules", expected.as_str(), to.as_str()];
        let done = self.git.run(read, &[])?;
        let path = if done.status.success() { None } else { named(&said(&done)) };
        Ok(path.map_or(HandedOver::Done, |path| in_the_way([path].into())))
    }

    /// None if the branch was moved; else why git did not.
    fn move_branch(&self) -> Result<Option<String>, GitError> {
        let HandOverRequest { branch, expected, to, why, .. } = self.request;
        let place = branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let args = ["update-ref", "--no-deref", "-m", why, &place, to.as_str(), expected.as_str()];
        let done = self.repository.git().to_its_end().with_hooks().run(args, &[])?;
        Ok((!done.status.success()).then(|| said(&done)))
    }

    /// Restores the files that were written for a commit, after the branch update was rejected.
    fn take_back(
        &self,
        git: Git<'_>,
        lock: &IndexLock<'_>,
        written: &[&Step],
        replaced: &ReplacedFiles,
    ) -> Result<(), GitError> {
        lock.copy_to(self.request.index)?;
        for step in written.iter().filter(|step| step.from.is_none()) {
            let path = self.repository.on_disk(&step.path);
            let _ = fs::remove_file(&path);
            for above in path.ancestors().skip(1) {
                // Only empty folders are removed; the first that is not stops it.
                if above == self.repository.root().as_std_path() || fs::remove_dir(above).is_err() {
                    break;
                }
            }
        }
        replaced.put_back(self.repository)?;
        // Those that an earlier call had begun to replace.
        let kept = replaced.paths();
        let lost = written.iter().filter(|step| step.from.is_some() && !kept.contains(&step.path));
        let lost: Vec<_> = lost.flat_map(|step| [step.path.as_slice(), b"\0"].concat()).collect();
        if lost.is_empty() {
            return Ok(());
        }
        Git::output(self.writing(git), ["checkout-index", "--force", "-z", "--stdin"], &lost).map(drop)
    }
}

fn in_the_way(paths: BTreeSet<Vec<u8>>) -> HandedOver {
    HandedOver::InTheWay { paths: paths.iter().map(|path| RepoPath::from_bytes(path)).collect() }
}

/// The path in git's message when it refuses to overwrite something.
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
