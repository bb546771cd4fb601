//! One line of a journal: bytes to record and back, and the chain of hashes.

use refrain_core::Record;
use refrain_core::signature::Signature;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The hash of a line: 128 bits of BLAKE3, in hex.
pub(crate) type Hash = [u8; 32];

pub(crate) const ROOT: Hash = [b'0'; 32];

const HEAD: &[u8] = b",\"hash\":\"";
const SIGNATURE: &[u8] = b",\"signature\":{\"key\":\"";
const VALUE: &[u8] = b"\",\"value\":\"";
const TAIL: &[u8] = b"\"}";

/// How long the end of a line is that names its hash, newline included.
pub(crate) const END: usize = HEAD.len() + size_of::<Hash>() + TAIL.len() + 1;

/// Appends the line of `record`, newline included, to `out`; returns its hash. What is to be signed is the hash that it
/// would have without a signature.
pub(crate) fn write<E: Serialize>(
    record: &Record<E>,
    before: Hash,
    out: &mut Vec<u8>,
    sign: impl FnOnce(&str) -> Option<Signature>,
) -> serde_json::Result<Hash> {
    let start = out.len();
    serde_json::to_writer(&mut *out, record)?;
    out.pop(); // the closing brace comes after the hash
    let unsigned = chain(before, &out[start..]);
    if let Some(Signature { key, value }) = std::str::from_utf8(&unsigned).ok().and_then(sign) {
        for part in [SIGNATURE, key.as_str().as_bytes(), VALUE, value.as_str().as_bytes(), TAIL] {
            out.extend_from_slice(part);
        }
    }
    Ok(seal(out, start, before))
}

/// The hash that the line (without its newline) would have without a signature, which is what is signed; and that
/// signature.
pub(crate) fn signed(line: &[u8], before: Hash) -> Option<(Hash, Option<Signature>)> {
    let (body, _) = split(line)?;
    let (unsigned, signature) = match split_signature(body) {
        Some((unsigned, signature)) => (unsigned, Some(signature)),
        None => (body, None),
    };
    Some((chain(before, unsigned), signature))
}

/// A line's body ends in its signature, with parts of fixed length.
fn split_signature(body: &[u8]) -> Option<(&[u8], Signature)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let (body, value) = body.strip_suffix(TAIL)?.split_last_chunk::<128>()?;
    let (body, key) = body.strip_suffix(VALUE)?.split_last_chunk::<64>()?;
    let signature = Signature { key: text(key)?.parse().ok()?, value: text(value)?.parse().ok()? };
    Some((body.strip_suffix(SIGNATURE)?, signature))
}

/// Ends the line that begins at `start` with its hash.
pub(crate) fn seal(out: &mut Vec<u8>, start: usize, before: Hash) -> Hash {
    let hash = chain(before, &out[start..]);
    out.extend_from_slice(HEAD);
    out.extend_from_slice(&hash);
    out.extend_from_slice(TAIL);
    out.push(b'\n');
    hash
}

/// The hash of a line (without its newline) that is as it was written; an error says what is wrong with it.
pub(crate) fn check(line: &[u8], before: Hash) -> Result<Hash, &'static str> {
    let (body, hash) = split(line).ok_or("the line does not end in its hash")?;
    if chain(before, body) != hash {
        return Err("its hash does not fit: a byte was changed here or just before");
    }
    Ok(hash)
}

/// The record of a line, its hash taken on trust.
pub(crate) fn parse<E: DeserializeOwned>(line: &[u8]) -> Result<Record<E>, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// The version of Refrain that a journal's first line names; the rest of the line is ignored.
pub(crate) fn version(first: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct First {
        event: StartLine,
    }
    #[derive(serde::Deserialize)]
    struct StartLine {
        data: Version,
    }
    #[derive(serde::Deserialize)]
    struct Version {
        refrain: String,
    }
    Some(serde_json::from_slice::<First>(first).ok()?.event.data.refrain)
}

fn split(line: &[u8]) -> Option<(&[u8], Hash)> {
    let line = line.strip_suffix(TAIL)?;
    let (line, hash) = line.split_last_chunk::<32>()?;
    Some((line.strip_suffix(HEAD)?, *hash))
}

fn chain(before: Hash, body: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before).update(body);
    let mut hash = ROOT;
    hash.copy_from_slice(&hasher.finalize().to_hex().as_bytes()[..32]);
    hash
}
