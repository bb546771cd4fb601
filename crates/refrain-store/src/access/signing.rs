//! Signing journals: the user's key, and the last record that was signed of each loop. Both are kept in the user's
//! state home, which is not in the repository. The core says which records are signed and what a missing signature
//! means (`refrain_core::signature`).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::signature::{
    Check, Flaw, Objection, PublicKey, Signature, Signatures, SignedKind, SignedRecord, request_statement,
    statement,
};
use refrain_core::{LoopId, Machine};
use refrain_files::{Folder, IfThere, split};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::disk::atomic::{make_dir, sync_dir};
use crate::journal::{Hash, JournalError, SignedLine, Snapshot};
use crate::project::inbox;
use crate::project::layout::LoopDir;
use crate::{DiskError, OnPath, Request, config};

/// How many valid signatures a process remembers.
const MOST_VALID: usize = 10_000;
/// How many letters a code has, of 5 bits each.
const CODE: usize = 12;

/// The state home as far as it concerns signatures.
#[derive(Clone, Debug)]
pub struct Signing {
    home: Utf8PathBuf,
    config_home: Utf8PathBuf,
    own: Arc<OnceLock<Option<OwnKey>>>,
}

#[derive(Debug)]
struct OwnKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// The last record of a loop that was signed: a journal that does not hold it was cut, or written anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastSigned {
    pub(crate) records: u64,
    /// The journal's length with it, in bytes.
    pub(crate) bytes: u64,
    /// The hash of its line, which covers all lines before it.
    pub(crate) hash: String,
}

impl LastSigned {
    pub(crate) fn new(records: u64, bytes: u64, hash: Hash) -> Self {
        Self { records, bytes, hash: String::from_utf8_lossy(&hash).into_owned() }
    }
}

impl Signing {
    /// The keys of this state home, and those that the user's configuration trusts. Nothing is read or made yet.
    pub fn new(state_home: &Utf8Path, config_home: &Utf8Path) -> Self {
        Self { home: state_home.join("signing"), config_home: config_home.to_owned(), own: Arc::default() }
    }

    /// The user's public key; none if there is no key yet, or it cannot be read.
    pub fn public_key(&self) -> Option<PublicKey> {
        match self.own.get() {
            Some(own) => own.as_ref().map(|own| own.public.clone()),
            None => OwnKey::public_of(&OwnKey::seed(&self.key_file())?),
        }
    }

    /// The file that the user's key is kept in.
    pub fn key_file(&self) -> Utf8PathBuf {
        self.home.join("key")
    }

    /// Fails if the state home or the key in it is there and cannot be read: every signature would look foreign.
    pub fn check_readable(&self) -> Result<(), DiskError> {
        let home = self.home.parent().unwrap_or(&self.home);
        let key = self.key_file();
        fs::read_dir(home).if_there().on("read", home)?;
        fs::File::open(&key).if_there().on("read", &key).map(drop)
    }

    /// Makes the user's key if there is none. Fails if it can be neither read nor made.
    pub fn require_key(&self) -> Result<(), DiskError> {
        let path = self.key_file();
        if OwnKey::read(&path).is_some() || OwnKey::make(&path)?.is_some() {
            return Ok(());
        }
        Err(io::Error::other("it is no key of this user")).on("read", &path)
    }

    /// Signs with the user's key, which is made first if there is none. None if it can be neither read nor made: the
    /// loop's records are then unsigned.
    pub(crate) fn sign(&self, statement: &[u8]) -> Option<Signature> {
        let path = self.key_file();
        let own =
            self.own.get_or_init(|| OwnKey::read(&path).or_else(|| OwnKey::make(&path).ok()?)).as_ref()?;
        let value = hex(own.pair.sign(statement).as_ref()).parse().ok()?;
        Some(Signature { key: own.public.clone(), value })
    }

    /// A short code that only the holder of the user's key can make of these words; none if there is no key.
    pub fn code(&self, words: &str) -> Option<String> {
        const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let signature = self.sign(format!("refrain code\n{words}").as_bytes())?;
        let hash = blake3::hash(signature.value.to_string().as_bytes());
        let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
        Some(hash.as_bytes().iter().take(CODE).map(letter).collect())
    }

    /// Checks the signatures of the loop in `dir`, and that its journal holds what was signed last.
    pub(crate) fn judge<S: Machine>(
        &self,
        dir: &LoopDir,
        snapshot: &Snapshot<S>,
    ) -> Result<Signatures, JournalError> {
        self.check_last(dir, &snapshot.signed)?;
        let trusts = self.trusts();
        let last_end = snapshot.signed.iter().rev().find(|line| line.kind == SignedKind::End);
        let last_end = last_end.map(|line| line.seq);
        let counts = |line: &&SignedLine| match line.kind {
            SignedKind::Start
            | SignedKind::Resumed { approves: true }
            | SignedKind::Departure
            | SignedKind::Arrival => true,
            SignedKind::End => last_end == Some(line.seq),
            SignedKind::Runner | SignedKind::Resumed { approves: false } => false,
        };
        let id = snapshot.state.id();
        let lines = snapshot.signed.iter().filter(counts);
        let signed: Vec<_> = lines.map(|line| signed_record(id, line, &trusts)).collect();
        if let Some(SignedRecord { kind: SignedKind::Start, check: Err(Flaw::Invalid), .. }) = signed.first()
        {
            return Err(JournalError::damaged(dir.journal(), 1, "its signature does not fit"));
        }
        Ok(snapshot.state.judge(&signed))
    }

    /// Why neither the user nor a trusted key vouches for the start of the journal in `dir`, which holds what was signed
    /// last.
    pub(crate) fn foreign_start(
        &self,
        dir: &LoopDir,
        snapshot: &Snapshot,
    ) -> Result<Option<Objection>, JournalError> {
        self.check_last(dir, &snapshot.signed)?;
        let (id, trusts) = (snapshot.state.id(), self.trusts());
        let vouch = |line: &&SignedLine| matches!(line.kind, SignedKind::Start | SignedKind::Arrival);
        let lines = snapshot.signed.iter().filter(vouch);
        let signed: Vec<_> = lines.map(|line| signed_record(id, line, &trusts)).collect();
        Ok(snapshot.state.foreign_start(&signed))
    }

    /// The files that [`Self::judge`] depends on, whatever the loop; beside them on its journal and its [`Self::place`].
    pub(crate) fn judges(&self) -> [Utf8PathBuf; 2] {
        [self.key_file(), config::edit::user_path(&self.config_home)]
    }

    /// The key that signed a line, and whether the user trusts it; none without a valid signature.
    pub(crate) fn signer(&self, id: &LoopId, line: &SignedLine) -> Option<(PublicKey, bool)> {
        match (check_line(id, line, &self.trusts()), &line.signature) {
            (Ok(()), Some(signature)) => Some((signature.key.clone(), true)),
            (Err(Flaw::Unknown(key)), _) => Some((key, false)),
            (Ok(()) | Err(Flaw::Missing | Flaw::Invalid), _) => None,
        }
    }

    /// Whether a key is the user's, or one that the user trusts.
    fn trusts(&self) -> impl Fn(&PublicKey) -> bool {
        let trusted = OnceLock::new();
        move |key| {
            let trusted = trusted.get_or_init(|| {
                let others = config::trusted_signers(&self.config_home);
                self.public_key().into_iter().chain(others).collect::<Vec<_>>()
            });
            trusted.contains(key)
        }
    }

    /// A request to the loop or plan in `dir`, signed if a person makes it.
    pub fn sign_request(&self, dir: &LoopDir, request: Request) -> Request {
        let signature = request.by.is_person().then(|| self.sign(&statement_of(dir, &request))).flatten();
        Request { signature, ..request }
    }

    /// The requests that wait in the inbox of the loop or plan in `dir`, with the file of each, and with whom it counts
    /// as from.
    pub fn requests(&self, dir: &LoopDir) -> Result<Vec<(Request, Utf8PathBuf)>, DiskError> {
        let (mut waiting, trusts) = (inbox::waiting(dir)?, self.trusts());
        for (request, _) in &mut waiting {
            let found = check(request.signature.as_ref(), &statement_of(dir, request), &trusts);
            request.by = request.by.checked(&found);
        }
        Ok(waiting)
    }

    fn check_last(&self, dir: &LoopDir, signed: &[SignedLine]) -> Result<(), JournalError> {
        let place = self.place(dir);
        let Some(last) = read_own(&place).and_then(|bytes| serde_json::from_slice::<LastSigned>(&bytes).ok())
        else {
            return Ok(());
        };
        let is_it = |line: &SignedLine| line.seq == last.records && line.hash == last.hash.as_bytes();
        if signed.iter().any(is_it) {
            return Ok(());
        }
        let what = format!(
            "record {}, the last that was signed, is not there any more: the journal was cut or written anew; if you put an older \
             copy there yourself, remove {place}",
            last.records
        );
        Err(JournalError::damaged(dir.journal(), last.records, what))
    }

    /// Remembers the last record of the loop in `dir` that was signed. It is not synced: what a power loss takes of it
    /// is never more than the memory itself.
    pub(crate) fn remember(&self, dir: &LoopDir, last: &LastSigned) {
        // Without it a cut tail does not show; the loop continues.
        let _ = Self::try_remember(&self.place(dir), last);
    }

    fn try_remember(place: &Utf8Path, last: &LastSigned) -> Result<(), DiskError> {
        let (folder, name) = split(place).on("write", place)?;
        make_dir(folder)?;
        let bytes = serde_json::to_vec(last).map_err(io::Error::from).on("encode", place)?;
        Folder::open_trusted(folder)
            .and_then(|folder| folder.replace_unsynced(name, &bytes))
            .on("write", place)
    }

    /// Forgets that record: another machine continued the loop without it.
    pub fn forget(&self, dir: &LoopDir) {
        let _ = fs::remove_file(self.place(dir));
    }

    /// Whether this state home holds a record of the loop in `dir`.
    pub fn remembers(&self, dir: &LoopDir) -> bool {
        self.place(dir).is_file()
    }

    /// Takes what is remembered of a loop along to the folder that it was moved to.
    pub fn moved(&self, from: &LoopDir, to: &LoopDir) {
        let _ = fs::rename(self.place(from), self.place(to));
    }

    pub(crate) fn place(&self, dir: &LoopDir) -> Utf8PathBuf {
        let name = blake3::hash(dir.0.as_str().as_bytes()).to_hex();
        self.home.join("last").join(format!("{}.json", &name[..32]))
    }
}

impl OwnKey {
    fn read(path: &Utf8Path) -> Option<Self> {
        Self::of(&Self::seed(path)?)
    }

    fn seed(path: &Utf8Path) -> Option<Vec<u8>> {
        unhex(std::str::from_utf8(&read_own(path)?).ok()?.trim_end())
    }

    /// The public key of a seed. The last one is remembered, by the seed's hash: a server asks again and again.
    fn public_of(seed: &[u8]) -> Option<PublicKey> {
        static LAST: Mutex<Option<([u8; 32], PublicKey)>> = Mutex::new(None);
        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let of = *blake3::hash(seed).as_bytes();
        if let Some((_, public)) = last().as_ref().filter(|(known, _)| *known == of) {
            return Some(public.clone());
        }
        let public = Self::of(seed)?.public;
        *last() = Some((of, public.clone()));
        Some(public)
    }

    fn of(seed: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let public = hex(pair.public_key().as_ref()).parse().ok()?;
        Some(Self { pair, public })
    }

    /// Makes the file, for its owner alone; of two processes that do so at once both take the key of the first.
    fn make(path: &Utf8Path) -> Result<Option<Self>, DiskError> {
        let random = ring::rand::generate::<[u8; 32]>(&SystemRandom::new());
        let seed = random.map_err(|_| io::Error::other("the system has no randomness")).on("make", path)?;
        let seed = seed.expose();
        let dir = path.parent().unwrap_or(Utf8Path::new("."));
        make_dir(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir).on("create a file in", dir)?;
        writeln!(file, "{}", hex(&seed)).on("write", path)?;
        file.as_file().sync_all().on("sync", path)?;
        match file.persist_noclobber(path) {
            Ok(_) => sync_dir(dir).map(|()| Self::of(&seed)),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(Self::read(path)),
            Err(error) => Err(error.error).on("create", path),
        }
    }
}

/// The content of a file of the user's own. If there is no home, the state home is a place that all users can write to.
fn read_own(path: &Utf8Path) -> Option<Vec<u8>> {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.uid() == own)?;
    fs::read(path).ok()
}

fn signed_record(id: &LoopId, line: &SignedLine, trusts: &impl Fn(&PublicKey) -> bool) -> SignedRecord {
    SignedRecord { kind: line.kind, seq: line.seq, check: check_line(id, line, trusts) }
}

fn check_line(id: &LoopId, line: &SignedLine, trusts: &impl Fn(&PublicKey) -> bool) -> Check {
    // A hash is text; of one that is none nothing was signed.
    let hash = std::str::from_utf8(&line.unsigned as &Hash).unwrap_or_default();
    check(line.signature.as_ref(), &statement(id, line.seq, hash), trusts)
}

fn statement_of(dir: &LoopDir, request: &Request) -> Vec<u8> {
    let kind = dir.0.parent().and_then(Utf8Path::file_name).unwrap_or_default();
    let of = format!("{kind}/{}", dir.0.file_name().unwrap_or_default());
    request_statement(&of, &request.id, &serde_json::to_string(&request.ask).unwrap_or_default())
}

fn check(signature: Option<&Signature>, statement: &[u8], trusts: &impl Fn(&PublicKey) -> bool) -> Check {
    let Some(Signature { key, value }) = signature else { return Err(Flaw::Missing) };
    match is_valid(key, value.as_str(), statement) {
        false => Err(Flaw::Invalid),
        true if trusts(key) => Ok(()),
        true => Err(Flaw::Unknown(key.clone())),
    }
}

/// Whether the key signed that. What was found valid once is: a server reads the same signatures again and again.
fn is_valid(key: &PublicKey, value: &str, statement: &[u8]) -> bool {
    static VALID: Mutex<BTreeSet<[u8; 32]>> = Mutex::new(BTreeSet::new());
    let valid = || VALID.lock().unwrap_or_else(PoisonError::into_inner);
    // Each part is as long as it says.
    let mut all = blake3::Hasher::new();
    for part in [key.as_str().as_bytes(), value.as_bytes(), statement] {
        all.update(&part.len().to_le_bytes()).update(part);
    }
    let of = *all.finalize().as_bytes();
    if valid().contains(&of) {
        return true;
    }
    let verify = || {
        let (public, value) = (unhex(key.as_str())?, unhex(value)?);
        UnparsedPublicKey::new(&ED25519, public).verify(statement, &value).ok()
    };
    let is_valid = verify().is_some();
    if is_valid {
        let mut valid = valid();
        if valid.len() >= MOST_VALID {
            valid.clear();
        }
        valid.insert(of);
    }
    is_valid
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
