//! Whether a file that a session waits for is another than before.

use std::fs::{self, File};
use std::io::{self, Read};
use std::time::SystemTime;

use camino::Utf8Path;

/// Larger files are not read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What a file is known by: what it holds, so that one that was written again with the same is the same (seed 000
/// compares checksums). None if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Content(blake3::Hash),
    /// It is too large to be read again and again, or no file: a FIFO would never end.
    Stamp(u64, Option<SystemTime>),
}

pub(super) fn mark(path: &Utf8Path) -> Option<Mark> {
    let meta = fs::metadata(path).ok()?;
    let stamp = Mark::Stamp(meta.len(), meta.modified().ok());
    if !meta.is_file() || meta.len() > LARGEST {
        return Some(stamp);
    }
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| io::copy(&mut file.take(LARGEST), &mut hasher));
    Some(read.map_or(stamp, |_| Mark::Content(hasher.finalize())))
}
