//! The folders of each agent: what in them is run later, and what they share with other sessions.

use camino::Utf8PathBuf;

use crate::spec::AgentKind;

/// The configuration of Claude Code, with the programs of its servers. It is in the user's home, or in the agent's.
pub(super) const CLAUDE_CONFIG: &str = ".claude.json";
const CLAUDE_OLD_CONFIG: &str = ".config.json";

/// An agent's home in the user's home, and what in it is run later.
pub(super) fn agent_home(kind: AgentKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        AgentKind::Generic | AgentKind::Acp => (&[], &[]),
        AgentKind::Claude => (
            &[".claude"],
            &[
                CLAUDE_CONFIG,
                // The same under an older name, which counts first.
                CLAUDE_OLD_CONFIG,
                "settings.json",
                "settings.local.json",
                "local-settings",
                "project-settings",
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
                "mcp-skill-archives",
                "dev-mods",
                "systemd",
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
                // What the app starts at set times.
                "automations",
            ],
        ),
        AgentKind::Opencode => (
            &[".config/opencode", ".local/share/opencode", ".local/state/opencode"],
            &[
                "opencode.json",
                "opencode.jsonc",
                "config.json",
                // An older form of the same.
                "config",
                // Its interface has plugins of its own.
                "tui.json",
                "tui.jsonc",
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
                "bin",
                "tmp/bin",
                "mcp-server-enablement.json",
                // Which agents of projects the user has allowed.
                "acknowledgments",
                // Settings, servers and skills of Antigravity, another agent.
                "antigravity",
                "antigravity-cli",
                "antigravity-ide",
                "config",
            ],
        ),
    }
}

/// The placeholder of what an agent's home has that is run later, for other sessions that the user starts meanwhile; none if
/// an empty one would count.
pub(super) fn agent_placeholder(path: Utf8PathBuf) -> Option<(Utf8PathBuf, Option<String>)> {
    let text = match (path.file_name(), path.extension()) {
        (
            Some(
                CLAUDE_CONFIG | CLAUDE_OLD_CONFIG | "AGENTS.override.md" | "package-lock.json" | "bun.lock"
                | ".npmrc",
            ),
            _,
        ) => return None,
        (_, Some("json" | "jsonc")) => Some("{}\n".to_owned()),
        (Some(".env"), _) | (_, Some(_)) => Some(String::new()),
        (_, None) => None,
    };
    Some((path, text))
}

/// The folders of an agent's home in which it keeps its data, as its program names them: no session runs what is there. Any
/// other folder is read-only if it holds a program.
pub(super) fn agent_data(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Generic | AgentKind::Acp => &[],
        AgentKind::Claude => &[
            "projects",
            "sessions",
            "todos",
            "tasks",
            "plans",
            "file-history",
            "file-transfers",
            "image-cache",
            "paste-cache",
            "uploads",
            "scratch",
            "memory",
            "agent-memory",
            "storage-v2",
            "state",
            "cache",
            "mcp-discovery-cache",
            "statsig",
            "telemetry",
            "usage-data",
            "startup-perf",
            "traces",
            "logs",
            "child-logs",
            CLAUDE_DEBUG,
            "dump-prompts",
            "api-dumps",
            "backups",
            "shares",
            "feedback",
            "feedback-bundles",
            "remote-control",
            "ccr",
            ".cc-writes",
        ],
        AgentKind::Codex => &[
            "sessions",
            "archived_sessions",
            "thread-writer-locks",
            "log",
            "memories",
            "memories_extensions",
            "generated_images",
            "attachments",
            "cache",
        ],
        AgentKind::Opencode => &["storage", "project", "log", "tool-output", "plans", "locks"],
        AgentKind::Gemini => &["tmp"],
    }
}

/// Where Claude Code makes a link to its newest log, and replaces it without writing through it.
pub(super) const CLAUDE_DEBUG: &str = "debug";

/// What in an agent's home its sessions run while they run, or where they listen: the user's own, outside of the sandbox, too.
pub(super) fn agent_sessions(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Claude => &[
            "shell-snapshots",
            "session-env",
            "bridge-spawn",
            "jobs",
            "daemon",
            "remote",
            "teams",
            "seed-admin",
            "ide",
        ],
        AgentKind::Codex => &["shell_snapshots", "tmp", "app-server-control"],
        // A profile of a browser, with its logins and extensions.
        AgentKind::Gemini => &["cli-browser-profile"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Opencode => &[],
    }
}

/// What in an agent's home belongs to another program, with logins of the user.
pub(super) fn agent_hidden(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Gemini => &["antigravity-browser-profile"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Claude | AgentKind::Codex | AgentKind::Opencode => {
            &[]
        }
    }
}

/// What in an agent's home it fetches, and runs later; and repositories of its own, in which it runs git.
pub(super) fn agent_layers(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        // Copies of the repositories of its plugins.
        AgentKind::Codex => &[".tmp"],
        AgentKind::Gemini => &["history"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Claude | AgentKind::Opencode => &[],
    }
}

/// The same elsewhere in the user's home.
pub(super) fn agent_caches(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Opencode => &[".cache/opencode", ".local/share/opencode/snapshot"],
        AgentKind::Generic | AgentKind::Acp | AgentKind::Claude | AgentKind::Codex | AgentKind::Gemini => &[],
    }
}
