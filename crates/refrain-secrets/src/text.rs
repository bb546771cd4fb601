//! A file as its readers see it: UTF-16 and UTF-32 letters as ASCII, without invisible characters, and, a second
//! time, with the parts of concatenated strings joined.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::{Captures, Regex};

use super::hit::bytes_regex;

/// Runs of wide characters anywhere in a file.
static WIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r"(?:[\t\n\r\x20-\xff]\x00){8,}|(?:\x00[\t\n\r\x20-\xff]){8,}|(?:[\t\n\r\x20-\xff]\x00{3}){8,}|(?:\x00{3}[\t\n\r\x20-\xff]){8,}",
    )
});

/// Characters without a width (U+00AD, U+034F, U+180E, U+200B.., U+202A.., U+2060.., U+FEFF, U+E0000..), and the
/// heads in a ZIP file, which directly follow the end of a file in it.
static UNSEEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r"\xc2\xad|\xcd\x8f|\xe1\xa0\x8e|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xf3\xa0[\x80\x81].|PK[\x01\x03\x05\x07][\x02\x04\x06\x08]",
    )
});

/// Text between two parts of a string that a program joins: quotes, with or without an operator, or the end of a
/// line.
static JOINT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r#""\s{0,40}(?:[+.&\\]|\.\.|& _)?\s{0,40}[bBrRfFuU]?"|'\s{0,40}(?:[+.&\\]|\.\.|& _)?\s{0,40}[bBrRfFuU]?'|\\\r?\n[ \t]{0,40}"#,
    )
});

/// The places where strings are concatenated between characters that a secret can contain.
fn joints(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let may_have = memchr::memchr3(b'"', b'\'', b'\\', text).is_some();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(byte);
    let is_joint = move |it: &Range<usize>| {
        let before = it.start.checked_sub(1).and_then(|at| text.get(at));
        before.is_some_and(is_part) && text.get(it.end).is_some_and(is_part)
    };
    may_have
        .then(|| JOINT.as_ref())
        .flatten()
        .into_iter()
        .flat_map(|joint| joint.find_iter(text))
        .map(|found| found.range())
        .filter(is_joint)
}

pub(super) fn readable(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Cow::Borrowed(bytes);
    if memchr::memchr(0, bytes).is_some()
        && let Some(wide) = WIDE.as_ref()
        && let Cow::Owned(narrow) = wide.replace_all(bytes, |stretch: &Captures<'_>| -> Vec<u8> {
            stretch[0].iter().copied().filter(|byte| *byte != 0).collect()
        })
    {
        text = Cow::Owned(narrow);
    }
    if text.is_ascii() && memmem::find(&text, b"PK").is_none() {
        return text;
    }
    let visible = UNSEEN.as_ref().and_then(|unseen| {
        let replace = |it: &Captures<'_>| if it[0][0] == b'P' { b" ".as_slice() } else { b"" }.to_vec();
        match unseen.replace_all(&text, replace) {
            Cow::Owned(visible) => Some(visible),
            Cow::Borrowed(_) => None,
        }
    });
    visible.map_or(text, Cow::Owned)
}

/// How much is joined before and after a joint, and how much must be seen after one that another already covers.
const AROUND: (usize, usize, usize) = (300, 2000, 700);

/// Regions with strings joined, and the position of the first joint of each.
pub(super) fn joined(text: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let mut to = 0;
    joints(text).filter_map(move |joint| {
        if to > 0 && joint.end + AROUND.2 <= to {
            return None;
        }
        let from = joint.start.saturating_sub(AROUND.0);
        let from = memchr::memrchr(b'\n', &text[from..joint.start]).map_or(from, |end| from + end + 1);
        to = text.len().min(joint.end + AROUND.1);
        let (part, mut joined, mut at) = (&text[from..to], Vec::new(), 0);
        for inner in joints(part) {
            joined.extend_from_slice(&part[at..inner.start]);
            at = inner.end;
        }
        joined.extend_from_slice(&part[at..]);
        Some((joint.start, joined))
    })
}
