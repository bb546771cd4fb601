//! The record of what `plugin install` wrote, so that `plugin remove` takes back that and nothing else: one file in the
//! user's data home; and the few operations on the files of agents that this takes, which are a person's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Error, ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::spec::AgentKind;
use refrain_core::splice::Splice;
use refrain_files::IfThere;
use serde::{Deserialize, Serialize};

use crate::disk::atomic::{replace_atomic, sync_dir};
use crate::{DiskError, OnPath, make_dir, write_atomic};

/// More is no settings file, in bytes.
const LARGEST: u64 = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledFiles {
    #[serde(default)]
    pub files: BTreeMap<Utf8PathBuf, OwnFile>,
    /// What is ours in files of the person's.
    #[serde(default)]
    pub settings: BTreeMap<Utf8PathBuf, OwnSettings>,
    #[serde(default)]
    pub folders: BTreeSet<Utf8PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFile {
    pub agent: AgentKind,
    /// [`hash`] of what was written.
    pub hash: String,
    /// [`hash`] of what that replaces, until it does: an update may break off in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The path of the program that it calls; 0.1.0 did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// What is ours in a file of the person's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSettings {
    pub agent: AgentKind,
    /// Whether there was no such file before.
    pub is_new: bool,
    /// [`hash`] of the whole file after the change: as long as that holds, the splices can be taken back to the byte.
    pub hash: String,
    pub splices: Vec<Splice>,
}

impl InstalledFiles {
    /// What is noted in this folder.
    /// Errors: [`DiskError`] if it cannot be read or understood: to write it anew would lose what is noted there.
    pub fn read(folder: &Utf8Path) -> Result<Self, DiskError> {
        let path = place(folder);
        let text = read(&path)?;
        text.map_or(Ok(Self::default()), |text| {
            serde_json::from_str(&text).map_err(Error::from).on("understand", &path)
        })
    }

    /// Notes it, before anything of it is done. It is whole and on disk when this returns; if nothing is left to note,
    /// there is no file.
    pub fn write(&self, folder: &Utf8Path) -> Result<(), DiskError> {
        let path = place(folder);
        if *self == Self::default() {
            remove(&path)?;
            return remove_empty(folder);
        }
        make_dir(folder)?;
        let bytes = serde_json::to_vec_pretty(self).map_err(Error::from).on("encode", &path)?;
        write_atomic(&path, &bytes)
    }
}

fn place(folder: &Utf8Path) -> Utf8PathBuf {
    folder.join("installed.json")
}

/// By which a content is known again.
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// What a file holds; none if there is none.
/// Errors: [`DiskError`] if it is no file, cannot be read, or is no text of a sensible size.
pub fn read(path: &Utf8Path) -> Result<Option<String>, DiskError> {
    let meta = match fs::metadata(path) {
        // A dangling link is the user's, and would be replaced.
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            return Ok(None);
        }
        meta => meta.on("read", path)?,
    };
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(Error::from(ErrorKind::InvalidInput)).on("take for a file of settings", path);
    }
    let mut text = String::new();
    fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text)).on("read", path)?;
    Ok(Some(text))
}

/// Puts a text into a file that holds `before`, if anything, and looks whether it is there. A link is followed and
/// stays, and so does the mode. A crash leaves the one text or the other.
/// Errors: [`DiskError`], also if the file was changed meanwhile; it then stays as changed.
pub fn write(path: &Utf8Path, before: Option<&str>, text: &str) -> Result<(), DiskError> {
    let is_current = || read(path).is_ok_and(|now| now.as_deref() == before);
    if before.is_some() {
        let file = path.canonicalize_utf8().on("find", path)?;
        if !replace_atomic(&file, text.as_bytes(), is_current)? {
            return Err(Error::other("another process changed it just now")).on("replace", path);
        }
    } else {
        make_dir(path.parent().unwrap_or(Utf8Path::new("/")))?;
        if !is_current() {
            return Err(Error::other("another process made it just now")).on("write", path);
        }
        write_atomic(path, text.as_bytes())?;
    }
    match read(path)? {
        Some(found) if found == text => Ok(()),
        _ => Err(Error::other("it does not hold what was written")).on("read back", path),
    }
}

pub fn remove(path: &Utf8Path) -> Result<(), DiskError> {
    match fs::remove_file(path).if_there().on("remove", path)? {
        Some(()) => path.parent().map_or(Ok(()), sync_dir),
        None => Ok(()),
    }
}

pub fn remove_empty(folder: &Utf8Path) -> Result<(), DiskError> {
    match fs::remove_dir(folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(error).on("remove", folder)
        }
        _ => Ok(()),
    }
}
