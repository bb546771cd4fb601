//! Whether a text in the place of a secret is one: it is random ([`words`](super::words)) and no placeholder or
//! reference ([`allow`](super::allow)).

use super::allow::{self, has_variable, is_path, is_reference};
use super::words::{distinct, entropy, is_expression, is_mixed, is_scrambled, is_words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It follows a name like `password`: users choose such values.
    Password,
    /// It follows a name like `api_key`: machines make such values.
    Key,
}

/// Whether the body of a token, without its vendor's prefix, is random.
pub(super) fn is_token(body: &[u8]) -> bool {
    distinct(body) >= 6.min(body.len() / 2)
        && !allow::SHOWN.holds(body)
        && !allow::has_parts_of_a_placeholder(body)
}

/// Whether it consists of words, with one digit at most.
pub(super) fn is_name(body: &[u8]) -> bool {
    body.iter().filter(|byte| byte.is_ascii_digit()).count() < 2 && str::from_utf8(body).is_ok_and(is_words)
}

pub(super) fn is_uuid(body: &[u8]) -> bool {
    allow::UUID.holds(body)
}

/// Whether a value assigned to such a name is a secret.
pub(super) fn is_secret(value: &[u8], kind: Kind) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    if is_web_framework_key(text) {
        return true;
    }
    if value.len() < 8
        || value.len() > 1000
        || text.contains(char::is_whitespace)
        || distinct(value) < 5
        || text.bytes().all(|byte| byte.is_ascii_digit())
        || is_path(text)
        || is_allowed(text)
        || allow::PUBLIC.holds(value)
    {
        return false;
    }
    match kind {
        Kind::Password => {
            let is_value = is_mixed(text) || text.is_ascii() && !is_words(text);
            is_value && !text.contains(['\\', '`']) && !text.contains("[^")
        }
        Kind::Key => {
            // Machine-made values are ASCII only: other text is a label.
            let is_value = text.is_ascii() && (is_scrambled(text) || !is_words(text) && !is_expression(text));
            value.len() >= 12 && is_value && entropy(value) >= 2.8
        }
    }
}

/// A key as Django makes it: 50 of these characters, which can look like code.
fn is_web_framework_key(text: &str) -> bool {
    let text = text.strip_prefix("django-insecure-").unwrap_or(text);
    let count = |test: fn(u8) -> bool| text.bytes().filter(|byte| test(*byte)).count();
    let letters = count(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte));
    let digits = count(|byte| byte.is_ascii_digit());
    let signs = count(|byte| b"!@#$%^&*(=+)".contains(&byte));
    (text.len(), letters + digits + signs) == (50, 50)
        && (digits >= 2 && signs >= 2 || signs >= 8)
        && entropy(text.as_bytes()) >= 4.2
}

fn is_allowed(text: &str) -> bool {
    is_reference(text) || allow::is_placeholder(text)
}

/// Whether the password in an address is a secret.
pub(super) fn is_login(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    value.len() >= 6
        && (value.len() >= 12 || !allow::USUAL.holds(value))
        && (!is_words(text) || is_mixed(text) || is_cased_password(text))
        && !text.contains(['{', '}', '(', '[', '\\'])
        && !has_variable(text)
        && !is_allowed(text)
        && !text.bytes().all(|byte| byte.is_ascii_digit())
        && distinct(value) >= 4
}

/// Whether a password on a command line or in a list of settings is a secret: there, plain words are passwords too.
pub(super) fn is_typed(value: &[u8]) -> bool {
    is_login(value) || str::from_utf8(value).is_ok_and(is_plain_password)
}

/// Letters of both cases and digits, and many: random, although it may sound like words.
fn is_cased_password(text: &str) -> bool {
    let has = |test: fn(u8) -> bool| text.bytes().any(test);
    text.len() >= 12
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && has(|byte| byte.is_ascii_lowercase())
        && has(|byte| byte.is_ascii_uppercase())
        && has(|byte| byte.is_ascii_digit())
        && !allow::LABEL.holds(text.as_bytes())
}

/// Only lower-case letters, and many: a password that a user chose, if the name says that it is one.
fn is_plain_password(text: &str) -> bool {
    text.len() >= 12
        && text.bytes().all(|byte| byte.is_ascii_lowercase())
        && distinct(text.as_bytes()) >= 5
        && !allow::is_placeholder(text)
        && !allow::LABEL.holds(text.as_bytes())
}

/// Whether a value of a password in a settings file is one, although it consists of lower-case letters, of digits, or
/// of words with a number.
pub(super) fn is_made_up(value: &[u8], is_in_quotes: bool) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    if text.is_empty() || value.len() > 200 || is_allowed(text) {
        return false;
    }
    // Not consecutive digits: `87654321`.
    let is_row = || value.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1);
    let is_number = text.len() >= 8
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !is_row()
        && distinct(value) >= 5;
    is_number || is_plain_password(text) || is_in_quotes && is_passphrase(text)
}

/// Some words and a number, separated by blanks, that are not an instruction.
fn is_passphrase(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let is_word = |word: &&&str| word.bytes().any(|byte| byte.is_ascii_alphabetic());
    words.len() >= 3
        && text.len() >= 12
        && words.iter().filter(is_word).count() >= 2
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && !text.ends_with(['.', ':', '?', ','])
        && !text.contains(['{', '}', '(', ')', '%', '$', '<', '='])
        && !words.contains(&"")
        && !allow::SENTENCE.holds(text.as_bytes())
}

/// Whether any value in a file of secrets is more than a word, a reference or a path.
pub(super) fn is_filled(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    value.len() >= 8
        && distinct(value) >= 4
        && !is_allowed(text)
        && !is_path(text)
        && !text.contains(char::is_whitespace)
        && (!is_words(text) || is_mixed(text) || is_plain_password(text))
}

/// Whether a value of an environment file is harmless: it contains no secret, or is a login to this machine.
pub(super) fn is_at_home(value: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(value) else { return false };
    let Some((_, rest)) = text.split_once("://") else { return !is_filled(value) };
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let (login, host) = place.rsplit_once('@').unwrap_or(("", place));
    let host = host.split(':').next().unwrap_or_default();
    // A host name without a dot is a container.
    let is_near = host.is_empty() || host == "127.0.0.1" || host == "0.0.0.0" || !host.contains('.');
    let password = login.split_once(':').map_or("", |(_, password)| password);
    (is_near || login.is_empty()) && !is_login(password.as_bytes()) && !rest.contains("sig=")
}

/// Whether twelve or more words are a wallet's mnemonic, and not a well-known test mnemonic.
pub(super) fn is_mnemonic(body: &[u8]) -> bool {
    let words: std::collections::BTreeSet<&[u8]> = body.split(|byte| *byte == b' ').collect();
    words.len() >= 9
}
