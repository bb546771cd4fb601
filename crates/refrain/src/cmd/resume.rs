//! `refrain resume`. What another system's file has to do with it is in [`from`].

mod from;

use std::process::ExitCode;

use clap::Parser;
use refrain_core::LoopId;
use refrain_core::event::Ask;
use refrain_core::r#loop::Grant;
use refrain_core::plan::PlanGrant;
use refrain_core::values::Limit;
use refrain_core::view::StatusWord;
use refrain_engine::config::Chosen;
use refrain_engine::{
    Brief, EngineError, Listed, LoopRequest, Runner, Service, interrupted_by_reboot, remember_this_boot,
};

use super::approve;
use super::start::BeginArgs;
use crate::cli::Context;
use crate::error::{CliError, Code};
use crate::run::{self, ShowArgs};
use crate::{herald, out, values};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which; the only one that can go on, where it is left out
    #[arg(conflicts_with_all = ["last", "all", "from"])]
    id: Option<LoopId>,
    /// The one that was touched last
    #[arg(long, conflicts_with_all = ["all", "from"])]
    last: bool,
    /// Every one that paused or crashed, each in a process of its own
    #[arg(long, conflicts_with_all = ["max_iterations", "max_duration", "max_cost", "max_tokens", "retry_for"])]
    all: bool,
    /// Of every project, and only those that the machine's end interrupted: what a service runs after a reboot
    #[arg(long)]
    after_reboot: bool,
    /// Wait no longer for what it waits for
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    from: from::FromArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Takes the loop over and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, CliError> {
    // Its own loop would be among them, and each gets a process of its own.
    if let Some(own) = context.inside.as_ref().filter(|_| args.all) {
        return Err(from_inside(own));
    }
    if args.after_reboot {
        return after_reboot(context, &args);
    }
    if let Some(file) = args.from.from.clone() {
        return from::run(context, &file, args);
    }
    let service = context.service()?;
    if args.all {
        return all(context, &service, &args);
    }
    let id = if args.last {
        last(&service)?
    } else {
        values::only_one(&service, args.id.as_ref(), "refrain resume", could_be)?
    };
    if service.has_plan(&id) {
        return plan(context, &service, &id, &args);
    }
    if args.id.is_none() {
        approve::refuse_by_accident(&service.status(&id)?)?;
    }
    // An agent that resumes its own loop would end itself; one that grants more decides over a person's money; one that lets
    // go on what waits for approval says no in a person's name.
    let grant = grant(&args)?;
    let grants = grant != Grant::default();
    if let Some(own) = &context.inside
        && (grants || own == id.as_str() || approve::is_awaited(&service.status(&id)?))
    {
        return Err(from_inside(own));
    }
    if args.show.detach {
        run::may_detach(context)?;
    }
    let runner = match service.resume(&id, &grant, args.now) {
        // Somebody drives it, and is told to wait no longer.
        Err(EngineError::Driven { .. }) if args.now && !grants => return hurry(&service, &id),
        resumed => resumed?,
    };
    drive(context, &service, runner, &args.show)
}

/// The totals that it gets.
fn grant(args: &Args) -> Result<Grant, CliError> {
    let BeginArgs { max_iterations, work, .. } = &args.from.begin.args;
    Ok(Grant {
        max_iterations: *max_iterations,
        max_duration: raised("--max-duration", work.max_duration)?,
        max_cost: raised("--max-cost", work.max_cost)?,
        max_tokens: raised("--max-tokens", work.max_tokens)?,
        retry_for: raised("--retry-for", work.retry_for)?,
    })
}

/// A new total: a limit that a loop has is raised, and not taken away.
fn raised<T>(flag: &str, limit: Option<Limit<T>>) -> Result<Option<T>, CliError> {
    match limit {
        None => Ok(None),
        Some(Limit::At(total)) => Ok(Some(total)),
        Some(Limit::None) => {
            Err(CliError::usage(format!("{flag} none: accepted is a total; none counts only with --from")))
        }
    }
}

/// Drives a loop that goes on, here or in a process of its own.
pub(super) fn drive(
    context: &Context,
    service: &Service,
    runner: Runner,
    show: &ShowArgs,
) -> Result<ExitCode, CliError> {
    let show = configured(context, service, show);
    if runner.is_restored() && !show.quiet {
        let worktree = runner.worktree();
        out::tell(&format!(
            "note: the loop's worktree was gone; it is made anew from its branch: {worktree}\n"
        ));
    }
    match show.detach {
        true => run::detached(context, service, runner, context.dir.as_str(), &show),
        false => run::in_foreground(context, runner, &show),
    }
}

/// The words of this verb.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    args: Args,
}

/// Lets this loop, or plan, go on in a process of its own, with what these words grant; nothing is printed.
pub(super) fn in_background(context: &Context, id: &LoopId, granted: &str) -> Result<(), CliError> {
    let granted =
        shlex::split(granted).ok_or_else(|| CliError::usage(format!("{granted}: a quote is open")))?;
    let words = [id.to_string(), "--detach".to_owned(), "--quiet".to_owned()].into_iter().chain(granted);
    run(context, Words::try_parse_from(words)?.args).map(drop)
}

/// How to show it, and whom to tell: a loop's own specification says nothing of that. A configuration that cannot be read
/// keeps no loop from going on.
fn configured(context: &Context, service: &Service, show: &ShowArgs) -> ShowArgs {
    match service.settings(Chosen::default(), context.inside.is_none()) {
        Ok(settings) => show.clone().or_configured(&settings.config.notify),
        Err(error) => {
            out::tell_line("", &format!("note: [notify] is not read: {error}"));
            show.clone()
        }
    }
}

/// Lets a plan go on: its tasks wait for themselves, and what a plan is granted is not all that a loop is.
fn plan(context: &Context, service: &Service, id: &LoopId, args: &Args) -> Result<ExitCode, CliError> {
    let Grant { max_iterations, max_duration, max_cost, max_tokens, retry_for } = grant(args)?;
    let flags =
        [(max_tokens.is_some(), "--max-tokens"), (retry_for.is_some(), "--retry-for"), (args.now, "--now")];
    for (is_given, flag) in flags {
        if is_given {
            let error = CliError::usage(format!("{flag}: {id} is a plan, and has none"));
            return Err(error.hint("refrain plan resume --help shows what it can be granted"));
        }
    }
    let grant = PlanGrant { per_task: None, total: max_iterations, max_cost, max_duration };
    super::plan::resume(context, service, id, &grant, &args.show)
}

fn hurry(service: &Service, id: &LoopId) -> Result<ExitCode, CliError> {
    service.ask(id, LoopRequest::Hurry, Ask::Proceed, out::tell_slow(id))?;
    out::print(&format!("{id} waits no longer; refrain watch {id}\n"));
    Ok(Code::Done.into())
}

fn from_inside(own: &str) -> CliError {
    let error = format!("loop {own} cannot resume or extend a loop from inside an attempt");
    CliError::new(Code::Refused, error).hint("a person does that, from outside")
}

/// Which loops it can mean: those that can go on.
pub(super) fn could_be(status: &Brief) -> bool {
    matches!(
        status.status,
        StatusWord::Paused
            | StatusWord::Crashed
            | StatusWord::Blocked
            | StatusWord::IterationCap
            | StatusWord::BudgetExceeded
            | StatusWord::Stuck
            | StatusWord::TimedOut
    )
}

fn last(service: &Service) -> Result<LoopId, CliError> {
    let found = service.list()?.into_iter().find_map(|row| match row {
        Listed::Loop(status) if could_be(&status) => Some(status.id.clone()),
        Listed::Loop(_) | Listed::Damaged { .. } => None,
    });
    let id = found.ok_or_else(|| {
        CliError::usage("--last: no loop of this project can go on").hint("refrain list shows them")
    })?;
    out::tell(&format!("resuming {id}\n"));
    Ok(id)
}

fn all(context: &Context, service: &Service, args: &Args) -> Result<ExitCode, CliError> {
    let rows = service.list()?.into_iter();
    let stopped = rows.filter_map(|row| match row {
        Listed::Loop(status) if matches!(status.status, StatusWord::Paused | StatusWord::Crashed) => {
            Some((service.clone(), status.id))
        }
        Listed::Loop(_) | Listed::Damaged { .. } => None,
    });
    let code = each(context, stopped.collect(), args);
    herald::deliver_owed(context, service);
    Ok(code.into())
}

fn after_reboot(context: &Context, args: &Args) -> Result<ExitCode, CliError> {
    let code = each(context, interrupted_by_reboot(&context.host), args);
    // Whatever did not go on now has said why, and waits for a person.
    remember_this_boot(&context.host)?;
    Ok(code.into())
}

/// Lets each go on in a process of its own; one that cannot does not keep the others from it.
fn each(context: &Context, loops: Vec<(Service, LoopId)>, args: &Args) -> Code {
    let mut code = Code::Done;
    if loops.is_empty() && !args.show.quiet && !args.show.json {
        out::print("Nothing to resume.\n");
    }
    for (service, id) in loops {
        if service.has_plan(&id) {
            let show = ShowArgs { detach: true, ..args.show.clone() };
            if let Err(error) = super::plan::resume(context, &service, &id, &PlanGrant::default(), &show) {
                error.report();
                code = Code::Failed;
            }
            continue;
        }
        let resumed =
            service.resume(&id, &Grant::default(), args.now).map_err(CliError::from).and_then(|runner| {
                let show = configured(context, &service, &args.show);
                run::detached(context, &service, runner, service.project().worktree.as_str(), &show)
            });
        if let Err(error) = resumed {
            error.report();
            code = Code::Failed;
        }
    }
    code
}
