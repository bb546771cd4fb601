//! Information from OpenCode before it is run (1.18.33). `opencode auth list` counts credentials and names variables
//! that hold some; a provider in its configuration may need neither. `opencode debug config` prints its effective
//! configuration; only the permissions are read, as the rest may contain keys.

use refrain_core::text::printable;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::probe::ProbeOutput;
use serde_json::Value;

use crate::checkup::{AgentDirs, Checkup, Question, silent};

/// Without these it downloads lists of models, and with a plugin it installs a package.
const OFFLINE: &[(&str, &str)] = &[
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("NO_COLOR", "1"),
];
const QUESTIONS: [Question; 2] = [
    Question { args: &["--pure", "auth", "list"], env: OFFLINE },
    Question { args: &["--pure", "debug", "config"], env: OFFLINE },
];

impl Checkup for super::OpenCode {
    fn questions(&self) -> &'static [Question] {
        &QUESTIONS
    }

    fn findings(&self, _: &AgentDirs<'_>, answers: &[Option<ProbeOutput>]) -> Vec<Finding> {
        let said = |index: usize| answers.get(index).and_then(Option::as_ref).map(|answer| &*answer.stdout);
        let config: Option<Value> = said(1).and_then(|text| serde_json::from_str(text).ok());
        let providers = config.as_ref().map(|config| config["provider"].as_object());
        let has_provider =
            providers.map(|providers| providers.is_some_and(|providers| !providers.is_empty()));
        let login = said(0).and_then(|said| login(said, has_provider));
        let mut findings = vec![login.unwrap_or_else(|| silent(None, "opencode auth list"))];
        findings.extend(config.as_ref().and_then(asking));
        findings
    }
}

/// None if it has no credentials, and it is unknown whether it needs some.
fn login(said: &str, has_provider: Option<bool>) -> Option<Finding> {
    let said = printable(said);
    let words: Vec<&str> = said.split_whitespace().collect();
    let count = |before: &str| {
        let pair = words.windows(2).find(|pair| pair[1].starts_with(before));
        pair.and_then(|pair| pair[0].parse::<u32>().ok()).unwrap_or(0)
    };
    match (count("credential"), count("environment")) {
        (0, 0) => has_provider.map(|has_provider| match has_provider {
            true => Finding::ok(Subject::Login, "no credentials, but a provider in its configuration"),
            false => Finding::warning(
                Subject::Login,
                "no credentials, neither its own nor in variables",
                "run opencode auth login, unless the model that it uses needs none",
            ),
        }),
        (own, variables) => Some(Finding::ok(
            Subject::Login,
            format!("{} of its own, {variables} in variables", counted(own)),
        )),
    }
}

fn counted(credentials: u32) -> String {
    if credentials == 1 { "1 credential".to_owned() } else { format!("{credentials} credentials") }
}

/// A permission of `ask` ends a run at once, with exit code 0.
fn asking(config: &Value) -> Option<Finding> {
    let tools = config["permission"].as_object()?;
    let asks = |rule: &Value| match rule {
        Value::String(rule) => rule == "ask",
        Value::Object(rules) => rules.values().any(|rule| rule == "ask"),
        _ => false,
    };
    let asked: Vec<&str> =
        tools.iter().filter(|(_, rule)| asks(rule)).map(|(tool, _)| tool.as_str()).collect();
    (!asked.is_empty()).then(|| {
        Finding::warning(
            Subject::Permissions,
            format!("its configuration asks before {}: a run ends there", asked.join(", ")),
            "allow or deny it there, or give --permissions full, which answers yes",
        )
    })
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Grade;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_printed_provider_list_of_opencode_is_read() {
        let none =
            "\u{1b}[0m\n┌  Credentials \u{1b}[90m~/.local/share/opencode/auth.json\n│\n└  0 credentials\n\n";
        let key = format!(
            "{none}┌  Environment\n│\n●  Anthropic \u{1b}[90mANTHROPIC_API_KEY\n│\n└  1 environment variable\n\n"
        );
        let grade = |has_provider| login(none, has_provider).map(|finding| finding.grade);
        assert_eq!([None, Some(false), Some(true)].map(grade), [None, Some(Grade::Warning), Some(Grade::Ok)]);
        let found = login(&key, None).map(|finding| finding.found);
        assert_eq!(found.as_deref(), Some("0 credentials of its own, 1 in variables"));
    }

    #[test]
    fn permissions_that_would_ask_are_named() {
        let config = json!({"permission": {"bash": {"git push": "ask", "*": "allow"}, "edit": "ask", "read": "allow"}});
        let finding = asking(&config).unwrap();
        assert!(finding.found.contains("bash, edit:"), "{}", finding.found);
        assert_eq!(asking(&json!({"permission": {"bash": "allow"}})), None);
        assert_eq!(asking(&json!({"permission": "allow"})), None);
    }
}
