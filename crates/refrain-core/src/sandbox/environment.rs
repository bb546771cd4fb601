//! The environment in the sandbox: an allow-list.

use super::policy::{Policy, Role};
use crate::spec::AgentKind;

/// The port of the proxy on the sandbox's own loopback address. Nothing else listens in a sandbox that starts.
pub const PROXY_PORT: u16 = 3128;

/// Variables that say nothing but where programs are, who the user is, and how to print: paths, the user's identity, locale and
/// terminal.
pub const BASIC_VARIABLES: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "COLORTERM", "NO_COLOR"];
/// Besides those: settings of tools, and the places of tools.
const PASSED: [&str; 30] = [
    "FORCE_COLOR",
    "CI",
    "EDITOR",
    "PAGER",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOFLAGS",
    "JAVA_HOME",
    "ANDROID_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "PYTHONPATH",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "TRACEPARENT",
];
const PASSED_PREFIXES: [&str; 4] = ["LC_", "GIT_AUTHOR_", "GIT_COMMITTER_", "OTEL_EXPORTER_OTLP"];
/// Of those, logins of a collector: a program of the user's gives them with `--env`.
const LOGIN_SUFFIXES: [&str; 2] = ["_HEADERS", "_CLIENT_KEY"];

/// The variables of an agent: its login and its settings.
fn prefixes(kind: AgentKind) -> &'static [&'static str] {
    match kind {
        AgentKind::Generic | AgentKind::Acp => &[],
        AgentKind::Claude => {
            &["ANTHROPIC_", "CLAUDE_", "DISABLE_", "BASH_", "MAX_THINKING_TOKENS", "MCP_", "IS_SANDBOX"]
        }
        AgentKind::Codex => &["OPENAI_", "CODEX_"],
        AgentKind::Opencode => &["OPENCODE_", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        AgentKind::Gemini => &["GEMINI_", "GOOGLE_API_KEY", "GOOGLE_GENAI_", "GOOGLE_GEMINI_"],
    }
}

fn is_of_agents(name: &str) -> bool {
    AgentKind::ALL.into_iter().flat_map(prefixes).any(|prefix| name.starts_with(prefix))
}

/// Whether a variable gets into the sandbox of such a process. `is_given` is a variable that the user set for the loop
/// (`--env`): it does, except for an agent's own variables, which no gate gets.
#[must_use]
pub fn passes(role: Role, name: &str, is_given: bool) -> bool {
    match role {
        Role::Agent(_) if is_given => true,
        Role::Agent(kind) if prefixes(kind).iter().any(|prefix| name.starts_with(prefix)) => true,
        Role::Gate | Role::Git if is_of_agents(name) => false,
        Role::Gate | Role::Git if is_given => true,
        Role::Git if name.starts_with("GIT_") => true,
        Role::Agent(_) | Role::Gate | Role::Git => {
            BASIC_VARIABLES.contains(&name)
                || PASSED.contains(&name)
                || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                    && !LOGIN_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        }
    }
}

/// The variables by which programs find the proxy.
#[must_use]
pub fn proxy_variables() -> Vec<(String, String)> {
    let url = format!("http://127.0.0.1:{PROXY_PORT}");
    let java = format!("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={PROXY_PORT}");
    let none = "localhost,127.0.0.1,::1";
    [
        ("HTTP_PROXY", &*url),
        ("HTTPS_PROXY", &url),
        ("ALL_PROXY", &url),
        ("http_proxy", &url),
        ("https_proxy", &url),
        ("all_proxy", &url),
        ("NO_PROXY", none),
        ("no_proxy", none),
        ("NODE_USE_ENV_PROXY", "1"),
        ("CARGO_HTTP_PROXY", &url),
        ("JAVA_TOOL_OPTIONS", &java),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// The variables by which programs find their folder for temporary files.
#[must_use]
pub fn temporary_variables(policy: &Policy) -> Vec<(String, String)> {
    let folder = policy.temporary.iter();
    let names = ["TMPDIR", "TMP", "TEMP", "CLAUDE_CODE_TMPDIR"];
    folder.flat_map(|folder| names.map(|name| (name.to_owned(), folder.to_string()))).collect()
}
