//! An agent's event stream as a person sees it: its text unchanged, everything else as one line each, folded. All of it
//! is untrusted: control characters never reach the terminal.

use owo_colors::OwoColorize;
use refrain_core::agent::{AgentEvent, Speaker};
use refrain_core::text::{clip, printable};

use crate::render::phrase::in_charset;

/// The longest folded line, in bytes.
const LONGEST: usize = 160;

/// Turns events into lines. Text that comes in parts is put together.
#[derive(Debug, Default)]
pub(crate) struct AgentText {
    /// Text in parts has begun a line.
    open: bool,
    /// The last text: a fault that repeats it is not shown.
    last: String,
}

impl AgentText {
    /// The text for an event: whole lines or the next part of one; may be empty.
    pub(crate) fn show(&mut self, event: &AgentEvent) -> String {
        let words = match event {
            AgentEvent::Fault(fault) | AgentEvent::Retry(fault) => Some(&fault.message),
            AgentEvent::Text { text, part: false, by: Speaker::Agent } | AgentEvent::Notice(text) => {
                Some(text)
            }
            _ => None,
        };
        if let Some(words) = words {
            let repeats =
                matches!(event, AgentEvent::Fault(_) | AgentEvent::Retry(_)) && words.trim() == self.last;
            words.trim().clone_into(&mut self.last);
            if repeats {
                return String::new();
            }
        }
        let shown = match event {
            AgentEvent::Text { text, part: true, by: Speaker::Agent } => {
                let text = printable(text).into_owned();
                self.open = if text.is_empty() { self.open } else { !text.ends_with('\n') };
                return text;
            }
            AgentEvent::Text { text, part: false, by: Speaker::Agent } => whole(text),
            AgentEvent::Text { text, by: Speaker::SubAgent, .. } => {
                folded(&format!("  {} sub-agent:", in_charset("¦")), text)
            }
            AgentEvent::Thought(text) => folded("~ thinks:", text),
            AgentEvent::ToolCall { name, about, by } => {
                let indent = if *by == Speaker::Agent { "" } else { "  " };
                let mark = format!("{indent}{}", in_charset("→"));
                format!("{}\n", line(&mark, &format!("{name} {about}")).cyan())
            }
            AgentEvent::ToolResult { ok: Some(false), output } => {
                format!("{}\n", line("  failed:", output).red())
            }
            AgentEvent::ToolResult { output, .. } => result(output),
            AgentEvent::Retry(fault) => {
                folded(&format!("{} it tries again:", in_charset("·")), &fault.message)
            }
            AgentEvent::Fault(fault) => format!("{}\n", line("! fault:", &fault.message).red()),
            AgentEvent::Notice(text) => folded(in_charset("·"), text),
            AgentEvent::Session(_)
            | AgentEvent::Tokens { .. }
            | AgentEvent::Cost { .. }
            | AgentEvent::Final { .. }
            | AgentEvent::Unknown => String::new(),
            AgentEvent::TooLong => folded(in_charset("·"), "its final message is too long to be read"),
        };
        if shown.is_empty() { shown } else { self.end_line() + &shown }
    }

    /// The last text, of the agent or of a fault.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    /// Whether a line was begun that has not come to its end.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Ends the text, and the open line, if there is one.
    pub(crate) fn end(&mut self) -> String {
        self.last.clear();
        self.end_line()
    }

    fn end_line(&mut self) -> String {
        if std::mem::take(&mut self.open) { "\n".to_owned() } else { String::new() }
    }
}

fn whole(text: &str) -> String {
    let text = printable(text.trim_end());
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

fn folded(mark: &str, text: &str) -> String {
    format!("{}\n", line(mark, text).dimmed())
}

/// The first line with a letter or a digit, and how many more there are.
fn line(mark: &str, text: &str) -> String {
    let text = printable(text);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // A rule says nothing.
    let says = lines.iter().find(|line| line.contains(char::is_alphanumeric)).or(lines.first());
    let first = says.copied().unwrap_or_default();
    let more = lines.len().saturating_sub(1);
    let more = if more > 0 { format!(" (+{more} lines)") } else { String::new() };
    format!("{mark} {}{more}", clip(first, LONGEST))
}

fn result(output: &str) -> String {
    if output.trim().is_empty() { String::new() } else { folded("  ", output) }
}

#[cfg(test)]
mod tests {
    use refrain_core::agent::{Fault, FaultKind};

    use super::*;

    fn text(text: &str, part: bool) -> AgentEvent {
        AgentEvent::Text { text: text.into(), part, by: Speaker::Agent }
    }

    #[test]
    fn a_repeated_fault_is_shown_once() {
        let fault = |message: &str| Fault { kind: FaultKind::Limit, message: message.into(), until: None };
        let mut said = AgentText::default();
        let mut show = |event| anstream::adapter::strip_str(&said.show(&event)).to_string();
        assert_eq!(show(text("You have hit your limit.\n", false)), "You have hit your limit.\n");
        assert_eq!(show(AgentEvent::Fault(fault("You have hit your limit."))), "");
        assert_eq!(show(AgentEvent::Retry(fault("overloaded"))), "· it tries again: overloaded\n");
        assert_eq!(show(AgentEvent::Fault(fault("overloaded"))), "");
        assert_eq!(show(AgentEvent::Fault(fault("no such model"))), "! fault: no such model\n");
        said.end();
        assert_eq!(said.show(&AgentEvent::Notice("on".into())).lines().count(), 1);
        assert!(
            !said.show(&AgentEvent::Fault(fault("no such model"))).is_empty(),
            "another attempt's is another"
        );
    }

    #[test]
    fn text_is_whole_and_all_else_one_line_each() {
        let events = [
            text("I will\nlook.", false),
            AgentEvent::ToolCall { name: "Bash".into(), about: "cargo test".into(), by: Speaker::Agent },
            AgentEvent::ToolResult { ok: Some(true), output: "ok 1\nok 2\nok 3\n".into() },
            AgentEvent::ToolResult { ok: Some(false), output: "no such file\u{1b}[2J".into() },
            AgentEvent::ToolResult { ok: Some(false), output: "=====\nFAIL: dates\n".into() },
            AgentEvent::ToolResult { ok: None, output: " \n".into() },
            text("par", true),
            text("ts\nand", true),
            AgentEvent::Unknown,
            AgentEvent::Fault(Fault { kind: FaultKind::Login, message: "log in".into(), until: None }),
        ];
        let mut said = AgentText::default();
        let shown: String = events.iter().map(|event| said.show(event)).collect();
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            "I will\nlook.\n→ Bash cargo test\n   ok 1 (+2 lines)\n  failed: no such file\n  failed: FAIL: dates (+1 lines)\nparts\nand\n! fault: log in\n"
        );
    }
}
