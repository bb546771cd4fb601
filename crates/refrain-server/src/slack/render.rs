//! Renders a loop for Slack (seed-systems 6.5): the text of its message, its button, its reaction. Pure. Text from
//! agents is untrusted: it makes no link, mentions no user, and is cut.

use std::fmt::Write;

use refrain_app::verbs::approve::Approve;
use refrain_core::LoopId;
use refrain_core::prompt::state_file::{self, WorkStatus};
use refrain_core::text::{cut, in_order, squeeze};
use refrain_core::view::{ApprovalWord, Charset, StatusWord, Verification, progress, sum};
use refrain_engine::{DetailView, StopRequest};
use serde_json::{Value, json};

const CELLS: u32 = 10;
/// How much of a goal is quoted, in characters (seed 003).
const GOAL: usize = 200;
/// The longest reason or need, in characters.
const LINE: usize = 300;
/// The longest notes in a thread, in characters; longer ones become a file.
const INLINE: usize = 2_900;
/// The longest notes if no file can be uploaded.
const FALLBACK: usize = 3_500;
/// How the button's id begins; the loop's id follows.
pub(super) const BUTTON: &str = "refrain:loop_stop:";
/// The reactions of a loop that is at work: before its first iteration is over, and then.
const IN_FLIGHT: [&str; 2] = ["hourglass_flowing_sand", "arrows_counterclockwise"];

#[derive(Clone, Debug)]
pub(super) struct LoopSummary {
    pub(super) id: LoopId,
    pub(super) goal: String,
    pub(super) status: StatusWord,
    pub(super) verified: Option<bool>,
    pub(super) charged: u32,
    pub(super) of: Option<u32>,
    pub(super) cost: Option<f64>,
    pub(super) at_least: bool,
    pub(super) max_cost: Option<f64>,
    pub(super) reason: String,
    pub(super) needs: Option<String>,
    pub(super) says: Option<WorkStatus>,
    /// When it was started, in milliseconds of the epoch.
    pub(super) started: i64,
    /// When it stopped, likewise.
    pub(super) ended: Option<i64>,
    /// The notes of the agent, without the front matter.
    pub(super) notes: String,
    pub(super) seq: u64,
    pub(super) bytes: u64,
}

/// The beginning of a tree's name, which tells it from others.
fn cut_tree(tree: &str) -> &str {
    tree.get(..10).unwrap_or(tree)
}

impl From<DetailView> for LoopSummary {
    fn from(glance: DetailView) -> Self {
        let DetailView { status, goal, notes, says, seq, bytes, .. } = glance;
        let awaited = status.approval.as_ref().filter(|it| it.state == ApprovalWord::Awaited);
        let tree = awaited.map(|it| it.tree.as_deref().map_or(Approve::NO_TREE, |tree| cut_tree(tree)));
        let here = tree.map(|tree| format!("here: approve {} {tree}", status.id));
        let needs = status.needs.into_iter().chain(here).reduce(|needs, here| format!("{needs}; {here}"));
        Self {
            id: status.id,
            goal,
            status: status.status,
            verified: status.verified,
            charged: status.charged,
            of: status.max_iterations,
            cost: status.usage.cost_usd,
            at_least: status.usage.cost_at_least,
            max_cost: status.limits.max_cost.map(f64::from),
            reason: status.reason,
            needs,
            says,
            started: status.started_at.as_millisecond(),
            ended: status.ended_at.map(|at| at.as_millisecond()),
            notes: notes
                .as_deref()
                .map(|notes| state_file::body(notes).trim().to_owned())
                .unwrap_or_default(),
            seq,
            bytes,
        }
    }
}

/// A message: its text, and its blocks, if any.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageView {
    pub(super) text: String,
    pub(super) blocks: Vec<Value>,
}

impl MessageView {
    pub(super) fn mark(&self) -> String {
        let whole = format!("{}{}", self.text, json!(self.blocks));
        blake3::hash(whole.as_bytes()).to_hex()[..16].to_owned()
    }
}

/// The notes of an agent, for a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notes {
    Said(String),
    /// A file with a message; if no file can be uploaded, `instead` as a message.
    File {
        comment: String,
        content: String,
        instead: String,
    },
}

impl LoopSummary {
    /// Renders the message of a running or stopped loop.
    pub(super) fn view(&self, stop: Option<&StopRequest>) -> MessageView {
        let text = match (self.status.has_stopped(), self.charged) {
            (true, _) => self.last_words(stop),
            (false, 0) => self.first_words(),
            (false, _) => self.line("repeat", 2),
        };
        if self.status.has_stopped() {
            return MessageView { text, blocks: Vec::new() };
        }
        let section = json!({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}});
        let below = match stop {
            None => {
                json!({"type": "actions", "block_id": format!("refrain_actions_{}", self.id), "elements": [{
                    "type": "button", "style": "danger", "text": {"type": "plain_text", "text": "Stop loop"},
                    "action_id": format!("{BUTTON}{}", self.id), "value": self.id.as_str(),
                }]})
            }
            Some(stop) => {
                json!({"type": "context", "elements": [{"type": "mrkdwn", "text": requested(stop)}]})
            }
        };
        MessageView { text, blocks: vec![section, below] }
    }

    pub(super) fn first_words(&self) -> String {
        let mut text = format!(":repeat: Loop `{}` · ", self.id);
        let _ = match self.of {
            Some(of) => write!(text, "up to {of} iterations"),
            None => write!(text, "no cap on its iterations"),
        };
        if let Some(max) = self.max_cost {
            let _ = write!(text, " · up to ${max:.2}");
        }
        format!("{text}\n{}", quoted(&cut(self.goal.trim(), GOAL)))
    }

    fn last_words(&self, stop: Option<&StopRequest>) -> String {
        let mut text = self.line(self.reaction(), 4);
        let _ = write!(text, "\n{}", said(&self.reason, LINE));
        if let Some(needs) = &self.needs {
            let _ = write!(text, "\n:raised_hand: {}", said(needs, LINE));
        }
        if let Some(stop) = stop.filter(|_| self.status == StatusWord::Cancelled) {
            let _ = write!(text, "\n{}", requested(stop));
        }
        text
    }

    /// The line with the bar; `digits` is the precision of its cost.
    fn line(&self, emoji: &str, digits: usize) -> String {
        let bar = bar(self.charged, self.of.unwrap_or(0));
        let mut parts = vec![format!(":{emoji}: Loop `{}`", self.id), bar, progress(self.charged, self.of)];
        parts.extend(match (self.cost, self.max_cost) {
            (Some(cost), Some(max)) => {
                Some(sum(&format!("${cost:.digits$}"), self.at_least) + &format!("/${max:.2}"))
            }
            (Some(cost), None) => Some(sum(&format!("${cost:.digits$}"), self.at_least)),
            (None, Some(max)) => Some(format!("$?/${max:.2}")),
            // An unknown cost is not zero.
            (None, None) => None,
        });
        parts.push(match (self.status, self.verified, self.says) {
            (StatusWord::Completed, verified, _) => {
                let label = Verification::of(self.status, verified).label(Charset::Unicode);
                format!("completed, {label}")
            }
            (StatusWord::Running, _, Some(WorkStatus::Blocked)) => {
                "running, its agent says blocked".to_owned()
            }
            (word, ..) => word.as_str().to_owned(),
        });
        parts.join(" · ")
    }

    pub(super) fn reaction(&self) -> &'static str {
        match self.status {
            StatusWord::Running | StatusWord::Waiting if self.charged == 0 => IN_FLIGHT[0],
            StatusWord::Running | StatusWord::Waiting => IN_FLIGHT[1],
            StatusWord::Completed if self.verified == Some(true) => "white_check_mark",
            StatusWord::Completed => "large_yellow_circle",
            StatusWord::Cancelled => "octagonal_sign",
            StatusWord::IterationCap | StatusWord::BudgetExceeded => "warning",
            StatusWord::TimedOut => "alarm_clock",
            StatusWord::Failed | StatusWord::Stuck | StatusWord::Crashed => "x",
            StatusWord::Blocked => "raised_hand",
            StatusWord::Paused | StatusWord::Moved => "double_vertical_bar",
        }
    }

    /// The reactions to remove before: all that may be set.
    pub(super) fn old_reactions<'a>(&self, standing: Option<&'a str>) -> Vec<&'a str> {
        let own = self.reaction();
        let standing = standing.filter(|name| !IN_FLIGHT.contains(name));
        IN_FLIGHT.into_iter().chain(standing).filter(|name| *name != own).collect()
    }

    /// The notes of its agent; none if they are empty.
    pub(super) fn state(&self) -> Option<Notes> {
        let header = format!(":notebook: State of loop `{}`", self.id);
        let message = |most| format!("{header}\n{}", said_lines(&self.notes, most));
        match self.notes.chars().count() {
            0 => None,
            length if length <= INLINE => Some(Notes::Said(message(INLINE))),
            _ => Some(Notes::File {
                comment: format!("{header}: {}", said(&self.notes, GOAL)),
                content: self.notes.clone(),
                instead: message(FALLBACK),
            }),
        }
    }
}

/// The user who pressed the button, and whether the loop was running.
fn requested(StopRequest { user, was_running }: &StopRequest) -> String {
    let how = if *was_running { "it was running" } else { "it had stopped already" };
    format!("Stop requested by <@{}> · {how}", escaped(user))
}

/// The bar: as many cells as iterations are over, of ten.
fn bar(done: u32, of: u32) -> String {
    let full = match of {
        0 => 0,
        _ => {
            ((u64::from(done) * u64::from(CELLS) * 2 + u64::from(of)) / (u64::from(of) * 2)).min(10) as usize
        }
    };
    format!("[{}{}]", "█".repeat(full), "░".repeat(CELLS as usize - full))
}

/// Foreign text in one line of a message.
pub(super) fn said(text: &str, most: usize) -> String {
    escaped(&cut(&squeeze(text), most))
}

/// Foreign text with its line breaks.
fn said_lines(text: &str, most: usize) -> String {
    escaped(&cut(text, most))
}

fn quoted(text: &str) -> String {
    escaped(text).lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// The text as Slack shows it to the letter: no entity of it is one of Slack's, and no address in it is made a link.
pub(super) fn escaped(text: &str) -> String {
    let text = in_order(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // A word joiner is not seen.
    text.replace("://", ":\u{2060}//")
        .replace("www.", "www\u{2060}.")
        .replace("mailto:", "mailto\u{2060}:")
        .replace('@', "@\u{2060}")
}
