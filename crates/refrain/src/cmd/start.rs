//! `refrain start`: from what a person typed to a specification, and then to a running loop.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{ArgGroup, ValueEnum};
use refrain_core::agent::Usd;
use refrain_core::promise::{MatchMode, Promise, PromiseText};
use refrain_core::spec::{
    AgentKind, AgentSpec, Limits, Millis, OutputFormat, Permissions, PromptMode, Secret,
};
use refrain_core::{LoopId, Spec};
use refrain_engine::{Listed, Project, Service, objection, prompt_limit};

use crate::cli::Context;
use crate::error::CliError;
use crate::run::{self, ShowArgs};
use crate::values;

/// Start a loop
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source").required(true), after_help = EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["command", "agent"]))]
pub(crate) struct Args {
    /// The task, in words; `-` reads it from stdin
    #[arg(group = "source", value_name = "PROMPT")]
    words: Vec<String>,
    /// The task, as one text
    #[arg(long, short, group = "source", value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The file that holds the task
    #[arg(long, group = "source", value_name = "FILE")]
    prompt_file: Option<Utf8PathBuf>,
    /// The loop's id; made up from the command where it is left out
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    /// What to run; words are split like a shell's, no shell runs it
    #[arg(long, short, value_name = "CMD ARGS")]
    command: Option<String>,
    /// Which adapter runs it; without it the kind follows the program's name, and is generic for all others
    #[arg(long, visible_alias = "backend", value_enum, value_name = "KIND")]
    agent: Option<Kind>,
    /// One more argument for it
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    agent_arg: Vec<String>,
    /// Set a variable for it
    #[arg(long, value_name = "K=V", value_parser = values::variable)]
    env: Vec<(String, String)>,
    /// Start it from a short list of variables, not from all of yours
    #[arg(long)]
    clean_env: bool,
    /// How the prompt reaches it
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    prompt_mode: Mode,
    /// What its standard output is
    #[arg(long, value_enum, default_value = "auto", value_name = "FORMAT")]
    output_format: Format,
    /// Which model it uses; its own choice where it is left out
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// What it may do unattended; `auto` where it is left out
    #[arg(long, value_enum, value_name = "WHAT")]
    permissions: Option<May>,
    /// The words that claim the work done
    #[arg(long, default_value = PROMISE, value_name = "TEXT", value_parser = promise_text)]
    completion_promise: PromiseText,
    /// No promise: the first run that ends with exit code 0 is the end
    #[arg(long, conflicts_with_all = ["completion_promise", "promise_match"])]
    no_promise: bool,
    /// Where the promise counts; `tag` for known agents, `plain` for commands where it is left out
    #[arg(long, value_enum, value_name = "MODE")]
    promise_match: Option<Match>,
    /// How many iterations at most, 1 to 200
    #[arg(long, short, default_value_t = Limits::DEFAULT_ITERATIONS, value_name = "N", allow_negative_numbers = true,
          value_parser = values::iterations)]
    max_iterations: u32,
    /// How long the loop may take, less pauses and waits: seconds, or like 90s, 5m, 1h30m
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    max_duration: Option<Millis>,
    /// How much money the loop may cost, in US dollars
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = values::usd)]
    max_cost: Option<Usd>,
    /// How many tokens the loop may use, in and out
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::tokens)]
    max_tokens: Option<u64>,
    /// How long the loop may wait for a provider in a row; 24h for a limit and 2h for an outage where it is left out
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    retry_for: Option<Millis>,
    /// How long one attempt may take; a bare number is seconds
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    timeout: Option<Millis>,
    /// How long one attempt may print nothing; 30m for known agents where it is left out, as none gives up on a silent model
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    idle_timeout: Option<Millis>,
    /// How long to rest between iterations
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::pause, default_value = "0")]
    pause: Pause,
    /// Where to run it; here, where it is left out
    #[arg(long, short, value_name = "DIR", value_parser = values::folder)]
    working_dir: Option<Utf8PathBuf>,
    /// Other loops may work in the same worktree: do not mention it
    #[arg(long)]
    share_worktree: bool,
    /// Give it your prompt alone, in every iteration
    #[arg(long)]
    no_iteration_context: bool,
    #[command(flatten)]
    show: ShowArgs,
}

type Pause = Option<Millis>;

/// No agent takes a longer prompt (agent-clis.md, trap 1), in bytes.
const LARGEST_PROMPT: u64 = 10 << 20;

const EXAMPLES: &str = "Examples:
  refrain start --command \"claude -p\" --prompt \"Fix the tests. Output <promise>COMPLETE</promise> when done.\"
  refrain start --command ./agent.sh --prompt-file TASK.md --max-iterations 10 --timeout 20m --detach";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Any command; its message is all of its standard output
    Generic,
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// OpenCode
    Opencode,
    /// Gemini CLI
    Gemini,
    /// A program that speaks the Agent Client Protocol
    Acp,
}

impl From<Kind> for AgentKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Generic => Self::Generic,
            Kind::Claude => Self::Claude,
            Kind::Codex => Self::Codex,
            Kind::Opencode => Self::Opencode,
            Kind::Gemini => Self::Gemini,
            Kind::Acp => Self::Acp,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum May {
    /// Edit and run commands in the worktree, confined as the agent itself can
    Auto,
    /// Everything: the agent's own flag that bypasses all questions
    Full,
    /// What it is configured to: nothing is added
    Agent,
}

impl From<May> for Permissions {
    fn from(may: May) -> Self {
        match may {
            May::Auto => Self::Auto,
            May::Full => Self::Full,
            May::Agent => Self::Agent,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// The last argument, or stdin for a prompt that is too long for one
    Auto,
    /// The last argument
    Arg,
    /// Standard input
    Stdin,
    /// The variable PROMPT
    Env,
    /// The path of a file, as the last argument
    File,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// What the adapter expects: text of commands, their stream of known agents
    Auto,
    /// A message
    Text,
    /// One JSON document that holds the message as result, response, text or message
    Json,
    /// A stream of JSON events, as Claude Code prints it
    StreamJson,
}

impl From<Format> for OutputFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Auto => Self::Auto,
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::StreamJson => Self::StreamJson,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Match {
    /// Its tag, alone on a line or ending the last one
    Tag,
    /// Its tag, or the bare words as the last line
    Plain,
    /// Anywhere
    Substring,
}

impl From<Match> for MatchMode {
    fn from(mode: Match) -> Self {
        match mode {
            Match::Tag => Self::Tag,
            Match::Plain => Self::Plain,
            Match::Substring => Self::Substring,
        }
    }
}

/// What claims the work done where nothing else is said.
pub(super) const PROMISE: &str = "COMPLETE";

pub(super) fn promise_text(text: &str) -> Result<PromiseText, String> {
    PromiseText::try_new(text)
        .map_err(|error| format!("{error}; accepted are words without < > and backticks"))
}

/// Starts the loop and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    let dir = match &args.working_dir {
        Some(dir) => context.dir.join(dir),
        None => context.dir.clone(),
    };
    if !dir.is_dir() {
        return Err(CliError::usage(format!("--working-dir {dir}: there is no such folder")));
    }
    if args.show.detach {
        run::may_detach(context)?;
    }
    let service = Service::open(&dir, context.host.clone())?;
    let named = args.name.clone();
    let spec = resolve(context, &args, service.project(), &dir)?;
    if !args.share_worktree {
        mention_neighbours(&service, &spec)?;
    }
    let untested = service.untested(&spec);
    let runner = service.start(spec, named)?;
    if let Some((version, tested)) = untested.filter(|_| !args.show.quiet) {
        let name = runner.id();
        crate::out::tell(&format!(
            "note: loop {name} runs a program of version {version}; Refrain was tested with {tested}\n"
        ));
    }
    match args.show.detach {
        true => run::detached(context, &service, runner, dir.as_str(), &args.show),
        false => run::in_foreground(context, runner, &args.show),
    }
}

/// The specification. Nothing past here sees an option that means "default".
fn resolve(context: &Context, args: &Args, project: &Project, dir: &Utf8PathBuf) -> Result<Spec, CliError> {
    let (kind, program, words) = agent(args)?;
    let output_format = output_format(args, kind)?;
    let words: Vec<String> = words.into_iter().chain(args.agent_arg.iter().cloned()).collect();
    if let Some(why) = objection(kind, &words) {
        return Err(CliError::usage(why).hint("--agent generic reads what any command prints"));
    }
    let prompt = read_prompt(context, args)?;
    let prompt_mode = match args.prompt_mode {
        Mode::Auto => PromptMode::Auto,
        Mode::Arg => PromptMode::Arg,
        Mode::Stdin => PromptMode::Stdin,
        Mode::Env => PromptMode::Env,
        Mode::File => PromptMode::File,
    };
    if kind == AgentKind::Acp && !matches!(prompt_mode, PromptMode::Auto | PromptMode::Stdin) {
        let error = "--prompt-mode: an ACP agent gets its prompt in the protocol; accepted is auto";
        return Err(CliError::usage(error));
    }
    if matches!(prompt_mode, PromptMode::Arg | PromptMode::Env) {
        prompt_limit::check(&prompt).map_err(|error| {
            CliError::usage(format!("{error}; accepted then is --prompt-mode stdin or file"))
        })?;
    }
    let promise = (!args.no_promise)
        .then(|| Promise { text: args.completion_promise.clone(), mode: mode(args, kind, output_format) });
    let env: BTreeMap<_, _> =
        args.env.iter().map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect();
    let working_dir =
        dir.canonicalize_utf8().map_err(|error| CliError::usage(format!("--working-dir {dir}: {error}")))?;
    let id = args.name.clone().unwrap_or_else(|| LoopId::derived(&program, 0));
    for (is_given, flag) in [(args.model.is_some(), "--model"), (args.permissions.is_some(), "--permissions")]
    {
        if is_given && kind == AgentKind::Generic {
            let error = format!("{flag}: a generic command cannot be told; accepted are known agents");
            return Err(CliError::usage(error).hint("--agent-arg passes an argument of its own"));
        }
    }
    let agent = AgentSpec {
        kind,
        program,
        args: words,
        prompt_mode,
        env,
        clean_env: args.clean_env,
        model: args.model.clone(),
        permissions: args.permissions.map(Permissions::from).unwrap_or_default(),
        output_format,
    };
    agent.admits(args.max_cost.is_some(), args.max_tokens.is_some()).map_err(|refusal| {
        CliError::usage(refusal.to_string()).hint(if agent.kind.streams() {
            "--max-tokens can be kept"
        } else {
            "--max-tokens can be kept with known agents, --max-cost with some"
        })
    })?;
    Ok(Spec {
        // Replaced where no name is given: the service makes one up that is free.
        id,
        agent,
        prompt,
        iteration_context: !args.no_iteration_context,
        promise,
        limits: Limits {
            max_iterations: Some(args.max_iterations),
            max_duration: args.max_duration,
            timeout: args.timeout,
            idle_timeout: args.idle_timeout.or(kind.streams().then_some(Limits::DEFAULT_SILENCE)),
            pause: args.pause,
            max_cost: args.max_cost,
            max_tokens: args.max_tokens,
            retry_for: args.retry_for,
        },
        project: project.root.clone(),
        worktree: project.worktree.clone(),
        working_dir,
        depth: context.depth,
        output_cap: Spec::OUTPUT_CAP,
    })
}

/// The adapter, the program and its arguments.
fn agent(args: &Args) -> Result<(AgentKind, String, Vec<String>), CliError> {
    let asked = args.agent.map(AgentKind::from);
    let Some(command) = &args.command else {
        let kind = asked.unwrap_or(AgentKind::Generic);
        let program = kind.program().ok_or_else(|| {
            CliError::usage(format!(
                "--agent {kind}: accepted is that with --command, which says what to run"
            ))
        })?;
        return Ok((kind, program.to_owned(), Vec::new()));
    };
    let mut words = shlex::split(command)
        .ok_or_else(|| CliError::usage(format!("--command {command:?}: a quotation is not closed")))?
        .into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program =
        program.ok_or_else(|| CliError::usage("--command \"\": accepted is a program and its arguments"))?;
    let kind = asked.unwrap_or_else(|| AgentKind::of_program(&program));
    Ok((kind, program, words.collect()))
}

/// What its standard output is: of known agents their stream, which is read by its own rules.
fn output_format(args: &Args, kind: AgentKind) -> Result<OutputFormat, CliError> {
    match (OutputFormat::from(args.output_format), kind) {
        (format @ (OutputFormat::Text | OutputFormat::Json), kind) if kind.streams() => {
            let name = if format == OutputFormat::Text { "text" } else { "json" };
            let error = format!(
                "--output-format {name}: of {kind} its stream is read; accepted are auto and stream-json"
            );
            Err(CliError::usage(error).hint("--agent generic reads what any command prints"))
        }
        (format, _) => Ok(format),
    }
}

/// Where the promise counts, unless it was said: a stream's final message is known, all else is the whole output.
fn mode(args: &Args, kind: AgentKind, format: OutputFormat) -> MatchMode {
    let streams = kind.streams() || matches!(format, OutputFormat::Json | OutputFormat::StreamJson);
    match args.promise_match {
        Some(mode) => mode.into(),
        None if streams => MatchMode::Tag,
        None => MatchMode::Plain,
    }
}

fn read_prompt(context: &Context, args: &Args) -> Result<String, CliError> {
    let unreadable = |name: &str, error: std::io::Error| {
        CliError::usage(format!(
            "{name} cannot be read as a prompt: {error}; accepted is a readable file of UTF-8 text"
        ))
    };
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => {
            let path = context.dir.join(file);
            let of_file = |error| unreadable(&format!("--prompt-file {file}"), error);
            // What is no file may never end, or never begin.
            let meta = std::fs::metadata(&path).map_err(of_file)?;
            if !meta.is_file() || meta.len() > LARGEST_PROMPT {
                let error = std::io::Error::other(format!("it is no file of at most {LARGEST_PROMPT} bytes"));
                return Err(of_file(error));
            }
            std::fs::read_to_string(&path).map_err(of_file)?
        }
        (None, None) if args.words == ["-"] => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable("stdin", error))?;
            text
        }
        (None, None) => args.words.join(" "),
    };
    if prompt.trim().is_empty() {
        return Err(CliError::usage("the prompt is empty; accepted is what the agent is to do"));
    }
    Ok(prompt)
}

/// Loops that neither commit nor have gates may share a worktree; but whoever starts the second should know of the first.
fn mention_neighbours(service: &Service, spec: &Spec) -> Result<(), CliError> {
    for row in service.list()? {
        if let Listed::Loop(other) = row
            && !other.has_stopped()
            && other.worktree == spec.worktree
        {
            crate::out::tell(&format!(
                "note: loop {} is running in {} too; --share-worktree says that this is meant\n",
                other.id, other.worktree
            ));
        }
    }
    Ok(())
}
