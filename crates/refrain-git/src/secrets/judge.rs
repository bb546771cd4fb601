//! Whether a text that stands where a secret would stand is one: not a placeholder, a reference, a name or words.

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
fn is_placeholder(lower: &str) -> bool {
    // Numbers may stand around it, as in `dummy2`; inside of more it is there by chance.
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let is_alone =
        |word: &&str| parts.clone().any(|part| part.trim_matches(|c: char| c.is_ascii_digit()) == *word);
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || PLACEHOLDER_WORDS.iter().any(is_alone)
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

/// `your-token-goes-here` is no token, whatever stands before it.
fn has_words(lower: &str) -> bool {
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

/// `$NAME` and `$1` at the beginning, or a name in capitals anywhere: a shell puts something else there.
fn has_variable(text: &str) -> bool {
    let is_name = |pair: &[u8]| pair[0] == b'$' && (pair[1].is_ascii_uppercase() || pair[1] == b'_');
    text.starts_with('$') || text.as_bytes().windows(2).any(is_name)
}

/// Letters, digits and many signs in short pieces, as a program makes a key of all that can be typed. Code has signs too, but
/// the names between them are longer.
pub(super) fn is_scrambled(text: &str) -> bool {
    let signs: std::collections::BTreeSet<char> =
        text.chars().filter(|c| c.is_ascii_punctuation() && !"._-/:,".contains(*c)).collect();
    let is_pattern = ["a-z", "A-Z", "0-9", "(?", "[^", ".*", ".+"].iter().any(|mark| text.contains(mark));
    let runs = runs(text);
    let letters = runs.iter().filter(|(kind, _)| *kind == Kind::Letters);
    let (count, len) = letters.fold((0, 0), |(count, len), (_, run)| (count + 1, len + run.len()));
    let has_digits = runs.iter().any(|(kind, _)| *kind == Kind::Digits);
    let is_long = text.len() >= 40;
    let (fewest, longest) = if is_long { (3, 5) } else { (4, 4) };
    text.len() >= 20
        && signs.len() >= fewest
        && has_digits
        && len < count * longest
        && (is_long || !text.contains("()"))
        && !is_pattern
        && !text.contains(['\\', '"', '\'', '`'])
        && entropy(text.as_bytes()) >= 3.8
}

fn is_reference(text: &str, lower: &str) -> bool {
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

/// A path, an address, a version, a media type: things with slashes and dots that have names in them.
fn is_path(text: &str) -> bool {
    let is_address = text.contains("://") || text.starts_with("www.");
    let is_place =
        text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text.starts_with("~/");
    let has_parts = text.contains(['/', '\\']) && is_words(text);
    is_address || (is_place && text.split('/').all(|part| part.len() < 24)) || has_parts
}

/// What everybody may know: a public key, a certificate, a checksum that says so, a colour, a date.
fn is_public(text: &str) -> bool {
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

/// Code, not a value: a call, an index, a chain of names.
fn is_expression(text: &str) -> bool {
    text.contains(['(', ')', '[', ']', '{', '}', ';', '|', '"', '\'', '`', '\\'])
}

/// At least three of lower case, upper case, digits and signs, and among them a sign that names do not have.
fn is_mixed(text: &str) -> bool {
    let has = |test: fn(&char) -> bool| usize::from(text.chars().any(|c| test(&c)));
    let signs = has(|c| {
        c.is_ascii_punctuation()
            && !matches!(
                c,
                '.' | '-' | '_' | '/' | ':' | ',' | '(' | ')' | '[' | ']' | '{' | '}' | ';' | '"' | '\''
            )
    });
    let kinds =
        has(char::is_ascii_lowercase) + has(char::is_ascii_uppercase) + has(char::is_ascii_digit) + signs;
    signs == 1 && kinds >= 3 && !is_expression(text)
}

/// Whether a text is made of words and small numbers: a name, an option, a sentence without spaces. Random letters are
/// not: they change between kinds of characters all the time.
fn is_words(text: &str) -> bool {
    let runs = runs(text);
    let (mut letters, mut words, mut digits, mut numbers) = (0, 0, 0, 0_usize);
    for (kind, run) in &runs {
        match kind {
            Kind::Letters => {
                letters += run.len();
                words += 1;
            }
            Kind::Digits => {
                digits += run.len();
                numbers += 1;
            }
            Kind::Sign => {}
        }
    }
    if words == 0 {
        return false;
    }
    let is_plain_digits = runs.iter().all(|(kind, run)| *kind != Kind::Digits || run.len() <= 4);
    let has_long_words = letters * 2 >= words * 5;
    let is_cased = runs.iter().filter(|(kind, _)| *kind == Kind::Letters).all(|(_, run)| is_cased(run));
    let is_sayable = runs
        .iter()
        .filter(|(kind, run)| *kind == Kind::Letters && run.len() > 3)
        .all(|(_, run)| is_sayable(run));
    // A number stands at an end, or behind a sign: `part-7`, `sha256`. Once it may be inside, as in `base64Decode`.
    let is_inside =
        |run: &&[(Kind, &str)]| matches!(run, [(Kind::Letters, _), (Kind::Digits, _), (Kind::Letters, _)]);
    // Abbreviations are words too, but random letters have more of them, most of all where nothing parts the words.
    let is_odd = |(kind, run): &&(Kind, &str)| *kind == Kind::Letters && (run.len() <= 2 || !has_vowel(run));
    let odd = runs.iter().filter(is_odd).count();
    let has_signs = runs.iter().any(|(kind, _)| *kind == Kind::Sign);
    let inside = runs.windows(3).filter(is_inside).count();
    odd * (if has_signs { 2 } else { 3 }) <= words
        && (inside == 0 || inside == 1 && (has_signs || odd == 0))
        && is_plain_digits
        && has_long_words
        && is_cased
        && is_sayable
        && digits * 2 <= letters
        && (numbers * 2 <= words || numbers == 1)
}

fn has_vowel(letters: &str) -> bool {
    letters.contains(['a', 'e', 'i', 'o', 'u', 'y', 'A', 'E', 'I', 'O', 'U', 'Y'])
}

/// Whether letters are as in a word: all small, all capital, or one capital and small ones.
fn is_cased(letters: &str) -> bool {
    let small = |text: &str| text.chars().all(char::is_lowercase);
    small(letters) || letters.chars().all(char::is_uppercase) || letters.get(1..).is_some_and(small)
}

/// Whether letters can be said: they have vowels, and not too much between them.
fn is_sayable(letters: &str) -> bool {
    let (mut consonants, mut longest, mut vowels) = (0, 0, 0);
    for c in letters.chars() {
        if matches!(c.to_ascii_lowercase(), 'a' | 'e' | 'i' | 'o' | 'u' | 'y') {
            vowels += 1;
            consonants = 0;
        } else {
            consonants += 1;
            longest = longest.max(consonants);
        }
    }
    // Abbreviations, such as HTTPS, have none at all.
    longest <= 5 && vowels * 8 >= letters.len() || letters.len() <= 5
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Sign,
}

/// The text in pieces of one kind; letters are parted where a capital follows a small one.
fn runs(text: &str) -> Vec<(Kind, &str)> {
    let kind = |c: char| match c {
        c if c.is_ascii_digit() => Kind::Digits,
        c if c.is_alphabetic() => Kind::Letters,
        _ => Kind::Sign,
    };
    let mut runs = Vec::new();
    let (mut from, mut last) = (0, None::<char>);
    for (at, c) in text.char_indices() {
        let parts =
            last.is_some_and(|last| kind(last) != kind(c) || (last.is_lowercase() && c.is_uppercase()));
        if parts {
            runs.extend(last.map(|last| (kind(last), &text[from..at])));
            from = at;
        }
        last = Some(c);
    }
    runs.extend(last.map(|last| (kind(last), &text[from..])));
    runs
}

fn distinct(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in value {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}

/// Bits a character, after Shannon.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let all = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / all)
        .map(|p| -p * p.log2())
        .sum()
}
