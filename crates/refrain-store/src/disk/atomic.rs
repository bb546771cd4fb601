//! One helper for whole files that must never be seen half written.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use camino::Utf8Path;
use refrain_files::{Folder, split};
use rustix::fs::{Access, OFlags, access};
use serde::Serialize;

use crate::{DiskError, OnPath};

/// The JSON that is to be written to `path`.
pub(crate) fn encode(path: &Utf8Path, value: &impl Serialize) -> Result<Vec<u8>, DiskError> {
    serde_json::to_vec(value).map_err(io::Error::from).on("encode", path)
}

/// Opens a file for writing, and makes it for the user alone if there is none. What it has is kept.
pub(crate) fn open_private(path: &Utf8Path) -> Result<File, DiskError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600).open(path).on("open", path)
}

/// Replaces `path` with `bytes`. After it returns, a crash or a power loss leaves the new file; before, the old one or
/// none; never a mixture. Costs two syncs: the file, then the folder that names it.
///
/// Its folder may be reached through links: it is the user's. Where an agent can write, it is [`write_nofollow`].
/// Errors: [`DiskError`]; `path` is then as it was.
pub fn write_atomic(path: &Utf8Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace(path, bytes, Folder::open_trusted)
}

/// Replaces `path` as [`write_atomic`] does. A link in the path is an error: an agent could have put it there.
/// Errors: [`DiskError`]; `path` is then as it was.
pub fn write_nofollow(path: &Utf8Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace(path, bytes, Folder::open)
}

fn replace(
    path: &Utf8Path,
    bytes: &[u8],
    open: fn(&Utf8Path) -> std::io::Result<Folder>,
) -> Result<(), DiskError> {
    let (dir, name) = split(path).on("write", path)?;
    let dir = if dir.as_str().is_empty() { Utf8Path::new(".") } else { dir };
    open(dir).and_then(|dir| dir.replace(name, bytes)).on("write", path)
}

/// Makes `path` with `bytes`, with the mode that files of the person's have; whether it did: if something is there,
/// even a link that leads nowhere, that stays. After it returns, a crash or a power loss leaves the new file; before,
/// none.
/// Errors: [`DiskError`]; nothing was made then.
pub fn create(path: &Utf8Path, bytes: &[u8]) -> Result<bool, DiskError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    // The process's own mask takes from it.
    let mode = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(dir).on("create a file in", dir)?;
    file.write_all(bytes).on("write", path)?;
    file.as_file().sync_all().on("sync", path)?;
    match file.persist_noclobber(path) {
        Ok(_) => sync_dir(dir).map(|()| true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error).on("create", path),
    }
}

/// Whether [`create`] can make a file at `path`.
pub fn check_folder(path: &Utf8Path) -> Result<(), DiskError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    access(dir.as_std_path(), Access::WRITE_OK | Access::EXEC_OK)
        .map_err(io::Error::from)
        .on("create a file in", dir)
}

/// Appends `bytes` to the file at `path`, which is no link. Its old content stays in any case; a power loss may leave a
/// part of what was added, until this returns.
/// Errors: [`DiskError`]; a part may have been added then.
pub fn append(path: &Utf8Path, bytes: &[u8]) -> Result<(), DiskError> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = File::options().append(true).custom_flags(flags).open(path).on("open", path)?;
    file.write_all(bytes).on("write", path)?;
    file.sync_all().on("sync", path)
}

/// Replaces `path`, which is there, with `bytes`, as [`write_atomic`] does, and keeps its mode. `is_current` is asked
/// last, when the new file is whole and synced; if it says no, nothing is replaced, and so it answers.
/// Errors: [`DiskError`]; `path` is then as it was.
pub(crate) fn replace_atomic(
    path: &Utf8Path,
    bytes: &[u8],
    is_current: impl FnOnce() -> bool,
) -> Result<bool, DiskError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    let mode = std::fs::metadata(path).on("look at", path)?.permissions();
    let prefix = unfinished_prefix(path);
    let mut file = tempfile::Builder::new().prefix(&prefix).tempfile_in(dir).on("create a file in", dir)?;
    file.write_all(bytes).on("write", path)?;
    file.as_file().set_permissions(mode).on("set the mode of", path)?;
    file.as_file().sync_all().on("sync", path)?;
    if !is_current() {
        return Ok(false);
    }
    file.persist(path).on("replace", path)?;
    sync_dir(dir)?;
    Ok(true)
}

fn unfinished_prefix(path: &Utf8Path) -> String {
    format!(".{}.refrain-", path.file_name().unwrap_or_default())
}

/// Removes what a killed process left of [`replace_atomic`] beside `path`. The caller has a lock that each writer of the file
/// takes.
pub(crate) fn remove_unfinished(path: &Utf8Path) {
    let prefix = unfinished_prefix(path);
    let entries = path.parent().and_then(|dir| dir.read_dir_utf8().ok()).into_iter().flatten().flatten();
    // One that cannot be removed does no harm.
    entries.filter(|entry| entry.file_name().starts_with(&prefix)).for_each(|entry| {
        let _ = std::fs::remove_file(entry.path());
    });
}

/// Makes what a folder lists survive a power loss.
pub(crate) fn sync_dir(dir: &Utf8Path) -> Result<(), DiskError> {
    File::open(dir).and_then(|dir| dir.sync_all()).on("sync", dir)
}

/// Makes a folder and its parents as [`make_dir`] does. A link in the path is an error: an agent could have put it
/// there.
pub fn make_dir_nofollow(dir: &Utf8Path) -> Result<(), DiskError> {
    Folder::make(dir).map(drop).on("create", dir)
}

/// Makes a folder and its parents, private to the user, and makes them survive a power loss.
///
/// They may be reached through links: they are the user's. Where an agent can write, it is [`make_dir_nofollow`].
pub fn make_dir(dir: &Utf8Path) -> Result<(), DiskError> {
    use std::os::unix::fs::DirBuilderExt;
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_str().is_empty()) {
        make_dir(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error).on("create", dir),
        _ => dir.parent().map_or(Ok(()), sync_dir),
    }
}
