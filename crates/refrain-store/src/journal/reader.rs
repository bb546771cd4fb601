//! Reading a journal: whole and checked, or as it grows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use refrain_core::signature::{Objection, PublicKey, Remedy, Signature, Signatures, SignedKind};
use refrain_core::spec::Spec;
use refrain_core::{Event, LoopState, Machine, Record};
use refrain_files::{IfThere, open_regular};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::JournalError;
use super::disk::SharedFile;
use super::line::{self, Hash, ROOT};
use super::write::Journal;
use crate::OnPath;
use crate::access::signing::Signing;
use crate::project::archive;
use crate::project::layout::LoopDir;

/// The size that no record of a departure has, in bytes.
const LAST_RECORD: u64 = 64 << 10;

#[derive(Debug)]
pub struct Snapshot<S = LoopState> {
    pub state: S,
    /// Bytes of an unterminated last line, passed over.
    pub torn: u64,
    pub(crate) head: Hash,
    pub(crate) signed: Vec<SignedLine>,
}

/// A line with a record that is signed, or should be.
#[derive(Clone, Debug)]
pub(crate) struct SignedLine {
    pub(crate) kind: SignedKind,
    pub(crate) seq: u64,
    /// Where it begins in the journal, in bytes; or the last result before it that no signature covers yet.
    pub(crate) at: u64,
    pub(crate) hash: Hash,
    pub(crate) unsigned: Hash,
    pub(crate) signature: Option<Signature>,
}

/// Folds the journal of the loop in `dir`, every hash checked.
/// Errors: [`JournalError`] if there is none, where a line is damaged, or if it cannot be read.
pub fn read(dir: &LoopDir) -> Result<Snapshot, JournalError> {
    read_as(dir)
}

/// The same of anything else that has a journal.
pub fn read_as<S: Machine>(dir: &LoopDir) -> Result<Snapshot<S>, JournalError> {
    fold_folder(open(dir)?, dir, |_, _, _| {})
}

/// What the loop in `dir` was started with, from the first line alone.
pub fn spec(dir: &LoopDir) -> Result<Spec, JournalError> {
    spec_of(&first_line(dir)?, dir)
}

/// The first line of the journal in `dir`, unchecked.
pub fn first_line(dir: &LoopDir) -> Result<Vec<u8>, JournalError> {
    let mut first = Vec::new();
    BufReader::new(open(dir)?).read_until(b'\n', &mut first).on("read", &dir.journal())?;
    Ok(first)
}

/// What the first line of the journal in `dir` says.
pub fn spec_of(first: &[u8], dir: &LoopDir) -> Result<Spec, JournalError> {
    Ok(fold::<LoopState>(first, dir, |_, _, _| {})?.state.spec)
}

/// The records of the loop in `dir`, in order, every hash checked.
pub fn records(dir: &LoopDir) -> Result<Vec<Record>, JournalError> {
    records_as::<LoopState>(dir)
}

/// The same of anything else that has a journal.
pub fn records_as<S: Machine>(dir: &LoopDir) -> Result<Vec<Record<S::Event>>, JournalError> {
    let mut records = Vec::new();
    fold_folder::<S>(open(dir)?, dir, |record, _, _| records.push(record))?;
    Ok(records)
}

/// Folds the journal of the loop in `dir`, every hash and every signature checked, and that it continues from what was
/// signed last.
/// Errors: As [`read`]; [`JournalError::Damaged`] too if it is shorter than what was signed, or differs before.
pub fn read_signed(dir: &LoopDir, signing: &Signing) -> Result<Snapshot, JournalError> {
    let mut snapshot: Snapshot = read(dir)?;
    snapshot.state.signatures = signing.judge(dir, &snapshot)?;
    Ok(snapshot)
}

/// The state of what lies in `dir` as far as its journal is believed: up to the first record that should be signed and
/// that no key signed.
pub fn read_believed<S: Machine>(dir: &LoopDir, signing: &Signing) -> Result<S, JournalError> {
    let snapshot: Snapshot<S> = read_as(dir)?;
    match snapshot.forged_from(&signing.judge(dir, &snapshot)?) {
        None => Ok(snapshot.state),
        Some(length) => Ok(fold_folder::<S>(open(dir)?.take(length), dir, |_, _, _| {})?.state),
    }
}

/// Why neither the user nor a trusted key vouches for the start of the loop in `dir`: its commands may be a stranger's.
pub fn foreign_start(dir: &LoopDir, signing: &Signing) -> Result<Option<Objection>, JournalError> {
    signing.foreign_start(dir, &read(dir)?)
}

/// Whether the last record of the journal in `dir` says that the loop left this machine. Only its end is read, and nothing
/// is checked.
pub fn has_left(dir: &LoopDir) -> bool {
    let end = || -> io::Result<String> {
        let mut file = open_regular(&dir.journal())?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_RECORD)))?;
        let mut end = Vec::new();
        file.take(LAST_RECORD).read_to_end(&mut end)?;
        Ok(String::from_utf8_lossy(&end).into_owned())
    };
    end().is_ok_and(|end| end.lines().last().is_some_and(|line| line.contains(r#""type":"loop.left""#)))
}

/// Checks and folds the journal of a loop that a git remote has; `from` is where it was read.
pub fn check_copy(bytes: &[u8], from: &LoopDir) -> Result<LoopState, JournalError> {
    Ok(fold(bytes, from, |_, _, _| {})?.state)
}

/// The records of such a journal, in order.
pub fn records_in(bytes: &[u8], from: &LoopDir) -> Result<Vec<Record>, JournalError> {
    let mut records = Vec::new();
    fold::<LoopState>(bytes, from, |record, _, _| records.push(record))?;
    Ok(records)
}

/// A journal that came from another machine.
#[derive(Debug)]
pub struct ForeignJournal {
    pub state: LoopState,
    /// The key that signed its last record, and whether the user trusts it.
    pub key: PublicKey,
    pub is_trusted: bool,
}

/// Checks the journal of a loop that left another machine; `from` is where it was read. Its last record has to be the
/// departure, with a signature that covers everything before it.
pub fn departed(bytes: &[u8], from: &LoopDir, signing: &Signing) -> Result<ForeignJournal, JournalError> {
    let Snapshot { state, torn, signed, .. }: Snapshot = fold(bytes, from, |_, _, _| {})?;
    let damaged = |what: &str| JournalError::damaged(from.journal(), state.lifecycle.seq, what);
    let last = signed
        .last()
        .filter(|line| line.kind == SignedKind::Departure && line.seq == state.lifecycle.seq && torn == 0);
    let last = last.ok_or_else(|| damaged("its last record is not the departure of the loop"))?;
    match signing.signer(&state.spec.id, last) {
        Some((key, is_trusted)) => Ok(ForeignJournal { key, is_trusted, state }),
        None => Err(damaged("the departure of the loop is not signed, or its signature does not fit")),
    }
}

/// Checks the journal of a loop that another machine had under a fence. No departure is its last record, so its tail is
/// as trustworthy as those that can push to the remote: the key is that of the last record that has a signature.
pub fn held(bytes: &[u8], from: &LoopDir, signing: &Signing) -> Result<ForeignJournal, JournalError> {
    let Snapshot { state, signed, .. }: Snapshot = fold(bytes, from, |_, _, _| {})?;
    let last = signed.iter().rev().find(|line| line.signature.is_some());
    match last.and_then(|last| signing.signer(&state.spec.id, last)) {
        Some((key, is_trusted)) => Ok(ForeignJournal { key, is_trusted, state }),
        None => Err(JournalError::damaged(
            from.journal(),
            state.lifecycle.seq,
            "no record of it has a valid signature",
        )),
    }
}

impl<S> Snapshot<S> {
    /// Where the first record begins, in bytes, that should be signed and has no signature; with the last result that
    /// it is based on.
    pub(super) fn forged_from(&self, signatures: &Signatures) -> Option<u64> {
        let objection = signatures.objection().filter(|objection| objection.remedy() == Remedy::SetAside)?;
        self.signed.iter().find(|line| line.seq == objection.seq).map(|line| line.at)
    }
}

fn open(dir: &LoopDir) -> Result<File, JournalError> {
    let path = dir.journal();
    File::open(&path).if_there().on("open", &path)?.ok_or_else(|| without_start(dir))
}

/// What is wrong if there is no first line: the journal is damaged, or there is no loop.
fn without_start(dir: &LoopDir) -> JournalError {
    match dir.has_remains() {
        true => JournalError::damaged(dir.journal(), 1, "the first record is missing or cut off"),
        false => JournalError::Missing(dir.journal()),
    }
}

/// Folds the journal of a folder of this machine, which has the name of what it holds: a copy under another name counts
/// for nothing.
pub(super) fn fold_folder<S: Machine>(
    file: impl Read,
    dir: &LoopDir,
    given: impl FnMut(Record<S::Event>, Hash, &[u8]),
) -> Result<Snapshot<S>, JournalError> {
    let snapshot = fold::<S>(file, dir, given)?;
    let id = snapshot.state.id();
    if !archive::is_folder_of(dir, id) {
        let what = format!("it is the journal of {id}: its folder was copied or renamed");
        return Err(JournalError::damaged(dir.journal(), 1, what));
    }
    Ok(snapshot)
}

/// Reads, checks and folds, line by line; each record is then `given` away, with its hash and its line.
pub(super) fn fold<S: Machine>(
    file: impl Read,
    dir: &LoopDir,
    mut given: impl FnMut(Record<S::Event>, Hash, &[u8]),
) -> Result<Snapshot<S>, JournalError> {
    let path = dir.journal();
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut state = None::<S>;
    let (mut head, mut number, mut at) = (ROOT, 0, 0);
    let (mut signed, mut result) = (Vec::new(), None);
    let (mut bytes, mut version) = (Vec::new(), None);
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).on("read", &path)? as u64;
        let Some(text) = bytes.strip_suffix(b"\n") else {
            let Some(state) = state else { return Err(without_start(dir)) };
            return Ok(Snapshot { state, torn: read, head, signed });
        };
        number += 1;
        let damaged = |what: String| JournalError::damaged(path.clone(), number, what);
        if number == 1 {
            version = line::version(text);
        }
        let before = head;
        head = line::check(text, before).map_err(|what| damaged(what.to_owned()))?;
        let record: Record<S::Event> = line::parse(text).map_err(|what| {
            let version = version.as_deref().unwrap_or("an unknown version");
            damaged(format!(
                "{what} (the loop was started by Refrain {version}; a later one may have gone on)"
            ))
        })?;
        match &mut state {
            None => state = Some(S::begin(&record).map_err(|damage| damaged(damage.to_string()))?),
            Some(state) => state.apply(&record).map_err(|damage| damaged(damage.to_string()))?,
        }
        if let Some(kind) = S::signed(&record.event)
            && let Some((unsigned, signature)) = line::signed(text, before)
        {
            let at = result.take().unwrap_or(at);
            signed.push(SignedLine { kind, seq: record.seq, at, hash: head, unsigned, signature });
        } else if S::is_result(&record.event) {
            result = Some(at);
        }
        given(record, head, &bytes);
        at += read;
    }
}

/// A whole journal, checked: what `refrain verify` and `refrain report` begin with.
#[derive(Debug)]
pub struct Whole {
    pub records: Vec<Record>,
    /// The hash of each, which is that of all in front of it too.
    pub hashes: Vec<String>,
    pub state: LoopState,
    /// Bytes of an unterminated last line.
    pub torn: u64,
}

/// The journal of the loop in `dir` with all its hashes, each checked.
/// Errors: As [`read`]; [`JournalError::Damaged`] names the first line that is not as it was written.
pub fn whole(dir: &LoopDir, signing: &Signing) -> Result<Whole, JournalError> {
    let (mut records, mut hashes) = (Vec::new(), Vec::new());
    let mut snapshot: Snapshot = fold_folder(open(dir)?, dir, |record, hash, _| {
        records.push(record);
        hashes.push(String::from_utf8_lossy(&hash).into_owned());
    })?;
    snapshot.state.signatures = signing.judge(dir, &snapshot)?;
    Ok(Whole { records, hashes, state: snapshot.state, torn: snapshot.torn })
}

/// A journal that is read while it grows. Hashes are not checked: this is for showing.
#[derive(Debug)]
pub struct Tail<E = Event> {
    path: Utf8PathBuf,
    /// The file that its writer writes, if that is in this process.
    written: Option<SharedFile>,
    /// The file that was read last, by its device and number.
    file: Option<(u64, u64)>,
    at: u64,
    line: u64,
    /// The end of the last line that was read, with its hash.
    last: Vec<u8>,
    of: PhantomData<E>,
}

impl<E: DeserializeOwned> Tail<E> {
    pub fn new(dir: &LoopDir) -> Self {
        let path = dir.journal();
        Self { path, written: None, file: None, at: 0, line: 0, last: Vec::new(), of: PhantomData }
    }

    /// From the first record on, of a journal that this process writes: as it was written, even if another file has its
    /// place.
    pub fn of<S: Machine<Event = E>>(journal: &Journal<S>) -> Self {
        Self { written: Some(journal.written()), ..Self::new(journal.dir()) }
    }

    /// The records that came since the last call, as far as `limit` bytes of the file; all of them again if another
    /// process had changed the journal and its writer wrote it back.
    pub fn next(&mut self, limit: u64) -> Result<Vec<Record<E>>, JournalError> {
        let path = &self.path;
        let file = match &self.written {
            Some(written) => Some(written.file()),
            None => File::open(path).if_there().on("open", path)?.map(Arc::new),
        };
        // The loop was just archived, or deleted and not yet written back: nothing new for now.
        let Some(file) = file else { return Ok(Vec::new()) };
        let meta = file.metadata().on("look at", path)?;
        let is_another = self.file.replace((meta.dev(), meta.ino())) != self.file;
        if is_another && self.at > 0 && !ends_with(&file, self.at, &self.last).on("read", path)? {
            (self.at, self.line) = (0, 0);
        }
        let bytes = read_at(&file, self.at, limit.saturating_sub(self.at)).on("read", path)?;
        let mut records = Vec::new();
        for text in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = text.strip_suffix(b"\n") else { break };
            self.line += 1;
            let record = line::parse(line);
            records.push(record.map_err(|what| JournalError::damaged(path.clone(), self.line, what))?);
            self.at += text.len() as u64;
            self.last = text[text.len().saturating_sub(line::END)..].to_vec();
        }
        Ok(records)
    }
}

/// Whether the file holds `last` right before `at`.
fn ends_with(file: &File, at: u64, last: &[u8]) -> io::Result<bool> {
    let length = last.len() as u64;
    Ok(at >= length && read_at(file, at - length, length)? == last)
}

/// A recorded event: its number, time and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub seq: u64,
    pub at: Timestamp,
    pub name: String,
}

/// A line, as far as its mark goes.
#[derive(Deserialize)]
struct MarkedLine {
    seq: u64,
    at: Timestamp,
    event: EventName,
}

#[derive(Deserialize)]
struct EventName {
    #[serde(rename = "type")]
    name: String,
}

/// The marks of a journal of any kind after its first `at` bytes, and its length in bytes then. Nothing is checked:
/// this only tells a caller that there is something to be read.
pub fn marks(dir: &LoopDir, at: u64) -> Result<(Vec<Mark>, u64), crate::DiskError> {
    let path = dir.journal();
    let file = File::open(&path).on("open", &path)?;
    let length = file.metadata().on("look at", &path)?.len();
    // It was cut since: a torn line was moved aside. What is read twice is known again by its number.
    let from = if length < at { 0 } else { at };
    let bytes = read_at(&file, from, u64::MAX).on("read", &path)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mark = |line: &[u8]| {
        let MarkedLine { seq, at, event } = serde_json::from_slice(line).ok()?;
        Some(Mark { seq, at, name: event.name })
    };
    Ok((lines.filter_map(mark).collect(), from + whole as u64))
}

/// What the file holds from `at` on, at most `limit` bytes. A writer with the same handle is not disturbed.
fn read_at(file: &File, at: u64, limit: u64) -> io::Result<Vec<u8>> {
    let there = file.metadata()?.len().saturating_sub(at).min(limit);
    let mut bytes = vec![0; usize::try_from(there).unwrap_or(usize::MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
