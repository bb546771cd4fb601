//! Secrets of Kubernetes, whose keys may have any name: every value in `data` and `stringData` is one.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::hit::{Hit, Novelty, bytes_regex};
use super::value;

static KIND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(r#"(?m)(?:^|["'\s{,])kind["']?[ \t]*:[ \t]*["']?Secret["']?[ \t\r]*(?:[,}#]|$)"#)
});

/// A block of data in YAML, or an object of data in JSON.
static DATA: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r#"(?m)^[ \t]*(data|stringData):[ \t\r]*\n((?:[ \t]+[^\n]*\n?|\r?\n)+)|"(data|stringData)"\s*:\s*\{([^{}]*)\}"#,
    )
});

static ENTRY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r#"(?m)(?:^[ \t]+["']?|[{,]?\s*")[\w.-]+["']?[ \t]*:[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'|>&*!{\[][^\s]*)[ \t\r]*$)"#,
    )
});

/// The first new value of a Kubernetes secret.
pub(super) fn find(text: &[u8], is_new: Novelty<'_>) -> Option<Hit> {
    memmem::find(text, b"Secret").and_then(|_| memmem::find(text, b"ata"))?;
    let (kind, data, entry) = (KIND.as_ref()?, DATA.as_ref()?, ENTRY.as_ref()?);
    let mut from = 0;
    // One file may contain several documents, separated by `---`.
    for end in memmem::find_iter(text, b"\n---").chain([text.len()]) {
        let part = &text[from..end];
        let is_one = kind.is_match(part);
        for block in data.captures_iter(part).filter(|_| is_one) {
            let name = block.get(1).or_else(|| block.get(3))?;
            let inner = block.get(2).or_else(|| block.get(4))?;
            let is_plain = name.as_bytes().starts_with(b"s");
            for found in entry.captures_iter(inner.as_bytes()) {
                let body = found.iter().skip(1).flatten().next()?;
                let decoded = if is_plain { None } else { decode(body.as_bytes()) };
                let says = decoded.as_deref().unwrap_or(body.as_bytes());
                let is_key = says.len() >= 8 && str::from_utf8(says).is_err();
                let is_public = says.starts_with(b"-----BEGIN C") || says.starts_with(b"-----BEGIN PUBLIC");
                if (is_key || value::is_filled(says)) && !is_public && is_new(body.as_bytes()) {
                    let what = "a value in a secret of Kubernetes";
                    return Some(Hit { what, at: from + inner.start() + body.start() });
                }
            }
        }
        from = end;
    }
    None
}

/// Decodes base64.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut decoded) = (0_u32, 0, Vec::new());
    for byte in text.iter().filter(|byte| **byte != b'=') {
        let digit = LETTERS.iter().position(|letter| letter == byte)?;
        (bits, count) = (bits << 6 | u32::try_from(digit).ok()?, count + 6);
        if count >= 8 {
            count -= 8;
            decoded.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(decoded)
}
