//! Notices for a person who is not watching: that a loop, or a plan, came to an end or needs them, and that a loop
//! waits for longer than they accept. Decided here, from the events of a journal alone, so that a second reading gives
//! the same notices; sending them is not done here.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::event::{Event, WaitKind};
use crate::ids::LoopId;
use crate::r#loop::LoopState;
use crate::plan::{PlanEvent, PlanState};
use crate::spec::{Millis, Spec};
use crate::view::{self, Alive, StatusWord, WaitsFor};
use crate::{Machine, Record};

/// The version of [`Notice`]; it rises when a reader of the last one would be misled.
pub const SCHEMA: u32 = 1;

/// What happened, as webhooks get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notice {
    /// The version of this object.
    pub schema: u32,
    /// Tells it from all others. The same however often it is sent: a receiver that has it already can drop it.
    pub key: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: NoticeKind,
    /// When, as the journal has it.
    pub at: Timestamp,
    /// Which loop, or plan.
    pub id: LoopId,
    /// The number of the event in its journal.
    pub seq: u64,
    /// The name of its project's folder.
    pub project: String,
    /// How it stands.
    pub status: StatusWord,
    /// Whether gates proved it; null where none decides.
    pub verified: Option<bool>,
    /// Why it stands so, in a sentence.
    pub reason: String,
    /// What a person has to do or type; null where nothing is needed.
    pub needs: Option<String>,
    /// Until when it waits, of one that does.
    pub wait_until: Option<Timestamp>,
    /// The iteration that it is in; null of a plan.
    pub iteration: Option<u32>,
    /// How many it may have; null without a cap, and of a plan.
    pub max_iterations: Option<u32>,
    /// What the agent said of its last iteration in one line, where it did.
    pub summary: Option<String>,
    /// What a person can reply.
    #[serde(skip)]
    pub reply: Option<Reply>,
}

/// What a person can reply to a loop that waits for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub kind: ReplyKind,
    /// The loop, the moment at which it stopped, and the tree that it waits with: a code that is made of it is good for
    /// nothing else.
    pub binding: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// A yes to the tree that waits; none without a repository.
    Approve { tree: Option<String> },
    /// An answer to its question.
    Answer,
}

impl Reply {
    /// None for a loop that waits for nothing that a message can say.
    pub fn to(state: &LoopState) -> Option<Self> {
        let ended = state.ended?;
        let status = view::status(state, Alive::NO_RUNNER);
        let kind = match status.waits_for? {
            WaitsFor::Approval => ReplyKind::Approve {
                tree: state.awaits_approval()?.tree.map(|tree| tree.as_str().to_owned()),
            },
            WaitsFor::Answer => ReplyKind::Answer,
            WaitsFor::Login
            | WaitsFor::Setup
            | WaitsFor::Provider
            | WaitsFor::Repository
            | WaitsFor::Tasks => return None,
        };
        let binding = format!("{}\n{}\n{}\n{kind:?}\n", status.id, status.started_at, ended.at);
        Some(Self { kind, binding })
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum NoticeKind {
    /// It stopped: it is done, at a limit, paused, cancelled, or needs a person.
    #[serde(rename = "loop.ended")]
    Ended,
    /// It waits for its provider, for longer than was asked about.
    #[serde(rename = "loop.waits")]
    Waits,
    /// A plan stopped, likewise.
    #[serde(rename = "plan.ended")]
    PlanEnded,
}

pub trait NoticeCheck: Machine {
    /// The notice for the record; `self` is the state after it.
    fn notice(&self, record: &Record<Self::Event>, lookout: &mut NoticeWatch) -> Option<Notice>;

    fn spec(&self) -> &Spec;
}

/// The facts from a loop's events, in their order, that affect its notices.
#[derive(Clone, Copy, Debug)]
pub struct NoticeWatch {
    longest: Option<Duration>,
    /// When the first of the waits in a row began.
    waits_since: Option<Timestamp>,
    is_told: bool,
}

impl NoticeWatch {
    /// For waits longer than `longest`, if set; and for every end.
    pub fn new(longest: Option<Millis>) -> Self {
        Self { longest: longest.map(Duration::from), waits_since: None, is_told: false }
    }

    fn see(&mut self, record: &Record, state: &LoopState) -> Option<Notice> {
        let is_end = matches!(record.event, Event::LoopEnded(_));
        if is_end || matches!(record.event, Event::IterationBegun { .. } | Event::LoopResumed { .. }) {
            *self = Self { waits_since: None, is_told: false, ..*self };
            return is_end.then(|| notice(NoticeKind::Ended, record, state));
        }
        let Event::WaitStarted(wait) = &record.event else { return None };
        // A person expects the rests between iterations.
        if wait.kind == WaitKind::Pace {
            return None;
        }
        // An outage is many waits in a row.
        let since = *self.waits_since.get_or_insert(record.at);
        let length = Duration::try_from(wait.until.duration_since(since)).unwrap_or_default();
        let is_news = self.longest.is_some_and(|longest| length > longest) && !self.is_told;
        self.is_told |= is_news;
        is_news.then(|| notice(NoticeKind::Waits, record, state))
    }
}

impl NoticeCheck for LoopState {
    fn notice(&self, record: &Record, lookout: &mut NoticeWatch) -> Option<Notice> {
        lookout.see(record, self)
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl NoticeCheck for PlanState {
    fn notice(&self, record: &Record<PlanEvent>, _: &mut NoticeWatch) -> Option<Notice> {
        let PlanEvent::Ended(_) = record.event else { return None };
        let status = view::plan::status(self, &Default::default(), Some(false), record.at);
        Some(Notice {
            schema: SCHEMA,
            key: key(&status.id, status.started_at, record.seq),
            kind: NoticeKind::PlanEnded,
            at: record.at,
            seq: record.seq,
            project: folder(&self.spec.each),
            status: status.status,
            verified: status.verified,
            reason: status.reason,
            needs: status.needs,
            wait_until: None,
            iteration: None,
            max_iterations: None,
            summary: None,
            reply: None,
            id: status.id,
        })
    }

    fn spec(&self) -> &Spec {
        &self.spec.each
    }
}

/// A key of one notice, equal for each delivery of it: a name can be given again once a loop is archived.
fn key(id: &LoopId, started_at: Timestamp, seq: u64) -> String {
    format!("{id}_{}_{seq}", started_at.as_millisecond())
}

fn folder(spec: &Spec) -> String {
    spec.project.file_name().unwrap_or_default().to_owned()
}

fn notice(kind: NoticeKind, record: &Record, state: &LoopState) -> Notice {
    let alive = match kind {
        NoticeKind::Ended | NoticeKind::PlanEnded => Alive::NO_RUNNER,
        NoticeKind::Waits => Alive::DRIVEN,
    };
    let status = view::status(state, alive);
    let last = state.last_charged().and_then(|attempt| attempt.finished.as_ref());
    Notice {
        schema: SCHEMA,
        key: key(&status.id, status.started_at, record.seq),
        kind,
        at: record.at,
        seq: record.seq,
        project: folder(&state.spec),
        status: status.status,
        verified: status.verified,
        reason: status.reason,
        needs: status.needs,
        wait_until: status.wait.map(|wait| wait.until),
        iteration: Some(status.iteration),
        max_iterations: status.max_iterations,
        summary: last.and_then(|finished| finished.summary.clone()),
        reply: Reply::to(state).filter(|_| kind == NoticeKind::Ended),
        id: status.id,
    }
}
