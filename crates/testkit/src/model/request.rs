use std::time::Duration;

/// One request, as it came in. The key that came with it is never kept.
#[derive(Clone, Debug)]
pub struct Request {
    /// The lane it came by; empty for the model's own URL.
    pub lane: String,
    pub protocol: Protocol,
    /// The path it asked for, without its query.
    pub path: String,
    pub took: TakenTurn,
    pub model: String,
    /// The user's messages so far, in order, without the program's additions.
    pub prompts: Vec<String>,
    /// The program's additions to the user's side: reminders, its environment.
    pub context: Vec<String>,
    pub system: String,
    /// The results of its tools so far, in order.
    pub tool_results: Vec<String>,
    pub tools: Vec<String>,
    pub has_key: bool,
    /// When it came, since the model was started.
    pub at: Duration,
    pub ending: ConnectionEnd,
}

impl Request {
    pub fn prompt(&self) -> &str {
        self.prompts.last().map_or("", String::as_str)
    }

    /// Whether it belongs to an agent's main conversation.
    pub const fn is_main(&self) -> bool {
        matches!(self.took, TakenTurn::Turn(_) | TakenTurn::Past)
    }

    /// Whether it begins a conversation, or begins it again: nothing was done in it yet.
    pub const fn is_first(&self) -> bool {
        self.is_main() && self.tool_results.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenTurn {
    Turn(usize),
    /// The answer for requests after the script's end.
    Past,
    /// Nothing: a title, a classification, a probe.
    Side,
    /// Nothing: a token count, a list of models, or a question that no model answers.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    Open,
    /// It was answered to the end, be it with an error.
    Answered,
    Broken,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
    /// That of Gemini, in another message: what Gemini CLI speaks with a Google account.
    CodeAssist,
    Other,
}
