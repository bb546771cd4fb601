//! What is at protected places before a program runs. A program creates what was missing, and without namespaces it can
//! change files too: a later program would run it, or believe it. While the program runs, a record on disk says it too, for
//! the case that all processes that know it are killed.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

use camino::{ReadDirUtf8, Utf8DirEntry, Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{Mechanism, Policy};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::placeholders::{self, Placeholder};

/// The largest file that is put back.
const LARGEST: u64 = 1 << 20;
/// The ending of a record.
const RECORD: &str = "json";

/// The protected places of a policy before its program runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Originals {
    missing: Vec<Utf8PathBuf>,
    /// With their content and their mode.
    files: Vec<(Utf8PathBuf, (Vec<u8>, u32))>,
    no_links: Vec<(Utf8PathBuf, bool)>,
    links: BTreeSet<Utf8PathBuf>,
    placeholders: Vec<Placeholder>,
}

impl Originals {
    pub(crate) fn read(policy: &Policy) -> Self {
        let (mut there, missing): (Vec<_>, Vec<_>) =
            policy.read_only.iter().cloned().partition(|path| path.symlink_metadata().is_ok());
        let placeholders = policy.placeholders.clone();
        let files = match policy.mechanism {
            // Nothing there can be changed.
            Mechanism::Namespaces => Vec::new(),
            Mechanism::Files => {
                there.extend(programs(policy));
                let file = |path: Utf8PathBuf| read_file(&path).map(|file| (path, file));
                there.into_iter().filter_map(file).collect()
            }
        };
        Self {
            missing,
            files,
            links: links(&policy.no_links),
            no_links: policy.no_links.clone(),
            placeholders,
        }
    }

    /// Renames what was created, and puts back what was changed. Returns a line for each.
    pub(crate) fn restore(&self) -> Vec<String> {
        let mut lines = Vec::new();
        placeholders::remove(&self.placeholders);
        for path in links(&self.no_links).difference(&self.links) {
            if let Err(error) = fs::remove_file(path) {
                lines.push(format!("{path} is a link that the program made, and it stays: {error}"));
            } else {
                lines.push(format!("{path} was a link that the program made; it is removed"));
            }
        }
        for path in self.missing.iter().filter(|path| path.symlink_metadata().is_ok()) {
            lines.push(match put_aside(path) {
                Ok(aside) => format!("{path} is protected; what was created there is now {aside}"),
                Err(error) => format!("{path} is protected, and what was created there stays: {error}"),
            });
        }
        for (path, file) in &self.files {
            if read_file(path).is_some_and(|(now, _)| now == file.0) {
                continue;
            }
            lines.push(match put_back(path, file) {
                Ok(()) => format!("{path} is protected; it is as it was before"),
                Err(error) => format!("{path} is protected, and it was changed: {error}"),
            });
        }
        lines
    }

    /// Writes the record into a folder that the program does not see. It is removed with the value, and stays if this process
    /// is killed.
    pub(crate) fn record(&self, folder: &Utf8Path) -> io::Result<Record> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{}.{RECORD}", std::process::id()));
        let new = path.with_extension("new");
        let mut lock = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        lock.lock()?;
        lock.write_all(&serde_json::to_vec(self)?)?;
        // A process that reads it finds it locked.
        fs::rename(new, &path)?;
        Ok(Record { path, _lock: lock })
    }
}

/// A record of a program that runs.
pub(crate) struct Record {
    path: Utf8PathBuf,
    _lock: File,
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The same once process 1 of a sandbox is gone: when the outer process is killed, the others live a moment longer.
#[must_use]
pub fn restore_after(init: Option<&OwnedFd>, folder: &Utf8Path) -> Vec<String> {
    if let Some(init) = init {
        while matches!(poll(&mut [PollFd::new(init, PollFlags::IN)], None), Err(Errno::INTR)) {}
    }
    restore_left(folder)
}

/// Restores what the records in a folder say whose sandboxes were killed. Returns a line for each place.
#[must_use]
pub fn restore_left(folder: &Utf8Path) -> Vec<String> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let records =
        entries.map(|entry| entry.path().to_owned()).filter(|path| path.extension() == Some(RECORD));
    let restore = |path: Utf8PathBuf| {
        let mut file = File::open(&path).ok()?;
        file.try_lock().ok()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        let lines = serde_json::from_slice::<Originals>(&text).map(|originals| originals.restore());
        let _ = fs::remove_file(path);
        lines.ok()
    };
    records.filter_map(restore).flatten().collect()
}

/// The symbolic links in folders, and below those that say so.
fn links(folders: &[(Utf8PathBuf, bool)]) -> BTreeSet<Utf8PathBuf> {
    let mut found = BTreeSet::new();
    for (folder, is_deep) in folders {
        if folder.is_symlink() {
            // One without a slash at its end.
            found.insert(folder.components().collect());
            continue;
        }
        let links = entries(folder, *is_deep, |folder| {
            make_accessible(folder);
            folder.read_dir_utf8()
        });
        let links = links.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        found.extend(links.map(|entry| entry.path().to_owned()));
    }
    found
}

/// Lets the user list and change a folder: a program that can write it can refuse both.
fn make_accessible(folder: &Utf8Path) {
    let Ok(metadata) = folder.symlink_metadata() else { return };
    let mode = metadata.permissions().mode();
    if metadata.is_dir() && mode & 0o700 != 0o700 {
        let _ = fs::set_permissions(folder, Permissions::from_mode(mode | 0o700));
    }
}

/// What is in a folder, and below it, through no link; with an error for a folder that cannot be read.
fn entries(
    folder: &Utf8Path,
    is_deep: bool,
    read: fn(&Utf8Path) -> io::Result<ReadDirUtf8>,
) -> impl Iterator<Item = io::Result<Utf8DirEntry>> {
    let (mut open, mut current) = (vec![folder.to_owned()], None::<ReadDirUtf8>);
    std::iter::from_fn(move || {
        loop {
            if let Some(next) = current.as_mut().and_then(Iterator::next) {
                if let Ok(entry) = &next
                    && is_deep
                    && entry.file_type().is_ok_and(|kind| kind.is_dir())
                {
                    open.push(entry.path().to_owned());
                }
                return Some(next);
            }
            current = match read(&open.pop()?) {
                Ok(entries) => Some(entries),
                Err(error) => return Some(Err(error)),
            };
        }
    })
}

/// Endings of scripts that are started by their language, and of settings that the user can choose, which name programs.
const SCRIPTS: [&str; 9] = ["sh", "bash", "zsh", "py", "js", "mjs", "ts", "rb", "toml"];
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
    entries(folder, true, Utf8Path::read_dir_utf8)
        .enumerate()
        .any(|(number, entry)| number >= most || may_be_program(entry))
}

/// The content of a regular file; none if it is something else.
fn read_file(path: &Utf8Path) -> Option<(Vec<u8>, u32)> {
    let metadata = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then(|| (bytes, metadata.permissions().mode()))
}

fn put_aside(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let name = path.file_name().unwrap_or_default();
    let names = (1..100).map(|number| path.with_file_name(format!("{name}.refrain-refused-{number}")));
    let free = names.into_iter().find(|aside| aside.symlink_metadata().is_err());
    let aside = free.ok_or_else(|| io::Error::other("there are too many such files already"))?;
    fs::rename(path, &aside).map(|()| aside)
}

fn put_back(path: &Utf8Path, (bytes, mode): &(Vec<u8>, u32)) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        put_aside(path)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(Permissions::from_mode(*mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_restores_what_killed_processes_left() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        let (records, kept, planted) = (root.join("records"), root.join("kept"), root.join("planted"));
        let write = |path: &Utf8Path, text: &str| {
            File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        write(&kept, "mine");
        let policy = Policy {
            mechanism: Mechanism::Files,
            read_only: vec![kept.clone(), planted.clone()],
            no_links: vec![(root.to_owned(), false)],
            ..Policy::default()
        };
        let originals = Originals::read(&policy);
        let record = originals.record(&records).unwrap();
        write(&kept, "of the agent");
        write(&planted, "of the agent");
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        assert_eq!(restore_left(&records), [""; 0], "it runs");
        // As the kernel does with a killed process: the lock is gone, and the file stays.
        let Record { path, _lock } = &record;
        _lock.unlock().unwrap();
        assert_eq!(restore_left(&records).len(), 3);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
        assert!(!planted.exists() && !root.join("link").is_symlink() && !path.exists());
        write(&planted, "of the user");
        assert_eq!(restore_left(&records), [""; 0], "once");
        assert!(planted.exists());
    }

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().to_owned();
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
        let originals = Originals::read(&policy);
        let planted = home.join("data/deep/er/planted");
        std::os::unix::fs::symlink("/usr", &planted).unwrap();
        let mode = |name: &str, mode| {
            fs::set_permissions(home.join(name), Permissions::from_mode(mode)).unwrap();
        };
        mode("data/deep/er", 0o111);
        mode("data/deep", 0o600);
        assert_eq!(
            originals.restore(),
            [format!("{planted} was a link that the program made; it is removed")]
        );
        assert!(!planted.is_symlink() && home.join("data/before").is_symlink());
        assert_eq!(originals.restore(), [""; 0]);
    }
}
