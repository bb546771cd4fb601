//! Information from Codex before it is run (0.169.0). `codex login status` reads its own files; a key in the
//! environment and a custom provider of the user need no login and are not included. `codex sandbox` tests what
//! `--permissions auto` needs.

use camino::Utf8Path;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::probe::ProbeOutput;
use toml::{Table, Value};

use crate::checkup::{AgentDirs, Checkup, Question, silent, text};

const QUESTIONS: [Question; 2] = [
    Question { args: &["login", "status"], env: &[] },
    Question { args: &["sandbox", "--", "true"], env: &[] },
];

impl Checkup for super::Codex {
    fn questions(&self) -> &'static [Question] {
        &QUESTIONS
    }

    fn findings(&self, place: &AgentDirs<'_>, answers: &[Option<ProbeOutput>]) -> Vec<Finding> {
        let answer = |index: usize| answers.get(index).and_then(Option::as_ref);
        let config = place.home("CODEX_HOME", ".codex").map(|home| home.join("config.toml"));
        let config = config.and_then(|path| text(&path)?.parse().ok()).unwrap_or_default();
        let mut findings = vec![login(place, &config, answer(0))];
        findings.extend(sandbox(answer(1)));
        findings.extend(untrusted(place, &config));
        findings
    }
}

fn login(place: &AgentDirs<'_>, config: &Table, answer: Option<&ProbeOutput>) -> Finding {
    let Some(answer) = answer else { return silent(answer, "codex login status") };
    if answer.code == Some(0) {
        let said = answer.stdout.lines().chain(answer.stderr.lines());
        let how = said.map(str::trim).find(|line| !line.is_empty() && !line.starts_with("WARNING"));
        // After a dash it may show a part of a key.
        let how = how.and_then(|line| line.split(" - ").next()).unwrap_or("logged in");
        return Finding::ok(Subject::Login, how);
    }
    if place.value("CODEX_API_KEY").is_some() {
        return Finding::ok(Subject::Login, "a key in CODEX_API_KEY");
    }
    match provider(config).filter(|provider| *provider != "openai") {
        Some(provider) => Finding::ok(
            Subject::Login,
            format!("its configuration names the provider {provider}, which needs no login of Codex"),
        ),
        None => Finding::problem(Subject::Login, "not logged in", "run codex login, or set CODEX_API_KEY"),
    }
}

fn sandbox(answer: Option<&ProbeOutput>) -> Option<Finding> {
    let answer = answer?;
    if answer.code == Some(0) {
        return Some(Finding::ok(Subject::Permissions, "its sandbox works here"));
    }
    let said = answer.stderr.lines().rfind(|line| !line.starts_with("WARNING")).unwrap_or("no reason given");
    Some(Finding::warning(
        Subject::Permissions,
        format!("its sandbox does not work here, so with --permissions auto it can run nothing: {said}"),
        "let the system allow user namespaces, or give --permissions full in a container of its own",
    ))
}

/// It works in an untrusted folder, but silently ignores the project's own configuration and hooks.
fn untrusted(place: &AgentDirs<'_>, config: &Table) -> Option<Finding> {
    if !place.dir.join(".codex").is_dir() {
        return None;
    }
    let is_trusted = |dir: &Utf8Path| trust_of(config, dir).filter(|level| level.as_str() == Some("trusted"));
    if place.nearest(is_trusted).is_some() {
        return None;
    }
    Some(Finding::warning(
        Subject::Permissions,
        "the project's .codex folder does not count: the folder was never trusted",
        "run codex here once and trust the folder",
    ))
}

/// The provider of the user's choice.
fn provider(config: &Table) -> Option<&str> {
    config.get("model_provider")?.as_str()
}

/// The trust level of this folder.
fn trust_of<'a>(config: &'a Table, dir: &Utf8Path) -> Option<&'a Value> {
    config.get("projects")?.get(dir.as_str())?.get("trust_level")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codex_configuration_is_read_as_far_as_needed() {
        let config = "# model_provider = \"no\"\nmodel = 'm'\nmodel_provider = \"mine\" # yes\n\
            [projects.\"/work/it\"]\ntrust_level = \"trusted\"\n[model_providers.mine]\nmodel_provider = 'x'\n";
        let config: Table = config.parse().unwrap();
        assert_eq!(provider(&config), Some("mine"));
        assert_eq!(provider(&"[a]\nmodel_provider = \"x\"".parse().unwrap()), None);
        assert_eq!(trust_of(&config, "/work/it".into()), Some(&Value::from("trusted")));
        assert_eq!(trust_of(&config, "/work".into()), None);
    }
}
