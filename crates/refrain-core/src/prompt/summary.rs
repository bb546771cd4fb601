//! An agent's summary of its iteration in one line: `<iteration-summary>...</iteration-summary>` in its final message
//! (seed 002). It is for people and decides nothing. Which lines count, and what is an echo, is decided in
//! [`crate::promise`], which passes the lines on.

use crate::text::{in_order, printable, squeeze};

pub(crate) const OPEN: &str = "<iteration-summary>";
pub(crate) const CLOSE: &str = "</iteration-summary>";
/// The placeholder between them in the prompt: a summary that only repeats it says nothing.
pub(crate) const PLACEHOLDER: &str = "what this iteration did";

/// The longest summary, in characters; one that is longer is cut.
pub const LONGEST: usize = 100;

/// How much of a summary that spans lines is held, in bytes. A tag that stays open for longer was none.
const MOST_HELD: usize = 4 << 10;

/// Listens to the lines of one message. The last summary counts.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// The text after a tag that no line has closed yet.
    open: Option<String>,
    found: Option<String>,
}

impl Listener {
    /// Whether the next line may belong to a summary that an earlier one began.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The next line of plain text.
    pub(crate) fn hear(&mut self, line: &str) {
        let mut rest = line;
        if let Some(begun) = self.open.take() {
            match rest.split_once(CLOSE) {
                // A tag that was left open does not swallow the next one.
                Some((inner, behind)) if !inner.contains(OPEN) => {
                    self.take(&format!("{begun} {inner}"));
                    rest = behind;
                }
                _ if rest.contains(OPEN) => {}
                _ if begun.len() + rest.len() <= MOST_HELD => {
                    self.open = Some(format!("{begun} {rest}"));
                    return;
                }
                _ => return,
            }
        }
        while let Some((_, behind)) = rest.split_once(OPEN) {
            let Some((inner, after)) = behind.split_once(CLOSE) else {
                let inner = behind.rsplit_once(OPEN).map_or(behind, |(_, inner)| inner);
                self.open = (inner.len() <= MOST_HELD).then(|| inner.to_owned());
                return;
            };
            self.take(inner.rsplit_once(OPEN).map_or(inner, |(_, inner)| inner));
            rest = after;
        }
    }

    /// The summary: one line, printable, at most [`LONGEST`] characters.
    pub(crate) fn finish(self) -> Option<String> {
        self.found
    }

    fn take(&mut self, words: &str) {
        let words = squeeze(&in_order(&printable(words)));
        if !words.is_empty() && words != PLACEHOLDER {
            self.found = Some(clipped(words));
        }
    }
}

fn clipped(words: String) -> String {
    match words.char_indices().nth(LONGEST) {
        None => words,
        Some(_) => words.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::promise::Scanner;

    /// The summary found in one message. S and E stand for the tags.
    fn heard(message: &str) -> Option<String> {
        let message = message.replace('S', OPEN).replace('E', CLOSE);
        let mut scanner = Scanner::new(None, "");
        // Cut anywhere.
        let cut = if message.len() < 1000 { 7 } else { 1 << 16 };
        message.as_bytes().chunks(cut).for_each(|chunk| scanner.push(chunk));
        scanner.finish().summary
    }

    #[rstest]
    #[case::none("It went well.", None)]
    #[case::alone("Sfound two bugsE", Some("found two bugs"))]
    #[case::behind_words("It went well.\n\nSummary: Sfound two bugsE.\n", Some("found two bugs"))]
    #[case::squeezed("S  found \t two\u{a0} bugs E", Some("found two bugs"))]
    #[case::over_lines("S\nfound two\nbugs\nE", Some("found two bugs"))]
    #[case::over_lines_with_an_empty_one("Sfound two\n\nbugsE", Some("found two bugs"))]
    #[case::the_last("SoneE\nStwoE\nthe end", Some("two"))]
    #[case::two_on_a_line("SoneE and StwoE", Some("two"))]
    #[case::empty_says_nothing("SoneE\nSE\nS  \n E", Some("one"))]
    #[case::nested("Souter SinnerE moreE", Some("inner"))]
    #[case::nested_over_lines("Souter\nSinnerE\nE", Some("inner"))]
    #[case::no_end("Sfound two bugs", None)]
    #[case::no_end_and_then_one("Sfound\nSfound twoE", Some("found two"))]
    #[case::no_begin("found two bugsE", None)]
    #[case::in_a_fence("```\nSoneE\n```\n", None)]
    #[case::in_inline_code("say `SoneE` at the end", None)]
    #[case::in_a_quotation("> SoneE", None)]
    #[case::in_a_comment("<!-- SoneE -->", None)]
    #[case::a_fence_within("Sone\n```\ntwo\n```\nthreeE", Some("one three"))]
    #[case::in_bold("**SoneE**", Some("one"))]
    #[case::coloured("S\u{1b}[31mred\u{1b}[0m and \u{7}loudE", Some("red and loud"))]
    #[case::turned_round("Sexe.\u{202e}gnpE", Some("exe.[U+202E]gnp"))]
    #[case::a_carriage_return("Sone\rtwoE", Some("one two"))]
    #[case::other_tags("S<b>one</b> &lt;E", Some("<b>one</b> &lt;"))]
    #[case::in_another_case("<Iteration-summary>one</Iteration-summary>", None)]
    #[case::an_attribute("<iteration-summary lang=en>oneE", None)]
    #[case::what_agents_are_told("Swhat this iteration didE", None)]
    fn odd_messages(#[case] message: &str, #[case] summary: Option<&str>) {
        assert_eq!(heard(message).as_deref(), summary);
    }

    #[test]
    fn long_ones_are_cut_and_endless_ones_held_in_bounded_memory() {
        let long = heard(&format!("S{}E", "é".repeat(LONGEST + 1))).unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST, true));
        assert_eq!(heard(&format!("S{}E", "é".repeat(LONGEST))).unwrap().chars().count(), LONGEST);

        let line = format!("{OPEN}{}{CLOSE}\n", "x".repeat(10 << 20));
        assert_eq!(heard(&line).unwrap().chars().count(), LONGEST);
        let lines = format!("{OPEN}{}", "so it continues\n".repeat(800_000));
        assert_eq!(heard(&format!("{lines}{CLOSE}")), None);
        assert_eq!(heard(&format!("{lines}\nSdoneE\n")).as_deref(), Some("done"));
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_summary() {
        let prompt = format!("Work.\n- One line: {OPEN}as you like{CLOSE}");
        for (printed, summary) in
            [("", None), ("\n<iteration-summary>mine</iteration-summary>", Some("mine"))]
        {
            let mut scanner = Scanner::new(None, &prompt);
            scanner.push(format!("{prompt}{printed}\n").as_bytes());
            assert_eq!(scanner.finish().summary.as_deref(), summary);
        }
    }

    proptest! {
        #[test]
        fn a_summary_fits_on_one_line(message in "([SE \n`<>-]|\\PC|[\u{0}-\u{1f}])*") {
            if let Some(summary) = heard(&message) {
                prop_assert!(summary.chars().count() <= LONGEST && !summary.is_empty());
                prop_assert!(!summary.contains(char::is_control), "{summary:?}");
            }
        }
    }
}
