//! Requests to a runner: a file, renamed into the inbox, and a byte into the doorbell. The runner turns it into an
//! event that repeats the request's id, so that it is done once, however often it is seen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileTypeExt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::{Ask, Asker};
use refrain_core::ids::RequestId;
use refrain_core::signature::Signature;
use refrain_files::{Folder, IfThere};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::disk::atomic::encode;
use crate::project::layout::{DOORBELL, LoopDir};
use crate::{DiskError, OnPath, make_dir_nofollow, write_nofollow};

/// The longest request, in bytes. What is longer is none.
const MOST: u64 = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub id: RequestId,
    pub ask: Ask,
    /// The asker, by the request's own word.
    #[serde(default, skip_serializing_if = "Asker::is_person")]
    pub by: Asker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl Request {
    /// Puts the request where the loop's runner finds it, and rings. It survives a power loss once this returns.
    /// Errors: [`DiskError`]; the request was then not made.
    pub fn post(&self, dir: &LoopDir) -> Result<(), DiskError> {
        dir.remove_links(None)?;
        make_dir_nofollow(&dir.inbox())?;
        let path = dir.inbox().join(self.id.as_str());
        let bytes = encode(&path, self)?;
        if bytes.len() as u64 > MOST {
            // No runner would read it, and the caller would wait for ever.
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge)).on("write", &path);
        }
        write_nofollow(&path, &bytes)?;
        ring(dir);
        Ok(())
    }
}

/// The requests that wait, oldest id first, each with the file to remove once it is answered. Other files (a foreign
/// file, half a write of a killed asker, anything an agent may put there) are left alone.
pub fn waiting(dir: &LoopDir) -> Result<Vec<(Request, Utf8PathBuf)>, DiskError> {
    let inbox = dir.inbox();
    let entries = inbox.read_dir_utf8().if_there().on("read", &inbox)?.into_iter().flatten();
    let mut requests: Vec<(Request, Utf8PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let request: Request = serde_json::from_slice(&read(entry.path())?).ok()?;
            (request.id.as_str() == entry.file_name()).then(|| (request, entry.path().to_owned()))
        })
        .collect();
    requests.sort_by(|a, b| a.0.id.cmp(&b.0.id));
    Ok(requests)
}

/// The content of a regular file of a request's size. A FIFO, a link, a device or something huge is skipped, not waited
/// for.
fn read(path: &Utf8Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(path.as_std_path(), flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > MOST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Takes an answered request out of the inbox.
pub fn remove(path: &Utf8PathBuf) {
    // A file that stays is seen again, and its id says that it was answered.
    let _ = refrain_files::remove(path);
}

/// Wakes the loop's runner, if there is one.
pub fn ring(dir: &LoopDir) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let Ok(bell) = open(dir.doorbell().as_std_path(), flags, Mode::empty()) else { return };
    let mut bell = File::from(bell);
    // An agent could have put a file there that has another name elsewhere.
    if bell.metadata().is_ok_and(|meta| meta.file_type().is_fifo()) {
        // A full pipe has rung already.
        let _ = bell.write(b"!");
    }
}

#[derive(Debug)]
pub struct WakePipe;

impl WakePipe {
    /// Whether the FIFO is there. A link or a file in its place wakes no runner.
    pub fn is_in_place(dir: &LoopDir) -> bool {
        dir.doorbell().symlink_metadata().is_ok_and(|meta| meta.file_type().is_fifo())
    }

    /// Makes the FIFO, unless it is there, and returns its path.
    pub fn install(dir: &LoopDir) -> Result<Utf8PathBuf, DiskError> {
        let path = dir.doorbell();
        let make = |folder: Folder| {
            if !Self::is_in_place(dir) {
                folder.remove(DOORBELL)?;
            }
            folder.make_fifo(DOORBELL)
        };
        Folder::open(&dir.0).and_then(make).on("make the doorbell", &path)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use refrain_core::event::Urgency;
    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    fn request(id: &str, ask: Ask) -> Request {
        Request { id: id.parse().unwrap(), ask, by: Asker::Person, signature: None }
    }

    #[test]
    fn foreign_entries_in_the_inbox_neither_block_nor_count() {
        let dir = tempfile::tempdir().unwrap();
        let dir = LoopDir(Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap());
        let asked = request("0-real", Ask::Pause(Urgency::Now));
        asked.post(&dir).unwrap();
        let at = |name: &str| dir.inbox().join(name);
        mkfifoat(CWD, at("1-fifo").as_std_path(), Mode::RUSR | Mode::WUSR).unwrap();
        symlink("/dev/zero", at("2-endless")).unwrap();
        let linked = request("3-link", Ask::Pause(Urgency::Now));
        write_nofollow(&dir.0.join("elsewhere"), &serde_json::to_vec(&linked).unwrap()).unwrap();
        symlink(dir.0.join("elsewhere"), at("3-link")).unwrap();
        fs::create_dir(at("4-folder")).unwrap();
        File::create(at("5-huge")).unwrap().set_len(1 << 40).unwrap();
        write_nofollow(&at("6-half"), b"{\"id\":").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("7-socket")).unwrap();
        assert_eq!(waiting(&dir).unwrap(), [(asked, at("0-real"))]);
        assert_eq!(fs::read_dir(dir.inbox()).unwrap().count(), 8, "they are left alone");
    }

    #[test]
    fn a_request_and_its_bell_go_nowhere_but_into_the_folder_of_the_loop() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        let (dir, other) = (LoopDir(home.join("loop")), home.join("other"));
        for folder in [&dir.0, &other] {
            fs::create_dir(folder).unwrap();
        }
        write_nofollow(&other.join("text"), b"text").unwrap();
        symlink(&other, dir.inbox()).unwrap();
        symlink(other.join("text"), dir.doorbell()).unwrap();
        request("1-pause", Ask::Pause(Urgency::Now)).post(&dir).unwrap();
        assert_eq!(waiting(&dir).unwrap().len(), 1, "the folder is put back");
        let _ = fs::remove_file(dir.doorbell());
        fs::hard_link(other.join("text"), dir.doorbell()).unwrap();
        ring(&dir);
        assert_eq!(fs::read(other.join("text")).unwrap(), b"text");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    }

    #[test]
    fn a_request_that_would_not_be_read_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let dir = LoopDir(Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap());
        let words = |length: usize| request("1-steer", Ask::Steer("x".repeat(length)));
        words(200 << 10).post(&dir).unwrap();
        assert_eq!(waiting(&dir).unwrap().len(), 1);
        fs::remove_file(dir.inbox().join("1-steer")).unwrap();
        assert!(words(300 << 10).post(&dir).is_err());
        assert_eq!(fs::read_dir(dir.inbox()).unwrap().count(), 0);
    }
}
