//! Maps the messages of an ACP agent to our events.

use std::collections::VecDeque;

use refrain_core::agent::{AgentEvent, Fault, FaultKind, Scope, Session, Speaker, Tokens, Usd};
use serde::Deserialize;
use serde_json::Value;

use super::wire::{
    InitializeResult, NewSession, Notification, PlanEntry, PromptResult, StopReason, ToolCall, ToolStatus,
    Update, UpdateKind, Usage,
};
use crate::message::Message;
use crate::summarize;

/// How many tool calls are remembered: an update of an older one is taken for a new call.
const REMEMBERED: usize = 256;
/// How much of a tool's output is kept while it runs.
const OUTPUT: usize = 64 << 10;

type OutputSink<'a> = &'a mut dyn FnMut(AgentEvent);

#[derive(Debug, Default)]
pub(super) struct Map {
    session: Session,
    is_introduced: bool,
    /// The prompt was sent: earlier messages are no answer to it.
    has_begun: bool,
    /// It reports only the usage of the last model call as that of the prompt.
    is_miscounting: bool,
    message: Message,
    message_id: Option<String>,
    calls: VecDeque<Call>,
}

/// A tool call as far as it is known.
#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    about: String,
    output: String,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Announced: its subject follows with the next update.
    Held,
    Told,
    Done,
}

impl Map {
    pub(super) fn introduce(&mut self, initialized: InitializeResult) {
        self.is_introduced = true;
        let Some(info) = initialized.agent_info else { return };
        // Seen: 1300 in and 7 out reported for three calls of 3400 and 77. Its cost covers all of them.
        self.is_miscounting = info.name == "OpenCode";
        self.session.version = info.version;
    }

    pub(super) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    pub(super) fn use_model(&mut self, model: &str, say: OutputSink<'_>) {
        self.session.model = Some(model.to_owned());
        say(AgentEvent::Session(self.session.clone()));
    }

    pub(super) fn open(&mut self, new: &NewSession, say: OutputSink<'_>) {
        let of_options = || {
            let mut options = new.config_options.iter().flatten();
            options.find(|option| option.category.as_deref() == Some("model"))?.current_value.clone()
        };
        let model =
            new.models.as_ref().and_then(|models| models.current_model_id.clone()).or_else(of_options);
        self.session.id = Some(new.session_id.clone());
        self.session.model = model;
        say(AgentEvent::Session(self.session.clone()));
    }

    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    pub(super) fn hear(&mut self, params: &Value, say: OutputSink<'_>) {
        let heard = Notification::deserialize(params).and_then(|notification| {
            let update = Update::deserialize(&notification.update)?;
            Ok((update, ToolCall::deserialize(&notification.update)?))
        });
        let Ok((update, tool)) = heard else { return say(AgentEvent::Unknown) };
        match update.kind {
            UpdateKind::AgentMessageChunk => self.text(update, say),
            UpdateKind::AgentThoughtChunk => match update.content.and_then(|block| block.text) {
                Some(text) => say(AgentEvent::Thought(text)),
                None => say(AgentEvent::Unknown),
            },
            UpdateKind::ToolCall | UpdateKind::ToolCallUpdate => self.tool(tool, say),
            UpdateKind::Plan => match update.entries {
                Some(entries) => say(AgentEvent::Notice(plan(&entries))),
                None => say(AgentEvent::Unknown),
            },
            UpdateKind::UsageUpdate => {
                // Zero is no amount: OpenCode reports it for a cancelled turn.
                if let Some(cost) = update.cost.filter(|cost| cost.currency == "USD" && cost.amount > 0.0) {
                    // Over the whole session, which is this attempt's own.
                    say(AgentEvent::Cost { of: Scope::Attempt, usd: Usd::from(cost.amount) });
                }
            }
            UpdateKind::UserMessageChunk
            | UpdateKind::AvailableCommandsUpdate
            | UpdateKind::CurrentModeUpdate
            | UpdateKind::ConfigOptionUpdate
            | UpdateKind::SessionInfoUpdate => {}
            UpdateKind::Unknown => say(AgentEvent::Unknown),
        }
    }

    fn text(&mut self, update: Update, say: OutputSink<'_>) {
        let Some(text) = update.content.and_then(|block| block.text) else { return say(AgentEvent::Unknown) };
        if text.is_empty() {
            return;
        }
        if !self.has_begun {
            return say(AgentEvent::Notice(summarize::line(&text)));
        }
        let continues = self.message.is_empty() || self.message_id == update.message_id;
        let text = if continues { text } else { format!("\n{text}") };
        self.message.push(&text);
        self.message_id = update.message_id;
        say(AgentEvent::Text { text, part: true, by: Speaker::Agent });
    }

    /// A tool call, or an update of one. Agents announce a call before they know its subject, so the second message
    /// of it counts; some send only one.
    pub(super) fn tool(&mut self, tool: ToolCall, say: OutputSink<'_>) {
        let Some(id) = tool.tool_call_id.as_deref() else { return say(AgentEvent::Unknown) };
        let (at, is_new) = match self.calls.iter().position(|call| call.id == id) {
            Some(at) => (at, false),
            None => {
                self.message.clear();
                self.calls.truncate(REMEMBERED - 1);
                self.calls.push_front(Call::new(id, &tool));
                (0, true)
            }
        };
        let call = &mut self.calls[at];
        let status = tool.status;
        call.learn(tool);
        let is_announced = is_new && matches!(status, None | Some(ToolStatus::Pending));
        if call.stage == Stage::Held && !is_announced {
            call.stage = Stage::Told;
            let (name, about) = (call.name.clone(), call.about.clone());
            say(AgentEvent::ToolCall { name, about, by: Speaker::Agent });
        }
        let ok = match status {
            Some(ToolStatus::Completed) => true,
            Some(ToolStatus::Failed) => false,
            None | Some(ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Unknown) => return,
        };
        if call.stage != Stage::Done {
            call.stage = Stage::Done;
            let output = summarize::output(&std::mem::take(&mut call.output));
            say(AgentEvent::ToolResult { ok: Some(ok), output });
        }
    }

    /// The prompt is answered. Returns whether it ended normally.
    pub(super) fn end(&mut self, prompted: &PromptResult, say: OutputSink<'_>) -> bool {
        if let Some(tokens) = used(prompted).filter(|_| !self.is_miscounting) {
            say(AgentEvent::Tokens { of: Scope::Attempt, tokens });
        }
        let (kind, message) = match prompted.stop_reason {
            StopReason::EndTurn => {
                self.message.say_final(say);
                return true;
            }
            StopReason::MaxTokens => {
                (FaultKind::OutputLimit, "the agent's answer was cut at its limit of tokens")
            }
            StopReason::MaxTurnRequests => {
                (FaultKind::Turns, "the agent made as many requests as it may in a turn")
            }
            StopReason::Refusal => (FaultKind::Refused, "the agent refused to go on"),
            StopReason::Cancelled => (FaultKind::Aborted, "the agent was interrupted"),
            StopReason::Unknown => {
                (FaultKind::Other, "the agent stopped for a reason that is not known here")
            }
        };
        say(AgentEvent::Fault(Fault { kind, message: message.to_owned(), until: None }));
        say(AgentEvent::Final { ok: false, message: None });
        false
    }
}

impl Call {
    fn new(id: &str, tool: &ToolCall) -> Self {
        // The protocol has no tool names. If an agent adds one, it is used; else the kind of the tool.
        let of_meta = || tool.meta.pointer("/claudeCode/toolName")?.as_str();
        let kind = tool.kind.as_deref().filter(|kind| *kind != "other");
        let name = tool.name.as_deref().or_else(of_meta).or(kind).or(tool.title.as_deref());
        Self {
            id: id.to_owned(),
            name: name.unwrap_or("tool").to_owned(),
            about: String::new(),
            output: String::new(),
            stage: Stage::Held,
        }
    }

    fn learn(&mut self, tool: ToolCall) {
        let of_input = tool.raw_input.as_ref().map(|input| summarize::about(&Value::Object(input.clone())));
        let of_title = || tool.title.as_deref().map(summarize::line);
        let of_location = || Some(summarize::line(&tool.locations.as_ref()?.first()?.path));
        if let Some(about) = of_input.filter(|about| !about.is_empty()).or_else(of_title).or_else(of_location)
        {
            self.about = about;
        }
        let delta = tool.meta.pointer("/terminal_output_delta/data").and_then(Value::as_str);
        // New content replaces earlier content, even if it is empty.
        if let Some(output) = said_raw(&tool.raw_output).or_else(|| tool.content.as_deref().map(said)) {
            self.output = output;
        }
        if let Some(delta) = delta.filter(|delta| self.output.len() + delta.len() <= OUTPUT) {
            self.output.push_str(delta);
        }
    }
}

fn said_raw(output: &Value) -> Option<String> {
    let keys = ["output", "formatted_output", "stdout"];
    let text = output.as_str().or_else(|| keys.iter().find_map(|key| output.get(key)?.as_str()))?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn said(content: &[Value]) -> String {
    let texts = content.iter().filter_map(|item| item.pointer("/content/text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The plan's progress, in one line.
fn plan(entries: &[PlanEntry]) -> String {
    let of = |status: &'static str| entries.iter().filter(move |entry| entry.status == status);
    let counts = format!("plan: {} of {} done", of("completed").count(), entries.len());
    match of("in_progress").chain(of("pending")).next() {
        Some(entry) => summarize::line(&format!("{counts}, now: {}", entry.content)),
        None => counts,
    }
}

/// The usage of the prompt, which is that of the whole attempt.
fn used(prompted: &PromptResult) -> Option<Tokens> {
    let of_meta = || {
        let count = prompted.meta.pointer("/quota/token_count")?;
        let number = |name| count.get(name).and_then(Value::as_u64);
        Some(Tokens { input: number("input_tokens"), cached_input: None, output: number("output_tokens") })
    };
    prompted
        .usage
        .as_ref()
        .map(tokens)
        .or_else(of_meta)
        // Zeros are no count: a model that was asked has used tokens.
        .filter(|tokens| tokens.input.unwrap_or(0) > 0 || tokens.output.unwrap_or(0) > 0)
}

/// Some agents include cached tokens in the input and reasoning in the output, some do not: the total shows which.
fn tokens(usage: &Usage) -> Tokens {
    let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
    let mut beside = usage.total_tokens.unwrap_or(0).saturating_sub(input.saturating_add(output));
    let mut part = |count: Option<u64>| {
        let count = count.filter(|count| *count <= beside).unwrap_or(0);
        beside -= count;
        count
    };
    let cached = usage.cached_read_tokens.unwrap_or(0).saturating_add(usage.cached_write_tokens.unwrap_or(0));
    let (cached, thought) = (part(Some(cached)), part(usage.thought_tokens));
    Tokens {
        input: usage.input_tokens.map(|input| input.saturating_add(cached)),
        cached_input: usage.cached_read_tokens,
        output: usage.output_tokens.map(|output| output.saturating_add(thought)),
    }
}
