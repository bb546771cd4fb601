//! The shared knowledge of an account's provider limit: one file an account in the user's state home, and a lock that
//! lets one loop try first when the limit is said to be over.

use std::fs::{self, File};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::event::Wait;
use refrain_files::IfThere;
use serde::{Deserialize, Serialize};

use crate::disk::atomic::{encode, make_dir, open_private};
use crate::{DiskError, OnPath, write_atomic};

#[derive(Clone, Debug)]
pub struct AccountGate {
    dir: Utf8PathBuf,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct ClosedGate {
    #[serde(flatten)]
    wait: Wait,
    /// None in a file of an earlier version.
    since: Option<Timestamp>,
}

/// The right to try first, for as long as the value lives.
#[derive(Debug)]
pub struct Probe(#[expect(dead_code, reason = "the lock is the open file")] File);

impl AccountGate {
    /// The gate of the account with this name. The name may hold secrets: only its hash is stored.
    pub fn new(state_home: &Utf8Path, account: &str) -> Self {
        let hash = blake3::hash(account.as_bytes()).to_hex();
        Self { dir: state_home.join("limits"), name: hash[..32].to_owned() }
    }

    /// A name of the account that tells nothing of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> Utf8PathBuf {
        self.dir.join(format!("{}.json", self.name))
    }

    /// What the account waits for, as last reported by a loop; it may be over. A file that cannot be read says nothing.
    pub fn closed(&self, now: Timestamp) -> Option<Wait> {
        let ClosedGate { wait, since } = serde_json::from_slice(&fs::read(self.path()).ok()?).ok()?;
        let Some(since) = since.filter(|since| now < *since) else { return Some(wait) };
        // The clock was ahead when it closed: from now on it stays closed for as long.
        let until = now.saturating_add(wait.until.duration_since(since)).unwrap_or(now);
        let wait = Wait { until, ..wait };
        // It is only advice.
        let _ = self.close(wait, now);
        Some(wait)
    }

    /// Closes it for a wait that began `since` then.
    pub fn close(&self, wait: Wait, since: Timestamp) -> Result<(), DiskError> {
        let path = self.path();
        make_dir(&self.dir)?;
        let closed = ClosedGate { wait, since: Some(since) };
        write_atomic(&path, &encode(&path, &closed)?)
    }

    /// Ends the wait of all loops of the account.
    pub fn open(&self) -> Result<(), DiskError> {
        let path = self.path();
        fs::remove_file(&path).if_there().on("remove", &path).map(drop)
    }

    /// The right to try first; none while another process tries.
    pub fn try_probe(&self) -> Result<Option<Probe>, DiskError> {
        let path = self.dir.join(format!("{}.probe", self.name));
        make_dir(&self.dir)?;
        let file = open_private(&path)?;
        Ok(file.try_lock().is_ok().then_some(Probe(file)))
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::event::WaitKind;

    use super::*;

    #[test]
    fn a_gate_is_closed_for_every_loop_of_the_account_and_one_of_them_tries_first() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let gate = |account| AccountGate::new(home, account);
        let at = |second| Timestamp::from_second(second).unwrap();
        let closed = |account, second| gate(account).closed(at(second));
        assert_eq!(closed("a key", 0), None);
        gate("a key").open().unwrap();

        let wait = Wait { kind: WaitKind::Limit, until: at(1_800_000_000) };
        gate("a key").close(wait, at(1_799_999_000)).unwrap();
        assert_eq!((closed("a key", 1_799_999_000), closed("another", 0)), (Some(wait), None));
        let earlier = serde_json::to_vec(&wait).unwrap();
        write_atomic(&gate("a key").path(), &earlier).unwrap();
        assert_eq!(closed("a key", 0), Some(wait), "a file of an earlier version");

        // The clock was ahead when it closed.
        gate("a key").close(wait, at(1_799_999_000)).unwrap();
        let bounded = Some(Wait { until: at(2_000), ..wait });
        assert_eq!((closed("a key", 1_000), closed("a key", 1_500)), (bounded, bounded));

        let probe = gate("a key").try_probe().unwrap();
        assert!(probe.is_some() && gate("a key").try_probe().unwrap().is_none());
        drop(probe);
        assert!(gate("a key").try_probe().unwrap().is_some());

        gate("a key").open().unwrap();
        assert_eq!(closed("a key", 0), None);
        let names = fs::read_dir(home.join("limits")).unwrap().flatten();
        assert!(names.map(|file| file.file_name()).all(|name| !name.to_string_lossy().contains("key")));
    }
}
