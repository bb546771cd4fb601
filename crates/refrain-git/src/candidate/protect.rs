//! Protected files as a tree: every file that matches a rule, as it is on disk. `refrain_core::protect` decides which
//! changes break a rule.
//!
//! Git's own answers are useless here, because an agent can bend them all: an index flag that hides a path, a filter
//! that returns the old content, a new ignore rule. So the files are found by [`walk`](crate::candidate::walk) and
//! hashed as they are; git only stores them and shows the differences.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use camino::Utf8Path;
use refrain_core::git::{Oid, RepoPath};
use refrain_core::protect::{Change, Kind, Part, PartViolation, ProtectedPaths, Violation};
use refrain_files::{IfThere, read_regular};

use crate::Cancel;
use crate::candidate::walk::{ProtectedFile, RULES, Walk, ignored, rules_elsewhere};
use crate::error::{GitError, OnPath};
use crate::plumbing::git::{Git, quoted};
use crate::repository::Repository;
use crate::worktree::clean::PreparedCheckout;

/// How much of the changed lines is reported, in bytes.
const LINES: usize = 256 << 10;

/// The longest file of which a part is protected, in bytes.
const LONGEST: u64 = 64 << 20;

/// The highest number of files whose lines are reported: a command line has room for so many.
const MOST_SHOWN: usize = 100;

/// The protected files, and the folder to check.
#[derive(Clone, Copy, Debug)]
pub struct ProtectRequest<'a> {
    pub paths: &'a ProtectedPaths,
    pub parts: &'a [Part],
    /// The path of a private index, beside that of a commit.
    pub index: &'a Utf8Path,
    /// A clean checkout to examine instead of the worktree: its folder, and git's index of it.
    pub checkout: Option<(&'a Utf8Path, &'a Utf8Path)>,
    pub cancel: Option<&'a Cancel>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    pub paths: Vec<Violation>,
    pub parts: Vec<PartViolation>,
    /// Their differences as in `git diff`; cut if they are very long.
    pub lines: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Blob {
    mode: String,
    object: String,
}

type Files = BTreeMap<Vec<u8>, Blob>;

impl Repository {
    /// The tree of the protected files as they are now.
    pub fn protected(&self, request: ProtectRequest<'_>) -> Result<Oid, GitError> {
        let (git, root) = self.place(request);
        let mut files = hash((git, root), &find((git, root), request, None)?, true)?;
        let rules = rules_elsewhere(self, git)?;
        let object = git.text(["hash-object", "-w", "--no-filters", "--stdin"], &rules)?;
        files.insert(RULES.into(), Blob { mode: ProtectedFile::FILE.to_owned(), object });
        self.write(git, request.index, &files)
    }

    /// The differences that break a rule since `base` was made by [`Repository::protected`].
    pub fn touched(&self, request: ProtectRequest<'_>, base: &Oid) -> Result<Touches, GitError> {
        let (git, root) = self.place(request);
        let before = listed(git, base)?;
        let found = find((git, root), request, Some(&before))?;
        let now = hash((git, root), &found, false)?;
        let changes: Vec<_> = changes(&before, &now);
        let paths = request.paths.touched(&changes);
        let mut parts = Vec::new();
        for part in request.parts {
            let path = part.path.to_bytes();
            let was = before.get(&path).map(|blob| content(git, &blob.object)).transpose()?;
            // One that is too long to be read has changed.
            let read = || read_regular(&on_disk(root, &path), LONGEST).ok();
            let is = now.contains_key(&path).then(read).flatten();
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            parts.extend(part.touched(was.as_ref().map(text).as_deref(), is.as_ref().map(text).as_deref()));
        }
        if paths.is_empty() && parts.is_empty() {
            return Ok(Touches::default());
        }
        let _ = hash((git, root), &found, true)?;
        let tree = self.write(git, request.index, &now)?;
        let touched = paths.iter().map(|it| &it.path).chain(parts.iter().map(|it| &it.path));
        let lines = match diff(git, base.as_str(), tree.as_str(), touched) {
            Err(GitError::Cancelled) => return Err(GitError::Cancelled),
            // A failure to show the lines must not hide the change itself.
            told => told.unwrap_or_default(),
        };
        Ok(Touches { paths, parts, lines })
    }

    /// The differences of `tree` from the commit or tree `began` (or from nothing) and from `base` that break a rule.
    /// An agent can commit a change and then restore the worktree.
    pub fn touched_in_tree(
        &self,
        request: ProtectRequest<'_>,
        base: &Oid,
        (began, tree): (Option<&Oid>, &Oid),
    ) -> Result<Touches, GitError> {
        let git = self.git().until(request.cancel);
        let kept = listed(git, base)?;
        let began = began.map_or_else(|| empty_tree(git), |began| Ok(began.to_string()))?;
        let (mut before, mut now) = differing(self, git, (&began, tree.as_str()))?;
        before.retain(|path, _| now.get(path) != kept.get(path));
        now.retain(|path, is| kept.get(path) != Some(is));
        let changes = changes(&before, &now);
        let mut paths = request.paths.touched(&changes);
        paths.extend(request.paths.compiled(&changes));
        let text = |files: &Files, path: &[u8]| {
            let blob = files.get(path).map(|blob| content(git, &blob.object)).transpose()?;
            Ok::<_, GitError>(blob.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        let mut parts = Vec::new();
        for part in request.parts {
            let path = part.path.to_bytes();
            parts.extend(part.touched(text(&before, &path)?.as_deref(), text(&now, &path)?.as_deref()));
        }
        if paths.is_empty() && parts.is_empty() {
            return Ok(Touches::default());
        }
        let touched = paths.iter().map(|it| &it.path).chain(parts.iter().map(|it| &it.path));
        let lines = match diff(git, &began, tree.as_str(), touched) {
            Err(GitError::Cancelled) => return Err(GitError::Cancelled),
            told => told.unwrap_or_default(),
        };
        Ok(Touches { paths, parts, lines })
    }

    /// These paths as they were when `base` was made, to lie over a clean checkout.
    pub fn as_they_were<'p>(
        &self,
        base: &Oid,
        paths: impl IntoIterator<Item = &'p RepoPath>,
    ) -> Result<Vec<PreparedCheckout>, GitError> {
        let files = listed(self.git(), base)?;
        let laid = |path: &RepoPath| {
            let file = files.get(&path.to_bytes()).map(|Blob { mode, object }| {
                let answer = || GitError::Answer { command: "ls-tree", answer: object.clone() };
                Ok::<_, GitError>((mode.clone(), object.parse().map_err(|_| answer())?))
            });
            Ok(PreparedCheckout { path: path.clone(), file: file.transpose()? })
        };
        paths.into_iter().map(laid).collect()
    }

    /// Git in the folder to check, and that folder.
    fn place<'a>(&'a self, request: ProtectRequest<'a>) -> (Git<'a>, &'a Utf8Path) {
        let git = self.git().until(request.cancel);
        match request.checkout {
            Some((folder, index)) => (git.for_files_in(folder, self.git_dir()).with_index(index), folder),
            None => (git, self.root()),
        }
    }

    fn write(&self, git: Git<'_>, index: &Utf8Path, files: &Files) -> Result<Oid, GitError> {
        fs::remove_file(index).if_there().on("take away", index)?;
        let git = git.with_index(index);
        let mut lines = Vec::new();
        for (path, Blob { mode, object }) in files {
            lines.extend([mode.as_bytes(), b" ", object.as_bytes(), b"\t", path, b"\0"].concat());
        }
        Git::output(git, ["update-index", "-z", "--index-info"], &lines)?;
        let answer = git.text(["write-tree"], &[])?;
        answer.parse().map_err(|_| GitError::Answer { command: "write-tree", answer })
    }
}

fn find(
    (git, root): (Git<'_>, &Utf8Path),
    request: ProtectRequest<'_>,
    base: Option<&Files>,
) -> Result<Vec<ProtectedFile>, GitError> {
    let ignored = match base {
        // Rules that ignored files at the start are the user's own.
        None => ignored(git, None)?,
        Some(files) => {
            let text = |path: &[u8]| files.get(path).map(|blob| content(git, &blob.object)).transpose();
            ignored(git, Some(&text))?
        }
    };
    Walk { paths: request.paths, parts: request.parts, ignored: &ignored }.of(root)
}

/// The object names of these files as they are on disk; with `keep` the objects are stored.
fn hash((git, root): (Git<'_>, &Utf8Path), found: &[ProtectedFile], keep: bool) -> Result<Files, GitError> {
    let how: &[&str] =
        if keep { &["hash-object", "-w", "--no-filters"] } else { &["hash-object", "--no-filters"] };
    let mut files = Files::new();
    let mut names = Vec::new();
    let plain: Vec<_> = found.iter().filter(|found| found.kind == Kind::File).collect();
    for found in &plain {
        names.extend(quoted(&found.path));
        names.push(b'\n');
    }
    let objects = match plain.is_empty() {
        true => String::new(),
        false => Git::text(git, how.iter().chain(&["--stdin-paths"]), &names)?,
    };
    let objects: Vec<&str> = objects.lines().collect();
    if objects.len() != plain.len() {
        return Err(GitError::Answer { command: "hash-object", answer: objects.len().to_string() });
    }
    for (found, object) in plain.into_iter().zip(objects) {
        let blob = Blob { mode: found.mode.to_owned(), object: object.to_owned() };
        files.insert(found.path.clone(), blob);
    }
    for found in found.iter().filter(|found| found.kind != Kind::File) {
        let Ok(target) = fs::read_link(on_disk(root, &found.path)) else { continue };
        let object = Git::text(git, how.iter().chain(&["--stdin"]), target.as_os_str().as_bytes())?;
        files.insert(found.path.clone(), Blob { mode: found.mode.to_owned(), object });
    }
    Ok(files)
}

fn on_disk(root: &Utf8Path, path: &[u8]) -> std::path::PathBuf {
    root.as_std_path().join(OsStr::from_bytes(path))
}

/// The arguments of a query about stored objects: replacements by `git replace` are ignored.
pub(crate) fn really<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["--no-replace-objects", "--literal-pathspecs"], args].concat()
}

pub(crate) fn content(git: Git<'_>, object: &str) -> Result<Vec<u8>, GitError> {
    git.output(really(&["cat-file", "blob", object]), &[])
}

fn listed(git: Git<'_>, tree: &Oid) -> Result<Files, GitError> {
    let printed = git.output(really(&["ls-tree", "-r", "-z", tree.as_str()]), &[])?;
    let entry = |record: &[u8]| {
        let tab = record.iter().position(|byte| *byte == b'\t')?;
        let mut words = str::from_utf8(&record[..tab]).ok()?.split(' ');
        let (mode, object) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
        Some((record[tab + 1..].to_vec(), Blob { mode, object }))
    };
    Ok(printed.split(|byte| *byte == 0).filter_map(entry).collect())
}

pub(crate) fn empty_tree(git: Git<'_>) -> Result<String, GitError> {
    git.text(["hash-object", "-t", "tree", "--stdin"], b"")
}

/// A path that differs between two trees: its mode and object in each, zeros if it is missing.
pub(crate) struct Difference<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) before: (&'a str, &'a str),
    pub(crate) now: (&'a str, &'a str),
}

/// Git's output for the paths in which two trees differ; [`differences`] reads it.
pub(crate) fn diff_trees(git: Git<'_>, trees: (&str, &str), filter: &[&str]) -> Result<Vec<u8>, GitError> {
    let asked = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
    git.output(really(&[&asked, filter, &[trees.0, trees.1]].concat()), &[])
}

/// Reads `:<mode before> <mode> <object before> <object> <status>`, each followed by its path.
pub(crate) fn differences(printed: &[u8]) -> Result<Vec<Difference<'_>>, GitError> {
    let mut fields = printed.split(|byte| *byte == 0);
    let mut all = Vec::new();
    while let (Some(record), Some(path)) = (fields.next(), fields.next()) {
        let words: Vec<&str> = str::from_utf8(record).unwrap_or_default().split(' ').collect();
        let [mode_before, mode, object_before, object, _] = words[..] else {
            let answer = String::from_utf8_lossy(record).into_owned();
            return Err(GitError::Answer { command: "diff-tree", answer });
        };
        let before = (mode_before.trim_start_matches(':'), object_before);
        all.push(Difference { path, before, now: (mode, object) });
    }
    Ok(all)
}

/// The files in which two trees differ, with both versions; in submodules that exist here too.
fn differing(
    repository: &Repository,
    git: Git<'_>,
    (began, tree): (&str, &str),
) -> Result<(Files, Files), GitError> {
    let printed = diff_trees(git, (began, tree), &[])?;
    let (mut before, mut now) = (Files::new(), Files::new());
    for Difference { path, before: was, now: is } in differences(&printed)? {
        let add = |files: &mut Files, (mode, object): (&str, &str)| {
            if mode != "000000" {
                files.insert(path.to_vec(), Blob { mode: mode.to_owned(), object: object.to_owned() });
            }
        };
        add(&mut before, was);
        add(&mut now, is);
        if was.0 == "160000" && is.0 == "160000" {
            let (inside_before, inside) = inside(repository, path, (was.1, is.1))?;
            let below = |(name, blob): (Vec<u8>, Blob)| ([path, b"/", &name].concat(), blob);
            before.extend(inside_before.into_iter().map(below));
            now.extend(inside.into_iter().map(below));
        }
    }
    Ok((before, now))
}

/// The same between two commits of the submodule at `path`.
fn inside(repository: &Repository, path: &[u8], commits: (&str, &str)) -> Result<(Files, Files), GitError> {
    let Some(folder) = str::from_utf8(path).ok().map(|path| repository.root().join(path)) else {
        return Ok(Default::default());
    };
    let submodule = match Repository::open(&folder, repository.env()) {
        Ok(submodule) => submodule,
        Err(GitError::Cancelled) => return Err(GitError::Cancelled),
        // It is not checked out: then it is not in the clean checkout, either.
        Err(_) => return Ok(Default::default()),
    };
    let pins = repository.pins().cloned().unwrap_or_default();
    let submodule = submodule.guarded_like(repository).with_pins(Some(&pins));
    differing(&submodule, submodule.git(), commits)
}

fn changes(before: &Files, now: &Files) -> Vec<(RepoPath, Change)> {
    let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path, Change::Deleted));
    let there = now.iter().filter_map(|(path, is)| {
        let kind = ProtectedFile::kind_of(&is.mode);
        let change = match before.get(path) {
            None => Change::Added(kind),
            Some(was) if was == is => return None,
            Some(was) if ProtectedFile::kind_of(&was.mode) != kind => Change::Became(kind),
            Some(was) if was.object == is.object => Change::Mode,
            Some(_) => Change::Modified(kind),
        };
        Some((path, change))
    });
    let mut all: Vec<_> = gone.chain(there).filter(|(path, _)| path.as_slice() != RULES.as_bytes()).collect();
    all.sort_unstable_by_key(|(path, _)| *path);
    all.into_iter().map(|(path, change)| (RepoPath::from_bytes(path), change)).collect()
}

/// The differences of these files. No program of the user or the agent takes part.
fn diff<'p>(
    git: Git<'_>,
    base: &str,
    now: &str,
    paths: impl Iterator<Item = &'p RepoPath>,
) -> Result<Vec<u8>, GitError> {
    let told =
        ["diff-tree", "-r", "-p", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", "--text"];
    let mut args: Vec<OsString> = really(&told).into_iter().map(Into::into).collect();
    args.extend([base, now, "--"].map(OsString::from));
    args.extend(paths.take(MOST_SHOWN).map(|path| OsString::from_vec(path.to_bytes())));
    let mut lines = git.output(args, &[])?;
    lines.truncate(LINES);
    Ok(lines)
}
