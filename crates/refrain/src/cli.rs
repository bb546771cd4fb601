//! The command line as a whole: which verbs there are, and what each leads to. The loop verbs stand at the top level and
//! under `loop`, from one definition.

use std::ffi::OsString;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use refrain_engine::{Host, Service};

use crate::cmd;
use crate::effects::TypedOptions;
use crate::error::CliError;
use crate::live::Manner;
use crate::out::Target;
use crate::values::{forces_colour, read_environment};

/// Runs a coding agent again and again until the work is proven done, and then stops.
#[derive(Debug, Parser)]
#[command(
    name = "refrain",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_long_help = EXIT_CODES,
    max_term_width = 100
)]
struct Cli<V: Subcommand> {
    /// Run as if started in DIR
    #[arg(short = 'C', id = "run-in", value_name = "DIR", global = true)]
    run_in: Option<Utf8PathBuf>,
    #[command(subcommand)]
    verb: V,
}

/// What scripts rely on; `error::Code` in words.
const EXIT_CODES: &str = "Exit codes:
  0   completed, or the command did
      what it was asked
  1   failed
  2   usage: nothing was touched
  3   not found
  10  iteration cap
  11  budget exceeded
  12  timed out
  13  stuck
  14  blocked: it waits for a person
  15  cancelled
  16  paused
  17  refused: another runner has it,
      the name is taken, or its state
      does not allow it";

/// All that can be said; what only Refrain says to itself is hidden.
#[derive(Debug, Subcommand)]
enum Verb {
    #[command(flatten)]
    Shown(ShownVerb),
    #[command(hide = true)]
    Drive(cmd::drive::Args),
    #[command(hide = true)]
    AcpBridge(cmd::acp_bridge::Args),
    #[command(hide = true)]
    Generate(cmd::generate::Args),
}

impl Cli<Verb> {
    /// What is said where these words cannot be understood: a hook must not disturb the session that it is called by, and
    /// `tick` has codes of its own.
    fn misread(error: CliError) -> ExitCode {
        match std::env::args().nth(1).as_deref() {
            Some("hook") => ExitCode::SUCCESS,
            Some("tick") => {
                error.report();
                cmd::tick::REFUSED
            }
            _ => error.report(),
        }
    }
}

/// What people and scripts say.
#[derive(Debug, Subcommand)]
enum ShownVerb {
    #[command(flatten)]
    Loop(LoopVerb),
    /// The loop verbs, spelled out
    #[command(name = "loop", subcommand)]
    Spelled(LoopVerb),
    Plan(cmd::plan::Args),
    Tick(cmd::tick::Args),
    Hook(cmd::hook::Args),
    Plugin(cmd::plugin::Args),
    Mcp(cmd::mcp::Args),
    Serve(cmd::serve::Args),
    Memory(cmd::memory::Args),
    Config(cmd::config::Args),
    Init(cmd::init::Args),
    Trust(cmd::trust::Args),
    Promise(cmd::promise::Args),
    Demo(cmd::demo::Args),
    Doctor(cmd::doctor::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

#[derive(Debug, Subcommand)]
enum LoopVerb {
    Start(Box<cmd::start::Args>),
    Research(Box<cmd::research::Args>),
    Implement(Box<cmd::implement::Args>),
    #[command(visible_alias = "ralph-run")]
    Run(Box<cmd::run::Args>),
    Resume(Box<cmd::resume::Args>),
    Approve(cmd::approve::Args),
    Status(cmd::status::Args),
    List(cmd::list::Args),
    Usage(cmd::usage::Args),
    Watch(cmd::watch::Args),
    Top(cmd::top::Args),
    Logs(cmd::logs::Args),
    Show(cmd::show::Args),
    Pause(cmd::pause::Args),
    Cancel(cmd::cancel::Args),
    Steer(cmd::steer::Args),
    Archive(cmd::archive::Args),
    Verify(cmd::verify::Args),
    Report(cmd::report::Args),
    Export(cmd::export::Args),
}

/// What a verb has: the person's surroundings, and the door to the project, opened when it is needed.
#[derive(Clone)]
pub(crate) struct Context {
    /// Where the person is, or said to be by `-C`.
    pub(crate) dir: Utf8PathBuf,
    pub(crate) host: Host,
    /// How deep in loops this was started.
    pub(crate) depth: u32,
    /// The loop whose attempt this runs in.
    pub(crate) inside: Option<String>,
    /// What was typed, for what has an effect on some loops only.
    pub(crate) typed: TypedOptions,
}

impl Context {
    pub(crate) fn service(&self) -> Result<Service, CliError> {
        Ok(Service::open(&self.dir, self.host.clone())?)
    }

    /// A variable of the person's, where it says something.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.host.env.iter().find(|(found, _)| found == name)?;
        found.1.to_str().filter(|value| !value.is_empty())
    }

    /// How what is waited for is said there.
    pub(crate) fn manner(&self, progress: Option<Target>) -> Manner {
        match progress {
            Some(target) if target.width().is_some() && self.variable("TERM") != Some("dumb") => {
                Manner::InPlace
            }
            Some(_) => Manner::Lines,
            None => Manner::Silent,
        }
    }
}

/// The definition of what people say, for completions and manuals: they know nothing of hidden verbs.
pub(crate) fn definition() -> clap::Command {
    Cli::<ShownVerb>::command()
}

/// Reads the command line, does what it says, and answers with the exit code.
pub(crate) fn run() -> ExitCode {
    if cmd::completions::answer() {
        return ExitCode::SUCCESS;
    }
    if forces_colour() {
        anstream::ColorChoice::AlwaysAnsi.write_global();
    }
    let (cli, typed) = match parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => return Cli::misread(error.into()),
        Err(asked_for) => {
            crate::out::print(&asked_for.render().ansi().to_string());
            return ExitCode::SUCCESS;
        }
    };
    if let Err(error) = typed.check() {
        return Cli::misread(error);
    }
    match dispatch(cli, typed) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}

/// These words, and what of them was typed.
fn parse<W: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = W>,
) -> Result<(Cli<Verb>, TypedOptions), clap::Error> {
    let mut command = Cli::<Verb>::command();
    let mut matches = command.try_get_matches_from_mut(words)?;
    let typed = TypedOptions::of(&command, &matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, typed))
}

/// Does what these words say, as if they had been typed: what `demo` shows is what a person would type.
pub(crate) fn run_words(context: &Context, words: &[&str]) -> Result<ExitCode, CliError> {
    let (cli, typed) = parse(words)?;
    typed.check()?;
    let dir = cli.run_in.map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    let context = Context { dir, typed, ..context.clone() };
    execute(&context, cli.verb)
}

fn dispatch(cli: Cli<Verb>, typed: TypedOptions) -> Result<ExitCode, CliError> {
    if let Verb::Shown(ShownVerb::Hook(_)) = cli.verb {
        // Whatever is wrong with its surroundings, it says nothing.
        let Ok(context) = read_environment(cli.run_in) else { return Ok(ExitCode::SUCCESS) };
        return execute(&context, cli.verb);
    }
    execute(&Context { typed, ..read_environment(cli.run_in)? }, cli.verb)
}

fn execute(context: &Context, verb: Verb) -> Result<ExitCode, CliError> {
    match verb {
        Verb::Shown(ShownVerb::Loop(verb) | ShownVerb::Spelled(verb)) => execute_loop(context, verb),
        Verb::Shown(ShownVerb::Plan(args)) => cmd::plan::run(context, args),
        Verb::Shown(ShownVerb::Tick(args)) => Ok(cmd::tick::run(context, args)),
        Verb::Shown(ShownVerb::Hook(args)) => Ok(cmd::hook::run(context, &args)),
        Verb::Shown(ShownVerb::Mcp(args)) => cmd::mcp::run(context, &args),
        Verb::Shown(ShownVerb::Serve(args)) => cmd::serve::run(context, &args),
        Verb::Shown(ShownVerb::Memory(args)) => cmd::memory::run(context, &args),
        Verb::Shown(ShownVerb::Plugin(args)) => cmd::plugin::run(context, &args),
        Verb::Shown(ShownVerb::Config(args)) => cmd::config::run(context, &args),
        Verb::Shown(ShownVerb::Init(args)) => cmd::init::run(context, &args),
        Verb::Shown(ShownVerb::Trust(args)) => cmd::trust::run(context, &args),
        Verb::Shown(ShownVerb::Promise(args)) => cmd::promise::run(&args),
        Verb::Shown(ShownVerb::Demo(args)) => cmd::demo::run(context, &args),
        Verb::Shown(ShownVerb::Doctor(args)) => cmd::doctor::run(context, &args),
        Verb::Shown(ShownVerb::Completions(args)) => cmd::completions::run(&args),
        Verb::Shown(ShownVerb::Man(args)) => cmd::man::run(context, &args),
        Verb::Drive(args) => cmd::drive::run(context, &args),
        Verb::AcpBridge(args) => cmd::acp_bridge::run(context, args),
        Verb::Generate(args) => cmd::generate::run(&args),
    }
}

fn execute_loop(context: &Context, verb: LoopVerb) -> Result<ExitCode, CliError> {
    match verb {
        LoopVerb::Start(args) => cmd::start::run(context, *args),
        LoopVerb::Research(args) => cmd::research::run(context, *args),
        LoopVerb::Implement(args) => cmd::implement::run(context, *args),
        LoopVerb::Run(args) => cmd::run::run(context, &args),
        LoopVerb::Resume(args) => cmd::resume::run(context, *args),
        LoopVerb::Approve(args) => cmd::approve::run(context, &args),
        LoopVerb::Status(args) => cmd::status::run(context, args),
        LoopVerb::List(args) => cmd::list::run(context, &args),
        LoopVerb::Usage(args) => cmd::usage::run(context, &args),
        LoopVerb::Watch(args) => cmd::watch::run(context, &args),
        LoopVerb::Top(args) => cmd::top::run(context, &args),
        LoopVerb::Logs(args) => cmd::logs::run(context, &args),
        LoopVerb::Show(args) => cmd::show::run(context, &args),
        LoopVerb::Pause(args) => cmd::pause::run(context, &args),
        LoopVerb::Cancel(args) => cmd::cancel::run(context, &args),
        LoopVerb::Steer(args) => cmd::steer::run(context, &args),
        LoopVerb::Archive(args) => cmd::archive::run(context, &args),
        LoopVerb::Verify(args) => cmd::verify::run(context, &args),
        LoopVerb::Report(args) => cmd::report::run(context, &args),
        LoopVerb::Export(args) => cmd::export::run(context, &args),
    }
}
