//! What agents say, in any dialect: one vocabulary of events, and what a whole attempt's events come to. An adapter
//! maps a program's own stream to it; the loop decides what follows.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serde_default::is_default;
use crate::spec::Millis;
use crate::text::{clip, printable, squeeze};

/// How much of a tool's name is kept, in bytes.
const LONGEST_NAME: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
pub enum AgentEvent {
    /// It works in this session, with these properties. If sent again, the new values count.
    Session(Session),
    Text {
        text: String,
        /// It is a part of a text: what comes next continues it, on the same line.
        part: bool,
        by: Speaker,
    },
    /// It thought aloud. Shown, never scanned.
    Thought(String),
    ToolCall {
        name: String,
        /// The tool's input, in one line: a command, a path.
        about: String,
        by: Speaker,
    },
    ToolResult {
        /// Whether it worked; none if the agent does not say.
        ok: Option<bool>,
        /// The output, cut to some lines.
        output: String,
    },
    /// Tokens used so far: replaces the earlier number of the same scope.
    Tokens {
        of: Scope,
        tokens: Tokens,
    },
    /// Money spent so far: replaces the earlier amount of the same scope.
    Cost {
        of: Scope,
        usd: Usd,
    },
    Retry(Fault),
    /// Something went wrong that ends the attempt, if it ends. The last one counts, unless the agent continued
    /// afterwards: an adapter withdraws nothing, and reports only what is final.
    Fault(Fault),
    /// Something worth a line on the screen, and nothing else.
    Notice(String),
    /// Its final message is too long to be kept: its claim is unknown.
    TooLong,
    /// Its last word: the run is over, by its own account.
    Final {
        /// Whether it came to an end as it should.
        ok: bool,
        /// The final message, the only text in which a claim counts.
        message: Option<String>,
    },
    /// Something that this adapter does not know: tolerated, and counted.
    Unknown,
}

impl AgentEvent {
    /// Whether the model answered or a tool ran: a retry before that succeeded.
    pub fn is_progress(&self) -> bool {
        // Usage is none: it is also part of the report of a run that was interrupted.
        let has_ended = matches!(self, Self::Final { ok: true, .. });
        let is_of_tool = matches!(self, Self::ToolCall { .. } | Self::ToolResult { .. });
        has_ended || is_of_tool || matches!(self, Self::Text { .. } | Self::Thought(_))
    }

    /// The same, with `clean` done to all that it shows.
    #[must_use]
    pub fn cleaned(mut self, clean: &dyn Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Text { text, .. } | Self::Thought(text) | Self::Notice(text) => *text = clean(text),
            Self::ToolCall { name, about, .. } => (*name, *about) = (clean(name), clean(about)),
            Self::ToolResult { output, .. } => *output = clean(output),
            Self::Retry(fault) | Self::Fault(fault) => fault.message = clean(&fault.message),
            Self::Final { message, .. } => *message = message.as_deref().map(clean),
            Self::Session(_) | Self::Tokens { .. } | Self::Cost { .. } | Self::TooLong | Self::Unknown => {}
        }
        self
    }
}

/// What an agent says of itself.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The session's id.
    pub id: Option<String>,
    /// The model that it uses.
    pub model: Option<String>,
    /// The program's version.
    pub version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    Agent,
    /// An agent that it started for a part of the work. Never scanned for a claim.
    SubAgent,
}

/// What a total is counted over (agent-clis.md, trap 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// This attempt alone.
    Attempt,
    /// The whole session: if it was resumed, what was used before is in it.
    Session,
}

/// Tokens. Unknown is none, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// In, cached ones (read and written) included.
    pub input: Option<u64>,
    /// Of those, the ones read from a cache.
    pub cached_input: Option<u64>,
    /// Out, reasoning included.
    pub output: Option<u64>,
}

/// Money, in billionths of a US dollar: sums are exact. In JSON a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Usd(pub u64);

impl Usd {
    #[must_use]
    pub fn plus(self, Self(more): Self) -> Self {
        Self(self.0.saturating_add(more))
    }

    /// What follows a sum of which so much is assumed.
    pub fn assumed_part(self) -> String {
        match self {
            Self(0) => String::new(),
            part => format!(" ({part} of it assumed for agents that did not report their cost)"),
        }
    }
}

impl From<f64> for Usd {
    /// An invalid amount (negative, not a number) is none.
    fn from(dollars: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, as it should"
        )]
        Self((dollars * 1e9).round() as u64)
    }
}

impl From<Usd> for f64 {
    fn from(Usd(billionths): Usd) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "amounts beyond nine million dollars may be off by less than a cent"
        )]
        let dollars = billionths as f64 / 1e9;
        dollars
    }
}

impl fmt::Display for Usd {
    /// In words: `$0.42`, and four digits if two would hide it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = f64::from(*self);
        if self.0 > 0 && dollars < 0.1 { write!(f, "${dollars:.4}") } else { write!(f, "${dollars:.2}") }
    }
}

/// The usage of one attempt, or of many together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tokens: Tokens,
    pub cost: Option<Usd>,
    /// More tokens were used than are counted: an agent was cut off before it said how many, or never said.
    pub at_least: bool,
    /// More money was spent than is counted, likewise.
    pub cost_at_least: bool,
}

impl Usage {
    /// The usage of a started run. Anything that it did not report makes every sum that includes it incomplete: this is
    /// the one place that decides it. `is_whole` if its program came to its own end.
    pub fn of_run(tokens: Option<Tokens>, cost: Option<Usd>, is_whole: bool) -> Self {
        let tokens = tokens.unwrap_or_default();
        let has_tokens = tokens.input.is_some() || tokens.output.is_some();
        let (at_least, cost_at_least) = (!is_whole || !has_tokens, !is_whole || cost.is_none());
        Self { tokens, cost, at_least, cost_at_least }
    }
}

impl Tokens {
    /// The tokens that count against a cap: all in and all out.
    pub fn counted(self) -> u64 {
        self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0))
    }

    fn combine(self, other: Self, how: impl Fn(u64, u64) -> u64 + Copy) -> Self {
        Self {
            input: either(self.input, other.input, how),
            cached_input: either(self.cached_input, other.cached_input, how),
            output: either(self.output, other.output, how),
        }
    }

    /// The usage in this and not in `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.combine(before, u64::saturating_sub)
    }
}

fn either(a: Option<u64>, b: Option<u64>, how: impl Fn(u64, u64) -> u64) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(how(a, b)),
        (known, None) | (None, known) => known,
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.combine(other.tokens, u64::saturating_add),
            cost: either(self.cost.map(|usd| usd.0), other.cost.map(|usd| usd.0), u64::saturating_add)
                .map(Usd),
            at_least: self.at_least || other.at_least,
            cost_at_least: self.cost_at_least || other.cost_at_least,
        }
    }
}

/// What went wrong with an attempt, by the channel and the code that the agent's program reported it on; what its model
/// wrote never matters (design.md, "Errors are classified").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Which kind.
    pub kind: FaultKind,
    /// What the program said, for people: one line.
    pub message: String,
    /// When to try again, as far as the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// At this time.
    At(Timestamp),
    /// So long after it was said.
    After(Millis),
}

/// The kinds of faults: closed, as the loop answers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The plan's or the account's limit is used up: waits until it is reset.
    Limit,
    /// Too many requests at once (429 without a plan's limit): backs off.
    RateLimit,
    /// The provider is overloaded or broken: 5xx, 529, no capacity. Backs off.
    Overloaded,
    /// The connection was refused, reset, cut or timed out. Backs off.
    Connection,
    /// Another run of the same program had what this one needed of the user's home. Backs off.
    Busy,
    /// Not logged in: 401, no key. Needs a person.
    Login,
    /// The provider, or a proxy on the way there, refuses it: 403. Needs a person.
    Forbidden,
    /// There is no money left at the provider. Needs a person.
    Credit,
    /// There is no such model. Needs a person.
    Model,
    /// The program refused its command line or configuration, or asks for trust. Needs a person.
    Setup,
    /// The session that was to be resumed does not exist. Needs a person: the id is the person's.
    Session,
    /// The conversation no longer fits into the model. The work's own.
    Context,
    /// The answer was cut at the model's output limit. The work's own.
    OutputLimit,
    /// The provider refused what was asked: a filter, a bad request. The work's own.
    Refused,
    /// The agent's own limit of turns. The work's own.
    Turns,
    /// The agent's own budget, which Refrain gave it.
    Budget,
    /// The run was interrupted.
    Aborted,
    /// Anything else that the program calls an error. The work's own.
    Other,
}

/// What a whole attempt's events come to: all that the journal keeps of a stream.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReport {
    /// What the agent said of itself.
    #[serde(default)]
    pub session: Session,
    /// Its tokens, and what they are counted over.
    pub tokens: Option<(Scope, Tokens)>,
    /// Its cost, and what it is counted over.
    pub cost: Option<(Scope, Usd)>,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// Whether it said that it is over; without that it was cut off.
    #[serde(default)]
    pub is_final: bool,
    /// Whether it was told to go on with a session of before: what that used is in the session's totals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The tool that it used last, where it was cut off: what it was at when it had to be stopped.
    pub last_tool: Option<String>,
    /// Who pays for it, as far as that can be told from what it was started with.
    pub pool: Option<String>,
    /// How many things it said that this version does not know.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown: u64,
    /// Its program ended before it printed a single event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_events: bool,
    /// What its provider failed it with, while its program waits to try again: nothing has followed that notice so far.
    #[serde(skip)]
    #[serde_with(skip_apply)]
    pub retrying: Option<Fault>,
}

impl AgentReport {
    pub fn hear(&mut self, event: &AgentEvent) {
        if event.is_progress() {
            self.retrying = None;
        }
        match event {
            AgentEvent::Session(session) => {
                let Session { id, model, version } = session;
                let mine = &mut self.session;
                mine.id = id.clone().or(mine.id.take());
                mine.model = model.clone().or(mine.model.take());
                mine.version = version.clone().or(mine.version.take());
            }
            AgentEvent::Tokens { of, tokens } => self.tokens = Some((*of, *tokens)),
            AgentEvent::Cost { of, usd } => self.cost = Some((*of, *usd)),
            // A program that is ended while it waits for its provider says only that it was interrupted.
            AgentEvent::Fault(fault) if fault.kind == FaultKind::Aborted && self.retrying.is_some() => {
                self.fault.clone_from(&self.retrying);
            }
            AgentEvent::Fault(fault) => self.fault = Some(fault.clone()),
            AgentEvent::Retry(fault) => self.retrying = Some(fault.clone()),
            AgentEvent::Final { ok, .. } => {
                self.is_final = true;
                self.last_tool = None;
                if *ok {
                    self.fault = None;
                }
            }
            AgentEvent::ToolCall { name, .. } => {
                self.last_tool = Some(clip(&squeeze(&printable(name)), LONGEST_NAME).into_owned());
            }
            AgentEvent::Unknown => self.unknown += 1,
            AgentEvent::Text { .. }
            | AgentEvent::Thought(_)
            | AgentEvent::ToolResult { .. }
            | AgentEvent::Notice(_)
            | AgentEvent::TooLong => {}
        }
    }
}
