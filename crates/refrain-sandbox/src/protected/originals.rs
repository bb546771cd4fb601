//! What is at protected places before a program runs. A program creates what was missing, and without namespaces it can
//! change files too: a later program would run it, or believe it. While the program runs, a record on disk says it too, for
//! the case that all processes that know it are killed.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

use camino::{Utf8Path, Utf8PathBuf};
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
        there.extend(programs(policy));
        let files = match policy.mechanism {
            // Nothing there can be changed.
            Mechanism::Namespaces => Vec::new(),
            Mechanism::Files => {
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
    let (mut found, mut open) = (BTreeSet::new(), folders.to_vec());
    while let Some((folder, is_deep)) = open.pop() {
        if folder.is_symlink() {
            // One without a slash at its end.
            found.insert(folder.components().collect());
            continue;
        }
        for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => drop(found.insert(entry.path().to_owned())),
                Ok(kind) if kind.is_dir() && is_deep => open.push((entry.path().to_owned(), true)),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

/// Endings of scripts that are started by their language, and of settings that the user can choose, which name programs.
const SCRIPTS: [&str; 9] = ["sh", "bash", "zsh", "py", "js", "mjs", "ts", "rb", "toml"];

/// The programs that lie in folders of the policy.
pub(crate) fn programs(policy: &Policy) -> Vec<Utf8PathBuf> {
    let entries = policy.programs_in.iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten();
    let paths = entries.flatten().map(|entry| entry.path().to_owned());
    let is_program = |path: &Utf8PathBuf| {
        let metadata = path.metadata().ok().filter(fs::Metadata::is_file);
        metadata.is_some_and(|metadata| {
            metadata.permissions().mode() & 0o111 != 0
                || path.extension().is_some_and(|it| SCRIPTS.contains(&it))
        })
    };
    paths.filter(is_program).collect()
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
}
