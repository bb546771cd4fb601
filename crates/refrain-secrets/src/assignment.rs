//! Values assigned to names like `password`, in every syntax: code, JSON, YAML, TOML, ini files, shells, XML,
//! Dockerfiles, properties. The name is found first; one regular expression then extracts the assigned value.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::hit::{Hit, Novelty, bytes_regex};
use super::value::{self, Kind};
use super::words::is_scrambled;
use super::{allow, names};

static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    bytes_regex(
        r"(?i)passw(?:or)?d|passphrase|passwd|\bpwd|_pwd|pass\b|secret|token|credential|api[_.-]?key|(?:access|private|signing|encryption|encrypt|master|auth|account|client|service|shared|storage|admin|app|license|subscription|deploy|webhook|hmac|jwt|session|cookie|crypt|function|host|ssh|gpg|write|ingest|project|server|integration|aes|rsa|consumer|bot|data|db)[_.-]?key|authkey|_auth\b|auth[_.-]?code|_pat\b",
    )
});

/// The letters in [`WORDS`]: most texts have none of them, and the regular expression is not compiled for these.
const LETTERS: [&[u8]; 8] = [b"pass", b"pwd", b"secret", b"token", b"credential", b"key", b"auth", b"_pat"];

/// Suffixes of a name that make it a property of a secret instead of the secret.
const ABOUT: &str = "id ids hash hashed hashes sha sha1 sha256 digest checksum fingerprint url uri path file filename dir folder name names type types header field label title placeholder hint message error regex pattern length len size count limit ttl expiry expires expiration timeout age prefix suffix version policy created updated date time format algorithm alg method endpoint scope scopes issuer audience class color icon index description help doc docs strength input env var variable ref store manager provider kind arn selector schema required enabled at in for from iv encryption nonce bits usage status state mode rule rules column table";

/// Parts of a name that have the same effect anywhere in it.
const HARMLESS: &str = "public pub csrf xsrf page cursor continuation hash hashed encrypted sealed design lexer tokenizer tokenize sync publishable cancellation cancel checksum integrity resolved placeholder i18n next regexp forgot";

/// Parts of the name of a label about a password, not of a password itself.
const DONE: &str = "confirm confirmation reset change new old current repeat retype show hide enter wrong bad no missing validate label text error errors form";

fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

// How a value follows a name, in a group.
const BEGIN: &str = r#"^["'`\])?!]{0,4}[ \t]*"#;
const QUOTED: &str = r#"[bBrRfFuU@$#L\\]{0,2}(?:"([^"\n]*)"|'([^'\n]*)'|`([^`\n]*)`)"#;
const BARE: &str = r#"([^\s"'`,;<>]+)"#;
/// `name: X` and on the next line `value: Y`; `key="X" value="Y"`; `"name": "X", "value": "Y"`; `<key>X</key><string>Y`.
const PAIR: &str = r#"(?:</key>\s*<string>|[\s,]*["']?(?i:value|default)["']?[ \t]*[:=][ \t]*)"#;
/// The type that some languages put in between: `: &str = `.
const TYPED: &str = r"[: ][A-Za-z0-9_&'<>\[\]. ?*|:]{0,48}:?=[ \t]*";
const SIGN: &str = r"(?:={2,3}|!==?|\|\|=|=>|:=|\?=|\+=|=|:|>)[ \t]*";
const BLOCK: &str = r"(?:[|>][-+]?|\\)?[ \t]*\r?\n[ \t]+([^\s=-][^\s=]*[^\s=:])[ \t\r]*(?:\n|$)";
const BETWEEN: &str = r#"(?:\r?\n[ \t]+)?[^"'`\n;{}]{0,80}"#;

/// In code a value is always in quotes.
static IN_CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let given =
        format!("{PAIR}{BETWEEN}{QUOTED}|{TYPED}{QUOTED}|{SIGN}{BETWEEN}{QUOTED}|[,(][ \\t]*{QUOTED}");
    bytes_regex(&format!("{BEGIN}(?:{given})"))
});

fn in_text() -> String {
    let value = format!("{PAIR}(?:{QUOTED}|{BARE})|{TYPED}{QUOTED}|{SIGN}(?:{QUOTED}|{BLOCK}|{BARE})");
    format!("{BEGIN}(?:{value}|[,(][ \\t]*{QUOTED})")
}

/// In other texts it may be bare or on the next line.
static IN_TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| bytes_regex(&in_text()));

static BEHIND_BLANK: LazyLock<Option<Regex>> =
    LazyLock::new(|| bytes_regex(&format!("{}|{BEGIN}[ \\t](?:{QUOTED}|{BARE})", in_text())));

/// The first new value that looks like a secret.
pub(super) fn find(path: &[u8], text: &[u8], is_new: Novelty<'_>) -> Option<Hit> {
    let lower = text.to_ascii_lowercase();
    LETTERS.iter().find(|letters| memmem::find(&lower, letters).is_some())?;
    let (is_code, is_settings) = (names::is_code(path), names::is_settings(path));
    let has_sealed = LazyLock::new(|| memmem::find(text, b"SealedSecret").is_some());
    let mut done = 0;
    for word in WORDS.as_ref()?.find_iter(text) {
        if word.start() < done {
            continue;
        }
        let key = name_around(text, word.range());
        done = key.end;
        let Some(name) = Name::of(&text[key.clone()], word.as_bytes()) else { continue };
        let regex = match is_code {
            true => &IN_CODE,
            false if is_set(&text[..key.start]) => &BEHIND_BLANK,
            false => &IN_TEXT,
        };
        let Some(value) = value(text, key.end, regex.as_ref()?) else { continue };
        let body = &text[value.clone()];
        if name.accepts(body, is_settings && name.is_password, is_in_quotes(text, &value))
            && !(allow::SEALED.holds(body) && *has_sealed)
            && is_new(body)
        {
            let what = if name.kind == Kind::Password { "a password" } else { "a secret key or token" };
            return Some(Hit { what, at: value.start });
        }
    }
    None
}

/// How far from its name a value may begin and end.
const FAR: usize = 1200;

/// The range of the value assigned to the name that ends at `from`.
fn value(text: &[u8], from: usize, regex: &Regex) -> Option<Range<usize>> {
    let rest = &text[from..text.len().min(from + FAR)];
    let begins = rest.iter().find(|byte| !b"\"'`])?! \t".contains(byte))?;
    // Most names have no value.
    if !rest[0].is_ascii_whitespace() && !b"=!|:+,(>?<\n\rvVdD".contains(begins) {
        return None;
    }
    let found = regex.captures(rest)?;
    let value = found.iter().skip(1).flatten().next()?.range();
    let value = from + value.start..from + value.end;
    let (is_quoted, quoted) = (is_in_quotes(text, &value), &text[value.clone()]);
    // A call is code in a file of any name.
    let is_call = !is_quoted && quoted.contains(&b'(') && !str::from_utf8(quoted).is_ok_and(is_scrambled);
    // An escaped quote, as in JSON inside of a string.
    let is_escaped =
        is_quoted && value.start >= 2 && text[value.start - 2] == b'\\' && quoted.ends_with(b"\\");
    (!is_call).then(|| value.start..value.end - usize::from(is_escaped))
}

/// Whether the text before a name makes the next word its value: `ENV NAME value`, `--name value`, `machine …
/// password value`.
fn is_set(before: &[u8]) -> bool {
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_start();
    before.ends_with(b"--")
        || ["ENV ", "ARG ", "set ", "setx ", "machine ", "default login "]
            .iter()
            .any(|word| line.starts_with(word.as_bytes()))
}

/// Whether a value is between two quotes of one kind.
fn is_in_quotes(text: &[u8], value: &Range<usize>) -> bool {
    let before = value.start.checked_sub(1).and_then(|at| text.get(at));
    matches!(before, Some(b'"' | b'\'' | b'`')) && before == text.get(value.end)
}

/// The whole name that contains a word.
fn name_around(text: &[u8], word: Range<usize>) -> Range<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let before = text[..word.start].iter().rev().take(80).take_while(|byte| is_part(byte)).count();
    let after = text[word.end..].iter().take(80).take_while(|byte| is_part(byte)).count();
    let from = word.start - before;
    let marks = text[from..word.start].iter().take_while(|byte| matches!(byte, b'-' | b'.')).count();
    from + marks..word.end + after
}

struct Name {
    kind: Kind,
    /// It is the name of a password itself, not of an action with one.
    is_password: bool,
    /// It does not say what the token is for.
    is_mere_token: bool,
    /// `date_pat` is a pattern, and machine-made tokens contain no such signs.
    may_be_pattern: bool,
}

impl Name {
    fn of(key: &[u8], word: &[u8]) -> Option<Self> {
        let (key, word) = (str::from_utf8(key).ok()?, str::from_utf8(word).ok()?.to_ascii_lowercase());
        let parts = parts(key);
        let at = key.to_ascii_lowercase().rfind(&word)? + word.len();
        let rest = key.get(at..)?;
        // The word must be complete: `tokens`, `tokenizer` and `secretary` are other words.
        if rest.starts_with(|c: char| c.is_ascii_lowercase()) {
            let is_plural = matches!(rest.as_bytes(), [b's'] | [b's', b'_' | b'.' | b'-', ..]);
            if !is_plural || word.contains("token") {
                return None;
            }
        }
        if parts.iter().any(|part| is_in(HARMLESS, part))
            || self::parts(rest).iter().any(|part| is_in(ABOUT, part))
        {
            return None;
        }
        let is_typed = ["pass", "pwd"].iter().any(|start| word.trim_start_matches('_').starts_with(start));
        let ends = ["password", "passwd", "pwd", "pass", "passphrase"];
        let is_last = parts.last().is_some_and(|part| ends.iter().any(|end| part.ends_with(end)));
        Some(Self {
            kind: if is_typed || is_last { Kind::Password } else { Kind::Key },
            is_password: is_last && !parts.iter().any(|part| is_in(DONE, part)),
            is_mere_token: parts.iter().all(|part| is_in("data token tokens", part)),
            may_be_pattern: word == "_pat",
        })
    }

    fn accepts(&self, body: &[u8], may_be_made_up: bool, is_in_quotes: bool) -> bool {
        let is_plain = || body.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        !(self.may_be_pattern && !(body.len() >= 20 && is_plain()))
            && !(self.is_mere_token && value::is_uuid(body))
            && (value::is_secret(body, self.kind) || may_be_made_up && value::is_made_up(body, is_in_quotes))
    }
}

/// The parts of a name, in lower case: `dbPassword`, `DB_PASSWORD` and `db.password` have two.
fn parts(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        if !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase()) {
            parts.push(String::new());
        }
        if c.is_ascii_alphanumeric() {
            parts.last_mut().into_iter().for_each(|part| part.push(c.to_ascii_lowercase()));
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}
