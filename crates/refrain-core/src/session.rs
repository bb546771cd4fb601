//! A loop that an agent's own live session drives: the turns of the session are its attempts. Which session that is,
//! and how it works. What its hook decides is in `stop`; the hook's input and answer in the agents' own formats are in
//! `refrain-agents`.

mod stop;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Process;
use crate::spec::AgentKind;
use crate::text::printable;

pub use stop::{LoopOwner, SessionLoop, Stop, TurnDecision, by_turn, is_heard, reminder};

/// How often in a row a session may end its turn without having done anything: Claude Code itself ends it at the eighth
/// time, and its result is lost then (seed 000; agent-clis.md, "Hooks").
pub const MAX_IDLE_TURNS: u32 = 7;

/// What is special about a loop that a session drives, as it was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpec {
    /// The command of the session that began it: `/refrain:loop`.
    pub command: String,
    /// What that was given, verbatim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// Where its iterations are done.
    #[serde(default)]
    pub isolation: Isolation,
}

/// How long a session waits if nothing can be done: longer each time in a row, in seconds (seed 000).
pub const IDLE_WAITS: [u64; 4] = [60, 120, 300, 540];

impl SessionSpec {
    /// The name of its command, for the loop's name: `loop` of `/refrain:loop`.
    pub fn slug(&self) -> &str {
        self.command.rsplit([':', '/']).next().unwrap_or_default()
    }
}

/// Where the iterations of a session's loop are done (`--loop-shared`, `--loop-isolated`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Isolation {
    /// In the session itself, whose context holds all iterations.
    #[default]
    SharedContext,
    /// Each in a fresh agent below the session, which only counts and hears claims.
    Subagent,
}

/// The session that drives a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Which agent's it is.
    pub agent: AgentKind,
    /// Its own name; none until its first stop says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The agent's process, where it is known: as long as it lives, so does the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Which run of its machine.
    pub boot: String,
    /// Which machine.
    pub host: String,
}

impl Session {
    /// The begin of its name, for people; none where it has none.
    pub fn short(&self) -> Option<String> {
        let id = printable(self.id.as_deref()?).replace(char::is_whitespace, " ");
        Some(id.chars().take(8).collect())
    }

    /// Whether a stop of the session of this name is one of this loop's: never another's. One that has no name yet is
    /// recognised by its process, or not at all.
    pub fn is(&self, id: &str, process: Option<Process>) -> bool {
        match &self.id {
            Some(own) => own == id,
            None => self.process.is_some() && self.process == process,
        }
    }
}
