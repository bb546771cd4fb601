use refrain_core::agent::{AgentEvent, Fault, FaultKind, Scope, Session, Speaker, Tokens};
use refrain_core::event::Exit;

use super::faults;
use super::wire::{Event, EventKind, Failure, Role, Severity, Stats, Status};
use crate::adapter::StreamDecoder;
use crate::message::Message;
use crate::provider_error::fault;
use crate::summarize;
use crate::wire::{self, EventSink};

/// A longer prompt, echoed, makes it cut its own output: 200 kB went through, 300 kB did not.
const LONGEST_PROMPT: usize = 190_000;

#[derive(Debug)]
pub(super) struct Reader {
    prompt_length: usize,
    message: Message,
    has_begun: bool,
    /// The model produced text or used a tool.
    has_answered: bool,
    /// It stopped the run by its own loop detection, which it then reports as a success.
    is_looping: bool,
    /// The last reported error, which applies to a result without one of its own.
    last_error: Option<String>,
    result: Option<Outcome>,
    notices: faults::Notices,
}

#[derive(Debug)]
enum Outcome {
    Ended,
    /// A failure that is only complete with the exit code.
    Failed(Failure),
}

impl StreamDecoder for Reader {
    fn line(&mut self, line: &[u8], say: EventSink<'_>) {
        if let Some(event) = wire::event(line, say) {
            self.hear(event, say);
        }
    }

    fn stderr_line(&mut self, line: &[u8], say: EventSink<'_>) {
        let fault = self.notices.line(&String::from_utf8_lossy(line));
        fault.into_iter().for_each(|fault| say(AgentEvent::Retry(fault)));
    }

    fn conclude(&mut self, exit: Exit, stderr: &str, say: EventSink<'_>) {
        match self.result.take() {
            Some(Outcome::Ended) => {}
            Some(Outcome::Failed(failure)) => {
                say(AgentEvent::Fault(faults::of_failure(&failure, exit)));
                say(AgentEvent::Final { ok: false, message: None });
            }
            None => self.cut_off(exit, stderr).into_iter().for_each(|fault| say(AgentEvent::Fault(fault))),
        }
    }
}

impl Reader {
    /// For an attempt with a prompt of `prompt_length` bytes.
    pub(super) fn new(prompt_length: usize) -> Self {
        Self {
            prompt_length,
            message: Message::default(),
            has_begun: false,
            has_answered: false,
            is_looping: false,
            last_error: None,
            result: None,
            notices: faults::Notices::default(),
        }
    }

    fn hear(&mut self, event: Event, say: EventSink<'_>) {
        match event.kind {
            EventKind::Unknown => return say(AgentEvent::Unknown),
            EventKind::Init => {
                say(AgentEvent::Session(Session { id: event.session_id, model: event.model, version: None }));
            }
            EventKind::Message => self.text(event, say),
            EventKind::ToolUse => self.tool(event, say),
            EventKind::ToolResult => {
                let ok = event.status.and_then(|status| match status {
                    Status::Success => Some(true),
                    Status::Error => Some(false),
                    Status::Unknown => None,
                });
                let output = event.output.or(event.error.map(|error| error.message)).unwrap_or_default();
                say(AgentEvent::ToolResult { ok, output: summarize::output(&output) });
            }
            EventKind::Error => self.trouble(event, say),
            EventKind::Result => self.end(event, say),
        }
        self.has_begun = true;
    }

    /// A part of a message; the echo of the prompt is skipped.
    fn text(&mut self, event: Event, say: EventSink<'_>) {
        let text = match (event.role, event.content) {
            (Some(Role::Assistant), Some(text)) => text,
            (Some(Role::User), _) => return,
            _ => return say(AgentEvent::Unknown),
        };
        self.has_answered = true;
        if !event.delta {
            self.message.clear();
        }
        self.message.push(&text);
        say(AgentEvent::Text { text, part: event.delta, by: Speaker::Agent });
    }

    fn tool(&mut self, event: Event, say: EventSink<'_>) {
        self.has_answered = true;
        self.message.clear();
        let about = summarize::about(&event.parameters);
        say(AgentEvent::ToolCall { name: event.tool_name.unwrap_or_default(), about, by: Speaker::Agent });
    }

    /// Most of its error events are only remarks; its result shows whether it failed.
    fn trouble(&mut self, event: Event, say: EventSink<'_>) {
        let message = event.message.unwrap_or_default();
        if message.starts_with("Agent execution blocked") {
            // A hook continued the run: the text so far was not final.
            self.message.clear();
        }
        self.is_looping |= message.starts_with("Loop detected");
        say(AgentEvent::Notice(summarize::line(&message)));
        if event.severity == Some(Severity::Error) {
            self.last_error = Some(message);
        }
    }

    fn end(&mut self, event: Event, say: EventSink<'_>) {
        if let Some(tokens) = event.stats.as_ref().and_then(used) {
            say(AgentEvent::Tokens { of: Scope::Attempt, tokens });
        }
        if event.status == Some(Status::Success) {
            self.result = Some(Outcome::Ended);
            return self.succeed(say);
        }
        let last_error = self.last_error.take().unwrap_or_default();
        let failure = event.error.unwrap_or(Failure { kind: String::new(), message: last_error });
        self.result = Some(Outcome::Failed(failure));
    }

    /// It reports a success. A run that it broke off is none: the fault is the work's, and nothing is claimed.
    fn succeed(&mut self, say: EventSink<'_>) {
        if self.is_looping {
            say(AgentEvent::Fault(fault(FaultKind::Other, "gemini took itself to be in a loop and stopped")));
            return say(AgentEvent::Final { ok: false, message: None });
        }
        self.message.say_final(say);
    }

    /// The meaning of an end without a result.
    fn cut_off(&self, exit: Exit, stderr: &str) -> Option<Fault> {
        if exit == Exit::Code(0) && self.prompt_length > LONGEST_PROMPT {
            let message = format!(
                "gemini cuts its output with a prompt of {} bytes: keep it under {LONGEST_PROMPT}, or have it read a file",
                self.prompt_length
            );
            return Some(fault(FaultKind::Setup, &message));
        }
        let known = faults::of_exit(exit, stderr, self.has_begun)?;
        // It ended after nothing but refusals from its provider: these are the cause. If there was an answer, it is
        // unknown whether the refusals came before or after it.
        let retries =
            faults::of_retries(stderr).filter(|_| known.kind == FaultKind::Aborted && !self.has_answered);
        Some(retries.unwrap_or(known))
    }
}

/// The run's usage. Zeros are no count: it prints them if it does not know, after errors.
fn used(stats: &Stats) -> Option<Tokens> {
    let total = stats.total_tokens.filter(|total| *total > 0 && !stats.models.is_empty())?;
    let beyond_input = stats.input_tokens.map(|input| total.saturating_sub(input));
    Some(Tokens {
        input: stats.input_tokens,
        cached_input: stats.cached,
        // Reasoning is only in the total (seen: 3600 in, 159 out, 3762 in all).
        output: stats.output_tokens.max(beyond_input),
    })
}
