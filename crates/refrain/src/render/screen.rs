//! A person's view of a running loop. Plain lines, so that a log reads the same; only the status line below them is
//! renewed in place, on a terminal.

use refrain_core::event::{Event, Record};
use refrain_engine::{FollowEvent, Follower, Service, chain, now};

use crate::out::{self, Target};
use crate::render::event_text::EndFacts;
use crate::render::live::Live;
use crate::render::narrator::Narrator;

#[derive(Debug)]
pub(crate) struct Screen {
    progress: Option<Target>,
    events: bool,
    narrator: Narrator,
    live: Live,
    service: Option<Service>,
    closed: bool,
}

impl Screen {
    /// Shows progress on `progress`, and prints events as JSON lines on standard output if asked. `live` shows waits.
    pub(crate) fn new(progress: Option<Target>, events: bool, live: Live) -> Self {
        Self { progress, events, narrator: Narrator::default(), live, service: None, closed: false }
    }

    /// The same, whose last lines say how much the loop changed.
    pub(crate) fn with_size(self, service: Service) -> Self {
        Self { service: self.progress.map(|_| service), ..self }
    }

    /// Shows all there is to see, until the loop has stopped.
    pub(crate) fn run(mut self, follower: Follower) {
        let mut follower = match self.live.patience() {
            Some(patience) => follower.with_patience(patience),
            None => follower,
        };
        while !self.closed {
            match follower.look() {
                Ok(Some(sight)) => self.see(&sight),
                Ok(None) => break,
                Err(error) => {
                    let erased = self.live.erase();
                    self.write(&erased);
                    return out::tell_line("", &format!("refrain: {}", chain(&error)));
                }
            }
        }
        let erased = self.live.erase();
        self.write(&erased);
    }

    fn see(&mut self, sight: &FollowEvent) {
        if let FollowEvent::Event(record) = sight
            && self.events
        {
            self.print(record);
        }
        self.live.hear(sight, now());
        self.measure(sight);
        let text = self.narrator.tell(sight, self.width());
        if !matches!(sight, FollowEvent::Past(_)) {
            self.show(&text);
        }
    }

    /// Looks how much the loop changed before its end is shown.
    fn measure(&mut self, sight: &FollowEvent) {
        let is_end = match sight {
            FollowEvent::Event(record) => matches!(record.event, Event::LoopEnded(_)),
            FollowEvent::Joined => self.narrator.state().is_some_and(|state| state.ended.is_some()),
            FollowEvent::Past(_) | FollowEvent::Said(_) | FollowEvent::Output { .. } | FollowEvent::Quiet => {
                false
            }
        };
        let id = self.narrator.state().map(|state| state.spec.id.clone());
        if let (true, Some(service), Some(id)) = (is_end, &self.service, id) {
            // A summary without it is better than none.
            let shown = service.shown_changes(&id).ok().flatten();
            let has_changes = shown.is_some_and(|(size, _)| size.files + size.mixed > 0);
            let size = shown.and_then(|(size, is_known)| is_known.then_some(size));
            let is_gone = !service.is_found();
            self.narrator.note_end(EndFacts {
                size,
                has_changes,
                is_gone,
                merged_into: service.merged_into(&id),
            });
        }
    }

    /// Prints an event as it stands in the journal, less secrets.
    fn print(&mut self, record: &Record) {
        let redacted = Record { event: record.event.clone().redacted(), ..record.clone() };
        if let Ok(mut line) = serde_json::to_vec(&redacted) {
            line.push(b'\n');
            self.closed |= !out::print_raw(&line);
        }
    }

    /// The status line, unless it would tear a line of the agent's.
    fn status_line(&mut self) -> String {
        let width = self.width();
        match self.narrator.state().filter(|_| !self.narrator.is_open()) {
            Some(state) => self.live.renew(state, width, now()),
            None => String::new(),
        }
    }

    fn show(&mut self, text: &str) {
        let mut shown = String::new();
        if !text.is_empty() {
            shown = self.live.erase() + text;
            self.live.shown(now());
        }
        shown.push_str(&self.status_line());
        self.write(&shown);
    }

    fn write(&mut self, text: &str) {
        if let Some(target) = self.progress.filter(|_| !text.is_empty()) {
            self.closed |= !target.write(text);
        }
    }

    fn width(&self) -> Option<usize> {
        self.progress.and_then(Target::width)
    }
}
