//! The folders of each agent: what in them is run later, and what they share with other sessions.

use camino::Utf8PathBuf;

use crate::spec::AgentKind;

/// The configuration of Claude Code, with the programs of its servers. It is in the user's home, or in the agent's.
pub(super) const CLAUDE_CONFIG: &str = ".claude.json";

/// An agent's home in the user's home, and what in it is run later.
pub(super) fn agent_home(kind: AgentKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        AgentKind::Generic | AgentKind::Acp => (&[], &[]),
        AgentKind::Claude => (
            &[".claude"],
            &[
                CLAUDE_CONFIG,
                "settings.json",
                "settings.local.json",
                "remote-settings.json",
                "hooks",
                "commands",
                "agents",
                "plugins",
                "skills",
                "output-styles",
                "rules",
                "workflows",
                "routines",
                "scheduled_tasks.json",
                "launch.json",
                "daemon.json",
                // What a browser starts for its extension.
                "chrome",
                "cowork_plugins",
                "dev-mods",
                "loop.md",
                // The program itself, as some installers place it.
                "local",
                "CLAUDE.md",
                "mcp.json",
            ],
        ),
        AgentKind::Codex => (
            &[".codex"],
            &[
                "config.toml",
                "managed_config.toml",
                ".env",
                "hooks.json",
                "hooks",
                "prompts",
                "skills",
                "plugins",
                "agents",
                "packages",
                "app-server-daemon",
                "rules",
                "AGENTS.md",
                "AGENTS.override.md",
            ],
        ),
        AgentKind::Opencode => (
            &[".config/opencode", ".local/share/opencode", ".local/state/opencode"],
            &[
                "opencode.json",
                "opencode.jsonc",
                "config.json",
                "plugin",
                "plugins",
                "command",
                "commands",
                "agent",
                "agents",
                "tool",
                "tools",
                "skill",
                "skills",
                "mode",
                "modes",
                "AGENTS.md",
                "bin",
                // Packages that its plugins load, and what says which.
                "node_modules",
                "package.json",
                "package-lock.json",
                "bun.lock",
                "bunfig.toml",
                ".npmrc",
                // Repositories of others, in which it runs git.
                "repos",
                "worktree",
            ],
        ),
        AgentKind::Gemini => (
            &[".gemini"],
            &[
                "settings.json",
                "trustedFolders.json",
                "trusted_hooks.json",
                "extensions",
                "commands",
                "hooks",
                "skills",
                "agents",
                "policies",
                "GEMINI.md",
                ".env",
                "tmp/bin",
            ],
        ),
    }
}

/// The placeholder of what an agent's home has that is run later, for other sessions that the user starts meanwhile; none if
/// an empty one would count.
pub(super) fn agent_placeholder(path: Utf8PathBuf) -> Option<(Utf8PathBuf, Option<String>)> {
    let text = match (path.file_name(), path.extension()) {
        (Some(CLAUDE_CONFIG | "AGENTS.override.md" | "package-lock.json" | "bun.lock" | ".npmrc"), _) => {
            return None;
        }
        (_, Some("json" | "jsonc")) => Some("{}\n".to_owned()),
        (Some(".env"), _) | (_, Some(_)) => Some(String::new()),
        (_, None) => None,
    };
    Some((path, text))
}

/// What in an agent's home its sessions run while they run, or where they listen: the user's own, outside of the sandbox, too.
pub(super) fn agent_sessions(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Claude => {
            &["shell-snapshots", "session-env", "jobs", "daemon", "remote", "teams", "seed-admin", "ide"]
        }
        AgentKind::Codex => &["shell_snapshots", "tmp", "app-server-control"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Opencode | AgentKind::Gemini => &[],
    }
}

/// An agent's own caches in the user's home: programs that it has installed, and runs later; and repositories of its own, in
/// which it runs git.
pub(super) fn agent_caches(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Opencode => &[".cache/opencode", ".local/share/opencode/snapshot"],
        AgentKind::Gemini => &[".gemini/history"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Claude | AgentKind::Codex => &[],
    }
}
