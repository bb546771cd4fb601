//! What must not be committed: a screen by the names of files and by what stands in them.
//!
//! A file is refused for its name where nobody would want it in a history whatever is in it ([`names`]), for a token whose
//! shape its vendor has given away ([`tokens`]), and for a value that a name like `password` is given and that looks as if it
//! were one ([`assigned`]). Whether it is one says [`judge`]. The screen is pure; its rules are tables.

mod assigned;
mod judge;
mod names;
mod shapes;
mod signs;
mod stand_ins;
#[cfg(test)]
mod tests;
mod tokens;

use std::borrow::Cow;

use memchr::memmem;

/// Who writes this on a line, as in a comment, says that what looks like a secret there is none.
pub const MARK: &str = "refrain:allow-secret";

/// Something that looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it looks like, in words: `a GitHub token`.
    pub what: &'static str,
    /// The line, from 1; none where the file's name says it.
    pub line: Option<u32>,
    /// Its line has the [`MARK`].
    pub is_marked: bool,
}

/// Where something stands that looks like a secret.
struct Hit<'a> {
    what: &'static str,
    /// What makes it secret, to look for in an older version.
    text: &'a [u8],
    at: usize,
}

/// Looks for a secret in what is about to be committed at `path`. One that stands in `base`, the version that is committed
/// already, is not new; nor is a file whose name alone says it, where there is such a version.
#[must_use]
pub fn screen(path: &[u8], bytes: &[u8], base: Option<&[u8]>) -> Option<Found> {
    if base.is_none()
        && !bytes.is_empty()
        && let Some(what) = names::says(path)
        && !(names::is_rehearsal(path) && is_empty_of_secrets(&narrow(bytes)))
    {
        return Some(Found { what, line: None, is_marked: false });
    }
    let text = narrow(bytes);
    let base = base.map(narrow);
    let is_new = |hit: &Hit<'_>| base.as_ref().is_none_or(|base| memmem::find(base, hit.text).is_none());
    let has_marks = memmem::find(&text, MARK.as_bytes()).is_some();
    let unmarked = find(path, &text, |hit| is_new(hit) && !(has_marks && is_marked(&text, hit.at)));
    let (hit, is_marked) = match unmarked {
        Some(hit) => (hit, false),
        None => (has_marks.then(|| find(path, &text, is_new)).flatten()?, true),
    };
    let line = memchr::memchr_iter(b'\n', &text[..hit.at]).count() + 1;
    Some(Found { what: hit.what, line: u32::try_from(line).ok(), is_marked })
}

fn find<'a>(path: &[u8], text: &'a [u8], counts: impl Fn(&Hit<'_>) -> bool + Copy) -> Option<Hit<'a>> {
    let is_binary = memchr::memchr(0, &text[..text.len().min(8 << 10)]).is_some();
    tokens::find(text, counts).or_else(|| {
        let may_assign = !is_binary && !names::is_generated(path);
        let in_list = || names::is_list_of_secrets(path).then(|| listed(text).find(counts)).flatten();
        let assigned = may_assign.then(|| assigned::find(path, text, counts)).flatten();
        assigned.or_else(in_list)
    })
}

/// Whether the line at this place has the mark.
fn is_marked(text: &[u8], at: usize) -> bool {
    let from = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let to = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
    memmem::find(&text[from..to], MARK.as_bytes()).is_some()
}

/// Whether an environment sets only what everybody has at home: words, numbers, placeholders, logins to this machine.
fn is_empty_of_secrets(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| {
        let value = memchr::memchr(b'=', line).map(|sign| line[sign + 1..].trim_ascii());
        let value = value.unwrap_or(line);
        let value = match value {
            [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
            other => other,
        };
        line.starts_with(b"#") || judge::is_at_home(value)
    })
}

/// What the strings of a list of secrets hold, as far as each is more than a name.
fn listed(text: &[u8]) -> impl Iterator<Item = Hit<'_>> {
    memchr::memchr_iter(b':', text).filter_map(|colon| {
        let blanks = text[colon + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let at = colon + 1 + blanks;
        let value = text.get(at..)?.strip_prefix(b"\"")?;
        let value = &value[..memchr::memchr(b'"', value)?];
        judge::is_filled(value).then_some(Hit { what: "a value in a file of secrets", text: value, at })
    })
}

/// UTF-16, as some programs of Windows write it, without the zeros; everything else as it is.
fn narrow(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] | [0xfe, 0xff, rest @ ..] => rest,
        other if is_wide(other) => other,
        other => return Cow::Borrowed(other),
    };
    Cow::Owned(text.iter().copied().filter(|byte| *byte != 0).collect())
}

/// Whether it is UTF-16 without the mark that says so: nearly every other byte is zero, and none between.
fn is_wide(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1 << 10) & !1];
    let zeros = |from: usize| start.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    let half = start.len() / 2;
    half >= 8 && even.min(odd) == 0 && even.max(odd) * 10 >= half * 9
}
