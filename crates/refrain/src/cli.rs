//! The command line as a whole: all verbs and their handlers. The loop verbs stand at the top level and under `loop`,
//! from one definition.

use std::ffi::OsString;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use refrain_app::effects::TypedOptions;
use refrain_app::options::fleet::{FleetArgs, WorkerArgs, WorkerVerb};
use refrain_app::{Action, Context, RequestError};

use crate::plan::named_file;
use crate::values::{check_homes, forces_colour, read_environment};
use crate::{cmd, out, unknown_verb};

/// Run a coding agent again and again until your tests prove the work done
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
    run_in: Vec<Utf8PathBuf>,
    #[command(subcommand)]
    verb: V,
}

/// The exit codes that scripts rely on; the text for `error::Code`.
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
#[command(defer = true)]
enum Verb {
    #[command(flatten)]
    Shown(ShownVerb),
    /// Drive a loop without a terminal
    #[command(hide = true)]
    Drive(cmd::launch::drive::Args),
    /// Talk to an agent that speaks ACP
    #[command(hide = true)]
    AcpBridge(cmd::connect::acp_bridge::Args),
    /// Write the generated documentation
    #[command(hide = true)]
    Generate(cmd::setup::generate::Args),
}

/// The exit code of a command line that failed before its verb ran, with the error printed. A hook must not disturb the
/// session that calls it, and `tick` has exit codes of its own.
fn fail(error: &RequestError) -> ExitCode {
    match typed_verb() {
        Some(verb) if verb == "hook" => ExitCode::SUCCESS,
        Some(verb) if verb == "tick" => {
            out::report(error);
            cmd::connect::tick::REFUSED
        }
        _ => out::report(error),
    }
}

/// The verb as typed, after the options that all verbs have. It is known even if the rest cannot be parsed.
fn typed_verb() -> Option<OsString> {
    let mut words = std::env::args_os().skip(1);
    loop {
        let word = words.next()?;
        match word.to_str() {
            Some("-C") => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            _ => return Some(word),
        }
    }
}

// The options of a verb are only made when that verb is said (`defer`). So its help stands here; what it flattens has no doc
// comment, which would take the place of that help.
/// What people and scripts say.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum ShownVerb {
    #[command(flatten)]
    Loop(LoopVerb),
    /// Run a verb about loops: the same as without the word loop
    #[command(name = "loop", subcommand)]
    Spelled(LoopVerb),
    /// Work on many tasks that depend on each other
    Plan(cmd::plan::Args),
    /// Count and verify the turns of a loop in an agent's own session
    Tick(cmd::connect::tick::Args),
    /// Answer an agent's hook; its JSON is read from standard input
    Hook(cmd::connect::hook::Args),
    /// Install the plugin that runs loops in an agent's own session
    Plugin(cmd::connect::plugin::Args),
    /// Offer loops to agents as tools (MCP, on standard input and output)
    ///
    /// The agent that uses it starts it: see refrain docs mcp for Claude Code, Codex, Gemini CLI and OpenCode. A loop that is started
    /// through it has a runner of its own, and continues after the server ends.
    Mcp(cmd::connect::mcp::Args),
    /// Show all loops in a browser, and serve an HTTP API
    ///
    /// Loops do not need it: a loop that is started through it has a runner of its own, and continues after the server ends. It listens
    /// on loopback only, unless it has a certificate. Each client needs a token: see refrain docs serve.
    Serve(cmd::connect::serve::Args),
    /// Run loops on many machines: refrain start --on fleet
    ///
    /// It needs the program refrain-fleet, in the same folder as refrain or in PATH. See refrain docs fleet.
    #[command(
        after_help = "Examples:\n  refrain fleet dev\n  refrain start --on fleet --agent claude \"Fix the failing test.\""
    )]
    Fleet(FleetArgs),
    /// Drive loops of the fleet on this machine, until Ctrl-C
    ///
    /// It takes loops from the git remotes, and for the agents, that [worker] of your own configuration names. They run commands of
    /// others on this machine: give the worker a user of its own, or a container.
    #[command(after_help = "Examples:\n  refrain worker\n  refrain worker --slots 4 --agents claude,codex")]
    Worker(WorkerArgs),
    /// Show, add and forget what loops remember
    ///
    /// Loops remember facts, the results of earlier loops, and what has worked. They can also propose changes of the project's
    /// instructions for agents.
    Memory(cmd::memory::Args),
    /// Print or change the configuration
    Config(cmd::setup::config::Args),
    /// Prepare this project for loops; existing files keep their content
    ///
    /// On a terminal it asks which agent runs, whether loops use the gates that the project offers, where they work, and whether
    /// they get a sandbox. Without one it takes the options, or else the first agent in PATH, the project's gates, a worktree for
    /// each loop, and a sandbox where the machine can make one. What files hold already stays; some are added to.
    Init(cmd::setup::init::Args),
    /// Trust this project's refrain.toml until it changes
    Trust(cmd::setup::trust::Args),
    /// Test whether a message is a claim: exit code 0 if it is, 1 if not
    ///
    /// The message is read from standard input.
    Promise(cmd::setup::promise::Args),
    /// Run a demo in a temporary repository, without a key
    Demo(cmd::launch::demo::Args),
    /// Read the documentation in the terminal
    Docs(cmd::setup::docs::Args),
    /// Check everything that could hinder a loop here
    Doctor(cmd::setup::doctor::Args),
    /// Print the completions for a shell
    ///
    /// They know verbs, options, the ids of loops and the names of agents, prompts and modes.
    Completions(cmd::setup::completions::Args),
    /// Print the manual page, or write all pages into a folder
    Man(cmd::setup::man::Args),
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum LoopVerb {
    /// Start a loop
    Start(Box<cmd::launch::start::Args>),
    /// Start a loop that researches and writes no production code
    Research(Box<cmd::launch::research::Args>),
    /// Start a loop that builds and verifies one piece of work at a time
    Implement(Box<cmd::launch::implement::Args>),
    /// Work on one task until its tests pass and a reviewer agrees
    #[command(visible_alias = "ralph-run")]
    Run(Box<cmd::launch::run::Args>),
    /// Resume a stopped or crashed loop or plan
    Resume(Box<cmd::launch::resume::Args>),
    /// Approve the result that a loop waits with, and let it finish
    ///
    /// A loop that was started with --require-approval waits when all its gates have passed. It is blocked, and status says how to
    /// see what it changed. If the work has changed meanwhile, the gates run on it and you are asked again. status also says
    /// how to send it back.
    Approve(cmd::control::approve::Args),
    /// Answer a loop's question, and continue the loop
    ///
    /// The agent gets the text with its next attempt. If the loop has stopped, it continues here, as with refrain resume,
    /// also if it asks nothing.
    Answer(cmd::control::answer::Args),
    /// Show the status of a loop or plan
    Status(cmd::inspect::status::Args),
    /// List the loops and plans of this project
    List(cmd::inspect::list::Args),
    /// Add up what loops used and how they ended
    Usage(cmd::inspect::usage::Args),
    /// Follow a loop or plan; Ctrl-C stops watching and nothing else
    Watch(cmd::inspect::watch::Args),
    /// Show all loops and plans on the full screen, and control them
    Top(cmd::inspect::top::Args),
    /// Show what the agent and the gates printed
    Logs(cmd::inspect::logs::Args),
    /// Show the journal of a loop or plan
    Show(cmd::inspect::show::Args),
    /// Pause a loop or plan, after its iteration or at once
    Pause(cmd::control::pause::Args),
    /// Cancel a loop or plan for good, after its iteration or at once
    Cancel(cmd::control::cancel::Args),
    /// Add a text to the next prompt of a loop, or of all agents of a plan
    Steer(cmd::control::steer::Args),
    /// Take back a text, a pause or a cancel that has had no effect yet
    ///
    /// A text can be taken back until a prompt has it, a pause or a cancel until the iteration has ended.
    TakeBack(cmd::control::take_back::Args),
    /// Change what the sandbox of a loop allows
    Sandbox(cmd::control::sandbox::Args),
    /// Archive a stopped loop and free its name
    ///
    /// Its status, logs and report stay. `refrain resume` brings it back if it can continue; a completed or cancelled loop cannot.
    /// `refrain list --archived` lists archived loops.
    Archive(cmd::control::archive::Args),
    /// Verify the journal of a loop or plan, with its logs and commits
    ///
    /// It uses no network. If anything differs from the journal, or a log of a loop that is not archived is missing, the exit code is 1.
    /// Logs of an archived loop that were removed, and commits that git has cleaned up, are listed separately.
    Verify(cmd::inspect::verify::Args),
    /// Show what a loop changed or a plan landed, live or after its end
    ///
    /// On a terminal it is shown by the program that PAGER names, less by default. Secrets are removed.
    Diff(cmd::inspect::diff::Args),
    /// Merge the branch of a loop, or what a plan landed
    ///
    /// It goes into the branch that is checked out. The branch is moved if that is enough. Otherwise the required gates run on the
    /// merged work in a clean checkout first. Your own changes stay as they are; on a conflict nothing is changed.
    Merge(cmd::control::merge::Args),
    /// Move a stopped loop to another machine, over a git remote
    ///
    /// With --to it hands over the loop: its journal and logs, its branch and, with --with-changes, the rest of its worktree. From then
    /// on it can be read here, and nothing else. With --from, in a clone on another machine or here again, it takes the loop over;
    /// then refrain resume continues it. Of several machines that try, one succeeds.
    Move(cmd::control::move_loop::Args),
    /// Archive a loop or plan and put its work out of sight
    ///
    /// A loop that could still continue is cancelled. Its branch, with what no commit had, becomes refs/refrain/discarded/ID, which
    /// is removed after 30 days; its worktree is removed.
    Discard(cmd::control::discard::Args),
    /// Open your editor or shell in the folder of a loop or plan
    Open(cmd::inspect::open::Args),
    /// List and remove what loops left and nothing needs
    ///
    /// It lists worktrees and branches of loops that are over, unused worktrees for tasks, clean checkouts, recorded output of loops
    /// that are archived for 30 days, what was discarded 30 days ago, loops at git remotes that left here and are over, and folders of
    /// `refrain demo`. On a terminal it asks before it removes them. Work that is not merged, and what a loop or plan can continue with,
    /// stays. A worktree of a project that is gone or was moved is only named.
    Gc(cmd::control::gc::Args),
    /// Report what a loop or plan was asked, claimed, proved and used
    ///
    /// It is made from the journal, the kept logs and the repository; refrain verify checks it. Secrets, and values that --env set,
    /// are removed.
    Report(cmd::inspect::report::Args),
    /// Print a loop in the format of another system
    ///
    /// Secrets, and values that --env set, are removed.
    Export(cmd::inspect::export::Args),
}

/// The definition of the shown verbs, for completions and manuals. The options of a verb are there once it is built.
pub(crate) fn definition() -> clap::Command {
    Cli::<ShownVerb>::command()
}

/// Parses the command line, runs the verb, and returns the exit code.
pub(crate) fn run() -> ExitCode {
    if cmd::setup::completions::answer() {
        return ExitCode::SUCCESS;
    }
    if let Some(word) = std::env::args_os().skip(1).find(|word| word.to_str().is_none()) {
        return fail(&RequestError::usage(format!("{word:?} is not UTF-8; accepted: arguments in UTF-8")));
    }
    if forces_colour() {
        anstream::ColorChoice::AlwaysAnsi.write_global();
    }
    // A person who types nothing else wants to see what there is; a script gets the help.
    if std::env::args_os().len() == 1 && out::terminal_width().is_some() {
        let context = read_environment(None).and_then(|context| check_homes(&context).map(|()| context));
        return match context.and_then(|context| cmd::inspect::overview::run(&context)) {
            Ok(code) => code,
            Err(error) => out::report(&error),
        };
    }
    let (cli, typed) = match parse() {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => {
            let unknown = unknown_verb::refusal(&error, definition());
            return fail(&named_file::hinted(unknown.unwrap_or_else(|| error.into())));
        }
        Err(asked_for) => {
            out::print(&asked_for.render().ansi().to_string());
            return out::check_printed().map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS);
        }
    };
    // A script waits for what is only looked at; a change is made whether or not its message can be written.
    let only_prints = cli.verb.action() == Action::Look;
    let ran = typed.check().map_err(named_file::hinted).and_then(|()| {
        let context =
            Context { typed, ..read_environment(cli.run_in.into_iter().reduce(|dir, next| dir.join(next)))? };
        if cli.verb.needs_home() {
            check_homes(&context)?;
        }
        execute(&context, cli.verb)
    });
    let printed =
        ran.and_then(|code| if only_prints { out::check_printed().map(|()| code) } else { Ok(code) });
    printed.unwrap_or_else(|error| fail(&error))
}

/// The command line, and which options were typed.
fn parse() -> Result<(Cli<Verb>, TypedOptions), clap::Error> {
    let mut command = Cli::<Verb>::command();
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    let typed = TypedOptions::of(&command, &matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, typed))
}

fn execute(context: &Context, verb: Verb) -> Result<ExitCode, RequestError> {
    context.check(verb.action())?;
    match verb {
        Verb::Shown(ShownVerb::Loop(verb) | ShownVerb::Spelled(verb)) => execute_loop(context, verb),
        Verb::Shown(ShownVerb::Plan(args)) => cmd::plan::run(context, args),
        Verb::Shown(ShownVerb::Tick(args)) => Ok(cmd::connect::tick::run(context, args)),
        Verb::Shown(ShownVerb::Hook(args)) => Ok(cmd::connect::hook::run(context, &args)),
        Verb::Shown(ShownVerb::Mcp(args)) => cmd::connect::mcp::run(context, &args),
        Verb::Shown(ShownVerb::Serve(args)) => cmd::connect::serve::run(context, &args),
        Verb::Shown(ShownVerb::Fleet(_) | ShownVerb::Worker(_)) => cmd::connect::fleet::run(context),
        Verb::Shown(ShownVerb::Memory(args)) => cmd::memory::run(context, &args),
        Verb::Shown(ShownVerb::Plugin(args)) => cmd::connect::plugin::run(context, &args),
        Verb::Shown(ShownVerb::Config(args)) => cmd::setup::config::run(context, &args),
        Verb::Shown(ShownVerb::Init(args)) => cmd::setup::init::run(context, &args),
        Verb::Shown(ShownVerb::Trust(args)) => cmd::setup::trust::run(context, &args),
        Verb::Shown(ShownVerb::Promise(args)) => cmd::setup::promise::run(&args),
        Verb::Shown(ShownVerb::Demo(args)) => cmd::launch::demo::run(context, &args),
        Verb::Shown(ShownVerb::Docs(args)) => cmd::setup::docs::run(context, &args),
        Verb::Shown(ShownVerb::Doctor(args)) => cmd::setup::doctor::run(context, &args),
        Verb::Shown(ShownVerb::Completions(args)) => cmd::setup::completions::run(&args),
        Verb::Shown(ShownVerb::Man(args)) => cmd::setup::man::run(context, &args),
        Verb::Drive(args) => cmd::launch::drive::run(context, &args),
        Verb::AcpBridge(args) => cmd::connect::acp_bridge::run(context, args),
        Verb::Generate(args) => cmd::setup::generate::run(&args),
    }
}

impl Verb {
    /// Whether it reads or writes Refrain's data.
    fn needs_home(&self) -> bool {
        !matches!(
            self,
            Self::Shown(
                ShownVerb::Promise(_) | ShownVerb::Completions(_) | ShownVerb::Man(_) | ShownVerb::Docs(_)
            ) | Self::Generate(_)
        )
    }

    /// The verb's action, for [`Action::permission`].
    fn action(&self) -> Action {
        match self {
            Self::Shown(ShownVerb::Loop(verb) | ShownVerb::Spelled(verb)) => verb.action(),
            Self::Shown(ShownVerb::Plan(args)) => args.action(),
            Self::Shown(ShownVerb::Tick(_) | ShownVerb::Hook(_)) => Action::CountSession,
            Self::Shown(ShownVerb::Mcp(_)) => Action::ServeTools,
            Self::Shown(ShownVerb::Serve(_)) => Action::Serve,
            Self::Shown(ShownVerb::Worker(WorkerArgs { verb: Some(WorkerVerb::List { .. }), .. })) => {
                Action::Look
            }
            Self::Shown(ShownVerb::Fleet(_) | ShownVerb::Worker(_)) => Action::ServeFleet,
            Self::Shown(ShownVerb::Memory(args)) => args.action(),
            Self::Shown(ShownVerb::Plugin(args)) => args.action(),
            Self::Shown(ShownVerb::Trust(args)) => args.action(),
            Self::Shown(ShownVerb::Doctor(args)) => args.action(),
            Self::Shown(ShownVerb::Config(args)) => args.action(),
            Self::Shown(ShownVerb::Init(_)) => Action::Initialize,
            Self::Shown(ShownVerb::Demo(_)) => Action::Start,
            Self::Shown(
                ShownVerb::Promise(_) | ShownVerb::Docs(_) | ShownVerb::Completions(_) | ShownVerb::Man(_),
            )
            | Self::Generate(_) => Action::Look,
            Self::Drive(_) | Self::AcpBridge(_) => Action::Drive,
        }
    }
}

impl LoopVerb {
    /// The verb's action, for [`Action::permission`]. That of `resume` depends on the loop.
    fn action(&self) -> Action {
        match self {
            Self::Start(_) | Self::Research(_) | Self::Implement(_) | Self::Run(_) => Action::Start,
            Self::Resume(args) => args.action(),
            Self::Approve(_) => Action::Approve,
            Self::Answer(_) => Action::Answer,
            Self::Merge(_) => Action::Merge,
            Self::Move(_) => Action::Move,
            Self::Discard(_) => Action::Discard,
            Self::Gc(args) => args.action(),
            Self::Pause(_) => Action::Pause,
            Self::Cancel(args) => args.action(),
            Self::Steer(_) => Action::Steer,
            Self::TakeBack(_) => Action::TakeBack,
            Self::Sandbox(_) => Action::AllowHost,
            Self::Archive(_) => Action::Archive,
            Self::Status(_)
            | Self::List(_)
            | Self::Usage(_)
            | Self::Watch(_)
            // It checks each action when its key is pressed.
            | Self::Top(_)
            | Self::Logs(_)
            | Self::Show(_)
            | Self::Verify(_)
            | Self::Diff(_)
            | Self::Open(_)
            | Self::Report(_)
            | Self::Export(_) => Action::Look,
        }
    }
}

fn execute_loop(context: &Context, verb: LoopVerb) -> Result<ExitCode, RequestError> {
    match verb {
        LoopVerb::Start(args) => cmd::launch::start::run(context, *args),
        LoopVerb::Research(args) => cmd::launch::research::run(context, *args),
        LoopVerb::Implement(args) => cmd::launch::implement::run(context, *args),
        LoopVerb::Run(args) => cmd::launch::run::run(context, *args),
        LoopVerb::Resume(args) => cmd::launch::resume::run(context, *args),
        LoopVerb::Approve(args) => cmd::control::approve::run(context, &args),
        LoopVerb::Answer(args) => cmd::control::answer::run(context, &args),
        LoopVerb::Merge(args) => cmd::control::merge::run(context, &args),
        LoopVerb::Move(args) => cmd::control::move_loop::run(context, args),
        LoopVerb::Discard(args) => cmd::control::discard::run(context, &args),
        LoopVerb::Gc(args) => cmd::control::gc::run(context, &args),
        LoopVerb::Open(args) => cmd::inspect::open::run(context, &args),
        LoopVerb::Diff(args) => cmd::inspect::diff::run(context, &args),
        LoopVerb::Status(args) => cmd::inspect::status::run(context, args),
        LoopVerb::List(args) => cmd::inspect::list::run(context, &args),
        LoopVerb::Usage(args) => cmd::inspect::usage::run(context, &args),
        LoopVerb::Watch(args) => cmd::inspect::watch::run(context, &args),
        LoopVerb::Top(args) => cmd::inspect::top::run(context, &args),
        LoopVerb::Logs(args) => cmd::inspect::logs::run(context, &args),
        LoopVerb::Show(args) => cmd::inspect::show::run(context, &args),
        LoopVerb::Pause(args) => cmd::control::pause::run(context, &args),
        LoopVerb::Cancel(args) => cmd::control::cancel::run(context, &args),
        LoopVerb::Steer(args) => cmd::control::steer::run(context, &args),
        LoopVerb::TakeBack(args) => cmd::control::take_back::run(context, &args),
        LoopVerb::Sandbox(args) => cmd::control::sandbox::run(context, &args),
        LoopVerb::Archive(args) => cmd::control::archive::run(context, &args),
        LoopVerb::Verify(args) => cmd::inspect::verify::run(context, &args),
        LoopVerb::Report(args) => cmd::inspect::report::run(context, &args),
        LoopVerb::Export(args) => cmd::inspect::export::run(context, &args),
    }
}
