//! The logs that go with a loop, as objects of git. Of a long one the begin and the end go: `service/logs/whole_logs.rs` says where
//! all of it is.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::event::Seal;
use refrain_core::git::Oid;
use refrain_core::view::report::Trail;
use refrain_files::remove;
use refrain_git::JournalRef;
use refrain_proc::{identity, output};
use refrain_store::project::moving;
use refrain_store::{DiskError, LoopDir, journal};

use super::disk;
use crate::EngineError;
use crate::service::seal;

/// How much of a log a loop of a fleet takes along, in bytes: a machine pushes what is new of all logs again and again.
pub(crate) const BRIEF: u64 = 256 << 10;
/// The size of all logs that are laid out, in bytes.
pub(crate) const LARGEST_TOTAL: u64 = 1 << 30;

/// The logs of a loop, relative to its folder. An excerpt is one of them if the log itself is not here.
pub(super) fn listed(dir: &LoopDir) -> Result<Vec<Utf8PathBuf>, DiskError> {
    let all = moving::logs(dir)?;
    let is_here = |path: &Utf8PathBuf| whole_of(path).is_none_or(|whole| all.binary_search(&whole).is_err());
    Ok(all.iter().filter(|path| is_here(path)).cloned().collect())
}

/// The log that a file is the excerpt of.
fn whole_of(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let whole = Utf8PathBuf::from(path.as_str().strip_suffix(".excerpt")?);
    (output::excerpt_of(&whole) == path).then_some(whole)
}

/// The length of a log now.
pub(super) fn length(dir: &LoopDir, path: &Utf8Path) -> Option<u64> {
    output::read_part(&dir.0.join(path), 0, 0).ok().map(|(_, length)| length)
}

/// What goes with the loop of a log, and its name there: all of it, or an excerpt if it has more than `most` bytes.
pub(super) fn carried(dir: &LoopDir, path: &Utf8Path, most: u64) -> io::Result<(Utf8PathBuf, Vec<u8>)> {
    let log = dir.0.join(path);
    // What an agent was told says how its stream is read.
    let most = if path.file_name() == Some("prompt.md") { moving::LARGEST } else { most };
    let (content, total) = output::read_part(&log, 0, most)?;
    if total <= most {
        return Ok((path.to_owned(), content));
    }
    // The mark has room, too.
    let half = (BRIEF - 1024) / 2;
    let (mut begin, _) = output::read_part(&log, 0, half)?;
    let mut end = output::read_end(&log, half)?;
    if let Some(last) = begin.iter().rposition(|byte| *byte == b'\n') {
        begin.truncate(last + 1);
    } else {
        begin.push(b'\n');
    }
    if let Some(first) = end.iter().position(|byte| *byte == b'\n').filter(|first| first + 1 < end.len()) {
        end.drain(..=first);
    }
    let omitted = total.saturating_sub((begin.len() + end.len()) as u64);
    let host = identity::own().host;
    let mark = format!("[... {omitted} bytes are not here: the machine {host} has the whole log ...]\n");
    Ok((output::excerpt_of(path), [begin, mark.into_bytes(), end].concat()))
}

/// Puts the logs that came with a loop into its folder, as far as they have the names and sizes of logs. One that is here as
/// this journal has sealed it is not replaced by its excerpt.
pub(super) fn lay_out(
    at: &JournalRef<'_>,
    files: &[(Utf8PathBuf, Oid, u64)],
    (dir, journal): (&LoopDir, &[u8]),
) -> Result<(), EngineError> {
    let mut left = LARGEST_TOTAL;
    let mut seals = None;
    for (path, object, bytes) in files {
        if !moving::is_log(path) || *bytes > moving::LARGEST.min(left) {
            continue;
        }
        left -= bytes;
        if let Some(whole) = whole_of(path).map(|whole| dir.0.join(whole))
            && whole.symlink_metadata().is_ok()
        {
            let seals = match &mut seals {
                Some(seals) => seals,
                none => none.insert(sealed(dir, journal)?),
            };
            let here = seal::of(&whole).ok();
            if seals.iter().any(|(path, seal)| *path == whole && here.as_ref() == Some(seal)) {
                continue;
            }
            remove(&whole).map_err(|source| disk("remove", &whole, source))?;
        }
        moving::write(dir, path, &at.content(object)?)?;
    }
    Ok(())
}

/// The logs that the journal has sealed, each with its place here.
fn sealed(dir: &LoopDir, journal: &[u8]) -> Result<Vec<(Utf8PathBuf, Seal)>, EngineError> {
    let files = Trail::of(&journal::records_in(journal, dir)?).files;
    Ok(files.into_iter().map(|file| (seal::path(dir, &file), file.seal)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried_of(content: &str, most: u64) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let dir = LoopDir(Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap());
        let path = Utf8Path::new("iterations/0001/output.log");
        moving::write(&dir, path, content.as_bytes()).unwrap();
        let (name, content) = carried(&dir, path, most).unwrap();
        (name.into_string(), String::from_utf8(content).unwrap())
    }

    #[test]
    fn a_log_goes_whole_or_as_its_begin_and_end_in_whole_lines() {
        assert_eq!(
            carried_of("short\n", BRIEF),
            ("iterations/0001/output.log".to_owned(), "short\n".to_owned())
        );
        let all: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let (name, excerpt) = carried_of(&all, BRIEF);
        assert_eq!(name, "iterations/0001/output.log.excerpt");
        assert!(excerpt.len() as u64 <= BRIEF, "an excerpt has no excerpt: {}", excerpt.len());
        assert!(excerpt.starts_with("line 0\nline 1\n") && excerpt.ends_with("\nline 99999\n"));
        let (begin, rest) = excerpt.split_once("[... ").unwrap();
        let (omitted, end) = rest.split_once(" ...]\n").unwrap();
        assert!(begin.ends_with('\n') && end.starts_with("line "));
        assert!(omitted.starts_with(&format!("{} bytes", all.len() - begin.len() - end.len())), "{omitted}");
        assert_eq!(carried_of(&all, 1 << 30).1, all);
        let one_line = "x".repeat(1 << 20);
        assert!(carried_of(&one_line, BRIEF).1.len() as u64 <= BRIEF);
    }
}
