//! `refrain run`: one task until its tests pass and a reviewer confirms its specification (seed 004). It is `start`
//! with its own options for the gates; all else comes from the options and the configuration of `start`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Arg;
use refrain_app::options::begin::BeginArgs;
use refrain_app::options::fleet::On;
use refrain_app::options::git::GitArgs;
use refrain_app::options::heading;
use refrain_app::options::values;
use refrain_app::options::variants::{AdaptedArgs, Difference};
use refrain_app::options::work::{PromiseArgs, TaskArgs, WorkArgs};
use refrain_app::resolve::{StartLoop, Workspace, folder, note_untrusted, prompt};
use refrain_app::verbs::approve::refuse_by_accident;
use refrain_app::verbs::resume;
use refrain_app::verbs::start::PreparedLoop;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::event::{Ask, Urgency};
use refrain_core::gate::GateSpec;
use refrain_core::r#loop::Grant;
use refrain_core::spec::{Limits, Millis, Spec};
use refrain_core::view::{Status, StatusWord};
use refrain_engine::{EngineError, LoopRequest, Service, foreign_lock};
use refrain_formats::mirror::LOCK;

use super::conclave::{Rules, WithoutTests};
use super::start;
use crate::cmd::connect::fleet;
use crate::out;
use crate::run::{self, ShowArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The task's id; the loop has it in a-z, 0-9 and hyphens
    #[arg(value_name = "TASK_ID", value_parser = task_id)]
    task: TaskName,
    /// The file with the task: the agent's prompt, and the specification for the reviewer
    #[arg(value_name = "PROMPT_FILE")]
    prompt_file: Utf8PathBuf,
    /// Stop after N iterations in total, 1 to 200 [default: 5]
    #[arg(long, short = 'n', visible_aliases = ["max-iterations", "iterations"], value_name = "N", allow_negative_numbers = true, value_parser = values::iterations)]
    max_iter: Option<u32>,
    /// Never ask whether to continue an earlier run: begin anew
    #[arg(long)]
    non_interactive: bool,
    #[command(flatten)]
    work: AdaptedArgs<WorkArgs, OfRun>,
    #[command(flatten)]
    git: GitArgs,
    /// Where it runs [default: here]
    #[arg(help_heading = heading::PLACE, long, value_enum, value_name = "WHERE")]
    on: Option<On>,
    #[command(flatten)]
    show: ShowArgs,
}

/// A task as it was named, and the loop's id.
#[derive(Clone, Debug)]
struct TaskName {
    given: String,
    id: LoopId,
}

fn task_id(text: &str) -> Result<TaskName, String> {
    let id = text.parse().ok().or_else(|| LoopId::of_words(text));
    let id = id.ok_or("accepted: an id with a letter of a-z, or a digit")?;
    Ok(TaskName { given: text.to_owned(), id })
}

/// Of the options of `start`: seed 004 calls the folder otherwise, and its task has a specification.
#[derive(Debug)]
struct OfRun;

impl Difference for OfRun {
    fn of(arg: Arg) -> Arg {
        let shown = |arg: Arg, help: &'static str| arg.help(help).long_help(help);
        match arg.get_id().as_str() {
            "working_dir" => arg.visible_alias("dir").visible_short_alias('d'),
            "spec_gate" => arg.hide(true),
            "agent" => shown(arg, "Which agent works and reviews [default: the configured one, else claude]"),
            "timeout" => {
                shown(arg, "How long one attempt may take [default: RALPH_TIMEOUT_IMPLEMENT, else 20m]")
            }
            "max_duration" => {
                shown(arg, "How long the run may take in total [default: RALPH_TIMEOUT_GLOBAL, else 1h]")
            }
            "gate" => shown(
                arg,
                "A required check, [NAME=]CMD: it takes the place of the tests and linters that the project's files offer",
            ),
            _ => arg,
        }
    }
}

const HELP: &str =
    "Gates: tests (all that the project's files offer, or --gate and [gates]), spec (the reviewer), and
quality (linters, which are advisory). A project without tests begins with a warning. The next prompt says what failed. Work that is given up is kept on a branch
wip/ralph-fail-TASK_ID-TIME.

Environment, in seconds or like 20m: RALPH_TIMEOUT_IMPLEMENT (20m), RALPH_TIMEOUT_TEST (10m),
RALPH_TIMEOUT_SPEC (5m), RALPH_TIMEOUT_QUALITY (3m), RALPH_TIMEOUT_GLOBAL (1h); and
RALPH_STUCK_THRESHOLD (3).

Examples:
  refrain run add-auth ./specs/auth-feature.md
  refrain run fix-bug-123 ./specs/bug-123.md -n 3 --non-interactive";

/// How many iterations a task has (seed 004).
const ITERATIONS: u32 = 5;

pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    let Args { task: TaskName { given, id }, prompt_file, max_iter, non_interactive, work, git, on, show } =
        args;
    let mut work = work.args;
    // The same file is the reviewer's specification; a refusal names it as it was typed.
    if prompt_file == "-" {
        let error = "PROMPT_FILE -: accepted: a file, as its reviewer reads it too";
        return Err(RequestError::usage(error).hint("refrain start - takes a task from standard input"));
    }
    refuse_pipe(context, &prompt_file)?;
    prompt::read(&format!("PROMPT_FILE {prompt_file}"), &context.dir.join(&prompt_file))?;
    let dir = folder(context, work.working_dir.as_deref())?;
    if show.detach {
        context.check(Action::Detach)?;
    }
    let service = context.open(&dir, work.yes)?;
    let settings = refrain_app::resolve::settings_or_claude(context, &service, &mut work)?;
    note_untrusted(&settings, &mut out::tell_note);
    if given != id.as_str() && !show.quiet {
        out::tell_note(format!("task {given:?} is loop {id}"));
    }
    let totals = Totals { iterations: max_iter, of: totals(&work) };
    let mut begin = BeginArgs {
        task: TaskArgs { prompt_file: Some(prompt_file.clone()), ..TaskArgs::default() },
        name: Some(id.clone()),
        work,
        promise: PromiseArgs { no_promise: true, ..PromiseArgs::default() },
        max_iterations: Some(max_iter.unwrap_or(ITERATIONS)),
        git,
        ..BeginArgs::default()
    };
    let rules = Rules::of(context, &service, &dir, &settings, (&mut begin, WithoutTests::Begin))?;
    let mut request = StartLoop { options: begin, ..StartLoop::default() };
    let place = match on {
        Some(On::Fleet) => Some(fleet::adapt(context, &mut request)?),
        None => None,
    };
    let workspace = Workspace { service: service.clone(), settings, dir: dir.clone() };
    let mut prepared = PreparedLoop::new(context, workspace, &request)?;
    prepared.offered.extend(rules.offered());
    prepared.notes.extend(rules.applied(&service, &mut prepared.spec)?);
    let spec = &prepared.spec;
    context.typed.check_loop(spec)?;
    show.notify.check(context)?;
    if let Some(pid) = foreign_lock(spec) {
        let error = format!("{}: process {pid} works there; accepted: one run at a time", LOCK);
        return Err(RequestError::new(Code::Refused, error).hint("end it, or wait for it"));
    }
    let left = service.status(&id).ok();
    match left {
        Some(left) if may_go_on(&left) && wants_to_go_on(&id, non_interactive || place.is_some(), &left)? => {
            keeps_its_options(context, spec, &service.spec(&id)?)?;
            if spec.prompt != service.spec(&id)?.prompt && !show.quiet {
                out::tell_note(format!(
                    "{prompt_file} has changed; the run continues with the text it was started with"
                ));
            }
            let grant = totals.granted(&id, &left)?;
            resume::check(context, &service, &id, &grant)?;
            let runner = service.resume(&id, &grant, false)?;
            let show = show.or_configured(&prepared.settings.config.notify);
            run::drive(context, &service, runner, &dir, &show)
        }
        left => {
            prepared.check(context)?;
            put_aside(context, &service, &id)?;
            if let Some(left) = left.filter(|_| !show.quiet) {
                let instead = match may_go_on(&left) {
                    true => format!("; refrain resume {id} continues a run instead"),
                    false => String::new(),
                };
                let (word, iteration) = (left.status.as_str(), left.iteration);
                out::tell_note(format!(
                    "the earlier run of {id} ({word}, iteration {iteration}) is archived, and a new one begins{instead}"
                ));
            }
            match place {
                Some(place) => fleet::submit(context, prepared, &place, &show),
                None => start::launch(context, prepared.start(context, &mut out::tell_note)?, show),
            }
        }
    }
}

/// A pipe can be read once; the agent, the reviewer and a resumed run each read the file.
fn refuse_pipe(context: &Context, file: &Utf8Path) -> Result<(), RequestError> {
    let meta = std::fs::metadata(context.dir.join(file));
    if meta.is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        let error = format!(
            "PROMPT_FILE {file} is no regular file; accepted: a file, as its reviewer reads it again later"
        );
        return Err(RequestError::usage(error)
            .hint("write it into a file first, as in: … > task.md && refrain run TASK_ID task.md"));
    }
    Ok(())
}

/// Refuses options that differ from those of the earlier run, which continues with what it was started with.
fn keeps_its_options(context: &Context, spec: &Spec, stored: &Spec) -> Result<(), RequestError> {
    let reviewer = |spec: &Spec| spec.gates.iter().find_map(|gate| gate.reviewer().cloned());
    let checks =
        |spec: &Spec| spec.gates.iter().filter(|gate| !gate.is_review()).cloned().collect::<Vec<GateSpec>>();
    let apart = |spec: &Spec| spec.git.checkout.is_own_worktree();
    let times = |spec: &Spec| {
        let Limits { timeout, timeout_grace, idle_timeout, pause, .. } = spec.limits;
        (timeout, timeout_grace, idle_timeout, pause)
    };
    let rows = [
        (
            "command agent agent-arg env clean-env prompt-mode output-format model permissions",
            spec.agent != stored.agent,
        ),
        ("reviewer reviewer-model", reviewer(spec) != reviewer(stored)),
        (
            "gate soft-gate success-command auto-gates gate-timeout gate-retries gate-when",
            checks(spec) != checks(stored),
        ),
        ("gate-env", spec.gate_env.variables != stored.gate_env.variables),
        ("protect protect-existing", spec.protect != stored.protect),
        ("clean-checkout", spec.clean_checkout != stored.clean_checkout),
        ("require-approval", spec.approval != stored.approval),
        ("allow-missing-gates", spec.gates_must_run != stored.gates_must_run),
        ("timeout timeout-grace idle-timeout pause", times(spec) != times(stored)),
        ("git-workflow auto-commit open-pr pr-and-merge", spec.git.workflow != stored.git.workflow),
        ("commit-template", spec.git.commit_template != stored.git.commit_template),
        ("commit-when", spec.git.commit_when != stored.git.commit_when),
        ("worktree no-worktree base", apart(spec) != apart(stored)),
        ("memory", spec.memory.is_some() != stored.memory.is_some()),
        ("stuck-threshold on-stuck", spec.stuck != stored.stuck),
        ("critique-every critic", spec.critique != stored.critique),
        ("no-iteration-context", spec.iteration_context != stored.iteration_context),
    ];
    let differing = rows.iter().filter(|(_, differs)| *differs);
    let given = differing.flat_map(|(names, _)| names.split_whitespace());
    let typed = |name: &&str| context.typed.levels.iter().any(|level| level.typed.contains_key(*name));
    let id = &spec.id;
    match given.into_iter().find(typed) {
        Some(option) => {
            let error = format!("--{option}: the earlier run of {id} continues as it was started");
            Err(RequestError::usage(error)
                .hint(format!("leave --{option} out, or begin again: refrain archive {id}")))
        }
        None => Ok(()),
    }
}

/// Whether an earlier run of the task can be resumed.
fn may_go_on(left: &Status) -> bool {
    match left.status {
        StatusWord::Completed | StatusWord::Cancelled | StatusWord::Moved | StatusWord::Failed => false,
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

/// The new totals of an earlier run that continues.
struct Totals {
    iterations: Option<u32>,
    of: Grant,
}

fn totals(work: &WorkArgs) -> Grant {
    Grant {
        max_iterations: None,
        max_duration: work.max_duration.and_then(Option::from),
        max_cost: work.max_cost.and_then(Option::from),
        max_tokens: work.max_tokens.and_then(Option::from),
        retry_for: work.retry_for.and_then(Option::from),
        no_sandbox: false,
    }
}

impl Totals {
    /// What it is granted: what was asked for, else what it has left, else as much again as a run has.
    fn granted(self, task: &LoopId, left: &Status) -> Result<Grant, RequestError> {
        let is_over = left.status == StatusWord::TimedOut;
        let longer = left.limits.max_duration.map(|all| Millis(all.0.saturating_mul(2))).filter(|_| is_over);
        let used = left.charged;
        let max_iterations = match (self.iterations, left.max_iterations) {
            (Some(total), _) if total <= used => {
                let next = used.saturating_add(1);
                let error = format!(
                    "-n {total}: {task} has used {used} iterations, and -n is the total; accepted: {next} or more"
                );
                let total = Limits::larger_total(used);
                return Err(RequestError::usage(error)
                    .hint(format!("refrain resume {task} --max-iterations {total}")));
            }
            (Some(total), _) => Some(total),
            (None, Some(cap)) if cap <= used => Some(used.saturating_add(ITERATIONS)),
            (None, _) => None,
        };
        Ok(Grant { max_iterations, max_duration: self.of.max_duration.or(longer), ..self.of })
    }
}

/// Asks a person, where one is there: by default the task is begun anew.
fn wants_to_go_on(task: &LoopId, non_interactive: bool, left: &Status) -> Result<bool, RequestError> {
    if matches!(left.status, StatusWord::Running | StatusWord::Waiting) {
        let error = format!("task {task} is being worked on");
        return Err(RequestError::new(Code::Refused, error).hint(format!("refrain watch {task}")));
    }
    refuse_by_accident(left)?;
    let is_watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if non_interactive || !is_watched {
        return Ok(false);
    }
    out::tell(&format!(
        "{task}: an earlier run is {} in iteration {}. Continue it? [y/N] ",
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
