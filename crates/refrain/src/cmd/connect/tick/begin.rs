//! `refrain tick begin`: a session starts a loop or continues one. What the person typed after the session's command
//! comes as one text; all else is as with `start`.

use std::io::Read;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use refrain_app::effects;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::gates::GateArgs;
use refrain_app::options::until::UntilArgs;
use refrain_app::options::values;
use refrain_app::options::work::{TaskArgs, WorkArgs};
use refrain_app::resolve::{self, Resolved, StartLoop};
use refrain_app::trust;
use refrain_app::verbs::resume;
use refrain_app::verbs::start::not_shown;
use refrain_app::{Code, Context, RequestError};
use refrain_core::r#loop::Grant;
use refrain_core::promise::{MatchMode, Promise, PromiseText};
use refrain_core::session::{Isolation, SessionSpec};
use refrain_core::spec::{AgentKind, Limits};
use refrain_core::{LoopId, LoopState, Spec};
use refrain_engine::config::Chosen;
use refrain_engine::config::keys::PROMISE;
use refrain_engine::{Service, hook};

use crate::cmd::inspect::export;
use crate::cmd::launch::start;
use crate::out;

/// Begin a loop in this session, or go on with one: prints its id, then its promise
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session's command that begins it, as in /refrain:loop
    command: String,
    /// What the person typed behind that; `-` reads it from stdin. Options in it count as if they were given here
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    args: Option<String>,
    /// What stands before that in the prompt: how the command works
    #[arg(long, value_name = "TEXT")]
    lead: Option<String>,
    /// The loop's mode, as with start
    #[arg(long, value_name = "NAME", conflicts_with = "lead")]
    mode: Option<String>,
    /// Which agent's session it is; found out where it is left out
    #[arg(long, value_name = "KIND", value_parser = super::super::hook::agent)]
    agent: Option<AgentKind>,
    /// The session's own name; found out, or learnt from its first stop, where it is left out
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    #[command(flatten)]
    typed: Typed,
    #[command(flatten)]
    gates: GateArgs,
}

/// What the person may type behind the command.
#[derive(Clone, Debug, clap::Args)]
struct Typed {
    /// The words that claim the work done; COMPLETE where they are left out
    #[arg(long, value_name = "TEXT", value_parser = values::promise)]
    completion_promise: Option<PromiseText>,
    /// The loop's id; made up from the command where it is left out
    #[arg(long, value_name = "ID")]
    name: Option<LoopId>,
    /// Stop after N iterations, 1 to 200 [default: 20]
    #[arg(long, visible_aliases = ["max-iterations", "iterations"], value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    max: Option<u32>,
    /// The file that holds the task
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    prompt_file: Option<Utf8PathBuf>,
    /// Where the work is done
    #[arg(long, value_enum, value_name = "WHERE")]
    isolation: Option<Where>,
    /// In this session, which keeps its context
    #[arg(long, conflicts_with_all = ["isolation", "loop_isolated"])]
    loop_shared: bool,
    /// In a fresh agent below this session each time
    #[arg(long, conflicts_with = "isolation")]
    loop_isolated: bool,
    /// Go on with this loop
    #[arg(long, value_name = "ID")]
    resume: Option<LoopId>,
    /// Go on with the loop of this command that runs, or ran last
    #[arg(long, conflicts_with = "resume")]
    resume_last: bool,
    #[command(flatten)]
    until: UntilArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Where {
    SharedContext,
    Subagent,
}

/// What the person typed, read as options and a prompt.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    typed: Typed,
    #[command(flatten)]
    gates: GateArgs,
    #[arg(trailing_var_arg = true)]
    words: Vec<String>,
}

/// More is no prompt, in bytes.
const LARGEST: u64 = 10 << 20;

/// Begins it.
pub(super) fn run(context: &Context, service: &Service, args: Args) -> Result<ExitCode, RequestError> {
    if !args.command.starts_with('/') {
        return Err(RequestError::usage(format!(
            "{}: accepted is a command like /refrain:loop",
            args.command
        )));
    }
    let text = match args.args.as_deref() {
        Some("-") => read()?,
        Some(text) => text.trim().to_owned(),
        None => String::new(),
    };
    let (mut typed, gates, mut prompt, line) = typed(args.typed, args.gates, &text)?;
    let said = context.typed.clone().and(line);
    said.check()?;
    // As after the verb of a mode: a number alone is the maximum of iterations.
    if args.mode.is_some() && start::is_number(&prompt) {
        typed.max = Some(typed.until.at_most(&prompt, typed.max)?);
        prompt.clear();
    }
    export::advise(context, service);
    let around = hook::surrounding(|name| context.variable(name));
    let agent = args.agent.or(around.map(|(agent, _)| agent)).unwrap_or(AgentKind::Claude);
    let named = around.filter(|(kind, _)| *kind == agent).and_then(|(_, id)| id);
    let session = service.session_here(agent, args.session_id.as_deref().or(named));
    if typed.resume.is_some() || typed.resume_last {
        if !prompt.is_empty() {
            return Err(RequestError::usage(
                "a loop that goes on has its prompt; accepted is --resume ID alone",
            ));
        }
        let id = match typed.resume {
            Some(id) => id,
            None => last(service, &args.command, session.id.as_deref())?,
        };
        if service.spec(&id)?.approval {
            let error = format!("{id} waits for a person's approval where it claims, which no session can");
            return Err(RequestError::new(Code::Refused, error).hint(format!("refrain resume {id}")));
        }
        let grant = Grant { max_iterations: typed.max, ..Grant::default() };
        resume::check(context, service, &id, &grant)?;
        let state = service.resume_in_session(&id, &grant, session)?;
        tell(&id, state.spec.promise.as_ref());
        return Ok(Code::Done.into());
    }
    let is_unsaid = prompt.is_empty() && typed.prompt_file.is_none();
    if is_unsaid && args.command.ends_with(":loop") {
        return Err(RequestError::usage(
            "nothing says what is to be done: accepted are a prompt, or --prompt-file FILE",
        ));
    }
    let prompt = match &args.lead {
        Some(lead) => format!("{lead} {prompt}").trim().to_owned(),
        None if is_unsaid && args.mode.is_none() => args.command.clone(),
        None => prompt,
    };
    let isolation = match (typed.isolation, typed.loop_isolated) {
        (Some(Where::Subagent), _) | (_, true) => Isolation::Subagent,
        (Some(Where::SharedContext) | None, false) => Isolation::SharedContext,
    };
    let begun = SessionSpec { command: args.command, args: text, isolation };
    let task = (args.mode.as_deref(), prompt);
    let spec = spec(context, service, &typed, (agent, task, begun), gates)?;
    said.check_loop(&spec)?;
    not_shown(&spec).for_each(out::tell_note);
    let promise = spec.promise.clone();
    let id = service.begin_in_session(spec, typed.name, session)?;
    tell(&id, promise.as_ref());
    Ok(Code::Done.into())
}

fn tell(id: &LoopId, promise: Option<&Promise>) {
    let promise = promise.map_or(String::new(), |promise| format!("{}\n", promise.text));
    out::print(&format!("{id}\n{promise}"));
}

fn read() -> Result<String, RequestError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| error.to_string()).and_then(|_| match bytes.len() as u64 > LARGEST {
        true => Err(format!("it is longer than {LARGEST} bytes")),
        false => String::from_utf8(bytes).map_err(|error| error.to_string()),
    });
    let text =
        read.map_err(|error| RequestError::usage(format!("--args -: stdin cannot be read: {error}")))?;
    Ok(text.trim().to_owned())
}

/// Splits what was typed into options and the prompt, verbatim. Options stand before or after the prompt.
fn typed(
    given: Typed,
    gates: GateArgs,
    text: &str,
) -> Result<(Typed, GateArgs, String, effects::TypedOptions), RequestError> {
    let (before, prompt, after) = split(text, &options());
    let (line, said) = line(&[before, after].join(" "))?;
    // Text after the prompt belongs to it unless all of it is options: `Explain what --name does.`
    let (line, said, prompt) = match line.words.is_empty() {
        true => (line, said, prompt.to_owned()),
        false => {
            let (line, said) = self::line(before)?;
            (line, said, text[before.len()..].trim().to_owned())
        }
    };
    let prompt = [line.words.join(" "), prompt].join(" ").trim().to_owned();
    Ok((merged(given, line.typed), gates.and(line.gates), prompt, said))
}

fn line(options: &str) -> Result<(Line, effects::TypedOptions), RequestError> {
    let words = shlex::split(options).ok_or_else(|| {
        RequestError::usage(format!(
            "{options}: a quotation has no end; accepted are options, then the prompt"
        ))
    })?;
    let mut command = Line::command();
    let mut matches = command.try_get_matches_from_mut(words).map_err(RequestError::from)?;
    let said = effects::TypedOptions::of_line("tick begin", &command, &matches);
    let line = Line::from_arg_matches_mut(&mut matches)
        .map_err(|error| RequestError::from(error.format(&mut command)))?;
    Ok((line, said))
}

/// The names of a line's options, and whether each takes a value.
fn options() -> Vec<(String, bool)> {
    let line = Line::command();
    let named = line.get_arguments().filter_map(|option| {
        let takes_value = option.get_action().takes_values();
        Some((option.get_long_and_visible_aliases()?, takes_value))
    });
    named.flat_map(|(names, takes)| names.into_iter().map(move |name| (format!("--{name}"), takes))).collect()
}

/// Options with their values before the prompt, the prompt, options after it. A prompt may hold anything, unclosed
/// quotes too.
fn split<'a>(text: &'a str, options: &[(String, bool)]) -> (&'a str, &'a str, &'a str) {
    let known = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        options.iter().find(|(option, _)| option == name)
    };
    let mut rest = text;
    while rest.starts_with("--") {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let mut behind = rest[word.len()..].trim_start();
        if !word.contains('=') && known(word).is_none_or(|(_, takes_value)| *takes_value) {
            behind = behind[value(behind)..].trim_start();
        }
        rest = behind;
    }
    let (before, rest) = text.split_at(text.len() - rest.len());
    // After a prompt, options begin with the first known one.
    let begins = |place: &usize| {
        let is_apart = *place == 0 || rest[..*place].ends_with(char::is_whitespace);
        is_apart && rest[*place..].split_whitespace().next().is_some_and(|word| known(word).is_some())
    };
    let at = rest.match_indices("--").map(|(place, _)| place).find(begins).unwrap_or(rest.len());
    let (prompt, after) = rest.split_at(at);
    (before, prompt.trim(), after)
}

/// How long the first word is, or the quotation.
fn value(text: &str) -> usize {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].find(quote).map_or(text.len(), |end| end + 2),
        _ => text.find(char::is_whitespace).unwrap_or(text.len()),
    }
}

/// Options of the command itself take precedence.
fn merged(given: Typed, typed: Typed) -> Typed {
    Typed {
        completion_promise: given.completion_promise.or(typed.completion_promise),
        name: given.name.or(typed.name),
        max: given.max.or(typed.max),
        prompt_file: given.prompt_file.or(typed.prompt_file),
        isolation: given.isolation.or(typed.isolation),
        loop_shared: given.loop_shared || typed.loop_shared,
        loop_isolated: given.loop_isolated || typed.loop_isolated,
        resume: given.resume.or(typed.resume),
        resume_last: given.resume_last || typed.resume_last,
        until: given.until.or(typed.until),
    }
}

/// The loop of this command that a session continues without naming it: the only one that runs. Among several, only one
/// of this very session is chosen.
fn last(service: &Service, command: &str, session: Option<&str>) -> Result<LoopId, RequestError> {
    let open = service.open_in_session(command)?;
    let is_own = |state: &&LoopState| {
        let bound = state.session.as_ref().and_then(|bound| bound.id.as_deref());
        session.is_some() && bound == session
    };
    let of = |states: &[&LoopState]| match states {
        [only] => Some(only.spec.id.clone()),
        _ => None,
    };
    let (own, all): (Vec<_>, Vec<_>) = (open.iter().filter(is_own).collect(), open.iter().collect());
    of(&own).or_else(|| of(&all)).ok_or_else(|| {
        let names: Vec<_> = open.iter().map(|state| state.spec.id.to_string()).collect();
        let error = match names.is_empty() {
            true => format!("no loop of {command} is open in this project"),
            false => format!("several loops of {command} are open: {}", names.join(", ")),
        };
        RequestError::usage(error).hint("refrain list shows them; --resume ID goes on with one")
    })
}

fn spec(
    context: &Context,
    service: &Service,
    typed: &Typed,
    (agent, (mode, prompt), begun): (AgentKind, (Option<&str>, String), SessionSpec),
    gates: GateArgs,
) -> Result<Spec, RequestError> {
    let name = agent.to_string();
    let chosen = Chosen { agent: Some(&name), command: false };
    let mut settings = service.settings(chosen, context.has_variables())?;
    let why = "a session waits for no person: accepted is that with refrain start";
    resolve::forget_approval(&mut settings, why).into_iter().for_each(out::tell_note);
    // A session always has a promise.
    settings.config.start.promise = None;
    let task = match &typed.prompt_file {
        Some(_) if !prompt.is_empty() => {
            return Err(RequestError::usage("a prompt and --prompt-file: accepted is one of them"));
        }
        Some(file) => TaskArgs { prompt_file: Some(file.clone()), ..TaskArgs::default() },
        None if prompt.is_empty() && mode.is_some() => TaskArgs::default(),
        None => TaskArgs { prompt: Some(prompt), ..TaskArgs::default() },
    };
    let is_asked = gates.require_approval;
    let options = BeginArgs {
        task,
        work: WorkArgs { agent: Some(name), gates, ..WorkArgs::default() },
        until: typed.until.clone(),
        max_iterations: typed.max,
        ..BeginArgs::default()
    };
    let request = StartLoop { words: None, mode: mode.map(str::to_owned), options };
    let Resolved { spec, offered, .. } = resolve::spec(context, &request, &settings, service, &context.dir)?;
    trust::check(context, service, &offered, None)?;
    resolve::refuse_approval(&spec, is_asked, &settings, why)?;
    let text = typed.completion_promise.clone();
    let text = text.map_or_else(|| values::promise(PROMISE).map_err(RequestError::usage), Ok)?;
    let limits = Limits {
        // A session has its own limits, and Refrain does not end it.
        timeout: None,
        idle_timeout: None,
        pause: None,
        max_cost: None,
        max_tokens: None,
        ..spec.limits
    };
    // A session remembers by itself, and its prompt is typed.
    Ok(Spec {
        promise: Some(Promise { text, mode: MatchMode::Tag }),
        session: Some(begun),
        limits,
        memory: None,
        ..spec
    })
}
