//! The state of a workspace: messages with their reactions and files, the calls received, and the faults to play.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The rate limit of a channel: one message a second, minus the delay that a busy machine may add to a single call.
const PACE: Duration = Duration::from_millis(700);

/// The fault of the next call of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    Refuse(&'static str),
    /// It is not done, and is to come again in so many seconds.
    Limit(u64),
    /// It is not done, and the answer makes no sense.
    Broken,
    /// The call is executed, and the connection closed before the answer.
    HangUpBehind,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub body: Value,
    pub ok: bool,
    pub at: Instant,
}

#[derive(Clone, Debug)]
pub struct SlackMessage {
    pub channel: String,
    pub ts: String,
    pub thread: Option<String>,
    pub text: String,
    pub blocks: Vec<Value>,
    /// All texts that it had, the last one last.
    pub texts: Vec<String>,
    pub reactions: BTreeSet<String>,
    /// All reactions that were set, in order.
    pub ladder: Vec<String>,
    pub files: Vec<(String, String)>,
    /// The only user who sees it.
    pub only_for: Option<String>,
    metadata: Value,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) said: Vec<SlackMessage>,
    pub(super) calls: Vec<Call>,
    pub(super) moods: BTreeMap<String, VecDeque<CallFault>>,
    pub(super) uploads: BTreeMap<String, (String, String)>,
    written: BTreeMap<String, Instant>,
    count: u64,
    pub(super) is_down: bool,
    /// How many calls came while it was.
    pub(super) turned_away: u64,
    pub(super) outbox: VecDeque<String>,
    pub(super) acknowledged: Vec<String>,
    pub(super) opened: u64,
    pub(super) closed: u64,
}

impl World {
    pub(super) fn next_ts(&mut self) -> String {
        self.count += 1;
        format!("1700000000.{:06}", self.count)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn put(&mut self, channel: &str, thread: Option<&str>, text: &str) -> &mut SlackMessage {
        let ts = self.next_ts();
        self.said.push(SlackMessage {
            channel: channel.to_owned(),
            ts,
            thread: thread.map(str::to_owned),
            text: text.to_owned(),
            blocks: Vec::new(),
            texts: vec![text.to_owned()],
            reactions: BTreeSet::new(),
            ladder: Vec::new(),
            files: Vec::new(),
            only_for: None,
            metadata: Value::Null,
        });
        self.said.last_mut().expect("it was just said")
    }

    pub(super) fn find(&mut self, channel: &str, ts: &str) -> Option<&mut SlackMessage> {
        self.said.iter_mut().find(|said| said.channel == channel && said.ts == ts && said.only_for.is_none())
    }

    pub(super) fn is_time(&mut self, channel: &str) -> bool {
        let now = Instant::now();
        let is_time = self.written.get(channel).is_none_or(|last| now.duration_since(*last) >= PACE);
        if is_time {
            self.written.insert(channel.to_owned(), now);
        }
        is_time
    }
}

impl SlackMessage {
    pub(super) fn set(&mut self, body: &Value) {
        self.text = body["text"].as_str().unwrap_or_default().to_owned();
        self.texts.push(self.text.clone());
        self.blocks = body["blocks"].as_array().cloned().unwrap_or_default();
    }

    pub(super) fn attach(&mut self, body: &Value) {
        self.metadata = body["metadata"].clone();
        self.blocks = body["blocks"].as_array().cloned().unwrap_or_default();
    }

    /// As `conversations.history` has it.
    pub(super) fn listed(&self, with_metadata: bool) -> Value {
        let files: Vec<_> = self.files.iter().map(|(name, _)| json!({"name": name, "title": name})).collect();
        let mut listed = json!({"type": "message", "ts": self.ts, "text": self.text, "files": files});
        if with_metadata && !self.metadata.is_null() {
            listed["metadata"] = self.metadata.clone();
        }
        listed
    }

    /// The button of the message: its action, and its value.
    pub fn button(&self) -> Option<(String, String)> {
        let element = self.blocks.iter().find(|block| block["type"] == "actions")?["elements"][0].clone();
        Some((element["action_id"].as_str()?.to_owned(), element["value"].as_str()?.to_owned()))
    }
}
