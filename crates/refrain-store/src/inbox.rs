//! How others ask a runner: a request, renamed into the inbox, and a byte into the doorbell. The runner turns it into an
//! event that repeats the request's id, so that it is done once, however often it is seen.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use camino::Utf8PathBuf;
use refrain_core::event::Ask;
use refrain_core::ids::RequestId;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use serde::{Deserialize, Serialize};

use crate::atomic::make_dir;
use crate::layout::LoopDir;
use crate::{DiskError, OnPath, write_atomic};

/// Something asked of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its id, made by the asker.
    pub id: RequestId,
    /// What is asked.
    pub ask: Ask,
}

impl Request {
    /// Puts the request where the loop's runner finds it, and rings. It survives a power loss once this returns.
    ///
    /// # Errors
    /// [`DiskError`]; the request was then not made.
    pub fn post(&self, dir: &LoopDir) -> Result<(), DiskError> {
        make_dir(&dir.inbox())?;
        let path = dir.inbox().join(self.id.as_str());
        let bytes = serde_json::to_vec(self).map_err(std::io::Error::from).on("encode", &path)?;
        write_atomic(&path, &bytes)?;
        ring(dir);
        Ok(())
    }
}

/// The requests that wait, oldest id first, each with the file to remove once it is answered. What is no request (a
/// foreign file, half a write of a killed asker) is none of ours and left alone.
///
/// # Errors
/// [`DiskError`] where the inbox cannot be listed.
pub fn waiting(dir: &LoopDir) -> Result<Vec<(Request, Utf8PathBuf)>, DiskError> {
    let inbox = dir.inbox();
    let entries = match inbox.read_dir_utf8() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.on("read", &inbox)?,
    };
    let mut requests: Vec<(Request, Utf8PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let request: Request = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
            (request.id.as_str() == entry.file_name()).then(|| (request, entry.path().to_owned()))
        })
        .collect();
    requests.sort_by(|a, b| a.0.id.cmp(&b.0.id));
    Ok(requests)
}

/// Takes an answered request out of the inbox.
pub fn remove(path: &Utf8PathBuf) {
    // A file that stays is seen again, and its id says that it was answered.
    let _ = fs::remove_file(path);
}

/// Wakes the loop's runner, if there is one. Without one nobody needs to be woken.
pub fn ring(dir: &LoopDir) {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    if let Ok(mut bell) = OpenOptions::new().write(true).custom_flags(nonblocking).open(dir.doorbell()) {
        // A full pipe has rung already.
        let _ = bell.write(b"!");
    }
}

/// The runner's end of the doorbell.
#[derive(Debug)]
pub struct Doorbell;

impl Doorbell {
    /// Makes the FIFO, unless it is there, and returns its path.
    ///
    /// # Errors
    /// [`DiskError`] where the file system has no FIFOs or the path is taken by something else.
    pub fn install(dir: &LoopDir) -> Result<Utf8PathBuf, DiskError> {
        let path = dir.doorbell();
        match mkfifoat(CWD, path.as_std_path(), Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(path),
            Err(error) => Err(error).on("make the doorbell", &path),
        }
    }
}
