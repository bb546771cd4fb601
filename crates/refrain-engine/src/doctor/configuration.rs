//! The configuration: whether the files and variables can be used, whether the project's file counts, and whether the
//! programs and files are there that they name. Only a person can mend their contents.

use std::collections::BTreeSet;

use refrain_agents::{environment, generic};
use refrain_core::spec::AgentKind;
use refrain_core::view::checkup::{Finding, Grade, Subject};
use refrain_store::Project;
use refrain_store::access::trust::{Content, Trust};
use refrain_store::config::keys::Slack;
use refrain_store::config::{self, AgentChoice, Config, ConfigError, ConfigFile, Settings};

use super::cure::Diagnosis;
use crate::{Service, SlackTokens, Telemetry, chain};

/// What to do about a file that cannot be used.
const CORRECT: &str = "correct it; until then no loop starts, except with an option that replaces a wrong value; refrain docs configuration says what is accepted";

/// `variables` as for [`Service::settings`].
pub(super) fn look(service: &Service, variables: bool) -> Vec<Diagnosis> {
    let (host, project) = (service.host(), service.project());
    let user = config::user_file(&host.config_home);
    let mut findings: Vec<Finding> = user.transpose().into_iter().map(of_user).collect();
    let trust = Trust::new(&host.state_home);
    let shared = config::project_file(project).transpose();
    findings.extend(shared.map(|file| of_project(file, &trust, project)));
    if !findings.iter().any(|finding| finding.grade == Grade::Problem) {
        match service.settings(AgentChoice::default(), variables) {
            Ok(settings) => findings.extend(named(service, &settings)),
            Err(error) => findings.push(Finding::problem(Subject::Configuration, error.to_string(), CORRECT)),
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Subject::Configuration, "nothing is configured: all is as built in"));
    }
    findings.into_iter().map(Diagnosis::from).collect()
}

fn of_user(file: Result<ConfigFile, ConfigError>) -> Finding {
    match file.and_then(|file| file.parse().map(|_| file)) {
        Ok(file) => Finding::ok(Subject::Configuration, "all that it says is known").about(file.path),
        Err(error) => Finding::problem(Subject::Configuration, error.to_string(), CORRECT),
    }
}

fn of_project(file: Result<ConfigFile, ConfigError>, trust: &Trust, project: &Project) -> Finding {
    let file = match file {
        Ok(file) => file,
        Err(error) => return Finding::problem(Subject::Configuration, error.to_string(), CORRECT),
    };
    match (trust.is_trusted(&project.root, Content::File(&file.text)), file.parse()) {
        (true, Ok(_)) => Finding::ok(Subject::Configuration, "trusted as it is").about(file.path),
        (true, Err(error)) => Finding::problem(Subject::Configuration, error.to_string(), CORRECT),
        (false, Ok(_)) => Finding::warning(
            Subject::Configuration,
            "it is not trusted, so it is ignored",
            "refrain trust shows what it would allow, and asks",
        )
        .about(file.path),
        (false, Err(error)) => Finding::warning(
            Subject::Configuration,
            format!("{error}; it is not trusted either, and counts as not there"),
            "correct it, then refrain trust",
        ),
    }
}

/// The program of an agent that looks back on loops: an adapter's, or a command's. A named one's is among the agents.
fn judge<'a>(named: &'a Option<String>, config: &Config) -> Option<&'a str> {
    let named = named.as_deref()?;
    match AgentKind::named(named) {
        Some(kind) => kind.program(),
        None if config.agents.contains_key(named) => None,
        None => named.split_whitespace().next(),
    }
}

/// Files and programs that the settings name and that are missing.
fn named(service: &Service, settings: &Settings) -> Vec<Finding> {
    let env = environment::of_person(service.host().env.iter().cloned());
    let dir = &service.project().worktree;
    let config = &settings.config;
    let (mut findings, mut told) = (Vec::new(), BTreeSet::new());
    let agents = config.agents.iter().map(|(name, agent)| {
        let program = agent.command.as_ref().map(|command| command.program.as_str());
        (format!("agents.{name}"), program.or_else(|| agent.kind?.program()))
    });
    let start = &config.start;
    let kind = start.agent.as_deref().and_then(AgentKind::named).and_then(AgentKind::program);
    let program = start.command.as_ref().map(|command| command.program.as_str()).or(kind);
    let others = [
        ("start".to_owned(), program),
        ("memory.judge".to_owned(), judge(&config.memory.judge, config)),
        ("evolution".to_owned(), judge(&config.evolution.agent, config)),
    ];
    for (place, program) in agents.chain(others) {
        let Some(program) = program else { continue };
        if let Err(missing) = generic::find(program, dir, &env)
            && told.insert(program)
        {
            let advice =
                "install it, or correct what names it: refrain config show --origin says where that is";
            findings.push(Finding::warning(Subject::Configuration, missing.to_string(), advice).about(place));
        }
    }
    for (name, prompt) in &config.prompts {
        if let Some(file) = prompt.file.as_ref().filter(|file| !dir.join(file).is_file()) {
            let found = format!("there is no file {file}");
            let advice = "write it, or correct what names it";
            findings.push(
                Finding::warning(Subject::Configuration, found, advice).about(format!("prompts.{name}")),
            );
        }
    }
    if let Some(name) = start.prompt_name.as_ref().filter(|name| !config.prompts.contains_key(*name)) {
        let found = format!("{}: there is no prompt {name:?}", settings.origin("prompt-name"));
        let advice = format!("write [prompts.{name}], or name another");
        findings.push(Finding::warning(Subject::Configuration, found, advice));
    }
    if let Err(error) = Telemetry::new(config.telemetry.endpoint.as_deref(), service.host()) {
        let advice =
            "refrain docs telemetry says what is accepted; until then nothing is sent to a collector";
        findings.push(Finding::warning(Subject::Configuration, chain(&error), advice).about("telemetry"));
    }
    if config.slack != Slack::default()
        && let Err(error) = SlackTokens::of(service.host())
    {
        let advice = "refrain docs slack says how to come by one; until then serve says nothing there";
        findings.push(Finding::warning(Subject::Configuration, error.to_string(), advice).about("slack"));
    }
    findings
}
