//! Options that would have no effect are refused, so that a user does not rely on a limit or a check that is not there.
//! The conditions of each option of each verb are data, in [`table`]; only typed options are checked, as a configured
//! default may have no effect.

mod table;

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use refrain_core::Spec;
use refrain_core::spec::Millis;

pub use self::table::{TABLE, waits};
use crate::error::{Message, RequestError};
use crate::options::values;

/// When some options have an effect. Where there are several rows for an option of a verb, all must hold.
pub struct Row {
    /// By their long names, with spaces between them; words that are no options by their ids.
    pub options: &'static str,
    pub when: Condition,
    /// Why they have none otherwise, and what to do.
    pub text: &'static str,
}

pub enum Condition {
    Always,
    With(&'static str),
    Without(&'static str),
    Typed(fn(&Level) -> bool),
    /// Whether this holds for the loop that the command line and the configuration make.
    Loop(fn(&Spec) -> bool),
    /// With no command line: the verb takes them only to say why it does not.
    Never,
}

const fn always(options: &'static str) -> Row {
    Row { options, when: Condition::Always, text: "" }
}

const fn never(options: &'static str, text: &'static str) -> Row {
    Row { options, when: Condition::Never, text }
}

const fn with(options: &'static str, others: &'static str, text: &'static str) -> Row {
    Row { options, when: Condition::With(others), text }
}

const fn without(options: &'static str, others: &'static str, text: &'static str) -> Row {
    Row { options, when: Condition::Without(others), text }
}

const fn typed(options: &'static str, holds: fn(&Level) -> bool, text: &'static str) -> Row {
    Row { options, when: Condition::Typed(holds), text }
}

const fn holds(options: &'static str, holds: fn(&Spec) -> bool, text: &'static str) -> Row {
    Row { options, when: Condition::Loop(holds), text }
}

#[derive(Clone, Debug, Default)]
pub struct Level {
    /// The verb, as it is typed after `refrain`.
    pub verb: String,
    /// The long name of each option, or the id of a word, with its values; and the verb below this one.
    pub typed: BTreeMap<String, Vec<String>>,
    /// How each is shown, if that is not `--NAME`.
    pub shown: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
pub struct TypedOptions {
    pub levels: Vec<Level>,
}

impl TypedOptions {
    /// What of these matches was typed: no default.
    pub fn of(command: &Command, matches: &ArgMatches) -> Self {
        let mut typed = Self::default();
        typed.take(command, matches, "");
        typed
    }

    /// A request of another surface that has these options of the verb, by their long names.
    pub fn named<'a>(verb: &str, options: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let mut typed = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in options {
            typed.entry(name.to_owned()).or_default().extend(value.map(str::to_owned));
        }
        Self { levels: vec![Level { verb: verb.to_owned(), typed, ..Level::default() }] }
    }

    /// The same of a line that is read as options of this verb.
    pub fn of_line(verb: &str, command: &Command, matches: &ArgMatches) -> Self {
        let mut typed = Self::default();
        typed.take(command, matches, verb);
        typed
    }

    fn take(&mut self, command: &Command, matches: &ArgMatches, verb: &str) {
        let mut level = Level { verb: verb.to_owned(), ..Level::default() };
        for arg in command.get_arguments().filter(|arg| !arg.is_global_set()) {
            let id = arg.get_id().as_str();
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            let name = arg.get_long().unwrap_or(id).to_owned();
            if arg.get_long().is_none() {
                let shown = arg.get_value_names().and_then(|names| Some(names.first()?.to_string()));
                level.shown.insert(name.clone(), shown.unwrap_or_else(|| id.to_uppercase()));
            }
            level.typed.insert(name, values);
        }
        let below = matches.subcommand();
        if let Some((name, _)) = below {
            level.typed.insert(name.to_owned(), Vec::new());
        }
        self.levels.push(level);
        if let Some((name, matches)) = below
            && let Some(command) = command.find_subcommand(name)
        {
            // The loop verbs, spelled out.
            let is_spelled = verb.is_empty() && name == "loop";
            let verb = if is_spelled { String::new() } else { format!("{verb} {name}").trim().to_owned() };
            self.take(command, matches, &verb);
        }
    }

    /// Whether an option of this long name was typed.
    pub fn names(&self, name: &str) -> bool {
        self.levels.iter().any(|level| level.has(name))
    }

    /// Refuses what has no effect, as far as the command line alone says so.
    /// Errors: A usage error that names the option, why it has no effect, and what to do.
    pub fn check(&self) -> Result<(), RequestError> {
        self.refuse(|level, when| match when {
            Condition::Always | Condition::Loop(_) => true,
            Condition::With(names) => level.has_any(names),
            Condition::Without(names) => !level.has_any(names),
            Condition::Typed(holds) => holds(level),
            Condition::Never => false,
        })
    }

    /// Refuses what has no effect on this loop.
    pub fn check_loop(&self, spec: &Spec) -> Result<(), RequestError> {
        self.refuse(|_, when| match when {
            Condition::Loop(holds) => holds(spec),
            Condition::Always
            | Condition::With(_)
            | Condition::Without(_)
            | Condition::Typed(_)
            | Condition::Never => true,
        })
    }

    /// What the user should know of `--timeout` and `--max-duration`: a number alone is seconds, and few of them are hardly
    /// meant; and in less than a second no agent does anything.
    pub fn short_limits(&self) -> impl Iterator<Item = String> {
        let limits =
            [("timeout", "for each attempt", "each attempt"), ("max-duration", "in total", "the loop")];
        limits.into_iter().filter_map(|(name, scope, ended)| {
            let text = self.levels.iter().find_map(|level| level.value(name))?;
            let is_without_unit = text.trim().parse::<f64>().is_ok();
            match values::duration(text).ok()? {
                limit if is_without_unit && limit < Millis(60_000) => {
                    Some(format!("--{name} {text} is {limit} {scope}; --{name} {text}m is minutes"))
                }
                limit if limit < Millis(1_000) => {
                    Some(format!("--{name} {text} ends {ended} in less than a second"))
                }
                _ => None,
            }
        })
    }

    fn refuse(&self, holds: impl Fn(&Level, &Condition) -> bool) -> Result<(), RequestError> {
        for level in &self.levels {
            let groups = TABLE.iter().filter(|(verbs, _)| verbs.contains(&level.verb.as_str()));
            for row in groups.flat_map(|(_, rows)| *rows) {
                let typed = row.options.split_whitespace().find(|name| level.has(name));
                if let Some(name) = typed.filter(|_| !holds(level, &row.when)) {
                    let error = Message::own(&level.shown(name)).then(": ").then(row.text);
                    return Err(RequestError::usage(error));
                }
            }
        }
        Ok(())
    }
}

impl Level {
    fn has(&self, name: &str) -> bool {
        self.typed.contains_key(name)
    }

    fn has_any(&self, names: &str) -> bool {
        names.split_whitespace().any(|name| self.has(name))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.typed.get(name)?.first().map(String::as_str)
    }

    fn shown(&self, name: &str) -> String {
        self.shown.get(name).cloned().unwrap_or_else(|| format!("--{name}"))
    }
}
