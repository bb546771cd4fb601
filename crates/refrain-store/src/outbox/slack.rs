//! What Slack needs of the disk: the messages about a loop, so that nothing is lost and nothing is posted twice, and
//! requests of people that are not done yet.

use std::fs::{self, File, TryLockError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_files::IfThere;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::atomic::{encode, open_private};
use crate::{DiskError, LoopDir, OnPath, make_dir, write_atomic, write_nofollow};

/// The messages in Slack about one loop: `slack.json` beside its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Talk {
    pub channel: String,
    /// The thread in it, if it was asked for in one.
    pub thread: Option<String>,
    /// The message that asked for the loop; a command leaves none.
    pub trigger: Option<String>,
    /// Nothing is posted before it has stopped for the first time: it was not started from Slack.
    pub only_ends: bool,
    pub message: Delivery,
    pub shown: Option<String>,
    pub reaction: Option<String>,
    /// The last press of its button.
    pub stop: Option<StopRequest>,
    /// What the agent noted, of which end, in milliseconds of the epoch.
    pub reply: Option<(i64, Delivery)>,
    /// All that the journal says in so many bytes, and so many events, was posted: if it is not longer, nothing is
    /// owed.
    pub bytes: u64,
    pub seq: u64,
}

/// Whether a message was posted. What may have been is looked for before it is posted again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    #[default]
    Not,
    Intended,
    At(String),
    /// Slack does not want it.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    pub user: String,
    /// Whether the loop was still at work.
    pub was_running: bool,
}

impl Talk {
    /// The messages about the loop; none if there were never any, or if that cannot be read.
    pub fn read(dir: &LoopDir) -> Option<Self> {
        serde_json::from_slice(&fs::read(dir.slack()).ok()?).ok()
    }

    /// Notes it. After a crash before this, Slack is asked for its messages.
    pub fn write(&self, dir: &LoopDir) -> Result<(), DiskError> {
        let path = dir.slack();
        write_nofollow(&path, &encode(&path, self)?)
    }
}

/// Requests of people that are not done yet, a file each: what is acknowledged is done, also by the next process. Its
/// holder is the only process of the user's that speaks with Slack.
#[derive(Debug)]
pub struct Pending {
    folder: Utf8PathBuf,
    _lock: File,
}

impl Pending {
    /// Those in this state home; none if another process has them.
    pub fn open(state_home: &Utf8Path) -> Result<Option<Self>, DiskError> {
        let folder = state_home.join("slack");
        make_dir(&folder)?;
        let path = folder.join("lock");
        let lock = open_private(&path)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).on("lock", &path),
            Ok(()) => Ok(Some(Self { folder, _lock: lock })),
        }
    }

    /// Keeps it, under a key of letters and digits.
    pub fn keep(&self, key: &str, asked: &impl Serialize) -> Result<(), DiskError> {
        let path = self.place(key);
        write_atomic(&path, &encode(&path, asked)?)
    }

    pub fn forget(&self, key: &str) {
        // A file that is left is handled once more, and found done.
        let _ = fs::remove_file(self.place(key));
    }

    /// What is not done; what cannot be read is nothing.
    pub fn kept<T: DeserializeOwned>(&self) -> Result<Vec<T>, DiskError> {
        let entries = self.folder.read_dir_utf8().if_there().on("read", &self.folder)?;
        let files =
            entries.into_iter().flatten().flatten().filter(|entry| entry.file_name().ends_with(".json"));
        Ok(files.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok()).collect())
    }

    fn place(&self, key: &str) -> Utf8PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slack_state_reads_back_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LoopDir(Utf8Path::from_path(folder.path()).unwrap().to_owned());
        assert_eq!(Talk::read(&dir), None);
        let talk = Talk {
            channel: "C1".to_owned(),
            message: Delivery::At("1.2".to_owned()),
            reply: Some((7, Delivery::Intended)),
            ..Talk::default()
        };
        talk.write(&dir).unwrap();
        assert_eq!(Talk::read(&dir), Some(talk));
        write_atomic(&dir.slack(), b"{").unwrap();
        assert_eq!(Talk::read(&dir), None);
    }

    #[test]
    fn a_pending_request_is_kept_until_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(folder.path()).unwrap();
        let asked = Pending::open(home).unwrap().unwrap();
        assert!(Pending::open(home).unwrap().is_none(), "one at a time");
        asked.keep("a1", &"one").unwrap();
        asked.keep("a1", &"one").unwrap();
        write_atomic(&home.join("slack/a2.json"), b"{").unwrap();
        drop(asked);
        let asked = Pending::open(home).unwrap().unwrap();
        assert_eq!(asked.kept::<String>().unwrap(), ["one"]);
        asked.forget("a1");
        asked.forget("a1");
        assert_eq!(asked.kept::<String>().unwrap(), [""; 0]);
    }
}
