//! What stands where a secret would stand and is none: a placeholder, a reference to what stands elsewhere, a place, or
//! something that everybody may know.

use super::signs::{is_scrambled, is_words};

/// Words that a placeholder has and that chance does not make. In lower case.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "changeme",
    "change-me",
    "change_me",
    "change.me",
    "change this",
    "changethis",
    "placeholder",
    "redacted",
    "notasecret",
    "not-a-secret",
    "not_a_secret",
    "notreal",
    "not-real",
    "your-",
    "your_",
    "yourpass",
    "yourtoken",
    "yoursecret",
    "yourkey",
    "yourapi",
    "my-secret",
    "mysecret",
    "my_secret",
    "mypassword",
    "my-token",
    "xxxx",
    "****",
    "....",
    "____",
    "----",
    "0000000",
    "1111111",
    "1234567",
    "12345678",
    "abcdefgh",
    "abcd1234",
    "abc123",
    "deadbeef",
    "removed",
    "censored",
    "put_your",
    "put-your",
    "enter_",
    "enter-",
    "some-",
    "some_",
    "test-",
    "test_",
    "-test",
    "_test",
    "testtest",
    "foobar",
    "password",
    "passphrase",
    "passw0rd",
    "secretkey",
    "secret-key",
    "secret_key",
    "supersecret",
    "super-secret",
    "super_secret",
    "topsecret",
    "top-secret",
    "undefined",
    "invalid",
    "disabled",
    "enc[",
    "aaaa-bbbb",
];

/// The same, where chance may make them: they stand alone.
const PLACEHOLDER_WORDS: &[&str] = &[
    "fixme", "todo", "lorem", "masked", "hidden", "fake", "mock", "dummy", "sample", "insert", "replace",
    "unused", "default", "none", "null", "foo", "bar", "baz", "here",
];

/// Whether it has a word of a placeholder. In lower case.
pub(super) fn is_placeholder(lower: &str) -> bool {
    // Numbers may stand around it, as in `dummy2`; inside of more it is there by chance.
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let is_alone =
        |word: &&str| parts.clone().any(|part| part.trim_matches(|c: char| c.is_ascii_digit()) == *word);
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || PLACEHOLDER_WORDS.iter().any(is_alone)
}

/// `your-token-goes-here` is no token, whatever stands before it.
pub(super) fn has_words(lower: &str) -> bool {
    let parts: Vec<&str> = lower.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    let is_word = |part: &&&str| {
        matches!(
            **part,
            "your"
                | "my"
                | "the"
                | "here"
                | "token"
                | "key"
                | "secret"
                | "goes"
                | "test"
                | "fake"
                | "api"
                | "some"
                | "foo"
                | "bar"
                | "change"
                | "me"
                | "replace"
                | "insert"
                | "with"
                | "this"
                | "value"
        )
    };
    parts.len() > 1 && parts.iter().filter(is_word).count() * 2 >= parts.len()
}

/// How a reference to what stands elsewhere begins or ends.
const REFERENCES: &[&str] = &[
    "${",
    "$(",
    "{{",
    "}}",
    "#{",
    "%{",
    "<%",
    "%>",
    "<",
    ">",
    "[[",
    "$env:",
    "env:",
    "env.",
    "process.env",
    "os.environ",
    "getenv",
    "vault:",
    "secret:",
    "ssm:",
    "arn:",
    "ref+",
    "op://",
    "aws-sm://",
    "projects/",
    "secrets.",
    "vars.",
    "!ref",
    "!sub",
    "!vault",
    "@microsoft.keyvault",
    "file://",
    "file:/",
    "keyring:",
    "keychain:",
    "/run/secrets",
    "/var/run",
    "data:",
];

pub(super) fn is_reference(text: &str, lower: &str) -> bool {
    let bytes = text.as_bytes();
    let is_variable = |mark: u8| {
        bytes[0] == mark && bytes.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
    };
    let is_hash = [
        "$2a$", "$2b$", "$2y$", "$argon2", "$1$", "$5$", "$6$", "$pbkdf2", "$scrypt", "{ssha", "pbkdf2",
        "scrypt:", "sha256:", "sha512:",
    ]
    .iter()
    .any(|start| lower.starts_with(start));
    let is_whole = (text.starts_with('%') && text.ends_with('%'))
        || (text.starts_with("__") && text.ends_with("__"))
        || (text.starts_with('[') && text.ends_with(']'))
        || (text.starts_with('{') && text.ends_with('}'))
        || (text.starts_with('(') && text.ends_with(')'));
    is_hash
        || is_whole
        || is_shell_variable(text, is_variable(b'$'))
        || is_variable(b'@') && is_words(&text[1..])
        || REFERENCES.iter().any(|mark| match *mark {
            "<" | ">" | "{{" | "}}" | "${" | "$(" | "#{" | "%{" | "<%" | "%>" | "enc[" => {
                lower.starts_with(mark) || lower.contains(mark) && !is_scrambled(text)
            }
            mark => lower.starts_with(mark),
        })
}

/// `$NAME`, and nothing but a name.
fn is_shell_variable(text: &str, is_variable: bool) -> bool {
    is_variable
        && text[1..]
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'>' | b'['))
}

/// `$NAME` and `$1` at the beginning, or a name in capitals anywhere: a shell puts something else there.
pub(super) fn has_variable(text: &str) -> bool {
    let is_name = |pair: &[u8]| pair[0] == b'$' && (pair[1].is_ascii_uppercase() || pair[1] == b'_');
    text.starts_with('$') || text.as_bytes().windows(2).any(is_name)
}

/// A path, an address, a version, a media type: things with slashes and dots that have names in them.
pub(super) fn is_path(text: &str) -> bool {
    let is_address = text.contains("://") || text.starts_with("www.");
    let is_place =
        text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text.starts_with("~/");
    let has_parts = text.contains(['/', '\\']) && is_words(text);
    is_address || (is_place && text.split('/').all(|part| part.len() < 24)) || has_parts
}

/// What everybody may know: a public key, a certificate, a checksum that says so, a colour, a date.
pub(super) fn is_public(text: &str) -> bool {
    let starts = [
        "ssh-rsa",
        "ssh-ed25519",
        "ecdsa-sha2",
        "sha1-",
        "sha256-",
        "sha384-",
        "sha512-",
        "sha256:",
        "md5:",
        "-----begin pub",
        "-----begin cert",
        "age1",
        "pk_",
        "pk.",
    ];
    let lower = text.to_ascii_lowercase();
    let is_version = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    starts.iter().any(|start| lower.starts_with(start)) || is_date(text) || is_version
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[5..7].iter().chain(&bytes[8..10]).all(u8::is_ascii_digit)
}
