//! Each program renews an old login in the sandbox, and the user's file has the new one: the next login would fail with the
//! old. The providers are the programs' own, by name, over TLS.

use serde_json::{Value, json};
use testkit::{Agent, Turn, login, write};

use super::provider::proxy_to;
use crate::bench::{Bench, CLAIM};

/// Variables by which a program would ask the scripted model directly.
const DIRECT: [&str; 5] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "SCRIPTED_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"];

/// A loop of this agent in a sandbox, with a login in this file of its home that is old; returns the file behind the loop.
#[track_caller]
fn renewed(agent: Agent, hosts: &[&str], file: &str, old: &Value, settings: (&str, &Value)) -> Value {
    let mut bench = Bench::outside_of_tmp(agent, [Turn::say(CLAIM)]);
    let home = bench.sandbox.root().join("home");
    let (path, certificate) = (home.join(file), home.join("provider.pem"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(&path, old.to_string());
    if !settings.0.is_empty() {
        write(&home.join(settings.0), settings.1.to_string());
    }
    let proxy = proxy_to(hosts, bench.model.address(), &certificate);
    bench.real.env.retain(|(name, _)| !DIRECT.contains(&name.as_str()));
    bench.real =
        bench.real.with("HTTPS_PROXY", &proxy).with("NODE_EXTRA_CA_CERTS", certificate.to_str().unwrap());
    bench.completed(bench.start_with("auto", &["--sandbox"]).spawn());
    bench.asked_exactly(1);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn claude_renews_its_login_in_a_sandbox() {
    let old = json!({ "claudeAiOauth": {
        "accessToken": "old",
        "refreshToken": "old",
        "expiresAt": 1_000_000_000_000_u64,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    } });
    let hosts = ["platform.claude.com", "api.anthropic.com"];
    let login = renewed(Agent::Claude, &hosts, ".claude/.credentials.json", &old, ("", &Value::Null));
    assert_eq!(login["claudeAiOauth"]["refreshToken"], "renewed", "{login:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn opencode_renews_its_login_in_a_sandbox() {
    let old = json!({ "openai": { "type": "oauth", "access": "old", "refresh": "old", "expires": 1_000 } });
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "openai/gpt-5.5",
        "small_model": "openai/gpt-5.5",
        "enabled_providers": ["openai"],
    });
    let hosts = ["auth.openai.com", "chatgpt.com"];
    let settings = (".config/opencode/opencode.json", &config);
    let login = renewed(Agent::OpenCode, &hosts, ".local/share/opencode/auth.json", &old, settings);
    assert_eq!(login["openai"]["refresh"], "renewed", "{login:#}");
}

#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn gemini_renews_its_login_in_a_sandbox() {
    let old = json!({
        "access_token": "old",
        "refresh_token": "old",
        "token_type": "Bearer",
        "expiry_date": 1_000_000_000_000_u64,
    });
    let config = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "security": { "auth": { "selectedType": "oauth-personal" } },
    });
    let hosts = ["oauth2.googleapis.com", "cloudcode-pa.googleapis.com"];
    let settings = (".gemini/settings.json", &config);
    let login = renewed(Agent::Gemini, &hosts, ".gemini/oauth_creds.json", &old, settings);
    // The provider's refresh token stays the same.
    assert_ne!(login["access_token"], "old", "{login:#}");
    assert!(login["expiry_date"].as_u64().is_some_and(|at| at > 1_000_000_000_000), "{login:#}");
}

/// Codex can be given another address for that.
#[test]
#[ignore = "needs the real programs: cargo xtask e2e agents"]
fn codex_renews_its_login_in_a_sandbox() {
    let mut bench = Bench::outside_of_tmp(Agent::Codex, [Turn::say(CLAIM)]);
    let folder = bench.sandbox.root().join("home/.codex");
    let config = std::fs::read_to_string(folder.join("config.toml")).expect("it was just written");
    write(
        &folder.join("config.toml"),
        config.replace("env_key = \"SCRIPTED_KEY\"", "requires_openai_auth = true"),
    );
    let auth = folder.join("auth.json");
    let old = json!({ "OPENAI_API_KEY": null, "tokens": login("old", 1_000_000_000), "last_refresh": "2020-01-01T00:00:00Z" });
    write(&auth, old.to_string());
    let url = format!("{}/oauth/token", bench.model.url());
    bench.real = bench.real.with("CODEX_REFRESH_TOKEN_URL_OVERRIDE", &url);
    let words = super::sandboxed(&bench);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    bench.completed(bench.start_with("auto", &words).spawn());
    let renewed = std::fs::read_to_string(&auth).expect("Codex keeps its login");
    let renewed: Value = serde_json::from_str(&renewed).expect("it is JSON");
    assert_eq!(renewed["tokens"]["refresh_token"], "renewed", "{renewed:#}");
}
