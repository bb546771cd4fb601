//! How many tokens a text is, by a real tokenizer: OpenAI's `cl100k_base`, the smallest vocabulary that is still in use.
//! Other vendors keep theirs to themselves, and differ by some percent: good for a budget, not for a bill.

use std::sync::OnceLock;

use tiktoken::CoreBpe;

/// How many tokens the text is. The vocabulary is unpacked when this is first asked (some 40 ms, some 10 MB): ask
/// [`may_exceed`] before.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    static VOCABULARY: OnceLock<CoreBpe> = OnceLock::new();
    VOCABULARY.get_or_init(tiktoken::encoding::cl100k_base).count(text) as u64
}

/// Whether the text may be more than `most` tokens. A token is at least a byte, so that nobody has to count for most texts.
#[must_use]
pub fn may_exceed(text: &str, most: u64) -> bool {
    text.len() as u64 > most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_those_of_the_vocabulary() {
        for (text, counted) in [
            ("", 0),
            ("hello world", 2),
            ("refrain runs a coding agent again and again", 9),
            ("fn main() { println!(\"hi\"); }\n", 9),
            ("größer als 1.000", 8),
        ] {
            assert_eq!(tokens(text), counted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_token_is_shorter_than_a_byte(text in any::<String>(), most in 0..100u64) {
            prop_assert!(may_exceed(&text, most) || tokens(&text) <= most);
        }
    }
}
