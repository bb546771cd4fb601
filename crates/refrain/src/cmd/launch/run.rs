//! `refrain run`: one task until its tests pass and a reviewer confirms its specification (seed 004). It is `start`
//! with its own options for the gates; all else comes from the options and the configuration of `start`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::builder::NonEmptyStringValueParser;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::gates::GateArgs;
use refrain_app::options::review::ReviewArgs;
use refrain_app::options::stuck::StuckArgs;
use refrain_app::options::values;
use refrain_app::options::work::{PromiseArgs, TaskArgs, WorkArgs};
use refrain_app::repository_command::of_gates;
use refrain_app::resolve::{StartLoop, Workspace, note_untrusted};
use refrain_app::verbs::approve::refuse_by_accident;
use refrain_app::verbs::resume;
use refrain_app::verbs::start::PreparedLoop;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::event::{Ask, Urgency};
use refrain_core::formats::detect::Offer;
use refrain_core::formats::mirror::Mirror;
use refrain_core::gate::{Check, GateName, GateSpec, GateWhen};
use refrain_core::r#loop::Grant;
use refrain_core::spec::{Millis, Spec};
use refrain_core::values::Limit;
use refrain_core::view::{Status, StatusWord};
use refrain_engine::config::{Chosen, Command};
use refrain_engine::{EngineError, GateProgramError, LoopRequest, Service, foreign_lock};

use crate::cmd::launch::conclave::{Environment, QUALITY, TESTS, decide_as_conclave, no_tests, together};
use crate::cmd::launch::start;
use crate::out;
use crate::run::{self, ShowArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The task's id, and the loop's
    #[arg(value_name = "TASK_ID")]
    task: LoopId,
    /// The file that says what is to be done: the agent's prompt, and what the reviewer holds the work against
    #[arg(value_name = "PROMPT_FILE")]
    prompt_file: Utf8PathBuf,
    /// Stop after N iterations in total, 1 to 200 [default: 5]
    #[arg(long, short = 'n', visible_aliases = ["max-iterations", "iterations"], value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    max_iter: Option<u32>,
    /// Where everything happens; here, where it is left out
    #[arg(long, short, value_name = "DIR", value_parser = values::folder)]
    dir: Option<Utf8PathBuf>,
    /// Never ask whether to go on with what an earlier run left: begin anew
    #[arg(long)]
    non_interactive: bool,
    /// Which agent works and reviews; what the configuration says, else claude
    #[arg(long, value_name = "KIND", value_parser = NonEmptyStringValueParser::new())]
    agent: Option<String>,
    /// What to run in its place; words are split like a shell's, no shell runs it
    #[arg(long, short, value_name = "CMD ARGS")]
    command: Option<Command>,
    /// Which model it uses
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// Who reviews: an agent's name or a command; the working agent, started afresh, where it is left out
    #[arg(long, value_name = "KIND|CMD")]
    reviewer: Option<String>,
    /// Ask a person last of all: what all else proved is done once they say refrain approve
    #[arg(long)]
    require_approval: bool,
    /// Start even if the program of a gate is missing
    ///
    /// For a program that the agent is to create.
    #[arg(long)]
    allow_missing_gates: bool,
    /// Trust the project's refrain.toml and the commands that its files name, for this start alone
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    show: ShowArgs,
}

const HELP: &str =
    "Gates: tests (all that the project's files offer), spec (the reviewer), and quality (linters, which
only inform). What fails is told to the next iteration. Work that is given up is kept on a branch
wip/ralph-fail-TASK_ID-TIME.

Environment, in seconds or like 20m: RALPH_TIMEOUT_IMPLEMENT (20m), RALPH_TIMEOUT_TEST (10m),
RALPH_TIMEOUT_SPEC (5m), RALPH_TIMEOUT_QUALITY (3m), RALPH_TIMEOUT_GLOBAL (1h); and
RALPH_STUCK_THRESHOLD (3).

Examples:
  refrain run add-auth ./specs/auth-feature.md
  refrain run fix-bug-123 ./specs/bug-123.md -n 3 --non-interactive";

/// How many iterations a task has (seed 004).
const ITERATIONS: u32 = 5;

/// Works on the task.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let dir = args.dir.as_ref().map_or_else(|| context.dir.clone(), |dir| context.dir.join(dir));
    if !dir.is_dir() {
        return Err(RequestError::usage(format!("--dir {dir}: there is no such folder")));
    }
    if args.show.detach {
        context.check(Action::Detach)?;
    }
    let environment = Environment::read(context)?;
    let service = context.open(&dir, args.yes)?;
    let choose = |agent: Option<&str>| {
        let chosen = Chosen { agent, command: args.command.is_some() };
        service.settings(chosen, context.has_variables())
    };
    let mut settings = choose(args.agent.as_deref())?;
    let start = &settings.config.start;
    let is_said = args.agent.is_some() || args.command.is_some();
    let is_said = is_said || start.agent.is_some() || start.command.is_some();
    // Seed 004 knows no other.
    let agent = if is_said { args.agent.as_deref() } else { Some("claude") };
    if !is_said {
        settings = choose(agent)?;
    }
    note_untrusted(&settings, &mut out::tell_note);
    let workspace = Workspace { service: service.clone(), settings, dir: dir.clone() };
    let request = request(args, agent, &environment);
    let mut prepared = PreparedLoop::new(context, workspace, &request)?;
    let offer = prove(&mut prepared.spec, &service, &environment)?;
    prepared.offered.extend(of_gates(&offer.gates));
    prepared.notes.extend(offer.notes);
    let spec = &prepared.spec;
    context.typed.check_loop(spec)?;
    if let Some(pid) = foreign_lock(spec) {
        let error = format!("{}: process {pid} works there; accepted is one run at a time", Mirror::LOCK);
        return Err(RequestError::new(Code::Refused, error).hint("end it, or wait for it"));
    }
    let left = service.status(&args.task).ok();
    match left.filter(may_go_on) {
        Some(left) if wants_to_go_on(args, &left)? => {
            keeps_its_options(args, spec, &service.spec(&args.task)?)?;
            let spent = left.status == StatusWord::TimedOut;
            let longer = left.limits.max_duration.map(|all| Millis(all.0.saturating_mul(2)));
            let grant = Grant {
                max_iterations: total(args, &left)?,
                max_duration: longer.filter(|_| spent),
                ..Grant::default()
            };
            resume::check(context, &service, &args.task, &grant)?;
            let runner = service.resume(&args.task, &grant, false)?;
            let show = args.show.clone().or_configured(&prepared.settings.config.notify);
            run::drive(context, &service, runner, &dir, &show)
        }
        _ => {
            put_aside(context, &service, &args.task)?;
            start::launch(context, prepared.start(context, &mut out::tell_note)?, args.show.clone())
        }
    }
}

/// The loop that works on the task.
fn request(args: &Args, agent: Option<&str>, environment: &Environment) -> StartLoop {
    let gates = GateArgs {
        require_approval: args.require_approval,
        allow_missing_gates: args.allow_missing_gates,
        ..GateArgs::default()
    };
    let reviews = ReviewArgs {
        spec_gate: Some(args.prompt_file.clone()),
        reviewer: args.reviewer.clone(),
        ..ReviewArgs::default()
    };
    let work = WorkArgs {
        agent: agent.map(str::to_owned),
        command: args.command.clone(),
        model: args.model.clone(),
        timeout: Some(Limit::At(environment.implement)),
        max_duration: Some(Limit::At(environment.global)),
        stuck: StuckArgs { stuck_threshold: Some(environment.threshold), ..StuckArgs::default() },
        gates,
        reviews,
        ..WorkArgs::default()
    };
    let options = BeginArgs {
        task: TaskArgs { prompt_file: Some(args.prompt_file.clone()), ..TaskArgs::default() },
        name: Some(args.task.clone()),
        work,
        promise: PromiseArgs { no_promise: true, ..PromiseArgs::default() },
        max_iterations: Some(args.max_iter.unwrap_or(ITERATIONS)),
        ..BeginArgs::default()
    };
    StartLoop { options, ..StartLoop::default() }
}

/// The gates of a task: its tests and its specification are required, linters advisory. Returns the gates detected in
/// the project's files.
fn prove(spec: &mut Spec, service: &Service, environment: &Environment) -> Result<Offer, RequestError> {
    let offer = service.offer(&spec.working_dir)?;
    // Together they are two commands at most, of which only the first program would be looked at.
    service.check_gates(spec, &offer.gates).map_err(|error| match error {
        EngineError::GateProgram(error) => {
            let owner = format!("{}, which the project's files offer", error.owner);
            EngineError::GateProgram(GateProgramError { owner, ..error })
        }
        error => error,
    })?;
    let tests = together(&offer, true).ok_or_else(|| {
        let hint = "an executable test.sh will do; refrain start --gate CMD takes any command";
        no_tests(&spec.working_dir, &offer).hint(hint)
    })?;
    let gate = |name: &str, command, hard, timeout| {
        let name: GateName = name.parse().map_err(|error| RequestError::usage(format!("{error}")))?;
        let check = Check::Command(command);
        Ok::<_, RequestError>(GateSpec {
            name,
            check,
            hard,
            timeout,
            retries: 0,
            when: GateWhen::Iteration,
            completes: false,
        })
    };
    let mut gates = vec![gate(TESTS, tests, true, environment.test)?];
    if let Some(linters) = together(&offer, false) {
        gates.push(gate(QUALITY, linters, false, environment.quality)?);
    }
    let review = spec.gates.drain(..).filter(GateSpec::is_review);
    gates.extend(review.map(|review| GateSpec { timeout: environment.spec, ..review }));
    spec.gates = gates;
    decide_as_conclave(spec);
    Ok(offer)
}

/// Refuses options that differ from those of the earlier run, which continues with its own.
fn keeps_its_options(args: &Args, spec: &Spec, stored: &Spec) -> Result<(), RequestError> {
    let reviewer = |spec: &Spec| spec.gates.iter().find_map(|gate| gate.reviewer().cloned());
    let is_other_agent = spec.agent != stored.agent;
    let options = [
        ("--command", args.command.is_some() && is_other_agent),
        ("--agent", args.agent.is_some() && is_other_agent),
        ("--model", args.model.is_some() && is_other_agent),
        ("--reviewer", args.reviewer.is_some() && reviewer(spec) != reviewer(stored)),
        ("--require-approval", args.require_approval && !stored.approval),
        ("--allow-missing-gates", args.allow_missing_gates && stored.gates_must_run),
    ];
    if let Some((option, _)) = options.iter().find(|(_, differs)| *differs) {
        let error = format!("{option}: the earlier run of {} continues as it was started", args.task);
        return Err(RequestError::usage(error)
            .hint(format!("leave {option} out, or begin again: refrain archive {}", args.task)));
    }
    if spec.prompt != stored.prompt && !args.show.quiet {
        let file = &args.prompt_file;
        out::tell_line(
            "",
            &format!("note: {file} has changed; the run continues with the text it was started with"),
        );
    }
    Ok(())
}

/// Whether an earlier run of the task can be resumed.
fn may_go_on(left: &Status) -> bool {
    match left.status {
        StatusWord::Completed | StatusWord::Cancelled | StatusWord::Failed => false,
        StatusWord::Running
        | StatusWord::Waiting
        | StatusWord::Paused
        | StatusWord::Blocked
        | StatusWord::Crashed
        | StatusWord::IterationCap
        | StatusWord::BudgetExceeded
        | StatusWord::TimedOut
        | StatusWord::Stuck => true,
    }
}

/// The total of iterations of an earlier run that is resumed: the requested one, else the rest it has, else as many
/// again as a new run has.
fn total(args: &Args, left: &Status) -> Result<Option<u32>, RequestError> {
    let (task, used) = (&args.task, left.charged);
    match (args.max_iter, left.max_iterations) {
        (Some(total), _) if total <= used => {
            let next = used.saturating_add(1);
            let error = format!(
                "-n {total}: {task} has used {used} iterations, and -n is the total; accepted is {next} or more"
            );
            Err(RequestError::usage(error)
                .hint(format!("refrain resume {task} --max-iterations {}", used.saturating_add(ITERATIONS))))
        }
        (Some(total), _) => Ok(Some(total)),
        (None, Some(cap)) if cap <= used => Ok(Some(used.saturating_add(ITERATIONS))),
        (None, _) => Ok(None),
    }
}

/// Asks the user at a terminal; by default the task is started anew.
fn wants_to_go_on(args: &Args, left: &Status) -> Result<bool, RequestError> {
    if matches!(left.status, StatusWord::Running | StatusWord::Waiting) {
        let error = format!("task {} is being worked on", args.task);
        return Err(RequestError::new(Code::Refused, error).hint(format!("refrain watch {}", args.task)));
    }
    refuse_by_accident(left)?;
    let is_watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if args.non_interactive || !is_watched {
        return Ok(false);
    }
    out::tell(&format!(
        "{}: an earlier run is {} in iteration {}. Go on with it? [y/N] ",
        args.task,
        left.status.as_str(),
        left.iteration
    ));
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.map_err(|error| RequestError::usage(format!("the answer cannot be read: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Archives an earlier run, so that it can still be inspected.
fn put_aside(context: &Context, service: &Service, task: &LoopId) -> Result<(), RequestError> {
    if context.caller.is_attempt() && service.locate(task).is_ok() {
        context.check_on(Action::Archive, service, task)?;
    }
    match service.archive(task) {
        Ok(_) => return Ok(()),
        Err(EngineError::NoLoop { .. }) => return Ok(()),
        // It crashed: it has no runner and no end event yet.
        Err(EngineError::NotStopped(_)) => {}
        Err(error) => return Err(error.into()),
    }
    service.ask(
        task,
        LoopRequest::BeginAnew,
        (Ask::Cancel(Urgency::Now), context.caller.asker()),
        |runner| out::tell_slow(task, runner),
    )?;
    service.archive(task)?;
    Ok(())
}
