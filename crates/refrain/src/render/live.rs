//! The status line of a running loop: below its output on a terminal, renewed in place, or a line of a log now and
//! then. Its only terminal control is the carriage return, so it is the same without colour.

use std::time::Duration;

use jiff::Timestamp;
use owo_colors::OwoColorize;
use refrain_app::Context;
use refrain_core::agent::{AgentEvent, Scope, Usage};
use refrain_core::event::Event;
use refrain_core::r#loop::LoopState;
use refrain_engine::FollowEvent;
use textwrap::core::display_width;

use crate::out::Target;
use crate::render::{event_text, phrase};

/// How often a line in place is renewed.
const IN_PLACE: Duration = Duration::from_secs(1);
/// How often a log is looked after, and how long it is without a line before it gets one.
const IN_LOG: (Duration, i64) = (Duration::from_secs(60), 600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusStyle {
    InPlace,
    Lines,
    Silent,
}

impl StatusStyle {
    pub(crate) fn of(context: &Context, progress: Option<Target>) -> Self {
        match progress {
            Some(target) if target.width().is_some() && context.variable("TERM") != Some("dumb") => {
                Self::InPlace
            }
            Some(_) => Self::Lines,
            None => Self::Silent,
        }
    }
}

/// The status line, and when anything was shown or printed last.
#[derive(Debug)]
pub(crate) struct Live {
    manner: StatusStyle,
    /// What it shows, and how many columns of the terminal's line it covers.
    line: String,
    covered: usize,
    shown: Timestamp,
    /// When the agent printed something last.
    heard: Timestamp,
    /// What its running attempt reported.
    used: Usage,
}

impl Live {
    pub(crate) fn new(manner: StatusStyle, now: Timestamp) -> Self {
        Self { manner, line: String::new(), covered: 0, shown: now, heard: now, used: Usage::default() }
    }

    /// After how long without anything else to be seen it wants to be renewed.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match self.manner {
            StatusStyle::InPlace => Some(IN_PLACE),
            StatusStyle::Lines => Some(IN_LOG.0),
            StatusStyle::Silent => None,
        }
    }

    /// Notes what the agent printed or used.
    pub(crate) fn hear(&mut self, sight: &FollowEvent, now: Timestamp) {
        match sight {
            FollowEvent::Event(record) | FollowEvent::Past(record) => {
                if let Event::AttemptStarted(_) | Event::AttemptFinished(_) = record.event {
                    self.used = Usage::default();
                }
                return;
            }
            FollowEvent::Joined | FollowEvent::Quiet => return,
            FollowEvent::Said(AgentEvent::Tokens { of: Scope::Attempt, tokens }) => {
                self.used.tokens = *tokens
            }
            FollowEvent::Said(AgentEvent::Cost { of: Scope::Attempt, usd }) => self.used.cost = Some(*usd),
            FollowEvent::Said(_) | FollowEvent::Output { .. } => {}
        }
        self.heard = now;
    }

    pub(crate) fn shown(&mut self, now: Timestamp) {
        self.shown = now;
    }

    /// The bytes that update the line on a terminal of that width.
    pub(crate) fn renew(&mut self, state: &LoopState, width: Option<usize>, now: Timestamp) -> String {
        let is_log = self.manner == StatusStyle::Lines;
        let text = event_text::going_on(state, (self.heard, self.used), is_log, now);
        let Some(text) = text else { return self.erase() };
        match (self.manner, width) {
            (StatusStyle::InPlace, Some(width)) => self.over(&text, width),
            (StatusStyle::Lines, _) if now.duration_since(self.shown).as_secs() >= IN_LOG.1 => {
                self.shown = now;
                event_text::note(&text)
            }
            (StatusStyle::InPlace | StatusStyle::Lines | StatusStyle::Silent, _) => String::new(),
        }
    }

    /// Overwrites the line. The terminal's last column stays free: past it, a line would wrap.
    fn over(&mut self, text: &str, width: usize) -> String {
        let line = phrase::cut(&format!("{} {text}", phrase::in_charset("·")), width.saturating_sub(1));
        if self.covered > 0 && line == self.line {
            return String::new();
        }
        line.clone_into(&mut self.line);
        let columns = display_width(&line);
        let rest = self.covered.saturating_sub(columns);
        self.covered = columns + rest;
        format!("\r{}{}", line.dimmed(), " ".repeat(rest))
    }

    /// The bytes that erase the line; empty if it is empty.
    pub(crate) fn erase(&mut self) -> String {
        // A key that was echoed, like ^C, stands after it.
        const ECHOED: usize = 2;
        match std::mem::take(&mut self.covered) {
            0 => String::new(),
            covered => format!("\r{}\r", " ".repeat(covered + ECHOED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::Record;
    use refrain_core::agent::{Tokens, Usd};
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A loop to which this happened, a second apart, after it was started with these limits.
    fn after(limits: Value, events: &[Value]) -> LoopState {
        let spec = json!({
            "id": "job", "prompt": "p", "iteration_context": true, "limits": limits, "project": "/p", "worktree": "/p",
            "working_dir": "/p", "depth": 0, "output_cap": 1024,
            "agent": {
                "kind": "generic", "program": "a", "args": [], "prompt_mode": "auto", "clean_env": false, "env": {},
                "permissions": "auto", "output_format": "auto"
            }
        });
        let start = json!({"type": "loop.started", "data": {"format": 1, "refrain": "0", "spec": spec}});
        let runner = json!({"runner": {"process": {"pid": 1, "start": 1}, "boot": "b", "host": "h"}});
        let runner = json!({"type": "runner.started", "data": runner});
        let begun = json!({"type": "iteration.begun", "data": {"iteration": 1}});
        let attempt = json!({"type": "attempt.started", "data": {"iteration": 1, "attempt": 1}});
        let all = [start, runner, begun, attempt].into_iter().chain(events.iter().cloned());
        let records = (0..).zip(all).map(|(n, event)| Record {
            seq: n + 1,
            at: at(0),
            event: serde_json::from_value(event).unwrap(),
        });
        let records: Vec<_> = records.collect();
        let mut state = LoopState::begin(&records[0]).unwrap();
        records[1..].iter().for_each(|record| state.apply(record).unwrap());
        state
    }

    /// The content of the line on a terminal of that width after all writes.
    fn line(writes: &[String], width: usize) -> String {
        let mut screen =
            vt100::Parser::new(3.try_into().unwrap(), u16::try_from(width).unwrap().try_into().unwrap(), 0);
        writes.iter().for_each(|text| screen.process(text.as_bytes()));
        let text = screen.screen().contents();
        assert!(text.lines().skip(1).all(|line| line.trim().is_empty()), "it stays in its line: {text:?}");
        text.lines().next().unwrap_or_default().trim_end().to_owned()
    }

    #[test]
    fn a_line_in_place_is_written_over_and_erased() {
        let state = after(json!({"max_iterations": 3, "timeout_ms": 600_000}), &[]);
        for width in [20, 40, 80, 200] {
            let mut live = Live::new(StatusStyle::InPlace, at(0));
            let renew = |live: &mut Live, seconds| live.renew(&state, Some(width), at(seconds));
            let mut writes = vec![renew(&mut live, 9)];
            assert!(line(&writes, width).starts_with("· iteration 1/3 ru"), "{writes:?}");
            writes.push(renew(&mut live, 599));
            assert!(line(&writes, width).starts_with("· iteration 1/3 ru"), "{writes:?}");
            assert!(
                width < 60 || line(&writes, width).ends_with("runs for 9m 59s in silence; it has 1s more")
            );
            let tokens = Tokens { input: Some(146_000), cached_input: Some(90_000), output: Some(5_000) };
            let cost = AgentEvent::Cost { of: Scope::Attempt, usd: Usd::from(0.65) };
            for event in [AgentEvent::Tokens { of: Scope::Attempt, tokens }, cost] {
                live.hear(&FollowEvent::Said(event), at(585));
            }
            writes.push(renew(&mut live, 600));
            let whole =
                "· iteration 1/3 runs for 10m 0s, silent for 15s; 151.0k tokens, $0.65; it has 0s more";
            assert!(width < 200 || line(&writes, width) == whole, "{}", line(&writes, width));
            assert!(width < 80 || line(&writes, width).contains("$0.65"), "{}", line(&writes, width));
            writes.push(live.erase());
            assert_eq!(line(&writes, width), "", "{writes:?}");
            assert_eq!(live.erase(), "");
        }
    }

    #[test]
    fn a_log_gets_a_line_now_and_then() {
        let wait = json!({"type": "wait.started", "data": {"kind": "limit", "until": at(7200).to_string()}});
        let failed = json!({"type": "attempt.finished", "data": {
            "exit": {"code": 1}, "stdout_bytes": 0, "stderr_bytes": 0, "preview": ""
        }});
        let spawned = json!({"type": "attempt.spawned", "data": {"process": {"pid": 2, "start": 2}}});
        let state = after(json!({"max_iterations": 3}), &[spawned, failed, wait]);
        let mut live = Live::new(StatusStyle::Lines, at(0));
        let mut renew =
            |seconds| anstream::adapter::strip_str(&live.renew(&state, None, at(seconds))).to_string();
        assert_eq!(renew(540), "");
        let said = "· waits for the provider's limit: 1h 50m left; refrain resume job --now tries at once\n";
        assert_eq!(renew(600), said);
        assert_eq!((renew(660), renew(1199)), (String::new(), String::new()));
        assert!(renew(1200).contains("1h 40m left"));
        let mut silent = Live::new(StatusStyle::Silent, at(0));
        assert_eq!((silent.renew(&state, None, at(7000)), silent.patience()), (String::new(), None));
    }
}
