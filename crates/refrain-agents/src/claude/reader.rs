use refrain_core::agent::{AgentEvent, FaultKind, Scope, Session, Speaker, Usd};
use refrain_core::event::Exit;

use super::faults;
use super::launch::Format;
use super::usage::Meter;
use super::wire::{ApiError, Assistant, Block, Event, Outcome, RateLimit, Raw, StreamEvent, System, User};
use crate::adapter::StreamDecoder;
use crate::provider_error::{End, fault, of_denial};
use crate::summarize::{self, about, text_of};
use crate::wire::{EventSink, event};

/// How much of a final message is kept if it is all of standard output: as much as is ever scanned for a claim, from
/// its end, where a claim is.
const LONGEST_TEXT: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Reader {
    format: Format,
    is_live: bool,
    meter: Meter,
    /// The message of raw events, if they do not name it themselves.
    message: Option<String>,
    has_session: bool,
    /// The model produced text. Without that, a success is not the agent's.
    has_spoken: bool,
    /// The last result, and whether it was a success.
    ended: Option<bool>,
    /// An error of the API that the main agent ran into; cleared when it continues.
    error: Option<ApiError>,
    /// The plan's limit, while it is used up.
    limit: Option<RateLimit>,
    /// All of standard output, if it is the message.
    text: String,
}

impl Reader {
    pub(super) fn new(format: Format, is_live: bool) -> Self {
        Self {
            format,
            is_live,
            meter: Meter::default(),
            message: None,
            has_session: false,
            has_spoken: false,
            ended: None,
            error: None,
            limit: None,
            text: String::new(),
        }
    }

    fn event(&mut self, event: Event, say: EventSink<'_>) {
        match event {
            Event::System(system) => self.system(system, say),
            Event::Assistant(assistant) => self.assistant(assistant, say),
            Event::User(user) => hear_user(user, say),
            Event::Stream(raw) => self.raw(raw, say),
            Event::RateLimit { rate_limit_info } => self.rate_limit(rate_limit_info, say),
            Event::Result(outcome) => self.outcome(&outcome, say),
            Event::ControlResponse => {}
            Event::Unknown => say(AgentEvent::Unknown),
        }
    }

    fn system(&mut self, system: System, say: EventSink<'_>) {
        match system {
            System::Init { session_id, model, claude_code_version, plugin_errors } => {
                self.has_session |= session_id.is_some();
                say(AgentEvent::Session(Session { id: session_id, model, version: claude_code_version }));
                for error in plugin_errors.into_iter().flatten() {
                    say(AgentEvent::Notice(summarize::line(&format!("plugin error: {}", about(&error)))));
                }
            }
            System::ApiRetry { retry_delay_ms, error_status, error } => {
                say(AgentEvent::Retry(faults::of_retry(error_status, error.as_deref(), retry_delay_ms)));
            }
            System::ModelFallback { fallback_model, content } => {
                say(AgentEvent::Session(Session { model: fallback_model, ..Session::default() }));
                notice(content, say);
            }
            System::PermissionDenied { message } => notice(message, say),
            System::Informational { content } => notice(content, say),
            System::Notification { text } => notice(text, say),
            System::CompactBoundary => say(AgentEvent::Notice("the conversation was compacted".to_owned())),
            System::Status
            | System::ThinkingTokens
            | System::HookStarted
            | System::HookResponse
            | System::TaskStarted
            | System::TaskUpdated
            | System::TaskNotification
            | System::BackgroundTasksChanged => {}
            System::Unknown => say(AgentEvent::Unknown),
        }
    }

    fn assistant(&mut self, assistant: Assistant, say: EventSink<'_>) {
        let Assistant { message, parent_tool_use_id, is_api_error_message, error } = assistant;
        let by = if parent_tool_use_id.is_some() { Speaker::SubAgent } else { Speaker::Agent };
        if is_api_error_message == Some(true) || error.error.is_some() {
            // The text is the program's, not the model's, and its usage does not count.
            notice(Some(text_of(&message.content)), say);
            if by == Speaker::Agent {
                self.error = Some(error);
            }
            return;
        }
        self.has_spoken = true;
        if by == Speaker::Agent {
            self.error = None;
        }
        for block in blocks(&message.content) {
            match block {
                Block::Text { text } => say(AgentEvent::Text { text, part: false, by }),
                Block::Thinking { thinking } => say(AgentEvent::Thought(thinking)),
                Block::ToolUse { name, input } => {
                    say(AgentEvent::ToolCall { name, about: about(&input), by })
                }
                Block::ToolResult { .. } | Block::Other => {}
            }
        }
        if let (Some(id), Some(usage)) = (message.id, message.usage) {
            self.meter.message(&id, usage);
            self.say_tokens(say);
        }
    }

    /// Raw events only contribute usage: their text is repeated in whole messages.
    fn raw(&mut self, StreamEvent { event, api_message_id }: StreamEvent, say: EventSink<'_>) {
        let usage = match event {
            Raw::MessageStart { message } => {
                self.message = message.id;
                message.usage
            }
            Raw::MessageDelta { usage } => usage,
            Raw::Other => return,
        };
        if let (Some(id), Some(usage)) = (api_message_id.as_ref().or(self.message.as_ref()), usage) {
            self.meter.message(id, usage);
            self.say_tokens(say);
        }
    }

    fn rate_limit(&mut self, info: RateLimit, say: EventSink<'_>) {
        match info.status.as_deref() {
            Some("rejected") => self.limit = Some(info),
            Some("allowed_warning") => {
                say(AgentEvent::Notice("the plan's limit is nearly used up".to_owned()));
                self.limit = None;
            }
            Some(_) | None => self.limit = None,
        }
    }

    fn outcome(&mut self, outcome: &Outcome, say: EventSink<'_>) {
        if !self.has_session && outcome.session_id.is_some() {
            self.has_session = true;
            say(AgentEvent::Session(Session { id: outcome.session_id.clone(), ..Session::default() }));
        }
        self.meter.result(outcome);
        self.say_tokens(say);
        // An invalid amount is skipped: taken for 0, it would never reach a cap.
        let of_session = outcome.total_cost_usd.filter(|dollars| *dollars >= 0.0).map(Usd::from);
        let cost = self.meter.cost().map(|usd| (Scope::Attempt, usd));
        if let Some((of, usd)) = cost.or(of_session.map(|usd| (Scope::Session, usd))) {
            say(AgentEvent::Cost { of, usd });
        }
        let is_success = outcome.subtype.as_deref() == Some("success") && outcome.is_error != Some(true);
        // A command with a failing preamble, or a prompt that a hook blocks: no model was asked, and the text is the
        // program's.
        let is_idle = outcome.num_turns == Some(0) && !self.has_spoken;
        let ok = is_success && !is_idle;
        if is_success && is_idle {
            let message = outcome.result.as_deref().filter(|text| !text.is_empty());
            say(AgentEvent::Fault(fault(FaultKind::Other, message.unwrap_or("the model was not asked"))));
        } else if !ok {
            say(AgentEvent::Fault(faults::of_result(outcome, self.error.as_ref(), self.limit.as_ref())));
        }
        self.ended = Some(ok);
        self.error = None;
        say(AgentEvent::Final { ok, message: outcome.result.clone().filter(|_| ok) });
    }

    fn say_tokens(&self, say: EventSink<'_>) {
        if let Some(tokens) = self.meter.tokens() {
            say(AgentEvent::Tokens { of: Scope::Attempt, tokens });
        }
    }

    fn text_line(&mut self, line: &[u8], say: EventSink<'_>) {
        let line = String::from_utf8_lossy(line);
        say(AgentEvent::Text { text: format!("{line}\n"), part: true, by: Speaker::Agent });
        self.text.push_str(&line);
        self.text.push('\n');
        if self.text.len() > 2 * LONGEST_TEXT {
            let cut = self.text.ceil_char_boundary(self.text.len() - LONGEST_TEXT);
            self.text.drain(..cut);
        }
    }

    /// No result came: evaluates the exit and standard error.
    fn unfinished(&self, exit: Exit, stderr: &str) -> Option<AgentEvent> {
        let end = End::of(exit);
        if end == End::Unseen {
            return None;
        }
        let known = faults::of_stderr(stderr)
            .or_else(|| self.limit.as_ref().map(faults::of_limit))
            .or_else(|| self.error.as_ref().map(faults::of_message));
        // Interrupted before the first byte of an answer it exits with 0, without output.
        Some(AgentEvent::Fault(known.unwrap_or_else(|| end.without_result(stderr))))
    }
}

impl StreamDecoder for Reader {
    fn is_live(&self) -> bool {
        self.is_live
    }

    fn line(&mut self, line: &[u8], say: EventSink<'_>) {
        if self.format == Format::Text {
            return self.text_line(line, say);
        }
        // `--output-format json --verbose` prints all events as one list.
        if line.trim_ascii_start().starts_with(b"[") {
            let events = event::<Vec<serde_json::Value>>(line, say);
            for value in events.into_iter().flatten() {
                match serde_json::from_value(value) {
                    Ok(event) => self.event(event, say),
                    Err(_) => say(AgentEvent::Unknown),
                }
            }
        } else if let Some(event) = event(line, say) {
            self.event(event, say);
        }
    }

    fn conclude(&mut self, exit: Exit, stderr: &str, say: EventSink<'_>) {
        match (self.format, self.ended, exit) {
            (Format::Text, _, Exit::Code(0)) => {
                let message = Some(std::mem::take(&mut self.text));
                say(AgentEvent::Final { ok: true, message });
            }
            (Format::Json, Some(false), _) => {}
            (Format::Json, Some(true), exit) => {
                of_denial(exit).map(AgentEvent::Fault).into_iter().for_each(say);
            }
            (Format::Text, _, _) | (Format::Json, None, _) => {
                self.unfinished(exit, stderr).into_iter().for_each(say);
            }
        }
    }
}

fn hear_user(user: User, say: EventSink<'_>) {
    for block in blocks(&user.message.content) {
        match block {
            Block::ToolResult { content, is_error } => {
                // If omitted, it is no error.
                let ok = Some(is_error != Some(true));
                say(AgentEvent::ToolResult { ok, output: summarize::output(&text_of(&content)) });
            }
            // Text of the program for the model: a hook's feedback, a reminder.
            Block::Text { text } if user.is_synthetic == Some(true) => notice(Some(text), say),
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolUse { .. } | Block::Other => {}
        }
    }
}

fn blocks(content: &serde_json::Value) -> impl Iterator<Item = Block> {
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| serde::Deserialize::deserialize(block).ok())
}

fn notice(text: Option<String>, say: EventSink<'_>) {
    let line = summarize::line(&text.unwrap_or_default());
    if !line.is_empty() {
        say(AgentEvent::Notice(line));
    }
}
