//! An agent as the judge of another agent's work: it only reads, in a session of its own, regardless of its arguments
//! as a worker. Arguments that say otherwise are omitted; each adapter's permissions say how it is confined instead.
//! A generic command is started as it is: its arguments are unknown.

use refrain_core::spec::{AgentKind, AgentSpec, Permissions};

use crate::args::UserArgs;
use crate::codex;

/// Arguments of a program that a judge does not get.
struct RemovedArgs {
    /// Flags without a value.
    bare: &'static [&'static str],
    /// Flags with a value or a list of values.
    valued: &'static [&'static str],
}

const CLAUDE: RemovedArgs = RemovedArgs {
    bare: &[
        "--dangerously-skip-permissions",
        "--allow-dangerously-skip-permissions",
        "--continue",
        "-c",
        "--fork-session",
        "--strict-mcp-config",
    ],
    valued: &[
        "--permission-mode",
        "--allowedTools",
        "--allowed-tools",
        "--disallowedTools",
        "--disallowed-tools",
        "--tools",
        "--mcp-config",
        "--setting-sources",
        "--json-schema",
        "--resume",
        "-r",
        "--session-id",
    ],
};
const CODEX: RemovedArgs = RemovedArgs {
    bare: &["--full-auto", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox", "--yolo"],
    valued: &["-s", "--sandbox", "-a", "--ask-for-approval", "--add-dir", "--output-schema"],
};
const OPENCODE: RemovedArgs = RemovedArgs {
    bare: &["--auto", "--dangerously-skip-permissions", "--continue", "-c", "--fork"],
    valued: &["--session", "-s"],
};
const GEMINI: RemovedArgs = RemovedArgs {
    bare: &["--yolo", "-y"],
    valued: &["--approval-mode", "--allowed-tools", "--resume", "-r", "--session-id"],
};
const NOTHING: RemovedArgs = RemovedArgs { bare: &[], valued: &[] };

pub fn judge(agent: &AgentSpec) -> AgentSpec {
    let struck = match agent.kind {
        AgentKind::Claude => CLAUDE,
        AgentKind::Codex => CODEX,
        AgentKind::Opencode => OPENCODE,
        AgentKind::Gemini => GEMINI,
        AgentKind::Generic | AgentKind::Acp => NOTHING,
    };
    let mut args = UserArgs::new(&agent.args).without(struck.bare, struck.valued);
    if agent.kind == AgentKind::Codex {
        codex::begin_anew(&mut args);
    }
    AgentSpec { args, permissions: Permissions::ReadOnly, ..agent.clone() }
}
