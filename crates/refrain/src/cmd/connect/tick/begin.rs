//! `refrain tick begin`: a session starts a loop or continues one. What the person typed after the session's command
//! comes as one text; all else is as with `start`.

use std::io::Read;
use std::process::ExitCode;

use clap::{Arg, ArgGroup, Args as _, CommandFactory, FromArgMatches, Parser, ValueEnum};
use refrain_app::effects::TypedOptions;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::variants::{AdaptedArgs, Difference};
use refrain_app::resolve::{self, ResolvedStart, StartLoop, Words};
use refrain_app::verbs::resume;
use refrain_app::verbs::start::not_shown;
use refrain_app::{Code, Context, RequestError, trust};
use refrain_core::r#loop::Grant;
use refrain_core::promise::Promise;
use refrain_core::sandbox::SandboxMode;
use refrain_core::session::{Isolation, SessionSpec};
use refrain_core::spec::{AgentKind, Limits};
use refrain_core::values::Limit;
use refrain_core::view::Kind;
use refrain_core::{LoopId, Spec};
use refrain_engine::config::{AgentChoice, Settings};
use refrain_engine::{Brief, ListEntry, Service, hook};

use super::typed_line::{self, KnownOption, TypedLine};
use crate::cmd::connect::hook::agent;
use crate::cmd::inspect::export;
use crate::cmd::launch::resume::is_candidate;
use crate::cmd::launch::start;
use crate::out;

/// Begin or continue a loop in this session
///
/// Prints its id, then its promise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain tick begin /refrain:loop --args \"Make the tests pass.\"
  refrain tick begin /refrain:loop --name mend --max-iterations 5 --args \"Make the tests pass.\"")]
pub(super) struct Args {
    /// The session's command that begins it, as in /refrain:loop
    #[arg(value_name = "COMMAND")]
    begun_by: String,
    /// What the person typed after that; `-` reads it from stdin. Options in it count as if they were given here
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    args: Option<String>,
    /// What comes before that in the prompt: how the command works
    #[arg(long, value_name = "TEXT")]
    lead: Option<String>,
    /// The loop's mode, as with start
    #[arg(long, value_name = "NAME", conflicts_with = "lead")]
    mode: Option<String>,
    /// The session's own name [default: found, or learnt from its first stop]
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    #[command(flatten)]
    typed: SessionOptions,
}

// What the person may type after the command.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("source"))]
struct SessionOptions {
    #[command(flatten)]
    begin: AdaptedArgs<BeginArgs, InSession>,
    /// Where the work is done
    #[arg(long, value_enum, value_name = "WHERE")]
    isolation: Option<ContextMode>,
    /// In this session, which keeps its context
    #[arg(long, conflicts_with_all = ["isolation", "loop_isolated"])]
    loop_shared: bool,
    /// In a fresh agent below this session each time
    #[arg(long, conflicts_with = "isolation")]
    loop_isolated: bool,
    /// Continue this loop
    #[arg(long, value_name = "ID")]
    resume: Option<LoopId>,
    /// Continue the loop of this session that was touched last, else that of the project
    #[arg(long, conflicts_with = "resume")]
    resume_last: bool,
}

/// Of the options of `start`: what a session cannot do is accepted, so that the refusal can say why, and not offered.
#[derive(Debug)]
struct InSession;

/// What a session cannot do; why is said in the table of effects.
const NOT_IN_SESSIONS: [&str; 21] = [
    "sandbox",
    "no_sandbox",
    "sandbox_host",
    "sandbox_localhost",
    "command",
    "agent_arg",
    "env",
    "clean_env",
    "prompt_mode",
    "output_format",
    "permissions",
    "timeout",
    "timeout_grace",
    "idle_timeout",
    "pause",
    "retry_for",
    "working_dir",
    "worktree",
    "base",
    "memory",
    "on_stuck",
];

impl Difference for InSession {
    fn of(arg: Arg) -> Arg {
        let shown = |arg: Arg, help: &'static str| arg.help(help).long_help(help);
        match arg.get_id().as_str() {
            "max_iterations" => arg.visible_alias("max").visible_short_alias('n'),
            "agent" => shown(arg, "The agent of the session [default: found]"),
            "model" => {
                shown(arg, "Which model the session uses: with a configured price, --max-cost can be kept")
            }
            "yes" | "no_promise" | "promise_match" | "no_worktree" => arg.hide(true),
            id if NOT_IN_SESSIONS.contains(&id) => arg.hide(true),
            _ => arg,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ContextMode {
    SharedContext,
    Subagent,
}

/// What the person typed, and what was given to the command itself, read as options.
#[derive(Parser)]
#[command(
    name = "refrain tick begin",
    no_binary_name = true,
    disable_help_flag = true,
    args_override_self = true
)]
struct Line {
    #[command(flatten)]
    typed: SessionOptions,
}

/// More is no prompt, in bytes.
const LARGEST: u64 = 10 << 20;

pub(super) fn run(context: &Context, service: &Service, args: Args) -> Result<ExitCode, RequestError> {
    if !args.begun_by.starts_with('/') {
        return Err(RequestError::usage(format!(
            "{}: accepted: a command like /refrain:loop",
            args.begun_by
        )));
    }
    let text = match args.args.as_deref() {
        Some("-") => read()?,
        Some(text) => text.trim().to_owned(),
        None => String::new(),
    };
    let TypedLine { options, mut prompt } = typed_line::read(
        &text,
        &known_options(&Line::command()),
        &known_options(&start::Args::augment_args(clap::Command::new("start"))),
    )?;
    let (mut line, said) = line(context, options)?;
    said.check()?;
    count_alone(&mut prompt, &mut line, args.mode.is_some())?;
    export::advise(context, service);
    let begin = &line.begin.args;
    let around = hook::surrounding(|name| context.variable(name));
    let kind = begin.work.agent.as_deref().map(agent).transpose().map_err(RequestError::usage)?;
    let kind = kind.or(around.map(|(agent, _)| agent)).unwrap_or(AgentKind::Claude);
    let named = around.filter(|(around, _)| *around == kind).and_then(|(_, id)| id);
    let session = service.session_here(kind, args.session_id.as_deref().or(named));
    if line.resume.is_some() || line.resume_last {
        if !prompt.is_empty() {
            return Err(RequestError::usage(
                "a loop that continues has its prompt; accepted: --resume ID alone",
            ));
        }
        let id = match line.resume {
            Some(id) => id,
            None => last(service, session.id.as_deref())?,
        };
        if let Some(why) = cannot_continue_here(service, &service.spec(&id)?) {
            return Err(
                RequestError::new(Code::Refused, format!("{id} {why}")).hint(format!("refrain resume {id}"))
            );
        }
        let grant = Grant { max_iterations: begin.max_iterations, ..Grant::default() };
        resume::check(context, service, &id, &grant)?;
        let state = service.resume_in_session(&id, &grant, session)?;
        tell(&id, state.spec.promise.as_ref());
        return Ok(Code::Done.into());
    }
    let is_unsaid = prompt.is_empty() && !begin.task.is_given();
    if is_unsaid && args.begun_by.ends_with(":loop") {
        return Err(RequestError::usage(
            "nothing says what is to be done: accepted: a prompt, or --prompt-file FILE",
        ));
    }
    let prompt = match &args.lead {
        Some(lead) => format!("{lead} {prompt}").trim().to_owned(),
        None if is_unsaid && args.mode.is_none() => args.begun_by.clone(),
        None => prompt,
    };
    let isolation = match (line.isolation, line.loop_isolated) {
        (Some(ContextMode::Subagent), _) | (_, true) => Isolation::Subagent,
        (Some(ContextMode::SharedContext) | None, false) => Isolation::SharedContext,
    };
    let begun = SessionSpec { command: args.begun_by, args: text, isolation };
    let begin = line.begin.args;
    let name = begin.name.clone();
    let spec = spec(context, service, begin, (kind, (args.mode, prompt), begun))?;
    said.check_loop(&spec)?;
    not_shown(&spec).for_each(out::tell_note);
    let promise = spec.promise.clone();
    note_neighbours(service, &spec);
    let id = service.begin_in_session(spec, name, session)?;
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

/// The options that were typed, and those given to the command itself, which count more.
fn line(context: &Context, typed: Vec<String>) -> Result<(SessionOptions, TypedOptions), RequestError> {
    let mut command = Line::command();
    let read = |command: &mut clap::Command, words: Vec<String>| {
        command.try_get_matches_from_mut(words).map_err(RequestError::from)
    };
    let matches = read(&mut command, typed.clone())?;
    if TypedOptions::of_line("tick begin", &command, &matches).names("agent") {
        let error = "--agent: this session's own agent works; refrain start --agent KIND starts another";
        return Err(RequestError::usage(error));
    }
    let given = context.typed.levels.last().into_iter().flat_map(|level| &level.typed);
    let given = given.flat_map(|(name, values)| {
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        let takes_value = option.map(|option| option.get_action().takes_values());
        match takes_value {
            None => Vec::new(),
            Some(true) => values.iter().map(|value| format!("--{name}={value}")).collect(),
            Some(false) => vec![format!("--{name}")],
        }
    });
    // Of one option the last counts.
    let words = typed.into_iter().chain(given.collect::<Vec<_>>()).collect();
    let mut matches = read(&mut command, words)?;
    let said = TypedOptions::of_line("tick begin", &command, &matches);
    let line = Line::from_arg_matches_mut(&mut matches)
        .map_err(|error| RequestError::from(error.format(&mut command)))?;
    Ok((line.typed, said))
}

/// What a line's options are called, and whether a value follows each.
fn known_options(line: &clap::Command) -> Vec<KnownOption> {
    let named = line.get_arguments().flat_map(|option| {
        let takes_value = option.get_action().takes_values() && !option.is_require_equals_set();
        let long = option.get_long_and_visible_aliases().unwrap_or_default();
        let short = option.get_short_and_visible_aliases().unwrap_or_default();
        let long = long.into_iter().map(|name| format!("--{name}"));
        let names: Vec<_> = long.chain(short.into_iter().map(|name| format!("-{name}"))).collect();
        names.into_iter().map(move |name| KnownOption { name, takes_value })
    });
    named.collect()
}

/// A number alone is the maximum of iterations; before a task it may be meant as one, and a maximum that is not kept costs money.
fn count_alone(prompt: &mut String, line: &mut SessionOptions, is_mode: bool) -> Result<(), RequestError> {
    if start::is_number(prompt) {
        let begin = &mut line.begin.args;
        begin.max_iterations = Some(begin.until.at_most(prompt, begin.max_iterations)?);
        prompt.clear();
        return Ok(());
    }
    match prompt.split_whitespace().next().filter(|word| is_mode && start::is_number(word)) {
        Some(number) => Err(RequestError::usage(format!(
            "{number}: accepted: a number alone, or a task; --iterations {number} sets the maximum of iterations beside a task"
        ))),
        None => Ok(()),
    }
}

/// The loop that a session continues with that has lost its name: that of this very session that was touched last, else that of
/// the project.
fn last(service: &Service, session: Option<&str>) -> Result<LoopId, RequestError> {
    let rows = service.list()?.into_iter();
    let open = rows.filter_map(|row| match row {
        ListEntry::Loop(brief) if can_continue(&brief) => Some(brief.id),
        ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
    });
    let open: Vec<_> = open.collect();
    let is_own = |id: &&LoopId| {
        let bound = service.state(id).ok().and_then(|state| state.session?.id);
        session.is_some() && bound.as_deref() == session
    };
    open.iter().find(is_own).or(open.first()).cloned().ok_or_else(|| {
        RequestError::usage("--resume-last: no loop of this project can continue")
            .hint("refrain list shows them")
    })
}

/// Whether a session can continue a loop: one that stands still, or that some session drives.
fn can_continue(brief: &Brief) -> bool {
    let in_session = brief.kind == Kind::Session && !brief.has_stopped();
    brief.kind != Kind::Plan && (in_session || is_candidate(brief))
}

/// Why no session that works in this folder can continue a loop.
fn cannot_continue_here(service: &Service, spec: &Spec) -> Option<String> {
    if spec.approval {
        return Some("waits for a person's approval where it claims, which no session can".to_owned());
    }
    if spec.sandbox.is_some() {
        return Some("runs in a sandbox, and a session runs its agent itself".to_owned());
    }
    let is_here = spec.worktree == service.project().worktree;
    (!is_here).then(|| format!("works in {}, and a session works where it is", spec.worktree))
}

/// Notes other sessions whose loops have gates and the same worktree: each proves what the other left half done.
fn note_neighbours(service: &Service, spec: &Spec) {
    if spec.gates.is_empty() {
        return;
    }
    let others = service.gated_session_loops(&spec.worktree).unwrap_or_default();
    if !others.is_empty() {
        let names = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        out::tell_note(format!(
            "{names} has gates in this worktree too: the gates of each loop check what the other session changes"
        ));
    }
}

/// What a session cannot do is dropped from the configuration, with a note: its agent runs already, in a folder of its own choice.
fn forget_place(settings: &mut Settings) {
    let config = &mut settings.config;
    let has_worktree = config.git.worktree.take() == Some(true);
    let has_sandbox = config.sandbox.mode.take().is_some_and(|mode| mode != SandboxMode::Off);
    for (is_set, table, name, why) in [
        (has_worktree, "git", "worktree", "which works where it is"),
        (has_sandbox, "sandbox", "mode", "which runs its agent itself"),
    ] {
        if is_set {
            let origin = settings.origin_of(table, name);
            out::tell_note(format!("{origin}: {table}.{name} does not count in a session, {why}"));
        }
    }
}

/// Limits that a session cannot keep are dropped from the configuration, with a note.
fn forget_limits(agent: AgentKind, settings: &mut Settings) {
    let origin = |name: &str| resolve::who(false, settings, name);
    let mut notes = Vec::new();
    let start = &settings.config.start;
    for (is_set, name) in [
        (matches!(start.timeout, Some(Limit::At(_))), "timeout"),
        (matches!(start.idle_timeout, Some(Limit::At(_))), "idle-timeout"),
        (matches!(start.pause, Some(Limit::At(_))), "pause"),
    ] {
        if is_set {
            notes.push(format!("{} does not count in a session, which ends its own turns", origin(name)));
        }
    }
    let is_priced = hook::counts_cost(agent)
        || start.model.as_deref().is_some_and(|model| settings.price(model).is_some());
    if matches!(start.max_cost, Some(Limit::At(_))) && !is_priced {
        notes.push(format!(
            "{} does not count in a session, which does not say what it costs; --max-tokens does",
            origin("max-cost")
        ));
        settings.config.start.max_cost = None;
    }
    notes.into_iter().for_each(out::tell_note);
}

fn spec(
    context: &Context,
    service: &Service,
    mut begin: BeginArgs,
    (agent, (mode, prompt), begun): (AgentKind, (Option<String>, String), SessionSpec),
) -> Result<Spec, RequestError> {
    let name = agent.to_string();
    let chosen = AgentChoice { agent: Some(&name), command: false };
    let mut settings = service.settings(chosen, context.has_variables())?;
    let why = "a session waits for no person; use it with refrain start";
    resolve::forget_approval(&mut settings, why).into_iter().for_each(out::tell_note);
    forget_place(&mut settings);
    forget_limits(agent, &mut settings);
    // A session always has a promise.
    settings.config.start.promise = None;
    if begin.task.is_given() && !prompt.is_empty() {
        return Err(RequestError::usage("a prompt and --prompt-file: accepted: one of them"));
    }
    if begin.task.take_stdin() {
        let error = "-: a session has no standard input for a task; accepted: a text or a file";
        return Err(RequestError::usage(error));
    }
    let words = (!prompt.is_empty()).then_some(Words::Text(prompt));
    let is_asked = begin.work.gates.require_approval;
    let counts = begin.work.max_cost.is_some() || begin.work.max_tokens.is_some();
    begin.work.agent = Some(name);
    let request = StartLoop { words, mode, options: begin, ..StartLoop::default() };
    let ResolvedStart { spec, offered, .. } =
        resolve::spec(context, &request, &settings, service, &context.dir)?;
    trust::check(context, service, &offered, None)?;
    resolve::refuse_approval(&spec, is_asked, &settings, why)?;
    if counts && !hook::counts_tokens(agent) {
        let error =
            format!("--max-tokens: sessions of {agent} do not say what they use; accepted: --max-duration");
        return Err(RequestError::usage(error));
    }
    if spec.limits.max_cost.is_some() && spec.agent.price.is_none() && !hook::counts_cost(agent) {
        let error = "--max-cost: a session says its tokens, and no costs; accepted: --max-tokens, or that with --model NAME and a price for the model in the configuration";
        return Err(RequestError::usage(error));
    }
    let limits = Limits {
        // A session has its own limits, and Refrain does not end it.
        timeout: None,
        idle_timeout: None,
        pause: None,
        ..spec.limits
    };
    // A session remembers by itself, and its prompt is typed.
    Ok(Spec { session: Some(begun), limits, memory: None, ..spec })
}
