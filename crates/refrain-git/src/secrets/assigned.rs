//! Values that are given to names like `password`, in whatever language: code, JSON, YAML, TOML, ini files, shells, XML,
//! Dockerfiles, properties. The name is found first; how it is given a value is read by hand, as no two languages agree.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::Hit;
use super::judge::{self, Name};
use super::names;
use super::signs;

/// Words that the names of secrets have.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"passw(?:or)?d|passphrase|passwd|\bpwd|_pwd|pass\b|secret|token|credential|api[_.-]?key|(?:access|private|signing|encryption|encrypt|master|auth|account|client|service|shared|storage|admin|app|license|subscription|deploy|webhook|hmac|jwt|session|cookie|crypt|function|host|ssh|gpg|write|ingest|license|project|server|integration|aes|rsa|consumer|bot|data|db)[_.-]?key|authkey|_auth\b|auth[_.-]?code|_pat\b";
    RegexBuilder::new(words).unicode(false).case_insensitive(true).build().ok()
});

/// Parts of a name behind the word that make it something about a secret.
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "hash",
    "hashed",
    "hashes",
    "sha",
    "sha1",
    "sha256",
    "digest",
    "checksum",
    "fingerprint",
    "url",
    "uri",
    "path",
    "file",
    "filename",
    "dir",
    "folder",
    "name",
    "names",
    "type",
    "types",
    "header",
    "field",
    "label",
    "title",
    "placeholder",
    "hint",
    "message",
    "error",
    "regex",
    "pattern",
    "length",
    "len",
    "size",
    "count",
    "limit",
    "ttl",
    "expiry",
    "expires",
    "expiration",
    "timeout",
    "age",
    "prefix",
    "suffix",
    "version",
    "policy",
    "created",
    "updated",
    "date",
    "time",
    "format",
    "algorithm",
    "alg",
    "method",
    "endpoint",
    "scope",
    "scopes",
    "issuer",
    "audience",
    "class",
    "color",
    "icon",
    "index",
    "description",
    "help",
    "doc",
    "docs",
    "strength",
    "input",
    "env",
    "var",
    "variable",
    "ref",
    "store",
    "manager",
    "provider",
    "kind",
    "arn",
    "selector",
    "schema",
    "required",
    "enabled",
    "at",
    "in",
    "for",
    "from",
    "iv",
    "encryption",
    "nonce",
    "bits",
    "usage",
    "status",
    "state",
    "mode",
    "rule",
    "rules",
    "column",
    "table",
];

/// Parts of a name anywhere that say the same.
const HARMLESS: &[&str] = &[
    "public",
    "pub",
    "csrf",
    "xsrf",
    "page",
    "cursor",
    "continuation",
    "hash",
    "hashed",
    "encrypted",
    "sealed",
    "design",
    "lexer",
    "tokenizer",
    "tokenize",
    "sync",
    "publishable",
    "cancellation",
    "cancel",
    "checksum",
    "integrity",
    "resolved",
    "placeholder",
    "i18n",
    "next",
    "regexp",
    "forgot",
];

/// The first value that looks like a secret and `is_new`.
pub(super) fn find<'a>(path: &[u8], text: &'a [u8], is_new: impl Fn(&Hit<'_>) -> bool) -> Option<Hit<'a>> {
    let words = WORDS.as_ref()?;
    let is_code = names::is_code(path);
    let is_settings = names::is_settings(path);
    let is_sealed = memmem::find(text, b"SealedSecret").is_some();
    let mut done = 0;
    for word in words.find_iter(text) {
        if word.start() < done {
            continue;
        }
        let key = key_around(text, word.start(), word.end());
        done = key.end;
        let Some(name) = name(&text[key.clone()], &text[word.range()]) else { continue };
        if is_sealed && is_in_sealed(&text[..key.start]) {
            continue;
        }
        let is_flag = text[..key.start].ends_with(b"--");
        let Some(value) = value(text, key.end, key.start, is_code, is_flag) else { continue };
        let hit = Hit { what: said(name), text: &text[value.clone()], at: value.start };
        // `date_pat` is a pattern, and no machine makes a token of signs.
        let is_pattern = word.as_bytes().eq_ignore_ascii_case(b"_pat")
            && !(hit.text.len() >= 20
                && hit.text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')));
        let is_made_up = || {
            is_settings
                && is_password(&text[key.clone()])
                && judge::is_made_up(hit.text, is_in_quotes(text, &value))
        };
        if !is_pattern && (judge::is_secret(hit.text, name) || is_made_up()) && is_new(&hit) {
            return Some(hit);
        }
    }
    None
}

fn said(name: Name) -> &'static str {
    match name {
        Name::Password => "a password",
        Name::Key => "a secret key or token",
    }
}

/// The whole name that a word is in.
fn key_around(text: &[u8], start: usize, end: usize) -> std::ops::Range<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let before = text[..start].iter().rev().take(80).take_while(|byte| is_part(byte)).count();
    let after = text[end..].iter().take(80).take_while(|byte| is_part(byte)).count();
    let mut start = start - before;
    while text[start] == b'-' || text[start] == b'.' {
        start += 1;
        if start == end {
            break;
        }
    }
    start..end + after
}

/// What kind of secret a name stands for, if it stands for one.
fn name(key: &[u8], word: &[u8]) -> Option<Name> {
    let key = str::from_utf8(key).ok()?;
    let word = str::from_utf8(word).ok()?.to_ascii_lowercase();
    let parts = parts(key);
    if parts.iter().any(|part| HARMLESS.contains(&part.as_str())) {
        return None;
    }
    let lower = key.to_ascii_lowercase();
    let at = lower.rfind(&word)? + word.len();
    // What follows the word in full: `tokens`, `tokenizer` and `secretary` are other words.
    let rest = key.get(at..)?;
    if rest.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().any(|c| c.is_ascii_lowercase()) {
        let is_plural = matches!(rest.as_bytes(), [b's'] | [b's', b'_' | b'.' | b'-', ..]);
        if !is_plural || word.contains("token") {
            return None;
        }
    }
    let behind = self::parts(rest);
    if behind.iter().any(|part| ABOUT.contains(&part.as_str())) {
        return None;
    }
    let is_made_up = ["pass", "pwd"].iter().any(|start| word.trim_start_matches('_').starts_with(start));
    Some(if is_made_up { Name::Password } else { Name::Key })
}

/// Whether a name is that of a password itself, not of something that is done with one, as names of labels are.
fn is_password(key: &[u8]) -> bool {
    const DONE: &[&str] = &[
        "confirm",
        "confirmation",
        "reset",
        "change",
        "new",
        "old",
        "current",
        "repeat",
        "retype",
        "show",
        "hide",
        "enter",
        "wrong",
        "bad",
        "no",
        "missing",
        "validate",
        "label",
        "text",
        "error",
        "errors",
        "form",
    ];
    let Ok(key) = str::from_utf8(key) else { return false };
    let parts = parts(key);
    let is_it = |part: &String| {
        ["password", "passwd", "pwd", "pass", "passphrase"].iter().any(|word| part.ends_with(word))
    };
    parts.last().is_some_and(is_it) && !parts.iter().any(|part| DONE.contains(&part.as_str()))
}

/// Whether what follows is set in below `encryptedData:`, where a manifest for a cluster has what only that cluster can read.
fn is_in_sealed(before: &[u8]) -> bool {
    let Some(head) = memmem::rfind(before, b"encryptedData:") else { return false };
    let indent = |line: &[u8]| line.iter().take_while(|byte| **byte == b' ').count();
    let outer = before[..head].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut lines = before[head..].split(|byte| *byte == b'\n').skip(1).peekable();
    outer.trim_ascii().is_empty()
        && lines.peek().is_some()
        && lines.all(|line| {
            indent(line) > outer.len() || line.trim_ascii().is_empty() && line.len() > outer.len()
        })
}

/// Whether a value stands between two quotes of one kind.
fn is_in_quotes(text: &[u8], value: &std::ops::Range<usize>) -> bool {
    let before = value.start.checked_sub(1).and_then(|at| text.get(at));
    matches!(before, Some(b'"' | b'\'')) && before == text.get(value.end)
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

/// How far from its name a value may begin, and end.
const FAR: usize = 1200;

/// Where the value stands that is given to the name which ends at `from`.
fn value(
    text: &[u8],
    from: usize,
    key: usize,
    is_code: bool,
    is_flag: bool,
) -> Option<std::ops::Range<usize>> {
    let end = text.len().min(from + FAR);
    let mut look = Look { text: &text[..end], at: from };
    look.skip(|byte| matches!(byte, b'"' | b'\'' | b'`' | b']' | b')' | b'?' | b'!'), 4);
    let gap = look.at;
    look.blanks();
    if look.value_of_pair() {
        return look.plain_or_quoted(is_code);
    }
    if look.annotation() || look.sign() {
        look.blanks();
        if look.is_at_end_of_line() || look.block_mark() {
            return if is_code { None } else { look.next_line() };
        }
        return look.plain_or_quoted(is_code);
    }
    // `ENV NAME value`, `--name value`, `machine … password value`.
    let has_gap = look.at > gap;
    let line = text[..key].rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_start();
    let is_set = is_flag
        || [b"ENV ".as_slice(), b"ARG ", b"set ", b"setx ", b"machine ", b"default login "]
            .iter()
            .any(|word| line.starts_with(word));
    if has_gap && is_set && !is_code { look.plain_or_quoted(false) } else { None }
}

/// A place in a text.
struct Look<'a> {
    text: &'a [u8],
    at: usize,
}

impl Look<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    fn skip(&mut self, is: impl Fn(u8) -> bool, most: usize) {
        let rest = self.rest();
        self.at += rest.iter().take(most).take_while(|byte| is(**byte)).count();
    }

    fn blanks(&mut self) {
        self.skip(|byte| byte == b' ' || byte == b'\t', 60);
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let is_it = self.rest().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        if is_it {
            self.at += word.len();
        }
        is_it
    }

    fn is_at_end_of_line(&self) -> bool {
        matches!(self.rest().first(), None | Some(b'\n' | b'\r'))
    }

    /// `name: X` and on the next line `value: Y`; `key="X" value="Y"`; `"name": "X", "value": "Y"`; `<key>X</key><string>Y`.
    fn value_of_pair(&mut self) -> bool {
        let before = self.at;
        if self.takes(b"</key>") {
            self.skip(|byte| byte.is_ascii_whitespace(), 60);
            if self.takes(b"<string>") {
                return true;
            }
        }
        self.skip(|byte| byte == b',' || byte.is_ascii_whitespace(), 60);
        self.skip(|byte| byte == b'"' || byte == b'\'', 1);
        if self.takes(b"value") || self.takes(b"default") {
            self.skip(|byte| byte == b'"' || byte == b'\'', 1);
            self.blanks();
            if self.takes(b":") || self.takes(b"=") {
                self.blanks();
                return true;
            }
        }
        self.at = before;
        false
    }

    /// The type that some languages put between: `: &str = `.
    fn annotation(&mut self) -> bool {
        let before = self.at;
        let has_blank = before > 0 && self.text[before - 1] == b' ';
        if !self.takes(b":") && !has_blank {
            return false;
        }
        self.skip(|byte| byte.is_ascii_alphanumeric() || b"_&'<>[]. ?*|:".contains(&byte), 48);
        if self.at > before && (self.takes(b"=") || self.takes(b":=")) && !self.rest().starts_with(b"=") {
            self.blanks();
            if matches!(self.rest().first(), Some(b'"' | b'\'' | b'`')) {
                return true;
            }
        }
        self.at = before;
        false
    }

    /// What gives a value to a name. A comma and a parenthesis do so only to what stands in quotes.
    fn sign(&mut self) -> bool {
        const SIGNS: &[&[u8]] =
            &[b"===", b"!==", b"||=", b"=>", b":=", b"?=", b"+=", b"==", b"!=", b"=", b":", b">"];
        if SIGNS.iter().any(|sign| self.takes(sign)) {
            return true;
        }
        let before = self.at;
        if self.takes(b",") || self.takes(b"(") {
            self.blanks();
            if matches!(self.rest().first(), Some(b'"' | b'\'' | b'`')) {
                return true;
            }
        }
        self.at = before;
        false
    }

    /// The mark of a text that begins on the next line.
    fn block_mark(&self) -> bool {
        let line = self.rest().split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        matches!(line, b"|" | b">" | b"|-" | b">-" | b"|+" | b">+" | b"\\")
    }

    fn next_line(&mut self) -> Option<std::ops::Range<usize>> {
        self.at += self.rest().iter().position(|byte| *byte == b'\n')? + 1;
        let from = self.at;
        self.blanks();
        // Only what is set in belongs to the name.
        if self.at == from || self.rest().starts_with(b"-") {
            return None;
        }
        let line = self.rest().split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        let is_one_word = !line.contains(&b' ') && !line.ends_with(b":") && !line.contains(&b'=');
        (is_one_word && !line.is_empty()).then(|| self.at..self.at + line.len())
    }

    fn plain_or_quoted(&mut self, is_code: bool) -> Option<std::ops::Range<usize>> {
        if is_code || matches!(self.rest().first(), Some(b'"' | b'\'' | b'`')) || self.prefix() {
            return self.quoted();
        }
        let from = self.at;
        self.skip(|byte| !byte.is_ascii_whitespace() && !b"\"'`,;<>".contains(&byte), FAR);
        let value = &self.text[from..self.at];
        // What is called is code, whatever the file is named.
        let is_call = value.contains(&b'(') && !str::from_utf8(value).is_ok_and(signs::is_scrambled);
        (!is_call).then(|| from..from + value.len())
    }

    /// What may stand before a quote: `b"`, `r#"`, `@"`, `$"`.
    fn prefix(&self) -> bool {
        let rest = self.rest();
        let mark = rest.iter().take(3).position(|byte| *byte == b'"' || *byte == b'\'');
        mark.is_some_and(|mark| rest[..mark].iter().all(|byte| b"bBrRfFuU@$#L\\".contains(byte)))
    }

    /// What stands in the next quotes of this line, where only a call or an alternative stands between.
    fn quoted(&mut self) -> Option<std::ops::Range<usize>> {
        let between = self.rest().iter().take(80).position(|byte| b"\"'`".contains(byte))?;
        let is_between = |byte: &u8| !b"\n;{}".contains(byte);
        if !self.rest()[..between].iter().all(is_between) {
            return None;
        }
        let quote = self.rest()[between];
        let from = self.at + between + 1;
        // A quote that is escaped, as in JSON inside of a string.
        let is_escaped = self.text.get(from.checked_sub(2)?) == Some(&b'\\');
        let rest = &self.text[from..];
        let len = rest.iter().position(|byte| *byte == quote || *byte == b'\n')?;
        let len = if is_escaped { len.saturating_sub(1) } else { len };
        if rest.get(len) == Some(&b'\n') {
            return None;
        }
        // `getenv("NAME", "value")`, `env["NAME"] || "value"`: the first is a name again.
        Some(from..from + len)
    }
}
