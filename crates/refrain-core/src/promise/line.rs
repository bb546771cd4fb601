//! What one line says about the promise, once it is known to be plain text.

use super::block::list_mark;
use super::{CLOSE, NearMiss, OPEN};
use crate::text::squeeze;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineMeaning {
    Nothing,
    /// The promise, alone on the line: a claim.
    Promise,
    /// Other words, then the promise, without punctuation after it. On the last line it is a claim if a required gate
    /// decides about the claim; otherwise it is a mention.
    PromiseAtEnd,
    /// Something that is no claim, but looks like one.
    Nearly(NearMiss),
    /// A tag that is open at the end of the line.
    Open,
}

/// Reads what the line says of the promise `text`.
pub(super) fn read(line: &str, text: &str) -> LineMeaning {
    let (mut outside, mut rest) = (Vec::new(), line);
    let mut words = Vec::new();
    while let Some((before, inside)) = rest.split_once(OPEN) {
        let Some((inner, after)) = inside.split_once(CLOSE) else {
            // An open tag may close on a later line, unless a claim on this one has settled it.
            return if words.iter().any(|inner| inner == text) {
                LineMeaning::Nearly(NearMiss::Unclosed)
            } else {
                LineMeaning::Open
            };
        };
        // A tag that was left open does not swallow the next one.
        let (before, inner) = match inner.rsplit_once(OPEN) {
            Some((stray, inner)) => (format!("{before}{OPEN}{stray}"), inner),
            None => (before.to_owned(), inner),
        };
        outside.push(before);
        words.push(squeeze(inner));
        rest = after;
    }
    let Some(last) = words.last() else { return without_tag(line) };
    let alone = is_prefix(&outside[0]) && outside[1..].iter().all(|text| is_suffix(text)) && is_suffix(rest);
    match words.iter().any(|inner| inner == text) {
        true if alone => LineMeaning::Promise,
        true if last == text && is_suffix(rest) && !rest.contains(PUNCTUATION) => LineMeaning::PromiseAtEnd,
        true => LineMeaning::Nearly(NearMiss::InSentence),
        false if words.iter().any(String::is_empty) => LineMeaning::Nearly(NearMiss::Empty),
        false if words.iter().any(|inner| same_in_any_case(inner, text)) => {
            LineMeaning::Nearly(NearMiss::WrongCase)
        }
        false => LineMeaning::Nearly(NearMiss::OtherText),
    }
}

fn without_tag(line: &str) -> LineMeaning {
    let lower = line.to_ascii_lowercase();
    if lower.contains("<promise ") {
        LineMeaning::Nearly(NearMiss::Attributes)
    } else if lower.contains(OPEN) {
        LineMeaning::Nearly(NearMiss::WrongCase)
    } else if lower.contains("&lt;promise&gt;") {
        LineMeaning::Nearly(NearMiss::Escaped)
    } else {
        LineMeaning::Nothing
    }
}

/// Whether the line is the bare words, but for decoration and case.
pub(super) fn is_bare(line: &str, text: &str) -> bool {
    let (line, text) = (undecorated(line), undecorated(text));
    !line.is_empty() && same_in_any_case(&squeeze(line), &squeeze(text))
}

fn same_in_any_case(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

const EMPHASIS: [char; 3] = ['*', '_', '~'];
const PUNCTUATION: [char; 8] = ['.', '!', '?', ',', ';', ':', '…', '。'];

/// Only list and heading marks, emphasis and white space.
fn is_prefix(text: &str) -> bool {
    marks_off(text).trim_matches(|c: char| EMPHASIS.contains(&c) || c.is_whitespace()).is_empty()
}

/// Only emphasis, end punctuation, closing heading marks and white space.
fn is_suffix(text: &str) -> bool {
    text.chars().all(|c| c == '#' || c.is_whitespace() || EMPHASIS.contains(&c) || PUNCTUATION.contains(&c))
}

fn undecorated(line: &str) -> &str {
    beginning(line).trim_end_matches(|c: char| is_suffix(c.encode_utf8(&mut [0; 4])))
}

pub(super) fn beginning(line: &str) -> &str {
    marks_off(line).trim_start_matches(|c: char| EMPHASIS.contains(&c) || c.is_whitespace())
}

/// The line without the marks of lists, tasks and headings at its beginning.
fn marks_off(mut line: &str) -> &str {
    loop {
        line = line.trim_start();
        let bare = line.trim_start_matches('#');
        if bare.len() < line.len() && bare.starts_with([' ', '\t']) {
            line = bare;
        } else if let Some(mark) = list_mark(line.as_bytes()) {
            line = &line[mark..];
        } else if let Some(rest) =
            ["• ", "[ ] ", "[x] ", "[X] "].iter().find_map(|mark| line.strip_prefix(mark))
        {
            line = rest;
        } else {
            return line;
        }
    }
}

/// A line without what does not count on it.
#[derive(Debug, Default)]
pub(super) struct Visible {
    pub(super) text: String,
    /// A promise tag was in the removed text.
    pub(super) hidden: Option<NearMiss>,
}

/// Takes inline code and comments out of the line. `in_comment` says whether one is open, before and after.
pub(super) fn visible(line: &str, in_comment: &mut bool) -> Visible {
    let mut seen = Visible::default();
    let mut rest = line;
    let hide = |seen: &mut Visible, text: &str, as_what| {
        if text.contains("promise>") {
            seen.hidden = Some(as_what);
        }
    };
    loop {
        if *in_comment {
            let (comment, after) = rest.split_once("-->").unwrap_or((rest, ""));
            hide(&mut seen, comment, NearMiss::InComment);
            *in_comment = comment.len() == rest.len();
            rest = after;
        }
        let comment = rest.find("<!--");
        let code = rest.find('`');
        match (comment, code) {
            (Some(at), code) if code.is_none_or(|code| at < code) => {
                seen.text.push_str(&rest[..at]);
                rest = &rest[at + "<!--".len()..];
                *in_comment = true;
            }
            (_, Some(at)) => {
                seen.text.push_str(&rest[..at]);
                let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
                let body = &rest[at + ticks..];
                match closing_ticks(body, ticks) {
                    Some(end) => {
                        hide(&mut seen, &body[..end], NearMiss::InCode);
                        // Removed text leaves a mark: what is beside it is not alone on its line.
                        seen.text.push('\u{fffc}');
                        rest = &body[end + ticks..];
                    }
                    None => {
                        seen.text.push_str(&rest[at..at + ticks]);
                        rest = body;
                    }
                }
            }
            (_, None) => {
                seen.text.push_str(rest);
                return seen;
            }
        }
    }
}

/// The begin of a run of exactly this many backticks.
fn closing_ticks(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|start| at + start) {
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
    None
}
