//! `refrain start`: parses the command line and drives the requested loop or plan.

use std::process::ExitCode;
use std::thread::JoinHandle;

use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::fleet::On;
use refrain_app::options::heading;
use refrain_app::options::work::{TaskArgs, WordArgs};
use refrain_app::resolve::{StartLoop, Words};
use refrain_app::verbs::start::{PreparedLoop, StartedLoop, prepare};
use refrain_app::{Action, Context, RequestError};
use refrain_core::sandbox::Mechanism;
use refrain_engine::sandbox;

use crate::cmd::connect::fleet;
use crate::cmd::plan::run::{self as plan, ByTag};
use crate::render::gates;
use crate::run::{self, ShowArgs};
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    mode: ModeArgs,
}

// Its way of working.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ModeArgs {
    /// The way of working: research, implement, or a mode of the configuration; the prompt is its topic
    #[arg(help_heading = heading::RUN, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) mode: Option<String>,
}

impl ModeArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.mode.is_some()
    }
}

// What a loop is started with, in every mode.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source"))]
pub(crate) struct Options {
    #[command(flatten)]
    task: WordArgs,
    #[command(flatten)]
    begin: BeginArgs,
    #[command(flatten)]
    plan: ByTag,
    /// Where it runs [default: here]
    #[arg(help_heading = heading::PLACE, long, value_enum, value_name = "WHERE")]
    on: Option<On>,
    #[command(flatten)]
    show: ShowArgs,
}

impl Args {
    /// A verb that is a mode: a number alone in place of a task is the maximum of iterations.
    pub(crate) fn of_mode(mode: &str, mut options: Options) -> Result<Self, RequestError> {
        if let [word] = options.task.words.as_slice()
            && is_number(word)
        {
            let begin = &mut options.begin;
            begin.max_iterations = Some(begin.until.at_most(word, begin.max_iterations)?);
            options.task.words.clear();
        }
        // A number before a task may be meant as the maximum, and a maximum that is not kept costs money.
        if let [word, _, ..] = options.task.words.as_slice()
            && is_number(word)
        {
            let error = format!(
                "{word}: accepted: a number alone, or a task; --iterations {word} sets the maximum of iterations beside a task"
            );
            return Err(RequestError::usage(error));
        }
        Ok(Self { options, mode: ModeArgs { mode: Some(mode.to_owned()) } })
    }
}

/// Whether a word is nothing but digits.
pub(crate) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

// Short lines: a line that a narrow terminal wraps cannot be copied.
const EXAMPLES: &str =
    "Options that are not given come from the configuration: refrain config show, refrain docs configuration

Examples:
  refrain start --agent claude \\
    --max-cost 5 \"Fix the tests.\"
  refrain start --agent codex \\
    --gate \"cargo test\" \\
    --soft-gate \"cargo clippy\" \\
    --git-workflow commit \\
    --prompt-file TASK.md
  refrain start --command ./agent.sh \\
    --max-iterations 10 \\
    --timeout 20m --detach \\
    \"Fix the tests.\"";

/// Starts the loop and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let Args { options: Options { task, mut begin, plan, on, show }, mode } = args;
    if plan.asked() {
        let BeginArgs { name, mirror, work, max_iterations, .. } = begin;
        return plan::run_plan(context, plan.into_parts(), (name, mirror), (max_iterations, on), work, show);
    }
    if show.detach {
        context.check(Action::Detach)?;
    }
    let words = words(&task, &mut begin.task);
    let mut request = StartLoop { words, mode: mode.mode, options: begin, takes_default_gates: true };
    if let Some(On::Fleet) = on {
        return fleet::start(context, &mut request, &show);
    }
    let mut prepared = prepare(context, &request, &mut out::tell_note)?;
    if accepts_gates(context, &request, &prepared)? {
        prepared.trust_gates(context, &request)?;
    }
    show.notify.check(context)?;
    let probe = probe_sandbox(context, &prepared, &show);
    let started = prepared.start(context, &mut out::tell_note)?;
    if probe.is_some_and(|probe| probe.join().unwrap_or_default()) {
        out::tell("sandbox: available, add --sandbox\n");
    }
    launch(context, started, show)
}

/// Probes beside the start whether there could be a sandbox, for a user who reads the header and has not decided about it.
fn probe_sandbox(context: &Context, prepared: &PreparedLoop, show: &ShowArgs) -> Option<JoinHandle<bool>> {
    let is_decided = prepared.settings.config.sandbox.mode.is_some()
        || ["sandbox", "no-sandbox"].into_iter().any(|option| context.typed.names(option));
    if is_decided || show.quiet || show.json || show.events {
        return None;
    }
    let host = context.host.clone();
    std::thread::Builder::new()
        .spawn(move || sandbox::probe_machine(&host, Mechanism::default()).is_ok())
        .ok()
}

/// Whether the user at the terminal, if there is one, trusts the gates that the project offers.
fn accepts_gates(
    context: &Context,
    request: &StartLoop,
    prepared: &PreparedLoop,
) -> Result<bool, RequestError> {
    let gates = &prepared.untrusted_gates.gates;
    if gates.is_empty() || !values::can_ask(context) || matches!(request.words, Some(Words::Stdin)) {
        return Ok(false);
    }
    out::tell(&gates::offered(gates));
    values::confirm("Trust these commands and use them as gates? [y/N] ")
}

/// The task in the words of the command line; `-` reads it from standard input, as the value of an option too.
fn words(args: &WordArgs, task: &mut TaskArgs) -> Option<Words> {
    match args.words.as_slice() {
        [] => task.take_stdin().then_some(Words::Stdin),
        [word] if word == "-" => Some(Words::Stdin),
        words => Some(Words::Text(words.join(" "))),
    }
}

/// Drives a loop, here or in a process of its own.
pub(crate) fn launch(
    context: &Context,
    started: StartedLoop,
    show: ShowArgs,
) -> Result<ExitCode, RequestError> {
    if !show.quiet {
        started.notes.into_iter().for_each(out::tell_note);
    }
    let show = show.or_configured(&started.settings.config.notify);
    run::drive(context, &started.service, started.runner, &started.dir, &show)
}
