//! Reads `git status --porcelain=v2 --branch -z`: the head, and every path that differs from it.

use std::collections::BTreeSet;

use refrain_core::git::{MOST_CHANGES, Oid, RepoPath};
use refrain_proc::tool::ToolError;

use crate::error::GitError;
use crate::plumbing::git::Git;

/// Arguments of `git status`. Renames are a guess that is not needed here. Of a submodule only the commit is
/// compared: git would read its files and run programs configured inside, so submodules are examined separately.
const ASKED: &[&str] = &[
    "status",
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=dirty",
];

/// The output of `git status`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// The commit that is checked out; none on a branch without one.
    pub(crate) head: Option<Oid>,
    /// The branch; none if the head is detached.
    pub(crate) branch: Option<String>,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its bytes; a nested repository ends with `/`.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tracked(TrackedFile),
    /// Unresolved conflict: the index has several versions.
    Unmerged,
    New,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TrackedFile {
    pub(crate) is_staged: bool,
    /// Whether it is missing in the working tree.
    pub(crate) is_gone: bool,
    /// The version in the head; none if it is new.
    pub(crate) in_head: Option<Blob>,
    /// For a submodule: whether another commit is checked out in it.
    pub(crate) submodule: Option<bool>,
}

/// The version of a path in the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) mode: String,
    pub(crate) object: Oid,
}

impl Entry {
    pub(crate) fn repo_path(&self) -> RepoPath {
        RepoPath::from_bytes(&self.path)
    }
}

/// Reads the status of the worktree without its submodules. More than [`MOST_CHANGES`] paths are an error.
pub(crate) fn read(git: Git<'_>) -> Result<Status, GitError> {
    let most = MOST_CHANGES;
    let printed = match git.output(ASKED, &[]) {
        Err(GitError::Tool(ToolError::TooMuch { .. })) => return Err(GitError::TooManyChanges { most }),
        printed => printed?,
    };
    let mut status = parse(&printed).ok_or_else(|| GitError::Answer {
        command: "status",
        answer: String::from_utf8_lossy(&printed[..printed.len().min(200)]).into_owned(),
    })?;
    let folders = package_folders(&status.entries);
    if !folders.is_empty() {
        let tracked = git.output(["ls-files", "-z"], &[])?;
        let has_tracked =
            |folder: &&Vec<u8>| tracked.split(|byte| *byte == 0).any(|it| it.starts_with(folder));
        let folders: Vec<_> = folders.iter().filter(|folder| !has_tracked(folder)).collect();
        status.entries.retain(|entry| !folders.iter().any(|folder| entry.path.starts_with(folder)));
    }
    if status.entries.len() > most {
        return Err(GitError::TooManyChanges { most });
    }
    Ok(status)
}

/// The folders with new files that hold installed packages, each with a slash at its end: `node_modules/`, and virtual
/// environments of Python (`.venv/`, `venv/`). Unless git tracks a file there, nothing in them is work.
fn package_folders(entries: &[Entry]) -> BTreeSet<Vec<u8>> {
    const NODE: &[u8] = b"node_modules/";
    let folder = |entry: &Entry| {
        let path = &entry.path;
        let starts = memchr::memmem::find_iter(path, NODE);
        let node = starts.filter(|at| *at == 0 || path[at - 1] == b'/').map(|at| at + NODE.len()).next();
        let environment = || {
            let folder = path.strip_suffix(b"pyvenv.cfg")?;
            let is_named = |name: &[u8]| folder == name || folder.ends_with(&[b"/", name].concat());
            (is_named(b".venv/") || is_named(b"venv/")).then_some(folder.len())
        };
        Some(path[..node.or_else(environment)?].to_vec())
    };
    entries.iter().filter(|entry| entry.kind == Kind::New).filter_map(folder).collect()
}
/// A repository in a record of `git ls-files --stage -z`: `160000 <commit> 0<tab><path>`. None if its path is not
/// UTF-8.
pub(crate) fn repository_of(record: &[u8]) -> Option<(Oid, &str)> {
    let (commit, path) = str::from_utf8(record.strip_prefix(b"160000 ")?).ok()?.split_once('\t')?;
    Some((commit.split(' ').next()?.parse().ok()?, path))
}

/// Lists the paths whose changes git ignores because of an index flag.
pub(crate) const HIDDEN: &[&str] = &["ls-files", "-v", "-z"];

/// The paths of that answer, each with its mark: `S` or `s` is a path that is skipped, a small letter one that is
/// taken as it is.
pub(crate) fn hidden(printed: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let records = printed.split(|byte| *byte == 0).filter(|record| record.len() > 2);
    let marked = records.map(|record| (record[0], &record[2..]));
    marked.filter(|(mark, _)| *mark == b'S' || mark.is_ascii_lowercase())
}

pub(crate) fn has_conflicts(status: &Status) -> bool {
    status.entries.iter().any(|entry| entry.kind == Kind::Unmerged)
}

fn parse(printed: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    for record in printed.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (mark, rest) = record.split_at_checked(2)?;
        match mark {
            b"# " => header(&mut status, str::from_utf8(rest).ok()?)?,
            b"1 " => status.entries.push(tracked(rest)?),
            // XY sub m1 m2 m3 mW h1 h2 h3 path
            b"u " => status.entries.push(Entry { path: field(rest, 9)?.to_vec(), kind: Kind::Unmerged }),
            b"? " => status.entries.push(Entry { path: rest.to_vec(), kind: Kind::New }),
            _ => return None,
        }
    }
    Some(status)
}

fn header(status: &mut Status, text: &str) -> Option<()> {
    match text.split_once(' ')? {
        ("branch.oid", "(initial)") => {}
        ("branch.oid", oid) => status.head = Some(oid.parse().ok()?),
        ("branch.head", "(detached)") => {}
        ("branch.head", branch) => status.branch = Some(branch.to_owned()),
        // The upstream, and the number of stashes.
        _ => {}
    }
    Some(())
}

/// `XY sub mH mI mW hH hI path`
fn tracked(record: &[u8]) -> Option<Entry> {
    let mut fields = record.splitn(8, |byte| *byte == b' ');
    let mut next = || fields.next();
    let (xy, sub, head_mode, _index_mode, work_mode, head, _index) =
        (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    let path = next()?.to_vec();
    let in_head = str::from_utf8(head).ok()?;
    let mode = str::from_utf8(head_mode).ok()?.to_owned();
    let is_nothing = in_head.bytes().all(|digit| digit == b'0');
    let tracked = TrackedFile {
        is_staged: xy.first()? != &b'.',
        is_gone: work_mode == b"000000",
        in_head: if is_nothing { None } else { Some(Blob { mode, object: in_head.parse().ok()? }) },
        submodule: (sub.first()? == &b'S').then(|| sub.get(1) == Some(&b'C')),
    };
    Some(Entry { path, kind: Kind::Tracked(tracked) })
}

/// The rest of a record after this many fields.
fn field(record: &[u8], before: usize) -> Option<&[u8]> {
    record.splitn(before + 1, |byte| *byte == b' ').nth(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_record_is_read() {
        let a = "a".repeat(40);
        let zero = "0".repeat(40);
        let printed = format!(
            "# branch.oid {a}\0# branch.head topic/x\0# branch.upstream origin/topic\0# stash 2\0\
             1 .M N... 100644 100644 100644 {a} {a} a b\nc\0\
             1 AD N... 000000 100644 000000 {zero} {a} gone\0\
             1 .M SCM. 160000 160000 160000 {a} {a} sub\0\
             u UU N... 100644 100644 100644 100644 {a} {a} {a} both of us\0\
             ? -new\0? nested/\0"
        );
        let status = parse(printed.as_bytes()).unwrap();
        assert_eq!(status.head.unwrap().as_str(), a);
        assert_eq!(status.branch.unwrap(), "topic/x");
        let paths: Vec<_> = status.entries.iter().map(|entry| entry.path.as_slice()).collect();
        assert_eq!(paths, [b"a b\nc".as_slice(), b"gone", b"sub", b"both of us", b"-new", b"nested/"]);
        let Kind::Tracked(gone) = &status.entries[1].kind else { panic!() };
        assert!(gone.is_staged && gone.is_gone && gone.in_head.is_none());
        let Kind::Tracked(sub) = &status.entries[2].kind else { panic!() };
        assert_eq!(sub.submodule, Some(true));
    }

    #[test]
    fn folders_of_installed_packages_are_found() {
        let printed = "? node_modules/a/index.js\0? web/node_modules/b/node_modules/c.js\0? old_node_modules/x\0\
                       ? tools/.venv/pyvenv.cfg\0? tools/.venv/bin/python\0? pyvenv.cfg\0? src/pyvenv.cfg\0";
        let found = package_folders(&parse(printed.as_bytes()).unwrap().entries);
        let found: Vec<_> = found.iter().map(|it| str::from_utf8(it).unwrap()).collect();
        assert_eq!(found, ["node_modules/", "tools/.venv/", "web/node_modules/"]);
    }

    #[test]
    fn a_branch_without_a_commit_and_a_detached_head_are_reported() {
        let unborn = parse(b"# branch.oid (initial)\0# branch.head main\0").unwrap();
        assert_eq!((unborn.head, unborn.branch), (None, Some("main".to_owned())));
        let oid = "b".repeat(64);
        let detached = parse(format!("# branch.oid {oid}\0# branch.head (detached)\0").as_bytes()).unwrap();
        assert_eq!((detached.head.unwrap().as_str(), detached.branch), (oid.as_str(), None));
    }

    #[test]
    fn an_unknown_status_line_is_not_guessed() {
        for printed in [b"2 R. N... x\0".as_slice(), b"?\0", b"1 .M N...\0", b"# branch.oid xyz\0"] {
            assert_eq!(parse(printed), None, "{printed:?}");
        }
    }
}
