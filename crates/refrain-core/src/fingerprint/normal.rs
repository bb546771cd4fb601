//! One line the way it is compared: placeholders replace what differs between two runs of the same failure.
//!
//! All rules are one expression, so that each line is scanned once and no rule feeds another.

use std::sync::LazyLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::text::squeeze;

#[derive(Clone, Copy, Debug)]
enum Rule {
    Stands(&'static str),
    /// The word in front of the number stays.
    Word,
    /// The word after the number stays.
    Count,
    /// The folders that two checkouts have in common, and no line.
    Path,
    /// No port, and no query.
    Url,
    /// A hash, unless it is a plain word or a plain number.
    Hash,
    /// A random name, unless it is a plain word.
    Temporary,
}

/// In the order in which they are tried at each place. `\w` and `\b` are ASCII here; no group but the outer one counts.
const RULES: &[(Rule, &str)] = &[
    (Rule::Url, r#"\bhttps?://[^\s'"<>()]+"#),
    (
        Rule::Stands("<time>"),
        r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T_ -]\d\d[:.-]?\d\d(?:[:.-]?\d\d)?(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?\b",
    ),
    (
        Rule::Stands("<time>"),
        r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,4}\b(?:,? \d{4}\b)?",
    ),
    (Rule::Stands("<id>"), r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
    (Rule::Stands("<id>"), r"\bsha(?:1|256|384|512)[-:][A-Za-z0-9+/=]{16,}"),
    (
        Rule::Stands("<host>"),
        r"(?i)(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]|::1?|\*):\d{2,5}\b",
    ),
    (
        Rule::Count,
        r"\b\d+ (?:Segmentation fault|Aborted|Killed|Terminated|Bus error|Illegal instruction|Floating point exception)\b",
    ),
    (Rule::Path, r"\b[A-Za-z]+file(?::\d+)+\b"),
    (
        Rule::Word,
        r#"(?i)\b(?:p?pid|process|tid|threadid|goroutine|port|job|[a-z]*seed|[a-z]*worker|thread)["']?[ \t#:=(\[_-]*(?:0x[0-9a-f]+|\d+)\b[)\]]?"#,
    ),
    (Rule::Word, r"(?i)\b(?:lines?|columns?|col|ln)[ :=]+\d+(?:[-:]\d+)?\b"),
    (Rule::Path, r"[A-Za-z]:(?:\\+[\w.@+~=%$-]+)+(?:(?::\d+)+|\(\d+(?:,\d+)*\))?"),
    (Rule::Path, r"(?:/+[\w.@+~=%$\x80-\xff-]+){2,}/*(?:(?::\d+)+\b|\(\d+(?:,\d+)*\)|:\[\d+(?:,\d+)*\])?"),
    (
        Rule::Path,
        r"[\w.@+~\x80-\xff-]+(?:/+[\w.@+~=%$\x80-\xff-]+)+/*(?:(?::\d+)+\b|\(\d+(?:,\d+)*\)|:\[\d+(?:,\d+)*\])?",
    ),
    (Rule::Path, r"\b[\w.+-]*\w\.[A-Za-z]\w{0,9}(?:(?::\d+)+\b|\(\d+(?:,\d+)*\)|:\[\d+(?:,\d+)*\])"),
    // Eight digits that begin with 8 or c are an error's own code on Windows, and a few digits are a value.
    (Rule::Stands("<address>"), r"(?i)\b0x(?:[0-9a-f]{9,}|[0-79abdef][0-9a-f]{5,7})\b"),
    (Rule::Stands("<time>"), r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AaPp][Mm])?\b"),
    (
        Rule::Stands("<time>"),
        r"\b\d+(?:[.,]\d+)?(?: ?(?:ns|µs|μs|us|ms|msecs?|s|secs?|seconds?|mins?|minutes?|hours?|hrs?)|[mh])\b(?: ?\d+(?:[.,]\d+)?(?: ?(?:ns|µs|μs|us|ms|msecs?|s|secs?|seconds?|mins?|minutes?|hours?|hrs?)|[mh])\b)*",
    ),
    (Rule::Stands("<size>"), r"\b\d+(?:[.,]\d+)? ?(?:[KMGTkmgt]i?B|[kmg]b)(?:/s)?\b"),
    // Seconds since 1970, in thousands, too; a name may have them in it.
    (Rule::Stands("<time>"), r"(?:\b|_)1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?(?:\b|_)"),
    (
        Rule::Count,
        r"(?i)\b\d+ (?:tests? |specs? |examples? )?(?:passed|passing|pass|skipped|pending|ignored|filtered out|deselected|measured|xfailed|xpassed|warnings?|total|succeeded|successful)\b",
    ),
    (Rule::Word, r"(?i)\b(?:passed|passes|skipped|ignored|pending|warnings|total|successes)[:=] *\d+\b"),
    (Rule::Stands(""), r"\[ *\d+(?:\.\d+)?%\]|\[\d+ ?/ ?\d+\]|\[[#=> .-]{4,}\](?: *\d+%)?"),
    (Rule::Hash, r"\b(?:h[0-9a-f]{16}|[0-9a-fA-F]{7,128})\b"),
    (Rule::Stands("<id>"), r"\b\d*(?:[A-Za-z]+\d+){4,}[A-Za-z]*\b"),
    (Rule::Temporary, r"\b\.?tmp[._-]?\w{4,}\b"),
];

static EXPRESSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups: Vec<_> = RULES.iter().map(|(_, pattern)| format!("({pattern})")).collect();
    // A test checks that it compiles; without it lines are compared unchanged.
    RegexBuilder::new(&groups.join("|")).unicode(false).build().ok()
});

pub(super) fn line(text: &str) -> String {
    let text = squeeze(text);
    let Some(expression) = EXPRESSION.as_ref() else { return text };
    let normal = expression.replace_all(text.as_bytes(), |found: &Captures<'_>| {
        let rules = RULES.iter().enumerate();
        let text = String::from_utf8_lossy(&found[0]);
        let rule = rules.map(|(at, (rule, _))| (at, *rule)).find(|(at, _)| found.get(at + 1).is_some());
        rule.map_or_else(|| text.to_string(), |(_, rule)| apply(rule, &text)).into_bytes()
    });
    squeeze(&String::from_utf8_lossy(&normal))
}

fn apply(rule: Rule, text: &str) -> String {
    match rule {
        Rule::Stands(words) => words.to_owned(),
        Rule::Word => {
            let word = text.find(|c: char| !c.is_ascii_alphabetic()).map_or(text, |end| &text[..end]);
            format!("{word} <n>")
        }
        Rule::Count => format!("<n>{}", text.trim_start_matches(|c: char| c.is_ascii_digit())),
        Rule::Path => path(text),
        Rule::Url => url(text),
        Rule::Hash if is_hash(text) => "<id>".to_owned(),
        Rule::Temporary if is_random(text) => "<id>".to_owned(),
        Rule::Hash | Rule::Temporary => text.to_owned(),
    }
}

/// Letters and digits: neither a word nor a number.
fn is_hash(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.len() >= 7 && digits > 0 && digits < text.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        || text.len() == 17
}

/// A name that no person would choose: digits in it, or capitals after a small letter.
fn is_random(text: &str) -> bool {
    let inner = text.bytes().zip(text.bytes().skip(1));
    text.bytes().any(|byte| byte.is_ascii_digit())
        || inner.into_iter().any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase())
}

/// How many folders and file names of an absolute path are kept.
const ABSOLUTE: usize = 3;
/// Of one in a temporary folder, whose own name is random.
const TEMPORARY: usize = 2;

fn path(text: &str) -> String {
    let text = without_position(text);
    let absolute = text.starts_with('/') || text.as_bytes().get(1) == Some(&b':');
    let parts: Vec<&str> = text
        .split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != "." && !part.ends_with(':'))
        .collect();
    if !absolute {
        return parts.iter().map(|part| component(part)).collect::<Vec<_>>().join("/");
    }
    // A name at the front, so that the rest cannot be taken for anything else.
    let (root, kept) = match below_temporary(&parts) {
        None => ("_", last(&parts, ABSOLUTE)),
        Some([inside]) => ("tmp", &[*inside][..]),
        Some(inside) => ("tmp", last(inside.get(1..).unwrap_or_default(), TEMPORARY)),
    };
    let named = |part: &&str| match root {
        "tmp" if is_random(part) && !has_extension(part) => "_".to_owned(),
        _ => component(part),
    };
    std::iter::once(root.to_owned()).chain(kept.iter().map(named)).collect::<Vec<_>>().join("/")
}

fn last<'a, 'b>(parts: &'a [&'b str], most: usize) -> &'a [&'b str] {
    &parts[parts.len().saturating_sub(most)..]
}

/// The path without the line and column that follow it.
fn without_position(text: &str) -> &str {
    let text = text.trim_end_matches([')', ']']);
    let end = text.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ',' | '(' | '['));
    let position = &text[end.len()..];
    // `a/b12` has no position, `a/b12:3` has.
    position.find([':', '(', '[']).map_or(text, |at| &text[..end.len() + at])
}

/// The part of a path below a folder for temporary files.
fn below_temporary<'a, 'b>(parts: &'a [&'b str]) -> Option<&'a [&'b str]> {
    match parts {
        ["private", rest @ ..] => below_temporary(rest),
        ["tmp", rest @ ..]
        | ["var", "tmp", rest @ ..]
        | ["dev", "shm", rest @ ..]
        | ["run", "user", rest @ ..] => Some(rest),
        ["var", "folders", _, _, "T", rest @ ..] => Some(rest),
        parts => {
            let at = parts.iter().position(|part| part.eq_ignore_ascii_case("temp"))?;
            Some(&parts[at + 1..])
        }
    }
}

fn has_extension(part: &str) -> bool {
    part.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && extension.len() <= 5 && extension.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// A folder or file without the hashes in its name.
fn component(part: &str) -> String {
    let pieces = part.split_inclusive(['-', '.', '_']);
    pieces
        .map(|piece| {
            let name = piece.trim_end_matches(['-', '.', '_']);
            if is_hash(name) { format!("_{}", &piece[name.len()..]) } else { piece.to_owned() }
        })
        .collect()
}

fn url(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, way) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.split(':').next().unwrap_or_default();
    let way: Vec<_> = way.split('/').map(component).collect();
    format!("{scheme}://{host}/{}", way.join("/"))
}

#[cfg(test)]
pub(super) fn is_built() -> bool {
    EXPRESSION.is_some()
}
