//! What must not be committed or pushed: a scan of files by name and content.
//!
//! A file is refused for a name that never belongs in a history ([`names`]), for a match of a rule ([`rules`]), and
//! for a value assigned to a name like `password` that looks like a real one ([`assignment`]). [`value`] and
//! [`allow`] decide whether a match is a secret. The scan is pure; its rules are tables, which are compiled when the
//! first file is scanned.

mod allow;
mod assignment;
#[cfg(test)]
mod corpus;
mod hit;
mod manifest;
mod names;
mod private_key;
mod rules;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod words;

use memchr::memmem;

use hit::{Hit, Novelty};
pub use private_key::begins_key;

/// A match on a line with this mark, as in a comment, does not count if the line is older than the loop.
pub const MARK: &str = "refrain:allow-secret";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// Its kind, as text: `a GitHub token`.
    pub what: &'static str,
    /// The line, from 1; none if the file's name is the reason.
    pub line: Option<u32>,
    /// Its line has the [`MARK`].
    pub is_marked: bool,
}

/// The shortest name in which a rule can find a secret.
const SHORTEST: usize = 12;

/// Searches the new content of `path` for a secret. A secret that is already in `base`, the committed version, is not
/// new; nor is a path that has such a version.
pub fn screen(path: &[u8], bytes: &[u8], base: Option<&[u8]>) -> Option<SecretMatch> {
    let text = text::readable(bytes);
    if base.is_none() {
        let is_harmless = || names::is_rehearsal(path) && is_empty_of_secrets(&text);
        let by_name = names::says(path).filter(|_| !bytes.is_empty() && !is_harmless());
        if let Some(what) = by_name.or_else(|| screen_name(path)) {
            return Some(SecretMatch { what, line: None, is_marked: false });
        }
    }
    let base = base.map(|base| {
        let base = text::readable(base);
        let joined = text::joined(&base).flat_map(|(_, joined)| joined).collect();
        [base.into_owned(), joined].concat()
    });
    let is_new = |secret: &[u8]| base.as_ref().is_none_or(|base| memmem::find(base, secret).is_none());
    let Hit { what, at } = find(path, &text, &is_new)?;
    let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
    Some(SecretMatch { what, line: u32::try_from(line).ok(), is_marked: is_marked(line_at(&text, at)) })
}

/// Searches a path, the name of a branch, or a message for a secret: only with the table of rules.
pub fn screen_name(name: &[u8]) -> Option<&'static str> {
    (name.len() >= SHORTEST)
        .then(|| scan::find(&text::readable(name), &|_| true))
        .flatten()
        .map(|hit| hit.what)
}

/// The lines of a file that have the [`MARK`].
pub fn marked_lines(bytes: &[u8]) -> Vec<u8> {
    let text = text::readable(bytes);
    text.split_inclusive(|byte| *byte == b'\n').filter(|line| is_marked(line)).flatten().copied().collect()
}

fn find(path: &[u8], text: &[u8], is_new: Novelty<'_>) -> Option<Hit> {
    let is_binary = memchr::memchr(0, &text[..text.len().min(8 << 10)]).is_some();
    let assigns = !is_binary && !names::is_generated(path);
    let plain = |text: &[u8]| {
        let assigned = || assigns.then(|| assignment::find(path, text, is_new)).flatten();
        scan::find(text, is_new).or_else(assigned)
    };
    let hit = plain(text).or_else(|| {
        let in_list = names::is_list_of_secrets(path).then(|| listed(text, is_new)).flatten();
        in_list.or_else(|| assigns.then(|| manifest::find(text, is_new)).flatten())
    });
    let in_joined = |(at, text): (usize, Vec<u8>)| plain(&text).map(|hit| Hit { at, ..hit });
    hit.or_else(|| text::joined(text).filter(|_| !is_binary).find_map(in_joined))
}

fn line_at(text: &[u8], at: usize) -> &[u8] {
    let from = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let to = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
    &text[from..to]
}

fn is_marked(line: &[u8]) -> bool {
    memmem::find(line, MARK.as_bytes()).is_some()
}

/// Whether an environment file contains only harmless values: words, numbers, placeholders, logins to this machine.
fn is_empty_of_secrets(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| {
        let value = memchr::memchr(b'=', line).map(|sign| line[sign + 1..].trim_ascii());
        let value = match value.unwrap_or(line) {
            [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
            other => other,
        };
        line.starts_with(b"#") || value::is_at_home(value)
    })
}

/// The first string in a list of secrets that is more than a name.
fn listed(text: &[u8], is_new: Novelty<'_>) -> Option<Hit> {
    memchr::memchr_iter(b':', text).find_map(|colon| {
        let blanks = text[colon + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let at = colon + 1 + blanks;
        let value = text.get(at..)?.strip_prefix(b"\"")?;
        let value = &value[..memchr::memchr(b'"', value)?];
        let is_secret = value::is_filled(value) && is_new(value);
        is_secret.then_some(Hit { what: "a value in a file of secrets", at })
    })
}
