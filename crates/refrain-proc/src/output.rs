//! What an agent prints, on its way to disk: written before anyone looks at it, never held whole, and past a cap kept at
//! both ends with a visible mark in the middle.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// Somebody who reads an agent's standard output as it passes, chunk by chunk, cut anywhere.
pub trait Listener: Send + 'static {
    /// The next bytes.
    fn hear(&mut self, chunk: &[u8]);
}

/// How much an attempt has printed, and when last: shared between the thread that reads and those who watch.
pub struct Meter {
    since: Instant,
    /// Milliseconds after `since`, plus one; 0 is never.
    last: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("last", &self.last_output()).finish_non_exhaustive()
    }
}

impl Meter {
    /// A meter that starts now; `wake` is called whenever something new is on disk, and must not block.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0), wake: Box::new(wake) }
    }

    /// How long ago the last output was; none where there was none yet.
    #[must_use]
    pub fn last_output(&self) -> Option<Duration> {
        let at = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.since.elapsed().saturating_sub(Duration::from_millis(at)))
    }

    pub(crate) fn tick(&self) {
        let ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last.store(ms + 1, Ordering::Relaxed);
        (self.wake)();
    }
}

/// One stream's file. It is made by its first byte: a stream that says nothing leaves nothing.
#[derive(Debug)]
pub(crate) struct Log {
    path: Utf8PathBuf,
    file: Option<File>,
    /// Bytes that came.
    total: u64,
    cap: u64,
    /// The end of what came, once the head is full.
    tail: Option<Tail>,
}

/// The last part of a stream: two files that take turns, so that nothing is ever moved.
#[derive(Debug)]
struct Tail {
    files: [Utf8PathBuf; 2],
    current: File,
    turn: usize,
    length: u64,
    older: u64,
}

impl Log {
    /// A log at `path` of at most about `cap` bytes: half of it for the head, a quarter to a half for the tail.
    pub(crate) fn new(path: Utf8PathBuf, cap: u64) -> Self {
        Self { path, file: None, total: 0, cap, tail: None }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let room = (self.cap / 2).saturating_sub(self.total);
        self.total += bytes.len() as u64;
        if room > 0 {
            let file = match &mut self.file {
                Some(file) => file,
                file => file.insert(create(&self.path)?),
            };
            let (head, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            file.write_all(head)?;
            bytes = rest;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let tail = match &mut self.tail {
            Some(tail) => tail,
            tail => tail.insert(Tail::new(&self.path)?),
        };
        tail.write(bytes, self.cap / 4)
    }

    /// Ends the log: where the middle was dropped, head, mark and tail become one file.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let (Some(tail), Some(file)) = (self.tail.take(), &mut self.file) else { return Ok(()) };
        let dropped = self.total - self.cap / 2 - tail.length - tail.older;
        if dropped > 0 {
            write!(file, "\n[... {dropped} bytes left out by refrain ...]\n")?;
        }
        let older = (tail.older > 0).then(|| &tail.files[1 - tail.turn]);
        for part in older.into_iter().chain([&tail.files[tail.turn]]) {
            io::copy(&mut File::open(part)?, file)?;
        }
        tail.files.iter().try_for_each(|file| match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }
}

impl Tail {
    fn new(log: &Utf8Path) -> io::Result<Self> {
        let files = [0, 1].map(|k| Utf8PathBuf::from(format!("{log}.tail{k}")));
        let current = create(&files[0])?;
        Ok(Self { files, current, turn: 0, length: 0, older: 0 })
    }

    fn write(&mut self, mut bytes: &[u8], size: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.length >= size.max(1) {
                self.turn = 1 - self.turn;
                self.older = self.length;
                self.length = 0;
                self.current = create(&self.files[self.turn])?;
            }
            let room = usize::try_from(size.max(1) - self.length).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(bytes.len().min(room));
            self.current.write_all(part)?;
            self.length += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }
}

/// Makes a file, and its folder if somebody deleted that since: what an agent prints is kept all the same.
fn create(path: &Utf8Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            options.open(path)
        }
        file => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(cap: u64, chunks: impl Iterator<Item = Vec<u8>>) -> (String, usize) {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let mut log = Log::new(dir.join("output.log"), cap);
        for chunk in chunks {
            log.write(&chunk).unwrap();
        }
        log.finish().unwrap();
        (fs::read_to_string(dir.join("output.log")).unwrap(), fs::read_dir(dir).unwrap().count())
    }

    #[test]
    fn all_of_it_is_kept_below_the_cap() {
        let (text, files) = logged(1 << 20, (0..1000).map(|n| format!("{n}\n").into_bytes()));
        assert_eq!(text, (0..1000).map(|n| format!("{n}\n")).collect::<String>());
        assert_eq!(files, 1);
    }

    #[test]
    fn past_the_cap_both_ends_are_kept_with_a_mark_between() {
        let all: String = (0..10_000).map(|n| format!("{n}\n")).collect();
        for size in [1, 7, 100, 5000] {
            let (text, files) = logged(1000, all.as_bytes().chunks(size).map(<[u8]>::to_vec));
            let (head, rest) = text.split_once("\n[... ").unwrap();
            let (dropped, tail) = rest.split_once(" bytes left out by refrain ...]\n").unwrap();
            assert!(all.starts_with(head) && head.len() == 500, "{size}");
            assert!(all.ends_with(tail) && (250..=500).contains(&tail.len()), "{size}: {}", tail.len());
            assert_eq!(dropped.parse::<usize>().unwrap(), all.len() - head.len() - tail.len());
            assert_eq!(files, 1, "the parts are gone");
        }
    }

    #[test]
    fn silence_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        Log::new(dir.join("stderr.log"), 100).finish().unwrap();
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    }
}
