//! What a person sees of a loop while it runs, in order: the agent's words as they come, and what is said of the loop. In
//! plain lines, so that it reads the same in a log; only what is waited for is renewed in place, where a terminal is.
//!
//! What the agent printed is data: control characters never reach the terminal.

use refrain_core::agent::AgentEvent;
use refrain_core::event::Record;
use refrain_core::r#loop::LoopState;
use refrain_engine::{Follower, Sight, chain, now};

use crate::lines::Lines;
use crate::live::Live;
use crate::out::{self, Target};
use crate::said::Said;
use crate::telling;

/// A person's view of one loop.
#[derive(Debug)]
pub(crate) struct Screen {
    progress: Option<Target>,
    events: bool,
    state: Option<LoopState>,
    /// The agent's standard output and standard error.
    streams: [Lines; 2],
    said: Said,
    live: Live,
    /// Nobody reads any more.
    closed: bool,
}

impl Screen {
    /// Shows progress on `progress`, and prints events as JSON lines on standard output if asked. `live` says what is
    /// waited for.
    pub(crate) fn new(progress: Option<Target>, events: bool, live: Live) -> Self {
        Self {
            progress,
            events,
            state: None,
            streams: Default::default(),
            said: Said::default(),
            live,
            closed: false,
        }
    }

    /// Shows all there is to see, until the loop has stopped.
    pub(crate) fn run(mut self, follower: Follower) {
        let mut follower = match self.live.patience() {
            Some(patience) => follower.with_patience(patience),
            None => follower,
        };
        while !self.closed {
            match follower.look() {
                Ok(Some(Sight::Event(record))) => self.event(&record),
                Ok(Some(Sight::Past(record))) => drop(self.fold(&record)),
                Ok(Some(Sight::Joined)) => {
                    let text = self.state.as_ref().map(|state| telling::digest(state, self.width()));
                    self.show(&text.unwrap_or_default());
                }
                Ok(Some(Sight::Said(event))) => self.say(&event),
                Ok(Some(Sight::Output { stderr, bytes })) => self.output(stderr, &bytes),
                Ok(Some(Sight::Quiet)) => self.wait(),
                Ok(None) => break,
                Err(error) => {
                    self.show("");
                    return out::tell_line("", &format!("refrain: {}", chain(&error)));
                }
            }
        }
        let erased = self.live.erase();
        self.write(&erased);
    }

    fn event(&mut self, record: &Record) {
        if self.events
            && let Ok(mut line) =
                serde_json::to_vec(&Record { event: record.event.clone().redacted(), ..record.clone() })
        {
            line.push(b'\n');
            self.closed |= !out::print_raw(&line);
        }
        let told = self.end_lines();
        let settled = self.fold(record);
        if let Some(state) = &self.state {
            let settled = settled.then(|| state.attempts.last()).flatten();
            let text = telling::lines(state, record, settled, &told, self.width());
            self.show(&text);
        }
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

    fn say(&mut self, event: &AgentEvent) {
        self.live.heard(now());
        // What ended an attempt its summary says.
        if !matches!(event, AgentEvent::Fault(_)) {
            let text = self.said.show(event);
            self.show(&text);
        }
    }

    /// Whole lines as they come; a line without an end waits for its end or for the next event.
    fn output(&mut self, stderr: bool, bytes: &[u8]) {
        self.live.heard(now());
        let text = self.streams[usize::from(stderr)].push(bytes);
        self.show(&text);
    }

    /// Ends the lines that were begun; returns what the agent said last.
    fn end_lines(&mut self) -> String {
        let texts = self.streams.each_mut().map(Lines::end);
        let told = self.said.last().to_owned();
        texts.iter().chain([&self.said.end()]).for_each(|text| self.show(text));
        told
    }

    /// Nothing happens: says what is waited for, unless that would tear a line of the agent's.
    fn wait(&mut self) {
        if let Some(state) = self.state.as_ref().filter(|_| !self.said.is_open()) {
            let text = self.live.renew(state, self.width(), now());
            self.write(&text);
        }
    }

    fn show(&mut self, text: &str) {
        if !text.is_empty() {
            let erased = self.live.erase();
            self.live.shown(now());
            self.write(&(erased + text));
        }
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
