//! Copies of objects in a folder of their own, each of which is what its name says. An agent can write into the repository's
//! object store, there may be several contents under one name, and each git that reads decides anew which it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use camino::Utf8PathBuf;
use refrain_core::git::{Oid, RepoPath};

use crate::candidate::checkout_path::check_path;
use crate::candidate::stage::empty_tree;
use crate::error::{GitError, OnPath};
use crate::plumbing::disk::{ScratchFolder, read, remove, write};
use crate::plumbing::git::Git;
use crate::repository::Repository;

/// Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct VerifiedObjects {
    folder: ScratchFolder,
    shallow: Utf8PathBuf,
}

impl VerifiedObjects {
    /// These commits, or trees, with all trees in them, the files in which they differ, and those that set attributes. The
    /// first has no history here.
    /// Errors: [`GitError::ForgedObject`] if one is not what its name says; [`GitError`] if git fails.
    pub(crate) fn of(repository: &Repository, git: Git<'_>, commits: &[&Oid]) -> Result<Self, GitError> {
        let objects = Self::named(repository, git, &names(git, commits)?)?;
        let root = commits.first().map(|root| format!("{root}\n")).unwrap_or_default();
        write(&objects.shallow, root.as_bytes())?;
        // A forged tree names other objects than the one that was copied.
        let here = objects.apply(git).without_fetching();
        let names = names(here, commits)?;
        let asked = ["cat-file", "--buffer", "--batch-check"];
        let printed = here.text(asked, lines(&names).as_bytes())?;
        match printed.lines().find_map(|line| line.strip_suffix(" missing")) {
            Some(missing) => Err(forged(&names, missing)),
            None => Ok(objects),
        }
    }

    /// What differs between two commits, or trees. Git reads no other.
    /// Errors: As [`VerifiedObjects::of`].
    pub(crate) fn between(repository: &Repository, git: Git<'_>, pair: [&str; 2]) -> Result<Self, GitError> {
        // Git says of some forged trees that they are no trees.
        let is_named = |error| Self::named(repository, git, &stored(pair)).and(Err(error));
        Self::named(repository, git, &differing(git, pair).or_else(is_named)?)
    }

    /// The commits of two histories after their common ancestor, and that, which have no history before them.
    /// Errors: As [`VerifiedObjects::of`].
    pub(crate) fn histories(
        repository: &Repository,
        git: Git<'_>,
        (one, other): (&Oid, &Oid),
        base: &Oid,
    ) -> Result<Self, GitError> {
        let before = format!("^{base}");
        let words = ["rev-list", "--boundary", one.as_str(), other.as_str(), before.as_str(), "--"];
        let printed = git.text(words, &[])?;
        // Commits before these are marked.
        let first = || printed.lines().filter_map(|line| line.strip_prefix('-')).chain([base.as_str()]);
        let commits = printed.lines().filter(|line| !line.starts_with('-')).chain(first());
        let names = commits.map(|commit| (commit.to_owned(), commit.to_owned())).collect();
        let objects = Self::named(repository, git, &names)?;
        let mut shallow: String = first().map(|commit| format!("{commit}\n")).collect();
        shallow += &shallow_of(repository);
        write(&objects.shallow, shallow.as_bytes())?;
        Ok(objects)
    }

    /// What these commits changed, and of `base` the files that they changed. Git reads no other.
    /// Errors: As [`VerifiedObjects::of`].
    pub(crate) fn changes(
        repository: &Repository,
        git: Git<'_>,
        commits: &[Oid],
        base: Option<&Oid>,
    ) -> Result<Self, GitError> {
        let listed = listed(git, commits)?;
        let before: String =
            commits_before(&listed.trees).into_iter().map(|commit| format!("{commit}\n")).collect();
        let asked = ["rev-list", "--no-walk", "--no-commit-header", "--format=%T", "--stdin"];
        let trees_before = git.text(asked, before.as_bytes())?;
        let mut names = stored(listed.trees.split_whitespace().chain(trees_before.lines()));
        let changed = changed(&listed.changes);
        if let Some(base) = base {
            let asked = ["rev-list", "--objects", "--no-walk", "--no-object-names", "--filter=blob:none"];
            let folders = git.text(asked.into_iter().chain([base.as_str()]), &[])?;
            let paths: BTreeSet<_> = changed.iter().map(|(_, path)| *path).collect();
            let asked: Vec<u8> = paths
                .iter()
                .flat_map(|path| [base.as_str().as_bytes(), b":", path, b"\0"].concat())
                .collect();
            let files = git.text(["cat-file", "--batch-check=%(objectname)", "-z"], &asked)?;
            names.extend(stored(folders.lines().chain(files.lines())));
        }
        names.extend(paths_of(&changed));
        let objects = Self::named(repository, git, &names)?;
        write(&objects.shallow, (before + &shallow_of(repository)).as_bytes())?;
        match self::listed(objects.apply(git).without_fetching(), commits)? == listed {
            true => Ok(objects),
            false => Err(forged(&names, commits.last().map_or("", Oid::as_str))),
        }
    }

    /// The objects with these names.
    /// Errors: As [`VerifiedObjects::of`].
    pub(crate) fn named(repository: &Repository, git: Git<'_>, names: &Names) -> Result<Self, GitError> {
        let folder = ScratchFolder::new()?;
        let objects = Self { shallow: folder.path().join("shallow"), folder };
        let (info, pack) = (objects.folder.path().join("info"), objects.folder.path().join("pack"));
        for folder in [&info, &pack] {
            fs::create_dir(folder).on("create", folder)?;
        }
        write(&objects.shallow, b"")?;
        let alternates = info.join("alternates");
        let all: String = repository.object_folders().map(|folder| format!("{folder}\n")).collect();
        write(&alternates, all.as_bytes())?;
        let (here, pack) = (objects.apply(git), pack.join("pack"));
        // In one pack, whatever the user's configuration says.
        let asked = ["-c", "pack.packSizeLimit=0", "pack-objects", "-q", "--window=0", pack.as_str()];
        let packed = here.text(asked, lines(names).as_bytes())?;
        remove(&alternates)?;
        // It computes each name from the content.
        let (own, found) = (format!("{pack}-{packed}.idx"), objects.folder.path().join("found.idx"));
        let done = here.run(["index-pack", "-o", found.as_str(), &format!("{pack}-{packed}.pack")], &[])?;
        let index = |path: &str| fs::read(path).on("read", objects.folder.path());
        if done.status.success() && index(&own)? == index(found.as_str())? {
            return Ok(objects);
        }
        let printed = match done.status.success() {
            true => here.text(["show-index"], &index(found.as_str())?)?,
            false => String::new(),
        };
        // `offset name (checksum)`
        let right: BTreeSet<_> = printed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        let other = names.keys().find(|name| !right.contains(name.as_str()));
        Err(forged(names, other.map_or("", String::as_str)))
    }

    /// The same git, with these objects alone.
    pub(crate) fn apply<'a>(&'a self, git: Git<'a>) -> Git<'a> {
        git.with_objects(self.folder.path(), &self.shallow)
    }

    /// Gives the objects that git made here to the repository.
    pub(crate) fn give(&self, repository: &Repository, git: Git<'_>) -> Result<(), GitError> {
        let mut made = String::new();
        for folder in self.folder.path().read_dir_utf8().on("read", self.folder.path())?.flatten() {
            let start = folder.file_name();
            if start.len() == 2 {
                let files = folder.path().read_dir_utf8().on("read", folder.path())?.flatten();
                made.extend(files.map(|file| format!("{start}{}\n", file.file_name())));
            }
        }
        let here = self.apply(git);
        let pack = here.output(["pack-objects", "-q", "--stdout", "--window=0"], made.as_bytes())?;
        repository.git().output(["unpack-objects", "-q"], &pack).map(drop)
    }
}

/// The name of each object, and its path; that of a commit, or of the tree of one, is its own name.
pub(crate) type Names = BTreeMap<String, String>;

fn forged(names: &Names, name: &str) -> GitError {
    GitError::ForgedObject(names.get(name).map_or(name, String::as_str).to_owned())
}

/// The objects that [`VerifiedObjects::of`] copies, as git reads them now.
fn names(git: Git<'_>, commits: &[&Oid]) -> Result<Names, GitError> {
    let own = |name: &str| (name.to_owned(), name.to_owned());
    let mut names: Names = commits.iter().map(|commit| own(commit.as_str())).collect();
    let trees = commits.iter().map(|commit| format!("{commit}^{{tree}}"));
    let trees = git.text(["rev-parse".to_owned()].into_iter().chain(trees), &[])?;
    names.extend(trees.lines().map(own));
    let mut files: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for commit in commits {
        let printed = git.output(["ls-tree", "-r", "-t", "-z", "--full-tree", commit.as_str()], &[]);
        let printed = printed.map_err(|error| error.of_tree(commit))?;
        for record in printed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            check_path(record.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default())?;
            match parts(record) {
                Some(("blob", object, path)) if path.ends_with(b".gitattributes") => {
                    names.insert(object.to_owned(), RepoPath::from_bytes(path).to_string());
                }
                Some(("tree", object, path)) => {
                    names.insert(object.to_owned(), RepoPath::from_bytes(path).to_string());
                }
                Some(("blob", ..)) => *files.entry(record.to_vec()).or_default() += 1,
                Some(_) | None => {}
            }
        }
    }
    let differing = files.iter().filter(|(_, count)| **count < commits.len());
    names.extend(differing.filter_map(|(record, _)| {
        let (_, object, path) = parts(record)?;
        Some((object.to_owned(), RepoPath::from_bytes(path).to_string()))
    }));
    Ok(names)
}

/// The objects that [`VerifiedObjects::between`] copies, as git reads them now.
fn differing(git: Git<'_>, pair: [&str; 2]) -> Result<Names, GitError> {
    let trees = pair.map(|it| format!("{it}^{{tree}}"));
    let trees = git.text(["rev-parse".to_owned()].into_iter().chain(trees), &[])?;
    let mut names = stored(pair.into_iter().chain(trees.lines()));
    let words = ["diff-tree", "-r", "-t", "-z", "--no-renames", "--raw"];
    let printed = git.output(words.into_iter().chain(pair), &[])?;
    names.extend(paths_of(&changed(&printed)));
    Ok(names)
}

/// The commits that a shallow clone begins with.
fn shallow_of(repository: &Repository) -> String {
    String::from_utf8_lossy(&read(&repository.common_dir().join("shallow")).unwrap_or_default()).into_owned()
}

/// What git says of commits.
#[derive(PartialEq, Eq)]
struct Listed {
    /// Each with its tree and its parents, in a line.
    trees: String,
    /// `commit NUL`, and for each of its files and folders `:mode mode object object X NUL path NUL`, for each parent.
    changes: Vec<u8>,
}

fn listed(git: Git<'_>, commits: &[Oid]) -> Result<Listed, GitError> {
    let given: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
    let asked = ["rev-list", "--no-walk=unsorted", "--no-commit-header", "--format=%H %T %P", "--stdin"];
    let trees = git.text(asked, given.as_bytes())?;
    let asked = ["diff-tree", "--stdin", "-r", "-t", "-m", "-z", "--raw", "--root", "--no-renames"];
    Ok(Listed { trees, changes: git.output(asked, given.as_bytes())? })
}

/// The parents in these lines that have no line of their own.
fn commits_before(trees: &str) -> BTreeSet<&str> {
    let own: BTreeSet<_> = trees.lines().filter_map(|line| line.split(' ').next()).collect();
    let parents = trees.lines().flat_map(|line| line.split_whitespace().skip(2));
    parents.filter(|name| !own.contains(name)).collect()
}

/// The objects of files and folders in git's raw output, on both sides, and their paths.
fn changed(printed: &[u8]) -> Vec<(String, &[u8])> {
    let (mut fields, mut found) = (printed.split(|byte| *byte == 0), Vec::new());
    while let Some(head) = fields.next() {
        if !head.starts_with(b":") {
            continue;
        }
        let Some(path) = fields.next() else { break };
        let words: Vec<_> = head.split(|byte| matches!(byte, b':' | b' ')).collect();
        let [_, before, now, old, new, ..] = words.as_slice() else { continue };
        for (mode, object) in [(before, old), (now, new)] {
            if ![b"000000".as_slice(), b"160000"].contains(mode) {
                found.push((String::from_utf8_lossy(object).into_owned(), path));
            }
        }
    }
    found
}

fn paths_of(changed: &[(String, &[u8])]) -> Names {
    changed.iter().map(|(object, path)| (object.clone(), RepoPath::from_bytes(path).to_string())).collect()
}

/// The names among these words of objects, without the empty tree, which git has without a file.
fn stored<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    let is_stored = |name: &&str| name.parse().is_ok_and(|it| empty_tree(&it) != *name);
    names.into_iter().filter(is_stored).map(|name| (name.to_owned(), name.to_owned())).collect()
}

/// Of a record of `git ls-tree -z`, `mode kind object TAB path`: its kind, its object and its path.
fn parts(record: &[u8]) -> Option<(&str, &str, &[u8])> {
    let tab = memchr::memchr(b'\t', record)?;
    let mut words = str::from_utf8(&record[..tab]).ok()?.split(' ').skip(1);
    Some((words.next()?, words.next()?, &record[tab + 1..]))
}

fn lines(names: &Names) -> String {
    names.keys().map(|name| format!("{name}\n")).collect()
}
