//! What a person sees of a running loop, in order: the agent's output as it comes, and messages about the loop. The
//! same on every screen; the screen decides where to show it.
//!
//! Agent output is data: control characters never reach the terminal.

use owo_colors::OwoColorize;
use refrain_core::agent::{AgentEvent, Speaker};
use refrain_core::event::{Event, Record};
use refrain_core::r#loop::LoopState;
use refrain_core::text::without_folder;
use refrain_engine::FollowEvent;

use crate::render::agent_text::AgentText;
use crate::render::event_text::{self, EndFacts};
use crate::render::folding::FoldedOutput;
use crate::render::lines::Lines;
use crate::render::phrase;

#[derive(Debug, Default)]
pub(crate) struct Narrator {
    state: Option<LoopState>,
    streams: [Lines; 2],
    said: AgentText,
    /// The output or text that is being shown, on a terminal.
    folding: FoldedOutput,
    /// What its journal does not say, once it ended.
    end: EndFacts,
}

impl Narrator {
    /// The loop's state after the events so far.
    pub(crate) fn state(&self) -> Option<&LoopState> {
        self.state.as_ref()
    }

    /// Notes what the summary at the end says beyond the journal.
    pub(crate) fn note_end(&mut self, end: EndFacts) {
        self.end = end;
    }

    /// Whether a line was begun that has not come to its end.
    pub(crate) fn is_open(&self) -> bool {
        self.said.is_open() && !self.folding.is_holding()
    }

    /// The text for an event: whole lines, or the next part of one.
    pub(crate) fn tell(&mut self, sight: &FollowEvent, width: Option<usize>) -> String {
        match sight {
            FollowEvent::Past(record) => {
                self.fold(record);
                String::new()
            }
            // The agent may speak before its start is on record: the line that it began continues.
            FollowEvent::Event(record) if matches!(record.event, Event::AttemptSpawned { .. }) => {
                self.fold(record);
                String::new()
            }
            FollowEvent::Event(record) => self.event(record, width),
            FollowEvent::Joined => self
                .state
                .as_ref()
                .map(|state| event_text::digest(state, &self.end, width))
                .unwrap_or_default(),
            // What ended an attempt its summary says.
            FollowEvent::Said(AgentEvent::Fault(_)) => String::new(),
            // A burst of output is over.
            FollowEvent::Quiet => self.unfolded(),
            FollowEvent::Said(event) => {
                let text = self.said.show(event);
                let is_part = matches!(event, AgentEvent::Text { part: true, by: Speaker::Agent, .. });
                match width {
                    Some(_) if is_part => self.folding.push(&text),
                    Some(_) if !text.is_empty() => {
                        let text = phrase::broken("", 0, &self.in_worktree(&text), width);
                        let before = self.unfolded();
                        before + &self.folding.push(&text) + &self.unfolded()
                    }
                    Some(_) | None => text,
                }
            }
            // Whole lines as they come; a line without an end waits for its end or for the next event.
            FollowEvent::Output { stderr, bytes } => {
                let text = self.streams[usize::from(*stderr)].push(bytes);
                self.printed(text, width)
            }
        }
    }

    /// The text with the paths in the loop's worktree as they are there.
    fn in_worktree(&self, text: &str) -> String {
        match &self.state {
            Some(state) => without_folder(text, &format!("{}/", state.spec.worktree)),
            None => text.to_owned(),
        }
    }

    /// An agent's or a gate's output; on a terminal a long one is folded, and a gate's is set apart.
    fn printed(&mut self, text: String, width: Option<usize>) -> String {
        if width.is_none() {
            return text;
        }
        let is_of_gate = self.state.as_ref().is_some_and(|state| state.running_gate().is_some());
        let apart = |line: &str| format!("    {}\n", line.dimmed());
        let text = if is_of_gate { text.lines().map(apart).collect() } else { text };
        self.folding.push(&text)
    }

    /// The last lines of a folded output, and how to see it whole.
    fn unfolded(&mut self) -> String {
        let Some(state) = &self.state else { return self.folding.end("refrain logs") };
        let of = Some(state.iteration).filter(|it| *it > 0).map(|it| format!(" --iteration {it}"));
        self.folding.end(&format!("refrain logs {}{}", state.spec.id, of.unwrap_or_default()))
    }

    fn event(&mut self, record: &Record, width: Option<usize>) -> String {
        let told = self.said.last().to_owned();
        let rest = self.streams.each_mut().map(Lines::end).concat();
        let mut text = self.printed(rest, width) + &self.unfolded() + &self.said.end();
        let settled = self.fold(record);
        if let Some(state) = &self.state {
            let settled = settled.then(|| state.attempts.last()).flatten();
            text.push_str(&event_text::lines(state, record, settled, &told, &self.end, width));
        }
        text
    }

    /// Folds one more event; whether it settled an attempt.
    fn fold(&mut self, record: &Record) -> bool {
        let attempts = |state: &Option<LoopState>| state.as_ref().map_or(0, |state| state.attempts.len());
        let before = attempts(&self.state);
        match &mut self.state {
            None => self.state = LoopState::begin(record).ok(),
            // Its own process folded it already; from another one, a damaged journal is not this one's to judge.
            Some(state) => drop(state.apply(record)),
        }
        attempts(&self.state) > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_text_is_wrapped_between_words_on_a_terminal() {
        let said = || {
            FollowEvent::Said(AgentEvent::Text {
                text: "the handling in parse splits on dashes\n1. read".to_owned(),
                part: false,
                by: Speaker::Agent,
            })
        };
        let shown = |width| Narrator::default().tell(&said(), width);
        assert_eq!(shown(Some(30)), "the handling in parse splits\non dashes\n1. read\n");
        assert_eq!(shown(None), "the handling in parse splits on dashes\n1. read\n");
    }

    #[test]
    fn an_agent_that_speaks_before_its_start_is_on_record_continues_its_line() {
        let mut narrator = Narrator::default();
        let part = |text: &str| {
            FollowEvent::Said(AgentEvent::Text { text: text.to_owned(), part: true, by: Speaker::Agent })
        };
        let spawned = r#"{"seq": 4, "at": "2026-11-27T16:00:00Z", "event": {"type": "attempt.spawned", "data": {"process": {"pid": 5, "start": 7}}}}"#;
        let sights = [part("COMP"), FollowEvent::Event(serde_json::from_str(spawned).unwrap()), part("LETE")];
        let text: String = sights.iter().map(|sight| narrator.tell(sight, None)).collect();
        assert_eq!(text, "COMPLETE");
    }
}
