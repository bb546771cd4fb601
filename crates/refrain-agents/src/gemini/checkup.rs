//! Information about Gemini CLI before it is run (0.61.0). It has no command for that. The sources that it uses
//! without a terminal are read here: the kind of login in its settings, else variables.

use camino::Utf8Path;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::probe::ProbeOutput;
use serde_json::Value;

use crate::checkup::{AgentDirs, Checkup, Question, json, text};

const MANAGED: &str = "/etc/gemini-cli/settings.json";

impl Checkup for super::Gemini {
    fn questions(&self) -> &'static [Question] {
        &[]
    }

    fn findings(&self, place: &AgentDirs<'_>, _: &[Option<ProbeOutput>]) -> Vec<Finding> {
        let Some(home) = place.home("GEMINI_CLI_HOME", "").map(|home| home.join(".gemini")) else {
            return vec![];
        };
        let own = json(&home.join("settings.json"));
        let mut findings = vec![login(place, &home, &own)];
        let settings = [("its settings", &own), ("the system's settings", &json(Utf8Path::new(MANAGED)))];
        let strict = settings.iter().find(|(_, settings)| settings["security"]["disableYoloMode"] == true);
        if let Some((whose, _)) = strict {
            findings.push(Finding::warning(
                Subject::Permissions,
                format!("{whose} disable --yolo, without which it may not run a command"),
                "remove security.disableYoloMode there, or give --permissions agent and allow its tools",
            ));
        }
        findings.extend(untrusted(place, &home, &own));
        findings
    }
}

fn login(place: &AgentDirs<'_>, home: &Utf8Path, settings: &Value) -> Finding {
    let set = |name| place.value(name).is_some();
    let is_true = |name| place.value(name) == Some("true");
    let kind = match settings["security"]["auth"]["selectedType"].as_str() {
        Some(kind) => kind,
        None if is_true("GOOGLE_GENAI_USE_GCA") => "oauth-personal",
        None if is_true("GOOGLE_GENAI_USE_VERTEXAI") => "vertex-ai",
        None if set("GOOGLE_GEMINI_BASE_URL") => "gateway",
        None if set("GEMINI_API_KEY") => "gemini-api-key",
        None if is_true("CLOUD_SHELL") || is_true("GEMINI_CLI_USE_COMPUTE_ADC") => {
            "compute-default-credentials"
        }
        // It also reads variables from a `.env` file.
        None if dotenv(place, home, "GEMINI_API_KEY") => "gemini-api-key",
        None => {
            return Finding::problem(
                Subject::Login,
                "not logged in: neither its settings nor variables say how",
                "run gemini once and log in, or set GEMINI_API_KEY",
            );
        }
    };
    let lacks = |what: &str| {
        Finding::warning(
            Subject::Login,
            format!("its settings say {kind}, but {what}"),
            "run gemini once and log in again",
        )
    };
    match kind {
        "oauth-personal" if !home.join("oauth_creds.json").is_file() && !encrypts(place) => {
            lacks("there is no oauth_creds.json")
        }
        "gemini-api-key" if !set("GEMINI_API_KEY") && !dotenv(place, home, "GEMINI_API_KEY") => {
            lacks("no GEMINI_API_KEY is set; a key in the system's own store is not seen from here")
        }
        "vertex-ai"
            if !(set("GOOGLE_API_KEY") || set("GOOGLE_CLOUD_PROJECT") && set("GOOGLE_CLOUD_LOCATION")) =>
        {
            lacks("neither GOOGLE_API_KEY nor GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION are set")
        }
        kind => {
            Finding::ok(Subject::Login, format!("set up ({kind}); the program has no command to check it"))
        }
    }
}

/// Its logins are then encrypted, and only it can read them.
fn encrypts(place: &AgentDirs<'_>) -> bool {
    place.value("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE") == Some("true")
}

/// Whether a `.env` that it reads sets this variable.
fn dotenv(place: &AgentDirs<'_>, home: &Utf8Path, name: &str) -> bool {
    let near = place.dir.ancestors().flat_map(|dir| [dir.join(".gemini/.env"), dir.join(".env")]);
    let far = home.parent().into_iter().flat_map(|dir| [dir.join(".gemini/.env"), dir.join(".env")]);
    let found = near.chain(far).find_map(|path| text(&path));
    let sets = |line: &str| {
        let line = line.trim().trim_start_matches("export ");
        line.split_once('=').is_some_and(|(set, value)| set.trim() == name && !value.trim().is_empty())
    };
    found.is_some_and(|text| text.lines().any(sets))
}

/// `auto` and `full` trust the folder for the run; with `agent` it refuses one that is not trusted (exit code 55).
fn untrusted(place: &AgentDirs<'_>, home: &Utf8Path, settings: &Value) -> Option<Finding> {
    if settings["security"]["folderTrust"]["enabled"] == false {
        return None;
    }
    if place.value("GEMINI_CLI_TRUST_WORKSPACE") == Some("true") {
        return None;
    }
    let folders = json(&home.join("trustedFolders.json"));
    let rule = place.nearest(|dir| folders.get(dir.as_str()));
    if rule.and_then(Value::as_str).is_some_and(|rule| rule.starts_with("TRUST_")) {
        return None;
    }
    Some(Finding::ok(
        Subject::Permissions,
        "the folder is not trusted: with --permissions agent it would refuse to start here",
    ))
}
