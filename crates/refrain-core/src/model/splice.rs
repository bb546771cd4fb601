//! A change of a text that can be taken back to the byte.

use serde::{Deserialize, Serialize};

/// At this byte, this text was put in place of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// The place, in bytes.
    pub at: usize,
    /// The old text there; mostly empty.
    pub old: String,
    pub new: String,
}

impl Splice {
    /// The text with it; none if it was not made for this text.
    pub fn apply(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_at_checked(self.at)?;
        Some([before, &self.new, rest.strip_prefix(self.old.as_str())?].concat())
    }
}

/// The text as it was before these, undone from the last to the first; none if the text is not their result.
pub fn undo(text: &str, splices: &[Splice]) -> Option<String> {
    splices.iter().rev().try_fold(text.to_owned(), |text, splice| {
        let (at, old, new) = (splice.at, splice.new.clone(), splice.old.clone());
        Splice { at, old, new }.apply(&text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_are_taken_back_in_their_order() {
        let splice = |at, old: &str, new: &str| Splice { at, old: old.to_owned(), new: new.to_owned() };
        let splices = [splice(2, "", ", c"), splice(0, "a", "\u{e9}\u{e9}")];
        let text = splices.iter().try_fold("a,b".to_owned(), |text, splice| splice.apply(&text)).unwrap();
        assert_eq!(text, "\u{e9}\u{e9},, cb");
        assert_eq!(undo(&text, &splices).as_deref(), Some("a,b"));
        for other in ["", "\u{e9}", "\u{e9}\u{e9},b", "a,, cb"] {
            assert_eq!(undo(other, &splices), None, "{other}");
        }
        assert_eq!(splice(1, "", "x").apply("\u{e9}"), None, "within a character");
    }
}
