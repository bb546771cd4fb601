//! A request as the model received it.

use std::time::Duration;

/// One request, as it came in. The key that came with it is never kept.
#[derive(Clone, Debug)]
pub struct Request {
    /// The lane it came by; empty for the model's own URL.
    pub lane: String,
    /// The language it spoke.
    pub protocol: Protocol,
    /// The path it asked for, without its query.
    pub path: String,
    pub took: TakenTurn,
    /// The model it named.
    pub model: String,
    /// The user's messages so far, in order, without the program's additions.
    pub prompts: Vec<String>,
    /// The program's additions to the user's side: reminders, its environment.
    pub context: Vec<String>,
    /// Its instructions.
    pub system: String,
    /// The results of its tools so far, in order.
    pub tool_results: Vec<String>,
    /// The tools it offers.
    pub tools: Vec<String>,
    /// Whether a key came with it.
    pub has_key: bool,
    /// When it came, since the model was started.
    pub at: Duration,
    pub ending: Ending,
}

impl Request {
    /// The user's last message.
    #[must_use]
    pub fn prompt(&self) -> &str {
        self.prompts.last().map_or("", String::as_str)
    }

    /// Whether it belongs to an agent's main conversation.
    #[must_use]
    pub const fn is_main(&self) -> bool {
        matches!(self.took, TakenTurn::Turn(_) | TakenTurn::Past)
    }

    /// Whether it begins a conversation, or begins it again: nothing was done in it yet.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.is_main() && self.tool_results.is_empty()
    }
}

/// The turn that a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenTurn {
    /// The turn at this place.
    Turn(usize),
    /// The answer for requests after the script's end.
    Past,
    /// Nothing: a title, a classification, a probe.
    Side,
    /// Nothing: a token count, a list of models, or a question that no model answers.
    Nothing,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Open,
    /// It was answered to the end, be it with an error.
    Answered,
    /// The script broke it off.
    Broken,
    /// The client closed the connection.
    Left,
}

/// The languages that agents' models speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    Gemini,
    /// None of them.
    Other,
}
