//! `refrain resume --from FILE`: a loop of another system continues as one of Refrain's. The file is untrusted data:
//! the program to run and the command that checks its work come from the user, on the command line or in the
//! configuration.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Arg;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::variants::{AdaptedArgs, Difference};
use refrain_app::options::work::PromiseArgs;
use refrain_app::options::{heading, values};
use refrain_app::resolve::{StartLoop, Words, Workspace, folder, note_untrusted};
use refrain_app::verbs::start::PreparedLoop;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::mirror::CarriedCounter;
use refrain_core::spec::Limits;
use refrain_core::text::clip;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::AgentChoice;
use refrain_engine::{EngineError, ForeignError, Service, found_in};
use refrain_formats::mirror::{
    CannotContinue, Check, ForeignLoop, PromiseWords, Prompt, Unread, admits_prompt,
};

use super::Args;
use crate::cmd::launch::conclave::{Rules, WithoutTests};
use crate::cmd::launch::start::{self, ModeArgs};
use crate::out;

// A loop of another system, and the options of `start` for it.
#[derive(Debug, clap::Args)]
pub(super) struct FromArgs {
    /// Continue the loop of another system whose state FILE holds
    ///
    /// FILE is a state of Synthex, Descartes, Randroid, Conclave or the Ralph loop, and is only read. The options of `refrain
    /// start` count for such a loop. Refrain never runs a command because FILE names it.
    #[arg(help_heading = heading::FROM, long, value_name = "FILE", conflicts_with_all = ["all", "now"])]
    pub(super) from: Option<Utf8PathBuf>,
    /// Resume the loop that this state file shows: one of Refrain's, or as with --from one of another system
    #[arg(help_heading = heading::FROM, long, value_name = "FILE", conflicts_with_all = ["id", "last", "all", "from"], hide_short_help = true)]
    pub(super) state_file: Option<Utf8PathBuf>,
    #[command(flatten)]
    mode: AdaptedArgs<ModeArgs, AtResume>,
    #[command(flatten)]
    pub(super) begin: AdaptedArgs<BeginArgs, AtResume>,
}

/// Help of `start`'s options here: limits apply to every loop, all else only to one of another system.
#[derive(Debug)]
pub(super) struct AtResume;

impl Difference for AtResume {
    fn of(arg: Arg) -> Arg {
        let total = |arg: Arg, help: &'static str| arg.help(help).long_help(help);
        match arg.get_id().as_str() {
            "max_iterations" => total(arg, "Stop after N iterations in total, at most 200 more at a time")
                .alias("max-total-iterations")
                .value_parser(values::iteration),
            "max_duration" => total(arg, "How long the loop may take in total"),
            "max_cost" => total(arg, "How much money it may cost in total, in US dollars"),
            "no_sandbox" => total(arg, "Continue without the sandbox of the loop, with your own rights"),
            "max_tokens" => total(arg, "How many tokens it may use in total"),
            _ => arg.hide_short_help(true),
        }
    }
}

/// The longest quotation from a file, in bytes.
const SHOWN: usize = 400;

/// Continues it, here or in a process of its own.
pub(super) fn run(context: &Context, file: &Utf8Path, args: Args) -> Result<ExitCode, RequestError> {
    if args.show.detach {
        context.check(Action::Detach)?;
    }
    let (mut begin, mode) = (args.from.begin.args, args.from.mode.args);
    let dir = folder(context, begin.work.working_dir.as_deref())?;
    let service = context.open(&dir, begin.work.yes)?;
    let path = context.dir.join(file);
    let path = path.canonicalize_utf8().unwrap_or(path);
    let found = found_in(&path).map_err(|error| unread(file, &error))?;
    let total = total(&found, &begin).map_err(|error| not_now(file, &error))?;
    let words = begin.task.take_stdin().then_some(Words::Stdin);
    if words.is_none() {
        set_task(context, &service, file, &found, (&mode, &mut begin))?;
    }
    let named = name(&service, (file, &path), &found)?;
    let is_renamed = found.id.is_some() && named.is_none() && begin.name.is_none();
    let named = begin.name.clone().or(named);

    let (agent, command) = (begin.work.agent.as_deref(), begin.work.command.is_some());
    let settings = service.settings(AgentChoice { agent, command }, context.has_variables())?;
    note_untrusted(&settings, &mut out::tell_note);
    let configured = &settings.config.start;
    if agent.is_none() && !command && configured.agent.is_none() && configured.command.is_none() {
        return Err(nothing_to_run(file, &found));
    }
    set_promise(&found, &mut begin.promise);
    let rules = match &found.check {
        Some(Check::Gates) => {
            let untested =
                WithoutTests::Refuse(format!("refrain resume --from {file} --gate CMD takes any command"));
            Some(Rules::of(context, &service, &dir, &settings, (&mut begin, untested))?)
        }
        Some(Check::Command { .. }) | None => None,
    };
    let is_capped = begin.max_iterations.or(begin.until.exact()).is_some();
    let request = StartLoop { words, mode: mode.mode, options: begin, ..StartLoop::default() };
    let workspace = Workspace { service: service.clone(), settings, dir };
    let PreparedLoop { service, settings, dir, spec, mut offered, untrusted_gates, mut notes, .. } =
        PreparedLoop::new(context, workspace, &request)?;
    // A prompt file that it names is untrusted too.
    admits_prompt(&spec.prompt).map_err(|error| unread(file, &error.into()))?;
    let limits = Limits { max_iterations: total, ..spec.limits };
    let carried = Some(CarriedCounter { from: path.to_string(), iteration: found.iteration });
    let mut spec = Spec { id: named.clone().unwrap_or(spec.id), limits, carried, ..spec };
    if let Some(rules) = rules {
        offered.extend(rules.offered());
        notes.extend(rules.applied(&service, &mut spec)?);
    }
    if let Some(check) = found.check.as_ref().filter(|_| !spec.has_hard_gates()) {
        return Err(unchecked(file, check));
    }
    notes.push(format!(
        "it continues after iteration {} of {file}, which stays as it is: end that loop there",
        found.iteration
    ));
    if let (Some(total), None, false) = (total, found.cap, is_capped) {
        notes.push(format!("there was no limit there; here it has {total} iterations in total"));
    }
    if found.promised == PromiseWords::Unsaid && spec.promise.is_some() {
        notes.push("no promise ended it there; here the usual one does".to_owned());
    }
    if let (Some(id), true) = (&found.id, is_renamed) {
        notes.push(format!("{id} is another loop of this project; this one has another name"));
    }
    let prepared = PreparedLoop { service, settings, dir, spec, offered, untrusted_gates, named, notes };
    start::launch(context, prepared.start(context, &mut out::tell_note)?, args.show)
}

/// The total of iterations, including past ones; none without a limit.
fn total(found: &ForeignLoop, begin: &BeginArgs) -> Result<Option<u32>, CannotContinue> {
    match begin.until.is_infinite() {
        true => found.total(Some(found.iteration.saturating_add(1))).map(|_| None),
        false => found.total(begin.max_iterations.or(begin.until.exact())).map(Some),
    }
}

/// Sets the task: the user's, else the file's.
fn set_task(
    context: &Context,
    service: &Service,
    file: &Utf8Path,
    found: &ForeignLoop,
    (mode, begin): (&ModeArgs, &mut BeginArgs),
) -> Result<(), RequestError> {
    if begin.task.is_given() {
        return Ok(());
    }
    match &found.prompt {
        Prompt::Text(text) => begin.task.prompt = Some(text.clone()),
        Prompt::File(name) => {
            // A path from the user may lead anywhere; a path from the file must stay in its project.
            let root = service.project().worktree.canonicalize_utf8();
            let path = context.dir.join(name).canonicalize_utf8();
            let path = path.or_else(|_| service.project().worktree.join(name).canonicalize_utf8());
            match (root, path) {
                (Ok(root), Ok(path)) if path.starts_with(&root) && path.is_file() => {
                    begin.task.prompt_file = Some(path)
                }
                _ => {
                    let error = format!(
                        "{file}: prompt_file: {:?}: accepted: a file of this project",
                        clip(name, SHOWN)
                    );
                    return Err(RequestError::usage(error).hint("--prompt-file FILE names another"));
                }
            }
        }
        Prompt::Unsaid if mode.is_given() => {}
        Prompt::Unsaid => {
            let error = format!("{file}: it does not say what the loop is to do; --prompt-file FILE says it");
            return Err(RequestError::usage(error));
        }
    }
    Ok(())
}

/// Sets the completion promise: the user's, else the file's.
fn set_promise(found: &ForeignLoop, args: &mut PromiseArgs) {
    if args.no_promise || args.completion_promise.is_some() {
        return;
    }
    match &found.promised {
        PromiseWords::Words(text) => args.completion_promise = Some(text.clone()),
        PromiseWords::Never => args.no_promise = args.promise_match.is_none(),
        PromiseWords::Unsaid => {}
    }
}

/// The name it has there, if it is free; otherwise a new one.
fn name(
    service: &Service,
    (file, path): (&Utf8Path, &Utf8Path),
    found: &ForeignLoop,
) -> Result<Option<LoopId>, RequestError> {
    let Some(id) = &found.id else { return Ok(None) };
    let state = match service.state(id) {
        Err(EngineError::NoLoop { .. }) => return Ok(Some(id.clone())),
        // It has a plan, or a loop that cannot be read.
        Err(_) => return Ok(None),
        Ok(state) => state,
    };
    let is_behind_it = state.spec.carried.as_ref().is_some_and(|carried| carried.from == path.as_str());
    if is_behind_it || found.began == Some(state.started_at) {
        let error = format!("{file}: it is loop {id} of this project, which continues as it is");
        let error = RequestError::new(Code::Refused, error).hint(format!("refrain resume {id}"));
        return Err(error.hint(format!("to begin anew, free its name: refrain archive {id}")));
    }
    Ok(None)
}

/// A file in a repository that another person made must not choose a program.
fn nothing_to_run(file: &Utf8Path, found: &ForeignLoop) -> RequestError {
    let error = RequestError::usage(format!(
        "{file}: a file does not choose what is run; accepted: --command or --agent"
    ));
    match &found.command {
        Some(command) => error.hint(format!("there it was: {}", clip(command, SHOWN))),
        None => error.hint(format!("refrain resume --from {file} --agent claude")),
    }
}

/// A loop with a check must not be completed here on the agent's word alone.
fn unchecked(file: &Utf8Path, check: &Check) -> RequestError {
    let by = match check {
        Check::Gates => "tests and a reviewer".to_owned(),
        Check::Command { key, .. } => format!("a command ({})", clip(key, SHOWN)),
    };
    let error = format!("{file}: {by} checked its work there; accepted: --gate CMD, which checks it here");
    let error = RequestError::usage(error).hint(format!("refrain resume --from {file} --gate CMD"));
    match check {
        Check::Command { command, .. } => {
            let command = clip(command, SHOWN);
            error.hint(format!("the file names {command}; Refrain does not run commands from a file"))
        }
        Check::Gates => error,
    }
}

fn unread(file: &Utf8Path, error: &ForeignError) -> RequestError {
    let said = RequestError::usage(format!("--from {file}: {error}"));
    match error {
        ForeignError::Unread(Unread::Plan { words, .. }) => said.hint(format!("refrain plan run {words}")),
        ForeignError::Unread(_) | ForeignError::File(_) => said,
    }
}

fn not_now(file: &Utf8Path, error: &CannotContinue) -> RequestError {
    RequestError::usage(format!("--from {file}: {error}"))
}
