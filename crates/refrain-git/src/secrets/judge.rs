//! Whether a text that stands where a secret would stand is one: what is made up ([`signs`](super::signs)) and stands for
//! nothing else ([`stand_ins`](super::stand_ins)).

use super::signs::{distinct, entropy, is_expression, is_mixed, is_scrambled, is_words};
use super::stand_ins::{has_variable, has_words, is_path, is_placeholder, is_public, is_reference};

/// What the text is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// It follows a name like `password`, which people make up.
    Password,
    /// It follows a name like `api_key`, which machines make up.
    Key,
}

/// Whether the body of a token, without what its vendor puts before it, is one that a machine made up.
pub(super) fn is_token(body: &[u8]) -> bool {
    let lower = body.to_ascii_lowercase();
    let lower = String::from_utf8_lossy(&lower);
    let is_shown = [
        "example",
        "xxxxxx",
        "******",
        "......",
        "0000000",
        "1234567",
        "abcdefgh",
        "placeholder",
        "redacted",
        "dummy",
    ]
    .iter()
    .any(|word| lower.contains(word));
    !is_shown && !has_words(&lower) && distinct(body) >= 6.min(body.len() / 2)
}

/// Whether a value that is given to such a name is a secret.
pub(super) fn is_secret(value: &[u8], name: Name) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    if value.len() < 8 || value.len() > 1000 || text.contains(char::is_whitespace) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    if is_reference(text, &lower) || is_placeholder(&lower) {
        return false;
    }
    if distinct(value) < 5
        || is_path(text)
        || is_public(text)
        || text.bytes().all(|byte| byte.is_ascii_digit())
    {
        return false;
    }
    match name {
        Name::Password => {
            (!is_words(text) || is_mixed(text)) && !text.contains(['\\', '`']) && !text.contains("[^")
        }
        Name::Key => {
            let is_value = is_scrambled(text) || !is_words(text) && !is_expression(text);
            value.len() >= 12 && is_value && entropy(value) >= 2.8
        }
    }
}

/// Whether the password of an address is one. Those that everybody uses at home are none: `postgres:postgres@localhost`.
pub(super) fn is_login(value: &[u8]) -> bool {
    const USUAL: &[&str] = &[
        "pass", "pwd", "secret", "test", "postgres", "root", "admin", "user", "guest", "mysql", "redis",
        "mongo", "rabbit", "dev", "local", "docker", "token", "x-oauth", "foo", "bar", "demo", "hunter",
        "letmein", "qwerty", "toor", "minio", "p@ss",
    ];
    let Ok(text) = str::from_utf8(value) else { return false };
    let lower = text.to_ascii_lowercase();
    let usual = USUAL.iter().any(|word| lower.starts_with(word)) && value.len() < 12;
    let is_plain = is_words(text) && !is_mixed(text);
    value.len() >= 6
        && !usual
        && !is_plain
        && !is_reference(text, &lower)
        && !text.contains(['{', '}', '(', '[', '\\'])
        && !has_variable(text)
        && !is_placeholder(&lower)
        && !text.bytes().all(|byte| byte.is_ascii_digit())
        && distinct(value) >= 4
}

/// Whether a password on a command line or in a list of settings is one: there, plain words are passwords too.
pub(super) fn is_typed(value: &[u8]) -> bool {
    is_login(value) || str::from_utf8(value).is_ok_and(is_plain_password)
}

/// Small letters only, and many: a password that a person made up, where a name says that it is one.
pub(super) fn is_plain_password(text: &str) -> bool {
    const SAID: &[&str] = &[
        "auth",
        "requir",
        "credential",
        "secret",
        "valid",
        "string",
        "crypt",
        "environ",
        "option",
        "numeric",
        "config",
        "field",
        "input",
        "complete",
        "localhost",
        "postgres",
        "variable",
        "your",
        "value",
    ];
    text.len() >= 12
        && text.bytes().all(|byte| byte.is_ascii_lowercase())
        && distinct(text.as_bytes()) >= 5
        && !is_placeholder(text)
        && !SAID.iter().any(|word| text.contains(word))
}

/// Whether what a file of settings gives to a password is one, though it is made of small letters, of digits, or of words
/// with a number.
pub(super) fn is_made_up(value: &[u8], is_in_quotes: bool) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let lower = text.to_ascii_lowercase();
    if text.is_empty() || value.len() > 200 || is_reference(text, &lower) || is_placeholder(&lower) {
        return false;
    }
    let is_number = text.len() >= 8
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !is_row(value)
        && distinct(value) >= 5;
    is_number || is_plain_password(text) || is_in_quotes && is_passphrase(text, &lower)
}

/// Digits of which each is the next or the one before: `87654321`.
fn is_row(value: &[u8]) -> bool {
    value.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1)
}

/// Some words and a number, parted by blanks, that tell nobody what to do.
fn is_passphrase(text: &str, lower: &str) -> bool {
    const SAID: &[&str] = &[
        "must",
        "least",
        "character",
        "char",
        "minimum",
        "maximum",
        "min",
        "max",
        "enter",
        "should",
        "valid",
        "required",
        "require",
        "contain",
        "contains",
        "please",
        "your",
        "longer",
        "shorter",
        "reset",
        "days",
        "day",
        "hours",
        "minutes",
        "minute",
        "times",
        "attempts",
        "expire",
        "expires",
        "expired",
        "step",
        "code",
        "sent",
        "digits",
        "digit",
        "letters",
        "symbols",
        "numbers,",
        "is",
        "are",
        "be",
        "between",
        "used",
        "use",
        "for",
        "login",
        "user",
        "account",
        "than",
        "see",
        "set",
        "not",
        "optional",
    ];
    let words: Vec<&str> = lower.split(' ').collect();
    let has_letters =
        words.iter().filter(|word| word.bytes().any(|byte| byte.is_ascii_alphabetic())).count() >= 2;
    words.len() >= 3
        && text.len() >= 12
        && has_letters
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && lower.bytes().any(|byte| byte.is_ascii_digit())
        && !text.ends_with(['.', ':', '?', ','])
        && !text.contains(['{', '}', '(', ')', '%', '$', '<', '='])
        && !words.iter().any(|word| word.is_empty() || SAID.contains(word))
}

/// Whether a text that a file of secrets gives to any name is more than a word, a reference or a place.
pub(super) fn is_filled(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let lower = text.to_ascii_lowercase();
    value.len() >= 8
        && distinct(value) >= 4
        && !is_reference(text, &lower)
        && !is_placeholder(&lower)
        && !is_path(text)
        && !text.contains(char::is_whitespace)
        && (!is_words(text) || is_mixed(text) || is_plain_password(text))
}

/// Whether a value of an environment says nothing that is worth keeping: it is empty of secrets, or a login to this machine.
pub(super) fn is_at_home(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let Some((_, rest)) = text.split_once("://") else { return !is_filled(value) };
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let (login, host) = place.rsplit_once('@').unwrap_or(("", place));
    let host = host.split(':').next().unwrap_or_default();
    // A name without a dot is one of a container.
    let is_near = host.is_empty() || host == "127.0.0.1" || host == "0.0.0.0" || !host.contains('.');
    let password = login.split_once(':').map_or("", |(_, password)| password);
    (is_near || login.is_empty()) && !is_login(password.as_bytes()) && !rest.contains("sig=")
}

/// Whether twelve or more words are those of a wallet, and not the ones that everybody tries it with.
pub(super) fn is_mnemonic(body: &[u8]) -> bool {
    let words: std::collections::BTreeSet<&[u8]> = body.split(|byte| *byte == b' ').collect();
    words.len() >= 9
}
