use refrain_core::agent::{AgentEvent, Fault, Scope, Session, Speaker, Tokens};
use refrain_core::event::Exit;

use super::faults;
use super::wire::{Change, Event, Item, Usage};
use crate::adapter::{Clock, StreamDecoder};
use crate::provider_error::{End, of_denial};
use crate::summarize::{self, about, text_of};
use crate::wire::{EventSink, event};

#[derive(Debug)]
pub(super) struct Reader {
    clock: Clock,
    /// Its last text: the final message, once its turn is over.
    last: Option<String>,
    /// An error that it did not continue from.
    error: Option<Fault>,
    turn: Turn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    None,
    /// The thread has started, at least.
    Open,
    Completed,
    Failed,
}

impl Reader {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, last: None, error: None, turn: Turn::None }
    }

    fn event(&mut self, event: Event, say: EventSink<'_>) {
        match event {
            Event::ThreadStarted { thread_id } => {
                self.turn = Turn::Open;
                say(AgentEvent::Session(Session { id: thread_id, ..Session::default() }));
            }
            Event::TurnStarted => {
                self.turn = Turn::Open;
                self.last = None;
                self.error = None;
            }
            Event::TurnCompleted { usage } => self.completed(usage, say),
            Event::TurnFailed { error } => {
                let message = error.and_then(|error| error.message).unwrap_or_default();
                self.turn = Turn::Failed;
                say(AgentEvent::Fault(faults::of_message(&message, &self.clock)));
                say(AgentEvent::Final { ok: false, message: None });
            }
            Event::ItemStarted { item } => start(item, say),
            Event::ItemUpdated { .. } => {}
            Event::ItemCompleted { item } => self.item(item, say),
            Event::Error(error) => self.error(&error.message.unwrap_or_default(), say),
            Event::Unknown => say(AgentEvent::Unknown),
        }
    }

    fn completed(&mut self, usage: Option<Usage>, say: EventSink<'_>) {
        if let Some(Usage { input_tokens, cached_input_tokens, output_tokens }) = usage {
            let tokens =
                Tokens { input: input_tokens, cached_input: cached_input_tokens, output: output_tokens };
            say(AgentEvent::Tokens { of: Scope::Session, tokens });
        }
        self.turn = Turn::Completed;
        self.error = None;
        say(AgentEvent::Final { ok: true, message: self.last.take() });
    }

    fn item(&mut self, item: Item, say: EventSink<'_>) {
        match item {
            Item::AgentMessage { text } => {
                self.last = Some(text.clone());
                say(AgentEvent::Text { text, part: false, by: Speaker::Agent });
            }
            Item::Reasoning { text } => say(AgentEvent::Thought(text)),
            Item::CommandExecution { aggregated_output, exit_code, .. } => {
                let output = summarize::output(&aggregated_output.unwrap_or_default());
                say(AgentEvent::ToolResult { ok: exit_code.map(|code| code == 0), output });
            }
            Item::FileChange { status, .. } => {
                say(AgentEvent::ToolResult { ok: worked(status.as_deref()), output: String::new() });
            }
            Item::McpToolCall { result, error, status, .. } => {
                let text = text_of(&result["content"]);
                let output = error.and_then(|error| error.message).unwrap_or(text);
                say(AgentEvent::ToolResult {
                    ok: worked(status.as_deref()),
                    output: summarize::output(&output),
                });
            }
            // The only tool that is reported only when it is done.
            Item::WebSearch { query } => call("web_search", &query.unwrap_or_default(), say),
            Item::Error(error) => {
                say(AgentEvent::Notice(summarize::line(&error.message.unwrap_or_default())))
            }
            Item::TodoList => {}
            Item::Unknown => say(AgentEvent::Unknown),
        }
    }

    fn error(&mut self, message: &str, say: EventSink<'_>) {
        match faults::of_retry(message, &self.clock) {
            Some(fault) => say(AgentEvent::Retry(fault)),
            // `turn.failed` repeats it, if it is the end.
            None => self.error = Some(faults::of_message(message, &self.clock)),
        }
    }

    /// No turn ended normally: evaluates the exit and standard error.
    fn unfinished(&mut self, exit: Exit, stderr: &str) -> Option<Fault> {
        let end = End::of(exit);
        if end == End::Unseen {
            return None;
        }
        let end = match (end, self.turn) {
            // When interrupted, it exits with 1.
            (End::Failed(1), Turn::Open) => End::Stopped,
            (End::NotRun, Turn::Open | Turn::Completed | Turn::Failed) => End::Failed(127),
            (end, _) => end,
        };
        let known = self.error.take().or_else(|| faults::of_stderr(stderr));
        Some(known.unwrap_or_else(|| end.without_result(stderr)))
    }
}

impl StreamDecoder for Reader {
    fn line(&mut self, line: &[u8], say: EventSink<'_>) {
        if let Some(event) = event(line, say) {
            self.event(event, say);
        }
    }

    fn conclude(&mut self, exit: Exit, stderr: &str, say: EventSink<'_>) {
        match (self.turn, exit) {
            (Turn::Failed, _) => {}
            (Turn::Completed, exit) => {
                of_denial(exit).map(AgentEvent::Fault).into_iter().for_each(say);
            }
            (Turn::None | Turn::Open, exit) => {
                self.unfinished(exit, stderr).map(AgentEvent::Fault).into_iter().for_each(say);
            }
        }
    }
}

fn start(item: Item, say: EventSink<'_>) {
    match item {
        Item::CommandExecution { command, .. } => call("shell", &command.unwrap_or_default(), say),
        Item::FileChange { changes, .. } => call("file_change", &paths(changes.unwrap_or_default()), say),
        Item::McpToolCall { server, tool, arguments, .. } => {
            let name = [server, tool].into_iter().flatten().collect::<Vec<_>>().join(".");
            call(&name, &about(&arguments), say);
        }
        Item::AgentMessage { .. }
        | Item::Reasoning { .. }
        | Item::WebSearch { .. }
        | Item::TodoList
        | Item::Error(_) => {}
        Item::Unknown => say(AgentEvent::Unknown),
    }
}

fn call(name: &str, about: &str, say: EventSink<'_>) {
    say(AgentEvent::ToolCall { name: name.to_owned(), about: summarize::line(about), by: Speaker::Agent });
}

fn paths(changes: Vec<Change>) -> String {
    let said = changes.into_iter().filter_map(|Change { path, kind }| match (kind, path) {
        (Some(kind), Some(path)) => Some(format!("{kind} {path}")),
        (_, path) => path,
    });
    said.collect::<Vec<_>>().join(", ")
}

fn worked(status: Option<&str>) -> Option<bool> {
    status.map(|status| status == "completed")
}
