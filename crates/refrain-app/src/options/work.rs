//! The options that `start` and `plan run` share: who works, what it may cost, where, and what proves it.

use camino::Utf8PathBuf;
use refrain_core::agent::Usd;
use refrain_core::promise::{MatchMode, PromiseText};
use refrain_core::spec::{Millis, OutputFormat, Permissions, PromptMode};
use refrain_core::values::Limit;
use refrain_engine::config::Command;
use refrain_engine::config::keys::Switch;

use super::gates::GateArgs;
use super::kinds::{self, AgentName};
use super::review::ReviewArgs;
use super::sandbox::SandboxArgs;
use super::stuck::StuckArgs;
use super::{heading, values};

// What is to be done, in words.
#[derive(Debug, Default, clap::Args)]
pub struct WordArgs {
    /// The task; `-` reads it from standard input
    #[arg(group = "source", value_name = "PROMPT")]
    pub words: Vec<String>,
}

// What is to be done, by an option.
#[derive(Debug, Default, clap::Args)]
pub struct TaskArgs {
    /// The task, as one text; `-` reads it from standard input
    #[arg(help_heading = heading::RUN, long, short, group = "source", value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// The file or pipe that holds the task; `-` is standard input
    #[arg(help_heading = heading::RUN, long, group = "source", value_name = "FILE")]
    pub prompt_file: Option<Utf8PathBuf>,
    /// The task that the configuration has under this name
    #[arg(help_heading = heading::RUN, long, group = "source", value_name = "NAME")]
    pub prompt_name: Option<String>,
}

impl TaskArgs {
    /// Whether one of them says what is to be done.
    pub fn is_given(&self) -> bool {
        self.prompt.is_some() || self.prompt_file.is_some() || self.prompt_name.is_some()
    }

    /// Whether an option of the command line says `-`, standard input; it is taken out then.
    pub fn take_stdin(&mut self) -> bool {
        let is_stdin = self.prompt.as_deref() == Some("-") || self.prompt_file.as_deref() == Some("-".into());
        if is_stdin {
            *self = Self::default();
        }
        is_stdin
    }
}

// How it is claimed to be done.
#[derive(Debug, Default, clap::Args)]
pub struct PromiseArgs {
    /// The text that claims the work done [default: COMPLETE]
    #[arg(help_heading = heading::DONE, long, value_name = "TEXT", value_parser = values::promise)]
    pub completion_promise: Option<PromiseText>,
    /// Complete without a promise: exit code 0 is the claim
    ///
    /// A known agent exits with 0 whatever it did, so it needs a required gate.
    #[arg(help_heading = heading::DONE, long, conflicts_with_all = ["completion_promise", "promise_match"])]
    pub no_promise: bool,
    /// How the promise is matched [default: tag for known agents, plain for commands]
    #[arg(help_heading = heading::DONE, long, value_name = "MODE", value_parser = kinds::promise_match())]
    pub promise_match: Option<MatchMode>,
}

// Who works, and how.
#[derive(Debug, Default, clap::Args)]
pub struct WorkArgs {
    /// What to run; words are split like a shell's, no shell runs it
    #[arg(help_heading = heading::RUN, long, short, value_name = "CMD ARGS")]
    pub command: Option<Command>,
    /// The adapter, or an agent of the configuration [default: from the program's name, else generic]
    #[arg(help_heading = heading::RUN, long, visible_alias = "backend", value_name = "KIND", value_parser = AgentName)]
    pub agent: Option<String>,
    /// One more argument for it
    #[arg(help_heading = heading::RUN, long, value_name = "ARG", allow_hyphen_values = true)]
    pub agent_arg: Vec<String>,
    /// Set a variable for it; without =V it is the machine's own, which goes into no journal
    #[arg(help_heading = heading::RUN, long, value_name = "K[=V]", value_parser = values::variable)]
    pub env: Vec<(String, Option<String>)>,
    /// Start it from a short list of variables, not from all of yours
    #[arg(help_heading = heading::RUN, long)]
    pub clean_env: bool,
    /// How the prompt reaches it [default: auto]
    #[arg(help_heading = heading::RUN, long, value_name = "MODE", value_parser = kinds::prompt_mode())]
    pub prompt_mode: Option<PromptMode>,
    /// The format of its standard output [default: auto]
    #[arg(help_heading = heading::RUN, long, value_name = "FORMAT", value_parser = kinds::output_format())]
    pub output_format: Option<OutputFormat>,
    /// Which model it uses [default: its own choice]
    #[arg(help_heading = heading::RUN, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// What it may do without asking [default: auto]
    #[arg(help_heading = heading::RUN, long, value_name = "WHAT", value_parser = kinds::permissions())]
    pub permissions: Option<Permissions>,
    /// How long it may take, without pauses and waits: seconds, or like 90s, 5m, 1h30m
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration_limit)]
    pub max_duration: Option<Limit<Millis>>,
    /// How much money it may cost, in US dollars
    #[arg(help_heading = heading::COST, long, value_name = "USD", allow_negative_numbers = true, value_parser = values::usd_limit)]
    pub max_cost: Option<Limit<Usd>>,
    /// How many tokens it may use, in and out
    #[arg(help_heading = heading::COST, long, value_name = "N", allow_negative_numbers = true, value_parser = values::tokens_limit)]
    pub max_tokens: Option<Limit<u64>>,
    /// How long it may wait for a provider in a row [default: 24h for a limit, 2h for an outage]
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration_limit)]
    pub retry_for: Option<Limit<Millis>>,
    /// How long one attempt may take; a bare number is seconds
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration_limit)]
    pub timeout: Option<Limit<Millis>>,
    /// Grace period between asking a timed-out attempt to stop and killing it [default: 3s for most agents]
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    pub timeout_grace: Option<Millis>,
    /// How long one attempt may print nothing [default: 30m for known agents]
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration_limit)]
    pub idle_timeout: Option<Limit<Millis>>,
    /// How long to rest between iterations
    #[arg(help_heading = heading::COST, long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::pause)]
    pub pause: Option<Limit<Millis>>,
    /// Where to run it [default: here]
    #[arg(help_heading = heading::PLACE, long, short, value_name = "DIR", value_parser = values::folder)]
    pub working_dir: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Trust the project's refrain.toml and the commands that its files name, for this start only
    #[arg(help_heading = heading::RUN, long)]
    pub yes: bool,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub reviews: ReviewArgs,
    #[command(flatten)]
    pub stuck: StuckArgs,
    /// Whether the loop uses and adds memories [default: on for known agents, off for commands]
    #[arg(help_heading = heading::RUN, long, value_name = "WHETHER", value_parser = kinds::memory())]
    pub memory: Option<Switch>,
    /// Give it your prompt alone, in every iteration
    #[arg(help_heading = heading::RUN, long)]
    pub no_iteration_context: bool,
}
