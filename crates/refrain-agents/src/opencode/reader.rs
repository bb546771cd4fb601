use refrain_core::agent::{AgentEvent, Fault, FaultKind, Scope, Session, Speaker, Tokens, Usd};
use refrain_core::event::Exit;

use super::faults;
use super::wire::{Event, EventKind, Part, Reason, ToolState, ToolStatus, Usage};
use crate::adapter::StreamDecoder;
use crate::message::Message;
use crate::provider_error::fault;
use crate::summarize;
use crate::wire::{self, EventSink};

/// The start of the message with which OpenCode refuses a tool call when no user can be asked.
const REJECTED: &str = "The user rejected permission";

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The agent's own session: the first in the stream. Other sessions are sub-agents.
    session: Option<String>,
    message: Message,
    tokens: Option<Tokens>,
    cost: Option<Usd>,
    /// How the last model call ended; none while one runs.
    reason: Option<Reason>,
    /// A tool call of its last step was refused because no user could be asked.
    is_rejected: bool,
    /// An error that was the last event so far: OpenCode continues after some (it compacts and tries again).
    pending: Option<Fault>,
}

impl StreamDecoder for Reader {
    fn line(&mut self, line: &[u8], say: EventSink<'_>) {
        if let Some(event) = wire::event(line, say) {
            self.hear(event, say);
        }
    }

    fn conclude(&mut self, exit: Exit, stderr: &str, say: EventSink<'_>) {
        if let Some(fault) = self.pending.take() {
            say(AgentEvent::Fault(fault));
            // Non-zero exit is the agent's; a signal is external.
            if matches!(exit, Exit::Code(1..=127)) {
                say(AgentEvent::Final { ok: false, message: None });
            }
            return;
        }
        match (exit, self.reason) {
            (Exit::Code(0), Some(Reason::Stop)) => {
                self.message.say_final(say);
            }
            (Exit::Code(0), Some(reason)) => {
                say(AgentEvent::Fault(self.of_reason(reason)));
                say(AgentEvent::Final { ok: false, message: None });
            }
            _ => {
                let fault = faults::of_exit(exit, stderr, self.session.is_some());
                fault.into_iter().for_each(|fault| say(AgentEvent::Fault(fault)));
            }
        }
    }
}

impl Reader {
    fn hear(&mut self, event: Event, say: EventSink<'_>) {
        if event.kind == EventKind::Unknown {
            return say(AgentEvent::Unknown);
        }
        let by = self.speaker(event.session, say);
        if by == Speaker::Agent && event.kind != EventKind::Error {
            self.go_on(say);
        }
        match event.kind {
            EventKind::StepStart if by == Speaker::Agent => {
                self.message.clear();
                self.reason = None;
                self.is_rejected = false;
            }
            EventKind::StepStart | EventKind::Unknown => {}
            EventKind::Text => self.text(event.part, by, say),
            EventKind::Reasoning => say(AgentEvent::Thought(event.part.text.unwrap_or_default())),
            EventKind::ToolUse => self.tool(event.part, by, say),
            EventKind::StepFinish => self.finish(&event.part, by, say),
            EventKind::Error => match (event.error.as_ref().map(faults::of_error), by) {
                (None, _) => say(AgentEvent::Unknown),
                (Some(fault), Speaker::Agent) => self.pending = Some(fault),
                (Some(fault), Speaker::SubAgent) => say(AgentEvent::Notice(fault.message)),
            },
        }
    }

    fn speaker(&mut self, session: Option<String>, say: EventSink<'_>) -> Speaker {
        match (session, &self.session) {
            (Some(theirs), Some(own)) if theirs != *own => Speaker::SubAgent,
            (Some(first), None) => {
                say(AgentEvent::Session(Session { id: Some(first.clone()), ..Session::default() }));
                self.session = Some(first);
                Speaker::Agent
            }
            _ => Speaker::Agent,
        }
    }

    /// The run continued after an error.
    fn go_on(&mut self, say: EventSink<'_>) {
        if let Some(fault) = self.pending.take() {
            say(AgentEvent::Retry(fault));
        }
    }

    fn text(&mut self, part: Part, by: Speaker, say: EventSink<'_>) {
        let Some(text) = part.text.filter(|_| !part.synthetic) else { return };
        if by == Speaker::Agent {
            self.message.push_block(&text);
        }
        say(AgentEvent::Text { text, part: false, by });
    }

    fn tool(&mut self, part: Part, by: Speaker, say: EventSink<'_>) {
        let Some(state) = part.state else { return say(AgentEvent::Unknown) };
        if by == Speaker::Agent {
            self.message.clear();
            self.is_rejected |= state.error.as_deref().is_some_and(|error| error.starts_with(REJECTED));
        }
        let name = part.tool.unwrap_or_default();
        say(AgentEvent::ToolCall { name, about: summarize::about(&state.input), by });
        let ok = has_worked(&state);
        let output = state.error.or(state.output).unwrap_or_default();
        say(AgentEvent::ToolResult { ok, output: summarize::output(&output) });
    }

    fn finish(&mut self, part: &Part, by: Speaker, say: EventSink<'_>) {
        if by == Speaker::Agent {
            self.reason = Some(part.reason.unwrap_or(Reason::Unknown));
        }
        if let Some(usage) = &part.tokens {
            let tokens = add_usage(self.tokens.unwrap_or_default(), usage);
            self.tokens = Some(tokens);
            say(AgentEvent::Tokens { of: Scope::Attempt, tokens });
        }
        // A model without a price reports a cost of 0: unknown, not free.
        if let Some(more) = part.cost.filter(|cost| *cost > 0.0) {
            let usd = Usd(self.cost.unwrap_or_default().0.saturating_add(Usd::from(more).0));
            self.cost = Some(usd);
            say(AgentEvent::Cost { of: Scope::Attempt, usd });
        }
    }

    /// The fault of a run that ended after a model call that did not end the conversation.
    fn of_reason(&self, reason: Reason) -> Fault {
        let (kind, message) = match reason {
            Reason::ToolCalls if self.is_rejected => (
                FaultKind::Setup,
                "opencode asked for a permission, and no person was there to give it: allow it in its configuration, or give all \
                 with --permissions full",
            ),
            Reason::ToolCalls => (FaultKind::Other, "opencode ended in the middle of its tool calls"),
            Reason::Length => (FaultKind::OutputLimit, "the answer was cut at the model's output limit"),
            Reason::ContentFilter => (FaultKind::Refused, "the provider's filter cut the answer"),
            Reason::Unknown => (FaultKind::Connection, "the answer broke off"),
            Reason::Stop | Reason::Other => {
                (FaultKind::Other, "the answer ended for a reason of the provider's own")
            }
        };
        fault(kind, message)
    }
}

/// Whether a tool call succeeded; for a command, whether its exit code was 0.
fn has_worked(state: &ToolState) -> Option<bool> {
    match state.status {
        ToolStatus::Completed => {
            Some(state.metadata.get("exit").and_then(serde_json::Value::as_i64).is_none_or(|code| code == 0))
        }
        ToolStatus::Error => Some(false),
        ToolStatus::Unknown => None,
    }
}

/// The usage so far, plus one more model call.
pub(super) fn add_usage(so_far: Tokens, usage: &Usage) -> Tokens {
    Tokens {
        input: [usage.input, usage.cache.read, usage.cache.write].into_iter().fold(so_far.input, add),
        cached_input: add(so_far.cached_input, usage.cache.read),
        output: [usage.output, usage.reasoning].into_iter().fold(so_far.output, add),
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.map_or(b, |a| Some(a.saturating_add(b.unwrap_or(0))))
}
