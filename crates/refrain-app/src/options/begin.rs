use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use refrain_core::LoopId;
use refrain_core::mirror::MirrorName;

use super::git::GitArgs;
use super::until::UntilArgs;
use super::work::{PromiseArgs, TaskArgs, WorkArgs};
use super::{heading, values};

// What every verb takes that begins a loop: `start`, and `resume --from`.
#[derive(Debug, Default, clap::Args)]
pub struct BeginArgs {
    #[command(flatten)]
    pub task: TaskArgs,
    /// Your own instructions, in the prompt after the goal
    #[arg(help_heading = heading::RUN, long, value_name = "TEXT", allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    pub directions: Option<String>,
    /// The loop's id [default: made from the command]
    #[arg(help_heading = heading::RUN, long, value_name = "ID")]
    pub name: Option<LoopId>,
    #[command(flatten)]
    pub work: WorkArgs,
    /// Start without gates: neither configured ones nor those that the project offers
    ///
    /// A known agent's loop takes the project's trusted tests and linters if no gate is named.
    #[arg(help_heading = heading::PROOF, long, conflicts_with_all = ["gate", "soft_gate", "success_command", "auto_gates", "spec_gate"])]
    pub no_gates: bool,
    #[command(flatten)]
    pub promise: PromiseArgs,
    #[command(flatten)]
    pub until: UntilArgs,
    /// Stop after N iterations, 1 to 200 [default: 20]
    #[arg(help_heading = heading::COST, long, visible_alias = "iterations", short, value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    pub max_iterations: Option<u32>,
    #[command(flatten)]
    pub git: GitArgs,
    /// Write the state files of another system too: ralph, synthex, descartes, randroid; a plan in scud
    #[arg(help_heading = heading::SHOWN, long, value_name = "SYSTEM", value_parser = MirrorName::from_str)]
    pub mirror: Vec<MirrorName>,
}
