//! An agent's final message while it grows, in bounded memory.

use refrain_core::agent::AgentEvent;

use crate::wire::EventSink;

/// The longest final message. No user and no promise needs more.
const LONGEST: usize = 4 << 20;

/// The text that would be the final message if the stream ended now.
#[derive(Debug, Default)]
pub(crate) struct Message {
    text: String,
    is_too_long: bool,
}

impl Message {
    pub(crate) fn push(&mut self, text: &str) {
        self.is_too_long |= self.text.len() + text.len() > LONGEST;
        if !self.is_too_long {
            self.text.push_str(text);
        }
    }

    /// Appends text on a line of its own.
    pub(crate) fn push_block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.push("\n");
        }
        self.push(text);
    }

    /// The text so far was not final.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Reports the message as final. An overlong one is dropped: a part of it could make a claim that the whole does
    /// not.
    pub(crate) fn say_final(&mut self, say: EventSink<'_>) {
        let Self { text, is_too_long } = std::mem::take(self);
        if is_too_long {
            say(AgentEvent::TooLong);
        }
        let message = (!is_too_long && !text.is_empty()).then_some(text);
        say(AgentEvent::Final { ok: true, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &mut Message) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        message.say_final(&mut |event| events.push(event));
        events
    }

    #[test]
    fn an_unbounded_message_is_dropped_and_reported() {
        let mut message = Message::default();
        let part = "x".repeat(LONGEST / 2);
        message.push(&part);
        message.push(&part);
        let whole = Some(part.repeat(2));
        assert_eq!(said(&mut message), [AgentEvent::Final { ok: true, message: whole }]);
        for _ in 0..100 {
            message.push(&part);
        }
        assert!(message.text.len() <= LONGEST);
        message.push("<promise>DONE</promise>");
        let none = AgentEvent::Final { ok: true, message: None };
        assert_eq!(said(&mut message), [AgentEvent::TooLong, none.clone()]);
        assert_eq!(said(&mut message), [none]);
    }
}
