//! What a person sees of a loop while it runs: a header, the agent's words as they come, a line for each event that
//! matters, and at the end what happened and what to type next. Plain lines, so that it reads the same in a log.
//!
//! What the agent printed is data: control characters never reach the terminal.

use std::io::Write;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use owo_colors::OwoColorize;
use refrain_core::agent::AgentEvent;
use refrain_core::event::{Ask, Event, Exit, Record, StopReason, Urgency, WaitKind};
use refrain_core::r#loop::{Attempt, LoopState, Outcome};
use refrain_core::spec::{Millis, Permissions, Spec};
use refrain_core::text::printable;
use refrain_core::view::{self, Alive};
use refrain_engine::{Follower, Sight, chain, ladder};

use crate::committed;
use crate::lines::Lines;
use crate::said::Said;
use crate::{out, phrase};

/// Where progress goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// A person's view of one loop.
#[derive(Debug)]
pub(crate) struct Screen {
    progress: Option<Target>,
    events: bool,
    state: Option<LoopState>,
    /// The agent's standard output and standard error.
    streams: [Lines; 2],
    said: Said,
    /// Nobody reads any more.
    closed: bool,
}

impl Screen {
    /// Shows progress on `progress`, and prints events as JSON lines on standard output if asked.
    pub(crate) fn new(progress: Option<Target>, events: bool) -> Self {
        Self {
            progress,
            events,
            state: None,
            streams: Default::default(),
            said: Said::default(),
            closed: false,
        }
    }

    /// Shows all there is to see, until the loop has stopped.
    pub(crate) fn run(mut self, mut follower: Follower) {
        while !self.closed {
            match follower.look() {
                Ok(Some(Sight::Event(record))) => self.event(&record),
                Ok(Some(Sight::Past(record))) => drop(self.fold(&record)),
                // What ended an attempt its summary says.
                Ok(Some(Sight::Said(AgentEvent::Fault(_)))) => {}
                Ok(Some(Sight::Said(event))) => {
                    let text = self.said.show(&event);
                    self.show(&text);
                }
                Ok(Some(Sight::Output { stderr, bytes })) => self.output(stderr, &bytes),
                Ok(None) => return,
                Err(error) => return out::tell(&format!("refrain: {}\n", chain(&error))),
            }
        }
    }

    fn event(&mut self, record: &Record) {
        if self.events
            && let Ok(mut line) =
                serde_json::to_vec(&Record { event: record.event.clone().redacted(), ..record.clone() })
        {
            line.push(b'\n');
            self.closed |= !out::print_raw(&line);
        }
        self.end_lines();
        let settled = self.fold(record);
        if let Some(state) = &self.state {
            let text = lines(state, record, settled.then(|| state.attempts.last()).flatten());
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

    /// Whole lines as they come; a line without an end waits for its end or for the next event.
    fn output(&mut self, stderr: bool, bytes: &[u8]) {
        let text = self.streams[usize::from(stderr)].push(bytes);
        self.show(&text);
    }

    fn end_lines(&mut self) {
        let texts = self.streams.each_mut().map(Lines::end);
        texts.iter().chain([&self.said.end()]).for_each(|text| self.show(text));
    }

    fn show(&mut self, text: &str) {
        let written = match self.progress {
            _ if text.is_empty() => Ok(()),
            None => Ok(()),
            Some(Target::Stdout) => anstream::stdout().lock().write_all(text.as_bytes()),
            Some(Target::Stderr) => anstream::stderr().lock().write_all(text.as_bytes()),
        };
        self.closed |= written.is_err();
    }
}

/// What one event says to a person.
fn lines(state: &LoopState, record: &Record, settled: Option<&Attempt>) -> String {
    let id = &state.spec.id;
    let is_ending = state.in_flight().is_some_and(|flight| flight.stopping.is_some());
    let mut text = match &record.event {
        Event::LoopStarted(_) => header(&state.spec),
        Event::IterationBegun { iteration } => {
            let progress = phrase::progress(*iteration, state.limits.max_iterations);
            format!("{}\n", format!("[loop {id} iteration {progress}]").bold())
        }
        Event::BaseTaken(base) => {
            committed::base(base, &state.spec.git).iter().map(|words| note(words)).collect()
        }
        Event::BaseRefused { error } => note(&format!("git did not do what the loop needs: {error}")),
        Event::CommitSettled(report) => {
            committed::settled(report, &state.git.newly_left_out).iter().map(|words| note(words)).collect()
        }
        Event::WorktreeReleased { kept } => {
            note(&committed::released(kept.as_deref(), state.spec.worktree.as_str()))
        }
        Event::AttemptStarted(attempt) if attempt.attempt > 1 => note(&format!("attempt {attempt}")),
        Event::AttemptStopRequested { because } => {
            let why = match because {
                StopReason::Cancel => "cancelled: ending the agent",
                StopReason::Interrupt => "this attempt is refunded: ending the agent",
                StopReason::TimeLimit => "the attempt took too long: ending the agent",
                StopReason::Silence => "the agent was silent for too long: ending it",
                StopReason::LoopDuration => "the loop's time is over: ending the agent",
                StopReason::Budget => "the budget is used up: ending the agent",
                StopReason::OutputLost => "what the agent prints cannot be kept: ending it",
            };
            note(&format!("{why}, which takes {} at most", grace(state)))
        }
        Event::AttemptSwept { killed, survivors } => swept(*killed, survivors),
        Event::AttemptSpawnFailed { error } => note(&format!("the agent could not be started: {error}")),
        Event::Asked { request, ask } => note(&match ask {
            Ask::Pause(Urgency::AfterIteration) if request.is_none() => {
                "pausing after this iteration; Ctrl-C again ends the agent now and refunds the attempt"
                    .to_owned()
            }
            Ask::Pause(Urgency::AfterIteration) => "asked to pause after this iteration".to_owned(),
            Ask::Pause(Urgency::Now) if is_ending => {
                format!(
                    "still ending the agent: it has {} from when it was asked to end, then it is killed",
                    grace(state)
                )
            }
            Ask::Pause(Urgency::Now) => "pausing now".to_owned(),
            Ask::Cancel(Urgency::AfterIteration) => "asked to cancel after this iteration".to_owned(),
            Ask::Cancel(Urgency::Now) => "cancelling now".to_owned(),
            Ask::Steer(words) => format!("the next prompt will say: {words}"),
            Ask::Proceed => "waiting no longer".to_owned(),
        }),
        Event::WaitStarted(wait) => {
            let left = wait.until.duration_since(record.at).unsigned_abs();
            let what = match wait.kind {
                WaitKind::Pace => "rests",
                WaitKind::Limit => "waits for the provider's limit to be reset,",
                WaitKind::Outage => "waits for the provider to work again,",
            };
            note(&format!("{what} until {} ({})", clock(wait.until), Millis::from(left)))
        }
        Event::LoopResumed { .. } => note("resumed"),
        Event::RunnerStarted { interrupted: Some(attempt), adopted: Some(finished), .. }
            if finished.exit == Exit::Unseen =>
        {
            note(&format!("attempt {attempt} had finished when its runner was gone; its result is used"))
        }
        Event::RunnerStarted { interrupted: Some(attempt), .. } => {
            note(&format!("attempt {attempt} was interrupted; it is refunded and tried again"))
        }
        Event::JournalTorn { bytes, .. } => {
            note(&format!("the journal's last {bytes} bytes were torn, and put aside"))
        }
        Event::JournalRestored { .. } => note("the journal had been deleted, and was written back"),
        Event::LoopEnded(_)
        | Event::RunnerStarted { .. }
        | Event::AttemptStarted(_)
        | Event::AttemptSpawned { .. }
        | Event::AttemptFinished(_) => String::new(),
    };
    // Of an attempt that was lost with its runner all is said already.
    if let (Some(attempt), false) = (settled, matches!(record.event, Event::RunnerStarted { .. })) {
        text.push_str(&summary(attempt));
    }
    if let Event::LoopEnded(_) = record.event {
        text.push_str(&closing(state));
    }
    text
}

/// How long an agent has to end in its own way.
fn grace(state: &LoopState) -> Millis {
    ladder(state.spec.agent.kind).longest().into()
}

fn note(text: &str) -> String {
    format!("{} {}\n", "·".dimmed(), printable(text).replace('\n', " ").dimmed())
}

/// What became of the processes that an agent left running.
fn swept(killed: u32, survivors: &[i32]) -> String {
    let mut text = String::new();
    if killed > 0 {
        let processes = phrase::counted(killed, "process", "processes");
        text.push_str(&note(&format!("ended {processes} that the agent left behind")));
    }
    if !survivors.is_empty() {
        text.push_str(&note(&format!("the agent left processes behind that cannot be ended: {survivors:?}")));
    }
    text
}

/// What will run, and until when.
fn header(spec: &Spec) -> String {
    let command = words(std::iter::once(&spec.agent.program).chain(&spec.agent.args));
    let mut until = match &spec.promise {
        Some(promise) => format!("it says {}", promise.tag()),
        None => "it ends with exit code 0".to_owned(),
    };
    if let Some(cap) = spec.limits.max_iterations {
        until.push_str(&format!(", at most {}", phrase::iterations(cap)));
    }
    let limits = [
        (spec.limits.max_duration, "in all"),
        (spec.limits.timeout, "an attempt"),
        (spec.limits.idle_timeout, "of silence"),
        (spec.limits.pause, "between iterations"),
        (spec.limits.retry_for, "of waiting for its provider"),
    ];
    for (limit, what) in limits {
        if let Some(limit) = limit {
            until.push_str(&format!(", {limit} {what}"));
        }
    }
    if let Some(cap) = spec.limits.max_cost {
        until.push_str(&format!(", {cap} in all"));
    }
    if let Some(cap) = spec.limits.max_tokens {
        until.push_str(&format!(", {cap} tokens in all"));
    }
    let capped = spec.limits.max_cost.is_some() || spec.limits.max_tokens.is_some();
    if capped && spec.agent.kind.tells_usage_at_end() {
        until.push_str(" (known only when an iteration is over: one can overshoot)");
    }
    let mut rows = vec![
        ("runs", format!("{command} ({})", spec.agent.kind)),
        ("in", spec.working_dir.to_string()),
        ("until", until),
        ("proof", "no gates: a claim suffices, and stays unverified".to_owned()),
    ];
    if let Some(words) = committed::intent(&spec.git) {
        rows.push(("git", words));
    }
    if spec.agent.kind.streams() {
        let mut model = spec.agent.model.clone().unwrap_or_else(|| "the agent's own choice".to_owned());
        if let Some(price) = spec.agent.price.filter(|_| !spec.agent.kind.tells_cost()) {
            let (input, output) = (price.input, price.output);
            model.push_str(&format!(", reckoned at {input} in and {output} out for a million tokens"));
        }
        rows.insert(1, ("model", model));
        rows.insert(2, ("may", may(spec).to_owned()));
    }
    let mut text = format!("{} {}\n", "loop".bold(), spec.id.bold());
    for (name, value) in rows {
        text.push_str(&format!("  {:<6} {}\n", name.dimmed(), printable(&value).replace('\n', " ")));
    }
    text
}

/// What the agent may do unattended.
fn may(spec: &Spec) -> &'static str {
    match spec.agent.permissions {
        Permissions::Auto => "edit and run commands, confined as far as the agent confines itself (auto)",
        Permissions::Full => "do everything: its own questions are bypassed (full)",
        Permissions::Agent => "do what it is configured to (agent)",
    }
}

/// How an attempt ended, in one line.
fn summary(attempt: &Attempt) -> String {
    let took = Millis::from(attempt.ended_at.duration_since(attempt.started_at).unsigned_abs());
    let took = if attempt.finished.is_some() { format!(" took {took}") } else { String::new() };
    let how = match (attempt.outcome, attempt.finished.as_ref().map(|finished| finished.exit)) {
        (Outcome::Claimed, _) => "it claims to be done".green().to_string(),
        (Outcome::Ended, _) => "no claim".to_owned(),
        (Outcome::Failed, Some(Exit::Code(code))) => format!("exit code {code}").yellow().to_string(),
        (Outcome::Failed, Some(Exit::Signal(signal))) => {
            format!("ended by signal {signal}").yellow().to_string()
        }
        (Outcome::Failed, _) => "failed".yellow().to_string(),
        (Outcome::TimeLimit, _) => "stopped at its time limit".yellow().to_string(),
        (Outcome::Silence, _) => "stopped after its silence".yellow().to_string(),
        (Outcome::LoopDuration, _) => "stopped at the loop's end".to_owned(),
        (Outcome::Cancelled, _) => "cancelled".to_owned(),
        (Outcome::Interrupted, _) => "interrupted, refunded".to_owned(),
        (Outcome::Lost, _) => "lost with its runner or keeper, refunded".yellow().to_string(),
        (Outcome::NotStarted, _) => "not started".red().to_string(),
        (Outcome::Budget, _) => "stopped at its budget".yellow().to_string(),
        (Outcome::Limit, _) => "the provider's limit is used up, refunded".yellow().to_string(),
        (Outcome::Outage, _) => "the provider did not work, refunded".yellow().to_string(),
        (Outcome::Unable, _) => "it cannot work, refunded".red().to_string(),
        (Outcome::OutputLost, _) => "what it printed could not be kept, refunded".red().to_string(),
    };
    let near = attempt.finished.as_ref().and_then(|finished| finished.near_miss);
    let used = phrase::after(&phrase::used(&attempt.usage.into()));
    let mut text = format!("{} iteration {}{took}{used}: {how}\n", "·".dimmed(), attempt.id);
    let fault = attempt.finished.as_ref().and_then(|finished| finished.report.as_ref()?.fault.as_ref());
    if let Some(fault) = fault {
        text.push_str(&note(&fault.message));
    }
    if let Some(miss) = near.filter(|_| attempt.claim.is_none()) {
        text.push_str(&note(&format!("nearly a claim: {}", miss.hint())));
    }
    text
}

/// What happened, and what to type next.
pub(crate) fn closing(state: &LoopState) -> String {
    let status = view::status(state, Alive::NOBODY);
    let word = phrase::coloured(status.status, status.status.as_str());
    let took = Millis::from(state.active(state.updated_at));
    let used = phrase::after(&phrase::used(&status.usage));
    let mut text =
        format!("{word} after {} in {took}{used}: {}\n", phrase::iterations(status.charged), status.reason);
    let id = &status.id;
    let next = status.needs.unwrap_or_else(|| format!("refrain show {id}, refrain logs {id}"));
    text.push_str(&format!("  {} {next}\n", "next".dimmed()));
    text
}

/// A command line as it could be typed.
pub(crate) fn words<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let words: Vec<&str> = words.map(String::as_str).collect();
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

/// A time of day here, with its date.
pub(crate) fn clock(at: jiff::Timestamp) -> String {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let zone = ZONE.get_or_init(crate::values::time_zone);
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
