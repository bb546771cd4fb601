//! An agent's output on its way to disk: written before it is interpreted, never held whole, and, if it exceeds the
//! cap, kept at both ends with a visible mark in the middle.
//!
//! Past the cap, `output.log` is the start, and `output.log.tail/` holds the end: files that are reused in turn, so
//! that nothing is ever moved, each named after the offset of its first byte in the whole output. After the attempt's
//! end is reported, [`merge`] makes one file of them. [`read`] returns the same before that, or after a crash in
//! between.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_files::{Folder, IfThere, OFlags, create, open, remove, split};

/// Receives an agent's output as it arrives, in chunks that are cut anywhere.
pub trait Listener: Send + 'static {
    /// The next bytes of standard output.
    fn hear(&mut self, chunk: &[u8]);

    /// The next bytes of standard error.
    fn hear_stderr(&mut self, _chunk: &[u8]) {}
}

/// When an attempt last printed something: shared by the thread that reads and by observers.
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
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0), wake: Box::new(wake) }
    }

    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// The time since the last output; none if there was none yet.
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

/// One stream's file. It is created with its first byte: a stream without output leaves no file.
#[derive(Debug)]
pub(crate) struct Log {
    path: Utf8PathBuf,
    file: Option<File>,
    total: u64,
    /// A quarter of the cap: the head has two, each file of the end has one.
    quarter: u64,
    /// The end of the output, once the head is full.
    tail: Option<Tail>,
}

#[derive(Debug)]
struct Tail {
    dir: Utf8PathBuf,
    current: File,
    length: u64,
    path: Utf8PathBuf,
    older: Option<Utf8PathBuf>,
}

impl Log {
    /// A log at `path` of at most about `cap` bytes: half of it for the head, a quarter to a half for the end.
    pub(crate) fn new(path: Utf8PathBuf, cap: u64) -> Self {
        Self { path, file: None, total: 0, quarter: (cap / 4).max(1), tail: None }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let room = (2 * self.quarter).saturating_sub(self.total);
        if room > 0 {
            let file = match &mut self.file {
                Some(file) => file,
                file => file.insert(create(&self.path)?),
            };
            let (head, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            file.write_all(head)?;
            self.total += head.len() as u64;
            bytes = rest;
        }
        while !bytes.is_empty() {
            let tail = match &mut self.tail {
                Some(tail) => tail,
                tail => tail.insert(Tail::new(tail_of(&self.path), self.total)?),
            };
            let written = tail.write(bytes, self.total, self.quarter)?;
            self.total += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Makes one file of a complete log. If this fails nothing is lost: it is then read in parts.
    pub(crate) fn merge(self) -> io::Result<()> {
        if self.tail.is_some() { merge(&self.path) } else { Ok(()) }
    }
}

impl Tail {
    fn new(dir: Utf8PathBuf, at: u64) -> io::Result<Self> {
        let path = dir.join(at.to_string());
        Ok(Self { current: create(&path)?, dir, length: 0, path, older: None })
    }

    /// Writes as many bytes as the current file has room for, or starts a new one, whose first byte is `at`.
    fn write(&mut self, bytes: &[u8], at: u64, size: u64) -> io::Result<usize> {
        if self.length >= size {
            let path = self.dir.join(at.to_string());
            self.current = create(&path)?;
            self.length = 0;
            let full = std::mem::replace(&mut self.path, path);
            // There are always two of them: their offsets determine the length of the head.
            if let Some(older) = self.older.replace(full) {
                remove(&older)?;
            }
        }
        let room = usize::try_from(size - self.length).unwrap_or(usize::MAX);
        let part = &bytes[..bytes.len().min(room)];
        self.current.write_all(part)?;
        self.length += part.len() as u64;
        Ok(part.len())
    }
}

/// A log in parts, as they are on disk before the merge.
#[derive(Debug)]
struct Parts {
    /// The length of the head in the log file itself.
    head: u64,
    /// How many bytes were dropped after it.
    dropped: u64,
    /// The files of the end, oldest first.
    tail: Vec<Utf8PathBuf>,
}

impl Parts {
    /// The parts of the log at `path`; none if it is one file.
    fn of(path: &Utf8Path) -> io::Result<Option<Self>> {
        let Some(entries) = tail_of(path).read_dir_utf8().if_there()? else { return Ok(None) };
        let mut tail = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Ok(at) = entry.file_name().parse::<u64>() {
                tail.push((at, entry.path().to_owned()));
            }
        }
        tail.sort();
        let head = match tail.as_slice() {
            [] => return Ok(None),
            // Each file but the last has a quarter's length.
            [(first, _), (second, _), ..] => 2 * (second - first),
            // Nothing was dropped yet.
            [(only, _)] => *only,
        };
        // Longer if a merge was interrupted; shorter if the file was deleted.
        let length = |file: File| file.metadata().map(|meta| meta.len());
        let head = head.min(open(path, OFlags::RDONLY).and_then(length).unwrap_or_default());
        let dropped = tail.first().map_or(0, |(first, _)| first.saturating_sub(head));
        Ok(Some(Self { head, dropped, tail: tail.into_iter().map(|(_, path)| path).collect() }))
    }

    /// Writes mark and end after the start, replacing what was there.
    fn join(&self, file: &mut File) -> io::Result<()> {
        file.set_len(self.head)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(self.mark().as_bytes())?;
        self.tail.iter().try_for_each(|part| io::copy(&mut open(part, OFlags::RDONLY)?, file).map(drop))
    }

    fn mark(&self) -> String {
        match self.dropped {
            0 => String::new(),
            dropped => format!("\n[... {dropped} bytes left out by refrain ...]\n"),
        }
    }
}

/// The folder for the end of a log that is past its cap, until it is merged.
fn tail_of(path: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{path}.tail"))
}

/// The file with the begin and the end of a log that is whole on another machine: it lies beside the place of the log, and is
/// read in place of it.
pub fn excerpt_of(path: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{path}.excerpt"))
}

/// Makes one file of a log that is past its cap: head, mark and end. It may be interrupted and repeated without loss;
/// a log that is one file already stays as it is.
/// Errors: If it cannot be written; [`read`] then reads it in parts.
pub fn merge(path: &Utf8Path) -> io::Result<()> {
    let (folder, name) = split(path)?;
    let done = format!("{name}.merged");
    let Some(folder) = Folder::open(folder).if_there()? else { return Ok(()) };
    if let Some(parts) = Parts::of(path)? {
        let mut file = folder.file(name, OFlags::WRONLY | OFlags::CREATE)?;
        if file.metadata()?.nlink() > 1 {
            return Err(io::Error::other("it has another name, under which it would change too"));
        }
        if let Err(error) = parts.join(&mut file) {
            // On a full disk, space matters more than a duplicate half.
            let _ = file.set_len(parts.head);
            return Err(error);
        }
        // From here on it is one file.
        folder.rename(&tail_of(Utf8Path::new(name)).into_string(), &done)?;
    }
    folder.remove_folder(&done)
}

/// Reads a log in its current state, merged or not: head, mark and end. Changes nothing.
pub fn read(path: &Utf8Path) -> io::Result<impl Read> {
    let nothing: Box<dyn Read> = Box::new(io::empty());
    Ok(pieces(path)?.into_iter().fold(nothing, |before, piece| Box::new(before.chain(piece))))
}

/// The end of a log in its current state, merged or not, at most `most` bytes.
pub fn read_end(path: &Utf8Path, most: u64) -> io::Result<Vec<u8>> {
    let mut end = Vec::new();
    for mut piece in pieces(path)?.into_iter().rev() {
        let left = most.saturating_sub(end.len() as u64);
        piece.skip_to_last(left)?;
        let mut bytes = Vec::new();
        piece.read_to_end(&mut bytes)?;
        bytes.append(&mut end);
        end = bytes;
    }
    Ok(end)
}

/// At most `most` bytes of a log in its current state, starting at byte `from`, and its total length. Only these
/// bytes are read, even from a long log.
pub fn read_part(path: &Utf8Path, from: u64, most: u64) -> io::Result<(Vec<u8>, u64)> {
    let (mut part, mut total) = (Vec::new(), 0);
    for mut piece in pieces(path)? {
        let length = piece.length();
        let (begin, end) =
            (from.max(total) - total, from.saturating_add(most).saturating_sub(total).min(length));
        if begin < end {
            piece.skip_to_last(length - begin)?;
            part.reserve(usize::try_from(end - begin).unwrap_or_default());
            piece.take(end - begin).read_to_end(&mut part)?;
        }
        total += length;
    }
    Ok((part, total))
}

/// A part of a log: a section of a file, or the mark.
#[derive(Debug)]
enum Piece {
    Kept(io::Take<File>),
    Mark(Cursor<String>),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Kept(file) => file.limit(),
            Self::Mark(text) => text.get_ref().len() as u64,
        }
    }

    fn skip_to_last(&mut self, most: u64) -> io::Result<()> {
        match self {
            Self::Kept(file) => {
                let skipped = file.limit().saturating_sub(most);
                file.get_mut().seek(SeekFrom::Start(skipped))?;
                file.set_limit(file.limit() - skipped);
            }
            Self::Mark(text) => text.set_position((text.get_ref().len() as u64).saturating_sub(most)),
        }
        Ok(())
    }
}

impl Read for Piece {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Kept(file) => file.read(buffer),
            Self::Mark(text) => text.read(buffer),
        }
    }
}

/// The pieces of a log, in order, opened: a merge that continues does not affect their reader.
fn pieces(path: &Utf8Path) -> io::Result<Vec<Piece>> {
    /// How often to retry reading a log that was merged, or grew, between two reads.
    const TRIES: u32 = 8;
    let whole = |file: File| {
        Ok::<_, io::Error>(Piece::Kept({
            let length = file.metadata()?.len();
            file.take(length)
        }))
    };
    for _ in 0..TRIES {
        let Some(parts) = Parts::of(path)? else { break };
        let tail =
            parts.tail.iter().map(|part| whole(open(part, OFlags::RDONLY)?)).collect::<io::Result<Vec<_>>>();
        let Some(mut pieces) = tail.if_there()? else { continue };
        pieces.insert(0, Piece::Mark(Cursor::new(parts.mark())));
        // If it was deleted, the rest of the output still exists.
        if let Some(file) = open(path, OFlags::RDONLY).if_there()? {
            pieces.insert(0, Piece::Kept(file.take(parts.head)));
        }
        return Ok(pieces);
    }
    let log = open(path, OFlags::RDONLY).if_there()?;
    let log = log.map_or_else(|| open(&excerpt_of(path), OFlags::RDONLY), Ok);
    Ok(vec![whole(log?)?])
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("attempt")).unwrap();
        (dir, path)
    }

    fn written(path: &Utf8Path, cap: u64, chunks: impl Iterator<Item = Vec<u8>>) -> Log {
        let mut log = Log::new(path.to_owned(), cap);
        chunks.for_each(|chunk| log.write(&chunk).unwrap());
        log
    }

    fn seen(path: &Utf8Path) -> String {
        let mut text = String::new();
        read(path).unwrap().read_to_string(&mut text).unwrap();
        for most in [0, 1, 30, 300, 1 << 20] {
            let end = read_end(path, most as u64).unwrap();
            assert_eq!(end, &text.as_bytes()[text.len().saturating_sub(most)..], "the last {most} bytes");
            for from in [0, 7, 250, text.len()] {
                let (part, total) = read_part(path, from as u64, most as u64).unwrap();
                let from = from.min(text.len());
                let there = &text.as_bytes()[from..text.len().min(from + most)];
                assert_eq!((&part[..], total), (there, text.len() as u64), "{most} bytes from {from} on");
            }
        }
        text
    }

    fn logged(cap: u64, chunks: impl Iterator<Item = Vec<u8>>) -> (String, usize) {
        let (_dir, dir) = folder();
        let path = dir.join("output.log");
        let log = written(&path, cap, chunks);
        let before = seen(&path);
        log.merge().unwrap();
        assert_eq!(seen(&path), before, "what is read is the same before and after");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, before);
        (text, fs::read_dir(dir).unwrap().count())
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
    fn a_merge_that_was_cut_off_anywhere_is_read_and_done_again() {
        let all: String = (0..10_000).map(|n| format!("{n}\n")).collect();
        // One file of the end, two with nothing dropped, and many in turn.
        for length in [600, 900, 48_890] {
            let (_dir, dir) = folder();
            let path = dir.join("output.log");
            drop(written(&path, 1000, all.as_bytes()[..length].chunks(77).map(<[u8]>::to_vec)));
            let text = seen(&path);
            assert!(all[..length].ends_with(&text[text.len() - 100..]), "{length}");
            assert_eq!(text.contains("left out"), length > 1000, "{length}");
            for cut in 500..=text.len() {
                // The merge was killed at this point.
                let half = OpenOptions::new().write(true).open(&path).unwrap();
                half.set_len(500).unwrap();
                (&half).seek(SeekFrom::End(0)).unwrap();
                (&half).write_all(&text.as_bytes()[500..cut]).unwrap();
                assert_eq!(seen(&path), text, "{length} {cut}");
            }
            merge(&path).unwrap();
            assert_eq!((seen(&path), fs::read_dir(&dir).unwrap().count()), (text.clone(), 1), "{length}");
            merge(&path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{length}: a merged log stays as it is");
        }
    }

    #[test]
    fn a_log_deleted_while_it_grows_keeps_the_rest_of_its_output() {
        let (_dir, dir) = folder();
        let path = dir.join("output.log");
        let mut log = written(&path, 1000, std::iter::repeat_n(vec![b'a'; 100], 7));
        fs::remove_dir_all(&dir).unwrap();
        for _ in 0..4 {
            log.write(&[b'b'; 100]).unwrap();
        }
        let text = seen(&path);
        assert!(text.ends_with("bbbb") && text.contains("left out"), "{text}");
        log.merge().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn an_excerpt_is_read_where_the_log_is_not() {
        let (_dir, dir) = folder();
        let path = dir.join("output.log");
        refrain_files::write(&excerpt_of(&path), b"begin\n[...]\nend\n").unwrap();
        assert_eq!(seen(&path), "begin\n[...]\nend\n");
        let _log = written(&path, 100, std::iter::once(b"whole".to_vec()));
        assert_eq!(seen(&path), "whole");
    }

    #[test]
    fn log_folders_are_readable_only_by_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, dir) = folder();
        let path = dir.join("output.log");
        let _log = written(&path, 8, std::iter::once(vec![b'x'; 9]));
        let mode = |path: &Utf8Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&dir), mode(&tail_of(&path)), mode(&path)], [0o700, 0o700, 0o600]);
    }

    #[test]
    fn silence_leaves_no_file() {
        let (_dir, dir) = folder();
        let path = dir.join("stderr.log");
        Log::new(path.clone(), 100).merge().unwrap();
        assert!(!dir.exists() && read(&path).is_err());
    }
}
