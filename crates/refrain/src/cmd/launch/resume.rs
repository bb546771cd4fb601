//! `refrain resume`. Loops of other systems are in [`foreign_loop`].

mod foreign_loop;

use std::process::ExitCode;

use clap::Parser;
use refrain_app::effects::waits;
use refrain_app::options::begin::BeginArgs;
use refrain_app::verbs::Slow;
use refrain_app::verbs::approve::refuse_by_accident;
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::verbs::resume::{self as app, ResumeOutcome};
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::agent::Usd;
use refrain_core::r#loop::Grant;
use refrain_core::plan::PlanGrant;
use refrain_core::spec::Millis;
use refrain_core::values::{Limit, duration, iteration, tokens, usd};
use refrain_core::view::{Kind, StatusWord};
use refrain_core::{LoopId, LoopState, Spec};
use refrain_engine::config::AgentChoice;
use refrain_engine::{Brief, ByKind, ListEntry, Runner, Service, interrupted_by_reboot, remember_this_boot};

use crate::cmd::connect::fleet;
use crate::cmd::state_file::{self, StateFile};
use crate::run::{self, ShowArgs};
use crate::{notifier, out, values};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain resume docs-3f9c
  refrain resume docs-3f9c --max-iterations 40 --detach")]
pub(crate) struct Args {
    /// The loop or plan [default: the only one that can be resumed]
    #[arg(conflicts_with_all = ["last", "all", "from"])]
    id: Option<LoopId>,
    /// The one that was touched last
    #[arg(long, conflicts_with_all = ["all", "from"])]
    last: bool,
    /// Every one that paused or crashed, each in a process of its own
    #[arg(long, conflicts_with_all = ["max_iterations", "max_duration", "max_cost", "max_tokens", "retry_for"])]
    all: bool,
    /// With --all: those of every project that a reboot interrupted; for a service
    #[arg(long)]
    after_reboot: bool,
    /// Try again now instead of waiting
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    from: foreign_loop::FromArgs,
    #[command(flatten)]
    show: ShowArgs,
}

impl Args {
    /// The verb's action, for [`Action::permission`]: with `--all` the caller's own loop would be among them.
    pub(crate) fn action(&self) -> Action {
        if self.all { Action::Extend } else { Action::Resume }
    }
}

/// Takes the loop over and drives it, here or in a process of its own.
pub(crate) fn run(context: &Context, args: Args) -> Result<ExitCode, RequestError> {
    if args.after_reboot {
        return resume_after_reboot(context, &args);
    }
    if let Some(file) = args.from.from.clone() {
        return foreign_loop::run(context, &file, args);
    }
    let service = context.service()?;
    let mut args = args;
    if let Some(file) = args.from.state_file.clone() {
        match state_file::read(context, &service, &file)? {
            StateFile::Own(id) => args.id = Some(id),
            StateFile::Foreign(_) => return foreign_loop::run(context, &file, args),
        }
    }
    if args.all {
        return resume_all(context, &service, &args);
    }
    let id = if args.last { last_resumable(&service)? } else { only_resumable(&service, &args)? };
    let request = || typed_grant(&args).map(|grant| FleetRequest::Resume(on_fleet(&grant, args.now)));
    if let Some(code) = fleet::ask(context, &service, (&id, Action::Resume), request)? {
        return Ok(code);
    }
    if let ByKind::Plan(_) = service.find(&id)? {
        return resume_plan(context, &service, &id, &args);
    }
    if args.id.is_none() {
        refuse_by_accident(&service.status(&id)?)?;
    }
    let grant = typed_grant(&args)?;
    args.show.notify.check(context)?;
    if args.show.detach {
        // Refuse a caller that may not resume it before detaching.
        app::check(context, &service, &id, &grant)?;
        context.check(Action::Detach)?;
    }
    // Before it continues, which may take its sandbox away.
    let notes = service.spec(&id).map(|spec| without_effect(&spec, &grant)).unwrap_or_default();
    let resumed = app::resume(context, &service, &id, (&grant, args.now), Slow::Note(&mut out::tell_slow))?;
    if args.last {
        out::tell(&format!("resuming {id}\n"));
    }
    if !args.show.quiet {
        notes.into_iter().for_each(out::tell_note);
    }
    match resumed {
        ResumeOutcome::Runner(runner) => drive_resumed(context, &service, *runner, &args.show),
        ResumeOutcome::Hurried => {
            out::print(&format!("{id} waits no longer; refrain watch {id}\n"));
            Ok(Code::Done.into())
        }
    }
}

/// Notes on what changes nothing for this loop.
fn without_effect(spec: &Spec, grant: &Grant) -> Vec<String> {
    let retries = (grant.retry_for.is_some() && !waits(spec))
        .then(|| "--retry-for has no effect: the provider of this loop's command is not known".to_owned());
    let sandbox = (grant.no_sandbox && spec.sandbox.is_none())
        .then(|| "--no-sandbox has no effect: this loop has no sandbox".to_owned());
    retries.into_iter().chain(sandbox).collect()
}

fn typed_grant(args: &Args) -> Result<Grant, RequestError> {
    let BeginArgs { max_iterations, work, .. } = &args.from.begin.args;
    Ok(Grant {
        max_iterations: *max_iterations,
        max_duration: new_total("--max-duration", work.max_duration)?,
        max_cost: new_total("--max-cost", work.max_cost)?,
        max_tokens: new_total("--max-tokens", work.max_tokens)?,
        retry_for: new_total("--retry-for", work.retry_for)?,
        no_sandbox: work.sandbox.no_sandbox,
    })
}

/// The same, for a machine of the fleet.
fn on_fleet(grant: &Grant, now: bool) -> app::Resume {
    app::Resume {
        max_iterations: grant.max_iterations,
        max_cost_usd: grant.max_cost.map(f64::from),
        max_tokens: grant.max_tokens,
        max_duration: grant.max_duration.map(|span| format!("{}s", span.0.div_ceil(1000))),
        now,
    }
}

/// A new total: a limit that a loop has is raised, and not taken away.
fn new_total<T>(flag: &str, limit: Option<Limit<T>>) -> Result<Option<T>, RequestError> {
    match limit {
        None => Ok(None),
        Some(Limit::At(total)) => Ok(Some(total)),
        Some(Limit::None) => {
            Err(RequestError::usage(format!("{flag} none: accepted: a total; none counts only with --from")))
        }
    }
}

/// Drives a resumed loop, here or in a process of its own.
pub(crate) fn drive_resumed(
    context: &Context,
    service: &Service,
    runner: Runner,
    show: &ShowArgs,
) -> Result<ExitCode, RequestError> {
    let show = with_configuration(context, service, show);
    if runner.is_restored() && !show.quiet {
        let worktree = runner.worktree();
        out::tell(&format!(
            "note: the loop's worktree was gone; it is made anew from its branch: {worktree}\n"
        ));
    }
    run::drive(context, service, runner, &context.dir, &show)
}

/// New totals, as a person types them in `top`.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct GrantLine {
    #[arg(long, short, visible_aliases = ["iterations", "max-total-iterations"], value_parser = iteration)]
    max_iterations: Option<u32>,
    #[arg(long, value_parser = duration)]
    max_duration: Option<Millis>,
    #[arg(long, value_parser = usd)]
    max_cost: Option<Usd>,
    #[arg(long, value_parser = tokens)]
    max_tokens: Option<u64>,
    #[arg(long, value_parser = duration)]
    retry_for: Option<Millis>,
    #[arg(long)]
    now: bool,
}

/// Parses new limits for a loop or a plan, and whether to end its wait.
pub(crate) fn parse_grant(granted: &str) -> Result<(Grant, bool), RequestError> {
    let granted =
        shlex::split(granted).ok_or_else(|| RequestError::usage(format!("{granted}: a quote is open")))?;
    let GrantLine { max_iterations, max_duration, max_cost, max_tokens, retry_for, now } =
        GrantLine::try_parse_from(granted)?;
    Ok((Grant { max_iterations, max_duration, max_cost, max_tokens, retry_for, no_sandbox: false }, now))
}

/// How to show it, and whom to tell: a loop's own specification says nothing of that. A configuration that cannot be read
/// keeps no loop from continuing.
pub(crate) fn with_configuration(context: &Context, service: &Service, show: &ShowArgs) -> ShowArgs {
    match service.settings(AgentChoice::default(), context.has_variables()) {
        Ok(settings) => show.clone().or_configured(&settings.config.notify),
        Err(error) => {
            out::tell_line("", &format!("note: [notify] is not read: {error}"));
            show.clone()
        }
    }
}

/// Resumes a plan: its tasks wait by themselves, and it takes only some of a loop's limits.
fn resume_plan(
    context: &Context,
    service: &Service,
    id: &LoopId,
    args: &Args,
) -> Result<ExitCode, RequestError> {
    let grant = app::plan_grant(id, &typed_grant(args)?, args.now)?;
    crate::cmd::plan::resume(context, service, (id, !args.last), &grant, &args.show)
}

/// Candidates without an id: loops that can be resumed.
pub(crate) fn is_candidate(status: &Brief) -> bool {
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

/// The loop that is named, else the only one that continues as it was asked. If none does, the only one that could with
/// other totals or by a decision: the refusal says how.
fn only_resumable(service: &Service, args: &Args) -> Result<LoopId, RequestError> {
    let grant = typed_grant(args)?;
    let is_ready = |status: &Brief| {
        let continues = |state: LoopState| state.awaits_approval().is_none() && state.resume(&grant).is_ok();
        is_candidate(status) && (status.kind == Kind::Plan || service.state(&status.id).is_ok_and(continues))
    };
    let found = if args.id.is_none() { service.list()? } else { Vec::new() };
    let is_any_ready = found.iter().any(|row| matches!(row, ListEntry::Loop(status) if is_ready(status)));
    let is_meant = |status: &Brief| if is_any_ready { is_ready(status) } else { is_candidate(status) };
    values::only_one(service, args.id.as_ref(), ("refrain resume", "no loop here can continue"), is_meant)
}

fn last_resumable(service: &Service) -> Result<LoopId, RequestError> {
    let found = service.list()?.into_iter().find_map(|row| match row {
        ListEntry::Loop(status) if is_candidate(&status) => Some(status.id.clone()),
        ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
    });
    let id = found.ok_or_else(|| {
        RequestError::usage("--last: no loop of this project can continue").hint("refrain list shows them")
    })?;
    Ok(id)
}

fn resume_all(context: &Context, service: &Service, args: &Args) -> Result<ExitCode, RequestError> {
    let rows = service.list()?.into_iter();
    let stopped = rows.filter_map(|row| match row {
        ListEntry::Loop(status) if matches!(status.status, StatusWord::Paused | StatusWord::Crashed) => {
            Some((service.clone(), status.id))
        }
        ListEntry::Loop(_) | ListEntry::Damaged(_) => None,
    });
    let code = resume_each(context, stopped.collect(), args);
    notifier::deliver_owed(context, service);
    Ok(code.into())
}

fn resume_after_reboot(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let code = resume_each(context, interrupted_by_reboot(&context.host), args);
    // A loop that was not resumed has reported why, and waits for a person.
    remember_this_boot(&context.host)?;
    Ok(code.into())
}

/// Resumes each in a process of its own; an error of one does not affect the others.
fn resume_each(context: &Context, loops: Vec<(Service, LoopId)>, args: &Args) -> Code {
    let mut code = Code::Done;
    if loops.is_empty() && !args.show.quiet && !args.show.json {
        out::print("Nothing to resume.\n");
    }
    let show = ShowArgs { detach: true, ..args.show.clone() };
    for (service, id) in loops {
        let resumed = || match service.find(&id)? {
            ByKind::Plan(_) => {
                crate::cmd::plan::resume(context, &service, (&id, true), &PlanGrant::default(), &show)
            }
            ByKind::Loop(_) => {
                let runner = service.resume(&id, &Grant::default(), args.now)?;
                let show = with_configuration(context, &service, &show);
                run::drive(context, &service, runner, &service.project().worktree, &show)
            }
        };
        if let Err(error) = resumed() {
            out::report(&error);
            code = Code::Failed;
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_totals_and_nothing_else() {
        let (grant, now) = parse_grant("--max-iterations 40 --max-cost 3 --now").unwrap();
        assert_eq!((grant.max_iterations, grant.max_cost, now), (Some(40), Some(Usd::from(3.0)), true));
        for refused in ["--notify=off", "--from x", "other", "--max-iterations", "'"] {
            assert!(parse_grant(refused).is_err(), "{refused}");
        }
    }
}
