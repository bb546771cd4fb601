//! `refrain resume --from FILE`: a loop that another system began goes on as one of Refrain's. What its file says is data:
//! which program is run is a person's word, here or in the configuration.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Parser;
use refrain_core::mirror::{Carried, Found, NotNow, Promised, Prompt, Unread, admits_prompt};
use refrain_core::spec::Limits;
use refrain_core::text::clip;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::Chosen;
use refrain_engine::{ForeignError, Service, found_in};

use super::Args;
use crate::cli::Context;
use crate::cmd::heading;
use crate::cmd::start::{self, Notes};
use crate::error::{CliError, Code};
use crate::run;

/// A loop of another system.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = heading::FROM)]
pub(super) struct FromArgs {
    /// Go on with the loop of another system whose state FILE holds: of Synthex, Descartes, Randroid, Conclave, or the Ralph
    /// loop. FILE is only read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["all", "now"])]
    pub(super) from: Option<Utf8PathBuf>,
    /// What to run for it; what FILE says it ran is never run because it stands there
    #[arg(long, value_name = "CMD ARGS", requires = "from")]
    command: Option<String>,
    /// Which adapter runs it, or an agent that the configuration names
    #[arg(long, value_name = "KIND", requires = "from")]
    agent: Option<String>,
    /// The file that holds its task, where FILE does not say it
    #[arg(long, value_name = "FILE", requires = "from")]
    prompt_file: Option<Utf8PathBuf>,
}

/// How much of what stands in a file is repeated, in bytes.
const SHOWN: usize = 400;

/// The words of `start` that the loop is made of.
#[derive(Parser)]
struct Words {
    #[command(flatten)]
    start: start::Args,
}

/// Goes on with it, here or in a process of its own.
pub(super) fn run(
    context: &Context,
    service: &Service,
    file: &Utf8Path,
    args: &Args,
) -> Result<ExitCode, CliError> {
    if args.show.detach {
        run::may_detach(context)?;
    }
    let path = context.dir.join(file);
    let path = path.canonicalize_utf8().unwrap_or(path);
    let found = found_in(&path).map_err(|error| unread(file, &error))?;
    let total = found.total(args.max_iterations).map_err(|error| not_now(file, &error))?;
    let task = task(context, service, file, args, &found)?;
    let named = name(service, (file, &path), &found)?;

    let (agent, command) = (args.from.agent.as_deref(), args.from.command.as_deref());
    let settings =
        service.settings(Chosen { agent, command: command.is_some() }, context.inside.is_none())?;
    start::mention_what_does_not_count(&settings);
    let configured = &settings.config.start;
    if agent.is_none() && command.is_none() && configured.agent.is_none() && configured.command.is_none() {
        return Err(nothing_to_run(file, &found));
    }
    let words = words(args, &found, task);
    let words = Words::try_parse_from(words).map_err(CliError::from)?;
    let (spec, mut notes) = start::resolve::spec(context, &words.start, &settings, service, &context.dir)?;
    // A file that it names says what it likes too.
    admits_prompt(&spec.prompt).map_err(|error| unread(file, &error.into()))?;
    let admitted = spec.agent.admits(args.max_cost.is_some(), args.max_tokens.is_some());
    admitted.map_err(|refusal| CliError::usage(refusal.to_string()))?;
    let limits = Limits {
        max_iterations: Some(total),
        max_duration: args.max_duration.or(spec.limits.max_duration),
        max_cost: args.max_cost.or(spec.limits.max_cost),
        max_tokens: args.max_tokens.or(spec.limits.max_tokens),
        ..spec.limits
    };
    let carried = Some(Carried { from: path.to_string(), iteration: found.iteration });
    let spec = Spec { id: named.clone().unwrap_or(spec.id), limits, carried, ..spec };
    notes.push(format!(
        "it goes on behind iteration {} of {file}, which stays as it is: end that loop there",
        found.iteration
    ));
    if found.cap.is_none() && args.max_iterations.is_none() {
        notes.push(format!("there was no limit there; here it has {total} iterations in all"));
    }
    if found.promised == Promised::Unsaid {
        notes.push("no promise ended it there; here the usual one does".to_owned());
    }
    if let (Some(id), None) = (&found.id, &named) {
        notes.push(format!("{id} is another loop of this project; this one has another name"));
    }
    let notes = Notes::of(service, &spec, notes);
    let runner = service.start(spec, named)?;
    if !args.show.quiet {
        notes.tell(runner.id());
        start::mention_memories(&runner);
    }
    let show = args.show.clone().or_configured(&settings.config.notify);
    match show.detach {
        true => run::detached(context, service, runner, context.dir.as_str(), &show),
        false => run::in_foreground(context, runner, &show),
    }
}

/// The words of `start` that say what it is to do: what the person gives, else what the file says.
fn task(
    context: &Context,
    service: &Service,
    file: &Utf8Path,
    args: &Args,
    found: &Found,
) -> Result<String, CliError> {
    if let Some(prompt) = &args.from.prompt_file {
        return Ok(format!("--prompt-file={prompt}"));
    }
    match &found.prompt {
        Prompt::Text(text) => Ok(format!("--prompt={text}")),
        Prompt::File(name) => {
            // A person's own word may lead anywhere; a file's leads to what lies in its project.
            let root = service.project().worktree.canonicalize_utf8();
            let path = context.dir.join(name).canonicalize_utf8();
            let path = path.or_else(|_| service.project().worktree.join(name).canonicalize_utf8());
            match (root, path) {
                (Ok(root), Ok(path)) if path.starts_with(&root) => Ok(format!("--prompt-file={path}")),
                _ => {
                    let error = format!(
                        "{file}: prompt_file: {:?}: accepted is a file of this project",
                        clip(name, SHOWN)
                    );
                    Err(CliError::usage(error).hint("--prompt-file FILE names another"))
                }
            }
        }
        Prompt::Unsaid => {
            let error = format!(
                "{file}: it does not say what the loop is to do; accepted then is --prompt-file FILE"
            );
            Err(CliError::usage(error))
        }
    }
}

/// The name that it has there, where it is free; another is made up where it has none, or another loop has it.
fn name(
    service: &Service,
    (file, path): (&Utf8Path, &Utf8Path),
    found: &Found,
) -> Result<Option<LoopId>, CliError> {
    let Some(id) = &found.id else { return Ok(None) };
    let is_plan = service.has_plan(id);
    let Ok(state) = service.state(id) else { return Ok((!is_plan).then(|| id.clone())) };
    let is_behind_it = state.spec.carried.is_some_and(|carried| carried.from == path.as_str());
    if is_behind_it || found.began == Some(state.started_at) {
        let error = format!("{file}: it is loop {id} of this project, which goes on as it is");
        let error = CliError::new(Code::Refused, error).hint(format!("refrain resume {id}"));
        return Err(error.hint(format!("where it is to begin anew: refrain archive {id} frees its name")));
    }
    Ok(None)
}

/// What a person would have typed behind `start`.
fn words(args: &Args, found: &Found, task: String) -> Vec<String> {
    let promise = match &found.promised {
        Promised::Words(text) => Some(format!("--completion-promise={text}")),
        Promised::Never => Some("--no-promise".to_owned()),
        Promised::Unsaid => None,
    };
    let given = [("--agent", &args.from.agent), ("--command", &args.from.command)];
    let given = given.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value.as_ref()?)));
    ["start".to_owned(), task].into_iter().chain(promise).chain(given).collect()
}

/// A file in a repository that somebody else made must not choose a program.
fn nothing_to_run(file: &Utf8Path, found: &Found) -> CliError {
    let error = CliError::usage(format!(
        "{file}: a file does not choose what is run; accepted is --command or --agent"
    ));
    match &found.command {
        Some(command) => error.hint(format!("there it was: {}", clip(command, SHOWN))),
        None => error.hint(format!("refrain resume --from {file} --agent claude")),
    }
}

fn unread(file: &Utf8Path, error: &ForeignError) -> CliError {
    let said = CliError::usage(format!("--from {file}: {error}"));
    match error {
        ForeignError::Unread(Unread::Plan { words, .. }) => said.hint(format!("refrain plan run {words}")),
        ForeignError::Unread(_) | ForeignError::File(_) => said,
    }
}

fn not_now(file: &Utf8Path, error: &NotNow) -> CliError {
    CliError::usage(format!("--from {file}: {error}"))
}
