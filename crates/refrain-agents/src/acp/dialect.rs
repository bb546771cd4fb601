//! Decodes the bridge's output: our own events.

use refrain_core::agent::{AgentEvent, Fault, FaultKind};
use refrain_core::event::Exit;

use crate::adapter::StreamDecoder;
use crate::provider_error::by_message;
use crate::{gemini, summarize};

#[derive(Debug, Default)]
pub(super) struct Reader {
    is_final: bool,
    fault: Option<Fault>,
    /// Gemini reports its retries only on standard error, by this protocol too.
    notices: gemini::Notices,
}

impl StreamDecoder for Reader {
    fn line(&mut self, line: &[u8], say: &mut dyn FnMut(AgentEvent)) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let Ok(event) = serde_json::from_slice::<AgentEvent>(line) else {
            return say(AgentEvent::Notice(summarize::raw(line)));
        };
        match &event {
            AgentEvent::Final { .. } => self.is_final = true,
            AgentEvent::Fault(fault) => self.fault = Some(fault.clone()),
            _ => {}
        }
        say(event);
    }

    fn stderr_line(&mut self, line: &[u8], say: &mut dyn FnMut(AgentEvent)) {
        let fault = self.notices.line(&String::from_utf8_lossy(line));
        fault.into_iter().for_each(|fault| say(AgentEvent::Retry(fault)));
    }

    /// If the agent's program ended before its final message, its standard error contains the reason.
    fn conclude(&mut self, exit: Exit, stderr: &str, say: &mut dyn FnMut(AgentEvent)) {
        if self.is_final || matches!(exit, Exit::Lost | Exit::Unseen) {
            return;
        }
        let words = summarize::last_words(stderr, "");
        let fault = match self.fault.take() {
            Some(fault) if fault.kind == FaultKind::Aborted || words.is_empty() => return,
            Some(fault) => Fault {
                kind: by_message(stderr).unwrap_or(fault.kind),
                message: summarize::line(&format!("{}: {words}", fault.message)),
                until: None,
            },
            None => {
                let message = format!("the bridge to the agent ended without a result: {words}");
                Fault { kind: FaultKind::Aborted, message: summarize::line(&message), until: None }
            }
        };
        say(AgentEvent::Fault(fault));
    }
}
