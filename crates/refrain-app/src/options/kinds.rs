//! The words that options choose from. Each has a help, and is a value of the core.

use std::ffi::OsStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
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
        let adapters = [
            ("generic", "Any command; its message is all of its standard output"),
            ("claude", "Claude Code"),
            ("codex", "Codex"),
            ("opencode", "OpenCode"),
            ("gemini", "Gemini CLI"),
            ("acp", "A program that speaks the Agent Client Protocol"),
        ];
        Some(Box::new(adapters.into_iter().map(|(name, help)| PossibleValue::new(name).help(help))))
    }
}

/// Parses one of these words, each with its help and its value.
pub fn words<T, const N: usize>(
    words: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let possible = words.each_ref().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(possible).try_map(move |said| {
        let found = words.iter().find(|(word, ..)| *word == said);
        found.map(|(.., value)| value.clone()).ok_or("there is no such word")
    })
}

pub fn permissions() -> impl TypedValueParser<Value = Permissions> {
    words([
        (
            "auto",
            "Edit and run commands in the worktree, confined as the agent itself can",
            Permissions::Auto,
        ),
        ("full", "Everything: the agent's own flag that bypasses all questions", Permissions::Full),
        ("agent", "What it is configured to: nothing is added", Permissions::Agent),
    ])
}

pub fn prompt_mode() -> impl TypedValueParser<Value = PromptMode> {
    words([
        ("auto", "The last argument, or stdin for a prompt that is too long for one", PromptMode::Auto),
        ("arg", "The last argument", PromptMode::Arg),
        ("stdin", "Standard input", PromptMode::Stdin),
        ("env", "The variable PROMPT", PromptMode::Env),
        ("file", "The path of a file, as the last argument", PromptMode::File),
    ])
}

pub fn output_format() -> impl TypedValueParser<Value = OutputFormat> {
    words([
        (
            "auto",
            "What the adapter expects: text of commands, their stream of known agents",
            OutputFormat::Auto,
        ),
        ("text", "A message", OutputFormat::Text),
        (
            "json",
            "One JSON document that holds the message as result, response, text or message",
            OutputFormat::Json,
        ),
        ("stream-json", "A stream of JSON events, as Claude Code prints it", OutputFormat::StreamJson),
    ])
}

pub fn memory() -> impl TypedValueParser<Value = Switch> {
    words([("on", "Use and add them", Switch::On), ("off", "Do neither", Switch::Off)])
}

pub fn promise_match() -> impl TypedValueParser<Value = MatchMode> {
    words([
        (
            "tag",
            "Its tag alone on a line; with a required gate also at the end of the last line",
            MatchMode::Tag,
        ),
        ("plain", "Its tag in the same way, or the bare words as the last line", MatchMode::Plain),
        ("substring", "Anywhere", MatchMode::Substring),
    ])
}
