//! Information from Claude Code before it is run (2.1.329). `claude auth status` prints an object and never prompts.
//! Without a terminal it works in an untrusted folder without asking; the project's own permissions apply only after
//! trust.

use camino::Utf8PathBuf;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::probe::ProbeOutput;
use serde_json::Value;

use crate::checkup::{AgentDirs, Checkup, Question, json, silent};

const QUESTIONS: [Question; 1] = [Question {
    args: &["auth", "status"],
    env: &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")],
}];
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

impl Checkup for super::Claude {
    fn questions(&self) -> &'static [Question] {
        &QUESTIONS
    }

    fn findings(&self, place: &AgentDirs<'_>, answers: &[Option<ProbeOutput>]) -> Vec<Finding> {
        let answer = answers.first().and_then(Option::as_ref);
        let mut findings = vec![login(answer)];
        findings.extend(bypass(place));
        findings.extend(untrusted(place));
        findings
    }
}

fn login(answer: Option<&ProbeOutput>) -> Finding {
    let status: Value =
        answer.and_then(|answer| serde_json::from_str(&answer.stdout).ok()).unwrap_or_default();
    let method = status["authMethod"].as_str().unwrap_or("unknown");
    match status["loggedIn"].as_bool() {
        Some(true) => Finding::ok(Subject::Login, format!("logged in ({method})")),
        Some(false) => Finding::problem(
            Subject::Login,
            "not logged in",
            "run claude auth login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
        ),
        None => silent(answer, "claude auth status"),
    }
}

/// The settings files that apply here, the user's own first, then the project's.
fn settings(place: &AgentDirs<'_>) -> (Vec<Utf8PathBuf>, [Utf8PathBuf; 2]) {
    let own = place.home("CLAUDE_CONFIG_DIR", ".claude").map(|home| home.join("settings.json"));
    let own = own.into_iter().chain([MANAGED.into()]).collect();
    (own, ["settings.json", "settings.local.json"].map(|name| place.dir.join(".claude").join(name)))
}

fn bypass(place: &AgentDirs<'_>) -> Option<Finding> {
    let (own, project) = settings(place);
    let forbids = own
        .into_iter()
        .chain(project)
        .find(|path| json(path)["permissions"]["disableBypassPermissionsMode"].as_str() == Some("disable"))?;
    Some(Finding::warning(
        Subject::Permissions,
        format!("--permissions full will be refused: {forbids} disables the bypass"),
        "use --permissions auto, which needs no bypass",
    ))
}

fn untrusted(place: &AgentDirs<'_>) -> Option<Finding> {
    let config = match place.value("CLAUDE_CONFIG_DIR") {
        Some(home) => Utf8PathBuf::from(home).join(".claude.json"),
        None => Utf8PathBuf::from(place.value("HOME")?).join(".claude.json"),
    };
    let config = json(&config);
    let yes = Value::Bool(true);
    let is_trusted = |dir: &camino::Utf8Path| {
        Some(&config["projects"][dir.as_str()]["hasTrustDialogAccepted"]).filter(|said| **said == yes)
    };
    if place.nearest(is_trusted).is_some() {
        return None;
    }
    let (_, project) = settings(place);
    let allowing = project
        .into_iter()
        .find(|path| json(path)["permissions"]["allow"].as_array().is_some_and(|allow| !allow.is_empty()))?;
    Some(Finding::warning(
        Subject::Permissions,
        format!("what {allowing} allows does not count: the folder was never trusted"),
        "run claude here once and trust the folder, or give --permissions full",
    ))
}
