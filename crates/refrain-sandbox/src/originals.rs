//! What is at protected places before a program runs. A program creates what was missing, and without namespaces it can
//! change files too: a later program would run it, or believe it.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::sandbox::{Mechanism, Policy};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// The largest file that is put back.
const LARGEST: u64 = 1 << 20;

/// The protected places of a policy before its program runs.
#[derive(Debug, Default)]
pub struct Originals {
    missing: Vec<Utf8PathBuf>,
    files: Vec<(Utf8PathBuf, (Vec<u8>, Permissions))>,
    no_links: Vec<(Utf8PathBuf, bool)>,
    links: BTreeSet<Utf8PathBuf>,
}

impl Originals {
    #[must_use]
    pub fn read(policy: &Policy) -> Self {
        let (mut there, missing): (Vec<_>, Vec<_>) =
            policy.read_only.iter().cloned().partition(|path| path.symlink_metadata().is_ok());
        there.extend(programs(policy));
        let files = match policy.mechanism {
            // Nothing there can be changed.
            Mechanism::Namespaces => Vec::new(),
            Mechanism::Files => {
                let file = |path: Utf8PathBuf| read_file(&path).map(|file| (path, file));
                there.into_iter().filter_map(file).collect()
            }
        };
        Self { missing, files, links: links(&policy.no_links), no_links: policy.no_links.clone() }
    }

    /// The same once process 1 of the sandbox is gone: when the outer process is killed, the others live a moment longer.
    #[must_use]
    pub fn restore_after(&self, init: Option<&OwnedFd>) -> Vec<String> {
        if let Some(init) = init {
            while matches!(poll(&mut [PollFd::new(init, PollFlags::IN)], None), Err(Errno::INTR)) {}
        }
        self.restore()
    }

    /// Renames what was created, and puts back what was changed. Returns a line for each.
    #[must_use]
    pub fn restore(&self) -> Vec<String> {
        let mut lines = Vec::new();
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

/// Endings of scripts that are started by their language.
const SCRIPTS: [&str; 8] = ["sh", "bash", "zsh", "py", "js", "mjs", "ts", "rb"];

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
fn read_file(path: &Utf8Path) -> Option<(Vec<u8>, Permissions)> {
    let metadata = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then(|| (bytes, metadata.permissions()))
}

fn put_aside(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let name = path.file_name().unwrap_or_default();
    let names = (1..100).map(|number| path.with_file_name(format!("{name}.refrain-refused-{number}")));
    let free = names.into_iter().find(|aside| aside.symlink_metadata().is_err());
    let aside = free.ok_or_else(|| io::Error::other("there are too many such files already"))?;
    fs::rename(path, &aside).map(|()| aside)
}

fn put_back(path: &Utf8Path, (bytes, permissions): &(Vec<u8>, Permissions)) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        put_aside(path)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(permissions.clone())?;
    file.write_all(bytes)?;
    file.sync_all()
}
