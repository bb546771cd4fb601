//! `refrain trust`.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use refrain_core::git::Workflow;
use refrain_core::spec::{AgentKind, Permissions};
use refrain_core::text::{clip, printable};
use refrain_engine::config::{self, Config};
use refrain_engine::{EngineError, Trust, now};

use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::out;

/// Let the project's refrain.toml count, as it is now
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List what is trusted, of every project
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Trust nothing of this project any more
    #[arg(long)]
    revoke: bool,
    /// Print an array
    #[arg(long, requires = "list")]
    json: bool,
}

/// Shows what the file would allow, asks where there is somebody to ask, and trusts it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let trust = Trust::new(&context.host.state_home);
    if args.list {
        return list(&trust, args.json);
    }
    if let Some(own) = &context.inside {
        let error = format!("loop {own} cannot say what is trusted from inside an attempt");
        return Err(CliError::new(Code::Refused, error).hint("a person does that, from outside"));
    }
    let service = context.service()?;
    let project = service.project();
    if args.revoke {
        let count = trust.revoke(&project.root).map_err(EngineError::from)?;
        out::print(&match count {
            0 => "Nothing of this project was trusted.\n".to_owned(),
            1 => "One content of refrain.toml is trusted no longer.\n".to_owned(),
            count => format!("{count} contents of refrain.toml are trusted no longer.\n"),
        });
        return Ok(Code::Done.into());
    }
    let Some(file) = config::project_file(project)? else {
        let error = format!("there is no refrain.toml in {}", project.worktree);
        return Err(CliError::usage(error).hint("docs/configuration.md says what may stand in it"));
    };
    // Only what can be used is worth a decision.
    let allows = allows(&file.parse()?);
    let path = printable(file.path.as_str()).replace('\n', " ");
    if trust.is_trusted(&project.root, &file.text) {
        out::print(&format!("{path} is trusted already. It may\n{allows}"));
        return Ok(Code::Done.into());
    }
    out::print(&format!("{path} would\n{allows}"));
    if stdin().is_terminal() && !is_yes()? {
        return Err(CliError::new(Code::Failed, "it is not trusted; nothing was changed"));
    }
    // The very text that was shown, whatever lies there by now.
    trust.grant(&project.root, &file.text, now()).map_err(EngineError::from)?;
    out::print("It counts from now on, until it is changed. refrain trust --revoke takes that back.\n");
    Ok(Code::Done.into())
}

fn is_yes() -> Result<bool, CliError> {
    out::tell("Trust it? [y/N] ");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .map_err(|error| CliError::new(Code::Failed, format!("the answer cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn list(trust: &Trust, json: bool) -> Result<ExitCode, CliError> {
    let trusted = trust.list();
    if json {
        out::print_json(&trusted)?;
    } else if trusted.is_empty() {
        out::print("Nothing is trusted.\n");
    }
    for it in trusted.iter().filter(|_| !json) {
        let project = printable(it.project.as_str()).replace('\n', " ");
        out::print(&format!("{}  {}  {project}\n", it.at.strftime("%Y-%m-%d %H:%M"), &it.hash[..16]));
    }
    Ok(Code::Done.into())
}

/// How much of a prompt is shown, in bytes: the begin says which it is.
const SHOWN: usize = 200;

/// What the file makes Refrain do that its limits and templates do not: run, tell, set, read.
fn allows(config: &Config) -> String {
    let mut lines = Vec::new();
    let mut say = |verb: &str, what: &str, place: &str| {
        let flat = |text: &str| printable(text).replace('\n', " ");
        lines.push(format!("  {verb:<4} {}  ({})\n", flat(what), flat(place)));
    };
    let of_kind = |name: &str| AgentKind::named(name).and_then(AgentKind::program).map(str::to_owned);
    let start = &config.start;
    let program = start.command.as_ref().map(ToString::to_string);
    if let Some(what) = program.or_else(|| of_kind(start.agent.as_deref()?)) {
        say("run", &what, "start");
    }
    for (name, agent) in &config.agents {
        let place = format!("agents.{name}");
        let program = agent.command.as_ref().map(ToString::to_string);
        if let Some(what) = program.or_else(|| agent.kind?.program().map(str::to_owned)) {
            say("run", &what, &place);
        }
        for word in agent.args.iter().flatten() {
            say("add", word, &place);
        }
        if agent.permissions == Some(Permissions::Full) {
            say("give", "full permissions", &place);
        }
        agent.env.keys().for_each(|name| say("set", name, &place));
    }
    for word in start.agent_arg.iter().flatten() {
        say("add", word, "start");
    }
    if start.permissions == Some(Permissions::Full) {
        say("give", "full permissions", "start");
    }
    start.env.keys().for_each(|name| say("set", name, "start"));
    if config.git.workflow == Some(Workflow::Commit) {
        say("do", "a commit behind each iteration", "git");
    }
    if let Some(command) = &config.notify.command {
        say("run", &command.to_string(), "notify.command");
    }
    for (name, gate) in &config.gates {
        let place = format!("gates.{name}");
        gate.command.iter().for_each(|command| say("run", command, &place));
        gate.spec.iter().for_each(|file| say("read", file.as_str(), &place));
        gate.reviewer.iter().for_each(|reviewer| say("run", reviewer, &place));
    }
    if config.critique.every.is_some()
        && let Some(critic) = &config.critique.critic
    {
        say("run", critic, "critique");
    }
    for (name, prompt) in &config.prompts {
        let place = format!("prompts.{name}");
        match (&prompt.text, &prompt.file) {
            (Some(text), _) => say("say", &clip(text, SHOWN), &place),
            (None, Some(file)) => say("read", file.as_str(), &place),
            (None, None) => {}
        }
    }
    match lines.is_empty() {
        true => "  run nothing: it sets limits and the like\n".to_owned(),
        false => lines.concat(),
    }
}
