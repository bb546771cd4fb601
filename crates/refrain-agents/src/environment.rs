//! The environment of agents and gates: the user's, without the variables of a surrounding agent or loop, with those
//! that were requested, and with those that Refrain sets for the agent (contract.md, "What the agent and its gates
//! see"). A gate gets none of the last.

use std::ffi::{OsStr, OsString};

use refrain_core::sandbox::BASIC_VARIABLES;
use refrain_core::spec::AgentKind;
use refrain_core::{AttemptId, LoopState, Spec};

/// Variables that agents set for their children, seen in their tools and hooks (agent-clis.md, trap 12): an agent
/// that inherits them believes that it is part of another one.
const SURROUNDINGS: [&str; 17] = [
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "OPENCODE",
    "OPENCODE_PID",
    "GEMINI_CLI",
    "GEMINI_CLI_NO_RELAUNCH",
    "GEMINI_SESSION_ID",
];

fn is_set_around(name: &str) -> bool {
    SURROUNDINGS.contains(&name) || name.starts_with("REFRAIN_")
}

/// The user's environment, without the variables of a surrounding agent or loop: for agents of a loop without any
/// settings of variables.
pub fn of_person(inherited: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| name.to_str().is_none_or(|name| !is_set_around(name));
    inherited.into_iter().filter(|(name, _)| is_kept(name)).collect()
}

pub fn base(
    spec: &Spec,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let Some(name) = name.to_str() else { return !spec.agent.clean_env };
        let is_named = spec.agent.env_names.iter().any(|named| named == name);
        let is_allowed = BASIC_VARIABLES.contains(&name) || name == "TMPDIR" || name.starts_with("LC_");
        is_named || !is_set_around(name) && (is_allowed || !spec.agent.clean_env)
    };
    let mut env: Vec<_> = inherited.into_iter().filter(|(name, _)| is_kept(name)).collect();
    env.extend(spec.agent.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
    env
}

/// The environment of git for this loop: everything that the user has set for it (keys, key agents, configuration
/// folders), even if the loop's agents get less.
pub fn of_git(
    spec: &Spec,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut env = of_person(inherited);
    env.extend(spec.agent.env.iter().map(|(name, value)| (name.into(), value.expose().into())));
    env
}

/// Variables that contain a login, or a part of one.
pub const SECRETS: [&str; 11] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
];

/// Variables that distinguish accounts: the place of the agent's login, or the login itself.
const ACCOUNTS: [&str; 15] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
];

/// A text that identifies the account of this loop's agents; none for a command, whose account is unknown. Contains
/// secrets: to be hashed, never stored.
pub fn account(spec: &Spec, env: &[(OsString, OsString)]) -> Option<String> {
    let kind = spec.agent.kind;
    if !kind.streams() {
        return None;
    }
    let of = |name: &&str| {
        let value = env.iter().rev().find(|(set, _)| set == *name).map(|(_, value)| value.to_string_lossy());
        format!("{name}={}", value.unwrap_or_default())
    };
    let values: Vec<String> = ACCOUNTS.iter().map(of).collect();
    Some(format!("{kind}\n{}", values.join("\n")))
}

/// Variables that determine how an agent pays, in order of precedence, and a name for each.
const LOGINS: [(AgentKind, &str, &str); 9] = [
    (AgentKind::Claude, "CLAUDE_CODE_USE_BEDROCK", "bedrock"),
    (AgentKind::Claude, "CLAUDE_CODE_USE_VERTEX", "vertex"),
    (AgentKind::Claude, "ANTHROPIC_AUTH_TOKEN", "token"),
    (AgentKind::Claude, "ANTHROPIC_API_KEY", "api-key"),
    (AgentKind::Claude, "CLAUDE_CODE_OAUTH_TOKEN", "subscription"),
    (AgentKind::Codex, "CODEX_API_KEY", "api-key"),
    (AgentKind::Gemini, "GEMINI_API_KEY", "api-key"),
    (AgentKind::Gemini, "GOOGLE_GENAI_USE_VERTEXAI", "vertex"),
    (AgentKind::Gemini, "GOOGLE_API_KEY", "api-key"),
];

/// The key of a provider that pays for this loop's agents, and where that provider is: another machine that has the same
/// uses the same account. It holds secrets. None if the agent's own login pays, as far as is known.
pub fn key(spec: &Spec, env: &[(OsString, OsString)]) -> Option<String> {
    const PLACES: [&str; 2] = ["ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"];
    let kind = spec.agent.kind;
    let value = |name: &str| {
        let set = env.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.to_string_lossy());
        set.filter(|value| !value.is_empty())
    };
    let logins = LOGINS.iter().filter(|(of, ..)| *of == kind);
    let (name, key) = logins.filter_map(|(_, name, _)| Some((*name, value(name)?))).next()?;
    // That one only says which kind of login it is.
    if name.starts_with("CLAUDE_CODE_USE") || name.starts_with("GOOGLE_GENAI_USE") {
        return None;
    }
    let places = PLACES.map(|place| value(place).unwrap_or_default());
    Some(format!("{kind}\n{name}={key}\n{}", places.join("\n")))
}

/// A short name of the account that pays for this loop's agents: the agent, its kind of login (`login` for its own
/// login), and a part of a hash of what distinguishes its [`account`] from others. The same account always has the
/// same name. None if nothing is known: for a command, or without an environment.
pub fn pool(spec: &Spec, env: &[(OsString, OsString)]) -> Option<String> {
    let account = account(spec, env).filter(|_| !env.is_empty())?;
    let kind = spec.agent.kind;
    let is_set =
        |name: &str| env.iter().rev().find(|(set, _)| set == name).is_some_and(|(_, it)| !it.is_empty());
    let login = LOGINS.iter().find(|(of, name, _)| *of == kind && is_set(name));
    let login = login.map_or("login", |(_, _, login)| login);
    Some(format!("{kind} {login} {}", &blake3::hash(account.as_bytes()).to_hex()[..6]))
}

/// The variables that Refrain sets for the agent of one attempt.
pub fn of_attempt(state: &LoopState, id: AttemptId) -> Vec<(String, String)> {
    let spec = &state.spec;
    let cap = state.limits.max_iterations.map_or_else(String::new, |cap| cap.to_string());
    [
        ("REFRAIN_LOOP_ID", spec.id.to_string()),
        ("REFRAIN_ITERATION", id.iteration.to_string()),
        ("REFRAIN_ATTEMPT", id.attempt.to_string()),
        ("REFRAIN_MAX_ITERATIONS", cap),
        ("REFRAIN_STATE_FILE", spec.state_file().into_string()),
        ("REFRAIN_CONTEXT_FILE", spec.context_file().into_string()),
        ("REFRAIN_PROJECT", spec.project.to_string()),
        ("REFRAIN_DEPTH", (spec.depth + 1).to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The variables of a command gate besides [`base`]: its mark, and those that were requested. A bare name passes the
/// agent's value of it, or else the runner's (`inherited`).
pub fn of_gate(
    state: &LoopState,
    of: AttemptId,
    inherited: &[(OsString, OsString)],
) -> Vec<(String, String)> {
    let told = of_attempt(state, of);
    let passed = |name: &String| {
        let told = told.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        let inherited = || inherited.iter().rev().find(|(set, _)| set.to_str() == Some(name))?.1.to_str();
        told.or_else(|| inherited().map(str::to_owned))
    };
    let asked = state.spec.gate_env.variables.iter().filter_map(|(name, value)| {
        let value = value.as_ref().map(|value| value.expose().to_owned()).or_else(|| passed(name))?;
        Some((name.clone(), value))
    });
    std::iter::once(gate_mark(&state.spec)).chain(asked).collect()
}

/// The variable that the agents of a loop, its reviewers and git bear, and no other loop's: the state file's path
/// names project and loop.
pub fn mark(spec: &Spec) -> String {
    format!("REFRAIN_STATE_FILE={}", spec.state_file())
}

/// The variable that marks the gates of a loop. Neither its name nor its value reveals that it is Refrain's, and both
/// differ in each loop.
pub fn gate_mark(spec: &Spec) -> (String, String) {
    let of = format!("{}\0{}\0{}", spec.gate_env.mark, spec.project, spec.id);
    let hash = blake3::hash(of.as_bytes());
    let bytes = hash.as_bytes();
    let length = 8 + usize::from(bytes[0] % 6);
    let name = bytes[1..=length].iter().map(|byte| char::from(b'A' + byte % 26)).collect();
    (name, hash.to_hex()[40..56].to_owned())
}

/// All marks of a loop's processes, as `NAME=value`.
pub fn marks(spec: &Spec) -> Vec<String> {
    let (name, value) = gate_mark(spec);
    vec![mark(spec), format!("{name}={value}")]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::acp::testing::spec;

    #[test]
    fn a_mark_of_gates_is_a_loops_own_and_names_nothing() {
        let mut spec = spec("agent", &[]);
        spec.gate_env.mark = "1f".into();
        let (name, value) = gate_mark(&spec);
        assert!(
            (8..=13).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase()),
            "{name}"
        );
        assert_eq!(value.len(), 16);
        assert_eq!(gate_mark(&spec), (name.clone(), value.clone()), "it is found again after a crash");
        assert_eq!(marks(&spec)[1], format!("{name}={value}"));
        let mut other = spec.clone();
        other.id = "other".parse().unwrap();
        assert_ne!(gate_mark(&other).0, name, "tasks of one plan have one random value");
        spec.gate_env.mark = "20".into();
        assert_ne!(gate_mark(&spec).0, name);
    }

    #[test]
    fn machines_that_have_the_same_key_share_an_account_whatever_their_homes() {
        let mut spec = spec("agent", &[]);
        spec.agent.kind = AgentKind::Claude;
        let machine = |home: &str, key: &str| {
            key_of(&spec, &[("HOME", home), ("ANTHROPIC_API_KEY", key), ("GEMINI_API_KEY", "other")])
        };
        assert_eq!(machine("/a", "secret"), machine("/b", "secret"));
        assert_ne!(machine("/a", "secret"), machine("/a", "another"));
        assert_eq!(machine("/a", ""), None, "its own login pays");
        let bedrock = [("CLAUDE_CODE_USE_BEDROCK", "1"), ("ANTHROPIC_API_KEY", "secret")];
        assert_eq!(key_of(&spec, &bedrock), None, "not that key");
    }

    fn key_of(spec: &Spec, env: &[(&str, &str)]) -> Option<String> {
        key(spec, &env.iter().map(|(name, value)| (name.into(), value.into())).collect::<Vec<_>>())
    }

    #[test]
    fn a_variable_that_is_named_is_the_machines_own_even_in_a_short_list() {
        let mut spec = spec("agent", &[]);
        spec.agent.clean_env = true;
        spec.agent.env_names = vec!["TOKEN".into()];
        let machine = ["HOME", "TOKEN", "OTHER"].map(|name| (name.into(), "own".into()));
        let names: Vec<_> = base(&spec, machine).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["HOME", "TOKEN"]);
    }

    #[rstest]
    #[case(AgentKind::Claude, &[], None)]
    #[case(AgentKind::Generic, &[("HOME", "/h")], None)]
    #[case(AgentKind::Claude, &[("HOME", "/h")], Some("claude login"))]
    #[case(AgentKind::Claude, &[("HOME", "/h"), ("ANTHROPIC_API_KEY", "")], Some("claude login"))]
    #[case(AgentKind::Claude, &[("ANTHROPIC_API_KEY", "k"), ("CLAUDE_CODE_OAUTH_TOKEN", "t")], Some("claude api-key"))]
    #[case(AgentKind::Claude, &[("CLAUDE_CODE_OAUTH_TOKEN", "t")], Some("claude subscription"))]
    #[case(AgentKind::Codex, &[("HOME", "/h"), ("ANTHROPIC_API_KEY", "k")], Some("codex login"))]
    #[case(AgentKind::Codex, &[("CODEX_API_KEY", "k")], Some("codex api-key"))]
    fn each_payment_pool_has_a_short_name(
        #[case] kind: AgentKind,
        #[case] env: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let mut spec = spec("agent", &[]);
        spec.agent.kind = kind;
        let env: Vec<(OsString, OsString)> =
            env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let pool = pool(&spec, &env);
        assert_eq!(pool.as_ref().and_then(|pool| Some(pool.rsplit_once(' ')?.0)), expected, "{pool:?}");
        assert_eq!(pool, super::pool(&spec, &env));
    }
}
