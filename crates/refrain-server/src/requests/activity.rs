//! The activity of an attempt's agent: the end of it, a part, or the lines that contain some words.

use std::ops::ControlFlow;

use refrain_core::agent::{AgentEvent, Scope, Speaker};
use refrain_core::spec::AgentKind;
use refrain_core::text::clip;
use schemars::JsonSchema;
use serde::Serialize;

use super::views::{of_attempt, within};
use super::{LoopAddress, Refusal, RequestHandler};

/// The longest line of agent output, in bytes.
const LONGEST_LINE: usize = 4 << 10;
/// How many lines are found at a time.
const MOST_FOUND: usize = 200;
/// The longest search text, in characters.
const LONGEST_WANTED: usize = 200;

/// A part of what an agent did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Activity {
    /// The first byte of the stream that it was read from.
    pub(crate) from: u64,
    /// Where the next part begins.
    pub(crate) next: u64,
    /// How many bytes there are now.
    pub(crate) total: u64,
    /// How many tokens its latest message took in: how full its context is. Of agents that report each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<u64>,
    /// What it did, in order.
    pub(crate) lines: Vec<Line>,
}

/// One thing that an agent did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// What it is: text, thought, tool, result, failed, fault, notice, output.
    pub(crate) kind: &'static str,
    /// In words.
    pub(crate) text: String,
    /// It continues the line before it, without a break.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) part: bool,
    /// At which byte of the stream it stands, where it was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
}

impl RequestHandler {
    pub(crate) fn activity(
        &self,
        place: &LoopAddress,
        attempt: &str,
        from: Option<u64>,
        limit: Option<u64>,
    ) -> Result<Activity, Refusal> {
        let (service, id) = self.open_place(place)?;
        let heard = service.heard(&id, of_attempt(attempt)?, from, within(limit)?)?;
        let nothing = Activity { from: 0, next: 0, total: 0, context: None, lines: Vec::new() };
        Ok(heard.map_or(nothing, |heard| Activity {
            from: heard.from,
            next: heard.next,
            total: heard.total,
            context: context(heard.kind, &heard.said),
            lines: joined(heard.said.iter().flat_map(lines)),
        }))
    }

    /// The lines that contain these words, from a byte on; `next` is where to continue, until it is the end.
    pub(crate) fn search(
        &self,
        place: &LoopAddress,
        attempt: &str,
        wanted: &str,
        from: Option<u64>,
    ) -> Result<Activity, Refusal> {
        let (service, id) = self.open_place(place)?;
        if wanted.trim().is_empty() || wanted.chars().count() > LONGEST_WANTED {
            let length = wanted.chars().count();
            let accepted = format!("accepted: 1 to {LONGEST_WANTED} characters that are not all blank");
            return Err(Refusal::new(format!("find of {length} characters: {accepted}")));
        }
        let (lower, from, mut found) = (wanted.to_lowercase(), from.unwrap_or(0), Vec::new());
        let searched = service.search(&id, of_attempt(attempt)?, (wanted, from), &mut |at, event| {
            let around = |line: Line| Some(Line { at: Some(at), text: around(&line.text, &lower)?, ..line });
            found.extend(whole(&event).into_iter().filter_map(around));
            if found.len() >= MOST_FOUND { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let (next, total) = searched.map_or((from, from), |searched| (searched.next, searched.total));
        Ok(Activity { from, next, total, context: None, lines: found })
    }
}

/// What the latest message of a part took in. The tokens of a part are a sum, which grows by each message.
fn context(kind: AgentKind, said: &[AgentEvent]) -> Option<u64> {
    if !matches!(kind, AgentKind::Claude | AgentKind::Opencode) {
        return None;
    }
    let (mut before, mut latest) = (0, None);
    for (at, event) in said.iter().enumerate() {
        let AgentEvent::Tokens { of: Scope::Attempt, tokens } = event else { continue };
        let sum = tokens.input.unwrap_or_default();
        // Claude Code ends with the sum of all messages, and their cost.
        let is_total = kind == AgentKind::Claude
            && matches!(said.get(at + 1), Some(AgentEvent::Cost { .. } | AgentEvent::Final { .. }));
        if sum > before && !is_total {
            latest = Some(sum - before);
        }
        before = sum;
    }
    latest
}

/// The text around a match; none if there is no match.
fn around(text: &str, wanted: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(wanted)?;
    // If lower case has another length the offset is wrong: then the beginning is shown.
    let at = if lower.len() == text.len() { at } else { 0 };
    let from = text.floor_char_boundary(at.saturating_sub(LONGEST_LINE / 2));
    let before = if from > 0 { "…" } else { "" };
    Some(format!("{before}{}", clip(&text[from..], LONGEST_LINE)))
}

/// The lines of an event, each cut to the longest length.
fn lines(event: &AgentEvent) -> Vec<Line> {
    let clipped = |line: Line| Line { text: clip(&line.text, LONGEST_LINE).into_owned(), ..line };
    whole(event).into_iter().map(clipped).collect()
}

/// Joins parts of a text into one line up to the longest length; the first of them may continue the text read before.
fn joined(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for line in lines {
        match all.last_mut() {
            Some(last) if line.part && last.part && last.text.len() + line.text.len() <= LONGEST_LINE => {
                last.text.push_str(&line.text);
            }
            Some(_) | None => all.push(line),
        }
    }
    all
}

/// The same without cutting; output that is no event stream comes as whole lines.
fn whole(event: &AgentEvent) -> Vec<Line> {
    match event {
        AgentEvent::Notice(text) => text.lines().map(|text| Line::of("output", text)).collect(),
        _ => line(event).into_iter().collect(),
    }
}

impl Line {
    fn of(kind: &'static str, text: &str) -> Self {
        Self { kind, text: text.to_owned(), part: false, at: None }
    }
}

fn line(event: &AgentEvent) -> Option<Line> {
    let said = |kind, text: &str| {
        let text = text.trim_end();
        (!text.is_empty()).then(|| Line::of(kind, text))
    };
    match event {
        AgentEvent::Text { text, part: true, by: Speaker::Agent } => {
            (!text.is_empty()).then(|| Line { part: true, ..Line::of("text", text) })
        }
        AgentEvent::Text { text, part: false, by: Speaker::Agent } => said("text", text),
        AgentEvent::Text { text, by: Speaker::SubAgent, .. } => said("sub-agent", text),
        AgentEvent::Thought(text) => said("thought", text),
        AgentEvent::ToolCall { name, about, .. } => said("tool", &format!("{name} {about}")),
        AgentEvent::ToolResult { ok: Some(false), output } => said("failed", output),
        AgentEvent::ToolResult { output, .. } => said("result", output),
        AgentEvent::Retry(fault) => said("notice", &format!("it tries again: {}", fault.message)),
        AgentEvent::Fault(fault) => said("fault", &fault.message),
        AgentEvent::TooLong => said("notice", "its final message is too long to be read"),
        AgentEvent::Notice(_)
        | AgentEvent::Session(_)
        | AgentEvent::Tokens { .. }
        | AgentEvent::Cost { .. }
        | AgentEvent::Final { .. }
        | AgentEvent::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::agent::{Tokens, Usd};

    use super::*;

    #[test]
    fn the_context_is_what_the_latest_message_took_in() {
        let sum = |input| {
            let tokens = Tokens { input: Some(input), ..Tokens::default() };
            AgentEvent::Tokens { of: Scope::Attempt, tokens }
        };
        let cost = AgentEvent::Cost { of: Scope::Attempt, usd: Usd(1) };
        let said = [sum(20_000), sum(51_000), sum(51_000), sum(52_000), cost];
        assert_eq!(context(AgentKind::Claude, &said), Some(31_000), "the last sum is that of the result");
        assert_eq!(context(AgentKind::Codex, &said), None, "it reports its turns, not its messages");
    }

    #[test]
    fn a_text_in_parts_is_not_split_inside_words() {
        let part = |text: &str| AgentEvent::Text { text: text.into(), part: true, by: Speaker::Agent };
        let call = AgentEvent::ToolCall { name: "Bash".into(), about: "ls".into(), by: Speaker::Agent };
        let events = [part("I lo"), part("ok. <promise>COMP"), call, part("LETE</promise>")];
        let lines = joined(events.iter().flat_map(lines));
        let seen: Vec<_> = lines.iter().map(|line| (line.kind, line.text.as_str(), line.part)).collect();
        assert_eq!(
            seen,
            [
                ("text", "I look. <promise>COMP", true),
                ("tool", "Bash ls", false),
                ("text", "LETE</promise>", true)
            ]
        );
    }

    #[test]
    fn a_match_deep_in_a_long_line_is_shown() {
        let long = format!("{}NEEDLE{}", "é".repeat(9_000), "x".repeat(9_000));
        let shown = around(&long, "needle").unwrap();
        assert!(
            shown.contains("NEEDLE") && shown.starts_with('…') && shown.ends_with('…'),
            "{}",
            shown.len()
        );
        assert!(shown.len() <= LONGEST_LINE + 3);
        assert_eq!((around("a needle", "needle"), around("hay", "needle")), (Some("a needle".into()), None));
    }
}
