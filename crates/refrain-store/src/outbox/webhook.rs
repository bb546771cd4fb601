//! What webhooks need of the disk: up to where one got the notices of a loop, and the secret that these are signed
//! with.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::{DiskError, LoopDir, OnPath, write_nofollow};

/// The largest file of a secret, in bytes.
const LARGEST: u64 = 4 << 10;

/// Up to where a webhook got the notices of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredUpTo {
    /// The notices of all events up to this one were delivered.
    pub seq: u64,
    /// The same in bytes of the journal: if it is not longer, there is nothing to look for.
    #[serde(default)]
    pub bytes: u64,
}

impl DeliveredUpTo {
    /// What is noted of the loop; none if no webhook ever got a notice of it, or if that cannot be read.
    pub fn read(dir: &LoopDir) -> Option<Self> {
        serde_json::from_slice(&fs::read(dir.webhook()).ok()?).ok()
    }

    /// Notes it. After a crash before this, notices are sent twice.
    pub fn write(&self, dir: &LoopDir) -> Result<(), DiskError> {
        let text = format!("{{\"seq\": {}, \"bytes\": {}}}\n", self.seq, self.bytes);
        write_nofollow(&dir.webhook(), text.as_bytes())
    }
}

/// Why the file of a secret is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{0} {1}")]
    Unfit(Utf8PathBuf, &'static str),
}

/// What a file says that its owner alone can read, without white space around it; none if there is no file.
pub fn secret(path: &Utf8Path) -> Result<Option<String>, SecretError> {
    let unfit = |why| Err(SecretError::Unfit(path.to_owned(), why));
    // A FIFO would never open.
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        file => file.on("open", path)?,
    };
    let meta = file.metadata().on("look at", path)?;
    if !meta.is_file() || meta.len() > LARGEST {
        return unfit("is no short file");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return unfit("belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        return unfit("can be read by others: chmod 600 makes it yours alone");
    }
    let mut text = String::new();
    if file.take(LARGEST).read_to_string(&mut text).is_err() {
        return unfit("is no UTF-8 text");
    }
    Ok(Some(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("secret");
        assert!(secret(&path).unwrap().is_none());
        write_nofollow(&path, b" 0123 \n").unwrap();
        assert_eq!(secret(&path).unwrap().as_deref(), Some("0123"));
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(secret(&path).unwrap_err().to_string().contains("can be read by others"));
        }
        assert!(secret(path.parent().unwrap()).unwrap_err().to_string().contains("no short file"));
        write_nofollow(&path, &[b'x'; 5000]).unwrap();
        assert!(secret(&path).is_err());
    }

    #[test]
    fn an_unreadable_delivery_mark_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LoopDir(Utf8Path::from_path(folder.path()).unwrap().to_owned());
        assert_eq!(DeliveredUpTo::read(&dir), None);
        let told = DeliveredUpTo { seq: 7, bytes: 900 };
        told.write(&dir).unwrap();
        assert_eq!(DeliveredUpTo::read(&dir), Some(told));
        write_nofollow(&dir.webhook(), b"{\"seq\": ").unwrap();
        assert_eq!(DeliveredUpTo::read(&dir), None);
    }
}
