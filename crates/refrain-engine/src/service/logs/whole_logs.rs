//! Long logs of loops that moved. The git remote of a loop has their begin and end; all of a log is on the machine where it was
//! written, and at a place for such files if the user has one. What comes from there has to be what the journal has sealed.

use std::collections::BTreeSet;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::LoopId;
use refrain_core::event::Seal;
use refrain_core::view::report::Trail;
use refrain_core::view::seal::Sealing;
use refrain_files::{IfThere, read_regular, remove};
use refrain_proc::output;
use refrain_store::project::moving;
use refrain_store::{journal, make_dir_nofollow, write_nofollow};

use crate::git_steps::moving::logs::{BRIEF, LARGEST_TOTAL};
use crate::service::seal;
use crate::{EngineError, Service, chain};

/// Where machines put logs that are too long for a git remote, each under its BLAKE3 hash.
pub trait LogStore: fmt::Debug + Send + Sync {
    /// The address, for people.
    fn address(&self) -> &str;

    /// Keeps a log. It may be there already.
    fn put(&self, hash: &str, content: &[u8]) -> Result<(), String>;

    /// A log of this many bytes; none if it is not there. No more is read.
    fn get(&self, hash: &str, bytes: u64) -> Result<Option<Vec<u8>>, String>;
}

/// A folder that all machines reach. What is there, only the user who wrote it reads.
#[derive(Clone, Debug)]
pub struct LogFolder {
    address: String,
    folder: Utf8PathBuf,
}

impl LogFolder {
    /// Of an absolute path.
    pub fn new(folder: &str) -> Self {
        Self { address: format!("file://{folder}"), folder: folder.into() }
    }

    fn path(&self, hash: &str) -> Utf8PathBuf {
        self.folder.join(hash.get(..2).unwrap_or_default()).join(hash)
    }
}

impl LogStore for LogFolder {
    fn address(&self) -> &str {
        &self.address
    }

    fn put(&self, hash: &str, content: &[u8]) -> Result<(), String> {
        let path = self.path(hash);
        if path.metadata().is_ok_and(|there| there.len() == content.len() as u64) {
            return Ok(());
        }
        // A folder that is not mounted is not made in its place.
        if !self.folder.is_dir() {
            return Err(format!("{} is no folder", self.folder));
        }
        let folder = path.parent().unwrap_or(&self.folder);
        make_dir_nofollow(folder).and_then(|()| write_nofollow(&path, content)).map_err(|error| chain(&error))
    }

    fn get(&self, hash: &str, bytes: u64) -> Result<Option<Vec<u8>>, String> {
        read_regular(&self.path(hash), bytes).if_there().map_err(|error| error.to_string())
    }
}

/// Logs of a loop of which only the begin and the end are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpts {
    /// The machine that has all of them.
    pub host: String,
    pub logs: u32,
    /// The length of all of them.
    pub bytes: u64,
    /// Why the last one was not brought from a store.
    pub failure: Option<String>,
}

/// Whether only the begin and the end of a log are here.
pub(crate) fn is_excerpt(path: &Utf8Path) -> bool {
    let is_here = |path: &Utf8Path| path.symlink_metadata().is_ok();
    !is_here(path) && is_here(&output::excerpt_of(path))
}

/// A hash comes from a journal that another machine may have written.
fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_sealed(content: &[u8], seal: &Seal) -> bool {
    Sealing::of(content) == *seal
}

impl Service {
    /// Gives a store the sealed logs of a loop that are whole here and that its git remote has as excerpts. `kept` are the hashes
    /// of those that it has, as far as that is known. Returns why one of them could not be put there.
    pub fn keep_logs(
        &self,
        id: &LoopId,
        store: &dyn LogStore,
        kept: &mut BTreeSet<String>,
    ) -> Result<Option<String>, EngineError> {
        let dir = self.locate(id)?.dir;
        let files = Trail::of(&journal::records(&dir)?).files;
        for file in files.iter().filter(|file| file.seal.bytes > BRIEF && is_hash(&file.seal.blake3)) {
            let hash = &file.seal.blake3;
            if kept.contains(hash) {
                continue;
            }
            let content = match read_regular(&seal::path(&dir, file), moving::LARGEST) {
                Ok(content) if is_sealed(&content, &file.seal) => content,
                // Another machine has it, or it is not as it was.
                Ok(_) | Err(_) => continue,
            };
            match store.put(hash, &content) {
                Ok(()) => drop(kept.insert(hash.clone())),
                Err(why) => return Ok(Some(format!("{}: {why}", store.address()))),
            }
        }
        Ok(None)
    }

    /// Brings the logs of a loop, or of one iteration, of which only excerpts are here. Returns those that stay so, by machine.
    pub fn bring_logs(
        &self,
        id: &LoopId,
        iteration: Option<u32>,
        store: Option<&dyn LogStore>,
    ) -> Result<Vec<Excerpts>, EngineError> {
        let dir = self.locate(id)?.dir;
        let is_asked = |n: u32| iteration.is_none_or(|iteration| iteration == n);
        let mut stay: Vec<Excerpts> = Vec::new();
        if moving::logs(&dir)?.iter().all(|path| path.extension() != Some("excerpt")) {
            return Ok(stay);
        }
        let mut left = LARGEST_TOTAL;
        for file in Trail::of(&journal::records(&dir)?).files {
            let path = seal::path(&dir, &file);
            // If a machine was lost in the middle of an attempt, the next one sealed what it had of it.
            let is_absent = || is_excerpt(&path) && seal::of(&path).ok().as_ref() != Some(&file.seal);
            if !is_asked(file.of.iteration) || !is_absent() {
                continue;
            }
            let bytes = file.seal.bytes;
            let brought = match store {
                Some(store) if bytes <= moving::LARGEST.min(left) && is_hash(&file.seal.blake3) => {
                    bring(store, &file.seal)
                }
                _ => Err(None),
            };
            match brought {
                Ok(content) => {
                    left -= bytes;
                    write_nofollow(&path, &content)?;
                    // What is whole is read.
                    let _ = remove(&output::excerpt_of(&path));
                }
                Err(failure) => match stay.iter_mut().find(|it| it.host == file.host) {
                    Some(known) => {
                        known.logs += 1;
                        known.bytes = known.bytes.saturating_add(bytes);
                        known.failure = failure.or(known.failure.take());
                    }
                    None => stay.push(Excerpts { host: file.host, logs: 1, bytes, failure }),
                },
            }
        }
        Ok(stay)
    }
}

/// A log of a store, if it is the one that was sealed.
fn bring(store: &dyn LogStore, seal: &Seal) -> Result<Vec<u8>, Option<String>> {
    let failed = |why: &str| Some(format!("{}: {why}", store.address()));
    match store.get(&seal.blake3, seal.bytes) {
        Ok(Some(content)) if is_sealed(&content, seal) => Ok(content),
        Ok(Some(_)) => Err(failed("what it has under the hash of a log is something else")),
        Ok(None) => Err(failed("it does not have them")),
        Err(why) => Err(failed(&why)),
    }
}
