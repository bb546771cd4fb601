//! Continuing a loop or a plan that has stopped.

use refrain_core::agent::Usd;
use refrain_core::event::Ask;
use refrain_core::r#loop::Grant;
use refrain_core::plan::{PlanGrant, TaskRef};
use refrain_core::{LoopId, LoopState, Refusal, values};
use refrain_engine::config::AgentChoice;
use refrain_engine::{ByKind, EngineError, LoopRequest, PlanRunner, Runner, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approve::is_awaited;
use super::{Slow, start};
use crate::error::{Code, Message};
use crate::options::notify::NotifyArgs;
use crate::plan::edit_tasks::check_open;
use crate::sandbox::refused;
use crate::{Action, Context, RequestError, plan};

/// What a loop, or a plan, may use from here on, in all; what is omitted stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resume {
    /// How many iterations; at most 200 more at a time.
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u32>,
    /// How much money, in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    /// How many tokens; a plan has none.
    pub max_tokens: Option<u64>,
    /// For how long, as in 2h or 30m.
    pub max_duration: Option<String>,
    /// Wait no longer for what it waits for.
    pub now: bool,
}

impl Resume {
    pub fn grant(&self) -> Result<Grant, RequestError> {
        Ok(Grant {
            max_iterations: self.iterations()?,
            max_duration: parse_limit("--max-duration", self.max_duration.as_deref(), values::duration)?,
            max_cost: self.cost()?,
            max_tokens: self.tokens()?,
            ..Grant::default()
        })
    }

    fn iterations(&self) -> Result<Option<u32>, RequestError> {
        let text = self.max_iterations.map(|count| count.to_string());
        parse_limit("--max-iterations", text.as_deref(), values::iteration)
    }

    fn tokens(&self) -> Result<Option<u64>, RequestError> {
        let text = self.max_tokens.map(|count| count.to_string());
        parse_limit("--max-tokens", text.as_deref(), values::tokens)
    }

    fn cost(&self) -> Result<Option<Usd>, RequestError> {
        let text = self.max_cost_usd.map(|cost| cost.to_string());
        parse_limit("--max-cost", text.as_deref(), values::usd)
    }
}

fn parse_limit<T>(
    flag: &'static str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, RequestError> {
    let refused = |text, why| RequestError::usage(Message::from(flag).then(format!(" {text}: {why}")));
    text.map(|text| parse(text).map_err(|why| refused(text, why))).transpose()
}

/// The totals of a plan, which has fewer of them than a loop.
pub fn plan_grant(id: &LoopId, grant: &Grant, proceed: bool) -> Result<PlanGrant, RequestError> {
    let Grant { max_iterations, max_duration, max_cost, max_tokens, retry_for, no_sandbox } = grant;
    let flags = [
        (max_tokens.is_some(), "--max-tokens"),
        (retry_for.is_some(), "--retry-for"),
        (*no_sandbox, "--no-sandbox"),
        (proceed, "--now"),
    ];
    if let Some((_, flag)) = flags.into_iter().find(|(is_given, _)| *is_given) {
        return Err(RequestError::usage(format!("{flag}: {id} is a plan, and has none"))
            .hint("refrain plan resume --help shows what it can be granted"));
    }
    let (total, max_cost, max_duration) = (*max_iterations, *max_cost, *max_duration);
    Ok(PlanGrant { per_task: None, total, max_cost, max_duration })
}

pub enum ResumeOutcome {
    Runner(Box<Runner>),
    /// Another runner drives it, and was asked to end its wait.
    Hurried,
}

/// The command that continues a stopped loop, with the larger total that it needs.
pub fn command(service: &Service, id: &LoopId) -> String {
    match service.state(id).map(|state| state.resume(&Grant::default())) {
        Ok(Err(Refusal::NothingGranted { flag, .. })) => format!("refrain resume {id} {flag}"),
        Ok(_) | Err(_) => format!("refrain resume {id}"),
    }
}

/// Refuses a caller that may not continue this loop.
pub fn check(context: &Context, service: &Service, id: &LoopId, grant: &Grant) -> Result<(), RequestError> {
    if !context.caller.is_attempt() {
        return Ok(());
    }
    // An attempt that grants more decides over a person's money; one that continues what waits for approval says no for them.
    let extends = *grant != Grant::default() || is_awaited(&service.status(id)?);
    let action = if extends { Action::Extend } else { Action::Resume };
    context.check_on(action, service, id)
}

/// Refuses what would continue a loop although its plan counts no result of it.
pub(super) fn check_plan(service: &Service, state: &LoopState) -> Result<(), RequestError> {
    let Some(TaskRef { plan, id, .. }) = state.over_for_plan() else { return Ok(()) };
    if service.plan(plan).is_ok() {
        check_open(service, plan)?;
    }
    let (this, next) = (&state.spec.id, "continues in a loop of its own");
    Err(RequestError::new(Code::Refused, format!("{this} is over for plan {plan}, whose task {id} {next}"))
        .hint(format!(
            "refrain plan tune {plan} {id} --words TEXT --resume tells that loop's agent what to do"
        )))
}

/// Takes the loop over. `proceed` says to wait no longer for what the loop waits for.
pub fn resume(
    context: &Context,
    service: &Service,
    id: &LoopId,
    (grant, proceed): (&Grant, bool),
    mut slow: Slow<'_>,
) -> Result<ResumeOutcome, RequestError> {
    check(context, service, id, grant)?;
    check_plan(service, &service.state(id)?)?;
    // Before anything is made of what its journal says.
    service.check_origin(id)?;
    // A loop that another runner drives has its sandbox.
    let is_driven =
        || service.status(id).map(|status| status.runner.and_then(|runner| runner.alive) == Some(true));
    if !grant.no_sandbox
        && let spec = service.spec(id)?
        && let Some(sandbox) = &spec.sandbox
        && !is_driven()?
    {
        refrain_engine::sandbox::probe(&context.host, &spec, sandbox).map_err(|error| {
            refused(&error)
                .hint(format!("refrain resume {id} --no-sandbox continues it with your own rights"))
        })?;
    }
    if proceed {
        slow.check(service, id)?;
    }
    match service.resume(id, grant, proceed) {
        Err(EngineError::Driven { .. }) if proceed && *grant == Grant::default() => {
            service.ask(id, LoopRequest::Hurry, (Ask::Proceed, context.caller.asker()), |runner| {
                slow.note(id, runner);
            })?;
            Ok(ResumeOutcome::Hurried)
        }
        Err(error @ EngineError::Refused { why: Refusal::Final(_), .. })
            if service.locate(id).is_ok_and(|found| found.archived) =>
        {
            let hint = format!("start another; {id} is archived, so its name is free");
            Err(RequestError::new(Code::Refused, error.to_string()).hint(hint))
        }
        resumed => Ok(ResumeOutcome::Runner(Box::new(resumed?))),
    }
}

/// What starts another plan, and what frees the name of one that has ended unless it is archived.
pub(crate) fn another_plan(service: &Service, id: &LoopId) -> String {
    let is_listed =
        matches!(service.find(id), Ok(ByKind::Plan(dir)) if dir == service.project().plan_dir(id));
    let frees = if is_listed { format!("; refrain discard {id} frees its name") } else { String::new() };
    format!("refrain plan run starts another{frees}")
}

pub fn resume_plan(
    context: &Context,
    service: &Service,
    id: &LoopId,
    grant: &PlanGrant,
) -> Result<PlanRunner, RequestError> {
    context.check_on(Action::ResumePlan, service, id)?;
    service.resume_plan(id, grant).map_err(|error| match &error {
        // A plan's options are not those of a loop.
        EngineError::Refused { why: Refusal::NothingGranted { used, flag }, .. } => {
            RequestError::new(Code::Refused, format!("plan {id} cannot be resumed: {used}"))
                .hint(Message::own(&format!("refrain plan resume {id} {flag}")))
                .lacking(used, flag)
        }
        EngineError::Refused { why: Refusal::Final(word), .. } => {
            RequestError::new(Code::Refused, format!("plan {id} cannot be resumed: it is {word}"))
                .hint(another_plan(service, id))
        }
        _ => error.into(),
    })
}

/// Continues a loop, or a plan, in a process of its own, with the notify options of the configuration.
pub fn resume_detached(
    context: &Context,
    service: &Service,
    id: &LoopId,
    (grant, proceed): (&Grant, bool),
    slow: Slow<'_>,
) -> Result<(), RequestError> {
    let dir = &service.project().worktree;
    match service.find(id)? {
        ByKind::Plan(_) => {
            context.check_on(Action::ResumePlan, service, id)?;
            context.check(Action::Detach)?;
            let runner = resume_plan(context, service, id, &plan_grant(id, grant, proceed)?)?;
            plan::detach(context, (service, runner), dir, &notify(context, service))?.1.reap();
        }
        ByKind::Loop(_) => {
            check(context, service, id, grant)?;
            context.check(Action::Detach)?;
            if let ResumeOutcome::Runner(runner) = resume(context, service, id, (grant, proceed), slow)? {
                start::detach(context, (service, *runner), dir, &notify(context, service))?.1.reap();
            }
        }
    }
    Ok(())
}

/// The notify options of the configuration, or none if it cannot be read.
pub(crate) fn notify(context: &Context, service: &Service) -> NotifyArgs {
    let settings = service.settings(AgentChoice::default(), context.has_variables());
    let configured = settings.map(|settings| NotifyArgs::default().or_configured(&settings.config.notify));
    configured.unwrap_or_default()
}
