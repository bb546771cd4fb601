//! Finds protected files: everywhere in the worktree except in folders that the user ignored as a whole at the start,
//! such as builds and installed packages. A later rule hides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use refrain_core::git::RepoPath;
use refrain_core::protect::{Kind, Part, ProtectedPaths};

use crate::error::GitError;
use crate::plumbing::disk;
use crate::plumbing::git::Git;
use crate::repository::Repository;

/// The place of ignore rules from outside the worktree in the tree of protected files: no walk comes here.
pub(crate) const RULES: &str = ".refrain/ignored";

/// Folders that interpreters and runners create anywhere, even inside a fully protected folder.
const CACHES: [&str; 4] = ["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];

/// How many files and folders a worktree may have for its protection to be checked.
const MOST: usize = 2_000_000;

#[derive(Debug)]
pub(crate) struct ProtectedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) mode: &'static str,
}

impl ProtectedFile {
    pub(crate) const FILE: &str = "100644";
    const PROGRAM: &str = "100755";
    const LINK: &str = "120000";

    pub(crate) fn kind_of(mode: &str) -> Kind {
        if mode == Self::LINK { Kind::Link } else { Kind::File }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) paths: &'a ProtectedPaths,
    pub(crate) parts: &'a [Part],
    /// Ignored folders, without a trailing slash.
    pub(crate) ignored: &'a BTreeSet<Vec<u8>>,
}

impl Walk<'_> {
    /// All matches, in no order.
    pub(crate) fn of(self, root: &Utf8Path) -> Result<Vec<ProtectedFile>, GitError> {
        let parts: BTreeSet<Vec<u8>> = self.parts.iter().map(|part| part.path.to_bytes()).collect();
        let (mut found, mut seen) = (Vec::new(), 0);
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop() {
            // A folder that cannot be read counts as empty: its files count as removed.
            for entry in fs::read_dir(root.as_std_path().join(OsStr::from_bytes(&folder)))
                .into_iter()
                .flatten()
                .flatten()
            {
                seen += 1;
                if seen > MOST {
                    return Err(GitError::TooLarge { most: MOST });
                }
                let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
                if name == ".git" || (folder.is_empty() && name == ".refrain") {
                    continue;
                }
                let path = below(&folder, &name);
                if kind.is_dir() {
                    if !CACHES.iter().any(|cache| name == *cache) && !self.passes_over(&path) {
                        folders.push(path);
                    }
                } else if let Some(mode) = self.mode(&entry.path(), &path, parts.contains(&path)) {
                    found.push(ProtectedFile { kind: ProtectedFile::kind_of(mode), mode, path });
                }
            }
        }
        Ok(found)
    }

    fn passes_over(&self, folder: &[u8]) -> bool {
        self.ignored.contains(folder) && !self.paths.is_bound_to(&RepoPath::from_bytes(folder))
    }

    /// The mode of a relevant file or link; none if it is irrelevant or cannot be read.
    fn mode(&self, on_disk: &Path, path: &[u8], is_part: bool) -> Option<&'static str> {
        let name = RepoPath::from_bytes(path);
        let meta = fs::symlink_metadata(on_disk).ok()?;
        let kind = if meta.is_symlink() { Kind::Link } else { Kind::File };
        if kind == Kind::Link && self.paths.covers(&name, kind) {
            return Some(ProtectedFile::LINK);
        }
        // A manifest may be a link: its content counts.
        let meta = if is_part { fs::metadata(on_disk).ok()? } else { meta };
        let matters = is_part || path.ends_with(b".gitignore") || self.paths.covers(&name, Kind::File);
        if !matters || !meta.is_file() || rustix::fs::access(on_disk, rustix::fs::Access::READ_OK).is_err() {
            return None;
        }
        Some(if meta.permissions().mode() & 0o100 == 0 {
            ProtectedFile::FILE
        } else {
            ProtectedFile::PROGRAM
        })
    }
}

fn below(folder: &[u8], name: &OsStr) -> Vec<u8> {
    if folder.is_empty() { name.as_bytes().to_vec() } else { [folder, b"/", name.as_bytes()].concat() }
}

/// The content of a file of ignore rules at the start; none if there was none.
pub(crate) type Before<'a> = &'a dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, GitError>;

/// The folders that git ignores as a whole; with `before`, only by rules that existed at the start.
pub(crate) fn ignored(git: Git<'_>, before: Option<Before<'_>>) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let asked = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
    let listed = git.output(asked, &[])?;
    let mut input = Vec::new();
    for folder in listed.split_inclusive(|byte| *byte == 0).filter(|record| record.ends_with(b"/\0")) {
        input.extend_from_slice(folder);
    }
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    // It exits with 1 if there is none.
    let told = Git::run(git, ["check-ignore", "--verbose", "-z", "--stdin"], &input)?.stdout;
    let fields: Vec<&[u8]> = told.split(|byte| *byte == 0).collect();
    let mut sources: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
    let mut folders = BTreeSet::new();
    for record in fields.chunks_exact(4) {
        let &[source, _, pattern, folder] = record else { continue };
        let is_known = match before {
            None => true,
            Some(before) => {
                if !sources.contains_key(source) {
                    let kept = if is_in_worktree(source) { source } else { RULES.as_bytes() };
                    sources.insert(source, before(kept)?.unwrap_or_default());
                }
                sources[source].split(|byte| *byte == b'\n').any(|line| line.trim_ascii_end() == pattern)
            }
        };
        if is_known {
            folders.insert(folder.strip_suffix(b"/").unwrap_or(folder).to_vec());
        }
    }
    Ok(folders)
}

fn is_in_worktree(source: &[u8]) -> bool {
    source == b".gitignore" || (source.ends_with(b"/.gitignore") && !source.starts_with(b"/"))
}

/// The ignore rules outside the worktree: the repository's own, and the user's for all repositories.
pub(crate) fn rules_elsewhere(repository: &Repository, git: Git<'_>) -> Result<Vec<u8>, GitError> {
    let configured = git.run(["config", "--type=path", "--get", "core.excludesFile"], &[])?.stdout;
    let configured = configured.strip_suffix(b"\n").filter(|path| !path.is_empty());
    let general = match configured {
        Some(path) => Some(repository.on_disk(path)),
        None => {
            let home = |name: &str, rest: &str| {
                let value =
                    repository.env().iter().rev().find(|(set, _)| set == name).map(|(_, value)| value)?;
                (!value.is_empty()).then(|| PathBuf::from(value).join(rest))
            };
            home("XDG_CONFIG_HOME", "git/ignore").or_else(|| home("HOME", ".config/git/ignore"))
        }
    };
    let own = repository.common_dir().join("info/exclude").into_std_path_buf();
    let read =
        |path: PathBuf| Utf8Path::from_path(&path).and_then(|path| disk::read(path).ok()).unwrap_or_default();
    Ok([read(own), b"\n".to_vec(), general.map(read).unwrap_or_default()].concat())
}
