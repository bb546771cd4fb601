//! The list of projects that Refrain has worked in: one path a line, in the user's data home. Only ever added to.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk::atomic::make_dir;
use crate::{DiskError, OnPath};

pub fn list(data_home: &Utf8Path) -> Utf8PathBuf {
    data_home.join("projects")
}

/// Adds a project, unless it is listed.
pub fn remember(data_home: &Utf8Path, root: &Utf8Path) -> Result<(), DiskError> {
    let path = list(data_home);
    make_dir(data_home)?;
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path).on("open", &path)?;
    file.lock().on("lock", &path)?;
    let mut text = String::new();
    file.read_to_string(&mut text).on("read", &path)?;
    // A path with a line break cannot be listed; such a project works, it is only not found from elsewhere.
    if text.lines().any(|line| line == root) || root.as_str().contains('\n') {
        return Ok(());
    }
    writeln!(file, "{root}").on("write", &path)
}

/// Every project on the list, whether it is still there or not.
pub fn listed(data_home: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut text = String::new();
    if let Ok(mut file) = File::open(list(data_home)) {
        // An unreadable list is empty: it is a convenience, the projects are the truth.
        let _ = file.read_to_string(&mut text);
    }
    text.lines().map(Utf8PathBuf::from).collect()
}
