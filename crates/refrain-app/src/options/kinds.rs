//! The words that options of `start` choose from. Each has a comment, which is its help, and a value of the core.

use std::ffi::OsStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use refrain_core::promise::MatchMode;
use refrain_core::spec::{OutputFormat, Permissions, PromptMode};
use refrain_engine::config::keys::Switch;

/// The name of an agent: that of an adapter, offered by help and completions, or one that the configuration gives.
#[derive(Clone, Debug)]
pub struct AgentName;

impl TypedValueParser for AgentName {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        NonEmptyStringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Kind::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum May {
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
pub enum Mode {
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

impl From<Mode> for PromptMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Arg => Self::Arg,
            Mode::Stdin => Self::Stdin,
            Mode::Env => Self::Env,
            Mode::File => Self::File,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// Use and add them
    On,
    /// Do neither
    Off,
}

impl From<Switch> for OnOff {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Self::On,
            Switch::Off => Self::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Match {
    /// Its tag alone on a line; with a required gate also at the end of the last line
    Tag,
    /// Its tag in the same way, or the bare words as the last line
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
