//! `refrain completions`, and the answers to the shells that its scripts set up: verbs and options from the definition,
//! ids from existing loops, names from the configuration. No other module deals with completion.
//!
//! A shell asks while the user types: what cannot be found out is omitted without a message, and nothing is written.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use refrain_app::resolve::prompt;
use refrain_app::{Code, RequestError};
use refrain_core::prompt::mode;
use refrain_core::text::{clip, printable, squeeze};
use refrain_engine::config::keys::Prompt;
use refrain_engine::config::{AgentChoice, Settings};
use refrain_engine::{Brief, ListEntry, Service};

use crate::cmd::control::{approve, archive, cancel, merge, move_loop, pause, steer, take_back};
use crate::cmd::launch::resume;
use crate::render::phrase;
use crate::{out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

// Short lines: a line that a narrow terminal wraps cannot be copied.
const EXAMPLES: &str = "Where it belongs:
  into ~/.bashrc:
    source <(refrain completions bash)
  into ~/.zshrc, below compinit:
    source <(refrain completions zsh)
  into ~/.config/fish/config.fish:
    refrain completions fish | source

Examples:
  refrain completions bash
  refrain completions fish";

/// The variable by which a shell's script asks. Private to it: a process that has it set prints answers and runs no
/// verb.
const ASKS: &str = "_REFRAIN_COMPLETES";

pub(crate) fn run(args: &Args) -> Result<ExitCode, RequestError> {
    let failed = |error: std::io::Error| {
        RequestError::new(Code::Failed, format!("the completions of {} cannot be made: {error}", args.shell))
    };
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string());
    let shell = shell.ok_or_else(|| failed(std::io::Error::other("it is not known")))?;
    let mut text = Vec::new();
    shell.write_registration(ASKS, "refrain", "refrain", &program(), &mut text).map_err(failed)?;
    out::print_raw(&text);
    Ok(Code::Done.into())
}

/// The command by which the script calls this program: its name, or its path if it was called by one.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let called = std::path::Path::new(&called);
    let path = if called.components().count() > 1 { std::path::absolute(called).ok() } else { None };
    path.map_or_else(|| "refrain".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Answers a shell's completion request. Returns whether there was one: then the process ends.
pub(crate) fn answer() -> bool {
    let here = std::env::current_dir().ok();
    let answer = CompleteEnv::with_factory(completed).var(ASKS);
    // A question that cannot be answered was one all the same.
    answer.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

/// The longest help of a candidate, in bytes.
const HELP: usize = 60;

/// The verbs that start a loop with the options of `start`.
const STARTS: [&str; 3] = ["start", "research", "implement"];

type LoopMatch = fn(&Brief) -> bool;

/// Which loops each verb can mean, with an ID as without one.
const MEANT: [(&str, LoopMatch); 20] = [
    ("answer", steer::is_candidate),
    ("approve", approve::is_candidate),
    ("archive", archive::is_candidate),
    ("cancel", cancel::is_candidate),
    ("diff", any),
    ("discard", archive::is_candidate),
    ("export", any),
    ("logs", any),
    ("merge", merge::is_candidate),
    ("move", move_loop::is_candidate),
    ("open", any),
    ("pause", pause::is_candidate),
    ("report", any),
    ("resume", resume::is_candidate),
    ("show", any),
    ("status", any),
    ("steer", steer::is_candidate),
    ("take-back", take_back::is_candidate),
    ("verify", any),
    ("watch", any),
];

fn any(_: &Brief) -> bool {
    true
}

/// The definition, extended by candidates from the environment.
fn completed() -> Command {
    let mut definition = crate::cli::definition();
    definition.build();
    let definition = definition.mut_arg("run-in", |arg| arg.value_hint(ValueHint::DirPath));
    with_values(definition).mut_subcommand("loop", with_values)
}

fn with_values(verbs: Command) -> Command {
    let verbs = STARTS.iter().fold(verbs, |verbs, verb| {
        verbs.mut_subcommand(verb, |start| {
            // Each in its place: `mut_arg` would put it last, and the place of a word is its meaning.
            start.mut_args(|arg| match arg.get_id().as_str() {
                "prompt_file" => arg.value_hint(ValueHint::FilePath),
                "working_dir" => arg.value_hint(ValueHint::DirPath),
                "agent" => {
                    let kinds = arg.get_possible_values();
                    arg.add(ArgValueCandidates::new(move || agents(&kinds)))
                }
                "prompt_name" => arg.add(ArgValueCandidates::new(prompts)),
                "mode" => arg.add(ArgValueCandidates::new(modes)),
                _ => arg,
            })
        })
    });
    // Those that count only for a loop of another system are offered to a user who has begun to type one.
    let verbs = verbs.mut_subcommand("resume", |resume| {
        resume.mut_args(|arg| if arg.is_hide_short_help_set() { arg.hide(true) } else { arg })
    });
    MEANT.iter().fold(verbs, |verbs, (verb, is_candidate)| {
        let ids = ArgValueCandidates::new(|| ids(*is_candidate));
        let with_ids = |arg: Arg| if arg.get_id() == "id" { arg.add(ids.clone()) } else { arg };
        verbs.mut_subcommand(verb, |verb| verb.mut_args(with_ids))
    })
}

/// The adapters, and before them the agents that the configuration names.
fn agents(kinds: &[PossibleValue]) -> Vec<CompletionCandidate> {
    let config = settings().map(|settings| settings.config);
    let own = config.into_iter().flat_map(|config| config.agents).map(|(name, agent)| {
        let runs = agent.command.map(|command| command.to_string());
        let runs = runs.or_else(|| agent.kind.map(|kind| kind.to_string())).unwrap_or_default();
        (name, Some(StyledStr::from(clip(&printable(&runs).replace('\n', " "), HELP).into_owned())))
    });
    let kinds = kinds.iter().map(|kind| (kind.get_name().to_owned(), kind.get_help().cloned()));
    own.chain(kinds).map(|(name, help)| CompletionCandidate::new(name).help(help)).collect()
}

fn prompts() -> Vec<CompletionCandidate> {
    let prompts = settings().map(|settings| settings.config.prompts).unwrap_or_default();
    prompts.iter().map(|(name, prompt)| named(name, &says(prompt))).collect()
}

fn modes() -> Vec<CompletionCandidate> {
    let own = settings().map(|settings| settings.config.modes).unwrap_or_default();
    let text = |name: &str| mode::built_in(name).unwrap_or_default().to_owned();
    let modes = prompt::modes(&own).into_iter();
    modes.map(|(name, prompt)| named(name, &prompt.map_or_else(|| text(name), says))).collect()
}

fn says(prompt: &Prompt) -> String {
    let file = || prompt.file.as_ref().map(ToString::to_string);
    prompt.text.clone().or_else(file).unwrap_or_default()
}

fn named(name: &str, text: &str) -> CompletionCandidate {
    let help = clip(&squeeze(&printable(text)), HELP).into_owned();
    CompletionCandidate::new(name).help(Some(StyledStr::from(help)))
}

/// The configuration for the folder of the words typed so far.
fn settings() -> Option<Settings> {
    let context = values::read_environment(run_in()).ok()?;
    context.service().ok()?.settings(AgentChoice::default(), context.has_variables()).ok()
}

/// The ids of possible loops, last touched first, each with its status.
fn ids(is_candidate: LoopMatch) -> Vec<CompletionCandidate> {
    let list = || {
        let context = values::read_environment(run_in()).ok()?;
        Service::open(&context.dir, context.host).ok()?.list().ok()
    };
    let meant = list().into_iter().flatten().filter_map(|row| match row {
        ListEntry::Loop(status) if is_candidate(&status) => Some(status),
        ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
    });
    meant.enumerate().map(|(place, status)| candidate(&status).display_order(Some(place))).collect()
}

fn candidate(status: &Brief) -> CompletionCandidate {
    let progress = phrase::progress(status.iteration, status.max_iterations);
    let help = format!("{} at iteration {progress}", status.status.as_str());
    CompletionCandidate::new(status.id.as_str()).help(Some(StyledStr::from(help)))
}

/// The folder that the words so far name with `-C`.
fn run_in() -> Option<Utf8PathBuf> {
    let mut words =
        std::env::args_os().skip_while(|word| word != "--").filter_map(|word| word.into_string().ok());
    let word = words.find(|word| word.starts_with("-C"))?;
    match &word[2..] {
        "" => words.next().map(Utf8PathBuf::from),
        dir => Some(Utf8PathBuf::from(dir)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_that_takes_an_id_has_them_completed() {
        let mut verbs = crate::cli::definition();
        verbs.build();
        let takes_id = |verb: &&Command| verb.get_arguments().any(|arg| arg.get_id() == "id");
        let mut names: Vec<_> = verbs.get_subcommands().filter(takes_id).map(Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(names, MEANT.map(|(verb, _)| verb));
        completed().debug_assert();
    }
}
