//! Text in the place of a secret that is not one: a placeholder, a reference, a path, or public data. Each is a rule
//! of its own, matched in any case.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::words::{is_mixed, is_scrambled, is_words};

/// Rules that are compiled when they are first needed.
pub(super) struct Allow(LazyLock<Option<Regex>>);

macro_rules! allow {
    ($($(#[$doc:meta])* $name:ident = $regex:expr;)*) => {$(
        $(#[$doc])*
        pub(super) static $name: Allow = Allow(LazyLock::new(|| {
            RegexBuilder::new($regex).unicode(false).case_insensitive(true).build().ok()
        }));
    )*};
}

impl Allow {
    pub(super) fn holds(&self, text: &[u8]) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

allow! {
    /// Words of placeholders that do not occur by chance.
    PLACEHOLDER = r"example|change[-_.]?me|change ?this|placeholder|redacted|not[-_]?a[-_]?secret|not-?real|your[-_]|your(?:pass|token|secret|key|api)|my[-_]?secret|mypassword|my-token|x{6}|(?:^|[^a-z0-9])x{4,}(?:[^a-z0-9]|$)|\*{4}|\.{4}|_{4}|-{4}|0{9}|1{9}|1234567|abcdefgh|abcd1234|abc123|deadbeef|removed|censored|put[-_]your|(?:enter|some|test)[-_]|[-_]test|testtest|foobar|password|passphrase|passw0rd|secret[-_]?key|super[-_]?secret|top[-_]?secret|undefined|invalid|disabled|enc\[|aaaa-bbbb";
    /// Words that occur in random text too, between two signs.
    ALONE = r"(?:^|[^a-z0-9])\d*(?:fixme|todo|lorem|masked|hidden|fake|mock|dummy|sample|insert|replace|unused|default|none|null|foo|bar|baz|here)\d*(?:[^a-z0-9]|$)";
    /// Signs of an example token, and the web token that is in every documentation.
    SHOWN = r"example|x{6}|\*{6}|\.{6}|0{9}|1234567|abcdefgh|placeholder|redacted|(?:^|[^a-z0-9])dummy|dummy(?:[^a-z0-9]|$)|^eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi";
    /// Prefixes of references to a value elsewhere, or of password hashes.
    REFERENCE = r"^(?:\[\[|\$env:|env[:.]|process\.env|os\.environ|getenv|vault:|secret:|ssm:|arn:|ref\+|op://|aws-sm://|projects/|secrets\.|vars\.|!ref|!sub|!vault|@microsoft\.keyvault|file:/|keyring:|keychain:|/run/secrets|/var/run|data:|\$2[aby]\$|\$argon2|\$[156]\$|\$pbkdf2|\$scrypt|\{ssha|pbkdf2|scrypt:|sha(?:256|512):|scram-sha)";
    /// Placeholders that a template or a shell replaces as a whole.
    WHOLE = r"^(?:%[\w.:-]*%|__.*__|\[.*\]|\{.*\}|\$[a-z_][a-z0-9_.>\[-]*)$";
    /// The sign of a template inside a text.
    INSIDE = r"\$[{(]|\{\{|\}\}|#\{|%\{|<|>";
    /// A public key, a certificate, a labelled checksum, a date, a version.
    PUBLIC = r"^(?:ssh-rsa|ssh-ed25519|ecdsa-sha2|sha(?:1|256|384|512)-|sha256:|md5:|-----begin (?:pub|cert)|age1|pk[_.]|\d{4}-\d\d-\d\d|[\d.]+$)";
    /// Usual passwords of local test systems: `postgres:postgres@localhost`.
    USUAL = r"^(?:pass|pwd|secret|test|postgres|root|admin|user|guest|mysql|redis|mongo|rabbit|dev|local|docker|token|x-oauth|foo|bar|demo|hunter|letmein|qwerty|toor|minio|p@ss)";
    /// Words of labels, in the place of a random password.
    LABEL = r"auth|requir|credential|secret|valid|string|crypt|environ|option|numeric|config|field|input|complete|localhost|postgres|variable|your|value";
    /// Words of sentences about password requirements.
    SENTENCE = r"(?:^| )(?:must|least|char(?:acter)?|min(?:imum)?|max(?:imum)?|enter|should|valid|required?|contains?|please|your|longer|shorter|reset|days?|hours|minutes?|times|attempts|expire[sd]?|step|code|sent|digits?|letters|symbols|numbers,|is|are|be|between|used?|for|login|user|account|than|see|set|not|optional)(?: |$)";
    /// The parts of `your-token-goes-here`.
    PART = r"^(?:your|my|the|here|token|key|secret|goes|test|fake|api|some|foo|bar|change|me|replace|insert|with|this|value)$";
    NAME = r"^[a-z_][\w.]*$";
    UUID = r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$";
    /// Sealed values that only one cluster can decrypt.
    SEALED = r"^Ag[A-D][a-z0-9+/]{57,}={0,2}$";
}

/// Whether words in it say that a secret is to be put there.
pub(super) fn is_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    PLACEHOLDER.holds(bytes) || ALONE.holds(bytes) && !is_random(text)
}

/// Whether a word or a sign in it is there by chance.
fn is_random(text: &str) -> bool {
    is_scrambled(text) || is_mixed(text) && !is_words(text)
}

/// Whether it consists mostly of words like `your` and `token`.
pub(super) fn has_parts_of_a_placeholder(text: &[u8]) -> bool {
    let parts = || text.split(|byte| matches!(byte, b'-' | b'_' | b'.')).filter(|part| !part.is_empty());
    let count = parts().count();
    let shown = parts().filter(|part| PART.holds(part)).count();
    shown > 1 && shown * 2 >= count
}

pub(super) fn is_reference(text: &str) -> bool {
    let bytes = text.as_bytes();
    REFERENCE.holds(bytes)
        || WHOLE.holds(bytes) && !(text.starts_with('%') && is_random(text))
        || (INSIDE.holds(bytes) || text.starts_with('(') && text.ends_with(')')) && !is_scrambled(text)
        || text.starts_with('@') && NAME.holds(&bytes[1..]) && is_words(&text[1..])
}

/// `$NAME` and `$1` at the beginning, or a name in capitals anywhere: a shell replaces these.
pub(super) fn has_variable(text: &str) -> bool {
    let is_name = |pair: &[u8]| pair[0] == b'$' && (pair[1].is_ascii_uppercase() || pair[1] == b'_');
    text.starts_with('$') || text.as_bytes().windows(2).any(is_name)
}

/// A path, an address, a media type: text with slashes between names.
pub(super) fn is_path(text: &str) -> bool {
    let is_address = text.contains("://") || text.starts_with("www.");
    let is_place = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start));
    is_address
        || is_place && text.split('/').all(|part| part.len() < 6 || part.len() < 24 && is_words(part))
        || text.contains(['/', '\\']) && is_words(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_a_random_key_makes_no_placeholder() {
        assert!(!is_placeholder("xpy0_baz$nn6a4rw)jdx0c*dn$u+*yud3@w#uumw=a$tg#6oo0"));
        assert!(!is_placeholder("G8!2baZ!w5#bXY4+*h"));
        assert!(is_placeholder("put_foo_in_it") && is_placeholder("insert-it"));
    }

    #[test]
    fn a_random_key_between_signs_is_no_variable() {
        assert!(!is_reference("%Rt5KNFAkK7Tg4N%"));
        assert!(is_reference("%DB_PASSWORD%") && is_reference("%AppSettings2%"));
    }
}
