//! The private index: the head's tree and the loop's own paths. After the commit, the user's index is updated for
//! exactly the committed paths.

use camino::Utf8Path;
use refrain_core::git::{Oid, OmittedPath, RepoPath};

use crate::candidate::initial_changes::Before;
use crate::candidate::{Candidate, ChosenFile, Rules, next_object, screen, why};
use crate::error::GitError;
use crate::plumbing::git::Git;
use crate::plumbing::index::IndexLock;
use crate::repository::Repository;
use refrain_secrets::SecretMatch;

/// The empty tree, by the length of a name: git knows it without storing it.
pub(crate) fn empty_tree(commit: &Oid) -> &'static str {
    match commit.as_str().len() {
        40 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        _ => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
}

/// Makes the private index equal to the candidate.
pub(crate) fn stage(
    repository: &Repository,
    git: Git<'_>,
    head: Option<&Oid>,
    candidate: &mut Candidate,
    rules: Rules<'_>,
) -> Result<(), GitError> {
    if candidate.has_foreign {
        // Only the index: the working tree is not read.
        let _ = match head {
            Some(head) => git.output(["read-tree", "-i", "--reset", head.as_str()], &[])?,
            None => git.output(["read-tree", "--empty"], &[])?,
        };
    }
    // Deleted files first: a file may have become a folder.
    update(git, &["--force-remove"], candidate.gone.iter().map(Vec::as_slice))?;
    update(git, &["--add", "--remove", "--replace"], candidate.kept.iter().map(|kept| kept.path.as_slice()))?;
    look_again(repository, git, candidate, rules)
}

fn update<'p>(git: Git<'_>, how: &[&str], paths: impl Iterator<Item = &'p [u8]>) -> Result<(), GitError> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    if !input.is_empty() {
        Git::output(git, [&["update-index"], how, &["-z", "--stdin"]].concat(), &input)?;
    }
    Ok(())
}

/// A file written between our scan and git's read may contain unscanned content: git's version is scanned now.
fn look_again(
    repository: &Repository,
    git: Git<'_>,
    candidate: &mut Candidate,
    rules: Rules<'_>,
) -> Result<(), GitError> {
    let mut as_in_head = Vec::new();
    for kept in std::mem::take(&mut candidate.kept) {
        // A submodule has no stamp, but a file in its place has.
        let is_another = kept.stamp != repository.stamp(&kept.path);
        let found = if is_another { screen_staged(git, &kept, rules)? } else { None };
        let Some(found) = found.filter(|_| !rules.allow(&kept.path)) else {
            candidate.allowed.extend(found.map(|found| (kept.path.clone(), found)));
            candidate.kept.push(kept);
            continue;
        };
        match &kept.in_head {
            Some(head) => as_in_head.extend(info(&head.mode, &head.object, &kept.path)),
            None => update(git, &["--force-remove"], std::iter::once(kept.path.as_slice()))?,
        }
        candidate.left_out.push(OmittedPath { path: RepoPath::from_bytes(&kept.path), why: why(found) });
    }
    index_info(git, &as_in_head)
}

/// A line of `git update-index --index-info`; mode 0 removes the path.
pub(crate) fn info(mode: &str, object: &Oid, path: &[u8]) -> Vec<u8> {
    [mode.as_bytes(), b" ", object.as_str().as_bytes(), b"\t", path, b"\0"].concat()
}

fn screen_staged(git: Git<'_>, kept: &ChosenFile, rules: Rules<'_>) -> Result<Option<SecretMatch>, GitError> {
    // With an explicit stage: otherwise a file called `0:x` would be taken for stage 0 of `x`.
    let input = [b":0:".as_slice(), &kept.path, b"\0"].concat();
    let printed = Git::output(git, ["cat-file", "--batch", "-z"], &input)?;
    let content = next_object(&mut printed.as_slice()).unwrap_or_default();
    screen(git, &kept.path, content, kept.in_head.as_ref(), rules)
}

fn index_info(git: Git<'_>, lines: &[u8]) -> Result<(), GitError> {
    if !lines.is_empty() {
        Git::output(git, ["update-index", "-z", "--index-info"], lines)?;
    }
    Ok(())
}

/// Puts these lines of [`info`] into a private index, replacing conflicting entries.
pub(crate) fn put(git: Git<'_>, lines: &[u8]) -> Result<(), GitError> {
    Git::output(git, ["update-index", "--add", "--replace", "-z", "--index-info"], lines).map(drop)
}

/// Updates the user's index for the changes of `commit` since `parent`, and releases its lock. The user's staged
/// changes stay staged, also if a hook added them to the commit. `scratch` is a path for temporary files.
pub(crate) fn bring_back(
    git: Git<'_>,
    lock: IndexLock<'_>,
    scratch: &Utf8Path,
    (parent, commit): (Option<&Oid>, &Oid),
    before: &Before,
) -> Result<(), GitError> {
    lock.copy_to(scratch)?;
    let git = Git::with_index(git, scratch);
    let printed = changed(git, parent, commit)?;
    let changed = Change::all(&printed);
    let parent = parent.map_or(empty_tree(commit), Oid::as_str);
    let is_persons = |change: &Change<'_>| before.stamp(change.path).is_some();
    let staged = match changed.iter().any(is_persons) {
        true => {
            Git::output(git, ["diff-index", "--cached", "-z", "--name-only", "--no-renames", parent], &[])?
        }
        false => Vec::new(),
    };
    let is_staged = |path: &[u8]| staged.split(|byte| *byte == 0).any(|name| name == path);
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    for change in changed.iter().filter(|change| !is_persons(change) || !is_staged(change.path)) {
        let lines = if change.is_gone() { &mut gone } else { &mut there };
        lines.extend(change.line());
    }
    gone.extend(there);
    index_info(git, &gone)?;
    lock.replace_with(scratch)
}

/// The changes of a commit since another, or since nothing.
pub(crate) fn changed(git: Git<'_>, parent: Option<&Oid>, commit: &Oid) -> Result<Vec<u8>, GitError> {
    let parent = parent.map_or(empty_tree(commit), Oid::as_str);
    Git::output(git, ["diff-tree", "-r", "-z", "--no-renames", "--raw", parent, commit.as_str()], &[])
}

/// The mode and the content of a path; none if it does not exist.
pub(crate) type File = Option<(String, Oid)>;

/// A record of `git diff-tree --raw -z`: `:mode mode object object X`, and the path.
pub(crate) struct Change<'a> {
    mode: &'a [u8],
    object: &'a [u8],
    pub(crate) path: &'a [u8],
}

impl<'a> Change<'a> {
    pub(crate) fn all(printed: &'a [u8]) -> Vec<Self> {
        let mut fields = printed.split(|byte| *byte == 0);
        let mut all = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let mut words = head.split(|byte| *byte == b' ');
            if let (Some(mode), Some(object)) = (words.nth(1), words.nth(1)) {
                all.push(Self { mode, object, path });
            }
        }
        all
    }

    fn is_gone(&self) -> bool {
        self.mode == b"000000"
    }

    /// Its mode and its content; none if it is gone.
    pub(crate) fn file(&self) -> File {
        let text = |bytes| str::from_utf8(bytes).ok();
        let object = text(self.object)?.parse().ok().filter(|_| !self.is_gone())?;
        Some((text(self.mode)?.to_owned(), object))
    }

    /// The line of [`info`] that sets its new state.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mode = if self.is_gone() { b"0".as_slice() } else { self.mode };
        [mode, b" ", self.object, b"\t", self.path, b"\0"].concat()
    }
}
