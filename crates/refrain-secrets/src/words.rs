//! Whether a text consists of words and small numbers, like names that people choose, or of random letters, digits
//! and signs.

/// Letters, digits and many signs in short pieces, as a program makes a key of all that can be typed. Code has signs
/// too, but the names between them are longer.
pub(super) fn is_scrambled(text: &str) -> bool {
    let signs: std::collections::BTreeSet<char> =
        text.chars().filter(|c| c.is_ascii_punctuation() && !"._-/:,".contains(*c)).collect();
    let is_pattern = ["[a-z", "[A-Z", "[0-9", "(?", "[^", ".*", ".+"].iter().any(|mark| text.contains(mark));
    let runs = runs(text);
    let letters = runs.iter().filter(|(kind, _)| *kind == Kind::Letters);
    let (count, len) = letters.fold((0, 0), |(count, len), (_, run)| (count + 1, len + run.len()));
    let has_digits = runs.iter().any(|(kind, _)| *kind == Kind::Digits);
    let is_long = text.len() >= 40;
    let (fewest, longest) = match (is_long, signs.len()) {
        (true, 5..) => (3, 7),
        (true, _) => (3, 5),
        (false, _) => (4, 4),
    };
    text.len() >= 20
        && signs.len() >= fewest
        && has_digits
        && len < count * longest
        && (is_long || !text.contains("()"))
        && !is_pattern
        && !text.contains(['\\', '"', '\'', '`'])
        && entropy(text.as_bytes()) >= 3.8
}

/// Code, not a value: a call, an index, a chain of names.
pub(super) fn is_expression(text: &str) -> bool {
    text.contains(['(', ')', '[', ']', '{', '}', ';', '|', '"', '\'', '`', '\\'])
}

/// At least three of lower case, upper case, digits and signs, including a sign that does not occur in names.
pub(super) fn is_mixed(text: &str) -> bool {
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

/// Whether a text consists of words and small numbers: a name, an option, a sentence without spaces. Random letters
/// do not: they change between kinds of characters all the time.
pub(super) fn is_words(text: &str) -> bool {
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
    // A number is at an end, or after a separator: `part-7`, `sha256`. Once it may be inside, as in `base64Decode`.
    let is_inside =
        |run: &&[(Kind, &str)]| matches!(run, [(Kind::Letters, _), (Kind::Digits, _), (Kind::Letters, _)]);
    // Abbreviations are words too, but random letters contain more of them, most of all without separators.
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
        && (has_signs || !has_rare_pairs(&runs))
}

/// For each letter, the letters that can follow it in words of languages with this alphabet.
const FOLLOWING: &str = "abcdfghiklmnprstuvwxy abcdeijlmorstuy acdefhiklmoprstuy abcdefgilmnoprstuy abcdefghiklmnopqrstuvwxyz adefilorstuy aeghilmnorstu aeilmorstuy abcdefgklmnoprstvxz aeou aeilnosu abcdefiklmnopstuvy abdeilmopsuy abcdefghiklmnoprstuvy abcdefgiklmnoprstuvwx acdehiloprstuy u abcdefgiklmnoprstuvy acdefghiklmnopqrstuvwy abcdefhilmnoprstuwy abcdefgilmnoprst aeio aehinors aceipt aceilmnopst aei";

/// Whether a quarter of the letter pairs do not occur in words.
fn has_rare_pairs(runs: &[(Kind, &str)]) -> bool {
    let letters = runs.iter().filter(|(kind, run)| *kind == Kind::Letters && run.len() > 2);
    let is_rare = |pair: &[u8]| {
        let row = pair[0].checked_sub(b'a').and_then(|at| FOLLOWING.split(' ').nth(at.into()));
        row.is_some_and(|row| !row.as_bytes().contains(&pair[1]))
    };
    let (mut rare, mut all) = (0, 0);
    for (_, run) in letters {
        let lower = run.to_ascii_lowercase();
        all += lower.len() - 1;
        rare += lower.as_bytes().windows(2).filter(|pair| is_rare(pair)).count();
    }
    rare >= 3 && rare * 4 >= all
}

fn has_vowel(letters: &str) -> bool {
    letters.contains(|c| "aeiouyAEIOUY".contains(c))
}

/// Whether letters have the case of a word: all lower, all upper, or one capital first.
fn is_cased(letters: &str) -> bool {
    let small = |text: &str| text.chars().all(char::is_lowercase);
    small(letters) || letters.chars().all(char::is_uppercase) || letters.get(1..).is_some_and(small)
}

/// Whether letters are pronounceable: they have vowels, with few consonants in between. Abbreviations, such as HTTPS,
/// have none.
fn is_sayable(letters: &str) -> bool {
    let is_vowel = |c: char| "aeiouyAEIOUY".contains(c);
    letters.len() <= 5
        || letters.split(is_vowel).all(|part| part.chars().count() <= 5)
            && letters.matches(is_vowel).count() * 8 >= letters.len()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Sign,
}

/// The text split into runs of one kind; letters are split before a capital that follows a lower-case letter.
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

pub(super) fn distinct(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in value {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}

pub(super) fn entropy(value: &[u8]) -> f64 {
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
