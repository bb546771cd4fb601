//! How each program is run against the scripted model.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::program::Agent;
use crate::npm::variable;
use crate::{Invocation, Model, Sandbox, write};

const DUMMY: &str = "dummy";

/// A real program, ready to be run: its command line and environment.
#[derive(Clone, Debug)]
pub struct Real {
    pub agent: Agent,
    pub program: PathBuf,
    pub env: Vec<(String, String)>,
    /// Options that it needs in a test, beside those by which any orchestrator runs it without a terminal.
    pub extra: Vec<String>,
}

impl Real {
    pub fn claude(model: &Model, home: &Path) -> Self {
        Self::new(Agent::Claude, &model.url(), home)
    }

    pub fn codex(model: &Model, home: &Path) -> Self {
        Self::new(Agent::Codex, &model.url(), home)
    }

    /// `OpenCode`, asking this model.
    pub fn opencode(model: &Model, home: &Path) -> Self {
        Self::new(Agent::OpenCode, &model.url(), home)
    }

    pub fn gemini(model: &Model, home: &Path) -> Self {
        Self::new(Agent::Gemini, &model.url(), home)
    }

    /// Any agent, asking the model at a URL: [`Model::url`] or that of a lane. Its files are written into `home`.
    /// Gemini needs a home for each of its runs: it may leave a lock that makes the next one wait.
    pub fn new(agent: Agent, url: &str, home: &Path) -> Self {
        let program = agent.program().unwrap_or_else(|| {
            panic!("{} {} is not installed: run `cargo xtask e2e agents`", agent.name(), agent.version())
        });
        let (env, extra) = match agent {
            Agent::Claude => (claude(url), vec![]),
            Agent::Codex => (codex(url, home), vec!["--disable", "plugins", "-m", "gpt-5.5"]),
            Agent::OpenCode => (opencode(url, home), vec![]),
            Agent::Gemini => (gemini(url, home), vec!["-m", "gemini-2.5-pro"]),
        };
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value));
        let env = common(&program, home).into_iter().chain(env).collect();
        Self { agent, program, env, extra: extra.into_iter().map(str::to_owned).collect() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(found, _)| found != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Claude Code with a subscription: only then does it tell a usage limit from any other refusal.
    #[must_use]
    pub fn with_subscription(mut self) -> Self {
        self.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
        self.with("CLAUDE_CODE_OAUTH_TOKEN", DUMMY)
    }

    /// The words by which it works without a terminal, never asks, prints events, and reads its prompt from standard input.
    pub fn headless(&self) -> Vec<String> {
        let (before, after): (&[&str], &[&str]) = match self.agent {
            Agent::Claude => (
                &["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
                &[],
            ),
            Agent::Codex => (
                &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"],
                &["-"],
            ),
            Agent::OpenCode => (&["run", "--format", "json", "--auto"], &[]),
            Agent::Gemini => (&["--output-format", "stream-json", "--yolo"], &[]),
        };
        let before = before.iter().copied().chain(self.extra.iter().map(String::as_str));
        before.chain(after.iter().copied()).map(str::to_owned).collect()
    }

    /// It, in the project of a sandbox, with this prompt.
    pub fn told(&self, prompt: &str, sandbox: &Sandbox) -> Invocation {
        let words = self.headless();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = self.program.to_str().expect("it is UTF-8");
        sandbox.tool(program, &words).envs(&self.env).stdin(prompt)
    }
}

/// The environment of all programs: a home of their own, and the paths of the tools that they need. The state home
/// stays the sandbox's, because it holds the key that signs the ends of loops.
fn common(program: &Path, home: &Path) -> Vec<(String, String)> {
    let home = home.to_str().expect("it is UTF-8");
    let folder = program.parent().and_then(Path::to_str).expect("it is UTF-8");
    let path = variable("PATH").unwrap_or_default();
    let path = path.to_str().expect("it is UTF-8");
    [
        ("PATH", format!("{folder}:{path}")),
        ("HOME", home.to_owned()),
        ("XDG_CONFIG_HOME", format!("{home}/.config")),
        ("XDG_DATA_HOME", format!("{home}/.local/share")),
        ("XDG_CACHE_HOME", format!("{home}/.cache")),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("NO_COLOR", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

type Variables = Vec<(&'static str, String)>;

fn on(names: &[&'static str]) -> Variables {
    names.iter().map(|name| (*name, "1".to_owned())).collect()
}

fn claude(url: &str) -> Variables {
    let mut env = on(&[
        // Without it, root may not skip its permissions.
        "IS_SANDBOX",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ]);
    env.extend([("ANTHROPIC_BASE_URL", url.to_owned()), ("ANTHROPIC_API_KEY", DUMMY.to_owned())]);
    env
}

fn codex(url: &str, home: &Path) -> Variables {
    let folder = home.join(".codex");
    let config = format!(
        "model_provider = \"scripted\"\n\
         check_for_update_on_startup = false\n\
         [model_providers.scripted]\n\
         name = \"scripted\"\n\
         base_url = \"{url}/v1\"\n\
         env_key = \"SCRIPTED_KEY\"\n\
         wire_api = \"responses\"\n\
         request_max_retries = 2\n\
         stream_max_retries = 2\n\
         [analytics]\n\
         enabled = false\n\
         [feedback]\n\
         enabled = false\n"
    );
    put(&folder.join("config.toml"), &config);
    let folder = folder.to_str().expect("it is UTF-8").to_owned();
    vec![("CODEX_HOME", folder), ("SCRIPTED_KEY", DUMMY.to_owned())]
}

fn opencode(url: &str, home: &Path) -> Variables {
    let model = json!({
        "tool_call": true,
        "cost": { "input": 3, "output": 15 },
        "limit": { "context": 200_000, "output": 8192 },
    });
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "scripted/main",
        "small_model": "scripted/small",
        "enabled_providers": ["scripted"],
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": DUMMY },
            "models": { "main": model, "small": model },
        } },
    });
    put(&home.join(".config/opencode/opencode.json"), &config.to_string());
    let mut env = on(&[
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_SHARE",
    ]);
    // It asks the registry for a package, and with any plugin it waits for the answer: the model answers that there
    // is none.
    env.push(("npm_config_registry", format!("{url}/npm")));
    env
}

fn gemini(url: &str, home: &Path) -> Variables {
    let settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "security": { "auth": { "selectedType": "gemini-api-key" } },
    });
    put(&home.join(".gemini/settings.json"), &settings.to_string());
    vec![
        ("GEMINI_API_KEY", DUMMY.to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
        // Otherwise it starts itself again as a child, and signals to the first do not reach the second.
        ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
    ]
}

/// Writes a file and the folders above it.
fn put(path: &Path, text: &str) {
    let folder = path.parent().expect("it lies in a folder");
    std::fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    write(path, text);
}
