//! An agent's final message while it grows, in bounded memory.

/// What a final message may hold. No person and no promise needs more.
const LONGEST: usize = 4 << 20;

/// The text that would be the final message if the stream ended now.
#[derive(Debug, Default)]
pub(crate) struct Message {
    text: String,
    is_too_long: bool,
}

impl Message {
    /// Goes on with it.
    pub(crate) fn push(&mut self, text: &str) {
        self.is_too_long |= self.text.len() + text.len() > LONGEST;
        if !self.is_too_long {
            self.text.push_str(text);
        }
    }

    /// Goes on with it, on a line of its own.
    pub(crate) fn push_block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.push("\n");
        }
        self.push(text);
    }

    /// What was said so far was not final.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing is in it yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The message. One that is too long is none: a part of it could claim what the whole does not.
    pub(crate) fn take(&mut self) -> Option<String> {
        let Self { text, is_too_long } = std::mem::take(self);
        (!is_too_long && !text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_bounds_is_none() {
        let mut message = Message::default();
        let part = "x".repeat(LONGEST / 2);
        message.push(&part);
        message.push(&part);
        assert_eq!(message.take().map(|text| text.len()), Some(LONGEST));
        for _ in 0..100 {
            message.push(&part);
        }
        assert!(message.text.len() <= LONGEST);
        message.push("<promise>DONE</promise>");
        assert_eq!(message.take(), None);
    }
}
