use std::process::ExitCode;

use clap::ValueEnum;
use refrain_app::plan::SourceArgs;
use refrain_app::trust::Trustable;
use refrain_app::verbs::initialize::{Initialize, initialize};
use refrain_app::{Code, Context, RequestError};
use refrain_core::gate::Offer;
use refrain_core::spec::AgentKind;
use refrain_core::text::printable;
use refrain_engine::config::{AgentChoice, ConfigFile, ProjectFile};
use refrain_engine::{Choices, Extras, FileAction, GitUse, PreparedFile, Service};

use crate::render::gates;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain init
  refrain init --agent claude --git commit --yes")]
pub(crate) struct Args {
    /// Which agent loops run: claude, codex, opencode, gemini [default: the first in PATH]
    #[arg(long, value_name = "KIND")]
    agent: Option<String>,
    /// Where loops work and commit [default: worktree]
    #[arg(long, value_enum, value_name = "WHERE")]
    git: Option<Git>,
    /// Do not use the gates that the project offers
    #[arg(long)]
    no_gates: bool,
    /// Do not ask for a sandbox for agents and gates
    #[arg(long)]
    no_sandbox: bool,
    /// Targets for Make too: loop-research, loop-implement
    #[arg(long)]
    make: bool,
    /// Tasks for VS Code too
    #[arg(long)]
    vscode: bool,
    /// Write nothing, and print what would be written
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing, and trust what is written
    #[arg(long)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Git {
    /// In a worktree and on a branch of their own
    Worktree,
    /// Where you work
    Commit,
    /// They commit nothing
    None,
}

impl From<Git> for GitUse {
    fn from(git: Git) -> Self {
        match git {
            Git::Worktree => Self::Worktree,
            Git::Commit => Self::Commit,
            Git::None => Self::None,
        }
    }
}

/// Prepares the project, and reports what was done to each file.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let service = context.service()?;
    let best = service.best_git_use()?;
    let mut choices = choices(&service, args, best)?;
    let offer = service.offer(&service.project().worktree)?;
    let asks = values::can_ask(context)
        && !args.yes
        && !args.dry_run
        && project_file(context, &service)? == ProjectFile::Absent;
    if asks {
        choices = ask(&offer, choices)?;
    }
    let request = Initialize {
        extras: Extras { make: args.make, vscode: args.vscode },
        choices,
        is_rehearsal: args.dry_run,
        trusts: asks || args.yes,
    };
    let (files, is_trusted) = initialize(context, &service, &request)?;
    let mut text: String = files.iter().map(|file| told(file, args.dry_run)).collect();
    let is_new = files.iter().any(PreparedFile::is_new_configuration);
    if !is_new {
        text.push_str(&without_effect(args));
    }
    if !args.dry_run && is_new {
        text.push_str(without_git(best, request.choices.git));
        text.push_str(&uncommitted(&files, best, request.choices.git));
        text.push_str(&match is_trusted {
            true => format!("next: {}\n", first_start(&request.choices, &offer)),
            false => format!("next: {}\n", how_to_trust(context, &service)?),
        });
    }
    // A file that cannot be read is kept as it is, and named above.
    if !args.dry_run && !is_new && matches!(project_file(context, &service), Ok(ProjectFile::Untrusted(_))) {
        text.push_str(&format!("next: {}\n", how_to_trust(context, &service)?));
    }
    out::print(&text);
    Ok(Code::Done.into())
}

/// A line about the options that would have been written, had there been no configuration; empty if there are none.
fn without_effect(args: &Args) -> String {
    let given = [
        ("--agent", args.agent.is_some()),
        ("--git", args.git.is_some()),
        ("--no-gates", args.no_gates),
        ("--no-sandbox", args.no_sandbox),
        ("--yes", args.yes),
    ];
    let given: Vec<_> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    match given.as_slice() {
        [] => String::new(),
        given => format!(
            "note: refrain.toml was there and is kept, so {} changed and trusted nothing in it: edit it, then refrain trust\n",
            given.join(", ")
        ),
    }
}

/// A line about what loops cannot do in a folder without git; empty in a repository.
fn without_git(best: GitUse, git: GitUse) -> &'static str {
    match (best, git) {
        (GitUse::Worktree | GitUse::Commit, _) => "",
        (GitUse::None, GitUse::None) => {
            "note: this folder is no git repository: loops commit nothing here. To change that: git init, then \
             workflow and worktree in [git] of refrain.toml\n"
        }
        (GitUse::None, GitUse::Worktree | GitUse::Commit) => {
            "note: this folder is no git repository: run git init, as no loop can start before that\n"
        }
    }
}

/// A line about the files that no worktree of a loop has before they are committed.
fn uncommitted(files: &[PreparedFile], best: GitUse, git: GitUse) -> String {
    if best == GitUse::None || git != GitUse::Worktree {
        return String::new();
    }
    let changed = |file: &&PreparedFile| matches!(file.fate, FileAction::Made(_) | FileAction::Added(_));
    let changed: Vec<_> = files.iter().filter(changed).map(|file| file.path.as_str()).collect();
    format!(
        "note: the worktree of a loop begins at a commit, and lacks these files until then: git add {} && git commit\n",
        changed.join(" ")
    )
}

/// A start that works here.
fn first_start(choices: &Choices, offer: &Offer) -> String {
    let goal = if offer.has_required() { "Fix the tests." } else { "Write the first test." };
    match choices.agent {
        Some(_) => format!("refrain start \"{goal}\""),
        None => format!(
            "install an agent, then refrain start --agent claude \"{goal}\"; refrain demo needs no agent"
        ),
    }
}

/// What the user types to trust the new file: at a terminal a question, elsewhere the hash of what is there.
fn how_to_trust(context: &Context, service: &Service) -> Result<String, RequestError> {
    let until = "until then refrain.toml does not count";
    let found = Trustable::of(context, service, &SourceArgs::default())?;
    if let Some(Err(error)) = found.file.as_ref().map(ConfigFile::entries) {
        return Ok(format!("correct that file ({error}), then refrain trust; {until}"));
    }
    if values::can_ask(context) {
        return Ok(format!("refrain trust, which shows refrain.toml and asks; {until}"));
    }
    Ok(format!("refrain trust --show, then refrain trust --hash {}; {until}", found.hash()))
}

fn project_file(context: &Context, service: &Service) -> Result<ProjectFile, RequestError> {
    Ok(service.settings(AgentChoice::default(), context.has_variables())?.project_file)
}

/// The values of the options, else the defaults.
fn choices(service: &Service, args: &Args, best: GitUse) -> Result<Choices, RequestError> {
    let agent = match &args.agent {
        Some(name) => Some(agent(name)?),
        None => service.installed_agents().first().copied(),
    };
    let git = match args.git {
        Some(git) => git.into(),
        None => best,
    };
    Ok(Choices {
        agent: agent.map(|kind| kind.to_string()),
        gates: !args.no_gates,
        git,
        sandbox: !args.no_sandbox,
    })
}

fn agent(name: &str) -> Result<AgentKind, RequestError> {
    let known = AgentKind::named(name).filter(|kind| kind.program().is_some());
    known.ok_or_else(|| {
        RequestError::usage(format!("--agent {name}: accepted: claude, codex, opencode, gemini"))
            .hint("refrain config set start.command CMD names another program for all your projects")
    })
}

/// Asks the questions; the choices so far are the defaults.
fn ask(offer: &Offer, choices: Choices) -> Result<Choices, RequestError> {
    let default = choices.agent.as_deref().unwrap_or("none");
    let agent = loop {
        let answer = values::ask("Agent: claude, codex, opencode, gemini or none?", default)?;
        match answer.as_str() {
            "none" => break None,
            name => match self::agent(name) {
                Ok(kind) => break Some(kind.to_string()),
                Err(error) => out::tell(&format!("{error}\n")),
            },
        }
    };
    let gates = if offer.has_required() {
        out::tell(&gates::offered(&offer.gates));
        yes_or_no("Use these gates? yes or no", choices.gates)?
    } else {
        out::tell("No test was found that could be a gate: add one with refrain start --gate CMD.\n");
        choices.gates
    };
    let default = match choices.git {
        GitUse::Worktree => "worktree",
        GitUse::Commit => "commit",
        GitUse::None => "none",
    };
    let question = "Where do loops commit? worktree (each on its own branch), commit (here) or none";
    let git = answered(question, default, |it| Git::from_str(it, true).ok().map(GitUse::from))?;
    let question = "Run agents and gates in a sandbox where the machine can make one? yes or no";
    let sandbox = yes_or_no(question, choices.sandbox)?;
    Ok(Choices { agent, gates, git, sandbox })
}

fn yes_or_no(question: &str, default: bool) -> Result<bool, RequestError> {
    answered(question, if default { "yes" } else { "no" }, |answer| match answer {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    })
}

/// The first answer that is accepted.
fn answered<T>(question: &str, default: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, RequestError> {
    loop {
        if let Some(value) = read(&values::ask(question, default)?) {
            return Ok(value);
        }
    }
}

/// The result for a file; with its text in a dry run, or if the user has to write it.
fn told(PreparedFile { path, fate }: &PreparedFile, is_rehearsal: bool) -> String {
    let would = if is_rehearsal { "would be " } else { "" };
    let shown = |text: &str| -> String {
        let lines = printable(text);
        lines.lines().map(|line| format!("  + {line}").trim_end().to_owned() + "\n").collect()
    };
    let rehearsed = |text: &str| if is_rehearsal { shown(text) } else { String::new() };
    match fate {
        FileAction::Made(text) => format!("{path}: {would}written\n{}", rehearsed(text)),
        FileAction::Added(text) => {
            format!("{path}: {would}added to, after what it holds\n{}", rehearsed(text))
        }
        FileAction::Left => format!("{path}: left as it is\n"),
        FileAction::ByHand { why, text } => {
            format!("{path}: left as it is, as {why}; to be added by hand:\n{}", shown(text))
        }
    }
}
