//! The script: the model's answers, turn by turn.

use serde_json::Value;

use super::request::Request;

/// The turns of one conversation, in order. Each request of an agent's main conversation takes one; side requests
/// (titles, classifiers, token counts) take none.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) turns: Vec<Turn>,
    past: AfterLastTurn,
}

/// The answer to requests after the last turn.
#[derive(Clone, Debug)]
enum AfterLastTurn {
    Same(Box<Turn>),
    ByRequest(fn(&Request) -> Turn),
}

impl Script {
    /// These turns; a later request gets the error that the script has ended.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            turns: turns.into_iter().collect(),
            past: AfterLastTurn::Same(Turn::say("The script has ended.").into()),
        }
    }

    /// No turns of its own: the answer depends on the request. For several clients that ask at once, in any order.
    #[must_use]
    pub const fn by_request(answer: fn(&Request) -> Turn) -> Self {
        Self { turns: Vec::new(), past: AfterLastTurn::ByRequest(answer) }
    }

    /// Sets the answer to every request after the last turn.
    #[must_use]
    pub fn then(mut self, turn: Turn) -> Self {
        self.past = AfterLastTurn::Same(turn.into());
        self
    }

    /// The answer to this request, which comes after the last turn.
    pub(super) fn past(&self, request: &Request) -> Turn {
        match &self.past {
            AfterLastTurn::Same(turn) => (**turn).clone(),
            AfterLastTurn::ByRequest(answer) => answer(request),
        }
    }

    /// The turn that the nth request takes, by its place in the script; `None` is past the last.
    pub(super) fn at(&self, nth: usize) -> Option<(usize, &Turn)> {
        let mut end = 0;
        self.turns.iter().enumerate().find(|(_, turn)| {
            end = turn.times.saturating_add(end);
            nth < end
        })
    }
}

/// One answer of the model, or its failure to give one.
#[derive(Clone, Debug)]
#[must_use = "a turn does nothing outside a script"]
pub struct Turn {
    pub(super) act: Act,
    pub(super) times: usize,
    pub(super) is_held: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Answer(ModelReply),
    Refuse(Refusal),
    Hang,
    Reset,
}

/// The text and the tool calls of the model.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelReply {
    pub(super) text: String,
    pub(super) thoughts: String,
    pub(super) actions: Vec<Action>,
    pub(super) usage: Usage,
    pub(super) stop: Stop,
    pub(super) cut: Option<StreamBreak>,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Bash(String),
    Write { path: String, content: String },
    Tool { name: String, arguments: Value },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stop {
    #[default]
    Done,
    OutputLimit,
    Refusal,
}

/// How a stream breaks off, a few events after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamBreak {
    Hang,
    Reset,
    End,
}

/// An error answer, as each protocol puts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    RateLimit { retry_after: u64 },
    UsageLimit { resets_in: u64 },
    Overloaded,
    ServerError,
    Auth,
    Forbidden,
    NoSuchModel,
    ContextOverflow,
    NoCredit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1000, output: 50, cached: 0 }
    }
}

impl Turn {
    const fn new(act: Act) -> Self {
        Self { act, times: 1, is_held: false }
    }

    fn act(action: Action) -> Self {
        Self::new(Act::Answer(ModelReply { actions: vec![action], ..ModelReply::default() }))
    }

    /// Sends text, and ends the turn if it calls no tool.
    pub fn say(text: impl Into<String>) -> Self {
        Self::new(Act::Answer(ModelReply { text: text.into(), ..ModelReply::default() }))
    }

    /// Runs a shell command with the tool that the agent has for it.
    pub fn bash(command: impl Into<String>) -> Self {
        Self::act(Action::Bash(command.into()))
    }

    /// Writes a file with the tool that the agent has for it. A relative path is one in the agent's folder.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::act(Action::Write { path: path.into(), content: content.into() })
    }

    /// Calls a tool by its own name.
    pub fn tool(name: impl Into<String>, arguments: Value) -> Self {
        Self::act(Action::Tool { name: name.into(), arguments })
    }

    /// Calls the tools of another turn too.
    pub fn and(mut self, other: Self) -> Self {
        let Act::Answer(other) = other.act else { panic!("only an answer can be added to an answer") };
        let answer = self.answer();
        answer.actions.extend(other.actions);
        answer.text.push_str(&other.text);
        self
    }

    /// Sends this text before the tool calls.
    pub fn and_say(mut self, text: impl Into<String>) -> Self {
        self.answer().text = text.into();
        self
    }

    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.answer().thoughts = text.into();
        self
    }

    /// Reports these tokens.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.answer().usage = usage;
        self
    }

    /// Ends at the output limit instead of being done.
    pub fn at_output_limit(mut self) -> Self {
        self.answer().stop = Stop::OutputLimit;
        self
    }

    /// Ends as a refusal on grounds of content.
    pub fn as_refusal(mut self) -> Self {
        self.answer().stop = Stop::Refusal;
        self
    }

    /// Falls silent in the middle of its stream.
    pub fn then_hang(self) -> Self {
        self.cut(StreamBreak::Hang)
    }

    /// Resets the connection in the middle of its stream.
    pub fn then_reset(self) -> Self {
        self.cut(StreamBreak::Reset)
    }

    /// Ends its stream in the middle, as if that were its end.
    pub fn then_end(self) -> Self {
        self.cut(StreamBreak::End)
    }

    fn cut(mut self, cut: StreamBreak) -> Self {
        self.answer().cut = Some(cut);
        self
    }

    fn answer(&mut self) -> &mut ModelReply {
        let Act::Answer(answer) = &mut self.act else { panic!("a turn that fails answers nothing") };
        answer
    }

    /// Too many requests: come back in so many seconds.
    pub const fn rate_limit(retry_after: u64) -> Self {
        Self::new(Act::Refuse(Refusal::RateLimit { retry_after }))
    }

    /// The plan is used up, for so many seconds.
    pub const fn usage_limit(resets_in: u64) -> Self {
        Self::new(Act::Refuse(Refusal::UsageLimit { resets_in }))
    }

    /// Overloaded: 529, or 503 if the protocol has no 529.
    pub const fn overloaded() -> Self {
        Self::new(Act::Refuse(Refusal::Overloaded))
    }

    /// A failure of the server: 500.
    pub const fn server_error() -> Self {
        Self::new(Act::Refuse(Refusal::ServerError))
    }

    pub const fn auth() -> Self {
        Self::new(Act::Refuse(Refusal::Auth))
    }

    /// The key is good, and not for this.
    pub const fn forbidden() -> Self {
        Self::new(Act::Refuse(Refusal::Forbidden))
    }

    pub const fn no_such_model() -> Self {
        Self::new(Act::Refuse(Refusal::NoSuchModel))
    }

    /// The conversation is too long for the model.
    pub const fn context_overflow() -> Self {
        Self::new(Act::Refuse(Refusal::ContextOverflow))
    }

    /// The account has no money left.
    pub const fn no_credit() -> Self {
        Self::new(Act::Refuse(Refusal::NoCredit))
    }

    pub const fn hang() -> Self {
        Self::new(Act::Hang)
    }

    pub const fn reset() -> Self {
        Self::new(Act::Reset)
    }

    /// Repeats the turn so many times; [`usize::MAX`] is for ever.
    pub const fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Is given only once the test lets it pass: [`Model::let_one_pass`](super::Model::let_one_pass).
    pub const fn held(mut self) -> Self {
        self.is_held = true;
        self
    }
}
