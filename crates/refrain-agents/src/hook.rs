//! The input and output of agents' hooks (agent-clis.md, "Hooks"; the samples there are the tests here). Unexpected
//! input is ignored: a hook that fails breaks the user's session.

mod transcript;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::spec::AgentKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::opencode;
use crate::wire::lax;

pub use transcript::{Tail, look};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookInput {
    pub session: String,
    pub cwd: Option<Utf8PathBuf>,
    /// The event, in the agent's name: `Stop`, `AfterAgent`, `SessionStart`.
    pub event: Option<String>,
    /// The event belongs to an agent below the session.
    pub is_below: bool,
    /// Why a session starts: `startup`, `resume`, `compact`.
    pub source: Option<String>,
    pub message: Option<String>,
    /// Gemini's joined text since its prompt, in place of a message: answers joined by line ends, and their parts by
    /// blanks, even within words (0.61.0). Only the transcript has the exact text.
    pub joined: Option<String>,
    /// A background task of the agent is running and will wake it: the turn has not ended.
    pub has_background: bool,
    pub transcript: Option<Utf8PathBuf>,
    /// The turn as OpenCode's plugin passes them on: it has no transcript.
    pub turn: Option<Tail>,
}

/// The fields of all agents: each agent uses some, and none has two meanings.
#[serde_with::apply(Option => #[serde(default, deserialize_with = "lax")])]
#[derive(Deserialize)]
struct Input {
    session_id: String,
    cwd: Option<String>,
    hook_event_name: Option<String>,
    agent_id: Option<Value>,
    source: Option<String>,
    last_assistant_message: Option<String>,
    prompt_response: Option<String>,
    background_tasks: Option<Vec<Value>>,
    transcript_path: Option<String>,
    answers: Option<Vec<opencode::session::MessageUsage>>,
}

/// Reads the input of a hook; none if it is not about a session.
pub fn read(input: &[u8]) -> Option<HookInput> {
    let input: Input = serde_json::from_slice(input).ok()?;
    Some(HookInput {
        session: Some(input.session_id).filter(|id| !id.trim().is_empty())?,
        cwd: input.cwd.map(Utf8PathBuf::from).filter(|cwd| cwd.is_absolute()),
        event: input.hook_event_name,
        is_below: input.agent_id.is_some_and(|id| !id.is_null()),
        source: input.source,
        message: input.last_assistant_message,
        joined: input.prompt_response,
        has_background: input.background_tasks.is_some_and(|tasks| !tasks.is_empty()),
        transcript: input.transcript_path.map(Utf8PathBuf::from).filter(|path| path.is_absolute()),
        turn: input.answers.map(opencode::session::turn),
    })
}

impl HookInput {
    /// Whether it is the end of the session's own turn, and not that of an agent below it.
    pub fn is_stop(&self) -> bool {
        !self.is_below && self.event.as_deref().is_none_or(|event| matches!(event, "Stop" | "AfterAgent"))
    }

    /// The last message. `kept` is the message in the transcript: a turn without text has none. If no transcript
    /// could be read, the end of the joined text: earlier text may belong to a message that was already handled.
    pub fn last_message(&self, kept: Option<Option<&str>>) -> Option<String> {
        let end = || self.joined.as_deref()?.trim_end().lines().next_back();
        let kept = kept.map(Option::unwrap_or_default);
        self.message.as_deref().or(kept).or_else(end).map(str::to_owned)
    }
}

/// The answer to the end of a turn that continues the session, with the next instruction. The same for all agents,
/// with no other field: Codex rejects an answer with a field that it does not know.
pub fn go_on(reason: &str) -> String {
    json!({ "decision": "block", "reason": reason }).to_string()
}

/// The answer to the end of a turn that lets the session stop and shows its user a text.
pub fn show(text: &str) -> String {
    json!({ "systemMessage": text }).to_string()
}

/// Whether an agent's sessions say what their turns use.
pub fn counts_tokens(agent: AgentKind) -> bool {
    matches!(agent, AgentKind::Claude | AgentKind::Codex | AgentKind::Gemini | AgentKind::Opencode)
}

/// Whether an agent's sessions say what their turns cost.
pub fn counts_cost(agent: AgentKind) -> bool {
    agent == AgentKind::Opencode
}

/// The variable by which the tools of a session are known, and those that they started. None for agents that give
/// their tools no name of the session.
pub fn tool_mark(agent: AgentKind, session: &str) -> Option<String> {
    Some(format!("{}={session}", session_variable(agent)?))
}

fn session_variable(agent: AgentKind) -> Option<&'static str> {
    match agent {
        AgentKind::Claude => Some("CLAUDE_CODE_SESSION_ID"),
        AgentKind::Codex => Some("CODEX_THREAD_ID"),
        AgentKind::Opencode => Some("REFRAIN_SESSION"),
        AgentKind::Gemini | AgentKind::Generic | AgentKind::Acp => None,
    }
}

/// The answer to the start of a session that tells it something.
pub fn tell(text: &str) -> String {
    json!({ "hookSpecificOutput": { "hookEventName": "SessionStart", "additionalContext": text } })
        .to_string()
}

/// The agent and the name of the session that a process was started in, from its variables.
pub fn surrounding<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<(AgentKind, Option<&'a str>)> {
    let around = [
        ("CLAUDECODE", AgentKind::Claude),
        ("CODEX_THREAD_ID", AgentKind::Codex),
        ("GEMINI_CLI", AgentKind::Gemini),
        ("OPENCODE", AgentKind::Opencode),
    ];
    let (_, agent) = around.into_iter().find(|(name, _)| variable(name).is_some())?;
    Some((agent, session_variable(agent).and_then(variable)))
}

pub fn is_program_of(agent: AgentKind, path: &Utf8Path) -> bool {
    let name = path.file_stem().unwrap_or_default();
    agent.program().is_some_and(|program| name == program || name.starts_with(&format!("{program}-")))
}

#[cfg(test)]
mod tests;
