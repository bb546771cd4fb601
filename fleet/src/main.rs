//! The program of the fleet, which `refrain` calls for `start --on fleet`, `fleet` and `worker`.

mod cleanup;
mod client;
mod clone;
mod dev;
mod drive;
mod guard;
mod host;
mod operations;
mod order;
mod requests;
mod say;
mod settings;
mod shared;
mod worker;
mod workflow;

use std::path::PathBuf;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand};
use refrain_app::options::fleet::{FleetArgs, FleetVerb, WorkerArgs, WorkerVerb};
use refrain_app::{Code, RequestError, environment};
use refrain_core::LoopId;
use refrain_engine::{keeper, sandbox};

use self::operations::{doctor, init, listing, roster};
use self::shared::logs;

/// Gives loops of Refrain to many machines; refrain calls it
#[derive(Debug, Parser)]
#[command(name = "refrain-fleet", version, arg_required_else_help = true)]
struct Cli {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    dir: Option<Utf8PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a fleet of one machine, or prepare this machine for one
    Fleet(FleetArgs),
    /// Drive loops of the fleet
    Worker(WorkerArgs),
    /// Say whether the fleet can be reached, and where it has its loops
    Check,
    /// Look for what keeps loops from being driven
    Doctor,
    /// Print what the server recorded for a loop
    History { id: LoopId, remote: String },
    /// Give a loop to the fleet that is at a git remote
    Submit { id: LoopId, remote: String, agent: String },
    /// Print a long log of a loop, which `[fleet] blobs` has
    Blob { hash: String, bytes: u64 },
    /// Pass a request on
    Ask { id: LoopId, remote: String, request: String },
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    if word(0) == keeper::KEEPER_NAME {
        return ExitCode::from(u8::from(keeper::run().is_err()));
    }
    if word(1) == sandbox::SANDBOX_VERB {
        return ExitCode::from(sandbox::run_helper(words.get(2..).unwrap_or_default()));
    }
    // What the engine starts of Refrain for a loop.
    if word(0) == "refrain" || word(1) == "acp-bridge" {
        return become_refrain(words.get(1..).unwrap_or_default());
    }
    if word(1) == guard::VERB {
        let parent = word(2).parse().unwrap_or_default();
        let became = guard::become_program(parent, word(3), words.get(4..).unwrap_or_default());
        say::line(&became.map_or_else(|error| error.to_string(), |never| match never {}));
        return Code::Failed.into();
    }
    match run() {
        Ok(()) => Code::Done.into(),
        Err(error) => {
            say::line(&format!("refrain: {}", error.line()));
            error.hints().for_each(|hint| say::line(&format!("  {hint}")));
            error.code().into()
        }
    }
}

fn run() -> Result<(), RequestError> {
    let Cli { dir, verb } = Cli::parse();
    let context = environment::read(dir, env!("CARGO_PKG_VERSION"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(settings::failed)?;
    let done = runtime.block_on(async {
        match verb {
            Verb::Fleet(FleetArgs { verb: FleetVerb::Dev(args) }) => dev::run(&context, args).await,
            Verb::Fleet(FleetArgs { verb: FleetVerb::Init(args) }) => init::run(&context, args).await,
            Verb::Fleet(FleetArgs { verb: FleetVerb::List(args) }) => listing::run(&context, args).await,
            Verb::Worker(args) => match &args.verb {
                None => worker::run(&context, args).await,
                Some(WorkerVerb::List { json }) => roster::list(&context, *json).await,
                Some(WorkerVerb::Drain { name }) => roster::drain(&context, name).await,
            },
            Verb::Doctor => doctor::run(&context).await,
            Verb::History { id, remote } => client::history(&context, &id, &remote).await,
            Verb::Check => client::check(&context).await,
            Verb::Submit { id, remote, agent } => client::submit(&context, &id, &remote, &agent).await,
            Verb::Blob { hash, bytes } => {
                logs::print(&settings::Settings::read(&context)?, hash, bytes).await
            }
            Verb::Ask { id, remote, request } => client::ask(&context, &id, &remote, &request).await,
        }
    });
    runtime.shutdown_background();
    done
}

/// Becomes `refrain`, which stands beside this program or in PATH.
fn become_refrain(args: &[String]) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.with_file_name("refrain");
    let program = if beside.is_file() { beside } else { PathBuf::from("refrain") };
    #[expect(clippy::disallowed_methods, reason = "this process becomes that program: none is started")]
    let error = std::process::Command::new(program).args(args).exec();
    say::line(&format!("refrain cannot be started: {error}"));
    Code::Failed.into()
}
