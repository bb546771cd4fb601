//! What is at protected places before a program runs. A program creates what was missing, and without namespaces it can
//! change files too: a later program would run it, or believe it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use camino::{ReadDirUtf8, Utf8DirEntry, Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{Mechanism, Policy};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::Restored;
use super::original::{self, FileState, Original, put_aside};
use super::placeholders::{self, Placeholder};
use crate::refusal::{At, Refusal, Step};
use crate::system::paths::{self, kind};

/// How many bytes of large files are copied to be put back.
const MOST_COPIED: u64 = 256 << 20;
const TOO_LARGE: &str = "without namespaces, at most 256 MiB of large programs and settings can be put back; move it out of the agent's home, or use --sandbox";

/// The protected places of a policy before its program runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Originals {
    missing: Vec<Utf8PathBuf>,
    /// Those that can be changed.
    files: Vec<(Utf8PathBuf, Original)>,
    #[serde(default)]
    hard_linked: Vec<Utf8PathBuf>,
    no_links: Vec<(Utf8PathBuf, bool)>,
    /// By their names.
    links: BTreeSet<String>,
    /// Where they lead.
    #[serde(default)]
    targets: BTreeMap<String, Vec<u8>>,
    /// Folders in which no link is looked for: Refrain's own.
    #[serde(default)]
    hidden: Vec<Utf8PathBuf>,
    placeholders: Vec<Placeholder>,
}

impl Originals {
    /// What is there now; or what other sandboxes recorded that run: their programs may have changed it a moment before.
    pub(crate) fn read(policy: &Policy, others: &[Self], placeholders: Vec<Placeholder>) -> Self {
        let is_files = policy.mechanism == Mechanism::Files;
        let (mut missing, mut files) = (Vec::new(), Vec::new());
        let add = |path: &Utf8Path, files: &mut Vec<_>| {
            let can_be_changed = |it: &Utf8PathBuf| policy.write.iter().any(|folder| it.starts_with(folder));
            let paths = paths::with_targets(path, policy).unwrap_or_default().into_iter();
            let paths = paths.filter(|it| it == path || can_be_changed(it));
            files.extend(paths.filter_map(|path| Original::read(&path).map(|file| (path, file))));
        };
        for path in policy.read_only.iter().cloned() {
            // Without namespaces the program can change a placeholder of another sandbox.
            let is_placeholder = || placeholders.iter().any(|(placeholder, _)| *placeholder == path);
            let is_missing = || others.iter().any(|other| other.missing.contains(&path));
            if let Some(file) = recorded(others, &path) {
                files.push((path, file));
            } else if kind(&path).is_none() || is_missing() || is_files && is_placeholder() {
                missing.push(path);
            } else if is_files {
                // With namespaces nothing there can be changed.
                add(&path, &mut files);
            }
        }
        for path in others.iter().flat_map(|other| other.files.iter().map(|(path, _)| path)) {
            let is_program =
                path.parent().is_some_and(|folder| policy.programs_in.iter().any(|it| it == folder))
                    && policy.protects_programs_at(path);
            if let Some(file) = is_program.then(|| recorded(others, path)).flatten() {
                files.push((path.clone(), file));
            }
        }
        if is_files {
            for path in programs(policy) {
                add(&path, &mut files);
            }
            // What several lead to, or another sandbox recorded before.
            let mut known = BTreeSet::new();
            files.retain(|(path, _)| known.insert(path.clone()));
        }
        let is_searched =
            |path: &&Utf8PathBuf| policy.no_links.iter().any(|(folder, _)| path.starts_with(folder));
        let hidden: Vec<_> = policy.hide.iter().filter(is_searched).cloned().collect();
        let mut targets = BTreeMap::new();
        for (name, path) in links(&policy.no_links, &hidden) {
            let by_other = others.iter().find(|other| other.searches(&path));
            let target = match by_other {
                Some(other) if !other.links.contains(&name) => continue,
                Some(other) => other.targets.get(&name).cloned(),
                None => None,
            };
            targets.insert(name, target.unwrap_or_else(|| original::target(&path)));
        }
        let was_hard_linked = |path: &&Utf8PathBuf| match others.iter().find(|other| other.has_file(path)) {
            Some(other) => other.hard_linked.contains(path),
            None => original::is_hard_linked(path),
        };
        let hard_linked = files.iter().map(|(path, _)| path).filter(was_hard_linked).cloned().collect();
        Self {
            missing,
            hard_linked,
            files,
            links: targets.keys().cloned().collect(),
            targets,
            hidden,
            no_links: policy.no_links.clone(),
            placeholders,
        }
    }

    pub(crate) fn of_placeholders(placeholders: Vec<Placeholder>) -> Self {
        Self { placeholders, ..Self::default() }
    }

    fn has_file(&self, path: &Utf8Path) -> bool {
        self.files.iter().any(|(recorded, _)| recorded == path)
    }

    /// Whether a new symbolic link there is removed when the program has ended.
    fn searches(&self, path: &Path) -> bool {
        let is_searched = |(folder, is_deep): &(Utf8PathBuf, bool)| match is_deep {
            true => path.starts_with(folder),
            false => path == folder.as_std_path() || path.parent() == Some(folder.as_std_path()),
        };
        self.no_links.iter().any(is_searched) && !self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// The placeholders of a policy that are to be made: those that are missing, and those that other sandboxes made. What is
    /// there otherwise is the user's, whatever is in it.
    pub(crate) fn placeholders(policy: &Policy, others: &[Self]) -> Vec<Placeholder> {
        let made = || others.iter().flat_map(|other| &other.placeholders);
        let to_be_made = policy.placeholders.iter();
        let to_be_made = to_be_made.filter(|it| kind(&it.0).is_none() || made().any(|made| made == *it));
        let joined = made().filter(|(path, _)| {
            policy.read_only.contains(path) && !policy.placeholders.iter().any(|(own, _)| own == path)
        });
        to_be_made.chain(joined).cloned().collect()
    }

    /// Copies large files with `copy`, which gets the number of the copy.
    pub(crate) fn copy_large(
        &mut self,
        mut copy: impl FnMut(usize, File) -> io::Result<Utf8PathBuf>,
    ) -> Result<(), Refusal> {
        let mut left = MOST_COPIED;
        for (number, (path, original)) in self.files.iter_mut().enumerate() {
            let Original::Copy { copy: content, .. } = original else { continue };
            // That of another sandbox is gone with it, and then the file is as it was.
            let opened = original::open(content).or_else(|| original::open(path));
            let Some((file, metadata)) = opened else { continue };
            left = left
                .checked_sub(metadata.len())
                .ok_or_else(|| io::Error::other(TOO_LARGE))
                .at_path(Step::Plan, path)?;
            *content = copy(number, file).at_path(Step::Plan, path)?;
        }
        Ok(())
    }

    pub(crate) fn copies(&self) -> impl Iterator<Item = &Utf8PathBuf> {
        self.files.iter().filter_map(|(_, original)| match original {
            Original::Copy { copy, .. } => Some(copy),
            Original::File(..) | Original::Link { .. } => None,
        })
    }

    /// Renames what was created, and puts back what was changed.
    pub(crate) fn restore(&self) -> Restored {
        let mut restored = Restored::default();
        placeholders::remove(&self.placeholders);
        for (name, path) in links(&self.no_links, &self.hidden) {
            let then = self.targets.get(&name);
            let is_as_before = || then.is_none_or(|then| original::target(&path) == *then);
            if self.links.contains(&name) && is_as_before() {
                continue;
            }
            let before = then.filter(|then| !then.is_empty());
            let again = |()| before.map_or(Ok(()), |then| paths::link(OsStr::from_bytes(then), &path));
            let what = if kind(&path) == Some(FileType::Fifo) { "FIFO" } else { "link" };
            restored.add(match paths::remove(&path, AtFlags::empty()).and_then(again) {
                // Another sandbox was faster.
                Err(_) if !kind(&path).is_some_and(misleads) || before.is_some() && is_as_before() => {
                    continue;
                }
                Ok(()) if before.is_some() => {
                    Ok(format!("{name} is a link of yours; it leads where it led before"))
                }
                Ok(()) => Ok(format!("{name} was a {what} that the program made; it is removed")),
                Err(error) => Err(format!("{name} is a {what} that the program made, and it stays: {error}")),
            });
        }
        let is_placeholder = |path: &Utf8PathBuf| {
            self.placeholders.iter().any(|it| it.0 == *path && placeholders::is_there(it))
        };
        for path in self.missing.iter().filter(|path| kind(path).is_some() && !is_placeholder(path)) {
            restored.add(match put_aside(path) {
                Ok(aside) => Ok(format!("{path} is protected; what was created there is now {aside}")),
                Err(error) => Err(format!("{path} is protected, and what was created there stays: {error}")),
            });
        }
        for (path, file) in &self.files {
            match file.at(path, self.hard_linked.contains(path)) {
                FileState::Kept => {}
                FileState::Unsure => restored.failed.extend(file.renew(path).err().map(|error| {
                    format!("{path} is protected, and what has it open could change it: {error}")
                })),
                FileState::Changed => restored.add(match file.put_back(path) {
                    Ok(()) => Ok(format!("{path} is protected; it is as it was before")),
                    Err(error) => Err(format!("{path} is protected, and it was changed: {error}")),
                }),
            }
        }
        restored
    }
}

/// A file as the first of the records says.
fn recorded(others: &[Originals], path: &Utf8Path) -> Option<Original> {
    others
        .iter()
        .flat_map(|other| &other.files)
        .find(|(recorded, _)| recorded == path)
        .map(|(_, file)| file.clone())
}

/// What leads a program elsewhere, or keeps one waiting for ever that opens it.
fn misleads(kind: FileType) -> bool {
    matches!(kind, FileType::Symlink | FileType::Fifo)
}

/// The symbolic links and FIFOs in folders, and below those that say so, by their names; none in what is hidden.
fn links(folders: &[(Utf8PathBuf, bool)], hidden: &[Utf8PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut add = |path: PathBuf| drop(found.insert(link_name(&path), path));
    let mut open: Vec<_> = folders.iter().map(|(path, is_deep)| (path.clone().into(), *is_deep)).collect();
    while let Some((folder, is_deep)) = open.pop() {
        let folder: PathBuf = folder;
        if hidden.iter().any(|hidden| hidden.as_std_path() == folder) {
            continue;
        }
        match kind(&folder) {
            Some(FileType::Symlink) => {
                add(folder);
                continue;
            }
            // A program that writes it can refuse to have it listed and changed.
            Some(FileType::Directory) => {
                let _ = paths::open(&folder).and_then(|folder| paths::open_to_owner(&folder));
            }
            _ => continue,
        }
        let Ok(listed) = paths::open_file(&folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) else {
            continue;
        };
        for entry in Dir::read_from(listed).into_iter().flatten().flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            match entry.file_type() {
                kind if misleads(kind) => add(folder.join(name)),
                FileType::Directory if is_deep && name != "." && name != ".." => {
                    open.push((folder.join(name), true));
                }
                _ => {}
            }
        }
    }
    found
}

/// A name that no other path has: bytes that are no text are escaped.
fn link_name(path: &Path) -> String {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), str::to_owned)
}

/// What is below a folder, through no link; with an error for a folder that cannot be read.
fn entries_below(folder: &Utf8Path) -> impl Iterator<Item = io::Result<Utf8DirEntry>> {
    let (mut open, mut current) = (vec![folder.to_owned()], None::<ReadDirUtf8>);
    std::iter::from_fn(move || {
        loop {
            if let Some(next) = current.as_mut().and_then(Iterator::next) {
                if let Ok(entry) = &next
                    && entry.file_type().is_ok_and(|kind| kind.is_dir())
                {
                    open.push(entry.path().to_owned());
                }
                return Some(next);
            }
            current = match open.pop()?.read_dir_utf8() {
                Ok(entries) => Some(entries),
                Err(error) => return Some(Err(error)),
            };
        }
    })
}

/// Endings of scripts that are started by their language, and of settings that the user can choose, which name programs.
const SCRIPTS: [&str; 20] = [
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb", "pl",
    "php", "lua", "jar", "ps1", "toml",
];
/// How many entries of a folder are looked at. One with more is protected as if it held a program.
const MOST_ENTRIES: usize = 4096;

/// The programs that lie in folders of the policy, and the folders there that hold programs.
pub(crate) fn programs(policy: &Policy) -> Vec<Utf8PathBuf> {
    let entries = policy.programs_in.iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten();
    let paths = entries.flatten().map(|entry| entry.path().to_owned());
    let is_protected = |path: &Utf8PathBuf| {
        policy.protects_programs_at(path)
            && path.metadata().is_ok_and(|metadata| match policy.mechanism {
                Mechanism::Namespaces if metadata.is_dir() => holds_programs(path, MOST_ENTRIES),
                Mechanism::Namespaces | Mechanism::Files => is_program(path, &metadata),
            })
    };
    paths.filter(is_protected).collect()
}

fn is_program(path: &Utf8Path, metadata: &fs::Metadata) -> bool {
    let is_executable = || metadata.permissions().mode() & 0o111 != 0;
    metadata.is_file() && (is_executable() || path.extension().is_some_and(|it| SCRIPTS.contains(&it)))
}

/// Whether a folder holds a program, however deep. What cannot be looked at may be one.
fn holds_programs(folder: &Utf8Path, most: usize) -> bool {
    let may_be_program = |entry: io::Result<Utf8DirEntry>| {
        let Ok(entry) = entry else { return true };
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let metadata = entry.path().metadata();
        metadata.is_ok_and(|metadata| is_program(entry.path(), &metadata) || is_link && metadata.is_dir())
    };
    entries_below(folder).enumerate().any(|(number, entry)| number >= most || may_be_program(entry))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        (dir, root)
    }

    fn write(path: &Utf8Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().set_permissions(Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_that_holds_a_program_is_protected_and_data_are_not() {
        let (_dir, home) = folder();
        for name in ["statusline.sh", "scripts/deep/notify.py", "data/hook.sh", "notes/text.md", "auth.json"]
        {
            write(&home.join(name), 0o644);
        }
        write(&home.join("ccline/ccline"), 0o755);
        write(&home.join("hidden/run.sh"), 0o644);
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, home.join(name)).unwrap();
        link("scripts", "linked");
        link("notes", "linked-notes");
        write(&home.join("leading/text.md"), 0o644);
        link("../notes", "leading/folder");
        assert!(!holds_programs(&home.join("notes"), 1) && holds_programs(&home.join("notes"), 0));
        let policy = Policy {
            programs_in: vec![home.clone()],
            data: vec![home.join("data")],
            hide: vec![home.join("hidden")],
            ..Policy::default()
        };
        let protected = |mechanism| {
            let mut paths = programs(&Policy { mechanism, ..policy.clone() });
            paths.sort();
            paths.into_iter().map(|path| path.strip_prefix(&home).unwrap().to_string()).collect::<Vec<_>>()
        };
        let expected = ["ccline", "leading", "linked", "scripts", "statusline.sh"];
        assert_eq!(protected(Mechanism::Namespaces), expected);
        assert_eq!(protected(Mechanism::Files), ["statusline.sh"], "a folder cannot be put back");
    }

    #[test]
    fn a_link_is_found_in_a_folder_that_a_program_made_inaccessible() {
        let (_dir, home) = folder();
        write(&home.join("data/deep/er/text"), 0o644);
        std::os::unix::fs::symlink("/usr", home.join("data/before")).unwrap();
        let policy = Policy { no_links: vec![(home.join("data"), true)], ..Policy::default() };
        let originals = Originals::read(&policy, &[], Vec::new());
        let planted = home.join("data/deep/er/planted");
        std::os::unix::fs::symlink("/usr", &planted).unwrap();
        let mode = |name: &str, mode| {
            fs::set_permissions(home.join(name), Permissions::from_mode(mode)).unwrap();
        };
        mode("data/deep/er", 0o111);
        mode("data/deep", 0o600);
        let removed = format!("{planted} was a link that the program made; it is removed");
        assert_eq!(originals.restore().lines, [removed]);
        assert!(!planted.is_symlink() && home.join("data/before").is_symlink());
        let fifo = home.join("data/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, fifo.as_str(), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let with_own = Originals::read(&policy, &[], Vec::new());
        let removed = format!("{fifo} was a FIFO that the program made; it is removed");
        assert_eq!(originals.restore().lines, [removed]);
        rustix::fs::mknodat(rustix::fs::CWD, fifo.as_str(), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(with_own.restore().lines, [""; 0], "one of the user's stays");
        std::fs::remove_file(&fifo).unwrap();
        assert_eq!(originals.restore().lines, [""; 0]);
    }
}
