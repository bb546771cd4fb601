//! Foreign text, made fit to be shown, compared or quoted. All output of an agent passes through [`printable`] before
//! it is scanned or reaches a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The text without terminal escapes and control characters, except line breaks and tabs. Format characters, such as a
/// zero-width space, stay: they are part of the words. A lone carriage return becomes a line break: text that a
/// terminal would overwrite is shown instead of hidden.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Skips the rest of an escape after ESC. An escape that is cut off by a line break ends there: the next line is whole.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    match rest.as_str().chars().next() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        // Intermediate characters, then a final one.
        Some(' '..='/') => {
            skip_while(rest, |c| matches!(c, ' '..='/'));
            skip_one(rest, |c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => drop(rest.next()),
        _ => {}
    }
}

/// `ESC [`, parameters, a final character.
fn skip_control_sequence(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |c| matches!(c, ' '..='?'));
    skip_one(rest, |c| matches!(c, '@'..='~'));
}

/// A title, a link and the like: up to BEL or ST, but never past the line. One that does not end on its line was none,
/// or was cut: then only its introducer is removed, so that it cannot swallow words.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    let text = rest.as_str();
    let end = text.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']).filter(|end| !text[*end..].starts_with('\n'));
    let Some(end) = end else { return };
    let tail = &text[end..];
    let mark = if tail.starts_with("\u{1b}\\") { 2 } else { tail.chars().next().map_or(0, char::len_utf8) };
    *rest = tail[mark..].chars();
}

fn skip_while(rest: &mut std::str::Chars<'_>, keep: impl Fn(char) -> bool) {
    *rest = rest.as_str().trim_start_matches(keep).chars();
}

fn skip_one(rest: &mut std::str::Chars<'_>, is: impl Fn(char) -> bool) {
    if rest.as_str().starts_with(is) {
        rest.next();
    }
}

/// The text with the characters spelled out that reverse the direction of writing (`[U+202E]`): it is shown in the
/// order in which it was written.
pub fn in_order(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(turns) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if turns(c) {
            let _ = write!(out, "[U+{:04X}]", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The same, and with the characters spelled out that have no width (`[U+200B]`): two texts that look alike are alike.
/// Joiners between characters beyond ASCII stay: emoji and some scripts are written with them.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hides = |c: char| {
        matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}'
                | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
    };
    if !text.contains(hides) {
        return in_order(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let (mut before, mut rest) = (' ', text.chars());
    while let Some(c) = rest.next() {
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}')
            && is_joined(before)
            && rest.as_str().chars().next().is_some_and(is_joined);
        if hides(c) && !is_joiner {
            let _ = write!(out, "[U+{:04X}]", u32::from(c));
        } else {
            out.push(c);
        }
        before = c;
    }
    Cow::Owned(in_order(&out).into_owned())
}

/// Whether a joiner beside this character has a meaning.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && (c.is_alphabetic() || c >= '\u{2190}') && c != '\u{feff}'
}

/// The text with every run of white space as one space, and none at its ends.
pub fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with the paths below a folder as they are from there. The folder ends with a `/`.
pub fn without_folder(text: &str, folder: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(folder).filter(|_| !folder.is_empty()) {
        let (before, there) = rest.split_at(at);
        found.push_str(before);
        // Of a longer path it is another part.
        let is_inside = |before: char| before.is_alphanumeric() || "/._-~".contains(before);
        if found.ends_with(is_inside) {
            found.push_str(folder);
        }
        rest = &there[folder.len()..];
    }
    found + rest
}

/// The beginning of the text, at most `max` bytes, with an ellipsis if something was cut off.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", &text[..end]))
}

/// The beginning of the text, at most `most` characters, with an ellipsis if there is more.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Both ends of the text, about `max` bytes in total, with a line between them that says how much is omitted.
pub fn cut_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - max / 2);
    let mut out = String::with_capacity(max + 64);
    out.push_str(&text[..head]);
    let _ = write!(out, "\n[... {} bytes left out ...]\n", tail - head);
    out.push_str(&text[tail..]);
    Cow::Owned(out)
}

/// A line as code that it cannot end.
pub fn inline_code(line: &str) -> String {
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    match longest {
        0 => format!("{ticks}{line}{ticks}"),
        _ => format!("{ticks} {line} {ticks}"),
    }
}

/// A number with its thousands apart: `5,400`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let apart = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits
        .char_indices()
        .flat_map(|(at, digit)| apart(at).then_some(',').into_iter().chain([digit]))
        .collect()
}

/// A large number, short: `940`, `12.3k`, `4.1M`.
pub fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// The name that was probably meant: at most a third of it is different, or one of two characters.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = names.into_iter().map(|known| (strsim::damerau_levenshtein(name, known), known));
    let alike = rated.filter(|(wrong, known)| {
        let longer = known.len().max(name.len());
        wrong * 3 <= longer || (*wrong == 1 && known.len() == 2 && name.len() == 2)
    });
    alike.min_by_key(|(wrong, _)| *wrong).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("as it is\n\tthere", "as it is\n\tthere")]
    #[case::colour("\u{1b}[1;32mgreen\u{1b}[0m", "green")]
    #[case::title("\u{1b}]0;title\u{7}text", "text")]
    #[case::link("\u{1b}]8;;http://x\u{1b}\\text\u{1b}]8;;\u{1b}\\", "text")]
    #[case::device_control("\u{1b}Pq#0\u{1b}\\text", "text")]
    #[case::c1_control_sequence("\u{9b}31mred", "red")]
    #[case::two_characters("\u{1b}creset \u{1b}(Bcharset", "reset charset")]
    #[case::unterminated_title_swallows_nothing("\u{1b}]0;never\nnext", "0;never\nnext")]
    #[case::cut_off("text\u{1b}", "text")]
    #[case::cut_off_sequence("text\u{1b}[31", "text")]
    #[case::nul_and_bell("a\0b\u{7}c\u{8}d\u{7f}", "abcd")]
    #[case::line_ends("a\r\nb", "a\nb")]
    #[case::overwritten("10%\r20%\rdone", "10%\n20%\ndone")]
    #[case::zero_width_is_a_format_character("a\u{200b}b", "a\u{200b}b")]
    fn control_characters_do_not_get_through(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(printable(text), shown);
    }

    #[rstest]
    #[case(0, "0", "0")]
    #[case(999, "999", "999")]
    #[case(10_000, "10,000", "10.0k")]
    #[case(4_199_999, "4,199,999", "4.1M")]
    fn large_numbers_are_readable(#[case] number: u64, #[case] whole: &str, #[case] short: &str) {
        assert_eq!((grouped(number).as_str(), thousands(number).as_str()), (whole, short));
    }

    #[rstest]
    #[case("read /app/src/i.ts and (/app/b)", "read src/i.ts and (b)")]
    #[case("packages/app/src/i.ts", "packages/app/src/i.ts")]
    #[case("/home/app/x ../app/y /app/app/z", "/home/app/x ../app/y app/z")]
    fn paths_are_shortened_only_where_they_begin(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(without_folder(text, "/app/"), shown);
    }

    #[rstest]
    #[case("مرحبا", "مرحبا")]
    #[case("exe.\u{202e}gnp", "exe.[U+202E]gnp")]
    #[case("\u{2066}a\u{2069}\u{200f}", "[U+2066]a[U+2069][U+200F]")]
    #[case("a\u{200b}b", "a\u{200b}b")]
    fn nothing_turns_a_text_round(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(in_order(text), shown);
    }

    #[rstest]
    #[case("exe.\u{202e}gnp", "exe.[U+202E]gnp")]
    #[case("pass\u{200b}word\u{ad}", "pass[U+200B]word[U+00AD]")]
    #[case("\u{feff}a\u{2060}b\u{202e}", "[U+FEFF]a[U+2060]b[U+202E]")]
    #[case("a\u{200d}b\u{200c}", "a[U+200D]b[U+200C]")]
    #[case("\u{e0041}\u{3164}\u{115f}a\u{fff9}\u{2028}", "[U+E0041][U+3164][U+115F]a[U+FFF9][U+2028]")]
    #[case("\u{1f469}\u{200d}\u{1f4bb}", "\u{1f469}\u{200d}\u{1f4bb}")]
    #[case("\u{645}\u{6cc}\u{200c}\u{62e}", "\u{645}\u{6cc}\u{200c}\u{62e}")]
    fn nothing_in_a_text_is_invisible(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(visible(text), shown);
    }

    proptest! {
        #[test]
        fn printable_is_clean_and_stays_so(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}]|\u{1b}[\\[\\]P(c])*") {
            let once = printable(&text).into_owned();
            prop_assert!(once.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(printable(&once), once.as_str());
        }

        #[test]
        fn cuts_are_within_bounds(text in "\\PC*", max in 4usize..200) {
            prop_assert!(clip(&text, max).len() <= max);
            prop_assert!(cut(&text, max).chars().count() <= max + 1);
            prop_assert!(cut_middle(&text, max).len() <= max + 64);
        }
    }
}
